"""The bare binders: processes that know every node beforehand and send nothing but Bindings.

They watch, decide and store nothing. There are two:

- ``plain`` is a client that anyone would write in Python: one aiohttp session, 32 requests in flight. The limits of the
  benchmarks refer to it, as do the published numbers.
- ``fast`` uses the scheduler's own client, with as many requests in flight. Its rate is the limit of client and server:
  what the scheduler loses to it is the price of watching, deciding and storing.

python -m benchmarks.bare KUBECONFIG BINDS plain|fast    BINDS: a JSON list of [namespace, name, uid, node]
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from volcano_py.effects.binding import binding_body
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.kube.resource import PODS
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.loop import loop_factory
from volcano_py.writing.concurrency_limit import DEFAULT_HIGHEST

PLAIN: Final = "plain"
FAST: Final = "fast"
PLAIN_IN_FLIGHT: Final = 32
READY = b"ready\n"
_START_S = 60.0
_END_S = 20.0


@contextlib.asynccontextmanager
async def bare_binder(
    kubeconfig: Path, binds: list[tuple[str, str, str, str]], kind: str, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the process; it is ready when the block begins, and starts to bind at :func:`go`."""
    path = folder / "binds.json"
    path.write_bytes(msgspec.json.encode(binds))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.bare",
        str(kubeconfig),
        str(path),
        kind,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        if await asyncio.wait_for(process.stdout.readline(), _START_S) != READY:
            raise RuntimeError(f"the bare binder did not start: see its error above (python -m benchmarks.bare {path})")
        yield process
        assert process.stdin is not None
        process.stdin.close()
        if await asyncio.wait_for(process.wait(), _END_S):
            raise RuntimeError("the bare binder failed: see its error above")
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.wait_for(process.wait(), _END_S)


def go(process: asyncio.subprocess.Process) -> None:
    """Start the bare binder's work."""
    assert process.stdin is not None
    process.stdin.write(b"go\n")


async def _bind_fast(kubeconfig: str, binds: list[Bind]) -> None:
    credentials = await load_credentials(kubeconfig=kubeconfig)
    async with ApiClient(credentials, connections=DEFAULT_HIGHEST) as client:

        async def bind(one: Bind) -> None:
            await client.post_bytes(_path(one), binding_body(one))

        await _send(binds, bind, DEFAULT_HIGHEST)


async def _bind_plain(kubeconfig: str, binds: list[Bind]) -> None:
    credentials = await load_credentials(kubeconfig=kubeconfig)
    headers = {"Content-Type": "application/json"}
    if credentials.identity.authorization:
        headers["Authorization"] = credentials.identity.authorization
    connector = aiohttp.TCPConnector(limit=PLAIN_IN_FLIGHT, ssl=credentials.tls or True)
    async with aiohttp.ClientSession(credentials.server, connector=connector, headers=headers) as session:

        async def bind(one: Bind) -> None:
            async with session.post(_path(one), data=binding_body(one)) as answer:
                answer.raise_for_status()
                await answer.read()

        await _send(binds, bind, PLAIN_IN_FLIGHT)


def _path(bind: Bind) -> str:
    return PODS.item(bind.task.name, bind.task.namespace, "binding")


async def _send(binds: list[Bind], bind: Callable[[Bind], Awaitable[None]], in_flight: int) -> None:
    """Say that the process is ready, wait for the word, and send everything."""
    sys.stdout.buffer.write(READY)
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    todo = iter(binds)

    async def work() -> None:
        for one in todo:
            await bind(one)

    await asyncio.gather(*(work() for _ in range(in_flight)))
    await asyncio.to_thread(sys.stdin.readline)  # whoever measures reads first how much CPU this process has used


KINDS: Final = {PLAIN: _bind_plain, FAST: _bind_fast}


def main() -> int:
    """Send the Bindings named on the command line."""
    kubeconfig, path, kind = sys.argv[1:]
    places = msgspec.json.decode(Path(path).read_bytes(), type=list[tuple[str, str, str, str]])
    binds = [Bind(TaskRef(namespace, name, uid), node, JobKey(namespace, "")) for namespace, name, uid, node in places]
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(KINDS[kind](kubeconfig, binds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
