"""Asks for the loads of all nodes; a node without an answer keeps its last good load, which grows old."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final

import structlog

from volcano_py.daemon.loads.source import LoadSource, Unmeasured
from volcano_py.metrics.loads import LoadMetrics
from volcano_py.model.loads import NodeLoad
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

ROUND_S: Final = 60.0
"""Longest time for the loads of all nodes (Volcano)."""
_NAMED: Final = 5

Take = Callable[[Mapping[str, NodeLoad], float], None]


class LoadPoller:
    """Asks one source for all loads, one request at a time; it logs each problem once."""

    def __init__(
        self,
        source: LoadSource,
        nodes: Callable[[], Collection[str]],
        take: Take,
        metrics: LoadMetrics,
        *,
        clock: Clock,
        interval_s: float,
        round_s: float = ROUND_S,
    ) -> None:
        self._source = source
        self._nodes = nodes
        self._take = take
        self._metrics = metrics
        self._clock = clock
        self._interval_s = interval_s
        self._round_s = round_s
        self._problem = ""
        self._missing: frozenset[str] = frozenset()

    async def ask(self) -> None:
        """Ask once, and hand on what is known."""
        nodes = self._nodes()
        try:
            async with asyncio.timeout(self._round_s):
                found = await self._source.loads(nodes)
        except TimeoutError:
            self._failed(f"no answer within {self._round_s:g} s")
            return
        except Unmeasured as error:
            self._failed(str(error))
            return
        now = self._clock.now().timestamp()
        loads = {name: NodeLoad(one.cpu, one.memory, now if one.at is None else one.at) for name, one in found.items()}
        self._take(loads, self._interval_s)
        self._metrics.answered(now, len(loads))
        self._tell(frozenset(nodes) - loads.keys())

    def _failed(self, problem: str) -> None:
        self._metrics.failed()
        if problem != self._problem:
            self._problem = problem
            log.warning("loads of nodes could not be measured; the last good ones stay until they are old", why=problem)

    def _tell(self, missing: frozenset[str]) -> None:
        if self._problem:
            self._problem = ""
            log.info("loads of nodes are measured again")
        if missing and missing != self._missing:
            some = sorted(missing)[:_NAMED]
            log.warning(
                "loads of some nodes are not known: the plugin usage ignores these nodes", nodes=len(missing), some=some
            )
        self._missing = missing
