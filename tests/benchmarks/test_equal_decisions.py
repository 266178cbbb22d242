"""The proof that two versions decide the same: it asks about everything, and it sees what is not equal."""

import json

import pytest

from benchmarks.equal_decisions.compare import first_difference
from benchmarks.equal_decisions.confs import ACTIONS, PLUGINS
from benchmarks.equal_decisions.drive import run_case
from benchmarks.equal_decisions.generate import CYCLES, a_case, used
from benchmarks.equal_decisions.tally import Tally
from volcano_py import actions, plugins

SEEDS = range(40, 44)


@pytest.fixture(scope="module")
def results():
    cases = [json.loads(json.dumps(a_case(seed))) for seed in SEEDS]
    return [(case, json.dumps(run_case(case))) for case in cases]


def test_a_seed_always_makes_the_same_case():
    assert json.dumps(a_case(3)) == json.dumps(a_case(3)) != json.dumps(a_case(4))


def test_every_action_and_plugin_that_there_is_comes_up_often():
    found = [name for seed in range(60) for names in used(a_case(seed)["conf"]) for name in names]

    assert set(ACTIONS) == set(actions.ACTIONS)
    assert set(PLUGINS) == set(plugins.PLUGINS)
    assert min(found.count(name) for name in (*ACTIONS, *PLUGINS)) >= 5


def test_cases_run_and_decide(results):
    tally = Tally()
    for case, line in results:
        tally.add(case, line)

    assert (tally.cases, tally.cycles) == (len(SEEDS), len(SEEDS) * CYCLES)
    assert not tally.raised
    assert not tally.failures
    assert {"Bind", "SetPodGroupStatus", "SetPodCondition"} <= tally.decisions.keys()


def test_a_case_decides_the_same_twice(results):
    case, line = results[0]

    assert first_difference(line, json.dumps(run_case(case))) is None


def a_bind(result):
    return next(
        (number, one)
        for number, cycle in enumerate(result["cycles"], 1)
        for batch in cycle["decisions"]
        for one in batch
        if one["is"] == "Bind"
    )


def other_node(result):
    cycle, bind = a_bind(result)
    bind["node"] = "elsewhere"
    return cycle


def other_order(result):
    number, cycle = next(entry for entry in enumerate(result["cycles"], 1) if len(entry[1]["decisions"]) > 1)
    cycle["decisions"].reverse()
    return number


def one_decision_less(result):
    result["cycles"][4]["decisions"] = result["cycles"][4]["decisions"][:-1]
    return 5


def an_exception(result):
    result["cycles"][2]["raised"] = "IndexError: 7"
    return 3


def another_report(result):
    result["cycles"][6]["report"]["pending_tasks"] += 1
    return 7


def other_words(result):
    number, decision = next(
        (number, one)
        for number, cycle in enumerate(result["cycles"], 1)
        for batch in cycle["decisions"]
        for one in batch
        if one["is"] == "SetPodCondition"
    )
    decision["message"] = "in other words"
    return number


@pytest.mark.parametrize(
    ("tamper", "also_without_texts"),
    [
        (other_node, True),
        (other_order, True),
        (one_decision_less, True),
        (an_exception, True),
        (another_report, True),
        (other_words, False),
    ],
)
def test_the_smallest_difference_is_found_in_its_cycle(results, tamper, also_without_texts):
    line = next(line for _, line in results if '"Bind"' in line and json.loads(line)["cycles"][4]["decisions"])
    changed = json.loads(line)
    cycle = tamper(changed)

    found = first_difference(line, json.dumps(changed))
    without = first_difference(line, json.dumps(changed), texts=False)

    assert found is not None
    assert found.cycle == cycle
    assert (without is not None) == also_without_texts
    assert f"cycle {cycle}" in str(found)
