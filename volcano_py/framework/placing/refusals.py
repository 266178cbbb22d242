"""Why no node takes a task: what every node answers, counted by reason, as Volcano counts it.

A node that lacks a resource says only that. Otherwise plugins speak in their order until one refuses; what that one has
to say counts whole: its dynamic reasons before its static ones, then the static one, or, without one, all other dynamic
reasons. (Volcano collects statuses that an eviction could change until one comes that it could not, see
`Predicate.early`.) So the counts of a message may add up to more than the number of nodes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.combine import Ignore, Point, Points
from volcano_py.framework.contract.plugin import Plugin, PluginFailed
from volcano_py.framework.placing.node_sets import NOT_OURS
from volcano_py.framework.state.info import QueueInfo, TaskInfo
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.rejections import Reason, Refusal, Rejection

if TYPE_CHECKING:
    from volcano_py.framework.session import Session


class Filter(NamedTuple):
    """What a plugin may refuse nodes for: codes of its static reasons, then of its dynamic ones."""

    static: range
    dynamic: range
    early: int  # so many of the dynamic reasons stand before the static ones
    point: Point | None  # answers with `Predicate.refusals`


def filters(
    plugins: Iterable[Plugin],
    statics: Iterable[tuple[Point, int]],
    dynamics: Iterable[tuple[Point, int]],
) -> list[Filter]:
    """Return the filters in the order of plugins, from the points that are on and the code before each one's first."""
    fixed = {point.plugin.name: _codes(offset, point.plugin.static_reasons) for point, offset in statics}
    moving = {point.plugin.name: (point.plugin, _codes(offset, point.plugin.reasons)) for point, offset in dynamics}
    found: list[Filter] = []
    for plugin in plugins:
        static = fixed.get(plugin.name, range(0))
        if plugin.name in moving:
            other, codes = moving[plugin.name]
            found.append(Filter(static, codes, other.early, Point(other, "refusals")))
        elif static:
            found.append(Filter(static, range(0), 0, None))
    return found


def _codes(offset: int, reasons: Sequence[object]) -> range:
    return range(offset + 1, offset + 1 + len(reasons))


def explain(ssn: "Session", task: TaskInfo, *, promises: bool) -> Rejection:
    """Return what all nodes say to a task of this shape now.

    With ``promises`` a resource is lacking if it will still be after what is being released. Without them plugins speak
    first, and a resource is lacking that is not idle or promised to others (Volcano's backfill looks at no resources at
    all).
    """
    nodes = ssn.nodes
    counts = Counter[int]()
    silent = ~ssn.sharding.shut  # nodes that have said nothing yet
    if promises:
        silent = _lacking(task, nodes.future_idle, silent, counts)
    verdicts = ssn.static_verdicts(task)
    for plugin in ssn.filters:
        if not silent.any():  # a full cluster: every node has said what it lacks
            break
        said = np.zeros(len(nodes), dtype=bool)
        for code, refused in _statements(ssn, task, plugin, verdicts):
            refused = refused & silent
            counts[code] += int(np.count_nonzero(refused))
            said |= refused
        silent = silent & ~said
    if not promises:
        _lacking(task, np.minimum(nodes.idle, nodes.future_idle), silent, counts)
    refusals = [Refusal(ssn.reason(code), count) for code, count in counts.items() if count]
    # A Python loop over closed nodes: there are few, and each has its own reason.
    closed = Counter(nodes.statics.records[row].closed for row in np.flatnonzero(nodes.closed).tolist())
    refusals += [Refusal(Reason("cache", "node-closed", f"node(s) closed: {why}"), n) for why, n in closed.items()]
    if others := int(np.count_nonzero(ssn.sharding.shut & ~nodes.closed)):
        refusals.append(Refusal(NOT_OURS, others))
    return Rejection(len(nodes), tuple(sorted(refusals, key=lambda refusal: (-refusal.nodes, refusal.reason))))


def _lacking(task: TaskInfo, available: Floats, silent: Bools, counts: Counter[int]) -> Bools:
    """Count the first resource that each node lacks; return the nodes that have still said nothing."""
    rows = np.where(silent, task.fit.first_lacking(available), -1)
    for row, count in enumerate(np.bincount(rows + 1)[1:].tolist()):
        if count:
            counts[-1 - row] += count
    return silent & (rows < 0)


def _statements(
    ssn: "Session", task: TaskInfo, plugin: Filter, verdicts: "np.ndarray[tuple[int], np.dtype[np.int16]]"
) -> Iterator[tuple[int, Bools]]:
    """Yield code and nodes (n_nodes,) of every reason that a plugin has to give."""
    n = len(ssn.nodes)
    static = (verdicts >= plugin.static.start) & (verdicts < plugin.static.stop)
    for code in plugin.static:
        yield code, verdicts == code
    if plugin.point is None:
        return
    refused = plugin.point(task, ssn.nodes)
    if not isinstance(refused, np.ndarray) or refused.shape != (len(plugin.dynamic), n):
        expected = f"expected an array of shape ({len(plugin.dynamic)}, {n})"
        raise PluginFailed(plugin.point.plugin.name, plugin.point.method, expected)
    for number, code in enumerate(plugin.dynamic):
        yield code, refused[number] if number < plugin.early else refused[number] & ~static


def why_overused(points: Points, queue: QueueInfo, ignore: Ignore) -> Reason:
    """Return why a queue that is overused gets nothing more: what the first plugin that says so has to say."""
    found = None
    for point in points:
        if combine.any_yes([point], queue):
            found = _said(Point(point.plugin, "why_overused"), ignore, queue)
            break
    text = f'queue "{queue.name}" has had enough: its other tasks wait until it may have more'
    return found or Reason("allocate", "queue-overused", text)


def over_limit(
    points: Points, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats, ignore: Ignore
) -> Reason:
    """Return why a queue may not hold what a job lacks: what the first plugin has to say that refuses a task like this.

    Where each refuses only more than one task, the first counts that has something to say. ``asked`` and ``given`` are
    those of `Allocatable.why_not_allocatable`.
    """
    for point in points:
        if not combine.smallest([point], 1, queue, task):
            name = point.plugin.name
            found = _said(Point(point.plugin, "why_not_allocatable"), ignore, queue, task, asked, given)
            return found or Reason(
                name, "queue-limit", f'queue "{queue.name}" may not hold more: plugin {name} says so'
            )
    for point in points:
        found = _said(Point(point.plugin, "why_not_allocatable"), ignore, queue, task, asked, given)
        if found is not None:
            return found
    text = f'queue "{queue.name}" has room, but not everything that the gang lacks can come in now'
    return Reason("allocate", "gang-incomplete", text)


def _said(point: Point, ignore: Ignore, *args: object) -> Reason | None:
    """Return what a plugin says of its refusal; one that fails says nothing, and its refusal stands."""
    try:
        found: Reason | None = point(*args)
    except PluginFailed as failure:
        ignore(failure)
        return None
    return found
