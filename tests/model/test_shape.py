from dataclasses import fields, replace

import pytest

from tests.reference.world import a_shape
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread
from volcano_py.model.shape import (
    Admission,
    Field,
    HostPort,
    NodeTerm,
    PreferredTerm,
    Requirement,
    Shape,
    Tolerance,
)

WEB = PodSelector(("default",), None, (Requirement("app", "In", ("web",)),))
FIELD_OF = {  # attribute of Shape: the Field that plugins declare for it
    "request": Field.REQUEST,
    "nonzero": Field.REQUEST,
    "node_selector": Field.NODE_SELECTOR,
    "node_affinity": Field.NODE_AFFINITY,
    "preferred": Field.PREFERRED_NODE_AFFINITY,
    "tolerations": Field.TOLERATIONS,
    "host_ports": Field.HOST_PORTS,
    "images": Field.IMAGES,
    "n_containers": Field.IMAGES,
    "pod_terms": Field.POD_TERMS,
    "spread": Field.SPREAD,
    "selected_by": Field.SELECTED_BY,
    "gates": Field.GATES,
    "admission": Field.GATES,
    "limits": Field.LIMITS,
    "strategy": Field.STRATEGY,
    "left_out": Field.REQUEST,
    "unsupported": Field.UNSUPPORTED,
}
OTHER = {
    "request": (("cpu", 1.0), ("pods", 1.0)),
    "nonzero": (1.0, 1.0),
    "node_selector": (("zone", "a"),),
    "node_affinity": (NodeTerm((Requirement("zone", "Exists"),)),),
    "preferred": (PreferredTerm(1, NodeTerm((Requirement("zone", "Exists"),))),),
    "tolerations": (Tolerance("k"),),
    "host_ports": (HostPort("0.0.0.0", "TCP", 80),),
    "images": ("nginx:latest",),
    "n_containers": 2,
    "pod_terms": PodTerms(away=(PodTerm(WEB, "zone"),)),
    "spread": (Spread(WEB, "zone", 1, hard=True),),
    "selected_by": frozenset({WEB}),
    "gates": ("g",),
    "admission": Admission.AT_GATE,
    "limits": (4000.0, 2.0**30),
    "strategy": ("MostAllocated", ""),
    "left_out": (("example.com/a", 1.0),),
    "unsupported": ("spec.x",),
}


def test_every_attribute_of_a_shape_belongs_to_a_field_and_every_field_has_one() -> None:
    assert {attribute.name for attribute in fields(Shape)} == set(FIELD_OF)
    assert set(FIELD_OF.values()) == set(Field)


@pytest.mark.parametrize("attribute", sorted(OTHER))
def test_shapes_that_differ_anywhere_are_different_shapes(attribute: str) -> None:
    shape = a_shape(cpu=2, memory="1Gi")
    other = replace(shape, **{attribute: OTHER[attribute]})

    assert other != shape
    assert hash(other) != hash(shape)
    assert len({shape, other, replace(shape)}) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            NodeTerm((Requirement("k", "In", ("a",)),)), NodeTerm((Requirement("k", "In", ("b",)),)), id="value"
        ),
        pytest.param(
            NodeTerm((Requirement("k", "In", ("a",)),)), NodeTerm((Requirement("k", "NotIn", ("a",)),)), id="op"
        ),
        pytest.param(
            NodeTerm((Requirement("k", "In", ("a",)),)), NodeTerm((), (Requirement("k", "In", ("a",)),)), id="of"
        ),
        pytest.param(Tolerance("k", "Exists"), Tolerance("k", "Equal"), id="operator"),
        pytest.param(Tolerance("k", "Exists"), Tolerance("k", "Exists", "", "NoExecute"), id="effect"),
    ],
)
def test_shapes_that_differ_deep_inside_are_different_shapes(one: object, other: object) -> None:
    if isinstance(one, NodeTerm):
        assert a_shape(node_affinity=(one,)) != a_shape(node_affinity=(other,))  # type: ignore[arg-type]
    else:
        assert a_shape(tolerations=(one,)) != a_shape(tolerations=(other,))  # type: ignore[arg-type]


def test_no_required_affinity_is_not_the_same_as_one_without_terms() -> None:
    assert a_shape(node_affinity=None) != a_shape(node_affinity=())


@pytest.mark.parametrize(
    ("shape", "best_effort"),
    [
        pytest.param(a_shape(), True, id="only-its-own-place"),
        pytest.param(a_shape(cpu=0, memory=0), True, id="explicit-zeros"),
        pytest.param(a_shape(cpu="1m"), False, id="some-cpu"),
        pytest.param(a_shape(gpu=1), False, id="a-gpu"),
        pytest.param(Shape(request=(("cpu", 0.05), ("pods", 1.0))), True, id="below-epsilon"),
    ],
)
def test_a_best_effort_shape_requests_only_its_pod_slot(shape: Shape, best_effort: bool) -> None:
    assert shape.best_effort is best_effort
