"""Elasticsearch with Metricbeat's documents: averages of host.cpu.usage and system.memory.actual.used.pct, 0 to 1."""

from collections.abc import Collection
from typing import Any, Final
from urllib.parse import quote

import msgspec

from volcano_py.api.nesting import decoded
from volcano_py.daemon.loads.source import PERIOD, Measured, Unmeasured
from volcano_py.runtime.fetch import Fetcher, FetchError

CPU: Final = "host.cpu.usage"
MEMORY: Final = "system.memory.actual.used.pct"


class _Average(msgspec.Struct):
    value: float | None = None  # null: no document has the field


class _Bucket(msgspec.Struct):
    key: str
    cpu: _Average = msgspec.field(default_factory=_Average)
    mem: _Average = msgspec.field(default_factory=_Average)


class _Buckets(msgspec.Struct):
    buckets: list[_Bucket] = []


class _Aggregations(msgspec.Struct):
    nodes: _Buckets = msgspec.field(default_factory=_Buckets)


class _Answer(msgspec.Struct):
    aggregations: _Aggregations = msgspec.field(default_factory=_Aggregations)


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class Elasticsearch:
    """A `LoadSource`; one query for all nodes, where Volcano sends one for each."""

    def __init__(self, fetcher: Fetcher, address: str, index: str, host_field: str) -> None:
        self._fetcher = fetcher
        self._url = f"{address}/{quote(index, safe='*,-')}/_search"
        self._host_field = host_field

    async def loads(self, nodes: Collection[str]) -> dict[str, Measured]:
        """Ask for cpu and memory of these nodes."""
        if not nodes:
            return {}
        try:
            answer = decoded(_ANSWER.decode, await self._fetcher.post(self._url, self._question(sorted(nodes))))
        except FetchError as error:
            raise Unmeasured(f"Elasticsearch: {error}") from error
        except msgspec.MsgspecError as error:
            raise Unmeasured(f"Elasticsearch at {self._url}: the answer is not that of a search: {error}") from error
        return {
            bucket.key: Measured(bucket.cpu.value * 100.0, bucket.mem.value * 100.0)
            for bucket in answer.aggregations.nodes.buckets
            if bucket.cpu.value is not None and bucket.mem.value is not None
        }

    def _question(self, nodes: list[str]) -> dict[str, Any]:
        recent = {"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}}
        return {
            "size": 0,
            "query": {"bool": {"must": [recent, {"terms": {self._host_field: nodes}}]}},
            "aggs": {
                "nodes": {
                    "terms": {"field": self._host_field, "size": len(nodes)},
                    "aggs": {"cpu": {"avg": {"field": CPU}}, "mem": {"avg": {"field": MEMORY}}},
                }
            },
        }
