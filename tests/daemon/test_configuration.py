"""The configuration that is in force, while its file is changed, broken and mended."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.controlplane.ports import free_port
from tests.daemon.cluster import CONF, event_reasons, group, placed, put_group, put_job, put_node, scheduler
from tests.effects.waiting import until
from volcano_py.conf.loader import parse_conf
from volcano_py.conf.reload import ConfFile, built_in
from volcano_py.conf.schema import ConfError
from volcano_py.daemon.configuration import Configuration
from volcano_py.metrics.conf import ConfMetrics
from volcano_py.runtime.clock import RealClock
from volcano_py.runtime.options import ListenAddress
from volcano_py.scheduler import Policy, resolve
from volcano_py.scheduler.third_party import PluginFolder

WEIGHTED = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.weight: 7\n'
PLAIN = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: binpack\n'
MINE = """
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import Plugin

class Mine(Plugin, NodeOrder):
    name = "mine"

    def node_order(self, task, nodes):
        return nodes.idle[0]
"""
UNKNOWN = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gnag\n'


class Watched:
    """A configuration file that is watched, and what came of it."""

    def __init__(self, path: Path, text: str, configuration: Configuration | None = None) -> None:
        self.path = path
        path.write_text(text)
        self.configuration = configuration or Configuration.of_file(ConfFile(path))
        self.registry = CollectorRegistry()
        self.policies: list[Policy] = []

    async def watch(self) -> None:
        metrics = ConfMetrics(self.registry)
        await self.configuration.watch(self.policies.append, metrics, clock=RealClock(), every_s=0.01)

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"volcano_py_conf_{name}", labels)

    @property
    def error(self) -> dict[str, str] | None:
        error: dict[str, str] | None = self.configuration.shown()["lastError"]
        return error


@asynccontextmanager
async def watched(path: Path, text: str, configuration: Configuration | None = None) -> AsyncIterator[Watched]:
    found = Watched(path, text, configuration)
    task = asyncio.create_task(found.watch())
    await until(lambda: found.metric("missing") is not None)
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.conf"


async def test_a_changed_file_gives_a_new_policy(path):
    async with watched(path, PLAIN) as conf:
        path.write_text(PLAIN.replace("binpack", "gang"))
        await until(lambda: conf.policies)

        ((((plugin, _),),),) = (conf.policies[0].instantiate(),)
        assert plugin.name == "gang"
        assert conf.metric("reloads_total", result="applied") == 1


async def test_a_file_that_is_read_again_and_has_not_changed_changes_nothing(path):
    async with watched(path, PLAIN) as conf:
        with capture_logs() as lines:
            conf.configuration.read_again()
            await until(lambda: any("nothing changes" in line["event"] for line in lines))

        assert conf.policies == []


async def test_a_file_that_is_refused_is_reported_again_when_it_is_read_again(path):
    async with watched(path, PLAIN) as conf:
        path.write_text(UNKNOWN)
        await until(lambda: conf.error)
        conf.configuration.read_again()
        await until(lambda: conf.metric("reloads_total", result="refused") == 2)


async def test_reading_again_loads_the_plugins_of_the_folder_again(tmp_path, path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text(MINE)
    path.write_text(PLAIN.replace("binpack", "mine"))
    configuration = Configuration.of_file(ConfFile(path), PluginFolder(tmp_path / "plugins"))
    async with watched(path, PLAIN.replace("binpack", "mine"), configuration) as conf:
        conf.configuration.read_again()
        await until(lambda: conf.policies, timeout_s=20)


async def test_an_argument_that_is_removed_goes_back_to_its_default(path):
    async with watched(path, WEIGHTED) as conf:
        path.write_text(PLAIN)
        await until(lambda: conf.policies)

        default = resolve(parse_conf(PLAIN, "x"))
        weighted = resolve(parse_conf(WEIGHTED, "x"))
        assert conf.policies[0].tiers == default.tiers != weighted.tiers


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(UNKNOWN, 'scheduler.conf:4: unknown plugin "gnag"', id="unknown-plugin"),
        pytest.param("actions: [\n", "scheduler.conf:2: this is not YAML", id="not-yaml"),
        pytest.param("tiers: []\n", "scheduler.conf:1: actions is missing", id="no-actions"),
    ],
)
async def test_a_file_that_cannot_be_used_leaves_the_last_good_one_in_force(path, text, problem):
    async with watched(path, PLAIN) as conf:
        before = conf.configuration.policy

        with capture_logs() as lines:
            path.write_text(text)
            await until(lambda: conf.error)

        assert conf.configuration.policy is before
        assert conf.policies == []
        assert conf.error is not None
        assert problem in conf.error["problem"]
        assert [line for line in lines if line["log_level"] == "error" and problem in line["problem"]]
        assert conf.metric("reloads_total", result="refused") == 1
        assert conf.metric("refused") == 1


async def test_a_broken_file_is_counted_once_and_repairing_it_is_a_change(path):
    async with watched(path, PLAIN) as conf:
        path.write_text(UNKNOWN)
        await until(lambda: conf.error)
        await asyncio.sleep(0.05)
        assert conf.metric("reloads_total", result="refused") == 1

        path.write_text(WEIGHTED)
        await until(lambda: conf.policies)

        assert conf.error is None
        assert conf.metric("refused") == 0


async def test_restoring_the_previous_file_is_no_change(path):
    async with watched(path, PLAIN) as conf:
        path.write_text(UNKNOWN)
        await until(lambda: conf.error)

        path.write_text(PLAIN)
        await until(lambda: not conf.error)

        assert conf.policies == []
        assert conf.metric("refused") == 0


async def test_a_file_that_is_gone_leaves_the_last_good_one_in_force(path):
    async with watched(path, PLAIN) as conf:
        path.unlink()
        await until(lambda: conf.error)

        assert "cannot be read" in (conf.error or {})["problem"]
        assert conf.configuration.policy.action_names == ("allocate",)


async def test_the_hash_says_which_configuration_is_in_force(path):
    async with watched(path, PLAIN) as conf:
        before = conf.configuration.shown()["hash"]
        assert conf.metric("info", file=str(path), hash=before) == 1

        path.write_text(WEIGHTED)
        await until(lambda: conf.policies)

        after = conf.configuration.shown()["hash"]
        assert after != before
        assert conf.metric("info", file=str(path), hash=before) is None
        assert conf.metric("info", file=str(path), hash=after) == 1


async def test_what_is_missing_is_shown_and_counted(path):
    plugins = "- plugins:\n  - name: extender\n  - name: numa-aware\n"
    async with watched(path, f"actions: allocate\ntiers:\n{plugins}") as conf:
        assert conf.configuration.shown()["missing"] == ["plugin extender", "plugin numa-aware"]
        assert conf.metric("missing") == 2


def test_a_file_that_cannot_be_used_at_the_start_is_an_error(path):
    path.write_text(UNKNOWN)

    with pytest.raises(ConfError, match=r"scheduler\.conf:4: unknown plugin"):
        Configuration.of_file(ConfFile(path))


async def test_the_built_in_configuration_is_not_watched():
    configuration = Configuration(built_in())

    async with asyncio.timeout(10):
        await configuration.watch(print, ConfMetrics(CollectorRegistry()), clock=RealClock(), every_s=60)

    assert configuration.shown()["file"] == "(built-in configuration)"


# In the daemon


async def answer(port: int, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        assert response.status == 200
        return json.loads(await response.text())


async def test_a_scheduler_follows_its_file_while_it_runs(server, path):
    put_node(server, "n1", cpu=40)
    path.write_text(CONF.replace("enqueue, allocate", "enqueue"))
    port = free_port()
    async with scheduler(
        server.url,
        configuration=Configuration.of_file(ConfFile(path)),
        conf_poll_s=0.02,
        metrics_address=ListenAddress("127.0.0.1", port),
    ) as running:
        put_job(server, "first", 2)
        cycles = running.daemon.cycles.cycles
        await until(lambda: running.daemon.cycles.cycles > cycles)
        assert placed(server) == {}

        path.write_text(CONF)  # mended: what waits is placed without any other change
        await until(lambda: len(placed(server)) == 2)
        assert (await answer(port, "/debug/conf"))["actions"] == ["enqueue", "allocate"]

        path.write_text("actions: nonsense\n")  # broken: the last good one counts
        await until(lambda: running.metric("volcano_py_conf_refused"))
        put_job(server, "second", 2)
        await until(lambda: len(placed(server)) == 4)
        shown = await answer(port, "/debug/conf")
        assert shown["actions"] == ["enqueue", "allocate"]
        assert "unknown action" in shown["lastError"]["problem"]


async def test_waiting_groups_are_enqueued_once_the_configuration_has_no_enqueue_action(server, path):
    put_node(server, "n1", cpu=4)
    path.write_text(CONF + "  - name: overcommit\n")
    async with scheduler(server.url, configuration=Configuration.of_file(ConfFile(path)), conf_poll_s=0.02) as running:
        put_group(server, "big", 6, min_resources={"cpu": "600"})
        await until(lambda: "Unschedulable" in event_reasons(server, "PodGroup", "big"))
        cycles = running.daemon.cycles.cycles
        await until(lambda: running.daemon.cycles.cycles > cycles)
        assert group(server, "big").get("status", {}).get("phase", "Pending") == "Pending"

        path.write_text(CONF.replace("enqueue, ", ""))

        await until(lambda: group(server, "big").get("status", {}).get("phase") == "Inqueue")


async def test_the_reason_why_a_job_waits_can_be_queried(server):
    put_node(server, "n1", cpu=1)
    port = free_port()
    async with scheduler(server.url, health_address=ListenAddress("127.0.0.1", port)) as running:
        put_job(server, "big", 3)
        put_job(server, "other", 3)
        await until(lambda: running.metric("volcano_unschedule_job_count") == 2)
        await until(lambda: all(job.rejections for job in running.daemon.cycles.last.report.jobs.values()))

        shown = await answer(port, "/debug/jobs")
        one = await answer(port, "/debug/jobs?namespace=default&name=other")

    assert [job["name"] for job in shown["jobs"]] == ["big", "other"]
    assert [job["name"] for job in one["jobs"]] == ["other"]
    (rejection, *_) = one["jobs"][0]["rejections"]
    assert "Insufficient cpu" in rejection["message"]
    assert rejection["reasons"][0]["plugin"]


@pytest.mark.parametrize(
    "line",
    [
        "elasticsearch.password: hush",
        "elasticsearch.password: 'hush'",
        '"elasticsearch.password": "hush"  # !',
        "elasticsearch.password: pa}ss#w,hush",
        "elasticsearch.password: correct horse hush",
        'elasticsearch.password: "a\\"hush"',
        "elasticsearch.password: |-\n    hush",
        "elasticsearch.password: 'it''shush'",
        "elasticsearch.password: &x hush",
        "elasticsearch.password: hush # of yesterday\n  elasticsearch.password: today-hush",
        "? elasticsearch.password\n  : hush",
        "elasticsearch.token: hush",
        "elasticsearch.pasword: hush",
        "elasticsearch.password: !secret hush",
        "address: http://user:hush@prometheus:9090",
        "x: 1  # the password is hush",
    ],
)
async def test_a_password_is_not_shown(path, line):
    async with watched(path, f"actions: allocate\nmetrics:\n  {line}\n  type: prometheus_adaptor\n") as conf:
        shown = conf.configuration.shown()

        assert "hush" not in json.dumps(shown)
        assert "***" in shown["text"] or "#" in line
        assert "prometheus_adaptor" in shown["text"]


@pytest.mark.parametrize("value", ["2024-99-99", "!kind 5", "{? [a, b] : 1}", "12:30"])
async def test_every_configuration_in_force_can_be_shown(path, value):
    text = f"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments:\n      x: {value}\n"
    async with watched(path, text) as conf:
        assert "name: gang" in conf.configuration.shown()["text"]
