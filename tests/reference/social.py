"""Random clusters whose pods have inter-pod terms, one for each number."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.reference.world import Task, World, a_job, a_node, a_shape, a_task
from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread, WeighedPodTerm
from volcano_py.model.requirements import Requirement
from volcano_py.model.shape import Shape, Tolerance
from volcano_py.model.statuses import TaskStatus

T = TypeVar("T")
HOST, ZONE, RACK = "kubernetes.io/hostname", "zone", "rack"
SPACES = {"ns": {"team": "x"}, "other": {"team": "y"}, "bare": {}}
NAMESPACE_SELECTORS = (
    *(None, None, None, (), (Requirement("team", "In", ("y",)),)),
    *((Requirement("team", "NotIn", ("x",)),), (Requirement("team", "Exists"),)),
)
LABELS = (
    *(("app", "web"), ("app", "web"), ("app", "db"), ("app", "web", "tier", "front")),
    *(("app", "web", "pod", "7"), ("tier", "front"), ()),
)
SELECTORS = (
    *((Requirement("app", "In", ("web",)),), (Requirement("app", "In", ("web",)),), (Requirement("app", "Exists"),)),
    *(
        (Requirement("app", "NotIn", ("db",)),),
        (Requirement("app", "In", ("db", "web")), Requirement("tier", "Exists")),
    ),
    *((Requirement("tier", "DoesNotExist"),), (), None),
)


def social_world(number: int, *, nodes: int = 7) -> World:
    """Return the cluster of a number, always the same."""
    random = Random(number)
    records = tuple(_node(random, f"n{row}") for row in range(random.randint(2, nodes)))
    names = [node.name for node in records]
    shapes = [_shape(random) for _ in range(random.randint(2, 4))]
    tasks: list[Task] = []
    for row in range(random.randint(0, 8)):
        status = random.choice((TaskStatus.RUNNING, TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.RELEASING))
        shape = random.choice((*shapes, a_shape(cpu="128m")))
        tasks.append(_task(random, f"s{row}", shape, status=status, node=random.choice((*names, "gone"))))
    jobs = []
    for row in range(random.randint(1, 3)):
        members = [
            _task(random, f"j{row}-x-{index}", random.choice(shapes), job=f"j{row}")
            for index in range(random.randint(1, 4))
        ]
        tasks += members
        jobs.append(a_job(f"j{row}", min_available=random.choice((0, 1, len(members))), phase="Inqueue"))
    return World(nodes=records, jobs=tuple(jobs), tasks=tuple(tasks), namespaces=SPACES)


def _task(random: Random, name: str, shape: Shape, *, job: str | None = None, **options: object) -> Task:
    space = "ns" if job else random.choice(("ns", "ns", "other", "bare", "unheard-of"))
    return a_task(name, shape, job=job, namespace=space, labels=random.choice(LABELS), **options)


def _node(random: Random, name: str) -> NodeRecord:
    labels = {HOST: name, **random.choice(({}, {ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"}))}
    if random.random() < 0.4:
        labels[RACK] = random.choice("12")
    return a_node(
        name,
        cpu=random.choice(("1024m", "2048m", "4096m")),
        memory=random.choice(("2Gi", "4Gi")),
        labels=labels,
        taints=(TaintRecord("k", "v", "NoSchedule"),) if random.random() < 0.15 else (),
    )


def _some(random: Random, chance: float, few: Sequence[T]) -> tuple[T, ...]:
    return tuple(few[: random.randint(1, len(few))]) if random.random() < chance else ()


def _shape(random: Random) -> Shape:
    def term() -> PodTerm:
        spaces = random.choice(((), ("ns",), ("ns",), ("ns", "other")))
        selector = PodSelector(spaces, random.choice(NAMESPACE_SELECTORS), random.choice(SELECTORS))
        return PodTerm(selector, random.choice((HOST, ZONE, ZONE, RACK)))

    def wish() -> WeighedPodTerm:
        return WeighedPodTerm(random.choice((1, 7, 29, 100)) * random.choice((1, -1)), term())

    default = random.random() < 0.15

    def spread() -> Spread:
        return Spread(
            PodSelector(("ns",), None, random.choice(SELECTORS)),
            random.choice((HOST, ZONE, ZONE, RACK)),
            random.choice((1, 1, 2, 3)),
            hard=not default and random.random() < 0.5,
            min_domains=random.choice((1, 1, 3)),
            honor_affinity=random.random() < 0.7,
            honor_taints=random.random() < 0.4,
            default=default,
        )

    return a_shape(
        cpu=random.choice(("128m", "256m", "512m")),
        memory=random.choice((None, "256Mi")),
        node_selector=random.choice(({}, {}, {}, {ZONE: "a"})),
        tolerations=(Tolerance("k", "Exists"),) if random.random() < 0.2 else (),
        pod_terms=PodTerms(
            near=_some(random, 0.25, (term(), term())),
            away=_some(random, 0.35, (term(), term())),
            preferred=_some(random, 0.35, (wish(), wish())),
        ),
        spread=_some(random, 0.4, (spread(), spread())),
    )
