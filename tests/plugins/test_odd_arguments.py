"""Whatever a configuration says about a plugin, it can be used or is refused; nothing else ends the reading."""

import json
from contextlib import suppress
from typing import Any

import pytest

from volcano_py.conf.loader import parse_conf
from volcano_py.conf.schema import ConfError
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler.policy import resolve

HUGE = 10**400
ODD: list[Any] = [None, True, 0, -1, 2**63, HUGE, -HUGE, 1.5, "", "x", "5", "9" * 400, [], [1], ["a"], {}, {"a": 1}]


def check(plugin: str, *path: str | int) -> None:
    """Write every odd value at a path of the arguments of a plugin; a number in the path is the length of a list."""
    for value in ODD:
        arguments: Any = value
        for step in reversed(path):
            arguments = {step: arguments} if isinstance(step, str) else [{"name": "lowNodeUtilization"} | arguments]
        written = {"actions": "allocate", "tiers": [{"plugins": [{"name": plugin, "arguments": arguments}]}]}
        with suppress(ConfError):
            resolve(parse_conf(json.dumps(written), "conf"))


@pytest.mark.parametrize("plugin", list(PLUGINS))
def test_odd_values_of_arguments(plugin: str) -> None:
    for key in PLUGINS[plugin].arguments:
        check(plugin, key.replace("*", "a"))


@pytest.mark.parametrize(
    "path",
    [("thresholds", "cpu"), *(("estimator", key) for key in ("request_ratio", "risk_factor", "be_cpu", "be_mem"))],
)
def test_odd_values_inside_arguments_of_usage(path: tuple[str, ...]) -> None:
    check("usage", *path)


@pytest.mark.parametrize(
    "path", [("params",), ("params", "thresholds"), ("params", "targetThresholds", "cpu")], ids=str
)
def test_odd_values_of_a_strategy_of_rescheduling(path: tuple[str, ...]) -> None:
    check("rescheduling", "strategies", 1, *path)


@pytest.mark.parametrize(
    "path", [("resources", "cpu", "weight"), ("sra", "weight"), ("sra", "resourceWeight")], ids=str
)
def test_odd_values_of_resource_strategies(path: tuple[str, ...]) -> None:
    check("resource-strategy-fit", *path)
