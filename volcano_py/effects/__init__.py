"""Carries out decisions as requests to the API server, on the event loop.

Binds come first, then PodGroup statuses, then pod conditions and events.
"""
