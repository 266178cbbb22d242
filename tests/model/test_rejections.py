import pytest

from volcano_py.model.rejections import Reason, Refusal, Rejection, Remedy, unavailable

CPU = Reason("resources", "insufficient-cpu", "Insufficient cpu", resolvable=True)
TAINT = Reason("predicates", "taint-toleration", "node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    ("n_nodes", "reasons", "text"),
    [
        pytest.param(0, [], "0/0 nodes are unavailable", id="no-nodes"),
        pytest.param(
            2,
            [(2, "node(s) pod number exceeded"), (1, "node(s) had untolerated taint(s)")],
            "0/2 nodes are unavailable: 1 node(s) had untolerated taint(s), 2 node(s) pod number exceeded.",
            id="as-volcano-writes-it",
        ),
        pytest.param(
            112,
            [(2, "b"), (10, "c"), (100, "a")],
            "0/112 nodes are unavailable: 10 c, 100 a, 2 b.",
            id="sorted-as-text-not-as-numbers",
        ),
    ],
)
def test_a_histogram_of_reasons(n_nodes: int, reasons: list[tuple[int, str]], text: str) -> None:
    assert unavailable(n_nodes, reasons) == text


def test_the_order_of_refusals_does_not_change_the_text() -> None:
    one, other = (Refusal(CPU, 3), Refusal(TAINT, 2)), (Refusal(TAINT, 2), Refusal(CPU, 3))

    assert Rejection(5, one).message == Rejection(5, other).message
    assert Rejection(5, one).message == (
        "0/5 nodes are unavailable: 2 node(s) had untolerated taint(s), 3 Insufficient cpu."
    )


def test_a_reason_that_is_not_about_nodes_has_no_node_count() -> None:
    assert Rejection(5, blocked=Reason("allocate", "queue-limit", "the queue is full")).message == "the queue is full"


def test_an_eviction_can_remove_only_a_resolvable_reason() -> None:
    assert CPU.remedy is Remedy.EVICTION
    assert TAINT.remedy is Remedy.NONE
