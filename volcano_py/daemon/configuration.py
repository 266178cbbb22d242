"""The configuration in force, and its replacement when the file changes: at the next cycle, or not at all.

If a file cannot be used, the error names file, line and key. It is logged, counted, and shown until the file is
corrected; the last good configuration stays in force. Nothing of a former configuration is kept: an argument that is
removed goes back to its default.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from volcano_py.conf.redaction import redacted, without_user_info
from volcano_py.conf.reload import ConfFile, LoadedConf
from volcano_py.conf.schema import ConfError
from volcano_py.daemon.plugins import policy_of
from volcano_py.metrics.conf import ConfMetrics
from volcano_py.runtime.clock import Clock
from volcano_py.scheduler import Policy
from volcano_py.scheduler.third_party import PluginFolder

log = structlog.get_logger()


def shown_policy(policy: Policy, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return what `/debug/conf` says of a policy."""
    return {
        "actions": list(policy.action_names),
        "missing": list(policy.missing),
        "warnings": [*warnings, *policy.warnings],
    }


class Configuration:
    """A loaded configuration with its policy, and the file that may replace it.

    Raises ConfError if it contains an unknown name, or names a plugin that does not work.
    """

    def __init__(self, loaded: LoadedConf, file: ConfFile | None = None, plugins: PluginFolder | None = None) -> None:
        self._file = file
        self._plugins = plugins
        self._loaded = loaded
        self.policy, self._unused = policy_of(loaded, plugins)
        """What cycles run."""
        self._since = ""
        self._error: dict[str, str] | None = None
        self._asked = False
        self._plugins_wait = False  # plugins have changed, and what was read then was refused
        self._log()

    @classmethod
    def of_file(cls, file: ConfFile, plugins: PluginFolder | None = None) -> "Configuration":
        """Load a file that is watched from then on; raises ConfError if it cannot be used."""
        return cls(file.load(), file, plugins)

    async def watch(
        self, on_change: Callable[[Policy], None], metrics: ConfMetrics, *, clock: Clock, every_s: float
    ) -> None:
        """Check the file every ``every_s`` seconds, and pass on a new policy."""
        self._since = clock.now().isoformat(timespec="seconds")
        self._show(metrics)
        while self._file is not None:
            await clock.sleep(every_s)
            # A file system that hangs must not block the event loop.
            changed = await asyncio.to_thread(self._file.changed)
            plugins = self._plugins is not None and await asyncio.to_thread(self._plugins.changed)
            asked, self._asked = self._asked, False
            plugins = plugins or (asked and self._plugins is not None)
            if (changed or plugins or asked) and await self._replace(self._file, metrics, clock, plugins=plugins):
                on_change(self.policy)

    def read_again(self) -> None:
        """Read the file and the plugins of the folder at the next check, also if they have not changed."""
        if self._file is None:
            log.info("SIGHUP changes nothing: the built-in configuration is in force, and flags are read at the start")
            return
        log.info("SIGHUP: the configuration is read again", file=self._loaded.conf.file)
        self._asked = True

    def shown(self) -> dict[str, Any]:
        """Return what `/debug/conf` answers."""
        conf = self._loaded.conf
        return {
            "file": conf.file,
            "hash": self._loaded.hash,
            "since": self._since,
            **shown_policy(self.policy, [without_user_info(text) for text in (*conf.warnings, *self._unused)]),
            "lastError": self._error,
            "text": redacted(self._loaded.text),
        }

    async def _replace(self, file: ConfFile, metrics: ConfMetrics, clock: Clock, *, plugins: bool) -> bool:
        """Read the file and the plugins it names; return whether there is a new policy."""
        now = clock.now().isoformat(timespec="seconds")
        self._plugins_wait |= plugins
        if self._plugins is not None:  # also if the configuration cannot be read, or names none of them
            await asyncio.to_thread(self._plugins.reading)
        try:
            loaded = await asyncio.to_thread(file.load)
            policy, unused = await asyncio.to_thread(policy_of, loaded, self._plugins)
        except ConfError as error:
            metrics.refused()
            self._error = {"time": now, "problem": without_user_info(str(error))}
            log.error(
                "the changed configuration cannot be used; the last good one stays in force",
                problem=str(error),
                in_force=self._loaded.hash,
            )
            return False
        self._error = None
        plugins, self._plugins_wait = self._plugins_wait, False
        if loaded.text == self._loaded.text and not plugins:
            metrics.unchanged()
            log.info(
                "the configuration file has what is in force: nothing changes", file=loaded.conf.file, hash=loaded.hash
            )
            return False
        self._loaded, self.policy, self._unused, self._since = loaded, policy, unused, now
        metrics.applied()
        self._show(metrics)
        self._log()
        return True

    def _show(self, metrics: ConfMetrics) -> None:
        metrics.in_force(self._loaded.conf.file, self._loaded.hash, len(self.policy.missing))

    def _log(self) -> None:
        conf, policy = self._loaded.conf, self.policy
        for warning in (*conf.warnings, *self._unused, *policy.warnings):
            log.warning("configuration", file=conf.file, problem=warning)
        log.info(
            "configuration",
            file=conf.file,
            hash=self._loaded.hash,
            actions=list(policy.action_names),
            missing=list(policy.missing),
        )
