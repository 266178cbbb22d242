"""The definitions in manifests/crds against the types that read and write these objects."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import msgspec
import pytest
from msgspec import inspect

import volcano_py.api
from volcano_py.api import keys
from volcano_py.api.meta import Wire
from volcano_py.local.manifests import definitions

DEFINITIONS: dict[str, dict[str, Any]] = {one["spec"]["names"]["plural"]: one for one in definitions()}
PLURALS = sorted(DEFINITIONS)
KINDS: dict[str, type[Wire]] = {
    plural: found
    for plural, definition in DEFINITIONS.items()
    for module in pkgutil.iter_modules(volcano_py.api.__path__, "volcano_py.api.")
    for found in (vars(importlib.import_module(module.name)).get(definition["spec"]["names"]["kind"]),)
    if isinstance(found, type) and issubclass(found, Wire) and found.__module__ == module.name
}
"""The kinds that have a type of ours, by plural."""
SCALARS: dict[type[inspect.Type], dict[str, str]] = {
    inspect.StrType: {"type": "string"},
    inspect.IntType: {"type": "integer"},
    inspect.BoolType: {"type": "boolean"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
}

Columns = list[tuple[str, str, str, int]]
AGE = ("AGE", "date", ".metadata.creationTimestamp", 0)
STATUS: dict[str, Any] = {"status": {}}


def version(plural: str) -> dict[str, Any]:
    (only,) = DEFINITIONS[plural]["spec"]["versions"]
    served: dict[str, Any] = only
    return served


def schema(plural: str, *path: str) -> dict[str, Any]:
    """Follow property names into a schema; "[]" enters the items of a list, "{}" the values of a map."""
    found: dict[str, Any] = version(plural)["schema"]["openAPIV3Schema"]
    for name in path:
        if name in ("[]", "{}"):
            found = found["items" if name == "[]" else "additionalProperties"]
        else:
            found = found["properties"][name]
    return found


def mismatches(ours: inspect.Type, theirs: dict[str, Any] | None, where: str) -> list[str]:
    """List what a value of our type could hold that the schema would refuse or drop."""
    if theirs is None:
        return [f"{where}: not in the schema, so the API server drops it"]
    if isinstance(ours, inspect.UnionType):
        variants = [variant for variant in ours.types if not isinstance(variant, inspect.NoneType)]
        if len(variants) > 1:  # a quantity
            return [] if theirs.get("x-kubernetes-int-or-string") else [f"{where}: not a quantity in the schema"]
        return mismatches(variants[0], theirs, where)
    if isinstance(ours, inspect.StructType):
        properties = theirs.get("properties", {})
        return [
            problem
            for part in ours.fields
            for problem in mismatches(part.type, properties.get(part.encode_name), f"{where}.{part.encode_name}")
        ]
    if isinstance(ours, inspect.ListType):
        return mismatches(ours.item_type, theirs.get("items"), f"{where}[]")
    if isinstance(ours, inspect.DictType):
        if isinstance(ours.value_type, inspect.AnyType):  # kept as it was sent
            return [] if theirs.get("properties") else [f"{where}: the schema drops every field of it"]
        return mismatches(ours.value_type, theirs.get("additionalProperties"), f"{where}{{}}")
    expected = SCALARS[type(ours)]
    actual = {key: theirs.get(key) for key in expected}
    return [] if actual == expected else [f"{where}: {expected} expected, the schema says {actual}"]


def structural_errors(node: dict[str, Any], where: str) -> list[str]:
    """List places without a type, which the API server does not accept in a structural schema."""
    errors = []
    if "type" not in node and not node.get("x-kubernetes-int-or-string"):
        errors.append(where)
    for name, child in node.get("properties", {}).items():
        errors += structural_errors(child, f"{where}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            errors += structural_errors(node[keyword], f"{where}.{keyword}")
    return errors


@pytest.mark.parametrize("plural", KINDS)
def test_every_field_of_our_types_exists_in_the_schema_with_its_type(plural: str) -> None:
    kind = inspect.type_info(KINDS[plural])
    assert isinstance(kind, inspect.StructType)
    problems = [
        problem
        for part in kind.fields
        if part.name != "metadata"
        for problem in mismatches(part.type, schema(plural).get("properties", {}).get(part.encode_name), part.name)
    ]
    assert problems == []


def test_a_field_that_the_schema_lacks_is_found() -> None:
    class Longer(Wire, frozen=True):
        min_member: int = 0
        brand_new: str = ""

    ours = inspect.type_info(Longer)
    assert mismatches(ours, schema("podgroups", "spec"), "spec") == [
        "spec.brandNew: not in the schema, so the API server drops it"
    ]


@pytest.mark.parametrize("plural", PLURALS)
def test_the_schema_is_structural(plural: str) -> None:
    assert structural_errors(schema(plural), plural) == []


@pytest.mark.parametrize(
    ("plural", "group", "scope", "kind", "short", "subresources"),
    [
        ("jobs", "batch.volcano.sh/v1alpha1", "Namespaced", "Job", ["vcjob", "vj"], STATUS),
        ("cronjobs", "batch.volcano.sh/v1alpha1", "Namespaced", "CronJob", ["cronvcjob", "cronvj"], STATUS),
        ("commands", "bus.volcano.sh/v1alpha1", "Namespaced", "Command", None, None),
        (
            "podgroups",
            "scheduling.volcano.sh/v1beta1",
            "Namespaced",
            "PodGroup",
            ["pg", "podgroup-v1beta1"],
            {},  # its status is written with the whole object
        ),
        ("queues", "scheduling.volcano.sh/v1beta1", "Cluster", "Queue", ["q", "queue-v1beta1"], STATUS),
        ("jobflows", "flow.volcano.sh/v1alpha1", "Namespaced", "JobFlow", ["jf"], STATUS),
        ("jobtemplates", "flow.volcano.sh/v1alpha1", "Namespaced", "JobTemplate", ["jt"], STATUS),
        ("hypernodes", "topology.volcano.sh/v1alpha1", "Cluster", "HyperNode", ["hn"], STATUS),
        ("numatopologies", "nodeinfo.volcano.sh/v1alpha1", "Cluster", "Numatopology", ["numatopo"], None),
        ("nodeshards", "shard.volcano.sh/v1alpha1", "Cluster", "NodeShard", ["nsh"], STATUS),
        (
            "colocationconfigurations",
            "config.volcano.sh/v1alpha1",
            "Namespaced",
            "ColocationConfiguration",
            None,
            STATUS,
        ),
    ],
)
def test_names_and_scope_are_those_that_users_know(
    plural: str, group: str, scope: str, kind: str, short: list[str] | None, subresources: dict[str, Any] | None
) -> None:
    definition, served = DEFINITIONS[plural], version(plural)
    spec, names = definition["spec"], definition["spec"]["names"]
    assert f"{spec['group']}/{served['name']}" == group
    assert definition["metadata"]["name"] == f"{plural}.{spec['group']}"
    assert definition["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert (spec["scope"], names["kind"], names["singular"], names.get("shortNames")) == (
        scope,
        kind,
        kind.lower(),
        short,
    )
    assert served.get("subresources") == subresources
    assert served["served"]
    assert served["storage"]


@pytest.mark.parametrize(
    ("plural", "columns"),
    [
        (
            "jobs",
            [
                ("STATUS", "string", ".status.state.phase", 0),
                ("minAvailable", "integer", ".status.minAvailable", 0),
                ("RUNNINGS", "integer", ".status.running", 0),
                AGE,
                ("QUEUE", "string", ".spec.queue", 1),
            ],
        ),
        (
            "podgroups",
            [
                ("STATUS", "string", ".status.phase", 0),
                ("minMember", "integer", ".spec.minMember", 0),
                ("RUNNINGS", "integer", ".status.running", 0),
                AGE,
                ("QUEUE", "string", ".spec.queue", 1),
            ],
        ),
        ("queues", [("PARENT", "string", ".spec.parent", 0)]),
        ("jobflows", [("Status", "string", ".status.state.phase", 0), ("Age", *AGE[1:])]),
        (
            "hypernodes",
            [
                ("Tier", "string", ".spec.tier", 0),
                ("TierName", "string", ".spec.tierName", 0),
                ("NodeCount", "integer", ".status.nodeCount", 0),
                ("Age", *AGE[1:]),
            ],
        ),
        ("nodeshards", [AGE]),
        *((plural, []) for plural in ("commands", "cronjobs", "jobtemplates", "numatopologies")),
    ],
)
def test_columns_are_those_that_users_know(plural: str, columns: Columns) -> None:
    shown = version(plural).get("additionalPrinterColumns", [])
    assert [(one["name"], one["type"], one["jsonPath"], one.get("priority", 0)) for one in shown] == columns


def test_every_phase_that_the_scheduler_writes_is_allowed() -> None:
    phases = {getattr(keys, name) for name in dir(keys) if name.startswith("PHASE_")}
    assert phases == set(schema("podgroups", "status", "phase")["enum"])


def defaults(node: dict[str, Any], where: str) -> dict[str, object]:
    """Every default below a schema, by path."""
    found = {where: node["default"]} if "default" in node else {}
    for name, child in node.get("properties", {}).items():
        found |= defaults(child, f"{where}.{name}" if where else name)
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in node:
            found |= defaults(node[keyword], where + mark)
    return found


def job_defaults(spec: str) -> dict[str, object]:
    return {
        f"{spec}.queue": "default",
        f"{spec}.maxRetry": 3,
        f"{spec}.networkTopology.mode": "hard",
        f"{spec}.tasks[].replicas": 0,
        f"{spec}.tasks[].partitionPolicy.minPartitions": 0,
        f"{spec}.tasks[].partitionPolicy.networkTopology.mode": "hard",
    }


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("jobs", job_defaults("spec")),
        ("jobtemplates", job_defaults("spec")),
        (
            "cronjobs",
            {
                "spec.concurrencyPolicy": "Allow",
                "spec.suspend": False,
                "spec.successfulJobsHistoryLimit": 3,
                "spec.failedJobsHistoryLimit": 1,
                **job_defaults("spec.jobTemplate.spec"),
            },
        ),
        pytest.param("jobflows", {}, id="jobflows-a-patch-changes-only-what-it-names"),
        (
            "podgroups",
            {
                "spec.queue": "default",
                "spec.networkTopology.mode": "hard",
                "spec.subGroupPolicy[].subGroupSize": 1,
                "spec.subGroupPolicy[].minSubGroups": 0,
                "spec.subGroupPolicy[].networkTopology.mode": "hard",
            },
        ),
        ("queues", {"spec.weight": 1, "spec.priority": 0, "spec.dequeueStrategy": "traverse"}),
        (
            "colocationconfigurations",
            {"spec.memoryQos.highRatio": 100, "spec.memoryQos.lowRatio": 0, "spec.memoryQos.minRatio": 0},
        ),
        *((plural, {}) for plural in ("commands", "hypernodes", "numatopologies", "nodeshards")),
    ],
)
def test_the_api_server_fills_in_what_volcano_fills_in_and_nothing_in_pod_templates(
    plural: str, expected: dict[str, object]
) -> None:
    assert defaults(schema(plural), "") == expected


@pytest.mark.parametrize("plural", sorted(KINDS.keys() - {"commands"}))  # nobody writes a Command back
def test_absent_fields_are_not_written_back(plural: str) -> None:
    # Otherwise a field the user left to the API server would come back set.
    empty = msgspec.json.decode(b'{"metadata": {}}', type=KINDS[plural])
    assert msgspec.to_builtins(empty) == {"metadata": {}}


@pytest.mark.parametrize("text", ["1", "100m", "16Gi", "1.5", "2e3", "-1", ".5", "4k"])
def test_a_quantity_passes_the_schema(text: str) -> None:
    assert re.search(schema("queues", "spec", "capability", "{}")["pattern"], text)


@pytest.mark.parametrize("text", ["", "4 Gi", "lots", "1Kb", "1e"])
def test_a_text_that_is_no_quantity_fails_the_schema(text: str) -> None:
    assert not re.search(schema("queues", "spec", "capability", "{}")["pattern"], text)
