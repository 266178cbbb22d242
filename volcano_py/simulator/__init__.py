"""Simulates a cluster with its work on a virtual clock, in one thread and as fast as cycles run."""

from volcano_py.simulator.simulation import Simulation, Timing
from volcano_py.simulator.timeline import Timeline
from volcano_py.simulator.work import Work

__all__ = ["Simulation", "Timeline", "Timing", "Work"]
