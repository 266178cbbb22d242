"""Area arguments: reading plugin and action arguments, and the defaults of a plugin's flags."""

import json
from collections.abc import Callable
from typing import Any, Final

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.conf.arguments import get_bool, get_float, get_int, get_string
from volcano_py.conf.loader import parse_conf
from volcano_py.conf.schema import FLAGS

POINTS: Final = (
    *("JobOrder", "JobReady", "JobPipelined", "TaskOrder", "Preemptable", "Reclaimable", "Preemptive", "QueueOrder"),
    *("Predicate", "BestNode", "NodeOrder", "TargetJob", "ReservedNodes", "Victim", "JobStarving", "Overused"),
    *("Allocatable", "JobEnqueued"),
)


def _get(read: Callable[..., Any]) -> Operation:
    def handle(case: Case) -> Outcome:
        given = case.input
        value = read(given.get("arguments") or {}, given["key"], given["default"])
        return {"value": value}

    return Operation(handle, {"value": same}, frozenset({"arguments", "key", "default"}))


def _action_arguments(case: Case) -> Outcome:
    # JSON is YAML, so the loader reads this like a file.
    text = json.dumps({"actions": "enqueue", "configurations": case.input.get("configurations") or []})
    return {"arguments": parse_conf(text, "row").action_arguments(case.input["action"])}


def _same_or_none(expected: Any, actual: Any, _: Any) -> None:
    """Assert equal arguments; an entry without arguments equals a missing entry."""
    assert (actual or None) == (expected or None)


def _plugin_defaults(case: Case) -> Outcome:
    option = {_flag(_point(key)) if key != "name" else key: value for key, value in case.input["option"].items()}
    conf = parse_conf(json.dumps({"actions": "enqueue", "tiers": [{"plugins": [option]}]}), "row")
    assert not conf.warnings
    values = {conf.tiers[0][0].enabled(_flag(point)) for point in POINTS}
    assert len(values) == 1, "some flags are on and some are off"
    return {"everyFlag": values.pop()}


def _point(key: str) -> str:
    """Return the extension point of a flag: rows name flags by their fields, some with enable, some with enabled."""
    return key.removeprefix("enabled") if key.startswith("enabled") else key.removeprefix("enable")


def _flag(point: str) -> str:
    """Return the flag of an extension point as a configuration file spells it."""
    return next(flag for flag in sorted(FLAGS) if _point(flag) == point)


OPERATIONS: Final = {
    "getInt": _get(get_int),
    "getFloat": _get(get_float),
    "getBool": _get(get_bool),
    "getString": _get(get_string),
    "actionArguments": Operation(
        _action_arguments, {"arguments": _same_or_none}, frozenset({"configurations", "action"})
    ),
    "pluginDefaults": Operation(_plugin_defaults, {"everyFlag": same}, frozenset({"option"})),
}
