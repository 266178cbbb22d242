"""Which plugins may refuse a node and for what reasons, and what a plugin says of a queue that may hold no more."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.combine import Ignore, Point, Points
from volcano_py.framework.contract.plugin import Plugin, PluginFailed
from volcano_py.framework.state.info import QueueInfo, TaskInfo
from volcano_py.model.arrays import Floats
from volcano_py.model.rejections import Reason


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
