"""Kube-scheduler's scores under Volcano's weights."""

from volcano_py.plugins.nodeorder.plugin import NodeOrderArgs, NodeOrdering
from volcano_py.plugins.nodeorder.resources import balanced_allocation, least_allocated, most_allocated

__all__ = ["NodeOrderArgs", "NodeOrdering", "balanced_allocation", "least_allocated", "most_allocated"]
