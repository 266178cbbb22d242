"""One queue, several namespaces: shares by the weights that quotas give them, where the configuration says so."""

from collections import Counter
from typing import Any

import pytest

from volcano_py.testing import Scenario, a_job, a_node, a_queue, a_quota

CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: drf
    enableNamespaceOrder: {on}
  - name: predicates
"""


def running(*objects: Any, on: bool = True, cpu: int = 40, queues: Any = None) -> dict[str, int]:
    """Return how many pods of each job run."""
    scenario = Scenario(*objects, a_node("n1", cpu=cpu), queues=queues, conf=CONF.format(on=str(on).lower()))
    placed = (name.rpartition("/")[2].rpartition("-")[0] for name in scenario.run().placements)
    return dict(Counter(placed))


def of(namespace: str, tasks: int = 60, **fields: Any) -> Any:
    return a_job(f"j-{namespace}", namespace=namespace, tasks=tasks, min_available=1, cpu=1, **fields)


def test_two_namespaces_of_weights_3_and_1_run_three_pods_to_one() -> None:  # E5
    weights = (a_quota(namespace="a", weight=3), a_quota(namespace="b", weight=1))

    found = running(of("a"), of("b"), *weights)

    assert found == {"j-a": pytest.approx(30, abs=1), "j-b": pytest.approx(10, abs=1)}
    assert sum(found.values()) == 40


def test_without_the_flag_weights_do_not_count() -> None:
    weights = (a_quota(namespace="a", weight=3), a_quota(namespace="b", weight=1))

    assert running(of("a"), of("b"), *weights, on=False) == {"j-a": 20, "j-b": 20}


def test_namespaces_share_alike_however_many_jobs_they_have() -> None:
    many = [a_job(f"j-b-{row}", namespace="b", tasks=20, min_available=1, cpu=1) for row in range(3)]

    found = running(of("a"), *many)

    assert found["j-a"] == 20


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        pytest.param([1, 3], 30, id="the-highest-of-several"),
        pytest.param([0], 20, id="nothing"),
        pytest.param([None], 20, id="none"),
    ],
)
def test_the_weight_of_a_namespace(quotas: list[Any], expected: int) -> None:
    weights = [
        a_quota(f"q{row}", namespace="a", weight=weight) for row, weight in enumerate(quotas) if weight != "many"
    ]

    assert running(of("a"), of("b"), *weights)["j-a"] == pytest.approx(expected, abs=1)


def test_the_share_that_a_namespace_does_not_request_goes_to_the_others() -> None:
    weights = (a_quota(namespace="a", weight=3),)

    assert running(of("a", tasks=6), of("b"), *weights) == {"j-a": 6, "j-b": 34}


def test_a_namespace_in_two_queues_competes_in_each_by_itself() -> None:
    """Queues of equal shares; in q1 namespace a has jobs beside b, in q2 it is alone."""
    conf = CONF.format(on="true").replace("  - name: predicates", "  - name: predicates\n  - name: proportion")
    jobs = (
        of("a", queue="q1"),
        of("b", queue="q1"),
        a_job("alone", namespace="a", tasks=60, min_available=1, cpu=1, queue="q2"),
    )
    scenario = Scenario(*jobs, a_node("n1", cpu=40), queues=[a_queue("q1"), a_queue("q2")], conf=conf)

    placed = Counter(name.rpartition("/")[2].rpartition("-")[0] for name in scenario.run().placements)

    assert placed == {"j-a": 10, "j-b": 10, "alone": 20}
