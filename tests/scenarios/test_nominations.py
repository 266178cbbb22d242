"""Room of nodes that is held for nominated pods, until they get it, others may have it, or it is waited for in vain."""

from typing import Any

import msgspec
import pytest

from tests.cache.nominators import written_by
from volcano_py.api.core import Pod
from volcano_py.framework.state.nominated_room import PATIENCE_S
from volcano_py.testing import Scenario, a_group, a_job, a_node, a_pod, a_priority_class, a_queue

PLUGINS = ("priority", "gang", "predicates")


def nominated(name: str, node: str = "n1", **pod: Any) -> Pod:
    made = a_pod(name, **{"cpu": 2, **pod})
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, nominated_node_name=node))


def of_another_scheduler(**pod: Any) -> Pod:
    return nominated("theirs", scheduler="kube", **pod)


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(4, {}, id="lower"),
        pytest.param(5, {}, id="equal"),
        pytest.param(6, {"j-0": "n1"}, id="higher"),
    ],
)
def test_nominated_room_of_another_schedulers_pod_is_closed_to_equal_and_lower_priorities(
    priority: int, expected: dict[str, str]
) -> None:
    scenario = Scenario(
        a_node("n1", cpu=2), of_another_scheduler(priority=5), a_job("j", cpu=2, priority=priority), plugins=PLUGINS
    )

    assert scenario.run().placements == expected


def test_resources_beyond_the_nominated_room_are_given_away() -> None:
    job = a_job("j", tasks=3, min_available=1, cpu=1)
    scenario = Scenario(a_node("n1", cpu=4), of_another_scheduler(), job, plugins=PLUGINS)

    result = scenario.run()

    assert set(result.placements) == {"j-0", "j-1"}
    assert "Insufficient cpu" in result.conditions["j-2"]


def test_nominated_room_is_released_when_the_other_scheduler_drops_the_nomination() -> None:
    scenario = Scenario(a_node("n1", cpu=2), of_another_scheduler(), a_job("j", cpu=2), plugins=PLUGINS)
    waiting = scenario.run()

    scenario.add(of_another_scheduler(node="n2"))

    assert waiting.placements == {}
    assert scenario.run().placements == {"j-0": "n1"}


def test_nominated_room_includes_a_pod_slot() -> None:
    scenario = Scenario(
        a_node("n1", cpu=4, pods=1),
        of_another_scheduler(cpu=1),
        a_job("j", cpu=1),
        a_job("best-effort"),
        plugins=PLUGINS,
        actions="enqueue, allocate, backfill",
    )

    assert scenario.run().placements == {}


def test_a_best_effort_pod_may_use_a_node_with_nominated_room() -> None:
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_pod("old", cpu=2, node="n1", terminating=True),
        of_another_scheduler(),
        a_job("best-effort"),
        plugins=PLUGINS,
        actions="enqueue, allocate, backfill",
    )

    assert scenario.run().placements == {"best-effort-0": "n1"}


def test_our_nominated_pod_gets_its_room_even_if_other_jobs_are_ordered_first() -> None:
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_pod("old", cpu=2, node="n1", terminating=True),
        a_job("first", cpu=2),
        a_group("second", created=5),
        nominated("second-0", group="second", created=5),
        plugins=PLUGINS,
    )
    waiting = scenario.run()

    scenario.delete("old")
    result = scenario.run()

    assert waiting.placements == {}
    assert result.placements == {"second-0": "n1"}
    assert result.nominated == {}


def test_nominated_room_of_one_pod_serves_any_pod_of_its_job() -> None:
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_group("g", min_available=1),
        a_pod("g-0", group="g", cpu=2),
        nominated("g-1", group="g", created=5),
        plugins=PLUGINS,
    )

    result = scenario.run()

    assert result.placements == {"g-0": "n1"}


def test_a_job_of_higher_priority_avoids_nominated_room_that_it_does_not_need() -> None:
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_node("n2", cpu=1),
        a_group("lesser"),
        nominated("lesser-0", group="lesser", priority=1),
        a_job("high", cpu=1, priority=9),
        plugins=PLUGINS,
    )

    assert scenario.run().placements == {"lesser-0": "n1", "high-0": "n2"}


AWAY = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
ALONE = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [AWAY]}}}


def port(cpu: str) -> dict[str, Any]:
    ports = [{"containerPort": 80, "hostPort": 80}]
    return {"containers": [{"name": "main", "ports": ports, "resources": {"requests": {"cpu": cpu}}}]}


@pytest.mark.parametrize(
    ("mine", "theirs"), [(ALONE, {}), ({}, ALONE), (port("2"), port("1"))], ids=["away", "theirs", "port"]
)
def test_nominated_room_also_excludes_pods_that_violate_the_nominated_pods_terms(mine: Any, theirs: Any) -> None:
    scenario = Scenario(
        a_node("n1", cpu=4),
        a_pod("old", cpu=3, node="n1", terminating=True),
        a_job("first", cpu=1, labels={"app": "x"}, spec=theirs),
        a_group("second", created=5),
        nominated("second-0", group="second", created=5, labels={"app": "x"}, spec=mine),
        plugins=PLUGINS,
    )
    waiting = scenario.run()

    scenario.delete("old")
    result = scenario.run()

    assert waiting.placements == {}
    assert result.placements == {"second-0": "n1"}


def test_a_nomination_without_effect_is_removed_after_a_while() -> None:
    held = nominated("held-0", group="held", spec={"nodeSelector": {"disk": "ssd"}})
    scenario = Scenario(a_node("n1", cpu=2), a_group("held"), held, a_job("j", cpu=2), plugins=PLUGINS)

    before = scenario.run()
    for _ in range(int(PATIENCE_S)):
        scenario.run(settle_rounds=0)
    after = scenario.run()

    assert before.placements == {}
    assert before.nominated == {"held-0": "n1"}
    assert after.nominated == {}
    assert after.placements == {"j-0": "n1"}


@pytest.mark.parametrize("programs", [("karpenter",), ("volcano-py", "karpenter")], ids=["alone", "with-us"])
def test_a_nomination_of_another_program_is_never_withdrawn(programs: tuple[str, ...]) -> None:
    held = written_by(nominated("held-0", group="held", spec={"nodeSelector": {"disk": "ssd"}}), *programs)
    scenario = Scenario(a_node("n1", cpu=2), a_group("held"), held, a_job("j", cpu=2), plugins=PLUGINS)
    scenario.run()

    scenario.settle(int(PATIENCE_S) + 5)
    result = scenario.run()

    assert result.nominated == {"held-0": "n1"}
    assert result.placements == {}


@pytest.mark.parametrize("program", ["volcano-py", "vc-scheduler"])
def test_a_nomination_that_is_known_to_be_a_schedulers_is_removed_after_a_while(program: str) -> None:
    held = written_by(nominated("held-0", group="held", spec={"nodeSelector": {"disk": "ssd"}}), program)
    scenario = Scenario(a_node("n1", cpu=2), a_group("held"), held, plugins=PLUGINS)

    for _ in range(int(PATIENCE_S) + 2):
        scenario.run(settle_rounds=0)

    assert scenario.run().nominated == {}


def test_a_nomination_lasts_while_pods_terminate_on_its_node() -> None:
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_pod("old", cpu=2, node="n1", terminating=True),
        a_group("held"),
        nominated("held-0", group="held"),
        plugins=PLUGINS,
    )
    scenario.run()

    scenario.settle(int(PATIENCE_S) + 5)

    assert scenario.run().nominated == {"held-0": "n1"}


def test_a_nomination_to_a_node_that_is_gone_holds_nothing() -> None:
    scenario = Scenario(a_node("n1", cpu=2), of_another_scheduler(node=""), a_job("j", cpu=2), plugins=PLUGINS)

    scenario.add(nominated("theirs", "n9", scheduler="kube"))

    assert scenario.run().placements == {"j-0": "n1"}


def test_a_nomination_of_ours_to_a_node_that_is_gone_is_withdrawn_after_a_while() -> None:
    """Karpenter adds no node for a pod with a nominated one, even if that one is gone."""
    scenario = Scenario(
        a_node("n1", cpu=1),
        a_group("held"),
        nominated("held-0", node="n9", group="held"),
        nominated("theirs", node="n9", scheduler="kube"),
        plugins=PLUGINS,
    )

    before = scenario.run()
    for _ in range(int(PATIENCE_S)):
        scenario.run(settle_rounds=0)

    assert before.nominated == {"held-0": "n9", "theirs": "n9"}
    assert scenario.run().nominated == {"theirs": "n9"}


PREEMPTING = {"actions": "enqueue, preempt, allocate", "plugins": ("priority", "gang", "predicates")}


def test_a_preemptor_with_terminating_victims_evicts_nobody_else() -> None:
    low = a_job("low", tasks=4, min_available=1, cpu=1, node="n1", phase="Running")
    scenario = Scenario(
        a_node("n1", cpu=4), a_priority_class("high", 9), low, a_priority_class("higher", 99), grace=4, **PREEMPTING
    )
    scenario.run()

    scenario.add(a_job("high", tasks=2, cpu=1, priority_class="high", priority=9))
    result = scenario.run()

    assert [len(together) for together in result.evictions] == [2]
    assert {"high-0", "high-1"} <= set(result.placements)


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_a_second_plan_of_a_job_uses_its_nominated_room(action: str) -> None:
    queue = "lends" if "reclaim" in action else "q"
    low = [a_job(f"low-{n}", min_available=0, cpu=2, node=f"n{n}", phase="Running", queue=queue) for n in (2, 3)]
    scenario = Scenario(
        *(a_node(f"n{n}", cpu=2) for n in (1, 2, 3)),
        a_priority_class("high", 9),
        *low,
        a_group("high", min_available=2, priority_class="high", phase="Inqueue", queue="q"),
        nominated("high-0", group="high", priority=9),
        a_pod("high-1", group="high", cpu=2, priority=9),
        queues=[a_queue("q"), a_queue("lends")],
        actions=f"{action}, allocate",
        plugins=(*PLUGINS, "conformance"),
    )

    result = scenario.run()

    assert [len(together) for together in result.evictions] == [1]
    assert {"high-0", "high-1"} <= set(result.placements)


def test_the_room_of_victims_is_not_given_to_another_job_of_equal_priority() -> None:
    low = a_job("low", tasks=2, min_available=0, cpu=1, node="n1", phase="Running")
    scenario = Scenario(a_node("n1", cpu=2), a_priority_class("high", 9), low, grace=3, **PREEMPTING)
    scenario.run()
    scenario.add(a_job("first", cpu=1, priority_class="high", priority=9, created=1))
    while not scenario.step().nominated:
        pass

    scenario.add(a_job("second", cpu=1, priority_class="high", priority=9))
    result = scenario.run()

    assert [len(together) for together in result.evictions] == [1, 1]
    assert set(result.placements) == {"first-0", "second-0"}


@pytest.mark.parametrize("plugin", ["capacity", "proportion"])
def test_a_queue_keeps_what_its_nominated_pod_will_hold(plugin: str) -> None:
    """Otherwise the others fill the queue first, and the victims of the nominated pod have died for nothing."""
    scenario = Scenario(
        a_node("n1", cpu=4),
        a_node("n2", cpu=1),
        a_group("owner", phase="Inqueue", queue="q", created=5),
        nominated("owner-0", "n2", cpu=1, group="owner"),
        a_pod("leaves", scheduler="kube", cpu=1, node="n2", terminating=True),
        a_job("early", cpu=1, queue="q"),
        queues=[a_queue("q", capability={"cpu": 1})],
        plugins=(*PLUGINS, plugin),
    )

    waiting = scenario.step()
    scenario.delete("leaves")
    result = scenario.run()

    assert "early-0" not in waiting.placements
    assert (
        'queue "q" may not hold more: 1 cpu asked, 0 held, 1 promised to nominated pods, 1 allowed'
        in waiting.conditions["early-0"]
    )
    assert result.placements == {"owner-0": "n2"}


@pytest.mark.parametrize("plugin", ["capacity", "proportion"])
def test_a_plan_frees_what_the_queue_may_hold_besides_its_nominated_pods(plugin: str) -> None:
    """One victim would let the queue hold one more pod, but it is the nominated one that gets this."""
    owner = nominated("owner-0", "n2", cpu=1, group="owner", priority=9)
    owner = msgspec.structs.replace(owner, spec=msgspec.structs.replace(owner.spec, preemption_policy="Never"))
    low = a_job("low", tasks=3, min_available=0, cpu=1, node="n1", phase="Running", queue="q")
    scenario = Scenario(
        a_node("n1", cpu=4),
        a_node("n2", cpu=1),
        a_priority_class("high", 9),
        low,
        a_group("owner", phase="Inqueue", queue="q", priority_class="high"),
        owner,
        a_pod("leaves", scheduler="kube", cpu=1, node="n2", terminating=True),
        a_job("high", cpu=1, queue="q", priority_class="high", priority=9, phase="Inqueue"),
        queues=[a_queue("q", capability={"cpu": 3})],
        actions="preempt, allocate",
        plugins=(*PLUGINS, "conformance", plugin),
    )

    planned = scenario.step()
    scenario.delete("leaves")
    result = scenario.run()

    assert [len(together) for together in planned.evictions] == [2]
    assert {"owner-0", "high-0"} <= set(result.placements)


@pytest.mark.parametrize("plugin", ["capacity", "proportion"])
def test_a_nominated_pod_whose_node_will_not_have_room_takes_nothing_of_its_queue(plugin: str) -> None:
    """The room was given to others while the binds of the pod failed. Until the nomination ends, its queue goes on."""
    scenario = Scenario(
        a_node("n1", cpu=4),
        a_node("n2", cpu=3),
        a_pod("stays", scheduler="kube", cpu=3, node="n2"),
        a_group("large", phase="Inqueue", queue="q"),
        nominated("large-0", "n2", cpu=5, group="large"),
        a_job("small", cpu=1, queue="q"),
        queues=[a_queue("q", capability={"cpu": 5})],
        plugins=(*PLUGINS, plugin),
    )

    assert scenario.step().placements == {"small-0": "n1"}


HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def about(app: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}}


@pytest.mark.parametrize("there", [True, False])
def test_nobody_may_rely_on_a_pod_that_is_only_nominated(there: bool) -> None:
    near = {"requiredDuringSchedulingIgnoredDuringExecution": [{**about("db"), "topologyKey": HOST}]}
    options = {"cpu": 1, "scheduler": "kube", "labels": {"app": "db"}}
    db = a_pod("db", node="n1", **options) if there else nominated("db", **options)
    job = a_job("j", cpu=1, spec={"affinity": {"podAffinity": near}})

    result = Scenario(a_node("n1", cpu=4), db, job, plugins=PLUGINS).run()

    assert result.placements == ({"j-0": "n1"} if there else {})


def test_a_pod_that_likes_its_like_goes_where_one_is_nominated_or_waits() -> None:
    near = {"requiredDuringSchedulingIgnoredDuringExecution": [{**about("j"), "topologyKey": HOST}]}
    first = nominated("first", "n2", cpu=1, scheduler="kube", labels={"app": "j"})
    job = a_job("j", cpu=1, labels={"app": "j"}, spec={"affinity": {"podAffinity": near}})

    result = Scenario(a_node("n1", cpu=4), a_node("n2", cpu=4), first, job, plugins=PLUGINS).run()

    assert result.placements == {"j-0": "n2"}


@pytest.mark.parametrize("there", [True, False])
def test_a_pod_that_is_only_nominated_does_not_make_a_spread_even(there: bool) -> None:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **about("s")}
    labels = {"app": "s"}
    other = {"cpu": 1, "scheduler": "kube", "labels": labels}
    result = Scenario(
        a_node("n1", labels={ZONE: "a"}),
        a_node("n2", cpu=1, labels={ZONE: "b"}),
        a_pod("one", node="n1", labels=labels, scheduler="kube"),
        a_pod("two", node="n2", **other) if there else nominated("two", "n2", **other),
        a_pod("full", node="n2", cpu=1),
        a_job("j", cpu=1, labels=labels, spec={"topologySpreadConstraints": [spread]}),
        plugins=PLUGINS,
    ).run()

    assert result.placements == ({"j-0": "n1"} if there else {})


@pytest.mark.parametrize("actions", ["enqueue, reclaim, allocate, backfill", "enqueue, allocate, reclaim, backfill"])
def test_nobody_is_evicted_for_a_job_whose_room_a_plan_without_evictions_takes(actions: str) -> None:
    """Once it got new room in every second cycle, the plan was withdrawn, and the victim came back to the old room.

    The greater job may not evict others, because its memory is beyond what its queue deserves. It may use free room.
    """
    queues = [
        a_queue("root", reclaimable=False),
        a_queue("first", priority=5, deserved={"cpu": 2}),
        a_queue("second", deserved={"cpu": 4, "memory": "8Mi"}),
    ]
    scenario = Scenario(
        a_priority_class("high", 1000),
        *(a_node(f"n{number}", cpu=2, memory="4Gi") for number in range(3)),
        queues=queues,
        actions=actions,
        plugins=[["priority", "gang", "conformance"], ["predicates", "nodeorder", "capacity"]],
    )
    scenario.add(a_job("lent", tasks=3, min_available=1, queue="first", cpu=2, memory="1Gi"))
    scenario.step(2)
    scenario.add(a_job("great", queue="second", priority_class="high", priority=1000, cpu="100m", memory="4Gi"))
    scenario.step(2)
    scenario.add(a_job("small", queue="second", cpu="500m", memory="1Mi"))

    result = scenario.step(20)

    assert len(result.evicted) == 2
    assert {"great-0", "small-0"} <= result.running_or_bound.keys()
