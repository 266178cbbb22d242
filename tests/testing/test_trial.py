"""Plugins are tried on a small cluster before anybody relies on them."""

import re
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.testing.answers_all import HARMLESS, answering
from volcano_py.daemon import plugins as daemon
from volcano_py.framework.contract.extension_points import (
    JobValid,
    NodeOrder,
    Predicate,
    Preemptable,
    Reclaimable,
    UnifiedEvictable,
    VictimFilter,
    VictimTasks,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler.policy import Policy
from volcano_py.testing import a_policy, trial
from volcano_py.testing.trial import ACTIONS, COMPLETE, main, supervised, tier_with, try_out


@pytest.fixture(autouse=True)
def only_our_own_time_counts(monkeypatch):
    """Measure what plugins cost by the time of the processor: others may keep it busy."""
    monkeypatch.setattr(trial, "time", SimpleNamespace(perf_counter=time.process_time))


class Good(Plugin, NodeOrder):
    name = "good"

    def node_order(self, task, nodes):
        return np.zeros(len(nodes))


class Raises(Plugin, JobValid):
    name = "raises"

    def job_valid(self, job):
        raise ZeroDivisionError("no tasks")


class SaysNan(Plugin, NodeOrder):
    name = "says-nan"

    def node_order(self, task, nodes):
        return np.full(len(nodes), np.nan)


class WrongShape(Plugin, Predicate):
    name = "wrong-shape"
    reasons = ()

    def predicate(self, task, nodes):
        return np.zeros(len(nodes) + 1, dtype=np.int16)


class Slow(Plugin, NodeOrder):
    name = "slow"

    def on_session_open(self, ssn):
        end = time.process_time() + 0.03
        while time.process_time() < end:
            pass

    def node_order(self, task, nodes):
        return np.zeros(len(nodes))


def policy(plugin: type[Plugin]) -> Policy:
    return a_policy("enqueue, allocate, backfill", ["gang", "predicates", plugin])


def test_a_working_plugin_passes_the_trial():
    assert try_out(policy(Good)).problems == {}


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(Raises, "plugin raises failed in job_valid: ZeroDivisionError: no tasks", id="raises"),
        pytest.param(SaysNan, "plugin says-nan failed in node_order: answered with NaN or infinity", id="nan"),
        pytest.param(WrongShape, "plugin wrong-shape failed in predicate: expected an array of shape", id="shape"),
    ],
)
def test_a_plugin_that_fails_is_named_with_the_question(plugin, problem):
    (said,) = try_out(policy(plugin)).problems.values()
    assert problem in said
    assert f"({__file__}:" in said


def test_a_slow_plugin_is_named_with_its_time(monkeypatch):
    monkeypatch.setattr("volcano_py.testing.trial.SLOW_S", 0.02)

    (said,) = try_out(policy(Slow)).problems.values()
    assert said.startswith("plugin slow failed in on_session_open: it took 0.")
    assert f"({__file__}:{Slow.on_session_open.__code__.co_firstlineno})" in said


def test_a_plugin_that_fails_in_its_constructor_is_named_with_its_line():
    class Unmade(Good):
        def __init__(self, arguments):
            raise ZeroDivisionError("no weight")

    (said,) = try_out(policy(Unmade)).problems.values()
    assert said.startswith("plugin good failed in __init__: ZeroDivisionError: no weight")
    assert f"({__file__}:{Unmade.__init__.__code__.co_firstlineno + 1})" in said


@pytest.fixture
def smallest(tmp_path):
    text = "from volcano_py.framework.contract.extension_points import NodeOrder\n"
    text += "from volcano_py.framework.contract.plugin import Plugin\n"
    text += 'class Smallest(Plugin, NodeOrder):\n    name = "smallest"\n'
    text += "    def node_order(self, task, nodes):\n        return nodes.idle[0] / 1000\n"
    (tmp_path / "smallest.py").write_text(text)
    return tmp_path


def test_the_command_reports_success(capsys, smallest):
    assert main(["--plugins-dir", str(smallest)]) == 0
    assert capsys.readouterr().out == f"smallest: works ({smallest / 'smallest.py'})\n"


def test_the_command_reports_failures(capsys, smallest):
    (smallest / "smallest.py").write_text((smallest / "smallest.py").read_text().replace("/ 1000", "/ nodes"))

    assert main(["--plugins-dir", str(smallest)]) == 1
    assert "plugin smallest failed in node_order: TypeError" in capsys.readouterr().out


def test_the_command_runs_a_configuration(capsys, smallest, tmp_path):
    conf = tmp_path / "conf.yaml"
    conf.write_text("actions: allocate\ntiers:\n- plugins:\n  - name: smallest\n  - name: smalest\n")

    assert main(["--plugins-dir", str(smallest), "--scheduler-conf", str(conf)]) == 2
    assert f'{conf}:5: unknown plugin "smalest"' in capsys.readouterr().out


def test_the_trial_asks_every_question():
    plugin = answering()

    tried = try_out(*(a_policy(actions, [tier_with(plugin)]) for actions in ACTIONS))

    assert tried.problems == {}
    assert tried.not_asked(plugin) == []


VICTIMS = [Preemptable, Reclaimable, UnifiedEvictable, VictimTasks]


@pytest.mark.parametrize("questions", [[], *([one] for one in VICTIMS), VICTIMS[:2]])
def test_the_trial_asks_a_filter_of_victims_whatever_else_the_plugin_answers(questions):
    methods = {name: HARMLESS[name] for point in (*questions, VictimFilter) for name in point.__abstractmethods__}
    plugin = type("Filter", (Plugin, *questions, VictimFilter), {"name": "filter", **methods})

    tried = try_out(*(a_policy(actions, [tier_with(plugin)]) for actions in ACTIONS))

    assert tried.problems == {}
    assert tried.not_asked(plugin) == []


def test_the_command_names_the_questions_that_nobody_asked(capsys, smallest, tmp_path):
    conf = tmp_path / "conf.yaml"
    conf.write_text("actions: enqueue\ntiers:\n- plugins:\n  - name: smallest\n")

    assert main(["--plugins-dir", str(smallest), "--scheduler-conf", str(conf)]) == 0
    assert "; not asked: node_order\n" in capsys.readouterr().out


def test_a_plugin_that_the_configuration_does_not_name_is_not_tried(capsys, smallest, tmp_path):
    conf = tmp_path / "conf.yaml"
    conf.write_text("actions: allocate\ntiers:\n- plugins:\n  - name: gang\n")

    assert main(["--plugins-dir", str(smallest), "--scheduler-conf", str(conf)]) == 0
    assert capsys.readouterr().out.startswith("smallest: not tried: the configuration does not name it")


def test_a_folder_without_plugins_is_nothing_to_try(capsys, tmp_path):
    assert main(["--plugins-dir", str(tmp_path)]) == 2
    assert capsys.readouterr().out.startswith(f"no plugins found: {tmp_path} has none")


def test_a_problem_is_told_once_and_not_for_each_job(capsys, smallest):
    (smallest / "smallest.py").write_text((smallest / "smallest.py").read_text().replace("/ 1000", "/ nodes"))

    main(["--plugins-dir", str(smallest)])

    (problem,) = capsys.readouterr().out.splitlines()
    assert problem.startswith("plugin smallest failed in node_order: TypeError: unsupported operand")
    assert problem.endswith(f"({smallest / 'smallest.py'}:6)")


@pytest.mark.parametrize("code", [0, 7])
def test_a_plugin_that_ends_the_process_does_not_pass(capsys, smallest, code):
    file = smallest / "smallest.py"
    file.write_text(file.read_text().replace("return ", f"import os; os._exit({code}); return "))

    assert supervised(["--plugins-dir", str(smallest)]) == (code or 1)
    assert f"a plugin ended its process with code {code}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True: pass", id="busy"),
        pytest.param("import threading; threading.Event().wait()", id="in-a-library"),
    ],
)
def test_a_plugin_that_hangs_is_named_with_its_line(capsys, smallest, code):
    file = smallest / "smallest.py"
    file.write_text(file.read_text().replace("        return ", f"        {code}\n        return "))

    assert supervised(["--plugins-dir", str(smallest), "--limit", "3"]) == 1
    text = f"{file}:6: the plugin hangs or is slow: the trial has not ended after 3 s\n"
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        pytest.param("", "define parse and __init__", id="nothing"),
        pytest.param("def __init__(self, arguments): pass", "define parse", id="no-parse"),
        pytest.param(
            "def __init__(self, arguments): pass\n    @classmethod\n    def parse(cls, arguments, warn): pass",
            "",
            id="both",
        ),
    ],
)
def test_arguments_that_nobody_reads_are_a_warning(capsys, smallest, body, warning):
    file = smallest / "smallest.py"
    added = f'    arguments = frozenset({{"weight"}})\n    {body}\n    def node_order'
    file.write_text(file.read_text().replace("    def node_order", added))

    assert main(["--plugins-dir", str(smallest)]) == 0
    text = f"; warning: its arguments (weight) have no effect: {warning}" if warning else ""
    assert capsys.readouterr().out == f"smallest: works ({file}){text}\n"


def test_help_is_not_taken_for_a_trial_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        supervised(["--help"])

    said = capsys.readouterr()
    assert ended.value.code == 0
    assert "--plugins-dir" in said.out
    assert "not completed" not in said.out + said.err


def test_the_daemon_knows_how_a_trial_ends():
    assert (daemon.COMPLETE, daemon.ALONE) == (COMPLETE, trial.ALONE)


CORRUPTING = [
    pytest.param("node_order", "score = args[1].idle[0]; score *= 100; return score", id="idle"),
    pytest.param("on_session_open", "args[0].nodes.allocatable[0] = 1", id="allocatable"),
    pytest.param("on_session_open", "args[0].queues.clear()", id="queues"),
    pytest.param("on_session_open", "args[0].total[:] = 0", id="total"),
    pytest.param("on_session_open", "args[0].jobs.block[:] = 0", id="jobs"),
    pytest.param("on_session_open", "args[0].tasks.status[:] = 0", id="tasks"),
    pytest.param("on_session_open", "args[0].tasks = None", id="replaced"),
    pytest.param("on_session_open", "args[0].accounts.track_queues().taken[:] = 0", id="accounts"),
    pytest.param("on_session_open", "args[0].nodes.statics.unschedulable[:] = True", id="statics"),
    pytest.param("on_session_open", "args[0].nodes.label('zone').codes[:] = 0", id="labels"),
    pytest.param("on_session_open", "args[0].nodes.statics.labels.clear()", id="all-labels"),
    pytest.param("node_order", "args[0].request[:] = 0", id="request"),
    pytest.param("job_valid", "args[0].counts[:] = 0", id="counts"),
    pytest.param("preemptable", "args[0].job.counts[:] = 0", id="preemptor"),
    pytest.param("unified_evictable", "args[0].gains[:] = 0", id="gains"),
    pytest.param("placed", "args[3][:] = 0", id="placed"),
    pytest.param("domain_order", "args[1].used[:] = 0", id="domains"),
    pytest.param("near_order", "args[4][:] = True", id="group"),
]


@pytest.mark.parametrize(("method", "code"), CORRUPTING)
def test_a_plugin_that_writes_into_the_session_is_told_its_own_line(tmp_path, method, code):
    file = tmp_path / "writes.py"
    file.write_text(f"def {method}(self, *args):\n    {code}\n")
    space = {"__name__": __name__}
    exec(compile(file.read_text(), str(file), "exec"), space)
    plugin = answering(__module__=__name__, **{method: space[method]})

    problems = try_out(*(a_policy(actions, [tier_with(plugin)]) for actions in ACTIONS)).problems

    assert f"({file}:2)" in problems["all", method]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        pytest.param("[one.label_map for one in ssn.tasks.records]", "'NoneType' .* 'label_map'", id="tasks"),
        pytest.param("[one.queue for one in ssn.jobs.records]", "'NoneType' .* 'queue'", id="jobs"),
        pytest.param("[ssn.jobs.record(row) for row in ssn.tasks.job if row >= 0]", "has no PodGroup", id="no-group"),
    ],
)
def test_a_plugin_that_forgets_free_rows_does_not_pass(code, problem):
    space: dict[str, Any] = {}
    exec(f"def forgets(self, ssn):\n    {code}", space)

    class Forgets(Good):
        on_session_open = space["forgets"]

    (said,) = try_out(policy(Forgets)).problems.values()

    assert re.search(f"plugin good failed in on_session_open: .*{problem}", said)


@pytest.mark.parametrize("name", PLUGINS)
def test_what_built_in_plugins_answer_is_valid_and_needs_no_right_to_write(name):
    plugin = type("Ours", (PLUGINS[name],), {"name": f"our-{name}", "__module__": __name__})
    tier = [*(one for one in tier_with(plugin) if one != name)]

    tried = try_out(*(a_policy(actions, [tier]) for actions in ACTIONS))

    assert tried.problems == {}
