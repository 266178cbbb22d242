"""What every process is built on: a clock, metrics, the right to act, and a client that writes only with that right."""

import random
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from volcano_py.kube.client import DEFAULT_CONNECTIONS, ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.outage import Outage
from volcano_py.kube.transport import RequestObserver
from volcano_py.metrics.leader import LeaderMetrics
from volcano_py.metrics.requests import RequestMetrics
from volcano_py.process.leadership import Leadership
from volcano_py.runtime.clock import Clock, RealClock


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """One per process; every part of the process takes from it what it needs."""

    clock: Clock
    rng: random.Random
    """Spreads delays. Decisions have a seed of their own."""
    registry: CollectorRegistry
    leadership: Leadership
    client: ApiClient
    observer: RequestObserver
    """Counts requests to the API server."""

    @classmethod
    def build(
        cls,
        credentials: Credentials,
        *,
        user_agent: str,
        lease: LeaseOptions | None = None,
        connections: int = DEFAULT_CONNECTIONS,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        registry: CollectorRegistry | None = None,
    ) -> "ProcessContext":
        """Build the context of a process; without a ``lease`` it may always act. Nothing is opened yet."""
        clock, rng, registry = clock or RealClock(), rng or random.Random(), registry or CollectorRegistry()
        observer = RequestMetrics(registry).observe
        outage = Outage(credentials.server, clock)
        leadership = Leadership(
            credentials,
            lease,
            LeaderMetrics(registry),
            clock=clock,
            rng=rng,
            user_agent=user_agent,
            observer=observer,
            outage=outage,
        )
        client = ApiClient(
            credentials,
            connections=connections,
            user_agent=user_agent,
            observer=observer,
            obstacle=leadership.obstacle,
            outage=outage,
        )
        return cls(clock, rng, registry, leadership, client, observer)
