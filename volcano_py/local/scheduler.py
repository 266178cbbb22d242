"""The scheduler daemon inside a local system, on the same event loop as everything else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from volcano_py.conf.loader import parse_conf
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DaemonOptions
from volcano_py.kube.credentials import load_credentials
from volcano_py.runtime.signals import Shutdown
from volcano_py.scheduler import resolve

START_S: Final = 20.0
STOP_S: Final = 15.0

GANG_CONF: Final = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
  - name: binpack
"""
NO_GANG_CONF: Final = GANG_CONF.replace("  - name: gang\n", "")


@asynccontextmanager
async def local_scheduler(url: str, gang: bool = True) -> AsyncIterator[SchedulerDaemon]:
    """Run a scheduler on the API server at ``url`` until the block ends; it is ready when the block begins."""
    policy = resolve(parse_conf(GANG_CONF if gang else NO_GANG_CONF, "(demo)"))
    options = DaemonOptions(metrics_address=None, health_address=None)
    daemon = SchedulerDaemon(await load_credentials(server=url), policy, options)
    shutdown = Shutdown()
    running = asyncio.create_task(daemon.run(shutdown), name="scheduler")
    ready = asyncio.create_task(daemon.ready.wait(), name="scheduler-ready")
    try:
        await asyncio.wait({running, ready}, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running  # it ended before it was ready: let its reason out
        if not daemon.ready.is_set():
            raise TimeoutError(f"the scheduler was not ready after {START_S:.0f} s: {', '.join(daemon.not_ready())}")
        yield daemon
    finally:
        ready.cancel()
        shutdown.request("the local system ends")
        await asyncio.wait({running}, timeout=STOP_S)
        if not running.done():
            running.cancel()
        await asyncio.gather(running, ready, return_exceptions=True)
