"""Which filters protect victims: a plugin that is nothing but a filter protects in every question and every tier."""

from typing import Any

import numpy as np
import pytest

from volcano_py.framework.contract import Plugin, Preemptable, VictimFilter, VictimTasks
from volcano_py.testing import Scenario, a_group, a_job, a_node, a_pod, a_priority_class, a_queue


class Keep(Plugin, VictimFilter):
    """Protects pods with the label ``keep``."""

    name = "keep"

    def on_session_open(self, ssn: Any) -> None:
        self._tasks = ssn.tasks

    def protected(self, preemptor: Any, candidates: Any) -> Any:
        rows = candidates.rows.tolist()
        return np.array(["keep" in self._tasks.record(row).label_map for row in rows], dtype=bool)


class FirstSay(Keep):
    first_say = True


class Asked(Keep, Preemptable):
    """The same filter in a plugin that also answers one of the questions."""

    def preemptable(self, preemptor: Any, candidates: Any) -> Any:
        return None


class Everybody(Plugin, VictimTasks):
    """Says that all running tasks must go now."""

    name = "everybody"

    def victim_tasks(self, candidates: Any) -> Any:
        return np.ones(len(candidates), dtype=bool)


GANG = ["priority", "gang"]
OTHERS = ["predicates", "proportion", "nodeorder"]


def evicted(action: str, *tiers: list[Any], kept: int = 1) -> list[str]:
    """Return who is evicted: of two pods of a low job, the one that would go first is to be kept."""
    queue = "theirs" if "reclaim" in action else "mine"
    scenario = Scenario(
        *(a_node(f"n{number}", cpu=1) for number in range(2)),
        a_priority_class("high", 100),
        a_group("low", min_available=1, phase="Running", queue=queue),
        *(
            a_pod(f"low-{n}", group="low", cpu=1, node=f"n{n}", labels={"keep": "yes"} if n < kept else {})
            for n in range(2)
        ),
        a_job("high", cpu=1, queue="mine", priority_class="high", priority=100, created=5),
        queues=[a_queue("mine"), a_queue("theirs")],
        actions=f"enqueue, allocate, {action}, backfill",
        plugins=tiers,
        recreated=False,
    )
    return [one.task.name for one in scenario.run().evicted]


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_a_filter_alone_protects(action: str) -> None:
    assert evicted(action, GANG, [*OTHERS, Keep]) == ["low-1"]
    assert evicted(action, GANG, [*OTHERS, Keep], kept=2) == []
    assert evicted(action, GANG, OTHERS) == ["low-0"]


def test_a_filter_alone_protects_from_shuffle() -> None:
    assert evicted("shuffle", [Everybody], [*OTHERS, Keep]) == ["low-1", "high-0"]


@pytest.mark.parametrize(
    ("tiers", "gone"),
    [
        pytest.param([[FirstSay], [*GANG, *OTHERS]], ["low-1"], id="first-tier"),
        pytest.param([[*GANG, FirstSay], OTHERS], ["low-1"], id="same-tier"),
        pytest.param([GANG, [*OTHERS, FirstSay]], ["low-0"], id="later-tier"),
    ],
)
def test_a_filter_alone_may_leave_the_first_say_to_earlier_tiers(tiers: list[list[Any]], gone: list[str]) -> None:
    assert evicted("preempt", *tiers) == gone


def test_a_filter_protects_only_in_the_questions_that_its_plugin_answers_and_that_are_on() -> None:
    off = {"name": Asked, "enablePreemptable": False}

    assert evicted("preempt", GANG, [*OTHERS, Asked]) == ["low-1"]
    assert evicted("preempt", GANG, [*OTHERS, off]) == ["low-0"]
    assert evicted("reclaim", GANG, [*OTHERS, Asked]) == ["low-0"]
