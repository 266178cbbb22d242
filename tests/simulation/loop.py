"""The event loop of a simulation: virtual time, virtual connections, and processes that can be stopped and killed.

Every callback belongs to the process in whose context it was made. Callbacks of a killed process are dropped, those of
a paused one wait until it goes on. All others run first in, first out, as asyncio promises. When nothing is ready, time
jumps to the next timer.
"""

import asyncio
import selectors
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Protocol

MOST_ROUNDS: Final = 3_000_000
"""After so many rounds of the loop a run counts as one that never comes to an end."""
ROUND_S: Final = 1e-6
"""How long each round of the loop lasts. Without it, who waits for a rounded time would wait at one moment for ever."""
_TIDY_EVERY: Final = 512
_MOST_CLOSES: Final = 20
"""How often a coroutine may wait for something in its `finally` blocks."""


class HarnessError(Exception):
    """A fault, an invariant or another part of the simulation itself is broken."""


class Endless(Exception):
    """The system is busy for ever at one moment, or nothing will ever happen again."""


class State(Enum):
    """Whether callbacks of a process run."""

    RUNS = auto()
    PAUSED = auto()
    DEAD = auto()


_RUNS: Final = State.RUNS


class Process:
    """What runs on one machine: a name, an address, and all that was started in its context."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.state = State.RUNS
        self.errors: list[Mapping[str, Any]] = []
        """What asyncio would have logged: exceptions that nobody has read."""
        self._waiting: list[_Handle] = []

    def __repr__(self) -> str:
        return f"Process({self.name!r})"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let what is started in this block belong to the process."""
        token = PROCESS.set(self)
        try:
            yield
        finally:
            PROCESS.reset(token)

    def hold(self, handle: "_Handle") -> None:
        """Keep a callback until a paused process goes on; a dead one never does."""
        if self.state is State.PAUSED:
            self._waiting.append(handle)

    def pause(self) -> None:
        """Run nothing of this process, as SIGSTOP does."""
        if self.state is State.RUNS:
            self.state = State.PAUSED

    def resume(self) -> "list[_Handle]":
        """Go on; the caller runs what has waited meanwhile, in its order."""
        waiting, self._waiting = self._waiting, []
        if self.state is State.PAUSED:
            self.state = State.RUNS
        return waiting if self.state is State.RUNS else []

    def die(self) -> None:
        """Run nothing of this process ever again, not even a `finally`."""
        self.state = State.DEAD
        self._waiting.clear()


OUTSIDE: Final = Process("outside", "10.0.0.1")
"""What drives the simulation; it is never paused or killed."""
PROCESS: ContextVar[Process] = ContextVar("process", default=OUTSIDE)


class _Handle:
    """A callback that waits for its turn, or for its time; what asyncio expects of a handle, and no more."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_when")

    def __init__(self, callback: Any, args: tuple[Any, ...], context: Context, when: float = 0.0) -> None:
        self._callback, self._args, self._context, self._when = callback, args, context, when
        self._cancelled = False

    def cancel(self) -> None:
        """Do not call."""
        self._cancelled = True
        self._callback = None
        self._args = ()

    def cancelled(self) -> bool:
        """Say whether it was cancelled."""
        return self._cancelled

    def when(self) -> float:
        """Return the virtual time of a timer."""
        return self._when


class Dialling(Protocol):
    """The network, as the loop sees it."""

    async def connect(self, process: Process, host: str, port: int) -> Any:
        """Return a dialled connection without a protocol; raises OSError."""

    def attach(self, dialled: Any, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Give our end of a dialled connection its protocol."""

    def listen(self, process: Process, factory: Callable[[], Any], host: str, port: int) -> Any:
        """Accept connections at an address."""


class _Selector(selectors.SelectSelector):
    """Nothing is ever readable."""

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return at once."""
        return []


class SimulationLoop(asyncio.SelectorEventLoop):
    """Runs the whole system in one thread on a virtual clock."""

    def __init__(self, thread_delay: Callable[[Process, bool], float]) -> None:
        """Take what draws a delay of work in a thread: for a process, and whether the work is a cycle."""
        super().__init__(_Selector())
        self.now = 0.0
        """The virtual time in seconds."""
        self.rounds = 0
        """How many rounds the loop has made."""
        self.get_debug = bool  # type: ignore[method-assign]  # False, and faster than a method of Python
        self._queue: deque[_Handle] = deque()
        self._heap: list[tuple[float, int, _Handle]] = []
        self.network: Dialling | None = None
        self._thread_delay = thread_delay
        self._dialled: dict[socket.socket, Any] = {}
        self._from_thread: list[tuple[Callable[..., object], tuple[Any, ...], Context]] | None = None
        self._timers = count()
        self._tasks: list[tuple[asyncio.Task[Any], Context]] = []
        self.broken: Exception | None = None
        """The first exception of a fault or an invariant; who calls them may have swallowed it."""
        self.set_exception_handler(self._note_error)

    def _asyncgen_firstiter_hook(self, agen: Any) -> None:
        """Keep no list of asynchronous generators: nobody shuts them down, and the list costs a weak reference each."""

    # Time and callbacks

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.now

    def _make_self_pipe(self) -> None:
        """Nothing wakes this loop from outside."""

    def _close_self_pipe(self) -> None:
        """There is none."""

    def _write_to_self(self) -> None:
        """Nothing sleeps."""

    def _run_once(self) -> None:
        """Make rounds until the loop is stopped: what is ready now runs, then what has become ready meanwhile."""
        queue, heap, outside, of_context = self._queue, self._heap, OUTSIDE, PROCESS
        while True:
            now = self.now + ROUND_S
            if queue and self.rounds < MOST_ROUNDS and not (heap and heap[0][0] <= now):
                self.rounds += 1  # what _turn_clock would do now: three rounds of four have no timer
                self.now = now
            else:
                self._turn_clock()
            for _ in range(len(queue)):
                handle = queue.popleft()
                if handle._cancelled:
                    continue
                context = handle._context
                process = context.get(of_context, outside)
                if process.state is not _RUNS:
                    process.hold(handle)
                    continue
                try:
                    context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - as asyncio does
                    name = getattr(handle._callback, "__qualname__", "callback")
                    process.errors.append({"message": f"exception in {name}", "exception": error})
            if self._stopping:  # type: ignore[attr-defined]
                return

    def _turn_clock(self) -> None:
        """Begin a round: time goes on, to the next timer if nothing is ready, and timers that are due are ready."""
        queue, heap = self._queue, self._heap
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            raise Endless("too many rounds of the event loop")
        now = self.now + ROUND_S
        while heap and heap[0][2]._cancelled:
            heappop(heap)
        if not queue and not self._stopping:  # type: ignore[attr-defined]
            if not heap:
                raise Endless("nothing is left to happen: everything waits for ever")
            now = max(now, heap[0][0])
        self.now = now
        while heap and heap[0][0] <= now:
            queue.append(heappop(heap)[2])

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call in the next round."""
        handle = _Handle(callback, args, copy_context() if context is None else context)
        self._queue.append(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call at a virtual time; calls for one moment are made in the order in which they were asked for."""
        handle = _Handle(callback, args, copy_context() if context is None else context, when)
        heappush(self._heap, (when, next(self._timers), handle))
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call after a virtual time."""
        handle = _Handle(callback, args, copy_context() if context is None else context, when := self.now + delay)
        heappush(self._heap, (when, next(self._timers), handle))
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call soon; out of work in a thread: when that work comes to this point in virtual time."""
        if self._from_thread is not None:
            self._from_thread.append((callback, args, context or copy_context()))
            return None
        return self.call_soon(callback, *args, context=context)

    def go_on(self, process: Process) -> None:
        """Let a paused process run again."""
        self._queue.extend(process.resume())

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        """Make a task and keep it: when one of a killed process is collected, its `finally` blocks run."""
        context = copy_context() if context is None else context
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        tasks = self._tasks
        tasks.append((task, context))
        if len(tasks) % _TIDY_EVERY == 0:
            self._tasks = [each for each in tasks if not each[0].done()]
        return task

    def tasks_of(self, process: Process) -> Counter[str]:
        """Return how many tasks of a process have not ended, by name; those without a name by their coroutine."""
        alive = (task for task, context in self._tasks if not task.done() and context.get(PROCESS) is process)
        return Counter(_named(task) for task in alive)

    def abandon(self) -> None:
        """End all that is left, and close; call it when nobody looks any more, because `finally` blocks run now."""
        self.set_exception_handler(lambda *_: None)
        self._end_tasks()
        self.close()

    def _end_tasks(self) -> None:
        for task, context in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            for _ in range(_MOST_CLOSES):
                try:
                    context.run(task.get_coro().close)  # type: ignore[union-attr]
                    break
                except BaseException:  # noqa: BLE001, S112 - whatever a program says when it is torn down
                    continue
        self._tasks.clear()
        self._queue.clear()
        self._heap.clear()
        for sock in self._dialled:
            sock.close()
        self._dialled.clear()

    def _note_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        PROCESS.get().errors.append(context)

    def blame(self, error: Exception) -> None:
        """Note that the simulation itself is broken."""
        self.broken = self.broken or error

    # Threads

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Run a function now, and let what it has done be seen later, as if it had run in a thread.

        What it hands over by :meth:`call_soon_threadsafe` arrives in its order while it "runs". This is the same as a
        thread only for functions that look at nothing that others change: cycles over their snapshots, and files.
        """
        process, cycle = PROCESS.get(), executor is not None
        done = self.create_future()
        self._from_thread = []
        problem: BaseException | None = None
        answer: Any = None
        try:
            answer = func(*args)
        except Exception as error:  # noqa: BLE001 - it belongs to who awaits the future
            problem = error
        handed_over, self._from_thread = self._from_thread, None
        at = self.time()
        for callback, arguments, context in handed_over:
            at += self._thread_delay(process, cycle)
            self.call_at(at, callback, *arguments, context=context)
        self.call_at(at + self._thread_delay(process, cycle), _settle, done, answer, problem)
        return done

    # Connections

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:  # type: ignore[override]
        """Every host is its own address."""
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(host), int(port or 0)))]

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Dial for a client that brings its own socket (aiohttp); the socket itself stays unused."""
        assert self.network is not None
        self._dialled[sock] = await self.network.connect(PROCESS.get(), str(address[0]), int(address[1]))

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        **_: Any,
    ) -> tuple[asyncio.Transport, Any]:
        """Connect to a listener of the network; TLS is left out."""
        assert self.network is not None
        if sock is not None:
            dialled = self._dialled.pop(sock)
            sock.close()
        else:
            dialled = await self.network.connect(PROCESS.get(), str(host), int(port or 0))
        protocol = protocol_factory()
        return self.network.attach(dialled, protocol), protocol

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: Any = None, port: int = 0, **_: Any
    ) -> Any:
        """Listen in the network, at the address of the process; TLS is left out."""
        assert self.network is not None
        return self.network.listen(PROCESS.get(), protocol_factory, str(host or ""), int(port or 0))


def _named(task: asyncio.Task[Any]) -> str:
    name = task.get_name()
    coroutine = task.get_coro()
    return str(getattr(coroutine, "__qualname__", coroutine)) if name.startswith("Task-") else name


def _settle(done: asyncio.Future[Any], answer: Any, problem: BaseException | None) -> None:
    if done.done():
        return
    if problem is not None:
        done.set_exception(problem)
    else:
        done.set_result(answer)
