"""The policy of a configuration: its names become actions and plugin classes, its arguments become values."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from volcano_py.actions import ACTIONS, Phase
from volcano_py.conf.node_metrics import NodeMetricsConf, read_node_metrics
from volcano_py.conf.schema import ActionConf, ConfError, PluginConf, SchedulerConf
from volcano_py.conf.spelling import did_you_mean
from volcano_py.framework.action import Action
from volcano_py.framework.contract.extension_points import POINTS, Preemptive, QueueOrder, Reclaimable, UnifiedEvictable
from volcano_py.framework.contract.failures import raised
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.hooks.plugin_calls import ActivePlugin
from volcano_py.framework.session import Session
from volcano_py.framework.state.state import State
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.plugins import PLUGINS
from volcano_py.plugins.predicates import Predicates

PLUGINS_TO_COME: Final = frozenset(
    {
        "capacity-card",
        "checkpoint",
        "crossquota",
        "deviceshare",
        "dynamicresources",
        "extender",
        "fairshare",
        "group-topology-affinity",
        "guaranteequota",
        "numa-aware",
        "numaaware",
        "reservation",
    }
)
"""Plugins of any Volcano that are missing here: if a configuration names one, the scheduler warns and runs the rest."""

ACTIONS_TO_COME: Final = frozenset({"elect", "reserve"})
"""Actions of older Volcanos that are missing here, treated in the same way."""

# Volcano's actions have this argument; it has no effect here.
_WITHOUT_EFFECT: Final = frozenset({"predicateErrorCacheEnable"})
_HIERARCHY: Final = "enableHierarchy"
_DIVIDING: Final = frozenset({"capacity", "proportion"})
_BY_LOAD: Final = frozenset({"rescheduling", "usage"})  # plugins that need the section metrics
_RECLAIMING: Final = {"reclaim": Reclaimable, "gangreclaim": UnifiedEvictable}  # action -> extension point it asks


@dataclass(frozen=True, slots=True)
class _Chosen:
    plugin: type[Plugin]
    arguments: Any
    points: frozenset[type]
    hierarchy: bool

    def instance(self) -> Plugin:
        try:
            plugin = self.plugin(self.arguments)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything, and must not end the cycle
            plugin = _failing(self.plugin, error)
        plugin.hierarchy = self.hierarchy
        plugin.asked = self.points
        return plugin


def _failing(plugin: type[Plugin], error: BaseException) -> Plugin:
    """Return an instance that is not initialised and fails when its session opens."""
    failure = raised(plugin, "__init__", error)

    def fail(ssn: State) -> None:
        raise failure from error

    instance = plugin.__new__(plugin)
    instance.on_session_open = fail  # type: ignore[method-assign]  # replaces the method, which relies on __init__
    return instance


@dataclass(frozen=True, slots=True)
class Policy:
    """A configuration with names resolved and arguments read."""

    actions: tuple[tuple[str, Callable[[Session], None]], ...]
    tiers: tuple[tuple[_Chosen, ...], ...]
    warnings: tuple[str, ...]
    missing: tuple[str, ...]  # Volcano's plugins and actions that are missing here
    static_filters: StaticFilterCache = field(default_factory=StaticFilterCache)
    node_metrics: NodeMetricsConf | None = None  # the source of the load of nodes

    @property
    def built_in(self) -> bool:
        """Whether all plugins and actions are ours: those of others may look at more than the session."""
        modules = [chosen.plugin.__module__ for tier in self.tiers for chosen in tier]
        modules += [str(getattr(action, "__module__", None) or type(action).__module__) for _, action in self.actions]
        return all(module.startswith("volcano_py.") for module in modules)

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of the actions that run, in order."""
        return tuple(name for name, _ in self.actions)

    @property
    def shuffles(self) -> bool:
        """Whether pods may have to be evicted because time has passed, although nothing waits or changes."""
        return "shuffle" in self.action_names

    @property
    def volume_wait_s(self) -> float | None:
        """How long the claims of a pod may take to be bound; None without the plugin that says so."""
        found = (chosen.arguments for tier in self.tiers for chosen in tier if chosen.plugin is Predicates)
        return next((arguments.bind_timeout_s for arguments in found), None)

    def instantiate(self) -> list[list[ActivePlugin]]:
        """Return a fresh instance of every plugin, for one session."""
        return [[(chosen.instance(), chosen.points) for chosen in tier] for tier in self.tiers]


def resolve(
    conf: SchedulerConf,
    plugins: Mapping[str, type[Plugin]] = PLUGINS,
    actions: Mapping[str, Phase] = ACTIONS,
) -> Policy:
    """Return the policy of a configuration; raise ConfError with file and line for an unknown name."""
    warnings: list[str] = []
    missing: list[str] = []
    steps: list[tuple[str, Callable[[Session], None]]] = []
    for action in conf.actions:
        if action in actions:
            steps.append((action, _configured(action, actions[action], conf, warnings)))
        elif action in ACTIONS_TO_COME:
            missing.append(f"action {action}")
            warnings.append(
                f'{conf.actions_where}: action "{action}" is missing here: it is left out, the others run; older '
                "Volcanos reserved nodes with it: sla gives a job that waits for long its turn"
            )
        else:
            raise ConfError(conf.actions_where, f"actions: {_unknown('action', action, actions)}")
    if conf.actions and not steps:
        raise ConfError(conf.actions_where, f"actions: none of them exists here; known actions: {', '.join(actions)}")
    warnings.extend(
        f'{entry.where}: configurations: "{entry.name}" is no action: its arguments are ignored'
        f"{did_you_mean(entry.name, sorted(actions))}"
        for entry in conf.configurations
        if entry.name not in actions and entry.name not in ACTIONS_TO_COME
    )
    for tier in conf.tiers:
        _check_hierarchy(tier, plugins, warnings)
    tiers = tuple(
        tuple(chosen for entry in tier if (chosen := _choose(entry, plugins, warnings, missing)) is not None)
        for tier in conf.tiers
    )
    _check_dividing(conf, warnings)
    _check_reclaiming(conf, tiers, warnings)
    _check_companions(conf, warnings)
    node_metrics, problems = read_node_metrics(conf.metrics)
    warnings.extend(f"{conf.metrics_where(problem)}: {problem}" for problem in problems)
    return Policy(tuple(steps), tiers, tuple(warnings), tuple(missing), node_metrics=node_metrics)


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    meant, listed = did_you_mean(name, sorted(known)), ", ".join(sorted(known))
    return f'unknown {kind} "{name}"' + (f"{meant} Known {kind}s: {listed}" if meant else f"; known {kind}s: {listed}")


def _configured(name: str, phase: Phase, conf: SchedulerConf, warnings: list[str]) -> Callable[[Session], None]:
    """Return an action with its arguments in the configuration; the first entry with its name counts."""
    entry = next((entry for entry in conf.configurations if entry.name == name), ActionConf(name, conf.actions_where))
    configurable = phase if isinstance(phase, type) and issubclass(phase, Action) else None
    known = _WITHOUT_EFFECT if configurable is None else configurable.arguments
    _warn_of_unknown(entry, "action", known, warnings)
    if configurable is None:
        return cast(Callable[[Session], None], phase)
    try:
        return configurable.configured(
            entry.arguments, lambda text: warnings.append(f"{entry.where_of(text)}: {name}: {text}")
        )
    except ValueError as error:
        raise ConfError(entry.where_of(str(error)), f"action {name}: {error}") from error


def _warn_of_unknown(entry: PluginConf | ActionConf, kind: str, known: Collection[str], warnings: list[str]) -> None:
    """Warn of arguments that match none of the patterns of an action or a plugin."""
    warnings.extend(
        f'{entry.places.get(key, entry.where)}: {kind} {entry.name} has no argument "{key}": it is ignored'
        f"{did_you_mean(key, sorted(known))}"
        for key in entry.arguments
        if not any(fnmatchcase(key, pattern) for pattern in known)
    )


def _check_hierarchy(tier: Sequence[PluginConf], plugins: Mapping[str, type[Plugin]], warnings: list[str]) -> None:
    """Refuse what Volcano refuses, and warn where a hierarchy of queues has no effect."""
    for entry in tier:
        if entry.name not in plugins or not entry.enabled(_HIERARCHY):
            continue
        if entry.name == "drf" and any(other.name == "proportion" for other in tier):
            problem = "proportion and drf with hierarchy enabled conflicts: leave one of them out of the tier"
            raise ConfError(entry.where, problem)
        if plugins[entry.name].hierarchical is None:
            warnings.append(
                f"{entry.where}: plugin {entry.name}: {_HIERARCHY}: it knows no hierarchy of queues: "
                "it treats all queues as equals without parents"
            )


def _check_dividing(conf: SchedulerConf, warnings: list[str]) -> None:
    """Warn of two plugins that divide among queues: what one of them grants, the other one may refuse."""
    found = [entry for tier in conf.tiers for entry in tier if entry.name in _DIVIDING]
    warnings.extend(
        f"{entry.where}: plugin {entry.name}: {found[0].name} in line {found[0].where.line} also says what queues "
        "deserve, and both answers apply: keep one of the two"
        for entry in found[1:]
    )


def _check_reclaiming(conf: SchedulerConf, tiers: Sequence[Sequence[_Chosen]], warnings: list[str]) -> None:
    """Warn of an action that reclaims if no plugin divides among queues: they would evict each other for ever."""
    points = [chosen.points for tier in tiers for chosen in tier]
    for action, question in _RECLAIMING.items():
        divided = any(Preemptive in each or {QueueOrder, question} <= each for each in points)
        if action in conf.actions and not divided:
            warnings.append(
                f"{conf.actions_where}: action {action}: no plugin says what queues deserve, so they reclaim from each "
                "other again and again: add the plugin capacity or proportion"
            )


def _check_companions(conf: SchedulerConf, warnings: list[str]) -> None:
    """Warn of plugins that do nothing because the configuration lacks what they work with."""
    for entry in (entry for tier in conf.tiers for entry in tier):
        lacking = []
        if entry.name in _BY_LOAD and not conf.metrics.get("type"):
            lacking.append("no source of the loads of nodes is named: add the section metrics")
        if entry.name == "rescheduling" and "shuffle" not in conf.actions:
            lacking.append("it evicts with the action shuffle: add shuffle to actions")
        warnings.extend(f"{entry.where}: plugin {entry.name} does nothing: {one}" for one in lacking)


def _choose(
    entry: PluginConf, plugins: Mapping[str, type[Plugin]], warnings: list[str], missing: list[str]
) -> _Chosen | None:
    plugin = plugins.get(entry.name)
    if plugin is None:
        if entry.name not in PLUGINS_TO_COME:
            raise ConfError(entry.where, _unknown("plugin", entry.name, plugins))
        missing.append(f"plugin {entry.name}")
        warnings.append(f'{entry.where}: plugin "{entry.name}" is missing here: it is left out, the others run')
        return None
    _warn_of_unknown(entry, "plugin", plugin.arguments, warnings)
    try:
        arguments = plugin.parse(
            entry.arguments, lambda text: warnings.append(f"{entry.where_of(text)}: {entry.name}: {text}")
        )
    except ValueError as error:
        raise ConfError(entry.where_of(str(error)), f"plugin {entry.name}: {error}") from error
    answered = (point for point in POINTS if issubclass(plugin, point))
    hierarchy = plugin.hierarchical is not None and entry.enabled(_HIERARCHY)
    silent = frozenset() if hierarchy else plugin.hierarchical or frozenset()
    points = frozenset(
        point
        for point in answered
        if point not in silent
        and (not point.switch or entry.enabled(point.switch) or (point.also and entry.enabled(point.also)))
    )
    return _Chosen(plugin, arguments, points, hierarchy)
