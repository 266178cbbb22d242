"""The custom metrics API of the cluster (Prometheus adapter): node_cpu_usage_avg and node_memory_usage_avg, 0 to 1."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Final

import msgspec

from volcano_py.api.nesting import decoded
from volcano_py.api.quantity import QuantityError, WireQuantity, parse_quantity
from volcano_py.daemon.loads.source import TIMEOUT_S, Measured, Unmeasured
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient

GROUP: Final = "custom.metrics.k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
CPU: Final = "node_cpu_usage_avg"
MEMORY: Final = "node_memory_usage_avg"


class _Described(msgspec.Struct):
    name: str = ""


class _Value(msgspec.Struct, rename="camel"):
    described_object: _Described = msgspec.field(default_factory=_Described)
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None  # without a zone it may be no moment at all
    value: WireQuantity = "0"


class _Values(msgspec.Struct):
    items: list[_Value] = []


_VALUES: Final = msgspec.json.Decoder(_Values)
_Found = dict[str, tuple[float, float | None]]


class CustomMetrics:
    """A `LoadSource`; the load of a node is as old as the older of its two numbers."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def loads(self, nodes: Collection[str]) -> dict[str, Measured]:
        """Ask for cpu and memory of all nodes."""
        cpu, memory = await self._ask(CPU), await self._ask(MEMORY)
        found: dict[str, Measured] = {}
        for name in nodes:
            if name in cpu and name in memory:
                (percent, at), (of_memory, then) = cpu[name], memory[name]
                found[name] = Measured(percent, of_memory, min((t for t in (at, then) if t is not None), default=None))
        return found

    async def _ask(self, metric: str) -> _Found:
        answer = await self._read(metric)
        try:
            return {
                value.described_object.name: (
                    float(parse_quantity(value.value)) * 100.0,
                    None if value.timestamp is None else value.timestamp.timestamp(),
                )
                for value in decoded(_VALUES.decode, answer).items
            }
        except (msgspec.MsgspecError, QuantityError) as error:
            raise Unmeasured(f"custom metrics: {metric}: {error}") from error

    async def _read(self, metric: str) -> bytes:
        for version in VERSIONS:
            try:
                return await self._client.get_bytes(f"/apis/{GROUP}/{version}/nodes/*/{metric}", timeout_s=TIMEOUT_S)
            except (errors.NotFound, errors.NotServed) as error:
                if version == VERSIONS[-1]:
                    raise Unmeasured(f"custom metrics: {metric} is not served: {error}") from error
            except errors.ApiError as error:
                raise Unmeasured(f"custom metrics: {metric}: {error}") from error
        raise AssertionError("there is no version to ask for")
