"""Connections between the processes of a simulation: delays, silence, cuts and partitions.

Bytes of one direction of a connection arrive in their order, each piece after a drawn delay. A dead or cut connection
says so to the other end; a silent one (a machine that is gone, a partition, a balancer that has forgotten it) does not.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final

from tests.simulation.draws import Draws
from tests.simulation.loop import PROCESS, Process, SimulationLoop, State

FIRST_PORT: Final = 30000
_GIVES_UP_S: Final = 25.0
"""After which a kernel breaks a connection whose other end is silent (volcano_py.kube.sockets)."""
_TRIES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""How long a kernel waits for the answer to each attempt to connect, before it makes the next one or gives up."""


class _Socket:
    """What programs ask of a socket: its family and its addresses."""

    family = socket.AF_UNIX

    def __init__(self, host: str, port: int) -> None:
        self._name = (host, port)

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def setsockopt(self, *_: object) -> None:
        """Options of the kernel have no meaning here."""


class Listener:
    """A server that listens; what aiohttp and asyncio expect of one."""

    def __init__(self, network: "Network", process: Process, factory: Callable[[], Any], port: int) -> None:
        self._network = network
        self.process = process
        self.factory = factory
        self.port = port
        self.context = copy_context()
        self.sockets = [_Socket(process.host, port)]
        self.open = True

    def close(self) -> None:
        """Refuse further connections."""
        self.open = False
        self._network.forget(self)

    def is_serving(self) -> bool:
        """Say whether connections are accepted."""
        return self.open

    async def wait_closed(self) -> None:
        """Return at once: connections live on by themselves."""


class End(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: "Network", process: Process, name: str, draws: Draws) -> None:
        super().__init__({})
        self.process = process
        self.name = name
        self.peer: End
        self._network = network
        self._loop = network.loop
        self._draws = draws
        self._protocol: Any = None
        self._context: Context = copy_context()
        self._before: list[bytes] = []  # arrived before there was a protocol, or while reading is paused
        self._reading = True
        self._under_way: deque[tuple[float, Callable[..., None], tuple[object, ...]]] = deque()
        self._arrives_at = 0.0  # when the last piece that we sent arrives
        self._closing = False
        self._lost = False
        self._ended = False  # the other end sends nothing more
        self.received_sent_at = 0.0
        """When the piece that arrived last was sent."""
        self.received_at = 0.0
        """When it arrived."""
        self.silent = False
        """Nothing arrives at either end, and nobody is told."""
        self.watched = ""
        """The resource whose watch runs over this connection."""
        self._held: list[Any] | None = None  # what this end writes while it is stalled

    # Life

    def begin(self, protocol: Any, context: Context) -> None:
        """Give this end its protocol."""
        self._protocol, self._context = protocol, context
        protocol.connection_made(self)
        self._flush()

    def _flush(self) -> None:
        while self._before and self._reading and not self._lost:
            self._protocol.data_received(self._before.pop(0))
        if self._ended and self._reading and not self._before and not self._lost:
            self._end()

    def send(self, deliver: Callable[..., None], *args: object) -> None:
        """Let something happen at the other end, after all that was sent before."""
        delay = self._network.delay(self.process, self.peer.process, self._draws)
        at = max(self._loop.time() + delay, self._arrives_at)
        self._arrives_at = at
        self._under_way.append((self._loop.time(), deliver, args))
        self._loop.call_at(at, self._carry, context=self.peer._context)

    def _carry(self) -> None:
        """Let the next piece arrive: the order holds, also if the other end was paused or cut off meanwhile."""
        if not self._network.connected(self.process, self.peer.process):
            self._network.hold_back(self, self._carry)  # TCP sends it again
            return
        sent_at, deliver, args = self._under_way.popleft()
        if not self.silent and not self.peer.silent:
            self.peer.received_sent_at = sent_at
            self.peer.received_at = self._loop.time()
            deliver(*args)

    def arrive(self, data: bytes) -> None:
        """Take data from the other end."""
        if self._lost or self._closing:
            return
        if self._protocol is None or not self._reading or self._before:
            self._before.append(data)
        else:
            self._protocol.data_received(data)

    def other_ended(self) -> None:
        """The other end has closed."""
        self._ended = True
        if self._protocol is not None and self._reading and not self._before:
            self._end()

    def _end(self) -> None:
        if not self._lost and not self._closing and not self._protocol.eof_received():
            self.close()

    def break_off(self, error: Exception | None) -> None:
        """Lose the connection at this end."""
        if not self._lost:
            self._closing = self._lost = True
            self._network.drop(self)
            if self._protocol is not None:
                self._protocol.connection_lost(error)

    # What protocols call

    def write(self, data: Any) -> None:
        """Send bytes."""
        if self._held is not None:
            self._held.append(data)
        elif not self._closing and data:
            self.send(self.peer.arrive, self._network.carried(self, bytes(data)))

    def stall(self) -> None:
        """Send nothing for a while; the connection stays open."""
        if self._held is None:
            self._held = []

    def flow(self) -> None:
        """Send what has been kept, and go on."""
        held, self._held = self._held or [], None
        for data in held:
            self.write(data)

    def writelines(self, list_of_data: Any) -> None:
        """Send bytes in one piece."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """Close after all that was sent."""
        if not self._closing:
            self._closing = True
            self.send(self.peer.other_ended)
            self._loop.call_soon(self.break_off, None, context=self._context)

    def abort(self) -> None:
        """Close at once."""
        if not self._lost:
            self._closing = True
            self.send(self.peer.break_off, ConnectionResetError("Connection reset by peer"))
            self._loop.call_soon(self.break_off, None, context=self._context)

    def is_closing(self) -> bool:
        """Say whether nothing can be sent any more."""
        return self._closing

    def pause_reading(self) -> None:
        """Keep what arrives."""
        self._reading = False

    def resume_reading(self) -> None:
        """Pass on what has arrived meanwhile."""
        if not self._reading:
            self._reading = True
            self._loop.call_soon(self._flush, context=self._context)

    def is_reading(self) -> bool:
        """Say whether what arrives is passed on."""
        return self._reading

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the addresses."""
        if name == "peername":
            return (self.peer.process.host, FIRST_PORT)
        if name == "socket":
            return _Socket(self.process.host, FIRST_PORT)
        if name == "sockname":
            return (self.process.host, FIRST_PORT)
        return default

    def set_protocol(self, protocol: Any) -> None:
        """Take another protocol."""
        self._protocol = protocol

    def get_protocol(self) -> Any:
        """Return the protocol."""
        return self._protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Buffers have no limits here."""

    def get_write_buffer_size(self) -> int:
        """Everything is sent at once."""
        return 0

    def can_write_eof(self) -> bool:
        """Half-closed connections are not simulated."""
        return False


class Network:
    """All connections and listeners; who reaches whom, and how fast."""

    def __init__(self, loop: SimulationLoop, seed: int) -> None:
        self.loop = loop
        self._seed = seed
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._ends: dict[Process, dict[End, None]] = {}
        self._count: dict[tuple[str, str], int] = {}
        self._cut: dict[frozenset[str], int] = {}
        self._since: dict[frozenset[str], float] = {}
        self._held: dict[frozenset[str], list[tuple[End, Callable[[], None]]]] = {}
        self._slow: dict[str, float] = {}
        self._next_port = FIRST_PORT
        self.balancers: dict[str, tuple[str, ...]] = {}
        """Addresses that stand for several others; each connection gets one that listens."""
        self.on_dial: list[Callable[[Process], None]] = []
        """Told of every process that begins to open a connection."""
        self.tampers: list[Callable[[End, bytes], bytes]] = []
        """Asked about every piece that is sent; may return another."""

    # Who reaches whom

    def connected(self, one: Process, other: Process) -> bool:
        """Say whether packets pass between two processes."""
        return not self._cut or not self._cut.get(frozenset((one.name, other.name)))

    def partition(self, one: str, other: str) -> None:
        """Let no packet pass between two processes; nobody is told, until the kernels give up."""
        pair = frozenset((one, other))
        self._cut[pair] = number = self._cut.get(pair, 0) + 1
        if number == 1:
            self._since[pair] = self.loop.time()
            self.loop.call_later(_GIVES_UP_S, self._give_up, pair, self.loop.time())

    def heal(self, one: str, other: str) -> None:
        """Let packets pass again; what was sent meanwhile arrives now."""
        pair = frozenset((one, other))
        self._cut[pair] -= 1
        if not self._cut[pair]:
            del self._cut[pair]
            for end, again in self._held.pop(pair, ()):
                self.loop.call_later(0.01, again, context=end.peer._context)

    def hold_back(self, end: "End", again: Callable[[], None]) -> None:
        """Keep what cannot pass now."""
        self._held.setdefault(frozenset((end.process.name, end.peer.process.name)), []).append((end, again))

    def _give_up(self, pair: frozenset[str], since: float) -> None:
        """Break the connections over which nothing has passed for too long (keep-alive)."""
        if not self._cut.get(pair) or self._since[pair] != since:
            return
        for end in [end for ends in self._ends.values() for end in ends]:
            if pair == {end.process.name, end.peer.process.name}:
                error = TimeoutError(110, "Connection timed out")
                self.loop.call_soon(end.break_off, error, context=end._context)

    def slow_down(self, process: str, seconds: float) -> None:
        """Add seconds to every piece from and to a process; 0 ends it."""
        self._slow[process] = seconds

    def slow(self, process: str) -> bool:
        """Say whether pieces from and to a process take longer now."""
        return self._slow.get(process, 0.0) > 0.0

    def delay(self, one: Process, other: Process, draws: Draws) -> float:
        """Return how long a piece travels: 0.1 to 2 ms, now and then 20 times as long."""
        drawn = draws.fraction()
        seconds = 0.0001 + 0.0019 * drawn if drawn < 0.97 else 0.04 * (drawn - 0.96) / 0.04
        if self._slow:
            seconds += max(self._slow.get(one.name, 0.0), self._slow.get(other.name, 0.0))
        return seconds

    def carried(self, end: End, data: bytes) -> bytes:
        """Return a piece as it arrives."""
        for tamper in self.tampers:
            try:
                data = tamper(end, data)
            except Exception as error:
                self.loop.blame(error)
                raise
        return data

    # Connections

    async def connect(self, process: Process, host: str, port: int) -> End:
        """Dial; raises ConnectionRefusedError, or TimeoutError when nobody answers for long."""
        number = self._count[process.name, host] = self._count.get((process.name, host), 0) + 1
        draws = Draws(self._seed, f"{process.name}->{host}#{number}")
        for told in tuple(self.on_dial):
            told(process)
        host = self._balanced(host, port, draws)
        listener = self._listeners.get((host, port))
        there = None if listener is None else listener.process
        await asyncio.sleep(2 * self.delay(process, there or process, draws))
        tries = iter(_TRIES_S)
        while there is not None and (there.state is State.PAUSED or not self.connected(process, there)):
            wait_s = next(tries, None)
            if wait_s is None:
                raise TimeoutError(f"connect to {host}:{port}: no answer")
            await asyncio.sleep(wait_s)
        listener = self._listeners.get((host, port))
        if listener is None or not listener.open or listener.process.state is State.DEAD:
            raise ConnectionRefusedError(111, f"Connect call failed ('{host}', {port})")
        name = f"{process.name}->{listener.process.name}#{number}"
        ours = End(self, process, name, draws)
        theirs = End(self, listener.process, name, Draws(self._seed, f"{name} back"))
        ours.peer, theirs.peer = theirs, ours
        for end in (ours, theirs):
            self._ends.setdefault(end.process, {})[end] = None
        theirs._context = listener.context
        self.loop.call_soon(self._accept, listener, theirs, context=listener.context)
        return ours

    def _balanced(self, host: str, port: int, draws: Draws) -> str:
        behind = self.balancers.get(host)
        if behind is None:
            return host
        serving = [each for each in behind if (each, port) in self._listeners]
        return draws.one_of(serving or behind)

    def _accept(self, listener: Listener, end: End) -> None:
        if listener.open:
            end.begin(listener.factory(), listener.context)
        else:
            end.abort()

    def attach(self, dialled: End, protocol: Any) -> asyncio.Transport:
        """Give our end of a dialled connection its protocol."""
        dialled.begin(protocol, copy_context())
        return dialled

    def listen(self, process: Process, factory: Callable[[], Any], host: str, port: int) -> Listener:
        """Accept connections at the address of a process; raises OSError if the port is taken."""
        if not port:
            port, self._next_port = self._next_port, self._next_port + 1
        if (process.host, port) in self._listeners:
            raise OSError(98, f"error while attempting to bind on address ('{process.host}', {port}): in use")
        listener = self._listeners[process.host, port] = Listener(self, process, factory, port)
        return listener

    def forget(self, listener: Listener) -> None:
        """Free the address of a listener."""
        self._listeners.pop((listener.process.host, listener.port), None)

    def drop(self, end: End) -> None:
        """Forget a connection that is lost."""
        self.ends(end.process).pop(end, None)

    def ends(self, process: Process) -> dict[End, None]:
        """Return the open connections of a process, in the order in which they were opened."""
        return self._ends.get(process, {})

    def vanish(self, process: Process, *, silently: bool) -> None:
        """Take a killed process off the network; its kernel closes its connections, unless the machine is gone, too."""
        for key, listener in list(self._listeners.items()):
            if listener.process is process:
                listener.open = False
                del self._listeners[key]
        for end in self._ends.pop(process, {}):
            if silently:
                end.silent = end.peer.silent = True
            else:
                end.send(end.peer.break_off, ConnectionResetError("Connection reset by peer"))


def current() -> Process:
    """Return the process that runs now."""
    return PROCESS.get()
