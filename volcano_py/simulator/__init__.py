"""Many cycles on a virtual clock: a whole cluster with its work in one thread, as fast as cycles can be decided."""

from volcano_py.simulator.simulation import Simulation, Timing
from volcano_py.simulator.timeline import Timeline
from volcano_py.simulator.work import Work

__all__ = ["Simulation", "Timeline", "Timing", "Work"]
