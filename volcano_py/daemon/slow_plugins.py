"""Reports slow plugins: in the log once per plugin and configuration, and in the metrics in every cycle.

Built-in plugins are timed where they open and close, all others in every answer. The limits are far above what
whole-array work takes at thousands of nodes: a plugin that reaches one would be the longest part of a cycle.
"""

from typing import Final

import structlog

from volcano_py.framework.state.report import CycleReport
from volcano_py.metrics.cycle import CycleMetrics
from volcano_py.plugins import PLUGINS

log = structlog.get_logger()

CALL_LIMIT_S: Final = 0.25
"""What one call of a plugin may take, in seconds."""
CYCLE_LIMIT_S: Final = 1.0
"""What all answers of a plugin to one question may take in one cycle, in seconds."""

_BUILT_IN: Final = (
    "report it with the number of nodes and pods; until it is mended, the plugin may be left out of the configuration"
)
_THEIRS: Final = (
    "prepare in on_session_open the data that its answers need, and answer with whole arrays instead of a loop over "
    "nodes; or leave the plugin out of the configuration"
)


class SlowPlugins:
    """Compares the times of plugins with the limits."""

    def __init__(self, metrics: CycleMetrics) -> None:
        self._metrics = metrics
        self._reported: set[str] = set()

    def forget(self) -> None:
        """Report every slow plugin anew: the configuration or a plugin has changed."""
        self._reported.clear()

    def look(self, report: CycleReport) -> None:
        """Count the plugins that took too long in a cycle, and log those that have not been logged."""
        slow: dict[str, tuple[float, str]] = {}  # plugin -> its slowest question
        for (plugin, hook), seconds in report.plugin_seconds.items():
            if seconds > CYCLE_LIMIT_S or report.plugin_longest.get((plugin, hook), 0.0) > CALL_LIMIT_S:
                slow[plugin] = max(slow.get(plugin, (0.0, "")), (seconds, hook))
        for plugin, (seconds, hook) in slow.items():
            self._metrics.slow_plugin(plugin)
            if plugin in self._reported:
                continue
            self._reported.add(plugin)
            log.warning(
                "plugin is slow",
                plugin=plugin,
                hook=hook,
                longest_call_s=round(report.plugin_longest.get((plugin, hook), 0.0), 3),
                call_limit_s=CALL_LIMIT_S,
                in_cycle_s=round(seconds, 3),
                cycle_limit_s=CYCLE_LIMIT_S,
                what_to_do=_BUILT_IN if plugin in PLUGINS else _THEIRS,
            )
