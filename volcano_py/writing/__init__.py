"""Writes to an API server in general: write queues, deduplication, rates, limits, events. It knows no decision."""
