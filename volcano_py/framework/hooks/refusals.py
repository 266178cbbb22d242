"""The reasons for which plugins may refuse a node, and the texts about a queue that may hold no more."""

from collections.abc import Iterable
from typing import NamedTuple

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.combine import Ignore, Point, Points
from volcano_py.framework.contract.plugin import Plugin, PluginFailed
from volcano_py.framework.state.info import QueueInfo, TaskInfo
from volcano_py.model.arrays import Floats
from volcano_py.model.rejections import Reason


class Filter(NamedTuple):
    """The reasons for which a plugin may refuse nodes: codes of its static ones, then of its dynamic ones."""

    static: range
    dynamic: range
    early: int  # how many of the dynamic reasons come before the static ones
    point: Point | None  # answers with `Predicate.refusals`


def filters(
    plugins: Iterable[Plugin],
    statics: Iterable[tuple[Point, range]],
    dynamics: Iterable[tuple[Point, range]],
) -> list[Filter]:
    """Return the filters in the order of plugins. Each point comes with the codes of its reasons."""
    of_static = {point.plugin.name: codes for point, codes in statics}
    of_dynamic = {point.plugin.name: (point, codes) for point, codes in dynamics}
    found: list[Filter] = []
    for plugin in plugins:
        static = of_static.get(plugin.name, range(0))
        if plugin.name in of_dynamic:
            point, codes = of_dynamic[plugin.name]
            found.append(Filter(static, codes, point.plugin.early, point.other("refusals")))
        elif static:
            found.append(Filter(static, range(0), 0, None))
    return found


def why_overused(points: Points, queue: QueueInfo, ignore: Ignore) -> Reason:
    """Return why an overused queue gets nothing more, in the words of the first plugin that finds it overused."""
    found = None
    for point in points:
        try:
            overused = combine.any_yes([point], queue)
        except PluginFailed as failure:
            return Reason(failure.plugin, "plugin-failed", failure.text)
        if overused:
            found = _explained(point.other("why_overused"), ignore, queue)
            break
    text = f'queue "{queue.name}" already holds all that it may have: its other tasks wait until it may have more'
    return found or Reason("allocate", "queue-overused", text)


def over_limit(
    points: Points, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats, ignore: Ignore
) -> Reason:
    """Return why a queue may not hold what a job lacks, in the words of the first plugin that refuses one task.

    If every plugin allows one task, the first plugin that explains anything counts. ``asked`` and ``given`` are
    those of `Allocatable.why_not_allocatable`.
    """
    for point in points:
        if not combine.smallest([point], 1, queue, task):
            name = point.plugin.name
            found = _explained(point.other("why_not_allocatable"), ignore, queue, task, asked, given)
            return found or Reason(
                name, "queue-limit", f'queue "{queue.name}" may not hold more: plugin {name} refuses'
            )
    for point in points:
        found = _explained(point.other("why_not_allocatable"), ignore, queue, task, asked, given)
        if found is not None:
            return found
    text = f'queue "{queue.name}" has room, but not for everything that the gang still needs'
    return Reason("allocate", "gang-incomplete", text)


def _explained(point: Point, ignore: Ignore, *args: object) -> Reason | None:
    """Return how a plugin explains its refusal; None if it fails, which does not change the refusal."""
    try:
        found: Reason | None = point(*args)
    except PluginFailed as failure:
        ignore(failure)
        return None
    return found
