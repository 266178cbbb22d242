"""Queues with a guarantee, a deserved part and a capability, side by side or in a tree."""

from volcano_py.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
