"""Resource-strategy-fit: a strategy per resource, room for scarce resources."""

from volcano_py.plugins.resource_strategy_fit.plugin import ResourceStrategyFit

__all__ = ["ResourceStrategyFit"]
