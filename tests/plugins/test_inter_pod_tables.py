"""Number tables of kube-scheduler 1.36 under Volcano's wrappers, on the three nodes of fixture F."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.framework.sessions import a_session, task_row
from tests.reference.world import Task, World, a_shape, a_task, fixture_f
from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread, WeighedPodTerm
from volcano_py.model.requirements import Requirement
from volcano_py.model.shape import NodeTerm, PreferredTerm, Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering
from volcano_py.plugins.predicates import Predicates

F = fixture_f()
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SPACES = {"ns": {"team": "x"}, "other": {"team": "y"}}
NOTHING: frozenset[str] = frozenset()
FAR, AWAY, UNWELCOME = "pod-affinity", "pod-anti-affinity", "existing-anti-affinity"
SKEW, NO_LABEL = "topology-spread", "topology-spread-label"


def pods(app: str, **options: object) -> PodSelector:
    """Return the selector of an app's pods; "" for every pod."""
    labels = (Requirement("app", "In", (app,)),) if app else ()
    return PodSelector(**{"namespaces": ("ns",), "labels": labels, **options})  # type: ignore[arg-type]


def near(*terms: PodTerm) -> Shape:
    return a_shape(pod_terms=PodTerms(near=terms))


def away(*terms: PodTerm) -> Shape:
    return a_shape(pod_terms=PodTerms(away=terms))


def preferring(*wishes: tuple[int, str, str]) -> Shape:
    preferred = tuple(WeighedPodTerm(weight, PodTerm(pods(app), key)) for weight, app, key in wishes)
    return a_shape(pod_terms=PodTerms(preferred=preferred))


def even(key: str, skew: int = 1, *, hard: bool = True, **options: object) -> Spread:
    return Spread(**{"selector": pods("s"), "key": key, "max_skew": skew, "hard": hard, **options})  # type: ignore[arg-type]


def running(name: str, node: str, *labels: str, shape: Shape | None = None, **options: object) -> Task:
    return a_task(name, shape or a_shape(), labels=labels, node=node, **{"status": TaskStatus.RUNNING, **options})


def incoming(shape: Shape, *labels: str) -> Task:
    return a_task("p", shape, labels=labels)


def refused(task: Task, *others: Task, nodes: Sequence[NodeRecord] = F.nodes) -> list[str]:
    """Return what the filters between pods have against each node."""
    plugin = Predicates()
    ssn = a_session(World(tuple(nodes), tasks=(*F.tasks, *others, task), namespaces=SPACES), plugin)
    found = plugin.refusals(ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, "p")])), ssn.state.nodes)
    codes = [reason.code for reason in plugin.reasons]
    return ["+".join(codes[row] for row in np.flatnonzero(column)) for column in found.T]


def scores(
    task: Task, *others: Task, nodes: Sequence[NodeRecord] = F.nodes, group: Sequence[int] = (0, 1, 2)
) -> list[float]:
    plugin = NodeOrdering(NodeOrderArgs.only(pod_affinity=1, pod_topology_spread=1))
    ssn = a_session(World(tuple(nodes), tasks=(*F.tasks, *others, task), namespaces=SPACES), plugin)
    answers = plugin.inter_pod_scores(ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, "p")])))
    mask = np.zeros(len(nodes), dtype=bool)
    mask[list(group)] = True
    return [0.0] * len(group) if answers is None else answers.scores(mask)[list(group)].tolist()


DB, ODB = running("db", "n1", "app", "db"), running("odb", "n3", "app", "db", namespace="other")
TEAM_Y = (Requirement("team", "In", ("y",)),)
NOT_X = (Requirement("team", "NotIn", ("x",)),)
NO_TEAM = (Requirement("team", "DoesNotExist"),)


@pytest.mark.parametrize(
    ("task", "others", "expected"),
    [
        pytest.param(incoming(near(PodTerm(pods("db"), ZONE))), (), ["", "", FAR], id="near-db-by-zone"),
        pytest.param(incoming(away(PodTerm(pods("db"), ZONE))), (), [AWAY, AWAY, ""], id="away-from-db-by-zone"),
        pytest.param(incoming(away(PodTerm(pods("db"), HOST))), (), [AWAY, "", ""], id="away-from-db-by-host"),
        pytest.param(incoming(near(PodTerm(pods("db"), "rack"))), (), [FAR] * 3, id="near-by-a-key-nobody-has"),
        pytest.param(incoming(away(PodTerm(pods("db"), "rack"))), (), [""] * 3, id="away-by-a-key-nobody-has"),
        pytest.param(incoming(near(PodTerm(pods("new"), ZONE)), "app", "new"), (), [""] * 3, id="first-of-a-series"),
        pytest.param(
            incoming(near(PodTerm(pods("new"), "rack")), "app", "new"), (), [FAR] * 3, id="first-by-a-key-nobody-has"
        ),
        pytest.param(
            incoming(near(PodTerm(pods("new"), ZONE), PodTerm(pods("db"), ZONE)), "app", "new"),
            (),
            [FAR] * 3,
            id="first-must-meet-all-its-terms",
        ),
        pytest.param(incoming(near(PodTerm(pods("new"), ZONE)), "app", "zz"), (), [FAR] * 3, id="not-of-the-series"),
        pytest.param(
            incoming(near(PodTerm(pods("db"), ZONE), PodTerm(pods("cache"), ZONE))),
            (running("cache", "n1", "app", "cache"),),
            [FAR] * 3,
            id="one-pod-must-meet-all-terms",
        ),
        pytest.param(
            incoming(away(PodTerm(pods("db", namespaces=("other",)), HOST))), (), ["", "", AWAY], id="namespaces"
        ),
        pytest.param(
            incoming(away(PodTerm(pods("db", namespaces=(), namespace_labels=TEAM_Y), HOST))),
            (),
            ["", "", AWAY],
            id="namespace-selector",
        ),
        pytest.param(
            incoming(away(PodTerm(pods("db", namespaces=(), namespace_labels=()), HOST))),
            (),
            [AWAY, "", AWAY],
            id="every-namespace",
        ),
        pytest.param(  # kube-scheduler reads it as every namespace, against its documentation
            incoming(away(PodTerm(pods("db", namespaces=(), namespace_labels=NOT_X), HOST))),
            (),
            ["", "", AWAY],
            id="namespaces-without-a-label-value",
        ),
        pytest.param(
            incoming(away(PodTerm(pods("db", namespaces=(), namespace_labels=NO_TEAM), HOST))),
            (),
            [""] * 3,
            id="namespaces-without-a-label",
        ),
        pytest.param(
            incoming(a_shape(), "app", "in"),
            (running("hater", "n3", shape=away(PodTerm(pods("in"), ZONE))),),
            ["", "", UNWELCOME],
            id="an-existing-pod-keeps-it-away",
        ),
        pytest.param(
            incoming(a_shape(), "app", "in"),
            (running("hater", "n3", shape=away(PodTerm(pods("in", namespaces=(), namespace_labels=NOT_X), ZONE))),),
            [""] * 3,
            id="an-existing-pod-keeps-those-of-other-namespaces-away",
        ),
        pytest.param(incoming(away(PodTerm(pods("db", labels=None), HOST))), (), [""] * 3, id="no-selector"),
        pytest.param(incoming(away(PodTerm(pods(""), HOST))), (), [AWAY] * 3, id="everybody"),
        pytest.param(
            incoming(a_shape(pod_terms=PodTerms((PodTerm(pods("none"), ZONE),), (PodTerm(pods("db"), ZONE),)))),
            (),
            [FAR] * 3,
            id="affinity-speaks-first",
        ),
        pytest.param(
            incoming(away(PodTerm(pods("db"), HOST))),
            (running("leaving", "n2", "app", "db", status=TaskStatus.RELEASING),),
            [AWAY, AWAY, ""],
            id="a-pod-that-is-being-deleted-counts",
        ),
    ],
)  # fmt: skip
def test_required_affinity_and_anti_affinity(task: Task, others: tuple[Task, ...], expected: list[str]) -> None:
    assert refused(task, DB, ODB, *others) == expected


S = tuple(running(name, node, "app", "s") for name, node in (("s1", "n1"), ("s2", "n1"), ("s3", "n2"), ("s4", "n3")))
TAINTED = fixture_f(n3=replace(F.nodes[2], taints=(TaintRecord("k", "v", "NoSchedule"),))).nodes


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        pytest.param([even(ZONE)], [SKEW, SKEW, ""], id="zone-1"),
        pytest.param([even(ZONE, 2)], [SKEW, SKEW, ""], id="zone-2"),
        pytest.param([even(ZONE, 3)], [""] * 3, id="zone-3"),
        pytest.param([even(HOST)], [SKEW, "", ""], id="host-1"),
        pytest.param([even(ZONE, 2, min_domains=3)], [SKEW, SKEW, ""], id="too-few-domains"),
        pytest.param([even(ZONE, 4, min_domains=3)], [""] * 3, id="too-few-domains-and-more-skew"),
        pytest.param([even("rack")], [NO_LABEL] * 3, id="no-such-label"),
        pytest.param([even(ZONE, 3), even("rack")], [NO_LABEL] * 3, id="zone-and-no-such-label"),
        pytest.param([even(HOST, selector=pods("s", labels=None))], [""] * 3, id="no-selector"),
        pytest.param([even(HOST, selector=pods(""))], [""] * 3, id="a-selector-of-everybody-counts-nobody"),
    ],
)
def test_hard_spread(spread: list[Spread], expected: list[str]) -> None:
    assert refused(incoming(a_shape(spread=spread), "app", "s"), *S) == expected


def test_a_pod_that_does_not_count_itself() -> None:
    assert refused(incoming(a_shape(spread=[even(ZONE)])), *S) == [SKEW, SKEW, ""]
    assert refused(incoming(a_shape(spread=[even(ZONE, 2)])), *S) == [""] * 3


def test_only_nodes_that_the_node_selector_allows_make_domains_by_default() -> None:
    ssd = {"disk": "ssd"}
    honoring = a_shape(node_selector=ssd, spread=[even(ZONE)])
    ignoring = a_shape(node_selector=ssd, spread=[even(ZONE, honor_affinity=False)])

    assert refused(incoming(honoring, "app", "s"), *S)[0] == ""
    assert refused(incoming(ignoring, "app", "s"), *S)[0] == SKEW


def test_tainted_nodes_make_domains_by_default() -> None:
    ignoring, honoring = (a_shape(spread=[even(ZONE, 2, honor_taints=honor)]) for honor in (False, True))

    assert refused(incoming(ignoring, "app", "s"), *S, nodes=TAINTED)[:2] == [SKEW, SKEW]
    assert refused(incoming(honoring, "app", "s"), *S, nodes=TAINTED)[:2] == ["", ""]


def test_pods_that_are_being_deleted_or_of_other_namespaces_do_not_count() -> None:
    leaving = running("t", "n3", "app", "s", status=TaskStatus.RELEASING)
    stranger = running("o", "n3", "app", "s", namespace="other")

    assert refused(incoming(a_shape(spread=[even(HOST)]), "app", "s"), *S, leaving, stranger) == [SKEW, "", ""]


WISHES = (
    DB,
    running("web", "n2", shape=preferring((7, "in", HOST))),
    running("noisy", "n3", "app", "noisy"),
)


@pytest.mark.parametrize(
    ("task", "others", "expected"),
    [
        pytest.param(
            incoming(preferring((10, "db", ZONE), (-5, "noisy", HOST)), "app", "in"),
            WISHES,
            [68, 100, 0],
            id="both-ways",
        ),
        pytest.param(incoming(a_shape(), "app", "in"), WISHES, [0, 100, 0], id="theirs"),
        pytest.param(incoming(a_shape(), "app", "zzz"), WISHES, [0, 0, 0], id="nobody"),
        pytest.param(
            incoming(preferring((29, "a", HOST), (100, "b", HOST))),
            (running("a", "n2", "app", "a"), running("b", "n3", "app", "b")),
            [0, 28, 100],
            id="the-division-comes-first",
        ),
        pytest.param(
            incoming(a_shape(), "app", "in"),
            (running("fan", "n2", shape=near(PodTerm(pods("in"), HOST))),),
            [0, 0, 0],
            id="required-terms-of-others-add-nothing",
        ),
    ],
)
def test_preferred_pods(task: Task, others: tuple[Task, ...], expected: list[float]) -> None:
    assert scores(task, *others) == expected


@pytest.mark.parametrize(
    ("spread", "group", "expected"),
    [
        pytest.param([even(ZONE, hard=False), even(HOST, hard=False)], (0, 1, 2), [42, 57, 100], id="zone-and-host"),
        pytest.param([even(ZONE, 5, hard=False)], (0, 1, 2), [62, 62, 100], id="more-skew-weighs-less"),
        pytest.param([even(ZONE, hard=False), even("rack", hard=False)], (0, 1, 2), [0, 0, 0], id="no-such-label"),
        pytest.param([even(ZONE, hard=False)], (0, 1), [100, 100], id="one-domain-left"),
        pytest.param(
            [even(HOST, 3, hard=False, default=True), even(ZONE, 5, hard=False, default=True)],
            (0, 1, 2),
            [69, 76, 100],
            id="system-defaults",
        ),
    ],
)
def test_soft_spread(spread: list[Spread], group: tuple[int, ...], expected: list[float]) -> None:
    assert scores(incoming(a_shape(spread=spread), "app", "s"), *S, group=group) == expected


def test_under_the_system_defaults_a_node_without_the_label_looks_emptier() -> None:
    bare = fixture_f(n3=replace(F.nodes[2], labels={HOST: "n3"})).nodes
    spread = [even(HOST, 3, hard=False, default=True), even(ZONE, 5, hard=False, default=True)]

    assert scores(incoming(a_shape(spread=spread), "app", "s"), *S, nodes=bare) == [30, 38, 100]


@pytest.mark.parametrize(("key", "expected"), [(HOST, [0, 60, 100]), (ZONE, [0, 0, 100])])
def test_pods_on_a_node_outside_the_domains_count_by_host_name_only(key: str, expected: list[float]) -> None:
    nodes = fixture_f(n1=replace(F.nodes[0], taints=(TaintRecord("k", "", "NoExecute"),))).nodes
    standing = [running(f"s{row}", node, "app", "s") for row, node in enumerate(("n1", "n1", "n1", "n2"))]
    shape = a_shape(spread=[even(key, hard=False, honor_taints=True)])

    assert scores(incoming(shape, "app", "s"), *standing, nodes=nodes) == expected


def test_a_pod_whose_selector_cannot_be_read_waits_and_says_so() -> None:
    broken = pods("x", readable=False)
    for shape, code in (
        (away(PodTerm(broken, ZONE)), "pod-affinity-unreadable"),
        (a_shape(spread=[even(ZONE, selector=broken)]), "topology-spread-unreadable"),
    ):
        plugin = Predicates()
        ssn = a_session(World(F.nodes, tasks=(incoming(shape),)), plugin)
        verdicts = plugin.static_predicate(shape, ssn.state.nodes)
        assert {plugin.static_reasons[verdict - 1].code for verdict in verdicts.tolist()} == {code}


@pytest.mark.parametrize(("n_candidates", "expected"), [(3, [677, 250, 850]), (2, [877, 450])])
def test_all_scores_of_the_combined_table(n_candidates: int, expected: list[float]) -> None:
    image = {"r/a:1": 600 * 2**20}
    nodes = [
        replace(F.nodes[0], images=image),
        replace(F.nodes[1], taints=(TaintRecord("spot", "", "PreferNoSchedule"),)),
        replace(F.nodes[2], images=image),
    ]
    nodes = [node if row < n_candidates else replace(node, closed="no") for row, node in enumerate(nodes)]
    small = a_shape(cpu="100m", memory="100Mi")
    standing = (("s1", "n1", "s"), ("s2", "n1", "s"), ("s3", "n2", "s"), ("db", "n3", "db"))
    shape = a_shape(
        cpu="500m",
        memory="1Gi",
        images=["r/a:1"],
        preferred=[
            PreferredTerm(40, NodeTerm((Requirement("disk", "In", ("ssd",)),))),
            PreferredTerm(30, NodeTerm((Requirement(ZONE, "In", ("a",)),))),
        ],
        pod_terms=preferring((20, "db", ZONE)).pod_terms,
        spread=[even(ZONE, hard=False)],
    )
    others = (running(name, node, "app", app, shape=small) for name, node, app in standing)
    world = World(tuple(nodes), tasks=(*F.tasks, *others, incoming(shape, "app", "s")))
    ssn = a_session(world, NodeOrdering(), Predicates())

    ranked = ssn.placement.ranking(int(ssn.state.tasks.shape[task_row(ssn, "p")])).ranked

    assert ranked[ranked > -np.inf].tolist() == expected
