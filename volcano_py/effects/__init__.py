"""Decisions to API calls, on the event loop: binds first, then PodGroup statuses, then pod conditions and events."""
