"""Dominant resource fairness between jobs, between namespaces, and between queues in a tree."""

from volcano_py.plugins.drf.plugin import Drf

__all__ = ["Drf"]
