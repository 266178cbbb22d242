"""Sabotages: small plausible mistakes, each of which the simulation must find."""

from tests.simulation.sabotages import cache, controllers, daemon, effects, kube
from tests.simulation.sabotages.sabotage import NotApplicable, Sabotage

SABOTAGES: dict[str, Sabotage] = {
    each.name: each for module in (effects, cache, kube, daemon, controllers) for each in module.SABOTAGES
}
"""All sabotages by name."""

__all__ = ["SABOTAGES", "NotApplicable", "Sabotage"]
