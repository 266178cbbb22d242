"""Plugins that raise, answer nonsense or hang: who, in which answer, what came and what to do is said, others go on."""

import asyncio
import re
import threading
import time
from typing import Any, ClassVar

import numpy as np
import pytest
from structlog.testing import capture_logs

from tests.daemon.cluster import CONF, condition, placed, put_job, put_node, scheduler, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.conf.loader import parse_conf
from volcano_py.effects.pod_conditions import PodConditionOptions
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import Policy, resolve

AT_ONCE = PodConditionOptions(rate_per_s=100, burst=100, delay_s=0.01)
ODD = "3"
"""The cores that pods ask for at which the plugin fails."""
WHAT_TO_DO = "correct the plugin, or leave it out of the configuration"


class Mine(Plugin, NodeOrder):
    """Likes all nodes equally, but for pods of three cores."""

    name: ClassVar = "mine"

    def node_order(self, task: Any, nodes: Any) -> Any:
        if task.request[0] == 3000:
            return self.odd(nodes)
        return np.zeros(len(nodes))

    def odd(self, nodes: Any) -> Any:
        raise NotImplementedError


class Raises(Mine):
    def odd(self, nodes: Any) -> Any:
        return {}["no-such-key"]


class Exits(Mine):
    def odd(self, nodes: Any) -> Any:
        raise SystemExit(3)


class Panics(Mine):
    """As a library in Rust does, or a cancellation."""

    def odd(self, nodes: Any) -> Any:
        raise asyncio.CancelledError("panic")


class RaisesWithoutText(Mine):
    class _Silent(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    def odd(self, nodes: Any) -> Any:
        raise self._Silent


class AnswersNaN(Mine):
    def odd(self, nodes: Any) -> Any:
        return np.full(len(nodes), np.nan)


class AnswersTooMuch(Mine):
    def odd(self, nodes: Any) -> Any:
        return np.zeros(len(nodes) + 1)


class AnswersSomethingElse(Mine):
    def odd(self, nodes: Any) -> Any:
        return "n1"


class HangsASecond(Mine):
    """Hangs for a second, or until the test has seen what goes on meanwhile."""

    seen: ClassVar = threading.Event()

    def odd(self, nodes: Any) -> Any:
        time.sleep(1.0)
        self.seen.wait(10.0)
        return np.zeros(len(nodes))


class CannotBeMade(Mine):
    def __init__(self, arguments: Any = None) -> None:
        raise OSError("no such device")


class FailsToOpen(Mine):
    def on_session_open(self, ssn: Any) -> None:
        raise ZeroDivisionError("division by zero")


def policy(plugin: type[Plugin]) -> Policy:
    return resolve(parse_conf(CONF + "  - name: mine\n", "test.conf"), {**PLUGINS, "mine": plugin})


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (Raises, "KeyError: 'no-such-key'"),
        (Exits, "SystemExit: 3"),
        (Panics, "CancelledError: panic"),
        (RaisesWithoutText, "_Silent, whose text cannot be made: ValueError"),
        (AnswersNaN, "answered with NaN or infinity"),
        (AnswersTooMuch, "expected an array of shape (2,), of numbers, got an array of float64 of shape (3,)"),
        (AnswersSomethingElse, "expected an array of shape (2,), of numbers, got str"),
    ],
)
async def test_a_failing_plugin_call_costs_its_job_the_turn_and_is_named(
    server: ApiServer, plugin: type[Plugin], problem: str
) -> None:
    for name in ("n1", "n2"):
        put_node(server, name, cpu=8)
    with capture_logs() as lines:
        async with scheduler(server.url, policy=policy(plugin), pod_conditions=AT_ONCE) as running:
            put_job(server, "odd", 1, cpu=ODD)
            await until(lambda: any(line["event"] == "plugins failed" for line in lines))
            put_job(server, "beside", 2)

            await until(lambda: len(placed(server, "beside")) == 2)
            await until(lambda: condition(server, "odd-0").get("message"))
            await stays(lambda: not placed(server, "odd"), 0.1)

            assert running.metric("volcano_py_plugin_failures_total") >= 1
            message = condition(server, "odd-0")["message"]
    line = next(line for line in lines if line["event"] == "plugins failed")
    failure = f"plugin mine failed in node_order: {problem}"
    (told,) = line["failures"]
    assert told.startswith(failure)
    assert told.endswith("; PodGroup default/odd waits for the next cycle")
    assert re.search(rf" \({re.escape(__file__)}:\d+\)", told), "the log names file and line"
    assert line["what_to_do"].startswith(WHAT_TO_DO)
    assert failure in message
    assert __file__ not in message, "the condition does not"


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (CannotBeMade, "plugin mine failed in __init__: OSError: no such device"),
        (FailsToOpen, "plugin mine failed in on_session_open: ZeroDivisionError: division by zero"),
    ],
)
async def test_a_scoring_plugin_that_fails_to_open_is_left_out_and_named(
    server: ApiServer, plugin: type[Plugin], problem: str
) -> None:
    put_node(server, "n1", cpu=8)
    with capture_logs() as lines:
        async with scheduler(server.url, policy=policy(plugin)):
            put_job(server, "odd", 1, cpu=ODD)
            put_job(server, "beside", 2)

            await until(lambda: len(placed(server)) == 3)
            await until(lambda: any(line["event"] == "plugins failed" for line in lines))

    line = next(line for line in lines if line["event"] == "plugins failed")
    (told,) = line["failures"]
    assert told.startswith(problem)
    assert line["what_to_do"].startswith(WHAT_TO_DO)


async def test_a_plugin_that_hangs_for_a_second_is_named_with_its_seconds_and_nothing_else_stops(
    server: ApiServer,
) -> None:
    put_node(server, "n1", cpu=8)
    with capture_logs() as lines:
        async with scheduler(server.url, policy=policy(HangsASecond)) as running:
            put_job(server, "before", 1)
            await until(lambda: placed(server, "before"))
            put_job(server, "odd", 1, cpu=ODD)
            await until(lambda: running.daemon.cycles.running_for_s > 0.2)
            put_node(server, "n2")
            await until(lambda: len(running.daemon.cache.store.nodes) == 2)  # watches go on meanwhile
            assert running.daemon.cycles.running_for_s > 0.2
            HangsASecond.seen.set()
            put_job(server, "beside", 2)

            await until(lambda: len(placed(server)) == 4)
            assert running.metric("volcano_py_plugin_slow_cycles_total", {"plugin": "mine"}) >= 1

    (line,) = (line for line in lines if line["event"] == "plugin is slow")
    assert (line["plugin"], line["hook"]) == ("mine", "node_order")
    assert line["longest_call_s"] >= 1.0
    assert "leave the plugin out of the configuration" in line["what_to_do"]
