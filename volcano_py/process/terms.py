"""Leadership of a process that works with and without it: it may win the lease again after it has lost it.

:mod:`volcano_py.process.leadership` ends a process whose lease is lost, because its decisions may be stale. A server
that answers requests goes on; only what the leader alone does ends with the lease and begins anew with the next term.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.leader import LeaderElector
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.outage import Outage
from volcano_py.kube.transport import RequestObserver
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()


class Terms:
    """The terms of one process as the leader; an asynchronous context manager."""

    def __init__(
        self,
        credentials: Credentials,
        lease: LeaseOptions | None,
        *,
        clock: Clock,
        rng: random.Random,
        user_agent: str,
        observer: RequestObserver,
        outage: Outage,
    ) -> None:
        """Prepare; without a ``lease``, one term lasts from the start to the end."""
        self._lease, self._clock, self._rng = lease, clock, rng
        self._elector: LeaderElector | None = None
        self._always = False
        self._outage = outage
        self._lease_client = ApiClient(
            credentials, connections=2, user_agent=user_agent, observer=observer, outage=outage
        )
        self.client = ApiClient(
            credentials,
            connections=4,
            user_agent=user_agent,
            observer=observer,
            obstacle=self.obstacle,
            outage=outage,
        )
        """Writes through it are sent only during a term."""

    async def __aenter__(self) -> "Terms":
        """Open the connections."""
        await self._lease_client.__aenter__()
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close them."""
        await self.client.__aexit__(*exc_info)
        await self._lease_client.__aexit__(*exc_info)

    @property
    def leads(self) -> bool:
        """Whether a term lasts now."""
        return not self.obstacle()

    def obstacle(self) -> str:
        """Return why this process must not write now, "" if it may."""
        if self._always or (self._elector is not None and self._elector.holds()):
            return ""
        return f"lease {self._lease} is not held by this process"

    async def run(self, term: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run a term until the lease is lost, and so on; a term that ends by itself is a bug."""
        if self._lease is None:
            self._always = True
            await term()
            return
        while True:
            elector = LeaderElector(self._lease_client, self._lease, clock=self._clock, rng=self._rng)
            await elector.acquire()
            self._elector = elector
            why = await self._one(elector, term)
            event = "the lease is lost; this process goes on without it"
            if not self._outage.withholds(event):
                log.warning(event, why=why)

    async def give_up(self) -> None:
        """Release the lease; call it when `run` has ended."""
        if self._elector is not None and self._elector.holds():
            await self._elector.release()

    async def _one(self, elector: LeaderElector, term: Callable[[], Awaitable[None]]) -> str:
        renewing = asyncio.create_task(elector.renew(), name="lease")
        working = asyncio.ensure_future(term())
        try:
            await asyncio.wait([renewing, working], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = working.done()
            for task in (renewing, working):
                if not task.done():
                    task.cancel()
            await asyncio.gather(renewing, working, return_exceptions=True)
        if ended:
            working.result()
            raise RuntimeError("the work of a leader has ended by itself")
        return renewing.result()
