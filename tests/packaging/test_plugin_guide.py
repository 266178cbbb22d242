"""The plugin authors' guide: its plugins, configuration, commands and test work, and what it says of data is so."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tests.packaging.pages import DOCS, REPOSITORY, rows
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.contract import POINTS, Plugin, VictimCandidates
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import resolve
from volcano_py.testing import Scenario, a_job, a_node, a_policy, a_priority_class, trial
from volcano_py.testing.objects import EPOCH

PAGE = DOCS / "plugins.md"
PLUGIN, COUNTER, FILTER, TEST, COMPARISON = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
(CONF,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


def defined_in(text: str, name: str) -> Any:
    """Return a class that an example defines."""
    module: dict[str, Any] = {"__name__": "example"}
    exec(compile(text, "example.py", "exec"), module)
    return module[name]


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plugin of the guide, in the table."""
    found = defined_in(PLUGIN, "Smallest")
    monkeypatch.setitem(PLUGINS, "smallest", found)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the guide, as an author has them."""
    (tmp_path / "smallest.py").write_text(PLUGIN)
    (tmp_path / "test_smallest.py").write_text(TEST)
    (tmp_path / "scheduler.conf").write_text(CONF)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder}{os.pathsep}{REPOSITORY}"
    # An author's test needs none of the plugins of pytest that are installed here; importing them takes a second.
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_the_plugin_prefers_the_smallest_node_that_has_room(plugin: Any):
    nodes = [a_node("large", cpu=64), a_node("middle", cpu=8), a_node("small", cpu=4)]

    result = Scenario(*nodes, a_job("train", tasks=4, cpu=2), conf=CONF).run()

    assert sorted(result.placements.values()) == ["middle", "middle", "small", "small"]


@pytest.mark.usefixtures("plugin")
def test_the_configuration_says_nothing_to_warn_about():
    policy = resolve(parse_conf(CONF, "scheduler.conf"))

    assert (policy.warnings, policy.missing) == ((), ())


def test_the_plugin_passes_its_trial(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(folder)

    assert trial.main(["--plugins-dir", "."]) == 0
    assert capsys.readouterr().out == "smallest: works (smallest.py)\n"


def test_the_scheduler_takes_the_folder(folder: Path):
    flags = ("--plugins-dir=.", "--scheduler-conf=scheduler.conf", "--kubeconfig=absent")
    ended = run(folder, "-m", "volcano_py.cli.vc_scheduler", *flags)

    assert ended.returncode == 2
    assert "unknown plugin" not in ended.stderr
    assert "check --kubeconfig" in ended.stderr


def test_the_test_passes(folder: Path):
    ended = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_smallest.py")

    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_comparison_prints_what_the_guide_says(folder: Path):
    (folder / "compare.py").write_text(COMPARISON)
    ended = run(folder, "compare.py")

    printed = ended.stdout.splitlines()
    assert len(printed) == 2, ended.stderr
    assert all(f"`{line}`" in PAGE.read_text() for line in printed)


def test_the_counter_counts_what_stays_and_forgets_what_is_undone() -> None:
    counted: dict[str, float] = {}

    class TakeTurns(defined_in(COUNTER, "TakeTurns")):  # type: ignore[misc]
        def on_session_open(self, ssn: Any) -> None:
            super().on_session_open(ssn)
            self._ssn = ssn

        def on_session_close(self, ssn: Any) -> None:
            names = {int(row): ssn.jobs.record(row).key.name for row in ssn.jobs.present()}
            counted.update({name: self._placed[0, row] for row, name in names.items()})

    fits = {"created": 1, "cpu": 1}
    Scenario(
        a_node("n1", cpu=4),
        a_job("half", tasks=3, cpu=2),  # two of its three tasks fit
        a_job("one", tasks=4, min_available=1, **fits),
        a_job("other", tasks=4, min_available=1, **fits),
        plugins=["gang", TakeTurns, "predicates"],
    ).step()

    assert counted == {"half": 0, "one": 2, "other": 2}


@pytest.mark.parametrize(("ran_for_s", "evicted"), [(None, []), (3590, []), (3600, ["kept-1"])])
def test_the_filter_protects_for_an_hour(ran_for_s: float | None, evicted: list[str]) -> None:
    started = None if ran_for_s is None else EPOCH - timedelta(seconds=ran_for_s)
    kept = a_job("kept", tasks=2, min_available=1, cpu=1, node="n1", phase="Running", labels={"keep": "first-hour"})
    pods = [replace(pod, status=replace(pod.status, start_time=started)) for pod in kept.pods]
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_priority_class("high", 100),
        kept.group,
        *pods,
        a_job("high", cpu=1, priority_class="high", priority=100, created=1),
        actions="enqueue, allocate, preempt",
        plugins=["priority", "gang", "predicates", defined_in(FILTER, "FirstHour")],
    )

    assert [one.task.name for one in scenario.step().evicted] == evicted


def test_the_complete_examples_pass_their_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "take_turns.py").write_text(COUNTER)
    (tmp_path / "first_hour.py").write_text(FILTER)

    assert trial.main(["--plugins-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"first-hour: works ({tmp_path / 'first_hour.py'})",
        f"take-turns: works ({tmp_path / 'take_turns.py'})",
    ]


def in_sessions(check: Callable[[Any], None]) -> Callable[[], None]:
    """Let a plugin of others check what it reads in sessions of the trial."""

    class Reads(Plugin):
        name = "reads"

        def equivalence_keys(self, ssn: Any) -> Any:
            return ssn.tasks.job + 1

        def on_session_open(self, ssn: Any) -> None:
            check(ssn)

    def test() -> None:
        assert trial.try_out(a_policy("enqueue, allocate", ["gang", Reads])).problems == {}

    return test


def in_backticks(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@in_sessions
def test_the_columns_exist_and_have_their_shapes(ssn: Any) -> None:
    sizes = {f"n_{name}": len(getattr(ssn, name)) for name in ("resources", "nodes", "tasks", "jobs", "queues")}
    sizes["n_statuses"] = len(TaskStatus)
    for names, shapes, _ in rows(PAGE, "Columns"):
        columns, said = in_backticks(names), in_backticks(shapes)
        for column, shape in zip(columns, said if len(said) > 1 else said * len(columns), strict=True):
            found = np.asarray(eval(f"ssn.{column}", {"ssn": ssn}))
            assert found.shape == eval(shape, dict(sizes)), column


@in_sessions
def test_records_have_their_fields_and_one_leads_to_another(ssn: Any) -> None:
    row = int(np.flatnonzero(ssn.tasks.job >= 0)[0])
    while ssn.jobs.records[ssn.tasks.job[row]] is None:
        row += 1
    task = ssn.task_of(ssn.tasks.shape[row])
    job = ssn.tasks.job[row]
    for record, fields in rows(PAGE, "Records"):
        (text,) = in_backticks(record)
        at = {"ssn": ssn, "row": job if "jobs" in text else 0 if "nodes" in text else row, "name": "red", "task": task}
        found = eval(text, at)
        assert [name for name in in_backticks(fields) if not hasattr(found, name)] == []

    assert task.equivalence_key("reads") - 1 == job
    assert row in ssn.rows_of_job(job)
    assert ssn.job(job).record is ssn.jobs.record(job)
    assert list(ssn.queues.values())[ssn.queue_of_job[job]].name == ssn.jobs.record(job).queue
    candidates = VictimCandidates(ssn, np.array([row]), np.array([0]))
    assert (candidates.rows, candidates.jobs, candidates.nodes) == ([row], [job], [ssn.tasks.node[row]])
    assert candidates.queues == [ssn.queue_of_job[job]]


@in_sessions
def test_labels_of_nodes_and_free_rows_are_as_described(ssn: Any) -> None:
    zones = ssn.nodes.label("zone")
    labels = [record.labels.get("zone", "") for record in ssn.nodes.statics.records]
    free = [row for row, record in enumerate(ssn.tasks.records) if record is None]

    assert ssn.nodes.label("absent") is None
    assert [zones.values[code] for code in zones.codes] == labels
    assert "" in labels
    assert [record.name for record in ssn.nodes.statics.records] == list(ssn.nodes.names)
    assert free
    assert set(ssn.tasks.node[free]) == set(ssn.tasks.job[free]) == {-1}
    assert sorted(ssn.jobs.present()) == [row for row, one in enumerate(ssn.jobs.records) if one is not None]


def test_every_extension_point_is_listed_with_its_switch():
    listed = {cells[0].strip("`"): cells[2].strip("`") for cells in rows(PAGE, "The questions")}

    assert listed == {point.__name__: point.switch or "none" for point in POINTS}
