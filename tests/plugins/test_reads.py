"""Every plugin says which fields of a shape its answers depend on, and depends on no others."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.world import World, a_job, a_node, a_shape, a_task
from volcano_py.framework.contract import extension_points
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.session import Session
from volcano_py.model.objects import TaintRecord
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread, WeighedPodTerm
from volcano_py.model.shape import Field, HostPort, NodeTerm, PreferredTerm, Requirement, Shape, Tolerance
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins import PLUGINS
from volcano_py.snapshot.columns import NodeColumns

FIELD_OF = {
    "request": Field.REQUEST,
    "nonzero": Field.REQUEST,
    "best_effort": Field.REQUEST,
    "fit": Field.REQUEST,
    "amounts": Field.REQUEST,
    "nonzero_amounts": Field.REQUEST,
    "asked": Field.REQUEST,
    "preferred": Field.PREFERRED_NODE_AFFINITY,
    "n_containers": Field.IMAGES,
}
FIELDS_OF = {"has_inter_pod_terms": {Field.POD_TERMS, Field.SPREAD, Field.SELECTED_BY}}
NOT_PART_OF_A_SHAPE = {"shape_id", "equivalence_key"}
WEB, DB = (PodSelector(("ns",), None, (Requirement("app", "In", (app,)),)) for app in ("web", "db"))
SHAPES = (
    a_shape(cpu=1),
    a_shape(cpu=2, memory="1Gi", gpu=1, node_selector={"zone": "a"}),
    a_shape(
        cpu=1,
        node_affinity=(NodeTerm((Requirement("zone", "In", ("a",)),)), NodeTerm((Requirement("disk", "Exists"),))),
        tolerations=(Tolerance("k", "Exists"),),
    ),
    a_shape(),
    a_shape(cpu=1, pod_terms=PodTerms(near=(PodTerm(DB, "zone"),))),
    a_shape(cpu=1, spread=(Spread(DB, "zone", 1, hard=True), Spread(DB, "zone", 1, hard=False, honor_taints=True))),
)
RUNNING = (
    a_task("web", a_shape(cpu=1), labels=("app", "web"), status=TaskStatus.RUNNING, node="n1"),
    a_task("db", a_shape(cpu=1), labels=("app", "db"), status=TaskStatus.RUNNING, node="n2"),
)
WORLD = World(
    nodes=(
        a_node("n1", labels={"zone": "a", "disk": "ssd"}, gpu=2),
        a_node(
            "n2",
            labels={"zone": "b"},
            taints=[TaintRecord("k", "", "NoSchedule"), TaintRecord("q", "", "PreferNoSchedule")],
        ),
        a_node("n3", unschedulable=True),
    ),
    jobs=(a_job("j"),),
    tasks=(
        *(a_task(f"p{index}", shape, job="j") for index, shape in enumerate(SHAPES)),
        *RUNNING,
    ),
)


class Recorded:
    """Stands for a shape or task and notes what is read of it."""

    def __init__(self, original: object, seen: set[str]) -> None:
        self._original = original
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        if name == "shape":
            return Recorded(self._original.shape, self._seen)  # type: ignore[attr-defined]
        self._seen.add(name)
        return getattr(self._original, name)

    def __hash__(self) -> int:
        return hash(self._original)


def answers(plugin: Plugin, ssn: Session, nodes: NodeColumns, task: Any, shape: Any) -> Iterator[Any]:
    """Yield what a plugin answers about a task, on every point where it is shown one."""
    if isinstance(plugin, extension_points.StaticPredicate):
        yield plugin.static_predicate(shape, nodes)
        assert isinstance(hash(plugin.static_part(shape)), int)
    if isinstance(plugin, extension_points.Predicate):
        yield plugin.predicate(task, nodes)
    if isinstance(plugin, extension_points.NodeOrder):
        yield plugin.node_order(task, nodes)
    if isinstance(plugin, extension_points.Allocatable):
        yield plugin.allocatable(ssn.state.queues["default"], task, 3)
    if isinstance(plugin, extension_points.InterPodPredicate):
        answers = plugin.inter_pod_filter(task)
        yield np.ones(len(nodes), dtype=bool) if answers is None else answers.allowed()
    if isinstance(plugin, extension_points.InterPodOrder):
        wishes, everywhere = plugin.inter_pod_scores(task), np.ones(len(nodes), dtype=bool)
        yield np.zeros(len(nodes)) if wishes is None else wishes.scores(everywhere)
    if isinstance(plugin, extension_points.NormalizedOrder):
        for score in plugin.normalized_orders():
            if score.part(shape) is not None:
                yield score.raw(shape, nodes)


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_a_plugin_reads_only_what_it_declares(name: str) -> None:
    plugin = PLUGINS[name](PLUGINS[name].parse({}, lambda text: None))
    ssn = a_session(WORLD, plugin)
    seen: set[str] = set()
    for shape_id, shape in enumerate(ssn.state.classes.shapes):
        task = Recorded(ssn.state.task_of(shape_id), seen)
        list(answers(plugin, ssn, ssn.state.nodes, task, Recorded(shape, seen)))

    found: set[Field] = set()
    for attribute in seen - NOT_PART_OF_A_SHAPE:
        found |= FIELDS_OF.get(attribute) or {FIELD_OF.get(attribute) or Field[attribute.upper()]}
    assert found <= plugin.reads


OTHER = {
    "request": (("cpu", 3000.0), ("pods", 1.0)),
    "nonzero": (3000.0, 1.0),
    "node_selector": (("zone", "b"),),
    "node_affinity": (NodeTerm((Requirement("zone", "NotIn", ("a",)),)),),
    "preferred": (PreferredTerm(7, NodeTerm((Requirement("disk", "Exists"),))),),
    "tolerations": (Tolerance("", "Exists"),),
    "host_ports": (HostPort("0.0.0.0", "TCP", 80),),
    "images": ("nginx:latest", "redis:7"),
    "n_containers": 3,
    "pod_terms": PodTerms(away=(PodTerm(WEB, "zone"),), preferred=(WeighedPodTerm(5, PodTerm(DB, "zone")),)),
    "spread": (Spread(WEB, "zone", 1, hard=True), Spread(DB, "zone", 1, hard=False)),
    "selected_by": frozenset({WEB}),
    "gates": ("g",),
    "unsupported": ("spec.x",),
    "limits": (4000.0, 2.0**30),
    "strategy": ("MostAllocated", '{"cpu": 1}'),
}


def test_every_field_of_a_shape_is_changed_somewhere() -> None:
    assert set(OTHER) <= {field.name for field in fields(Shape)}
    assert {FIELD_OF.get(name) or Field[name.upper()] for name in OTHER} == set(Field)


@pytest.mark.parametrize(
    "name", sorted(name for name in PLUGINS if issubclass(PLUGINS[name], extension_points.StaticPredicate))
)
def test_shapes_with_equal_static_parts_have_equal_verdicts(name: str) -> None:
    plugin = PLUGINS[name](PLUGINS[name].parse({}, lambda text: None))
    assert isinstance(plugin, extension_points.StaticPredicate)
    nodes = a_session(WORLD, plugin).state.nodes
    for shape in SHAPES:
        for attribute, value in OTHER.items():
            changed = replace(shape, **{attribute: value})
            if plugin.static_part(shape) == plugin.static_part(changed):
                verdicts = plugin.static_predicate(shape, nodes), plugin.static_predicate(changed, nodes)
                assert np.array_equal(*verdicts), attribute


@pytest.mark.parametrize("attribute", sorted(OTHER))
@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_shapes_that_differ_in_what_a_plugin_does_not_read_have_equal_answers(name: str, attribute: str) -> None:
    field = FIELD_OF.get(attribute) or Field[attribute.upper()]
    plugin = PLUGINS[name](PLUGINS[name].parse({}, lambda text: None))
    if field in plugin.reads:
        return
    for shape in SHAPES:
        changed = replace(shape, **{attribute: OTHER[attribute]})
        found = []
        for one in (shape, changed):
            ssn = a_session(replace(WORLD, tasks=(a_task("p", one, job="j"), *RUNNING)), plugin)
            task = ssn.state.task_of(0)
            found.append(list(answers(plugin, ssn, ssn.state.nodes, task, one)))
        assert len(found[0]) == len(found[1])
        for before, after in zip(*found, strict=True):
            assert np.array_equal(before, after)


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_a_plugin_that_looks_at_nodes_says_what_it_depends_on(name: str) -> None:
    """The safe default would cost every gang its heap without anybody noticing."""
    plugin = PLUGINS[name]
    if issubclass(plugin, extension_points.Predicate | extension_points.NodeOrder):
        assert "depends_on" in vars(plugin)
