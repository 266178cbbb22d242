"""The scheduler daemon inside a local system, on the same event loop as everything else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from volcano_py.conf.loader import parse_conf
from volcano_py.daemon.configuration import Configuration
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DaemonOptions
from volcano_py.kube.credentials import Credentials
from volcano_py.local.running import running
from volcano_py.runtime.signals import Shutdown
from volcano_py.scheduler import Policy, resolve

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
_WITH_GANG, _WITHOUT_GANG = "  - name: gang\n", ""
NO_GANG_CONF: Final = GANG_CONF.replace(_WITH_GANG, _WITHOUT_GANG)
DEMO_CONF: Final = GANG_CONF.replace("  - name: predicates\n", "  - name: drf\n  - name: predicates\n")
"""Jobs get equal shares (drf), as in Volcano's built-in policy: without the gang plugin, every job gets a part."""


def make_scheduler(url: str, policy: Policy, configuration: Configuration | None = None) -> SchedulerDaemon:
    """Return a scheduler for the API server at ``url``, without ports of its own.

    ``configuration`` is the source of the policy and may replace it.
    """
    options = DaemonOptions(metrics_address=None, health_address=None)
    return SchedulerDaemon(Credentials(url), policy, options, configuration=configuration)


@asynccontextmanager
async def local_scheduler(url: str, gang: bool = True) -> AsyncIterator[SchedulerDaemon]:
    """Run the demo's scheduler on the API server at ``url`` until the block ends; it is ready when the block begins."""
    conf = DEMO_CONF if gang else DEMO_CONF.replace(_WITH_GANG, _WITHOUT_GANG)
    policy = resolve(parse_conf(conf, "(demo)"))
    daemon = make_scheduler(url, policy)
    async with running("scheduler", daemon, Shutdown()):
        yield daemon
