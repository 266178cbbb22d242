"""Objects of tests come from two families of builders: wire objects and records. Nobody else defines such a builder.

A test that needs other defaults calls a builder of a family from a function whose name says the difference.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIRE_OBJECTS = "volcano_py/testing/objects.py"
RECORDS = "tests/reference/world.py"
FAMILIES = {
    WIRE_OBJECTS: {
        *("a_budget", "a_group", "a_job", "a_namespace", "a_node", "a_pod", "a_priority_class", "a_queue", "a_quota"),
        *("a_replica_set", "a_replication_controller", "a_service", "a_shard", "a_hyper_node"),
    },
    RECORDS: {"a_job", "a_node", "a_queue", "a_shape", "a_task"},
}
SAME_THINGS = {"a_pod_group", "a_podgroup", "a_pdb", "a_resource_quota", "a_node_shard", "a_disruption_budget"}
"""Other names under which somebody might build the same objects."""
BUILDERS = set.union(SAME_THINGS, *FAMILIES.values())

BUILT_KINDS = {
    *("Namespace", "Node", "NodeShard", "Pod", "PodDisruptionBudget", "PodGroup", "PriorityClass", "Queue"),
    *("ReplicaSet", "ReplicationController", "ResourceQuota", "Service"),
}
WRITTEN_IN_FULL = {
    "tests/apiserver/protobuf/test_messages.py",  # objects with wrong fields
    "tests/apiserver/test_bad_bodies.py",  # objects with wrong fields
    "tests/contract/test_apply.py",  # the part of an object that an applier owns
    "tests/e2e/test_evictions.py",  # a replica set that the controllers of Kubernetes act on
    "tests/e2e/volcano_left.py",  # objects as another program leaves them
    "tests/migration/volcano_workloads.py",  # objects as another program leaves them
    "tests/migration/ordinary.py",  # objects as another program leaves them
    "tests/migration/plants_of_installation.py",  # objects with what only another program has
    "tests/migration/plants_of_objects.py",  # the same
    "tests/migration/volcano_install.py",  # objects as another program leaves them
    "tests/simulation/objects.py",  # objects as users submit them, byte for byte the same ones
    "tests/testing/test_objects.py",  # what the builders return
}
"""Tests of which an object as JSON is the subject."""


@cache
def trees() -> dict[str, ast.Module]:
    """Return the modules of tests, and of builders and runners for them, by path."""
    paths = (path for folder in ("tests", "volcano_py/testing") for path in sorted((ROOT / folder).rglob("*.py")))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in paths}


def defined(tree: ast.AST) -> set[str]:
    """Return the names of functions, methods and variables that a module defines anywhere."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def written_objects(tree: ast.AST) -> list[str]:
    """Return the kinds of objects that a module writes as JSON, with their lines."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            fields = {key.value: value for key, value in zip(node.keys, node.values, strict=True) if is_text(key)}
            kind = fields.get("kind")
            if fields.keys() >= {"apiVersion", "metadata"} and is_text(kind) and kind.value in BUILT_KINDS:
                found.append(f"line {node.lineno}: {kind.value}")
    return found


def is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.parametrize("path", FAMILIES)
def test_a_family_has_all_its_builders(path: str) -> None:
    assert FAMILIES[path] <= defined(trees()[path])


def test_builders_of_objects_and_records_are_defined_in_the_two_families_alone() -> None:
    found = {
        path: extra
        for path, tree in trees().items()
        if (extra := sorted((defined(tree) & BUILDERS) - FAMILIES.get(path, set())))
    }

    assert found == {}, f"import from {WIRE_OBJECTS} or {RECORDS}, or choose a name that says the difference"


def test_tests_do_not_write_objects_in_full() -> None:
    found = {
        path: objects
        for path, tree in trees().items()
        if path.startswith("tests/") and path not in WRITTEN_IN_FULL and (objects := written_objects(tree))
    }

    assert found == {}, "call manifest or as_json of volcano_py.testing"


def test_tests_that_may_write_objects_in_full_do_so() -> None:
    assert [path for path in sorted(WRITTEN_IN_FULL) if not written_objects(trees()[path])] == []


def test_another_builder_and_an_object_in_full_are_found() -> None:
    tree = ast.parse('def a_pod(): return {"apiVersion": "v1", "kind": "Pod", "metadata": {}}\na_node = partial(a_pod)')

    assert defined(tree) & BUILDERS == {"a_pod", "a_node"}
    assert written_objects(tree) == ["line 1: Pod"]
