"""Cycles that pass while a test looks on: a scheduler that has nothing to do runs none by itself."""

from __future__ import annotations

from tests.controlplane.waiting import wait_until
from tests.e2e.daemon import Daemon
from tests.e2e.gangs import Gangs


def let_cycles_pass(daemon: Daemon, gangs: Gangs, cycles: int = 5) -> None:
    """Wait until so many cycles have ended; changes of a node wake a scheduler that is at rest."""
    aim = daemon.cycles() + cycles

    def passed() -> bool:
        gangs.change_a_node()
        return daemon.cycles() >= aim

    wait_until(f"{cycles} more cycles have passed", passed, 15.0, every=0.3)
