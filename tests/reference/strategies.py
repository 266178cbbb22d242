"""Random clusters, small enough to check by hand and varied enough to meet every rule.

Capacities are powers of two, so that ratios are exact in floating point and ties are ties.
"""

from string import ascii_lowercase

from hypothesis import strategies as st

from tests.reference.world import GPU, Task, World, a_job, a_node, a_shape, a_task
from volcano_py.model.objects import JobRecord, NodeRecord, QueueRecord, TaintRecord
from volcano_py.model.shape import HostPort, NodeTerm, PreferredTerm, Requirement, Shape, Tolerance
from volcano_py.model.statuses import TaskStatus

KEYS = ("zone", "disk", "gen", "bad key", "example.com/x", "Example.com/x")
VALUES = ("a", "b", "5", "12", "+6", "06", "-3", "6.0", "", "9223372036854775807", "9223372036854775808", "a b", "-")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
CORDON = "node.kubernetes.io/unschedulable"
MILLI = ("128m", "512m", "700m", "1024m", "2048m")
ODD_SHAPES = ("gates", "unsupported", "selector", "tolerant", "best effort")
MEMORY = ("128Mi", "300Mi", "512Mi", "1Gi")
WEB, LOCAL, UDP = HostPort("0.0.0.0", "TCP", 80), HostPort("127.0.0.1", "TCP", 80), HostPort("127.0.0.1", "UDP", 80)
PORTS = ((WEB,), (LOCAL,), (UDP,), (LOCAL, UDP))
SOFT = tuple(TaintRecord(key, "", "PreferNoSchedule") for key in ("a", "b", "c"))
SOFT_TAINTS = ((), (), (), SOFT[:1], SOFT[:2], SOFT)
IN_A, IN_B = (NodeTerm((Requirement("zone", "In", (value,)),)) for value in "ab")
NOT_IN_A = NodeTerm((Requirement("zone", "NotIn", ("a",)),))
PREFERENCES = (
    *((), (), (PreferredTerm(30, IN_A),), (PreferredTerm(30, IN_A), PreferredTerm(20, IN_B))),
    (PreferredTerm(100, IN_A), PreferredTerm(4, IN_B), PreferredTerm(5, NOT_IN_A)),  # a full node a changes the rest
)

_seldom = st.integers(0, 6).map(lambda number: number == 6)
taints = st.builds(
    TaintRecord,
    st.sampled_from(("k", "q", CORDON)),
    st.sampled_from(("", "v", "7")),
    st.sampled_from(EFFECTS),
)
tolerations = st.builds(
    Tolerance,
    st.sampled_from(("", "k", "q", CORDON)),
    st.sampled_from(("", "Equal", "Exists", "Gt", "Lt", "Odd")),
    st.sampled_from(("", "v", "7", "5")),
    st.sampled_from(("", *EFFECTS)),
)
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
expressions = st.builds(
    Requirement,
    st.sampled_from(KEYS),
    st.sampled_from(OPERATORS),
    st.lists(st.sampled_from(VALUES), max_size=2).map(tuple),
)
fields = st.builds(
    Requirement,
    st.sampled_from(("metadata.name", "metadata.name", "spec.odd")),
    st.sampled_from(("In", "NotIn", "Exists")),
    st.lists(st.sampled_from(("n0", "n1", "")), max_size=2).map(tuple),
)
terms = st.builds(NodeTerm, st.lists(expressions, max_size=2).map(tuple), st.lists(fields, max_size=1).map(tuple))


@st.composite
def selective_shapes(draw: st.DrawFn) -> Shape:
    """Shapes that differ in their feasible nodes."""
    return a_shape(
        cpu="128m",
        node_selector=draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1)),
        node_affinity=draw(st.none() | st.lists(terms, max_size=2).map(tuple)),
        tolerations=draw(st.lists(tolerations, max_size=2)),
    )


@st.composite
def selective_nodes(draw: st.DrawFn, name: str = "n0") -> NodeRecord:
    """Nodes that differ in which pods they accept."""
    return a_node(
        name,
        labels=draw(labels),
        taints=draw(st.lists(taints, max_size=2)),
        unschedulable=draw(st.booleans()),
    )


@st.composite
def sized_nodes(draw: st.DrawFn, name: str) -> NodeRecord:
    """Nodes that differ in size; few of them refuse any pod."""
    others = {GPU: draw(st.sampled_from((1, 2, 4)))} if draw(st.booleans()) else {}
    return a_node(
        name,
        cpu=draw(st.sampled_from(("1024m", "2048m", "4096m", "4096m"))),
        memory=draw(st.sampled_from(("1Gi", "2Gi", "4Gi"))),
        pods=draw(st.sampled_from((2, 8, 110))),
        labels=draw(st.sampled_from(({}, {"zone": "a"}, {"zone": "b"}))),
        taints=(TaintRecord("k", "v", "NoSchedule"),) if draw(_seldom) else draw(st.sampled_from(SOFT_TAINTS)),
        images={"big": 900 * 2**20, "small": 60 * 2**20} if draw(_seldom) else {},
        unschedulable=draw(_seldom),
        closed="a pod on it cannot be read" if draw(_seldom) else "",
        **others,
    )


@st.composite
def sized_shapes(draw: st.DrawFn) -> Shape:
    """Shapes that differ in their requests; few of the requests fit on no node."""
    odd = draw(st.sampled_from(ODD_SHAPES)) if draw(_seldom) else ""
    if odd == "best effort":
        return a_shape()
    others = {GPU: draw(st.sampled_from((1, 2)))} if draw(_seldom) else {}
    return a_shape(
        cpu=draw(st.sampled_from(MILLI)),
        memory=draw(st.none() | st.sampled_from(MEMORY)),
        preferred=draw(st.sampled_from(PREFERENCES)),
        host_ports=draw(st.sampled_from(PORTS)) if draw(_seldom) else (),
        images=draw(st.sampled_from(((), (), ("big",), ("big", "small")))),
        gates=("g",) if odd == "gates" else (),
        unsupported=("spec.volumes[data].persistentVolumeClaim",) if odd == "unsupported" else (),
        node_selector={"zone": "a"} if odd == "selector" else {},
        tolerations=(Tolerance(operator="Exists"),)
        if odd == "tolerant"
        else draw(st.sampled_from(((), (), (Tolerance("a", "Exists"),)))),
        **others,
    )


@st.composite
def jobs(draw: st.DrawFn, name: str, shapes: list[Shape], nodes: list[str]) -> tuple[JobRecord, list[Task]]:
    """A PodGroup and its tasks, some of which already have a node."""
    tasks = []
    # If only some names have numbers, Volcano's comparison of tasks is an order only among equal creation times.
    numbered, mixed = draw(st.booleans()), draw(_seldom)
    roles = draw(st.sampled_from((("",), ("", ""), ("a", "b"))))
    for index in range(draw(st.sampled_from((0, 1, 2, 3, 4, 5, 6)))):
        status = draw(st.sampled_from(STANDING)) if draw(_seldom) else TaskStatus.PENDING
        role = draw(st.sampled_from(roles))
        task = a_task(
            f"{name}-x-{index}" if numbered != (mixed and index % 2 == 0) else f"{name}-{ascii_lowercase[index]}",
            draw(st.sampled_from(shapes)),
            job=name,
            role=role,
            status=status,
            node=draw(st.sampled_from(nodes)) if nodes and status in ON_A_NODE else "",
            priority=draw(st.sampled_from((1, 1, 5))),
            creation=0.0 if mixed else draw(st.sampled_from((0.0, 0.0, 3.0))),
        )
        tasks.append(task)
    minimums = {"a": draw(st.integers(0, 2)), "b": draw(st.integers(0, 2))} if "a" in roles else {}
    record = a_job(
        name,
        queue=draw(st.sampled_from(("closed", "missing")))
        if draw(_seldom)
        else draw(st.sampled_from(("default", "other"))),
        min_available=draw(st.sampled_from((0, 1, 2, len(tasks), len(tasks) + 1 if draw(_seldom) else len(tasks)))),
        task_min_available=minimums,
        priority=draw(st.sampled_from((0, 0, 10))),
        creation=float(draw(st.sampled_from((0, 0, 5)))),
        phase=draw(st.sampled_from(("", "Pending", "Inqueue", "Running", "Unknown"))),
    )
    return record, tasks


ON_A_NODE = (TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.UNKNOWN)
STANDING = (*ON_A_NODE, TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)


@st.composite
def worlds(draw: st.DrawFn, *, max_nodes: int = 5, max_jobs: int = 4) -> World:
    """Clusters for one cycle."""
    nodes = [draw(sized_nodes(f"n{index}")) for index in range(draw(st.sampled_from((0, *range(1, max_nodes + 1)))))]
    shapes = draw(st.lists(sized_shapes(), min_size=1, max_size=3))
    names = [node.name for node in nodes]
    found = [
        draw(jobs(f"j{index}", shapes, names)) for index in range(draw(st.sampled_from(tuple(range(1, max_jobs + 1)))))
    ]
    loose = [
        a_task("loose", draw(st.sampled_from(shapes))),
        a_task("orphan", draw(st.sampled_from(shapes)), job="nobody"),
    ]
    return World(
        nodes=tuple(nodes),
        queues=(
            QueueRecord("default", state="Open", creation=1.0),
            QueueRecord("other", creation=draw(st.sampled_from((0.0, 1.0, 2.0)))),
            QueueRecord("closed", state="Closed"),
        ),
        jobs=tuple(record for record, _ in found),
        tasks=tuple(task for _, tasks in found for task in tasks) + tuple(loose),
    )
