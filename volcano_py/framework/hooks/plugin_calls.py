"""How a session calls its plugins: it measures each call, and a plugin that fails affects only what needs its answer.

If a plugin fails to open, its preferences do not count. At every other extension point its answer is the failure, so
each job that needs the answer is skipped. Nothing is placed without a rule that the conf demands.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from volcano_py.framework.contract.answers import attributes
from volcano_py.framework.contract.combine import Point
from volcano_py.framework.contract.extension_points import PREFERENCES
from volcano_py.framework.contract.failures import invalid, raised
from volcano_py.framework.contract.plugin import Plugin, PluginFailed
from volcano_py.framework.hooks.border import Border
from volcano_py.framework.state.report import CycleReport
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Ints

_OURS: Final = "volcano_py.plugins."

ActivePlugin = tuple[Plugin, frozenset[type]]
"""A plugin instance and the extension points that the conf leaves switched on for it."""


def is_ours(plugin: Plugin) -> bool:
    """Say whether a plugin is built in."""
    return type(plugin).__module__.startswith(_OURS)


def _fail(failure: PluginFailed, *_: Any) -> NoReturn:
    raise failure


class PluginCalls:
    """The plugins of one session, and every call of them."""

    def __init__(
        self,
        tiers: Sequence[Sequence[ActivePlugin]],
        report: CycleReport,
        stopwatch: Callable[[], float],
        border: Border,
    ) -> None:
        """Take the plugins by tier, the report for times and failures, a stopwatch that returns seconds, and the border
        to plugins of others."""
        self._tiers = tiers
        self._border = border
        self._report = report
        self._stopwatch = stopwatch
        self.failed: dict[Plugin, PluginFailed] = {}
        """Plugins that failed before or while the session opened."""
        for tier in tiers:
            for plugin, points in tier:
                if not is_ours(plugin) and (problem := attributes(plugin, points)) is not None:
                    self.fail(plugin, invalid(plugin, "__init__", problem))

    def plugins(self) -> list[Plugin]:
        """Return the plugins in conf order."""
        return [plugin for tier in self._tiers for plugin, _ in tier]

    def tiered(self, point: type, method: str) -> list[list[Point]]:
        """Return a point for each plugin that answers an extension point, by tier."""
        return [
            [
                self.point(plugin, method)
                for plugin, points in tier
                if point in points and not (plugin in self.failed and point in PREFERENCES)
            ]
            for tier in self._tiers
        ]

    def points(self, point: type, method: str) -> list[Point]:
        """Return a point for each plugin that answers an extension point, in conf order."""
        return [entry for tier in self.tiered(point, method) for entry in tier]

    def equivalence_keys(self, state: State) -> dict[str, Ints]:
        """Return, by plugin, the keys that split the tasks of one shape, each of shape (n_tasks,)."""
        found: dict[str, Ints] = {}
        for plugin in self.plugins():
            if type(plugin).equivalence_keys is Plugin.equivalence_keys:
                continue
            keys = self.tell(plugin, "equivalence_keys", state)
            if keys is None:
                continue
            try:
                answer = Point(plugin, "equivalence_keys", lambda keys=keys: keys)
                found[plugin.name] = answer.array(len(state.tasks.records))
            except PluginFailed as failure:
                self.fail(plugin, failure)
        return found

    def open(self, state: State) -> None:
        """Open every plugin."""
        for plugin in self.plugins():
            self.tell(plugin, "on_session_open", state)

    def close(self, state: State) -> None:
        """Let the plugins record the outcome of the session, except those that failed to open."""
        for plugin in self.plugins():
            if plugin not in self.failed:
                self.tell(plugin, "on_session_close", state)

    def tell(self, plugin: Plugin, hook: str, *args: Any) -> Any:
        """Call a plugin's hook at open or close and return its answer; report a failure and return None."""
        started = self._stopwatch()
        answer = None
        try:
            function = getattr(plugin, hook)
            answer = function(*args) if is_ours(plugin) else self._border.ask(plugin, hook, function, hook, args)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything, and must not end the cycle
            self.fail(plugin, raised(plugin, hook, error))
        self._spent(plugin, hook, started)
        return answer

    def fail(self, plugin: Plugin, failure: PluginFailed) -> None:
        """Report a failure after which no answer of the plugin is reliable."""
        self._report.failed(failure)
        self.failed.setdefault(plugin, failure)

    def ignore(self, failure: PluginFailed) -> None:
        """Report, once, a failed answer that the cycle continues without."""
        if str(failure) not in self._report.failures:
            self._report.failed(failure)

    def point(self, plugin: Plugin, method: str) -> Point:
        """Return the point of a plugin: its method, guarded if the plugin is not built in, or its failure."""
        if is_ours(plugin):
            failure = self.failed.get(plugin)
            if failure is not None:
                return Point(plugin, method, partial(_fail, failure))
            return Point(plugin, method, trusted=True)
        return Point(plugin, method, self._guarded(plugin, method, None, method), guard=self._guarded)

    def _guarded(self, plugin: Plugin, method: str, ask: Callable[..., Any] | None, kind: str) -> Callable[..., Any]:
        """Return a function that asks a plugin of others, or that is its failure."""
        failure = self.failed.get(plugin)
        return partial(self._timed, plugin, method, ask, kind) if failure is None else partial(_fail, failure)

    def _timed(self, plugin: Plugin, method: str, ask: Callable[..., Any] | None, kind: str, *args: Any) -> Any:
        """Ask a plugin of others, and record how long it took: a slow one is named in the log."""
        started = self._stopwatch()
        try:
            return self._border.ask(plugin, method, ask or getattr(plugin, method), kind, args)
        finally:
            self._spent(plugin, method, started)

    def _spent(self, plugin: Plugin, hook: str, started: float) -> None:
        key, took = (plugin.name, hook), self._stopwatch() - started
        report = self._report
        report.plugin_seconds[key] = report.plugin_seconds.get(key, 0.0) + took
        report.plugin_longest[key] = max(report.plugin_longest.get(key, 0.0), took)
