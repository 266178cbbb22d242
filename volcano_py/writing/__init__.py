"""Writes to an API server that may wait: write queues, deduplication, rates, events."""
