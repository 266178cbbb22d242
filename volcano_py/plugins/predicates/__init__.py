"""Predicates: where a task can run at all; kube-scheduler's filters under Volcano's name."""

from volcano_py.plugins.predicates.plugin import Predicates

__all__ = ["Predicates"]
