"""What a process serves to operators over HTTP: metrics, health, readiness and its own pages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from volcano_py.metrics.exposition import exposition
from volcano_py.runtime.http import Exposition, OperatorServer, Reasons, Route
from volcano_py.runtime.options import ListenAddress


@dataclass(frozen=True, slots=True)
class OperatorPages:
    """The pages of a process and their addresses; None switches an address off.

    Every address serves `/healthz`, `/readyz` and the pages of the process; only the first one serves `/metrics`.
    """

    metrics_address: ListenAddress | None
    health_address: ListenAddress | None
    not_ready: Reasons
    not_healthy: Reasons = tuple
    exposition: Exposition = exposition
    routes: Mapping[str, Route] = field(default_factory=dict)
    remote_routes: bool = False
    """Whether the pages of the process also answer other machines."""
    metrics_flag: str = "--listen-address"
    """The flag that sets the address of metrics, for the message that it is in use."""

    def servers(self, registry: CollectorRegistry) -> Iterator[OperatorServer]:
        """Return one server per address; two equal addresses share one."""
        flags = {self.metrics_address: self.metrics_flag, self.health_address: "--healthz-address"}
        for address, flag in flags.items():
            if address is not None:
                yield OperatorServer(
                    address,
                    flag=flag,
                    not_healthy=self.not_healthy,
                    not_ready=self.not_ready,
                    registry=registry if address == self.metrics_address else None,
                    exposition=self.exposition,
                    routes=self.routes,
                    remote_routes=self.remote_routes,
                )
