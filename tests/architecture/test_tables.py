"""What is built in stands in a table, and says what it is."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType

import pytest

import volcano_py.actions
import volcano_py.plugins
from volcano_py.actions import ACTIONS
from volcano_py.conf.schema import FLAGS
from volcano_py.framework.contract import eviction_points, extension_points, topology
from volcano_py.framework.contract.extension_point import ExtensionPoint
from volcano_py.framework.contract.extension_points import POINTS
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.plugins import PLUGINS


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def defined(module: ModuleType, kind: type) -> list[type]:
    return [
        one
        for one in vars(module).values()
        if inspect.isclass(one) and issubclass(one, kind) and one.__module__ == module.__name__
    ]


def test_every_plugin_that_exists_is_in_the_table() -> None:
    found = {plugin for module in modules(volcano_py.plugins) for plugin in defined(module, Plugin)}

    assert found == set(PLUGINS.values())


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_a_plugin_is_found_by_its_name_and_says_what_it_does(name: str) -> None:
    plugin = PLUGINS[name]

    assert plugin.name == name
    assert inspect.getdoc(plugin)
    assert "\n" in (inspect.getmodule(plugin).__doc__ or ""), "the module states the rule or formula"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_every_argument_of_a_plugin_is_named_in_its_documentation(name: str) -> None:
    plugin = PLUGINS[name]
    text = f"{inspect.getmodule(plugin).__doc__} {inspect.getdoc(plugin)} {inspect.getdoc(plugin.parse)}"  # type: ignore[union-attr]

    for argument in plugin.arguments:
        warnings: list[str] = []
        with suppress(ValueError):  # 1 is no value of it
            plugin.parse({argument: 1}, warnings.append)
        if any("not exist here yet" in warning for warning in warnings):
            continue  # whoever sets it is told
        word = argument.removeprefix(f"{name}.").removesuffix(".*").removesuffix(".weight")
        assert word in text, argument


def _phase(module: object, name: str) -> object:
    """Return what a module calls like its action: a function, or a class if the action has arguments."""
    return next((value for key, value in vars(module).items() if key.lower() == name and callable(value)), None)


def test_every_action_that_exists_is_in_the_table_under_its_own_name() -> None:
    found = {module.__name__.rpartition(".")[2]: module for module in modules(volcano_py.actions)}

    assert {name for name, module in found.items() if _phase(module, name) is not None} == set(ACTIONS)
    for name, action in ACTIONS.items():
        assert action is _phase(found[name], name)
        assert inspect.getdoc(action)
        assert found[name].__doc__


def test_every_extension_point_is_in_the_table() -> None:
    homes = (extension_points, eviction_points, topology)
    found = {point for home in homes for point in defined(home, ExtensionPoint)}

    assert set(POINTS) == found - {ExtensionPoint}


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_an_extension_point_states_its_question_its_rule_and_its_switch(point: type[ExtensionPoint]) -> None:
    text = inspect.getdoc(point) or ""

    assert "?" in text or "Rule" in text
    assert "Rule" in text
    assert point.switch in {"", *FLAGS}
    assert point.__abstractmethods__ or point is extension_points.SeesEvictions  # type: ignore[attr-defined]
    for method in point.__abstractmethods__:  # type: ignore[attr-defined]
        assert inspect.getdoc(getattr(point, method))
