"""`python -m volcano_py.apiserver`: the embedded API server in a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from volcano_py.apiserver.kubelet import InProcessPort, Kubelet, Stage, StageError, load_stages
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.server import ApiServer, PortInUse
from volcano_py.runtime.garbage import collect_in_small_steps
from volcano_py.runtime.loop import loop_factory
from volcano_py.runtime.options import OptionError, parse_port

log = logging.getLogger("volcano_py.apiserver")


def _port(text: str) -> int:
    try:
        return parse_port(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m volcano_py.apiserver", description="An embedded Kubernetes API server for tests and demos."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=8001, help="port to listen on; 0 takes a free one (default: %(default)s)"
    )
    parser.add_argument("--token", help="bearer token that every request must carry (default: none)")
    parser.add_argument("--history", type=int, default=16384, help="events kept per resource (default: %(default)s)")
    parser.add_argument("--node-lifecycle", action="store_true", help="taint nodes until they are Ready")
    parser.add_argument("--kubelet", action="store_true", help="let nodes become ready and pods run, by stages")
    parser.add_argument("--stages", type=Path, help="folder of stages for --kubelet (default: the built-in ones)")
    return parser.parse_args()


async def _serve(options: ApiServerOptions, stages: Sequence[Stage] | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with ApiServer(options) as server, contextlib.AsyncExitStack() as stack:
        if stages is not None:
            await stack.enter_async_context(Kubelet(InProcessPort(server.registry), stages))
        log.info("serving on %s", server.url)
        await stop.wait()
        log.info("stopping")


def main() -> int:
    """Run until SIGINT or SIGTERM; the exit code is 1 when the port is taken or a stage cannot be used."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    options = ApiServerOptions(
        host=arguments.host,
        port=arguments.port,
        token=arguments.token,
        history_limit=arguments.history,
        node_lifecycle=arguments.node_lifecycle,
    )
    collect_in_small_steps()
    try:
        stages = load_stages(arguments.stages) if arguments.kubelet else None
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(options, stages))
    except PortInUse as error:
        log.error("%s", error.strerror)
        return 1
    except StageError as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
