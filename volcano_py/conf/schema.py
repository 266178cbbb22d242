"""The contents of a scheduler configuration, with their places in the file; the scheduler gives the names meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

OFF_BY_DEFAULT: Final = frozenset({"enableHierarchy", "enableNamespaceOrder", "enabledClusterOrder"})
"""Flags that must be switched on; every other flag is on unless the configuration says otherwise."""

FLAGS: Final = OFF_BY_DEFAULT | {
    "enableBestNode",
    "enableJobEnqueued",
    "enableJobOrder",
    "enableJobPipelined",
    "enableJobReady",
    "enableJobStarving",
    "enableNodeOrder",
    "enablePredicate",
    "enablePreemptable",
    "enablePreemptive",
    "enableQueueOrder",
    "enableReclaimable",
    "enableReservedNodes",
    "enableTargetJob",
    "enableTaskOrder",
    "enabledAllocatable",
    "enabledHyperNodeGradient",
    "enabledHyperNodeOrder",
    "enabledOverused",
    "enabledSubJobOrder",
    "enabledSubJobPipelined",
    "enabledSubJobReady",
    "enabledVictim",
}
"""The switches of extension points, in Volcano's spelling: some begin with "enable" and some with "enabled"."""


_NAMED: Final = re.compile(r"(?:argument )?([^\s:\[]+)")
"""The beginning of a message about an argument: "argument KEY is ...", "KEY: ..." or "KEY[...]"."""


class Where(NamedTuple):
    """A place in a configuration file; lines count from 1, and 0 stands for the file as a whole."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class ConfError(ValueError):
    """A configuration cannot be used; the message begins with file and line and names the key."""

    def __init__(self, where: Where, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


@dataclass(frozen=True, slots=True)
class PluginConf:
    """One plugin of a tier."""

    name: str
    where: Where
    flags: Mapping[str, bool] = field(default_factory=dict)  # only the switches that the configuration sets
    arguments: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Where] = field(default_factory=dict)  # of arguments

    def enabled(self, flag: str) -> bool:
        """Say whether a switch is on: the value set in the configuration, else its default."""
        return self.flags.get(flag, flag not in OFF_BY_DEFAULT)

    def where_of(self, problem: str) -> Where:
        """Return the place of the argument that a message begins with; if it names none, that of the plugin."""
        return _place(problem, self.places, self.where)


@dataclass(frozen=True, slots=True)
class ActionConf:
    """The arguments of one action, an entry of ``configurations``."""

    name: str
    where: Where
    arguments: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Where] = field(default_factory=dict)  # of arguments

    def where_of(self, problem: str) -> Where:
        """Return the place of the argument that a message begins with; if it names none, that of the entry."""
        return _place(problem, self.places, self.where)


@dataclass(frozen=True, slots=True)
class SchedulerConf:
    """A scheduler configuration with a valid structure."""

    file: str
    actions: tuple[str, ...]
    actions_where: Where
    tiers: tuple[tuple[PluginConf, ...], ...] = ()
    configurations: tuple[ActionConf, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)  # where to read usage from, see the usage plugin
    metrics_places: Mapping[str, Where] = field(default_factory=dict)  # of the keys, and of the section as "metrics"
    warnings: tuple[str, ...] = ()  # what was ignored, each with its place

    def action_arguments(self, name: str) -> Mapping[str, Any] | None:
        """Return the arguments of an action, None if the configuration gives none; the first entry of a name counts."""
        return next((entry.arguments for entry in self.configurations if entry.name == name), None)

    def metrics_where(self, problem: str) -> Where:
        """Return the place of the key that a message about the section ``metrics`` begins with, else of the section."""
        section = self.metrics_places.get("metrics", Where(self.file, 0))
        return _place(problem.removeprefix("metrics."), self.metrics_places, section)


def _place(problem: str, places: Mapping[str, Where], otherwise: Where) -> Where:
    named = _NAMED.match(problem)
    return places.get(named[1], otherwise) if named else otherwise
