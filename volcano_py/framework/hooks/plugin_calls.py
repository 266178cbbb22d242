"""How a session calls its plugins: what each call takes is kept, and one that fails takes nothing else with it.

After a failed open a plugin's preferences do not count, and wherever it has a say in what may happen its answer is the
failure, which costs every job that asks its turn: nothing is placed without a rule that the conf demands.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn

from volcano_py.framework.contract.combine import Point
from volcano_py.framework.contract.plugin import Plugin, PluginFailed
from volcano_py.framework.state.memory import CycleReport

_OURS: Final = "volcano_py.plugins."


def _fail(failure: PluginFailed, *_: Any) -> NoReturn:
    raise failure


class PluginCalls:
    """The calls of one session."""

    def __init__(self, report: CycleReport, stopwatch: Callable[[], float]) -> None:
        """Take the report for times and failures, and what measures seconds."""
        self._report = report
        self._stopwatch = stopwatch
        self.failed: dict[Plugin, PluginFailed] = {}
        """Plugins that failed before, or at, the opening of the session."""

    def tell(self, plugin: Plugin, hook: str, *args: Any) -> Any:
        """Call a plugin's hook at open or close and return its answer; None, and a report, if it fails."""
        started = self._stopwatch()
        answer = None
        try:
            answer = getattr(plugin, hook)(*args)
        except PluginFailed as failure:
            self.fail(plugin, failure)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything, and must not end the cycle
            self.fail(plugin, PluginFailed(plugin.name, hook, f"{type(error).__name__}: {error}"))
        self._spent(plugin, hook, started)
        return answer

    def fail(self, plugin: Plugin, failure: PluginFailed) -> None:
        """Report a failure after which nothing that the plugin says can be relied on."""
        self._report.failures.append(str(failure))
        self.failed.setdefault(plugin, failure)

    def ignore(self, failure: PluginFailed) -> None:
        """Report an answer that the cycle goes on without, once."""
        if str(failure) not in self._report.failures:
            self._report.failures.append(str(failure))

    def point(self, plugin: Plugin, method: str) -> Point:
        """Return what a plugin answers a question with: its method, timed if it is not ours, or its failure."""
        failure = self.failed.get(plugin)
        if failure is not None:
            return Point(plugin, method, partial(_fail, failure))
        if type(plugin).__module__.startswith(_OURS):
            return Point(plugin, method, trusted=True)
        return Point(plugin, method, partial(self._timed, plugin, method))

    def _timed(self, plugin: Plugin, method: str, *args: Any) -> Any:
        """Ask a plugin that is not ours, and keep how long it took: it may be slow, and is named then."""
        started = self._stopwatch()
        try:
            return getattr(plugin, method)(*args)
        finally:
            self._spent(plugin, method, started)

    def _spent(self, plugin: Plugin, hook: str, started: float) -> None:
        key, took = (plugin.name, hook), self._stopwatch() - started
        report = self._report
        report.plugin_seconds[key] = report.plugin_seconds.get(key, 0.0) + took
        report.plugin_longest[key] = max(report.plugin_longest.get(key, 0.0), took)
