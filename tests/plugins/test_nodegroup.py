from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row, task_row
from tests.reference import node_groups
from tests.reference.furnished import with_node_groups
from tests.reference.node_groups import LABEL
from tests.reference.world import World, a_job, a_node, a_queue, a_shape, a_task, tasks_of
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.contract import combine
from volcano_py.framework.session import Session
from volcano_py.model.objects import NodeGroupAffinity, NodeGroupLimits, QueueRecord
from volcano_py.model.statuses import TaskStatus, members
from volcano_py.plugins import nodegroup
from volcano_py.plugins.nodegroup import NodeGroup, NodeGroupArgs
from volcano_py.scheduler import resolve

GROUPS = ("a", "b", "c")
NODES = (*(a_node(f"n-{group}", labels={LABEL: group}) for group in GROUPS), a_node("n-none"))


def session(queues: tuple[QueueRecord, ...], *tasks: object, args: NodeGroupArgs | None = None) -> Session:
    """Open a session with one job ``j-QUEUE`` of one pending task for each queue."""
    jobs = tuple(a_job(f"j-{queue.name}", queue=queue.name) for queue in queues)
    pending = tuple(task for queue in queues for task in tasks_of(f"j-{queue.name}", 1, a_shape(cpu=1)))
    return a_session(World(NODES, queues, jobs, (*pending, *tasks)), NodeGroup(args))  # type: ignore[arg-type]


def answers(ssn: Session, queue: str) -> dict[str, str | None]:
    """Return what each group says to the task of a queue's job: the code of a reason, or None."""
    task = ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, f"j-{queue}-0")]))
    found = combine.first_refusals(
        ssn.hooks.nodes.predicates, ssn.hooks.nodes.reason_offsets, len(ssn.state.nodes), task, ssn.state.nodes
    )
    return {
        name.removeprefix("n-"): ssn.hooks.nodes.reason(int(code)).code if code else None
        for name, code in zip(ssn.state.nodes.names, found, strict=True)
    }


def open_to(*groups: str, **others: object) -> QueueRecord:
    return a_queue("q", node_groups=NodeGroupAffinity(required=groups), **others)


def limits(**by_group: dict[str, float]) -> NodeGroupLimits:
    return NodeGroupLimits(by_group)


def test_a_queue_has_only_the_groups_that_it_names() -> None:
    mismatch = "affinity-mismatch"
    expected = {"a": None, "b": mismatch, "c": mismatch, "none": "label-not-found"}

    assert answers(session((open_to("a"),)), "q") == expected


@pytest.mark.parametrize(("strict", "unlabelled"), [(True, "label-not-found"), (False, None)])
def test_a_queue_without_groups_may_use_at_most_nodes_without_a_group(strict: bool, unlabelled: str | None) -> None:
    ssn = session((a_queue("q"),), args=NodeGroupArgs(strict=strict))

    assert answers(ssn, "q") == {**dict.fromkeys(GROUPS, "affinity-not-specified"), "none": unlabelled}


def test_limits_that_cannot_be_read_refuse_every_node() -> None:
    ssn = session((open_to("a", node_group_limits=NodeGroupLimits(problem="no JSON")),))

    assert set(answers(ssn, "q").values()) == {"limit-annotation-invalid"}


@pytest.mark.parametrize(
    ("cpu", "refused"),
    [
        pytest.param(2000.0, None, id="exactly-reached"),
        pytest.param(1999.0, "limit-exceeded", id="one-too-little"),
        pytest.param(1999.95, None, id="less-than-a-tenth-is-no-difference"),
    ],
)
def test_what_a_queue_holds_on_a_group_counts_against_its_limit(cpu: float, refused: str | None) -> None:
    queue = open_to("a", "b", node_group_limits=limits(a={"cpu": cpu}))
    running = a_task("r", a_shape(cpu=1), job="j-q", status=TaskStatus.RUNNING, node="n-a")
    leaving = a_task("l", a_shape(cpu=1), job="j-q", status=TaskStatus.RELEASING, node="n-a")

    found = answers(session((queue,), running, leaving), "q")
    assert (found["a"], found["b"]) == (refused, None)


def test_a_limit_counts_resources_that_the_task_does_not_ask_for() -> None:
    queue = open_to("a", node_group_limits=limits(a={"memory": 1.0}))
    running = a_task("r", a_shape(memory="1Mi"), job="j-q", status=TaskStatus.RUNNING, node="n-a")

    assert answers(session((queue,), running), "q")["a"] == "limit-exceeded"


def test_placements_of_the_session_count_on_all_nodes_of_the_group_until_they_are_taken_back() -> None:
    ssn = session((open_to("a", node_group_limits=limits(a={"cpu": 1000.0})),))
    row, task = job_row(ssn, "j-q"), np.array([task_row(ssn, "j-q-0")])
    statement = ssn.statement()
    assert answers(ssn, "q")["a"] is None

    statement.pipeline(
        row, int(ssn.state.tasks.shape[task[0]]), task, np.array([ssn.state.nodes.statics.row_of["n-a"]])
    )
    assert answers(ssn, "q")["a"] == "limit-exceeded"

    statement.discard()
    assert answers(ssn, "q")["a"] is None


def test_all_tasks_are_looked_at_once_for_all_queues_with_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    monkeypatch.setattr(nodegroup, "members", lambda statuses: looks.append(statuses) or members(statuses))
    queues = tuple(replace(open_to("a"), name=f"q{i}", node_group_limits=limits(a={"cpu": 2000.0})) for i in range(9))
    running = [
        a_task(f"r{i}", a_shape(cpu=1), job=f"j-q{i // 2}", status=TaskStatus.RUNNING, node="n-a") for i in range(7)
    ]

    ssn = session(queues, *running)

    full = ["q0", "q1", "q2"]
    assert [queue.name for queue in queues if answers(ssn, queue.name)["a"] == "limit-exceeded"] == full
    assert len(looks) == 1


def test_a_gang_stops_at_the_limit_of_its_group() -> None:
    world = World(
        nodes=tuple(a_node(f"n{row}", cpu=4, labels={LABEL: "a"}) for row in range(3)),
        queues=(open_to("a", node_group_limits=limits(a={"cpu": 5000.0})),),
        jobs=(a_job("j", queue="q"),),
        tasks=tasks_of("j", 9, a_shape(cpu=1)),
    )
    ssn = a_session(world, NodeGroup())
    tasks = ssn.hooks.pending.of(job_row(ssn, "j"))

    done = ssn.placement.place(ssn.statement(), job_row(ssn, "j"), int(ssn.state.tasks.shape[tasks[0]]), tasks)
    assert done == 5


def test_without_limits_the_heap_may_serve() -> None:
    ssn = session((open_to("a"), QueueRecord("limited", node_group_limits=limits(a={"cpu": 1.0}))))

    local = {
        name: ssn.hooks.nodes.node_local(int(ssn.state.tasks.shape[task_row(ssn, f"j-{name}-0")]))
        for name in ("q", "limited")
    }
    assert local == {"q": True, "limited": False}


def test_tasks_of_queues_with_equal_affinity_share_an_equivalence_class() -> None:
    ssn = session((open_to("a"), replace(open_to("a"), name="twin"), replace(open_to("b"), name="other")))

    kinds = [int(ssn.state.tasks.shape[task_row(ssn, f"j-{name}-0")]) for name in ("q", "twin", "other")]
    assert kinds[0] == kinds[1] != kinds[2]


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param(
            (QueueRecord("x", parent="y"), QueueRecord("y", parent="x")),
            "affinity-not-specified",
            id="parents-that-name-each-other-end-the-search",
        ),
        pytest.param((QueueRecord("x"), replace(open_to("a"), name="root")), None, id="root-comes-last"),
    ],
)
def test_a_queue_inherits_from_its_ancestors(queues: tuple[QueueRecord, ...], expected: str | None) -> None:
    plugin = NodeGroup()
    plugin.hierarchy = True
    jobs = tuple(a_job(f"j-{queue.name}", queue=queue.name) for queue in queues)

    ssn = a_session(World(NODES, queues, jobs, tasks_of("j-x", 1)), plugin)
    assert answers(ssn, "x")["a"] == expected


def test_the_conf_switches_inheritance_on() -> None:
    text = '{"actions": "allocate", "tiers": [{"plugins": [{"name": "nodegroup", "enableHierarchy": true}]}]}'
    policy = resolve(parse_conf(text, "conf"))

    assert not policy.warnings
    assert policy.instantiate()[0][0][0].hierarchy


def test_answers_equal_the_reference() -> None:
    seen: set[str | None] = set()
    for number in range(60):
        world, random = with_node_groups(number), Random(number)
        strict, ordered, inherits = (random.random() < 0.5 for _ in range(3))
        plugin = NodeGroup(NodeGroupArgs(strict, ordered))
        plugin.hierarchy = inherits
        ssn = a_session(world, plugin)
        queues = {queue.name: queue for queue in world.queues}
        for one in world.tasks:
            job = next(job for job in world.jobs if job.key == one.record.key)
            if job.queue not in queues:
                continue
            queue = queues[job.queue]
            affinity = node_groups.affinity_of(queue, queues, inherits)
            task = ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, one.record.name)]))
            verdicts, scores = plugin.predicate(task, ssn.state.nodes), plugin.node_order(task, ssn.state.nodes)
            for row, node in enumerate(sorted(world.nodes, key=lambda node: node.name)):
                expected = node_groups.refusal(world, queue, affinity, one.shape, node, strict)
                code = plugin.reasons[verdicts[row] - 1].code if verdicts[row] else None
                assert code == expected, f"with_node_groups({number}), {one.record.name} on {node.name}"
                assert scores[row] == pytest.approx(node_groups.score(affinity, node, ordered))
                seen.add(code)
    assert len(seen) == 6, "not every answer was met"
