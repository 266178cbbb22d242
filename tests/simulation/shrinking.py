"""Cuts a plan down to what is needed to violate the same invariant: fewer faults, less work, shorter, smaller.

Because every draw has its name, what is left keeps its delays and its targets.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

from tests.simulation.loop import HarnessError
from tests.simulation.plan import Plan, Queue, Work
from tests.simulation.world import simulate

MOST_RUNS: Final = 200
_SHORTEST_S: Final = 0.5
_PLAIN: Final = (
    *(("ends_after_s", 0.0), ("deleted_after_s", 0.0), ("commands", ()), ("fails", False)),
    *(("called", None), ("plugins", ()), ("ordered", False), ("claim", False), ("held_s", 0.0), ("scales", ())),
)
"""What work may have, and what is simpler."""
T = TypeVar("T")
Still = Callable[[Plan], bool]
"""Says whether a plan still violates the invariant."""


class _Spent(Exception):
    """As many plans were tried as allowed."""


def violating(invariant: str) -> Still:
    """Return what says whether a plan violates an invariant."""

    def still(plan: Plan) -> bool:
        try:
            return any(violation.invariant == invariant for violation in simulate(plan).violations)
        except HarnessError:
            return False

    return still


def shrink(
    plan: Plan, still: Still, most_runs: int = MOST_RUNS, tried: Callable[[int, Plan], None] | None = None
) -> Plan:
    """Return the smallest plan that was found; ``tried`` is told of each attempt and the best plan so far."""
    search = _Search(plan, still, most_runs, tried)
    with suppress(_Spent):  # the best so far is good enough
        search.run()
    return search.best


class _Search:
    def __init__(self, plan: Plan, still: Still, most_runs: int, tried: Callable[[int, Plan], None] | None) -> None:
        self.best = plan
        self._still, self._left, self._tried = still, most_runs, tried
        self._runs = 0
        self._known: set[Plan] = set()

    def run(self) -> None:
        """Cut until nothing more can be cut."""
        while True:
            before = self.best
            self._fewer(lambda plan: plan.strikes, lambda plan, strikes: replace(plan, strikes=strikes))
            self._fewer(lambda plan: plan.work, lambda plan, work: replace(plan, work=work))
            self._fewer(lambda plan: plan.orders, lambda plan, orders: replace(plan, orders=orders))
            for simpler in (_simpler_cluster, _simpler_strikes, _simpler_work):
                self._simpler(simpler)
            if self.best == before:
                return

    def _holds(self, plan: Plan) -> bool:
        """Try a plan, and keep it if it still violates the invariant."""
        if plan in self._known:
            return False
        if self._runs >= self._left:
            raise _Spent
        self._known.add(plan)
        self._runs += 1
        found = self._still(plan)
        if found:
            self.best = plan
        if self._tried is not None:
            self._tried(self._runs, self.best)
        return found

    def _fewer(self, get: Callable[[Plan], tuple[T, ...]], put: Callable[[Plan, tuple[T, ...]], Plan]) -> None:
        """Leave out as many parts as possible: first halves, then smaller pieces, down to single ones."""
        size = len(get(self.best))
        while size:
            start = 0
            while start < len(parts := get(self.best)):
                if not self._holds(put(self.best, parts[:start] + parts[start + size :])):
                    start += size
            size //= 2

    def _simpler(self, steps: Callable[[Plan], Iterator[Plan]]) -> None:
        """Take simpler plans as long as there are some."""
        while any(self._holds(plan) for plan in steps(self.best)):
            continue


def _simpler_cluster(plan: Plan) -> Iterator[Plan]:
    if len(plan.nodes) > 1:
        yield replace(plan, nodes=plan.nodes[:-1])
    if plan.conf != "helm-default":
        yield replace(plan, conf="helm-default")
    used = {work.queue for work in plan.work} | {order.queue for order in plan.orders}
    used |= {queue.parent for queue in plan.queues if queue.name in used}
    if plan.webhooks:
        yield replace(plan, webhooks=False)
    if plan.narrow:
        yield replace(plan, narrow=False)
    if any(queue.name not in used for queue in plan.queues):
        yield replace(plan, queues=tuple(queue for queue in plan.queues if queue.name in used))
    for place, queue in enumerate(plan.queues):
        plain = Queue(queue.name, queue.weight, parent=queue.parent)
        if queue != plain:
            yield replace(plan, queues=_with(plan.queues, place, plain))


def _simpler_strikes(plan: Plan) -> Iterator[Plan]:
    for place, strike in enumerate(plan.strikes):
        if strike.lasts_s > _SHORTEST_S:
            shorter = replace(strike, lasts_s=round(strike.lasts_s / 2, 3))
            yield replace(plan, strikes=_with(plan.strikes, place, shorter))


def _simpler_work(plan: Plan) -> Iterator[Plan]:
    for place, work in enumerate(plan.work):
        for simpler in _simpler_pods(work):
            yield replace(plan, work=_with(plan.work, place, simpler))


def _simpler_pods(work: Work) -> Iterator[Work]:
    if work.pods > 1:
        fewer = work.pods - 1
        yield replace(work, pods=fewer, minimum=min(work.minimum, fewer))
    for name, fewer_of in (("plugins", work.plugins), ("scales", work.scales), ("commands", work.commands)):
        if len(fewer_of) > 1:
            yield replace(work, **{name: fewer_of[:-1]})  # type: ignore[arg-type]
    if work.priority:
        yield replace(work, priority="")
    if work.space != "default":
        yield replace(work, space="default", called=None)
    if work.queue != "default":
        yield replace(work, queue="default")
    for name, plain in _PLAIN:
        if getattr(work, name) != plain:
            yield replace(work, **{name: plain})  # type: ignore[arg-type]
    if work.tasks > 1:
        yield replace(work, tasks=1)
    if work.policy:
        yield replace(work, policy="")


def _with(parts: Sequence[T], place: int, part: T) -> tuple[T, ...]:
    return (*parts[:place], part, *parts[place + 1 :])


def difference(before: Plan, after: Plan) -> str:
    """Return in one line what was cut off."""
    strikes, work = len(before.strikes), len(before.work)
    pods = sum(one.pods for one in before.work), sum(one.pods for one in after.work)
    return (
        f"{len(after.strikes)} of {strikes} faults, {len(after.work)} of {work} pieces of work, "
        f"{pods[1]} of {pods[0]} pods, {len(after.nodes)} of {len(before.nodes)} nodes"
    )
