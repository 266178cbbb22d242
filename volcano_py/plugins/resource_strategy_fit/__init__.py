"""Resource-strategy-fit: a scoring strategy per resource, and protection of scarce resources."""

from volcano_py.plugins.resource_strategy_fit.plugin import ResourceStrategyFit

__all__ = ["ResourceStrategyFit"]
