"""Whatever an object looks like, every rule answers; and the table of rules is whole."""

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.admission.asking import job, policy, queue, task
from tests.admission.dict_view import DictView
from tests.admission.refused_templates import BAD
from tests.admission.templates import GOOD, template_of
from volcano_py.admission.contract import CREATE, DELETE, UPDATE, Options, Request, Verdict
from volcano_py.admission.graph import in_order, unknown_targets
from volcano_py.admission.pod_rules.template import template_flaws
from volcano_py.admission.rules import RULES
from volcano_py.api.plugin_arguments import JOB_PLUGINS
from volcano_py.controllers.job.plugins.registry import BUILT_IN

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**70,
    "",
    "a",
    "é" * 300,
    "1" * 5000,
    [],
    {},
    [None],
    {"a": None},
    [[]],
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metadata", "spec", "tasks", "name"]), inner)
    ),
    max_leaves=12,
)
EVERYTHING: dict[str, dict[str, Any]] = {
    "/jobs": job(
        task(
            policies=[policy(events=["PodEvicted"], exitCode=3)],
            dependsOn={"name": ["a"], "iteration": "any"},
            partitionPolicy={"totalPartitions": 1, "partitionSize": 1, "networkTopology": {"highestTierAllowed": 1}},
            topologyPolicy="restricted",
            minAvailable=1,
        ),
        plugins={"mpi": ["--master=main"]},
        policies=[policy()],
        volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}],
        networkTopology={"highestTierName": "a"},
    ),
    "/queues": queue(
        "q",
        pods=3,
        annotations={"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "1/2"},
        parent="p",
        capability={"cpu": "1"},
        deserved={"cpu": "1"},
        guarantee={"cpu": "1"},
    ),
    "/podgroups": {
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"queue": "q", "networkTopology": {}, "subGroupPolicy": [{"name": "a", "networkTopology": {}}]},
    },
    "/pods": {
        "metadata": {"name": "p", "annotations": {"volcano.sh/jdb-min-available": "1"}},
        "spec": {"schedulerName": "volcano", "tolerations": [{}], "nodeSelector": {"a": "b"}, "schedulingGates": [{}]},
    },
    "/jobflows": {"spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["b"]}}, {"name": "b"}]}},
    "/hypernodes": {"spec": {"members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "a"}}}]}},
    "/cronjobs": {
        "metadata": {"name": "c"},
        "spec": {"schedule": "* * * * *", "timeZone": "UTC", "jobTemplate": {"spec": job()["spec"]}},
    },
}


def test_every_path_has_a_rule() -> None:
    assert RULES.keys() == {
        *(f"/{kind}/{what}" for kind in ("jobs", "queues", "podgroups", "pods") for what in ("mutate", "validate")),
        "/jobflows/validate",
        "/hypernodes/validate",
        "/cronjobs/validate",
    }


def test_the_plugins_of_jobs_are_those_of_the_job_controller() -> None:
    assert tuple(BUILT_IN) == JOB_PLUGINS


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every owner of a field or item, with its key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@pytest.mark.parametrize("path", RULES)
def test_every_field_may_be_of_any_type(path: str) -> None:
    whole = EVERYTHING[path.rpartition("/")[0]]
    view = DictView([queue("p"), queue("c", parent="q")])
    for number in range(len(places(whole))):
        for odd in ODD:
            broken = copy.deepcopy(whole)
            owner, key = places(broken)[number]
            owner[key] = copy.deepcopy(odd)
            for request in (
                Request(CREATE, "ns", "a", broken),
                Request(UPDATE, "ns", "a", broken, whole),
                Request(UPDATE, "ns", "a", whole, broken),
                Request(DELETE, "ns", "a", {}, broken),
            ):
                assert isinstance(RULES[path](request, view, Options(queue_gate=True)).message, str)


@settings(max_examples=200)
@given(JSON, JSON, st.sampled_from(sorted(RULES)), st.sampled_from([CREATE, UPDATE, DELETE, "CONNECT", ""]))
def test_any_json_gets_an_answer(obj: Any, old: Any, path: str, operation: str) -> None:
    request = Request(operation, "ns", "a", obj if isinstance(obj, dict) else {}, old if isinstance(old, dict) else {})

    assert isinstance(RULES[path](request, DictView(), Options()), Verdict)


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_every_field_of_a_template_may_be_of_any_type(name: str) -> None:
    whole = template_of({**GOOD, **BAD}[name])
    generator = random.Random(name)
    for _ in range(30):
        broken = copy.deepcopy(whole)
        found = places(broken)
        owner, key = generator.choice(found)
        owner[key] = copy.deepcopy(generator.choice(ODD))

        assert isinstance(template_flaws(broken, "template", pod_level_resources=True), tuple)


@given(st.dictionaries(st.integers(0, 9).map(str), st.lists(st.integers(0, 9).map(str)), max_size=10))
def test_an_order_puts_everything_after_what_it_needs(graph: dict[str, list[str]]) -> None:
    order = in_order(graph)

    if order is not None:
        assert sorted(order) == sorted(graph)
        assert all(order.index(target) < order.index(name) for name, targets in graph.items() for target in targets)
    else:
        assert unknown_targets(graph) or any(reaches(graph, name, name) for name in graph)


def reaches(graph: dict[str, list[str]], start: str, end: str) -> bool:
    seen, waiting = set(), list(graph.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name == end:
            return True
        if name not in seen:
            seen.add(name)
            waiting += graph.get(name, ())
    return False
