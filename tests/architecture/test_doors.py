"""A new kind of object, a new controller and a new command each have one door: a table that is complete."""

import ast
import importlib
import inspect
import pkgutil
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import yaml

import volcano_py.api
import volcano_py.cli
import volcano_py.controllers
from volcano_py.api.batch import Command, CronJob, Job
from volcano_py.api.flow import JobFlow, JobTemplate
from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.watched_kinds import WATCHED_KINDS, WatchedKind
from volcano_py.cli import start
from volcano_py.cli.volcano_py import COMMANDS
from volcano_py.controllers.table import CONTROLLERS
from volcano_py.kube import resource
from volcano_py.kube.resource import Resource
from volcano_py.local.manifests import definitions

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
READ_ONLY_ELSEWHERE: frozenset[type] = frozenset({Command, CronJob, Job, JobFlow, JobTemplate})
"""Kinds in `volcano_py.api` that controllers or webhooks read and the scheduler does not."""

each_kind = pytest.mark.parametrize("kind", WATCHED_KINDS, ids=lambda kind: kind.resource.label)


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def own_classes(module: ModuleType) -> Iterator[type]:
    return (one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__)


# Watched kinds


def kinds_of_the_api() -> set[type]:
    """Return the wire types that are whole objects: those with metadata."""
    types = [one for module in modules(volcano_py.api) for one in own_classes(module) if issubclass(one, Wire)]
    return {one for one in types if any(is_metadata(field.type) for field in msgspec.structs.fields(one))}


def is_metadata(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, ObjectMeta)


def handlers(owner: object) -> Iterator[object]:
    """Yield the event handlers among the public attributes of an object, and among theirs."""
    for name, value in vars(owner).items():
        if not name.startswith("_"):
            if hasattr(value, "on_events"):
                yield value
            elif type(value).__module__.startswith("volcano_py.cache") and hasattr(value, "__dict__"):
                yield from handlers(value)


def test_every_kind_of_the_api_is_watched_once() -> None:
    watched = Counter(kind.type for kind in WATCHED_KINDS)

    assert watched.keys() == kinds_of_the_api() - READ_ONLY_ELSEWHERE
    assert set(watched.values()) == {1}
    assert len({kind.resource for kind in WATCHED_KINDS}) == len(WATCHED_KINDS)


def test_every_event_handler_of_the_cache_has_its_watch() -> None:
    cache = ClusterCache()
    watched = [kind.handler(cache) for kind in WATCHED_KINDS]

    assert Counter(map(id, watched)) == Counter(map(id, handlers(cache)))


@each_kind
def test_a_kind_is_read_into_the_type_of_its_name(kind: WatchedKind[Any]) -> None:
    assert kind.type.__name__ == kind.resource.kind


def test_pods_come_last() -> None:
    assert WATCHED_KINDS[-1].resource is resource.PODS


def rights_to_watch(file: Path) -> set[str]:
    """Return the resources that a manifest lets the scheduler both list and watch, as labels."""
    return {
        f"{name}.{group}" if group else name
        for document in yaml.safe_load_all(file.read_text())
        for rule in document.get("rules", ())
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for name in rule["resources"]
    }


@pytest.mark.parametrize(("folder", "sharded"), [("rbac", False), ("sharding", True)])
def test_the_manifests_let_the_scheduler_watch_these_kinds_and_no_others(folder: str, sharded: bool) -> None:
    watched = {kind.resource.label for kind in WATCHED_KINDS if kind.sharded_only == sharded}

    assert rights_to_watch(MANIFESTS / folder / "scheduler.yaml") == watched


def test_the_manifests_define_every_custom_kind() -> None:
    defined = {
        Resource(spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced")
        for spec in (definition["spec"] for definition in definitions())
        for names in (spec["names"],)
        for version in spec["versions"]
    }
    used = {one for one in vars(resource).values() if isinstance(one, Resource) and one.group.endswith("volcano.sh")}

    assert {kind.resource for kind in WATCHED_KINDS if kind.resource.group.endswith("volcano.sh")} <= used
    assert used - defined == set()


def test_resources_are_defined_in_one_module() -> None:
    def defines(path: Path) -> bool:
        tree = ast.parse(path.read_text())
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == resource.__name__
            for alias in node.names
        }
        return "Resource" in imported and any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Resource"
            for node in ast.walk(tree)
        )

    assert [str(path.relative_to(ROOT)) for path in (ROOT / "volcano_py").rglob("*.py") if defines(path)] == []
    places = [one.collection() for one in vars(resource).values() if isinstance(one, Resource)]
    assert len(set(places)) == len(places)


# Controllers


def test_every_controller_that_exists_is_in_the_table_under_its_own_name() -> None:
    found = {
        one
        for module in modules(volcano_py.controllers)
        if module.__name__.endswith(".controller") and module.__name__.count(".") > 2
        for one in own_classes(module)
        if hasattr(one, "watch") and hasattr(one, "start")
    }

    assert found == set(CONTROLLERS.values())
    assert {name: build.name for name, build in CONTROLLERS.items()} == {name: name for name in CONTROLLERS}  # type: ignore[attr-defined]


def test_every_package_of_the_controllers_has_one() -> None:
    packages = {found.name for found in pkgutil.iter_modules(volcano_py.controllers.__path__) if found.ispkg}

    assert {build.__module__.split(".")[2] for build in CONTROLLERS.values()} == packages


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_controller_decides_in_plain_functions(name: str) -> None:
    package = CONTROLLERS[name].__module__.rpartition(".")[0]
    tree = ast.parse(Path(importlib.import_module(f"{package}.decision").__file__ or "").read_text())

    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]


# Programs and their commands


def test_every_command_that_exists_is_in_the_table() -> None:
    found = {
        module.__name__
        for module in modules(volcano_py.cli)
        if inspect.isfunction(getattr(module, "add_flags", None)) and inspect.isfunction(getattr(module, "run", None))
    }

    assert found == {command.module for command in COMMANDS}
    assert {command.name: command.module for command in COMMANDS} == {
        name.rpartition(".")[2].replace("_", "-"): name for name in found
    }


def test_every_program_that_exists_is_installed() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    programs = {
        module.__name__.rpartition(".")[2]
        for module in modules(volcano_py.cli)
        if inspect.isfunction(getattr(module, "main", None))
    }

    chosen_by_kubectl = {"kubectl_complete_vc": "kubectl_complete-vc"}
    installed = {name: chosen_by_kubectl.get(name, name.replace("_", "-")) for name in programs}
    assert scripts == {installed[name]: f"{start.__name__}:{name}" for name in programs}
    for name in programs:
        assert getattr(start, name).args == (f"volcano_py.cli.{name}",)
