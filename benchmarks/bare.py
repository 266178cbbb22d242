"""The bare binder: a process that knows every node beforehand and sends nothing but Bindings.

It equals the scheduler in everything else (a separate process, the same event loop, client and number of connections),
but watches, decides and stores nothing. Its rate is the limit of client and server.

python -m benchmarks.bare KUBECONFIG BINDS IN_FLIGHT    BINDS: a JSON list of [namespace, name, uid, node]
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from volcano_py.effects.binding import binding_body
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.kube.resource import PODS
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.loop import loop_factory

READY = b"ready\n"
_START_S = 60.0
_END_S = 20.0


@contextlib.asynccontextmanager
async def bare_binder(
    kubeconfig: Path, binds: list[tuple[str, str, str, str]], in_flight: int, folder: Path
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
        str(in_flight),
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


async def _bind(kubeconfig: str, binds: list[tuple[str, str, str, str]], in_flight: int) -> None:
    credentials = await load_credentials(kubeconfig=kubeconfig)
    async with ApiClient(credentials, connections=in_flight) as client:
        sys.stdout.buffer.write(READY)
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        todo = iter(binds)

        async def work() -> None:
            for namespace, name, uid, node in todo:
                bind = Bind(TaskRef(namespace, name, uid), node, JobKey(namespace, ""))
                await client.post_bytes(PODS.item(name, namespace, "binding"), binding_body(bind))

        await asyncio.gather(*(work() for _ in range(in_flight)))
        await asyncio.to_thread(sys.stdin.readline)  # whoever measures reads first how much CPU this process has used


def main() -> int:
    """Send the Bindings named on the command line."""
    kubeconfig, path, in_flight = sys.argv[1:]
    binds = msgspec.json.decode(Path(path).read_bytes(), type=list[tuple[str, str, str, str]])
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_bind(kubeconfig, binds, int(in_flight)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
