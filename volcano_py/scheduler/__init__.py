"""The policy (plugins and actions) of a configuration, and the cycle that runs it."""

from volcano_py.scheduler.cycle import run_cycle
from volcano_py.scheduler.policy import Policy, resolve

__all__ = ["Policy", "resolve", "run_cycle"]
