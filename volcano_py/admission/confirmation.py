"""Verdicts that rest on other objects are confirmed: by notes, or by live reads that began after the review arrived.

    rule over the watches ──▶ rests on nothing: done
                          ├─▶ allows work for queues that no note calls changing: done
                          └─▶ read live what it has read ──▶ the same: done
                                                         └─▶ rule over what was read, until nothing is missing

A watch is late by some milliseconds at least, so that a queue which was just created, closed or deleted looks as
before. A read without a resource version shows every write that was answered before it began. Reviews that arrive
together share reads: per object at most one is under way and one waits for its end. Notes say which queues are about to
be closed, be deleted or get a child (:mod:`volcano_py.admission.changing_queues`); so most work needs no live read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from volcano_py.admission.changing_queues import ChangingQueues
from volcano_py.admission.contract import Obj, Options, Request, Rule, Verdict
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.paths import Webhook
from volcano_py.admission.queue_guard import QUEUE_PATH
from volcano_py.admission.shared_reads import SharedReads
from volcano_py.admission.views import (
    ALL_QUEUES,
    CHILDREN,
    NAMESPACE,
    QUEUE,
    QUEUES,
    Key,
    LiveView,
    NamespaceObject,
    NamespaceView,
    NotRead,
    QueueObject,
    QueueView,
    WatchedView,
    parent_of,
    queue_as_json,
)
from volcano_py.kube import errors, resource
from volcano_py.kube.client import ApiClient

_READ_TIMEOUT_S: Final = 5.0
_MOST_SINGLE: Final = 20  # children that are read one by one
_SINGLE_ROUNDS: Final = 3  # after which all queues are read at once: a rule follows a chain of parents
_ROUNDS: Final = 6
_WORK_PATHS: Final = frozenset({"/jobs/validate", "/podgroups/validate", "/cronjobs/validate"})
"""Their rules ask of a queue only whether it exists, is open, and has children."""


class LiveReads:
    """Reads queues and namespaces from the API server, shared among reviews.

    With ``changing``, the children of a queue are read one by one; without, all queues are listed.
    """

    def __init__(
        self, client: ApiClient, metrics: AdmissionMetrics, watched: QueueView, changing: ChangingQueues | None = None
    ) -> None:
        self._client, self._metrics, self._watched, self.changing = client, metrics, watched, changing
        self._single = SharedReads(self._queue)
        self._by_kind: dict[str, Callable[[str], Awaitable[Any]]] = {
            QUEUE: self._single.get,
            QUEUES: SharedReads(self._queues).get,
            CHILDREN: self._children,
            NAMESPACE: SharedReads(self._namespace).get,
        }

    async def add(self, keys: Iterable[Key], view: LiveView) -> None:
        """Read what the view lacks of these; raise ApiError if a read fails."""
        wanted = {key for key in keys if not view.has(key)}
        if any(key.kind == CHILDREN and self._needs_list(key.name) for key in wanted):
            wanted.add(ALL_QUEUES)
        if ALL_QUEUES in wanted:
            wanted = {key for key in wanted if key.kind not in (QUEUE, CHILDREN)}  # the list has them all
        found = await asyncio.gather(*(self._by_kind[key.kind](key.name) for key in wanted))
        view.found.update(zip(wanted, found, strict=True))

    async def prepare(self) -> None:
        """Do without notes if there is no place for them."""
        if self.changing is not None and not await self.changing.prepare():
            self.changing = None

    def _needs_list(self, parent: str) -> bool:
        return self.changing is None or len(self._watched.children(parent)) > _MOST_SINGLE

    async def _children(self, parent: str) -> list[Obj]:
        """Return the children of a queue: those that the watch or a note names and that still are."""
        assert self.changing is not None
        noted = await self.changing.children(parent)
        watched = {str(child["metadata"]["name"]) for child in self._watched.children(parent)}
        found = await asyncio.gather(*(self._single.get(name) for name in sorted(noted | watched)))
        return [child for child in found if child is not None and parent_of(child) == parent]

    async def _queue(self, name: str) -> Obj | None:
        if not name:
            return None
        self._metrics.live_read(QUEUE)
        try:
            found = await self._client.get(resource.QUEUES, name, QueueObject, timeout_s=_READ_TIMEOUT_S)
        except errors.NotFound:
            return None
        return queue_as_json(found)

    async def _queues(self, _: str) -> Mapping[str, Obj]:
        self._metrics.live_read(QUEUES)
        found: dict[str, Obj] = {}
        pages = self._client.list_pages(resource.QUEUES, QueueObject, timeout_s=_READ_TIMEOUT_S)
        async for page in pages:
            found.update((queue.metadata.name, queue_as_json(queue)) for queue in page.items)
        return found

    async def _namespace(self, name: str) -> Mapping[str, str]:
        if not name:
            return {}
        self._metrics.live_read(NAMESPACE)
        try:
            found = await self._client.get(resource.NAMESPACES, name, NamespaceObject, timeout_s=_READ_TIMEOUT_S)
        except errors.NotFound:
            return {}
        return found.metadata.annotations


class Judge:
    """Asks the rule of a path, over the watches and, where the verdict rests on them, over live reads."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        options: Callable[[], Options],
        queues: QueueView,
        namespaces: NamespaceView,
        live: LiveReads,
        metrics: AdmissionMetrics,
    ) -> None:
        self._rules, self._options = rules, options
        self._queues, self._namespaces = queues, namespaces
        self._live, self._metrics = live, metrics

    def __call__(
        self, webhook: Webhook, request: Request, dry_run: bool = False
    ) -> Verdict | Coroutine[Any, Any, Verdict]:
        """Return the verdict, or an awaitable if it must wait, which raises ApiError if it cannot be confirmed.

        A change that the path does not judge is allowed, such as that of a status. It is noted all the same.
        """
        tells = webhook.path == QUEUE_PATH and self._live.changing is not None and not dry_run
        if request.subresource or request.operation not in webhook.operations:
            return self._announced(Verdict(), request) if tells else Verdict()
        watched = WatchedView(self._queues, self._namespaces)
        options = self._options()
        verdict = self._rules[webhook.path](request, watched, options)
        changing = self._live.changing if self._is_believable(webhook, verdict, watched) else None
        if watched.noted and (changing is None or not changing.stable_at_once(_names(watched))):
            return self._confirmed(webhook, request, options, verdict, watched, changing, tells=tells)
        if watched.noted:
            self._metrics.confirmed("watch")
        return self._announced(verdict, request) if tells else verdict

    async def _announced(self, verdict: Verdict, request: Request) -> Verdict:
        if verdict.allowed and self._live.changing is not None:
            await self._live.changing.announce(request)
        return verdict

    async def _confirmed(
        self,
        webhook: Webhook,
        request: Request,
        options: Options,
        verdict: Verdict,
        watched: WatchedView,
        changing: ChangingQueues | None,
        *,
        tells: bool,
    ) -> Verdict:
        if changing is not None and await changing.stable(_names(watched)):
            self._metrics.confirmed("watch")
            return verdict
        live = LiveView()
        await self._live.add(watched.noted, live)
        if all(live.value(key) == found for key, found in watched.noted.items()):
            self._metrics.confirmed("same")
        else:
            self._metrics.confirmed("changed")
            verdict = await self._over_live(self._rules[webhook.path], request, options, live)
        return await self._announced(verdict, request) if tells else verdict

    @staticmethod
    def _is_believable(webhook: Webhook, verdict: Verdict, watched: WatchedView) -> bool:
        """Say whether notes can confirm a verdict: it allows work, for queues that exist. No note tells of new ones."""
        return (
            verdict.allowed
            and webhook.path in _WORK_PATHS
            and all(
                key.kind == CHILDREN or (key.kind == QUEUE and found is not None)
                for key, found in watched.noted.items()
            )
        )

    async def _over_live(self, rule: Rule, request: Request, options: Options, live: LiveView) -> Verdict:
        for turn in range(_ROUNDS):
            try:
                return rule(request, live, options)
            except NotRead as missing:
                key = missing.key
            if turn >= _SINGLE_ROUNDS and key.kind in (QUEUE, CHILDREN):
                key = ALL_QUEUES
            await self._live.add([key], live)
        return rule(request, live, options)


def _names(watched: WatchedView) -> set[str]:
    return {key.name for key in watched.noted}
