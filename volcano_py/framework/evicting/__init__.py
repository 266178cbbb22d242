"""Evicting: the victim candidates, the order of eviction, and plans that are proved before any pod is evicted."""
