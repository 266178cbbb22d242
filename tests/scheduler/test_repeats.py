"""A cycle says whether the next one would decide nothing, as long as the cluster stays as it is.

Every scenario checks the promise itself: `testing.scenario` fails if a cycle decides something after it was given.
"""

import math

from volcano_py.actions import ACTIONS
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.testing import a_cluster, a_group, a_node, a_pod

CONF = """
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: proportion
  - name: {plugin}
"""


class Foreign(Plugin):
    """A plugin that is not built in."""

    name = "foreign"


class Looks(Plugin):
    """A plugin that fails."""

    name = "looks"

    def on_session_open(self, ssn):
        raise ZeroDivisionError


def repeats(*objects, plugin="nodeorder", actions="enqueue, allocate, backfill", **tables):
    """Run cycles whose statuses nobody writes, and return whether each one says that the next one is the same."""
    cluster = a_cluster(a_node("n1", cpu=2), *objects)
    policy = resolve(parse_conf(CONF.format(plugin=plugin, actions=actions), "conf"), **tables)
    memory, said = Memory(), []
    for cycle in range(3):
        emitted = []
        memory, report = run_cycle(cluster.snapshot(), policy, CycleClock(float(cycle)), 0, memory, emitted.append)
        said.append(report.repeats_until == math.inf)
        assert not emitted or report.repeats_until == -math.inf
    return said


NOBODY_WAITS = (a_pod("runs", node="n1", group="g", cpu=1), a_group("g", min_available=1, phase="Running"))


def test_a_cycle_that_decides_nothing_and_remembers_nothing_new_repeats():
    assert repeats() == [True, True, True]


def test_a_cycle_that_decides_something_does_not_repeat():
    waiting = (a_pod("big", group="g", cpu=8), a_group("g", min_available=1, phase="Inqueue"))

    assert repeats(*waiting) == [False, False, False]  # nobody writes its status, so every cycle decides it again


def test_plugins_that_look_at_the_time_are_asked_again():
    assert repeats(plugin="sla") == [False, False, False]
    assert repeats(plugin="tdm") == [False, False, False]


def test_plugins_that_fail_are_asked_again():
    assert repeats(plugin="looks", plugins={**PLUGINS, "looks": Looks}) == [False, False, False]


def test_plugins_and_actions_of_others_are_asked_again():
    assert repeats(plugin="foreign", plugins={**PLUGINS, "foreign": Foreign}) == [False] * 3


def test_all_actions_of_ours_repeat():
    for action in ACTIONS:
        assert repeats(actions=action) == [True, True, True], action
