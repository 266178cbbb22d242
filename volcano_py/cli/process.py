"""The outer part of every process: log, event loop, signals and exit codes.

:mod:`volcano_py.process` has the inner part: start, lease, probes, drain, end.
"""

import argparse
import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

import prometheus_client
import structlog
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from volcano_py.cli.volcano_flags import IgnoredFlag, in_one_line
from volcano_py.kube.credentials import Credentials, CredentialsError, load_credentials
from volcano_py.runtime.http import AddressInUse
from volcano_py.runtime.logs import configure_logging
from volcano_py.runtime.loop import loop_factory
from volcano_py.runtime.signals import Shutdown, shutdown_on_signals
from volcano_py.runtime.supervisor import Foreseen, TaskFailed

log = structlog.get_logger()

_THREADS_END_S: Final = 1.0
MISUSED: Final = 2
"""Exit code of a process that cannot start with its flags; argparse uses the same."""


class Process(Protocol):
    """A process that is built but not started."""

    async def run(self, shutdown: Shutdown) -> int:
        """Work until asked to end; return 0 after an orderly end, 1 if the end was forced or the lease was lost."""


def begin(flags: argparse.Namespace, ignored: Iterable[IgnoredFlag]) -> None:
    """Set up the log, and warn in one line of all flags that have no effect here."""
    configure_logging(flags.log_level, flags.log_format)
    if listed := in_one_line(ignored):
        log.warning("these flags have no meaning here: remove them; docs/flags.md says why", flags=listed)
    # A creation time for each series is useless and doubles the output.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations


def _nothing_to_read() -> None:
    log.info("SIGHUP changes nothing here: files are read again when they change, and flags only at the start")


def run(
    flags: argparse.Namespace,
    make: Callable[[Credentials], Process],
    on_hangup: Callable[[], None] = _nothing_to_read,
) -> int:
    """Load the credentials, run the process that ``make`` returns, and return its exit code.

    SIGHUP calls ``on_hangup``, which may be before the process is made.
    After a disorderly end, or if a busy thread would keep the process alive, this function exits instead of returning.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            code, at_once = runner.run(_live(flags, make, on_hangup))
        except Exception:
            log.exception("the process ends because of a bug")
            code, at_once = 1, True
        if not at_once and (busy := _still_busy()):
            log.warning("threads are still busy: the process ends without them", threads=busy)
            at_once = True
        if at_once:
            sys.stderr.flush()
            os._exit(code)
    return code


def _still_busy() -> list[str]:
    """Return the names of threads that are still alive after a short wait."""
    deadline = time.monotonic() + _THREADS_END_S
    left = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    for thread in left:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread.name for thread in left if thread.is_alive()]


def process_registry() -> CollectorRegistry:
    """Return a registry with the metrics that Prometheus expects of every process."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector):
        collector(registry=registry)
    return registry


async def _live(
    flags: argparse.Namespace, make: Callable[[Credentials], Process], on_hangup: Callable[[], None]
) -> tuple[int, bool]:
    """Return the exit code, and whether to exit at once: the end was forced, or the lease was lost."""
    shutdown = Shutdown()
    threads = ThreadPoolExecutor(thread_name_prefix="aside")  # for asyncio.to_thread
    asyncio.get_running_loop().set_default_executor(threads)
    with shutdown_on_signals(shutdown, on_hangup=on_hangup):
        try:
            credentials = await load_credentials(server=flags.master or None, kubeconfig=flags.kubeconfig or None)
            code = await make(credentials).run(shutdown)
        except (CredentialsError, AddressInUse, OSError) as error:
            log.error("the process cannot start", problem=str(error))
            return MISUSED, False
        except TaskFailed as error:
            if isinstance(error.__cause__, Foreseen):
                log.error("the process cannot start", problem=str(error.__cause__))
                return MISUSED, False
            log.error("the process ends because a part of it failed", problem=str(error))
            return 1, False
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
    return code, code != 0
