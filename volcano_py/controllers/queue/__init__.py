"""Queues: that the ones everybody relies on exist, what state each is in, and how many PodGroups it has."""
