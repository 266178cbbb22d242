"""What pods say that wait for their queue: which limit of which queue, how much is asked, held and allowed."""

from collections.abc import Sequence
from typing import Any

import pytest

from volcano_py.testing import Scenario, a_job, a_node, a_queue

CAPACITY = (("priority", "gang"), ("predicates", "capacity", "nodeorder"))
TREE = (("priority", "gang"), ("predicates", {"name": "capacity", "enableHierarchy": True}, "nodeorder"))
PROPORTION = (("priority", "gang"), ("predicates", "proportion", "nodeorder"))


def message(plugins: Any, queues: Sequence[Any], *jobs: Any, cpu: int = 20) -> str:
    """Return what the last pod of the last job says."""
    scenario = Scenario(a_node("n1", cpu=cpu, gpu=8), *jobs, queues=queues, plugins=plugins)
    return scenario.run().conditions[jobs[-1].pods[-1].metadata.name]


def elastic(tasks: int, queue: str = "q", **more: Any) -> Any:
    return a_job(f"j-{queue}", queue=queue, tasks=tasks, **{"cpu": 1, "min_available": 1, **more})


@pytest.mark.parametrize("plugins", [CAPACITY, PROPORTION], ids=["capacity", "proportion"])
def test_the_capability_of_the_queue(plugins: Any) -> None:
    text = message(plugins, [a_queue("q", capability={"cpu": "2500m"})], elastic(3))

    assert text == 'queue "q" may not hold more: 1 cpu asked, 2 held, 2.5 allowed (its capability)'


def test_what_a_queue_deserves() -> None:
    text = message(PROPORTION, [a_queue("q"), a_queue("r")], elastic(4, "r"), elastic(4), cpu=6)

    assert text == 'queue "q" may not hold more: 1 cpu asked, 3 held, 3 deserved'


@pytest.mark.parametrize("plugins", [CAPACITY, PROPORTION], ids=["capacity", "proportion"])
def test_the_text_of_a_gang_counts_all_missing_tasks_and_no_tentative_ones(plugins: Any) -> None:
    queues = [a_queue("q", capability={"cpu": 3})]
    text = message(plugins, queues, elastic(1), a_job("gang", queue="q", tasks=4, cpu=1, created=1))

    assert text == 'queue "q" may not hold more: 4 cpu asked, 1 held, 3 allowed (its capability)'


def test_several_resources_are_all_named() -> None:
    queues = [a_queue("q", capability={"cpu": 1, "nvidia.com/gpu": 2})]
    text = message(CAPACITY, queues, elastic(2, gpu=2))

    assert text == (
        'queue "q" may not hold more: 1 cpu asked, 1 held, 1 allowed (its capability); '
        "2 nvidia.com/gpu asked, 2 held, 2 allowed (its capability)"
    )


def test_the_capability_of_a_queue_above() -> None:
    queues = [
        a_queue("root"),
        a_queue("data", parent="root", capability={"cpu": 3}),
        a_queue("q", parent="data"),
        a_queue("r", parent="data"),
    ]
    text = message(TREE, queues, elastic(2, "r"), elastic(4, created=1))

    assert text == 'queue "q" may not hold more: 1 cpu asked, 3 held, 3 allowed (capability of queue "data" above)'


def test_the_guarantees_of_others() -> None:
    queues = [a_queue("q"), a_queue("sure", guarantee={"cpu": 4})]
    text = message(CAPACITY, queues, elastic(4), cpu=6)

    assert text == (
        'queue "q" may not hold more: 1 cpu asked, 2 held, 2 allowed (its part after the guarantees of others)'
    )


@pytest.mark.parametrize("plugins", [CAPACITY, PROPORTION], ids=["capacity", "proportion"])
def test_a_queue_that_is_closed(plugins: Any) -> None:
    text = message(plugins, [a_queue("q", state="Closed")], elastic(1, phase="Inqueue"))

    assert text == 'queue "q" is Closed, not Open: it takes no new pods'


def test_waiting_pods_are_rewritten_once_a_minute_at_most_when_other_pods_start_or_end() -> None:
    queues = [a_queue("q", capability={"cpu": 8})]
    waiting = [a_job(f"w{number}", queue="q", tasks=1, cpu=5, created=9) for number in range(5)]
    scenario = Scenario(a_node("n1", cpu=20), elastic(6), queues=queues, plugins=CAPACITY)
    scenario.run()
    scenario.add(*waiting)
    before = scenario.run()

    scenario.finish("j-q-0")
    after = scenario.run()

    texts = {before.conditions[f"w{number}-0"] for number in range(5)}
    assert texts == {'queue "q" may not hold more: 5 cpu asked, 6 held, 8 allowed (its capability)'}
    assert {after.conditions[f"w{number}-0"] for number in range(5)} == texts
    assert not [event for event in after.events[len(before.events) :] if event.name.startswith("w")]
    assert after.why_not("w0").message == before.why_not("w0").message  # the report says what users can read

    scenario.wait(60)
    assert {scenario.run().conditions[f"w{number}-0"] for number in range(5)} == {
        texts.pop().replace("6 held", "5 held")
    }
    assert "5 cpu asked, 5 held" in scenario.run().why_not("w0").message


def test_a_change_of_the_limit_is_reported_at_once() -> None:
    scenario = Scenario(
        a_node("n1", cpu=20),
        elastic(3, cpu=2),
        queues=[a_queue("q", capability={"cpu": 3})],
        plugins=CAPACITY,
    )
    scenario.run()

    scenario.add(a_queue("q", capability={"cpu": "3500m"}))

    assert "3.5 allowed" in scenario.run().conditions["j-q-2"]


def test_a_queue_that_cannot_be_read_is_not_reported_as_missing() -> None:
    text = message(CAPACITY, [a_queue("q", deserved={"cpu": "-1"})], elastic(1))

    assert "spec.deserved[cpu]: '-1' is negative: write 0 or more" in text
    assert "does not exist" not in text
