from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from tests.scheduler.running import DEFAULT, a_policy
from volcano_py.actions import ACTIONS
from volcano_py.conf.arguments import Warn, get_int
from volcano_py.conf.loader import built_in_conf, parse_conf
from volcano_py.conf.schema import FLAGS, ConfError
from volcano_py.framework.contract.extension_points import (
    InterPodOrder,
    InterPodPredicate,
    JobOrder,
    JobPipelined,
    JobReady,
    JobStarving,
    JobValid,
    NodeOrder,
    NormalizedOrder,
    Predicate,
    Preemptable,
    Reclaimable,
    StaticPredicate,
    UnifiedEvictable,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.arrays import Floats
from volcano_py.plugins import PLUGINS
from volcano_py.plugins.binpack import Binpack, BinpackArgs
from volcano_py.scheduler import resolve
from volcano_py.scheduler.policy import ACTIONS_TO_COME, PLUGINS_TO_COME
from volcano_py.snapshot.columns import NodeColumns


class Odd(Plugin, NodeOrder):
    """A plugin that refuses an odd argument."""

    name = "odd"
    arguments: ClassVar = frozenset({"odd.number", "odd.sizes.*"})

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> int:
        number = get_int(arguments, "odd.number", 2, warn)
        if number % 2:
            raise ValueError(f"odd.number is {number}: write an even one")
        return number

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        raise NotImplementedError


def conf(*plugins: str, actions: str = "enqueue, allocate") -> str:
    return f'actions: "{actions}"\ntiers:\n- plugins:\n' + "".join(f"  - {plugin}\n" for plugin in plugins)


def test_names_become_plugins_and_actions_in_the_order_of_the_conf() -> None:
    policy = a_policy(DEFAULT)
    tiers = [[type(plugin).name for plugin, _ in tier] for tier in policy.instantiate()]

    assert policy.action_names == ("enqueue", "allocate")
    assert tiers == [["priority", "gang"], ["predicates", "nodeorder"]]
    assert (policy.warnings, policy.missing) == ((), ())


def test_every_session_has_plugins_of_its_own() -> None:
    policy = a_policy(DEFAULT)
    one, other = policy.instantiate(), policy.instantiate()

    assert all(
        a is not b
        for first, second in zip(one, other, strict=True)
        for (a, _), (b, _) in zip(first, second, strict=True)
    )


def test_a_plugin_answers_on_the_points_it_inherits() -> None:
    (((_, points),),) = a_policy(conf("name: gang")).instantiate()

    assert points == {
        *(JobOrder, JobValid, JobReady, JobPipelined, JobStarving),
        *(Preemptable, Reclaimable, UnifiedEvictable),
    }


@pytest.mark.parametrize(
    ("plugin", "switch", "silenced"),
    [
        ("gang", "enableJobReady", {JobReady}),
        ("gang", "enableJobOrder", {JobOrder}),
        ("gang", "enableJobPipelined", {JobPipelined}),
        ("predicates", "enablePredicate", {Predicate, StaticPredicate, InterPodPredicate}),
        ("nodeorder", "enableNodeOrder", {NodeOrder, NormalizedOrder, InterPodOrder}),
        ("gang", "enableNodeOrder", set()),
    ],
)
def test_a_switch_silences_a_plugin_on_its_point(plugin: str, switch: str, silenced: set[type]) -> None:
    (((_, every),),) = a_policy(conf(f"name: {plugin}")).instantiate()
    (((_, left),),) = a_policy(conf(f"{{name: {plugin}, {switch}: false}}")).instantiate()

    assert every - left == silenced


def test_validity_has_no_switch() -> None:
    (((_, left),),) = a_policy(conf(f"{{name: gang, {', '.join(f'{name}: false' for name in FLAGS)}}}")).instantiate()

    assert left == {JobValid, UnifiedEvictable}


def test_an_unknown_name_is_an_error_with_its_line() -> None:
    with pytest.raises(
        ConfError, match=r'test\.yaml:4: unknown plugin "gangg"; did you mean gang\? Known plugins: binpack, '
    ):
        a_policy(conf("name: gangg"))
    with pytest.raises(ConfError, match=r'test\.yaml:4: unknown plugin "mine"; known plugins: binpack, .*gang'):
        a_policy(conf("name: mine"))
    with pytest.raises(
        ConfError,
        match=r'test\.yaml:1: actions: unknown action "alocate"; did you mean allocate\? Known actions: allocate, ',
    ):
        a_policy(conf("name: gang", actions="alocate"))
    with pytest.raises(ConfError, match=r'test\.yaml:1: actions: unknown action "mine"; known actions: allocate, '):
        a_policy(conf("name: gang", actions="mine"))


@pytest.mark.parametrize("plugin", sorted(PLUGINS_TO_COME))
def test_a_plugin_that_volcano_knows_is_left_out_with_a_warning(plugin: str) -> None:
    policy = a_policy(conf("name: gang", f"name: {plugin}", actions="enqueue, allocate"))

    assert policy.missing == (f"plugin {plugin}",)
    assert policy.warnings == (f'test.yaml:5: plugin "{plugin}" is missing here: it is left out, the others run',)


def test_an_action_of_older_volcanos_is_left_out_with_a_warning() -> None:
    text = (
        conf("name: gang", actions="enqueue, elect, allocate, reserve, backfill") + "configurations: [{name: elect}]\n"
    )

    policy = a_policy(text)

    assert policy.action_names == ("enqueue", "allocate", "backfill")
    assert policy.missing == ("action elect", "action reserve")
    assert [warning.partition(":1: ")[2].partition(";")[0] for warning in policy.warnings] == [
        'action "elect" is missing here: it is left out, the others run',
        'action "reserve" is missing here: it is left out, the others run',
    ]


def test_actions_of_which_none_is_here_are_an_error() -> None:
    with pytest.raises(ConfError, match=r"test\.yaml:1: actions: none of them exists here; known actions: "):
        a_policy(conf("name: gang", actions="elect, reserve"))


def test_every_action_of_volcano_is_here() -> None:
    assert not ACTIONS_TO_COME & set(ACTIONS)

    assert set(ACTIONS) == {
        *("enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle")
    }


def test_plugins_listed_as_missing_are_missing() -> None:
    assert not PLUGINS_TO_COME & set(PLUGINS)


def test_an_unknown_argument_or_one_of_another_type_is_a_warning() -> None:
    policy = a_policy(
        conf('name: binpack\n    arguments:\n      binpack.weight: "5"\n      binpack.wait: 1\n      odd: 1\n')
    )

    assert policy.warnings == (
        'test.yaml:7: plugin binpack has no argument "binpack.wait": it is ignored; did you mean binpack.weight?',
        'test.yaml:8: plugin binpack has no argument "odd": it is ignored',
        "test.yaml:6: binpack: argument binpack.weight is '5', which is not an integer; the default 1 is used",
    )


@pytest.mark.parametrize(
    ("plugin", "warnings"),
    [
        pytest.param("{name: binpack, arguments: {binpack.cpu: -5}}", ["binpack.cpu is -5"], id="binpack"),
        pytest.param(
            "{name: binpack, arguments: {binpack.resources.nvidia.com/gpu: 2}}",
            ["binpack.resources.nvidia.com/gpu has no effect: add nvidia.com/gpu to binpack.resources"],
            id="not-in-the-list",
        ),
        pytest.param(
            "{name: network-topology-aware, arguments: {hypernode.binpack.normal-pod.fading: -1, weight: -2, "
            "hypernode.gradient.evict.max-hypernodes: 0, hypernode.binpack.memory: -1}}",
            [
                "hypernode.binpack.normal-pod.fading is -1",
                "hypernode.gradient.evict.max-hypernodes is 0",
                "weight is -2",
                "hypernode.binpack.memory is -1",
            ],
            id="network-topology-aware",
        ),
        pytest.param(
            "{name: usage, arguments: {thresholds: {cpu: 300}}}", ["thresholds: cpu is 300"], id="inside-a-mapping"
        ),
    ],
)
def test_a_value_out_of_range_is_a_warning(plugin: str, warnings: list[str]) -> None:
    told = [warning for warning in a_policy(conf(plugin)).warnings if "does nothing" not in warning]
    found = [warning.partition("argument ")[2] for warning in told]

    assert [text.startswith(warning) for text, warning in zip(found, warnings, strict=True)] == [True] * len(warnings)


def test_arguments_for_what_is_no_action_are_a_warning_with_the_name_that_was_meant() -> None:
    text = conf("name: gang") + "configurations:\n- arguments: {a: 1}\n  name: enqeue\n- name: preempt\n"

    assert a_policy(text).warnings == (
        'test.yaml:7: configurations: "enqeue" is no action: its arguments are ignored; did you mean enqueue?',
    )


def test_two_plugins_that_divide_among_queues_are_a_warning() -> None:
    policy = a_policy(conf("name: proportion", "name: gang", "name: capacity"))

    assert policy.warnings == (
        "test.yaml:6: plugin capacity: proportion in line 4 also says what queues deserve, and both answers apply: "
        "keep one of the two",
    )


def test_arguments_reach_the_plugin_as_it_reads_them() -> None:
    (((plugin, _),),) = a_policy(conf("{name: binpack, arguments: {binpack.weight: 5, binpack.cpu: 3}}")).instantiate()

    assert isinstance(plugin, Binpack)
    assert plugin._args == BinpackArgs(5, {"cpu": 3.0, "memory": 1.0})


def test_an_argument_that_a_plugin_refuses_is_an_error_with_its_line() -> None:
    with pytest.raises(ConfError, match=r"test\.yaml:6: plugin odd: odd\.number is 3: write an even one"):
        a_policy(conf("name: odd\n    arguments:\n      odd.number: 3"), plugins={"odd": Odd})


def test_third_parties_bring_plugins_and_actions_in_tables() -> None:
    def nap(ssn: Session) -> None: ...

    policy = a_policy(
        conf("{name: odd, arguments: {odd.sizes.x: 1}}", actions="nap"),
        plugins={**PLUGINS, "odd": Odd},
        actions={**ACTIONS, "nap": nap},
    )

    assert policy.actions == (("nap", nap),)
    assert policy.warnings == ()
    assert isinstance(policy.instantiate()[0][0][0], Odd)


@pytest.mark.parametrize(
    ("plugin", "warned"),
    [
        pytest.param("name: gang", ["reclaim", "gangreclaim"], id="nobody-divides"),
        pytest.param("name: drf", ["reclaim", "gangreclaim"], id="jobs-only"),
        pytest.param("{name: drf, enableHierarchy: true}", ["gangreclaim"], id="a-tree-of-drf"),
        pytest.param("name: proportion", [], id="proportion"),
        pytest.param("name: capacity", [], id="capacity"),
    ],
)
def test_reclaim_warns_if_no_plugin_defines_shares_of_queues(plugin: str, warned: list[str]) -> None:
    policy = a_policy(conf(plugin, actions="allocate, reclaim, gangreclaim"))

    found = [warning for warning in policy.warnings if "no plugin says what queues deserve" in warning]
    assert [warning.partition("action ")[2].partition(":")[0] for warning in found] == warned


@pytest.mark.parametrize(
    ("plugin", "actions", "metrics", "warned"),
    [
        pytest.param("usage", "allocate", "", ["usage does nothing: no source"], id="usage-without-loads"),
        pytest.param("usage", "allocate", "prometheus_adaptor", [], id="usage"),
        pytest.param("rescheduling", "shuffle", "prometheus_adaptor", [], id="rescheduling"),
        pytest.param(
            "rescheduling",
            "allocate",
            "",
            ["rescheduling does nothing: no source", "rescheduling does nothing: it"],
            id="rescheduling-without-anything",
        ),
        pytest.param("tdm", "allocate", "", [], id="tdm-places-pods-too"),
    ],
)
def test_a_plugin_that_does_nothing_without_others_is_a_warning(
    plugin: str, actions: str, metrics: str, warned: list[str]
) -> None:
    text = conf(f"name: {plugin}", actions=actions) + f"metrics: {{type: '{metrics}'}}\n"

    found = [warning.partition("plugin ")[2] for warning in a_policy(text).warnings]
    assert [one.startswith(start) for one, start in zip(found, warned, strict=True)] == [True] * len(warned)


def test_the_built_in_configuration_is_usable() -> None:
    policy = resolve(built_in_conf())

    assert policy.action_names[:2] == ("enqueue", "allocate")
    assert all("is missing here" in warning for warning in policy.warnings)


def test_an_action_reads_its_arguments_and_unknown_ones_are_warned_about() -> None:
    text = conf("name: gang", actions="allocate, preempt") + (
        "configurations:\n"
        "- {name: preempt, arguments: {enableTopologyAwarePreemption: maybe, minCandidateNodesAbsolute: 3, typo: 1}}\n"
        "- {name: allocate, arguments: {predicateErrorCacheEnable: false, typo: 2}}\n"
    )
    policy = a_policy(text)

    key, used = "enableTopologyAwarePreemption", "the default False is used"
    assert sorted(warning.partition(": ")[2] for warning in policy.warnings) == [
        'action allocate has no argument "typo": it is ignored',
        'action preempt has no argument "typo": it is ignored',
        f"preempt: argument {key} is 'maybe', which is not true or false; {used}",
    ]


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        pytest.param("- name: predicates", 600.0, id="default"),
        pytest.param("- {name: predicates, arguments: {volumebinding.bindTimeoutSeconds: 90}}", 90.0, id="given"),
        pytest.param("- name: gang", None, id="nobody-says"),
    ],
)
def test_a_policy_says_how_long_volumes_may_take(conf, expected):
    policy = resolve(parse_conf(f"actions: allocate\ntiers:\n- plugins:\n  {conf}\n", "test.conf"))

    assert policy.volume_wait_s == expected


def test_no_time_at_all_for_volumes_is_refused():
    arguments = "{volumebinding.bindTimeoutSeconds: 0}"
    conf = f"actions: allocate\ntiers:\n- plugins:\n  - {{name: predicates, arguments: {arguments}}}\n"

    with pytest.raises(ConfError, match="is no time to wait"):
        resolve(parse_conf(conf, "test.conf"))
