"""What is held for nominated tasks is taken from nodes and given back to the last unit."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.framework.sessions import a_session, job_row
from volcano_py.api.core import Pod
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import NO_NOMINATIONS
from volcano_py.testing import a_cluster, a_group, a_node, a_pod


def nominated(name: str, node: str, **pod: Any) -> Pod:
    made = a_pod(name, **pod)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, nominated_node_name=node))


PODS = st.tuples(
    st.sampled_from(["n1", "n2"]),
    st.sampled_from(["g1", "g2", "theirs"]),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
)


def free(ssn: Any) -> np.ndarray:
    """Return what each node has left in the end, shape (n_resources, n_nodes)."""
    return ssn.state.nodes.future_idle.copy()


@given(st.lists(PODS, max_size=8), st.lists(st.sampled_from(["g1", "g2"]), max_size=4), st.integers(0, 4))
def test_opening_and_closing_leaves_every_node_as_it_was(
    pods: list[tuple[str, str, int, int, bool]], openings: list[str], leaving: int
) -> None:
    old = [a_pod(f"old-{number}", cpu=1, node="n1", terminating=True) for number in range(leaving)]
    made = [
        nominated(
            f"p{number}",
            node if held else "",
            cpu=cpu,
            priority=priority,
            **({"scheduler": "kube"} if group == "theirs" else {"group": group}),
        )
        for number, (node, group, cpu, priority, held) in enumerate(pods)
    ]
    cluster = a_cluster(a_node("n1", cpu=4), a_node("n2", cpu=4), a_group("g1"), a_group("g2"), *old, *made)
    before = free(a_session(replace(cluster.snapshot(), nominated=NO_NOMINATIONS)))
    ssn = a_session(cluster.snapshot())
    held = before - free(ssn)

    asked = np.zeros_like(held)
    for node, _, cpu, _, nominated_there in pods:
        if nominated_there:
            asked[:, ssn.state.nodes.names.index(node)] += ssn.state.resources.vector({"cpu": 1000 * cpu, "pods": 1})
    assert (held == asked).all(), "what is held is what nominated pods ask for, whether it is idle or on its way"
    block, promised = ssn.state.nodes.block.copy(), in_queue(ssn)
    for name in openings:
        job = ssn.state.job(job_row(ssn, name))
        with ssn.nominated_room.open_to(job):
            assert in_queue(ssn) <= promised, "room that is open to a job does not count"
            own = [cpu for _, group, cpu, _, there in pods if there and group == name]
            assert (free(ssn).sum(axis=1) - free_of(block, ssn).sum(axis=1))[0] >= 1000 * sum(own)
        assert (ssn.state.nodes.future_idle == free_of(block, ssn)).all()
        assert in_queue(ssn) == promised <= 1000 * sum(cpu for _, group, cpu, *_ in pods if group != "theirs")
        assert not ssn.state.journal.checkpoint(), "holding is no part of any statement"


def in_queue(ssn: Any) -> float:
    """Return how much CPU nominated tasks count in the queues of their jobs."""
    promised = ssn.nominated_room.promised(np.zeros(0, dtype=np.intp))
    return 0.0 if promised is None else float(promised[0].sum())


def free_of(block: np.ndarray, ssn: Any) -> np.ndarray:
    n = len(ssn.state.resources)
    sections = [layout.section(block, which, n) for which in (layout.IDLE, layout.RELEASING, layout.PIPELINED)]
    return np.asarray(sections[0] + sections[1] - sections[2])


def test_a_placed_task_no_longer_reserves_nominated_room() -> None:
    cluster = a_cluster(a_node("n1", cpu=4), a_group("g1"), nominated("p", "n1", cpu=3, group="g1"))
    ssn = a_session(cluster.snapshot())
    job = ssn.state.job(job_row(ssn, "g1"))
    (task,) = ssn.hooks.pending.of(job.row).tolist()

    with ssn.nominated_room.open_to(job):
        statement = ssn.statement()
        statement.allocate(job.row, int(ssn.state.tasks.shape[task]), np.array([task]), np.array([0]))
        statement.commit()

    assert ssn.state.tasks.status[task] == TaskStatus.BINDING
    assert ssn.state.nodes.idle[0].tolist() == [1000]
