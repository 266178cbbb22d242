"""Shares of the cluster by the weights of queues."""

from volcano_py.plugins.proportion.plugin import Proportion

__all__ = ["Proportion"]
