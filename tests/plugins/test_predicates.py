from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info
from tests.reference.selection import static_reason
from tests.reference.strategies import selective_nodes, selective_shapes
from tests.reference.world import World, a_node, a_shape, a_task, fixture_f
from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.model.shape import NodeTerm, Requirement, Shape, Tolerance
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.predicates.plugin import PredicatesArgs

PASS = "·"
MARKS = {
    "": PASS,
    "node-unschedulable": "u",
    "node-affinity": "x",
    "taint-toleration": "t",
    "node-affinity-conflict": "c",
}


def verdicts(world: World, shape: Shape, args: PredicatesArgs | None = None) -> list[str]:
    """Return one mark per node: what refuses, or that it passes."""
    plugin = Predicates(args)
    answer = plugin.static_predicate(shape, world.store().snapshot().nodes)
    codes = ["", *(reason.code for reason in plugin.static_reasons)]
    return [MARKS[codes[verdict]] for verdict in answer.tolist()]


F = fixture_f()
WITH_GEN = World(
    nodes=tuple(
        replace(node, labels={**node.labels, "gen": gen}) for node, gen in zip(F.nodes, ("5", "12", "abc"), strict=True)
    )
)


def term(
    *expressions: tuple[str, str, Sequence[str]], fields: Sequence[tuple[str, str, Sequence[str]]] = ()
) -> NodeTerm:
    return NodeTerm(
        tuple(Requirement(key, operator, tuple(values)) for key, operator, values in expressions),
        tuple(Requirement(key, operator, tuple(values)) for key, operator, values in fields),
    )


def by_name(*requirements: tuple[str, Sequence[str]]) -> NodeTerm:
    return term(fields=[("metadata.name", operator, values) for operator, values in requirements])


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([term(("disk", "In", ["ssd", "hdd"]))], "··x", id="in"),
        pytest.param([term(("disk", "NotIn", ["ssd"]))], "x··", id="not-in-lets-the-unlabelled-pass"),
        pytest.param([term(("disk", "Exists", []))], "··x", id="exists"),
        pytest.param([term(("disk", "DoesNotExist", []))], "xx·", id="does-not-exist"),
        pytest.param([], "xxx", id="no-terms-match-nothing"),
        pytest.param([term()], "xxx", id="an-empty-term-matches-nothing"),
        pytest.param([term(), term(("disk", "In", ["ssd"]))], "·xx", id="beside-an-empty-term-others-count"),
        pytest.param([term(("disk", "In", ["ssd", "a b"]))], "xxx", id="an-invalid-label-value"),
        pytest.param([term(("disk", "In", []))], "xxx", id="in-without-values"),
        pytest.param([term(("disk", "Exists", ["ssd"]))], "xxx", id="exists-with-a-value"),
        pytest.param([term(("a/b/c", "DoesNotExist", []))], "xxx", id="a-key-that-cannot-be"),
        pytest.param([term(("disk", "Near", ["ssd"]))], "xxx", id="an-unknown-operator"),
        pytest.param([term(("disk", "NotIn", ["ssd"]), ("gen", "Gt", ["x"]))], "xxx", id="one-error-spoils-its-term"),
        pytest.param([term(("gen", "Gt", ["5"]))], "x·x", id="greater"),
        pytest.param([term(("gen", "Lt", ["12"]))], "·xx", id="less"),
        pytest.param([term(("gen", "Gt", ["04"]))], "··x", id="leading-zeros-are-decimal"),
        pytest.param([term(("gen", "Gt", ["-1"]))], "xxx", id="a-negative-operand-is-no-label-value"),
        pytest.param([term(("gen", "Lt", ["+13"]))], "xxx", id="a-signed-operand-is-no-label-value"),
        pytest.param([term(("gen", "Gt", ["1", "2"]))], "xxx", id="greater-than-two-values"),
        pytest.param([term(("gen", "Lt", ["9223372036854775808"]))], "xxx", id="more-than-64-bits"),
        pytest.param(
            [term(("gen", "Gt", ["x"])), term(("disk", "In", ["ssd"]))], "·xx", id="a-bad-term-beside-a-good-one"
        ),
        pytest.param([by_name(("In", ["n1"]))], "·xx", id="field-in"),
        pytest.param([by_name(("NotIn", ["n1"]))], "x··", id="field-not-in"),
        pytest.param([by_name(("In", ["n1", "n2"]))], "xxx", id="field-with-two-values"),
        pytest.param([by_name(("Exists", []))], "xxx", id="field-with-another-operator"),
        pytest.param([by_name(("In", ["n1"]), ("In", ["n2"]))], "ccc", id="names-that-conflict"),
        pytest.param([by_name(("In", [])), by_name(("In", ["n1"]), ("In", ["n2"]))], "ccc", id="in-every-term"),
        pytest.param([by_name(("In", ["n1"]), ("In", ["n2"])), by_name(("In", ["n3"]))], "xx·", id="not-in-every-term"),
        pytest.param([by_name(("In", ["n1"]), ("In", ["n2"])), term()], "xxx", id="beside-a-term-without-names"),
        pytest.param([by_name(("In", ["n1", "n2"]), ("In", ["n2", "n3"]))], "xxx", id="lists-with-a-common-name"),
        pytest.param([by_name(("In", ["n1"]), ("NotIn", ["n1"]))], "xxx", id="names-that-are-excluded"),
        pytest.param([term(fields=[("a", "In", ["1"]), ("a", "In", ["2"])])], "xxx", id="other-fields-that-conflict"),
        pytest.param([by_name(("In", ["n1"])), by_name(("In", ["n3"]))], "·x·", id="terms-are-alternatives"),
        pytest.param([term(fields=[("spec.x", "NotIn", ["y"])])], "···", id="another-field-reads-as-empty"),
        pytest.param(
            [term(("disk", "Exists", []), fields=[("metadata.name", "NotIn", ["n1"])])], "x·x", id="both-in-a-term"
        ),
    ],
)
def test_required_affinity_matches_as_in_kube_scheduler(terms: list[NodeTerm], expected: str) -> None:
    assert "".join(verdicts(WITH_GEN, a_shape(node_affinity=tuple(terms)))) == expected


@pytest.mark.parametrize(
    ("value", "matches"),
    [
        ("06", True),
        ("0" * 40 + "6", True),
        ("+6", True),
        ("-6", False),
        ("6.0", False),
        ("", False),
        ("9223372036854775808", False),
    ],
)
def test_a_label_is_compared_if_it_is_a_64_bit_integer(value: str, matches: bool) -> None:
    world = World(nodes=(a_node("n1", labels={"gen": value}),))

    assert verdicts(world, a_shape(node_affinity=(term(("gen", "Gt", ["5"])),))) == [PASS if matches else "x"]


@pytest.mark.parametrize(
    ("selector", "affinity", "expected"),
    [
        pytest.param({"topology.kubernetes.io/zone": "a"}, None, "··x", id="one-pair"),
        pytest.param({"topology.kubernetes.io/zone": "a", "disk": "hdd"}, None, "x·x", id="all-pairs"),
        pytest.param(
            {"topology.kubernetes.io/zone": "a"}, (term(("disk", "In", ["hdd"])),), "x·x", id="and-the-affinity"
        ),
        pytest.param({"disk": "a b"}, None, "xxx", id="values-are-not-validated"),
        pytest.param({"rack": "1"}, None, "xxx", id="a-label-no-node-has"),
    ],
)
def test_every_pair_of_a_node_selector_must_be_a_label(
    selector: Mapping[str, str], affinity: tuple[NodeTerm, ...] | None, expected: str
) -> None:
    assert "".join(verdicts(F, a_shape(node_selector=selector, node_affinity=affinity))) == expected


TAINTED = World(
    nodes=(
        a_node("n1", taints=[TaintRecord("k", "v", "NoSchedule")]),
        a_node("n2", taints=[TaintRecord("k", "7", "NoExecute"), TaintRecord("q", "", "PreferNoSchedule")]),
        a_node("n3"),
    )
)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], "tt·", id="none"),
        pytest.param([Tolerance("k", "Exists")], "···", id="key-exists"),
        pytest.param([Tolerance("k", "Equal", "v")], "·t·", id="any-effect"),
        pytest.param([Tolerance("", "Exists", "", "NoSchedule")], "·t·", id="any-key-of-one-effect"),
        pytest.param([Tolerance("", "Equal", "")], "tt·", id="keyless-equal-means-an-empty-value"),
        pytest.param([Tolerance("", "", "v")], "·t·", id="keyless-equal-with-the-value"),
        pytest.param([Tolerance("k", "Gt", "5")], "tt·", id="comparisons-never-tolerate"),
        pytest.param([Tolerance("k", "Lt", "9")], "tt·", id="nor-does-less"),
        pytest.param([Tolerance("k", "Odd", "v")], "tt·", id="nor-do-unknown-operators"),
        pytest.param(
            [Tolerance("k", "Equal", "v", "NoSchedule"), Tolerance("k", "", "7", "NoExecute")], "···", id="one-for-each"
        ),
        pytest.param([Tolerance("k", "Exists", "ignored")], "···", id="exists-ignores-its-value"),
    ],
)
def test_every_taint_that_keeps_pods_away_must_be_tolerated(tolerations: list[Tolerance], expected: str) -> None:
    assert "".join(verdicts(TAINTED, a_shape(tolerations=tolerations))) == expected


CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        pytest.param(None, False, id="none"),
        pytest.param(Tolerance(CORDON, "Exists", "", "NoSchedule"), True, id="exists"),
        pytest.param(Tolerance(CORDON, "Equal", ""), True, id="equal-to-nothing"),
        pytest.param(Tolerance(CORDON), True, id="key-alone"),
        pytest.param(Tolerance("", "Exists"), True, id="keyless-exists"),
        pytest.param(Tolerance(CORDON, "Equal", "x"), False, id="another-value"),
        pytest.param(Tolerance(CORDON, "Exists", "", "NoExecute"), False, id="another-effect"),
    ],
)
def test_a_cordon_is_tolerated_as_a_taint(toleration: Tolerance | None, passes: bool) -> None:
    world = fixture_f(n2=a_node("n2", unschedulable=True))
    shape = a_shape(tolerations=[] if toleration is None else [toleration])

    assert verdicts(world, shape) == [PASS, PASS if passes else "u", PASS]


def test_cordon_comes_before_affinity_and_affinity_before_taints() -> None:
    taint = [TaintRecord("k", "", "NoSchedule")]
    world = World(
        nodes=(
            a_node("n1", taints=taint, unschedulable=True),
            a_node("n2", taints=taint),
            a_node("n3", taints=taint, labels={"zone": "a"}),
        )
    )

    assert verdicts(world, a_shape(node_selector={"zone": "a"})) == ["u", "x", "t"]


def test_filters_can_be_switched_off_but_the_cordon_stays() -> None:
    world = World(nodes=(a_node("n1", taints=[TaintRecord("k", "", "NoSchedule")]), a_node("n2", unschedulable=True)))
    shape = a_shape(node_selector={"zone": "a"})

    assert verdicts(world, shape, PredicatesArgs(node_affinity=False)) == ["t", "u"]
    assert verdicts(world, shape, PredicatesArgs(taint_toleration=False)) == ["x", "u"]
    assert verdicts(world, shape, PredicatesArgs(False, False)) == [PASS, "u"]
    conflict = a_shape(node_affinity=(by_name(("In", ["n1"]), ("In", ["n2"])),))
    assert verdicts(world, conflict) == ["c", "c"]
    assert verdicts(world, conflict, PredicatesArgs(node_affinity=False)) == ["t", "u"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, PredicatesArgs()),
        ({"predicate.NodeAffinityEnable": False}, PredicatesArgs(node_affinity=False)),
        ({"predicate.TaintTolerationEnable": "false"}, PredicatesArgs(taint_toleration=False)),
        ({"predicate.TaintTolerationEnable": 0}, PredicatesArgs()),
    ],
)
def test_switches_are_read_as_volcano_reads_them(arguments: dict[str, object], expected: PredicatesArgs) -> None:
    assert Predicates.parse(arguments, lambda text: None) == expected


def test_switches_about_resource_claims_have_no_effect_and_warn() -> None:
    told: list[str] = []
    said = {"predicate.DynamicResourceAllocationEnable": False, "volumebinding.weight": 2}

    assert Predicates.parse(said, told.append) == PredicatesArgs()
    assert told == [
        "argument predicate.DynamicResourceAllocationEnable has no effect: resource claims are not supported yet",
        "argument volumebinding.weight has no effect: scores of volumes are not supported yet",
    ]


@pytest.mark.parametrize(
    ("pods", "standing", "refused"),
    [
        pytest.param(2, [TaskStatus.RUNNING], False, id="room-for-one-more"),
        pytest.param(2, [TaskStatus.RUNNING, TaskStatus.RELEASING], True, id="terminating-pods-count"),
        pytest.param(2, [TaskStatus.RUNNING, TaskStatus.PIPELINED], True, id="promised-pods-count"),
        pytest.param(1, [TaskStatus.SUCCEEDED], False, id="ended-pods-do-not"),
        pytest.param(None, [], True, id="a-node-without-pods-takes-none"),
    ],
)
def test_a_node_takes_pods_up_to_its_pod_limit(pods: int | None, standing: list[TaskStatus], refused: bool) -> None:
    shape = a_shape(cpu="1m")
    tasks = [a_task(f"p{i}", shape, status=status, node="n1") for i, status in enumerate(standing)]
    plugin = Predicates()
    ssn = a_session(World(nodes=(a_node("n1", pods=pods),), tasks=(*tasks, a_task("new", shape))), plugin)

    answer = plugin.predicate(info(ssn, shape), ssn.state.nodes)

    assert answer.tolist() == [int(refused)]
    assert answer.dtype == np.int16


def test_reasons_are_kube_schedulers_texts() -> None:
    assert [reason.text for reason in (*Predicates.static_reasons, *Predicates.reasons)] == [
        "node(s) were unschedulable",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) had untolerated taint(s)",
        "plugin NodeAffinity pre-predicates failed pod affinity terms conflict",
        "plugin InterPodAffinity pre-predicates failed parsing pod: a selector of its affinity terms is invalid",
        "plugin PodTopologySpread pre-predicates failed get constraints from pod: a selector of them is invalid",
        "node(s) pod number exceeded",
        "node(s) didn't have free ports for the requested pod ports",
        "node(s) exceed max volume count",
        "node(s) had no available disk",
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't satisfy existing pods anti-affinity rules",
        "node(s) didn't match pod topology spread constraints (missing required label)",
        "node(s) didn't match pod topology spread constraints",
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
        "node(s) had no available volume zone",
        "node(s) didn't match PersistentVolume's node affinity",
        "node(s) didn't find available persistent volumes to bind",
        "node(s) did not have enough free storage",
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "node(s) didn't match PersistentVolume's node affinity, "
        "node(s) didn't find available persistent volumes to bind",
        "node(s) didn't match PersistentVolume's node affinity, node(s) did not have enough free storage",
        "node(s) didn't find available persistent volumes to bind, "
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "node(s) did not have enough free storage, "
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    ]
    assert not any(reason.resolvable for reason in Predicates.static_reasons)
    for reason in (*Predicates.static_reasons, *Predicates.reasons):
        assert reason.before_nodes == ("pre-predicates failed" in reason.text), reason.text
    assert [reason.code for reason in Predicates.reasons if not reason.resolvable] == [
        "pod-affinity",
        "topology-spread-label",
        "volume-zone",
        "volume-affinity",
        "volume-binding",
        "volume-space",
        "volume-missing",
        "volume-affinity-binding",
        "volume-affinity-space",
        "volume-binding-missing",
        "volume-space-missing",
    ]


nodes = st.tuples(*(selective_nodes(f"n{index}") for index in range(4)))


@settings(max_examples=100, derandomize=True)
@given(nodes, st.lists(selective_shapes(), min_size=1, max_size=3), st.lists(st.integers(0, 3), max_size=4))
def test_verdicts_equal_a_plain_loop_in_the_whole_and_in_any_view(
    records: tuple[NodeRecord, ...], shapes: list[Shape], rows: list[int]
) -> None:
    plugin = Predicates()
    columns = World(nodes=records).store().snapshot().nodes
    view = columns.rows_view(np.array(rows, dtype=np.intp))
    codes = ["", *(reason.code for reason in plugin.static_reasons)]
    for shape in shapes:
        expected = [static_reason(shape, record) for record in records]
        whole = plugin.static_predicate(shape, columns)

        assert [codes[verdict] for verdict in whole.tolist()] == expected
        assert plugin.static_predicate(shape, view).tolist() == whole[rows].tolist()
