from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info
from tests.reference import strategy_fit
from tests.reference.accounts import node_accounts
from tests.reference.strategies import worlds
from tests.reference.world import GPU, World, a_node, a_shape, a_task
from volcano_py import testing
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.resource_strategy_fit import ResourceStrategyFit
from volcano_py.plugins.resource_strategy_fit.arguments import Entry, Scarce, Share, read

MOST, LEAST = "MostAllocated", "LeastAllocated"
NODES = (a_node("empty", cpu=8, memory="8Gi"), a_node("half", cpu=8, memory="8Gi"), a_node("gpu", cpu=8, gpu=4))
STANDING = (a_task("s", a_shape(cpu=4), status=TaskStatus.RUNNING, node="half"),)


def plugin_of(**arguments: Any) -> ResourceStrategyFit:
    return ResourceStrategyFit(ResourceStrategyFit.parse(arguments, lambda text: None))


def scores(shape: Shape, **arguments: Any) -> list[float]:
    plugin = plugin_of(**arguments)
    ssn = a_session(World(nodes=NODES, tasks=(*STANDING, a_task("t", shape))), plugin)
    rows = [ssn.state.nodes.statics.row_of[node.name] for node in NODES]
    found: list[float] = plugin.node_order(info(ssn, shape), ssn.state.nodes)[rows].tolist()
    return found


def entries(**by_name: tuple[str, int]) -> dict[str, Any]:
    return {name: {"type": kind, "weight": weight} for name, (kind, weight) in by_name.items()}


@pytest.mark.parametrize(
    ("shape", "arguments", "expected"),
    [
        pytest.param(a_shape(cpu=2), {}, [750, 250, 750], id="by-default-the-emptier-the-better-times-ten"),
        pytest.param(
            a_shape(cpu=2), {"resources": entries(cpu=(MOST, 1))}, [250, 750, 250], id="or-the-fuller-the-better"
        ),
        pytest.param(a_shape(cpu=6), {}, [250, 0, 250], id="what-does-not-fit-scores-nothing"),
        pytest.param(a_shape(gpu=1), {}, [0, 0, 0], id="a-resource-without-an-entry-is-not-scored"),
        pytest.param(
            a_shape(gpu=1),
            {"resources": {"nvidia.com/*": {"type": MOST, "weight": 1}}},
            [0, 0, 250],
            id="a-prefix-stands-for-all-its-names",
        ),
        pytest.param(a_shape(cpu=2), {"resourceStrategyFitWeight": 0}, [0, 0, 0], id="weight-0-has-no-opinion"),
        pytest.param(
            a_shape(cpu=2),
            {"resourceStrategyFitWeight": 0, "sra": {"enable": True, "resources": GPU, "weight": 5}},
            [500, 500, 0],
            id="nodes-with-what-is-scarce-come-last",
        ),
        pytest.param(
            a_shape(cpu=2),
            {"resourceStrategyFitWeight": 0, "sra": {"enable": True, "resources": GPU}},
            [0, 0, 0],
            id="without-a-weight-nothing-is-scarce",
        ),
        pytest.param(
            a_shape(cpu=2),
            {"resourceStrategyFitWeight": 0, "sra": {"enable": True, "resources": f"{GPU},x/y", "weight": 4}},
            [400, 400, 200],
            id="a-scarce-resource-that-nobody-has-counts-in-the-sum",
        ),
    ],
)
def test_scores(shape: Shape, arguments: dict[str, Any], expected: list[float]) -> None:
    assert scores(shape, **arguments) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "weights", "expected"),
    [
        pytest.param(MOST, '{"cpu": 2}', [250, 750, 250], id="replaces-the-strategy"),
        pytest.param(MOST, '{"memory": 2}', [0, 0, 0], id="only-what-it-lists-is-scored"),
        pytest.param(MOST, '{"cpu": 2.5}', [0, 0, 0], id="weights-must-be-whole"),
        pytest.param(MOST, f'{{"cpu": {10**400}}}', [0, 0, 0], id="weights-must-fit-into-64-bits"),
        pytest.param(MOST, "", [0, 0, 0], id="weights-may-not-be-missing"),
        pytest.param("Odd", '{"cpu": 2}', [0, 0, 0], id="nobody-knows-the-type"),
        pytest.param(LEAST, '{"cpu": -2}', [0, 0, 0], id="a-negative-weight-counts-as-none"),
    ],
)
def test_annotations_of_a_pod(kind: str, weights: str, expected: list[float]) -> None:
    assert scores(replace(a_shape(cpu=2), strategy=(kind, weights))) == pytest.approx(expected)


def test_wrong_arguments_are_reported_and_the_others_used() -> None:
    told: list[str] = []
    arguments = read(
        {
            "resourceStrategyFitWeight": -1,
            "resources": {"*": {"type": MOST}, "a*b": {}, "x/*": {"type": MOST, "weight": -3}, "cpu": {"type": "Odd"}},
            "sra": {"enable": True, "resources": " a , ,b", "weight": 3, "resourceWeight": {"a": -1, "b": 0}},
            "proportional": {"enable": True, "resources": "g", "resourceProportion": {"g.cpu": -1, "g.memory": 8}},
        },
        told.append,
    )

    assert arguments.strategy.weight == 10
    assert arguments.strategy.resources == {"x/*": Entry(MOST, 1), "cpu": Entry(LEAST, 1)}
    assert arguments.scarce == Scarce(3, {"a": 1, "b": 0})
    assert arguments.shares == {"g": Share(1.0, 8.0)}
    assert sorted(told) == [
        "argument proportional: g.cpu is -1, which is below 0; 1 is used",
        "argument resourceStrategyFitWeight is -1, which is below 0; the default 10 is used",
        "argument sra: the weight -1 of a is below 0; 1 is used",
        "resources: '*' is ignored: a name may contain only one *, at the end of a prefix",
        "resources: 'a*b' is ignored: a name may contain only one *, at the end of a prefix",
        "resources[cpu]: unknown type 'Odd'; LeastAllocated is used",
        "resources[x/*]: the weight -3 is below 0; 1 is used",
    ]


@pytest.mark.parametrize(
    "arguments", [{"sra": {"resources": "g", "weight": 3}}, {"proportional": {"resources": "g"}}], ids=list
)
def test_a_disabled_part_has_no_effect(arguments: dict[str, Any]) -> None:
    assert read(arguments, print) == read({}, print)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"resourceStrategyFitWeight": "ten"}, "resourceStrategyFitWeight"),
        ({"resources": {"cpu": 1}}, "resources"),
        ({"sra": {"weight": "5"}}, "sra"),
        ({"proportional": []}, "proportional"),
        ({"resourceStrategyFitWeight": 10**400}, "resourceStrategyFitWeight"),
        ({"resources": {"cpu": {"type": MOST, "weight": 10**400}}}, "resources"),
        ({"sra": {"weight": 10**400}}, "sra"),
        ({"sra": {"resourceWeight": {"g": 10**400}}}, "sra"),
    ],
)
def test_a_value_of_another_type_is_an_error_with_its_key(arguments: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=f"argument {key}: "):
        read(arguments, print)


PARTS = ("cpu", "memory")


def test_an_unknown_key_is_reported() -> None:
    told: list[str] = []

    read({"sra": {"wieght": 5, "enable": False}, "proportional": {"resourceProportion": {}}}, told.append)
    assert told == ['argument sra has no "wieght": it is ignored']


WEIGHTS = st.sampled_from((1, 2, 3))
KINDS = st.sampled_from((MOST, LEAST))


@settings(max_examples=40, derandomize=True)
@given(worlds(), st.dictionaries(st.sampled_from(("cpu", "memory", "pods", GPU)), st.tuples(KINDS, WEIGHTS)), st.data())
def test_answers_equal_exact_fractions(world: World, strategy: dict[str, tuple[str, int]], data: st.DataObject) -> None:
    scarce = data.draw(st.dictionaries(st.sampled_from((GPU, "memory")), st.integers(0, 3)))
    shares = data.draw(st.dictionaries(st.sampled_from((GPU, "x/y")), st.tuples(st.integers(0, 4), st.integers(0, 2))))
    rates = {f"{name}.{part}": rate for name, pair in shares.items() for part, rate in zip(PARTS, pair, strict=True)}
    plugin = plugin_of(
        resources=entries(**strategy),
        sra={"enable": True, "resources": ",".join(scarce), "weight": 2, "resourceWeight": scarce},
        proportional={"enable": True, "resources": ",".join(shares), "resourceProportion": rates},
    )
    ssn = a_session(world, plugin)
    accounts = node_accounts(world)
    for shape in {task.shape for task in world.tasks}:
        found = plugin.node_order(info(ssn, shape), ssn.state.nodes)
        verdicts = plugin.predicate(info(ssn, shape), ssn.state.nodes)
        for row, name in enumerate(ssn.state.nodes.names):
            expected = strategy_fit.strategy(
                shape, accounts[name], strategy or {"cpu": (LEAST, 1), "memory": (LEAST, 1)}, 10
            ) + strategy_fit.scarce(shape, accounts[name], scarce, 2)
            assert found[row] == pytest.approx(float(expected))
            refused = strategy_fit.refused_for(shape, accounts[name], shares)
            assert (plugin.reasons[verdicts[row] - 1].code if verdicts[row] else None) == (
                f"proportional-{refused}" if refused else None
            )


def test_a_pod_without_gpus_leaves_the_cpu_that_idle_gpus_need() -> None:
    nodes = [testing.a_node("n1", cpu=12, memory="64Gi", gpu=2)]
    proportional = {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 4, f"{GPU}.memory": 1}}
    result = testing.run_scenario(
        nodes=nodes,
        jobs=[testing.a_job("plain", tasks=6, min_available=1, cpu=1)],
        plugins=[
            *("gang", "predicates"),
            {"name": "resource-strategy-fit", "arguments": {"proportional": proportional}},
        ],
    )

    assert len(result.placements) == 4
    assert f"proportional of resource {GPU} check failed" in result.conditions["plain-5"]
