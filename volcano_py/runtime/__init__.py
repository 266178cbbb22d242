"""Shared parts of all processes: clock, options, logging, signals, supervised tasks, health and metrics over HTTP."""
