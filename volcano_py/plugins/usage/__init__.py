"""Usage: scores and thresholds by the measured load of nodes."""

from volcano_py.plugins.usage.plugin import Usage

__all__ = ["Usage"]
