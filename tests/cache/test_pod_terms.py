"""Terms between pods as specs write them: equal terms are one, however they are written."""

from typing import Any

import pytest

from volcano_py.cache.pods import ShapeReader, shape_of
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread, WeighedPodTerm
from volcano_py.model.requirements import Requirement
from volcano_py.testing import a_pod

REQUIRED, PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
WEB = {"matchLabels": {"app": "web"}}
APP_WEB = Requirement("app", "In", ("web",))


def away(term: dict[str, Any], **pod: Any) -> PodTerm:
    """Return a required anti-affinity term as it is read."""
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}}
    (found,) = shape_of(a_pod(spec=spec, **pod)).pod_terms.away
    return found


def spread(constraint: dict[str, Any], **pod: Any) -> Spread:
    spec = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", **constraint}]}
    (found,) = shape_of(a_pod(spec=spec, **pod)).spread
    return found


def test_all_four_kinds_of_terms() -> None:
    def term(app: str) -> dict[str, Any]:
        return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}

    def read(app: str) -> PodTerm:
        return PodTerm(PodSelector(("default",), None, (Requirement("app", "In", (app,)),)), "zone")

    affinity = {
        "podAffinity": {REQUIRED: [term("a")], PREFERRED: [{"weight": 5, "podAffinityTerm": term("b")}]},
        "podAntiAffinity": {
            REQUIRED: [term("c")],
            PREFERRED: [{"weight": 7, "podAffinityTerm": term("d")}, {"weight": 0, "podAffinityTerm": term("e")}],
        },
    }

    assert shape_of(a_pod(spec={"affinity": affinity})).pod_terms == PodTerms(
        near=(read("a"),),
        away=(read("c"),),
        preferred=(WeighedPodTerm(5, read("b")), WeighedPodTerm(-7, read("d"))),
    )


@pytest.mark.parametrize(
    ("term", "selector"),
    [
        pytest.param({"labelSelector": WEB}, PodSelector(("default",), None, (APP_WEB,)), id="own-namespace"),
        pytest.param({}, PodSelector(("default",), None, None), id="no-selector-means-nobody"),
        pytest.param({"labelSelector": {}}, PodSelector(("default",), None, ()), id="an-empty-one-means-everybody"),
        pytest.param(
            {"labelSelector": WEB, "namespaces": ["b", "a", "b"]},
            PodSelector(("a", "b"), None, (APP_WEB,)),
            id="namespaces",
        ),
        pytest.param(
            {"labelSelector": WEB, "namespaceSelector": {}}, PodSelector((), (), (APP_WEB,)), id="every-namespace"
        ),
        pytest.param(
            {"labelSelector": WEB, "namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "x"}}},
            PodSelector(("a",), (Requirement("team", "In", ("x",)),), (APP_WEB,)),
            id="namespaces-and-selector",
        ),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "web"]}]}},
            PodSelector(("default",), None, (APP_WEB,)),
            id="expressions-in-the-same-form",
        ),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}},
            PodSelector(("default",), None, (Requirement("app", "Gt", ("1",)),), readable=False),
            id="an-operator-of-nodes-only",
        ),
        pytest.param(
            {"labelSelector": {"matchLabels": {"a b": "x"}}},
            PodSelector(("default",), None, (Requirement("a b", "In", ("x",)),), readable=False),
            id="an-impossible-key",
        ),
    ],
)
def test_which_pods_a_term_selects(term: dict[str, Any], selector: PodSelector) -> None:
    assert away(term).selector == selector


def test_match_label_keys_are_merged_as_the_api_server_does() -> None:
    term = {"labelSelector": WEB, "matchLabelKeys": ["rev", "absent"], "mismatchLabelKeys": ["team"]}

    assert away(term, labels={"rev": "2", "team": "x"}).selector.labels == (
        APP_WEB,
        Requirement("rev", "In", ("2",)),
        Requirement("team", "NotIn", ("x",)),
    )


def test_merged_match_label_keys_keep_the_labels_of_the_pods_creation() -> None:
    folded = {"matchLabels": {"app": "web", "rev": "1"}}

    found = away({"labelSelector": folded, "matchLabelKeys": ["rev"]}, labels={"rev": "2"}).selector.labels

    assert found == (APP_WEB, Requirement("rev", "In", ("1",)))


def test_a_spread_constraint_and_its_defaults() -> None:
    selector = PodSelector(("default",), None, (APP_WEB,))

    assert spread({"labelSelector": WEB, "whenUnsatisfiable": "DoNotSchedule"}) == Spread(
        selector, "zone", 1, hard=True
    )
    assert spread(
        {
            "labelSelector": WEB,
            "whenUnsatisfiable": "ScheduleAnyway",
            "maxSkew": 3,
            "minDomains": 2,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        }
    ) == Spread(selector, "zone", 3, hard=False, min_domains=2, honor_affinity=False, honor_taints=True)


def test_match_label_keys_of_a_spread_constraint_follow_current_labels() -> None:
    constraint = {"labelSelector": WEB, "matchLabelKeys": ["rev", "absent"]}

    assert spread(constraint, labels={"rev": "2"}).selector.labels == (APP_WEB, Requirement("rev", "In", ("2",)))
    assert spread({"matchLabelKeys": ["rev"]}, labels={"rev": "2"}).selector.labels is None


def test_pods_of_one_template_share_a_shape_whatever_else_their_labels_say() -> None:
    reader = ShapeReader()
    term = {"topologyKey": "zone", "labelSelector": WEB, "matchLabelKeys": ["rev"]}
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    one, other, newer = (
        reader.shape(a_pod(name, spec=spec, labels={"rev": rev, "pod": name}))
        for name, rev in (("a", "1"), ("b", "1"), ("c", "2"))
    )

    assert one is other
    assert newer != one


def test_a_term_without_namespaces_is_about_the_namespace_of_its_pod() -> None:
    reader = ShapeReader()
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": WEB}]}}}
    one, other = (reader.shape(a_pod(namespace=space, spec=spec)) for space in ("a", "b"))

    assert [shape.pod_terms.away[0].selector.namespaces for shape in (one, other)] == [("a",), ("b",)]


def test_a_weight_that_does_not_fit_is_named() -> None:
    wish = {"weight": 2**40, "podAffinityTerm": {"topologyKey": "zone"}}

    with pytest.raises(ValueError, match=r"podAffinity\.preferred\w+\[0\]\.weight: \d+ does not fit in 32 bits"):
        shape_of(a_pod(spec={"affinity": {"podAffinity": {PREFERRED: [wish]}}}))
