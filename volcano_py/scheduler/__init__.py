"""From a conf to plugins and actions, and the cycle that runs them."""

from volcano_py.scheduler.cycle import run_cycle
from volcano_py.scheduler.policy import Policy, resolve

__all__ = ["Policy", "resolve", "run_cycle"]
