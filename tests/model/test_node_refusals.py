from volcano_py.model.node_refusals import NodeAnswer, NodeRefusal, NodeRefusals
from volcano_py.model.rejections import Remedy

NO_ROOM = NodeAnswer("Insufficient cpu", Remedy.EVICTION)
WRONG_NODE = NodeAnswer("node(s) didn't match Pod's node affinity/selector", Remedy.NONE)


def a_refusal(node: str, *answers: NodeAnswer) -> NodeRefusal:
    return NodeRefusal("ns", "t", node, answers)


def test_a_refusal_names_task_node_and_all_reasons() -> None:
    assert a_refusal("n1", NO_ROOM, WRONG_NODE).message == (
        "task ns/t on node n1 fit failed: Insufficient cpu, node(s) didn't match Pod's node affinity/selector"
    )


def test_reasons_are_counted_over_nodes() -> None:
    found = NodeRefusals((a_refusal("n1", NO_ROOM), a_refusal("n2", NO_ROOM, WRONG_NODE)))

    assert found.message == (
        "0/2 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient cpu."
    )


def test_a_hyper_node_and_a_heading_come_before_the_reasons() -> None:
    found = NodeRefusals((a_refusal("n1", NO_ROOM),), head="no luck", hyper_node="rack-1")

    assert found.message == "In hyperNode rack-1: no luck: 1 Insufficient cpu."


def test_nodes_where_no_eviction_could_help_are_listed_apart() -> None:
    found = NodeRefusals(
        (a_refusal("n3", NO_ROOM, WRONG_NODE), a_refusal("n1", WRONG_NODE), a_refusal("n2", NodeAnswer("?"), NO_ROOM))
    )

    assert found.unresolvable_nodes == ("n1", "n3")
