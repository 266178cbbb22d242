"""Plugins are tried on a small cluster before anybody relies on them."""

import time

import numpy as np
import pytest

from volcano_py.framework.contract.extension_points import JobValid, NodeOrder, Predicate
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.scheduler.policy import Policy
from volcano_py.testing import a_policy
from volcano_py.testing.trial import main, try_out


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
        time.sleep(0.03)

    def node_order(self, task, nodes):
        return np.zeros(len(nodes))


def policy(plugin: type[Plugin]) -> Policy:
    return a_policy("enqueue, allocate, backfill", ["gang", "predicates", plugin])


def test_a_working_plugin_passes_the_trial():
    assert list(try_out(policy(Good))) == []


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(Raises, "plugin raises failed in job_valid: ZeroDivisionError: no tasks", id="raises"),
        pytest.param(SaysNan, "plugin says-nan failed in node_order: answered with NaN or infinity", id="nan"),
        pytest.param(WrongShape, "plugin wrong-shape failed in predicate: expected an array of shape", id="shape"),
    ],
)
def test_a_plugin_that_fails_is_named_with_the_question(plugin, problem):
    assert any(problem in said for said in try_out(policy(plugin)))


def test_a_slow_plugin_is_named_with_its_time(monkeypatch):
    monkeypatch.setattr("volcano_py.testing.trial.SLOW_S", 0.02)

    assert any(text.startswith("plugin slow took 0.") for text in try_out(policy(Slow)))


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
