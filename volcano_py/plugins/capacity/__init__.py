"""Queues with a guarantee, a deserved amount and a capability, flat or in a tree."""

from volcano_py.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
