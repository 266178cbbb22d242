"""Whether this process may act: always, or as long as it holds the lease.

The lease has a client of its own, so that a renewal never waits behind binds. A lost lease is not taken again: the
process drops what it has decided, sends nothing more and ends. A new process starts from a fresh view of the cluster.
"""

import asyncio
import random

from volcano_py.api import keys
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.leader import LeaderElector
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.outage import Outage
from volcano_py.kube.transport import RequestObserver
from volcano_py.metrics.leader import LeaderMetrics
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.events import EventRecorder


class Leadership:
    """The right of a process to act; an asynchronous context manager."""

    def __init__(
        self,
        credentials: Credentials,
        lease: LeaseOptions | None,
        metrics: LeaderMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        user_agent: str,
        observer: RequestObserver,
        outage: Outage,
    ) -> None:
        self._lease = lease
        self._client = ApiClient(credentials, connections=2, user_agent=user_agent, observer=observer, outage=outage)
        self._elector = None if lease is None else LeaderElector(self._client, lease, clock=clock, rng=rng)
        self.lost = asyncio.Event()
        """Set when this process held the lease and does not hold it any more."""
        self.why_lost = ""
        metrics.watch(lambda: not self.obstacle())

    async def __aenter__(self) -> "Leadership":
        """Open the connections of the lease."""
        if self.contested:
            await self._client.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close them."""
        if self.contested:
            await self._client.__aexit__(*exc_info)

    @property
    def contested(self) -> bool:
        """Whether this process needs a lease to act."""
        return self._elector is not None

    def obstacle(self) -> str:
        """Return why this process must not write now, "" if it may; asked before every write."""
        if self._elector is None or self._elector.holds():
            return ""
        return self.why_lost or f"lease {self._lease} is not held by this process"

    async def won(self, supervisor: Supervisor) -> None:
        """Wait until this process may act; from then on the lease is renewed."""
        if self._elector is not None:
            await self._elector.acquire()
            supervisor.start("lease", self._keep(self._elector))

    async def lost_before(self, asked: asyncio.Event) -> bool:
        """Wait until the process is asked to end or the lease is lost; return False if it is asked."""
        waits = [
            asyncio.create_task(asked.wait(), name="asked to end"),
            asyncio.create_task(self.lost.wait(), name="lease lost"),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return not asked.is_set()

    def announce(self, events: EventRecorder) -> None:
        """Record an event on the lease: this process leads now."""
        if self._elector is not None and self._lease is not None:
            lease, elector = self._lease, self._elector
            text = f"{elector.identity} became leader"  # client-go's words
            who = ("Lease", lease.namespace, lease.name, elector.uid)
            events.record(RecordEvent(*who, keys.EVENT_NORMAL, "LeaderElection", text))

    async def give_up(self) -> None:
        """Release the lease, so that the next process begins at once; call it when no request of ours is under way."""
        if self._elector is not None and self._elector.holds():
            await self._elector.release()

    async def _keep(self, elector: LeaderElector) -> None:
        self.why_lost = await elector.renew()
        self.lost.set()
