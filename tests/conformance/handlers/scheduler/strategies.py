"""Area resource-strategy-fit: strategies, their arguments, and what a pod must leave idle beside scarce resources."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import numpy as np
import pytest

from tests.conformance.handlers.vectors import resource_list
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from tests.framework.sessions import a_session, info
from tests.reference.world import World, a_task
from volcano_py.api.core import Pod
from volcano_py.cache.pods import ShapeReader
from volcano_py.framework.session import Session
from volcano_py.model.objects import NodeRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.resource_strategy_fit import ResourceStrategyFit
from volcano_py.plugins.resource_strategy_fit.arguments import Entry, Strategy, read
from volcano_py.plugins.resource_strategy_fit.scores import parts


def close(expected: float, actual: float, expect: Mapping[str, Any]) -> None:
    assert actual == pytest.approx(expected, abs=expect.get("tolerance", 0), rel=0)


def is_tolerance(expected: float, _: Any, __: Mapping[str, Any]) -> None:
    assert expected >= 0


def _parse(case: Case) -> Outcome:
    strategy = read(case.input["arguments"], lambda text: None).strategy
    return {"strategy": {"resources": _written(strategy.resources), "weight": strategy.weight}}


def _written(resources: Mapping[str, Entry]) -> dict[str, Any]:
    return {name: {"type": entry.kind, "weight": entry.weight} for name, entry in resources.items()}


def _find(case: Case) -> Outcome:
    entry = Strategy(1, _entries(case.input.get("resources", {}))).find(case.input["resource"])
    return {"found": entry is not None, "config": {} if entry is None else _written({"": entry})[""]}


def _entries(written: Mapping[str, Any]) -> dict[str, Entry]:
    return {name: Entry(entry["type"], entry["weight"]) for name, entry in written.items()}


def _fraction(most: bool) -> Callable[[Case], Outcome]:
    def run(case: Case) -> Outcome:
        given = case.input
        after, capacity = (
            np.array([[float(number)]]) for number in (given["requested"] + given["used"], given["capacity"])
        )
        found, over = parts(after, capacity, np.array([[most]]), np.array([[float(given["weight"])]]))
        return {"score": float(found[0, 0]), "error": bool(over[0, 0]), "tolerance": None}

    return run


def _score(case: Case) -> Outcome:
    given = case.input
    strategy = given["strategy"]
    arguments = {"resourceStrategyFitWeight": strategy["weight"], "resources": strategy["resources"]}
    plugin = ResourceStrategyFit(read(arguments, lambda text: None))
    pod = msgspec.convert({"metadata": {}, **given["task"]["pod"]}, Pod)
    shape = Shape(request=_request(given["task"]["resreq"]), strategy=ShapeReader().shape(pod).strategy)
    ssn = _session(plugin, _amounts(given["node"]["allocatable"]), _request(given["node"]["used"]), shape)
    return {"score": float(plugin.node_order(info(ssn, shape), ssn.state.nodes)[0]), "tolerance": None}


def _proportional(case: Case) -> Outcome:
    given = case.input
    rates = {f"{name}.{part}": rate for name, shares in given["proportional"].items() for part, rate in shares.items()}
    arguments = {"enable": True, "resources": ",".join(given["proportional"]), "resourceProportion": rates}
    plugin = ResourceStrategyFit(read({"proportional": arguments}, lambda text: None))
    idle = _amounts(given["node"]["idle"])
    shape = Shape(request=_request(given["task"]["resreq"]))
    # A node with none of a resource idle still has the resource: another pod must hold it.
    has = {name: amount + 1000 for name, amount in idle.items()}
    ssn = _session(plugin, has, tuple((name, 1000.0) for name in idle), shape)
    refused = bool(plugin.predicate(info(ssn, shape), ssn.state.nodes)[0])
    assert not any(reason.resolvable for reason in plugin.reasons)
    return {"code": "UnschedulableAndUnresolvable" if refused else "Success", "error": refused}


def _session(plugin: ResourceStrategyFit, has: dict[str, float], used: tuple[Any, ...], shape: Shape) -> Session:
    world = World(
        nodes=(NodeRecord("n", allocatable=has),),
        tasks=(a_task("u", Shape(request=used), status=TaskStatus.RUNNING, node="n"), a_task("t", shape)),
    )
    return a_session(world, plugin)


def _amounts(vector: Mapping[str, Any]) -> dict[str, float]:
    found = resource_list(vector)
    return {"cpu": found.cpu, "memory": found.memory, **found.scalars}


def _request(vector: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(_amounts(vector).items()))


_FRACTION: Final = {"score": close, "error": same, "tolerance": is_tolerance}
_FRACTION_INPUT: Final = frozenset({"requested", "used", "capacity", "weight"})

OPERATIONS: Final = {
    "parseArguments": Operation(_parse, {"strategy": same}, frozenset({"arguments"})),
    "findResource": Operation(_find, {"config": same, "found": same}, frozenset({"resource", "resources"})),
    "mostRequested": Operation(_fraction(True), _FRACTION, _FRACTION_INPUT),
    "leastRequested": Operation(_fraction(False), _FRACTION, _FRACTION_INPUT),
    "score": Operation(_score, {"score": close, "tolerance": is_tolerance}, frozenset({"task", "node", "strategy"})),
    "proportional": Operation(
        _proportional, {"code": same, "error": same}, frozenset({"task", "node", "proportional"})
    ),
}
