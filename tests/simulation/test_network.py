"""The network of a simulation: order, refusal, partitions, silence, cuts."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.simulation.loop import Process, SimulationLoop
from tests.simulation.network import End, Network

PORT = 6443
SEED = 11


class Heard(asyncio.Protocol):
    """Keeps what arrives, and when."""

    def __init__(self) -> None:
        self.data = b""
        self.at: list[float] = []
        self.lost: list[Exception | None] = []
        self.end: End

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, End)
        self.end = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.at.append(asyncio.get_running_loop().time())

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class Net:
    """A client, a server, and a network between them."""

    def __init__(self) -> None:
        self.loop = SimulationLoop(lambda _, __: 0.01)
        self.network = self.loop.network = Network(self.loop, SEED)
        self.client, self.server = Process("client", "10.0.0.2"), Process("server", "10.0.0.3")
        self.served: list[Heard] = []

    def run(self, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run what the client does."""
        with self.client.entered():
            task = self.loop.create_task(scenario())
        self.loop.run_until_complete(task)

    async def listen(self) -> None:
        """Let the server accept connections."""

        def accept() -> Heard:
            self.served.append(Heard())
            return self.served[-1]

        with self.server.entered():
            await self.loop.create_server(accept, self.server.host, PORT)

    async def connect(self) -> Heard:
        """Connect the client."""
        _, protocol = await self.loop.create_connection(Heard, self.server.host, PORT)
        await asyncio.sleep(1.0)
        return protocol


@pytest.fixture
def net() -> Iterator[Net]:
    made = Net()
    yield made
    made.loop.abandon()


def test_bytes_arrive_late_and_in_their_order(net: Net) -> None:
    """However long each piece travels, none overtakes another."""

    async def scenario() -> None:
        await net.listen()
        client = await net.connect()
        sent_at = net.loop.time()
        for number in range(200):
            client.end.write(b"%d," % number)
        await asyncio.sleep(5.0)
        assert net.served[0].data == b"".join(b"%d," % number for number in range(200))
        assert min(net.served[0].at) > sent_at

    net.run(scenario)


def test_nobody_listens(net: Net) -> None:
    """The connection is refused."""

    async def scenario() -> None:
        with pytest.raises(ConnectionRefusedError):
            await net.connect()

    net.run(scenario)


def test_a_partition_holds_back_what_is_sent(net: Net) -> None:
    """It arrives when the partition is over; nobody was told of it."""

    async def scenario() -> None:
        await net.listen()
        client = await net.connect()
        net.network.partition("client", "server")
        client.end.write(b"late")
        await asyncio.sleep(5.0)
        assert not net.served[0].data
        net.network.heal("client", "server")
        await asyncio.sleep(1.0)
        assert net.served[0].data == b"late"
        assert not client.lost
        assert not net.served[0].lost

    net.run(scenario)


def test_a_long_partition_breaks_connections(net: Net) -> None:
    """The kernels give up; a new connection gets no answer."""

    async def scenario() -> None:
        await net.listen()
        client = await net.connect()
        net.network.partition("client", "server")
        await asyncio.sleep(30.0)
        assert isinstance(client.lost[0], TimeoutError)
        with pytest.raises(TimeoutError):
            await net.connect()

    net.run(scenario)


def test_a_silent_connection_says_nothing(net: Net) -> None:
    """Neither end hears anything, not even that the other one closes."""

    async def scenario() -> None:
        await net.listen()
        client = await net.connect()
        client.end.silent = True
        client.end.write(b"lost")
        net.served[0].end.close()
        await asyncio.sleep(100.0)
        assert not net.served[0].data
        assert not client.lost

    net.run(scenario)


def test_the_kernel_of_a_killed_process_closes_its_connections(net: Net) -> None:
    """The other end is told, and the address is free."""

    async def scenario() -> None:
        await net.listen()
        client = await net.connect()
        net.server.die()
        net.network.vanish(net.server, silently=False)
        await asyncio.sleep(1.0)
        assert isinstance(client.lost[0], ConnectionResetError)
        with pytest.raises(ConnectionRefusedError):
            await net.connect()

    net.run(scenario)


def test_a_machine_that_is_gone_tells_nobody(net: Net) -> None:
    """Its connections are half-open."""

    async def scenario() -> None:
        await net.listen()
        client = await net.connect()
        net.server.die()
        net.network.vanish(net.server, silently=True)
        await asyncio.sleep(100.0)
        assert not client.lost

    net.run(scenario)


def test_a_balancer_takes_one_that_listens(net: Net) -> None:
    """An address that stands for several leads to those that are there."""

    async def scenario() -> None:
        net.network.balancers["10.0.0.100"] = ("10.0.0.99", net.server.host)
        await net.listen()
        for _ in range(5):
            await net.loop.create_connection(Heard, "10.0.0.100", PORT)
        await asyncio.sleep(1.0)
        assert len(net.served) == 5

    net.run(scenario)
