"""Machines and the programs on them: started, killed, paused, started again."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tests.simulation.clocks import MachineClock
from tests.simulation.loop import Process, SimulationLoop, State
from tests.simulation.network import Network
from volcano_py.runtime.signals import Shutdown

RESTART_S: Final = 2.0
"""After which a program that has ended is started again, as a kubelet does."""
PATIENCE_S: Final = 30.0
"""After which a kubelet kills a process that was asked to end."""


class Machine:
    """One machine with one program; a program that ends is started again in a new process."""

    def __init__(
        self,
        loop: SimulationLoop,
        network: Network,
        name: str,
        host: str,
        program: Callable[["Machine"], Coroutine[Any, Any, int]],
        tell: Callable[..., None],
    ) -> None:
        """Take the program: a function that builds it in its process and runs it to its exit code.

        ``tell`` notes what happens in the history.
        """
        self.name, self.host = name, host
        self.clock = MachineClock(loop)
        self.starts = 0
        """How often the program was started."""
        self.process = Process(name, host)
        self.running: Any = None
        """What the program has put there for invariants: a daemon, a manager."""
        self.wanted = False
        """Whether the program is to be started again when it ends."""
        self.token_source_hangs = 0
        """How many faults keep the program from getting another token."""
        self.failures: list[BaseException] = []
        """What ended the program although nobody asked it to; each is a bug."""
        self.ends: list[tuple[Any, int]] = []
        """Every program that has ended, with its exit code, except those that were asked twice (a second SIGTERM)."""
        self._loop = loop
        self._network = network
        self._program = program
        self._tell = tell
        self.shutdown: Shutdown | None = None
        """By which the program is asked to end in order, as by SIGTERM."""
        self.former: list[Process] = []
        """Processes that are being replaced, and end in order beside the present one."""
        self._task: asyncio.Task[int] | None = None

    @property
    def alive(self) -> bool:
        """Whether the program runs or is paused."""
        return self._task is not None and self.process.state is not State.DEAD

    def start(self) -> None:
        """Start the program in a new process."""
        self.wanted = True
        self.starts += 1
        self.shutdown = None
        self.process = process = Process(self.name, self.host)
        self._tell("start", self.name)
        with process.entered():
            self._task = task = self._loop.create_task(self._program(self), name=self.name)
        task.add_done_callback(self._ended)

    def terminate(self) -> bool:
        """Ask the program to end in order (SIGTERM); it is started again after its end. False: it cannot be asked."""
        if not self.alive or self.shutdown is None:
            return False
        self._tell("terminate", self.name)
        self.shutdown.request("SIGTERM")
        return True

    def replace(self, overlap_s: float) -> bool:
        """Start a second process of the program, and ask the first one to end after a while: a rolling update."""
        if not self.alive or self.shutdown is None:
            return False
        process, task, shutdown = self.process, self._task, self.shutdown
        assert task is not None
        self.former.append(process)
        task.add_done_callback(lambda task: self._gone(process, task))
        self.start()
        self._loop.call_later(overlap_s, shutdown.request, "SIGTERM")
        self._loop.call_later(overlap_s + PATIENCE_S, self._gone, process, None)
        return True

    def _gone(self, process: Process, task: asyncio.Task[int] | None) -> None:
        """The process that was replaced has ended, or has not done so for too long."""
        if process.state is State.DEAD:
            return
        if task is not None and not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)
        self._tell("ended", self.name, "the former process")
        process.die()
        self._network.vanish(process, silently=False)

    def kill(self, *, silently: bool = False) -> None:
        """End the process as SIGKILL does, or with its whole machine; it is started again later by `start`."""
        for process in self.former:
            process.die()
            self._network.vanish(process, silently=silently)
        if not self.alive:
            return
        self._tell("kill", self.name, "with its machine" if silently else "")
        self.wanted = False
        self.process.die()
        self._network.vanish(self.process, silently=silently)
        self._task = None

    def pause(self) -> None:
        """Stop the process, as SIGSTOP does."""
        if self.process.state is State.RUNS:
            self._tell("pause", self.name)
            self.process.pause()

    def resume(self) -> None:
        """Let the process go on."""
        if self.process.state is State.PAUSED:
            self._tell("resume", self.name)
            self._loop.go_on(self.process)

    def _ended(self, task: asyncio.Task[int]) -> None:
        """The program has ended by itself: note why, and start it again."""
        if task is not self._task:
            return
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)
            self._tell("failed", self.name, repr(error))
        else:
            self._tell("ended", self.name, "" if task.cancelled() else str(task.result()))
            if self.shutdown is None or not self.shutdown.force.is_set():
                self.ends.append((self.running, -1 if task.cancelled() else task.result()))
        self.process.die()
        self._network.vanish(self.process, silently=False)
        if self.wanted:
            self._loop.call_later(RESTART_S, self._again)

    def _again(self) -> None:
        if self.wanted and not self.alive:
            self.start()
