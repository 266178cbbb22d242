"""Predicates: the nodes on which a task can run; kube-scheduler's filters under Volcano's name."""

from volcano_py.plugins.predicates.plugin import Predicates

__all__ = ["Predicates"]
