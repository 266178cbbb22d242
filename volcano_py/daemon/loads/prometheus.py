"""Prometheus with the series of the node exporter; label ``instance`` is the name of a node, with or without a port.

Volcano sends two queries for every node; two queries for all nodes give the same averages. If a node has no series or a
query fails, the last good load stays until it is too old. Volcano takes 0 % in that case.
"""

import math
from collections.abc import Collection
from typing import Final

import msgspec

from volcano_py.api.nesting import decoded
from volcano_py.daemon.loads.source import PERIOD, Measured, Unmeasured, joined
from volcano_py.runtime.fetch import Fetcher, FetchError

CPU: Final = (
    'avg by (instance) (avg_over_time((100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100))'
    f"[{PERIOD}:30s]))"
)
MEMORY: Final = (
    "avg by (instance) (100 * avg_over_time("
    f"((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes))[{PERIOD}:30s]))"
)


class _Series(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] = (0.0, "NaN")


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: list[_Series] = []


class _Answer(msgspec.Struct, rename="camel"):
    status: str = ""
    error: str = ""
    data: _Data = msgspec.field(default_factory=_Data)


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class Prometheus:
    """A `LoadSource`."""

    def __init__(self, fetcher: Fetcher, address: str) -> None:
        self._fetcher = fetcher
        self._url = f"{address}/api/v1/query"

    async def loads(self, nodes: Collection[str]) -> dict[str, Measured]:
        """Ask for cpu and memory of all nodes."""
        names = frozenset(nodes)
        return joined(await self._ask(CPU, names), await self._ask(MEMORY, names))

    async def _ask(self, query: str, nodes: frozenset[str]) -> dict[str, float]:
        try:
            answer = decoded(_ANSWER.decode, await self._fetcher.get(self._url, {"query": query}))
        except FetchError as error:
            raise Unmeasured(f"Prometheus: {error}") from error
        except msgspec.MsgspecError as error:
            raise Unmeasured(f"Prometheus at {self._url}: the answer is not that of a query: {error}") from error
        if answer.status != "success" or answer.data.result_type != "vector":
            what = answer.error or f"a {answer.data.result_type or 'nothing'} instead of a vector"
            raise Unmeasured(f"Prometheus at {self._url}: {what}")
        found: dict[str, float] = {}
        for series in answer.data.result:
            name = _node_of(series.metric.get("instance", ""), nodes)
            percent = _number(series.value[1])
            if name and percent is not None:
                found.setdefault(name, max(percent, 0.0))
        return found


def _node_of(instance: str, nodes: frozenset[str]) -> str:
    """Return the node that an instance is, "" for none of them."""
    if instance in nodes:
        return instance
    host = instance.rpartition(":")[0]
    return host if host in nodes else ""


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
