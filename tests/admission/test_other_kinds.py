"""Rules about PodGroups, pods, job flows, HyperNodes and cron jobs refuse what is wrong and take what is right."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.admission.asking import create, job, queue, task, update
from volcano_py.admission.contract import Options, ResourceGroup
from volcano_py.admission.pods import resource_groups
from volcano_py.conf.plain import read_plain

GATE = "scheduling.volcano.sh/queue-allocation-gate"
MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"

# PodGroups


def group(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g", "namespace": "ns"}, "spec": spec}


BOTH = {"highestTierAllowed": 1, "highestTierName": "rack"}


def test_a_group_needs_an_open_queue() -> None:
    queues = [queue("open"), queue("new", ""), queue("closed", "Closed")]

    def message(name: str) -> str:
        return create("/podgroups/validate", group(queue=name), queues).message

    assert message("open") == ""
    assert message("new") == ""  # the queue controller has not seen it yet
    assert message("") == ""
    assert message("gone") == 'unable to find queue: queue.scheduling.volcano.sh "gone" not found'
    assert message("closed") == (
        "can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`"
    )


def test_a_group_gives_its_tier_once() -> None:
    policies = [{"name": "p", "networkTopology": BOTH}, {"name": "q", "networkTopology": {"highestTierAllowed": 0}}]

    verdict = create("/podgroups/validate", group(networkTopology=BOTH, subGroupPolicy=policies))

    assert [refusal.field for refusal in verdict.refusals] == [
        "spec.networkTopology",
        "spec.subGroupPolicy[0].networkTopology",
    ]
    assert verdict.message == (
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously.; "
        "in subGroupPolicy 'p': must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology "
        "simultaneously."
    )
    assert create("/podgroups/validate", group(networkTopology={"highestTierName": "rack"})).allowed


@pytest.mark.parametrize(
    ("annotations", "spec", "patch"),
    [
        ({"scheduling.volcano.sh/queue-name": "q"}, {"queue": "default"}, "q"),
        ({"scheduling.volcano.sh/queue-name": "q"}, {}, "q"),
        ({"scheduling.volcano.sh/queue-name": "q"}, {"queue": "own"}, None),
        ({"scheduling.volcano.sh/queue-name": "default"}, {"queue": "default"}, None),
        ({}, {"queue": "default"}, None),
    ],
)
def test_a_group_goes_to_the_queue_of_its_namespace(annotations: Any, spec: Any, patch: str | None) -> None:
    verdict = create("/podgroups/mutate", group(**spec), namespaces={"ns": annotations})

    assert list(verdict.patch) == ([] if patch is None else [{"op": "add", "path": "/spec/queue", "value": patch}])


@pytest.mark.parametrize(
    ("old", "spec", "patch"),
    [
        ("q", {"queue": "default"}, "q"),  # the definition fills in the default of a queue that is left out
        ("q", {}, "q"),
        ("q", {"queue": "other"}, None),
        ("default", {"queue": "default"}, None),  # the namespace got its queue later
        ("other", {"queue": "default"}, None),
    ],
)
def test_a_group_in_the_queue_of_its_namespace_stays_there_when_it_is_written_without_a_queue(
    old: str, spec: Any, patch: str | None
) -> None:
    namespaces = {"ns": {"scheduling.volcano.sh/queue-name": "q"}}

    verdict = update("/podgroups/mutate", group(**spec), group(queue=old), namespaces=namespaces)

    assert list(verdict.patch) == ([] if patch is None else [{"op": "add", "path": "/spec/queue", "value": patch}])
    assert [text for text in verdict.warnings if 'stays in queue "q"' in text] == list(verdict.warnings)
    assert bool(verdict.warnings) == (patch is not None)


def test_a_group_leaves_the_queue_of_its_namespace_as_the_warning_says() -> None:
    moved, old = group(queue="default"), group(queue="q")
    namespaces = {"ns": {"scheduling.volcano.sh/queue-name": "q"}}

    (warning,) = update("/podgroups/mutate", moved, old, namespaces=namespaces).warnings
    assert warning.endswith('to move it to queue "default", remove this annotation first')
    assert update("/podgroups/mutate", moved, old, namespaces={"ns": {}}).patch == ()


# Pods


def pod(annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "annotations": dict(annotations or {})},
        "spec": {"schedulerName": "volcano", **spec},
    }


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        ({MIN: "0"}, f'invalid value <"0"> for {MIN}, it must be a positive integer'),
        ({MAX: "-3"}, "it must be a positive integer"),
        ({MIN: "0%"}, "it must be a valid percentage which between 1% ~ 99%"),
        ({MIN: "100%"}, "it must be a valid percentage which between 1% ~ 99%"),
        ({MIN: "many"}, 'invalid value strconv.Atoi: parsing "many": invalid syntax'),
        ({MIN: "1.5%"}, "invalid syntax"),
        ({MIN: "9" * 5000}, "invalid syntax"),
        ({MIN: "1", MAX: "1"}, f"not allow configure multiple annotations <[{MIN} {MAX}]> at same time"),
    ],
)
def test_a_budget_that_cannot_be_understood(annotations: dict[str, str], sentence: str) -> None:
    assert sentence in create("/pods/validate", pod(annotations)).message
    assert create("/pods/validate", {**pod(annotations), "spec": {"schedulerName": "other"}}).allowed


@pytest.mark.parametrize("annotations", [{}, {MIN: "1"}, {MAX: "99%"}, {MIN: "30%"}])
def test_a_budget_that_is_right(annotations: dict[str, str]) -> None:
    assert create("/pods/validate", pod(annotations)).message == ""


CONFIGURATION = """
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [mng]}
  schedulerName: default-scheduler
  labels: {node: management}
  tolerations: [{effect: NoSchedule, key: mng, operator: Exists}]
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: cpu
  object: {key: annotation, value: ["n: !!int x", "day: 2026-11-31", "group: cpu", "fast: true"]}
  labels: {node: cpu}
- resourceGroup: gpu
  object: {value: ["team: gpu"]}
  schedulerName: volcano
- resourceGroup: broken
  affinity: nonsense
"""
GROUPS = Options(resource_groups=resource_groups(yaml.safe_load(CONFIGURATION)))


def patch(obj: dict[str, Any], options: Options = GROUPS) -> dict[str, Any]:
    return {
        one["path"].removeprefix("/spec/"): one["value"] for one in create("/pods/mutate", obj, options=options).patch
    }


def test_a_group_by_namespace() -> None:
    mine = {**pod(nodeSelector={"disk": "ssd"}, tolerations=[{"key": "a"}]), "metadata": {"namespace": "mng"}}

    assert patch(mine) == {
        "nodeSelector": {"disk": "ssd", "node": "management"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "a"}, {"effect": "NoSchedule", "key": "mng", "operator": "Exists"}],
        "schedulerName": "default-scheduler",
    }
    assert "affinity" not in patch({**mine, "spec": {"affinity": {"podAffinity": {}}}})


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        ({"group": "cpu"}, {"nodeSelector": {"node": "cpu"}}),
        ({"fast": "true"}, {"nodeSelector": {"node": "cpu"}}),
        ({"day": "2026-11-31"}, {"nodeSelector": {"node": "cpu"}}),
        ({"volcano.sh/resource-group": "gpu"}, {"schedulerName": "volcano"}),
        ({"team": "gpu"}, {"schedulerName": "volcano"}),
        ({"volcano.sh/resource-group": "other"}, {}),
        ({}, {}),
    ],
)
def test_a_group_by_annotation(annotations: dict[str, str], found: dict[str, Any]) -> None:
    assert patch(pod(annotations)) == found


def test_a_label_that_yaml_reads_as_another_type_is_set_as_it_is_written() -> None:
    document = read_plain("resourceGroups: [{resourceGroup: a, labels: {gpu: true, rack: 7, spot: null}}]", "conf")
    found = patch(pod({"volcano.sh/resource-group": "a"}), Options(resource_groups=resource_groups(document)))

    assert found == {"nodeSelector": {"gpu": "true", "rack": "7", "spot": ""}}


def test_an_affinity_that_is_no_json_is_left_out_with_a_warning() -> None:
    verdict = create("/pods/mutate", pod({"volcano.sh/resource-group": "broken"}), options=GROUPS)

    assert verdict.patch == ()
    assert "broken" in verdict.warnings[0]


@pytest.mark.parametrize("written", [None, [], {"resourceGroups": "x"}, {"resourceGroups": [None, 3]}])
def test_a_configuration_of_another_form_has_no_groups(written: Any) -> None:
    assert all(found == ResourceGroup() for found in resource_groups(written))


@pytest.mark.parametrize(
    ("made", "gated"),
    [
        (pod({GATE: "true"}), True),
        (pod({GATE: "false"}), False),
        (pod(), False),
        (pod({GATE: "true"}, schedulerName="other"), False),
        (pod({GATE: "true"}, schedulingGates=[{"name": GATE}]), False),
        (pod({GATE: "true"}, nodeName="n1"), False),  # the API server would refuse the pod: it has its node
    ],
)
def test_the_gate_of_the_queue(made: dict[str, Any], gated: bool) -> None:
    assert ("schedulingGates" in patch(made, Options(queue_gate=True))) == gated
    assert patch(made, Options(queue_gate=False)) == {}


def test_other_gates_stay() -> None:
    made = pod({GATE: "true"}, schedulingGates=[{"name": "a"}])

    assert patch(made, Options(queue_gate=True)) == {"schedulingGates": [{"name": "a"}, {"name": GATE}]}


# Job flows


def flow(**targets: list[str]) -> dict[str, Any]:
    return {"spec": {"flows": [{"name": name, "dependsOn": {"targets": found}} for name, found in targets.items()]}}


@pytest.mark.parametrize(
    "found", [{"spec": {"flows": []}}, {}, flow(a=[]), flow(a=["b"], b=[]), flow(a=["b", "b"], b=[])]
)
def test_flows_that_end(found: dict[str, Any]) -> None:
    assert create("/jobflows/validate", found).message == ""
    assert update("/jobflows/validate", found, {}).message == ""


def test_a_name_may_occur_twice() -> None:
    found = flow(a=[], b=["a"])
    found["spec"]["flows"].append({"name": "a"})

    verdict = create("/jobflows/validate", found)
    assert verdict.allowed
    assert verdict.warnings == ("spec.flows: only the last flow with the name a counts",)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (flow(a=["a"]), "jobflow Flow is not DAG"),
        (flow(a=["b"], b=["c"], c=["a"]), "jobflow Flow is not DAG"),
        (flow(a=["x"]), "jobflow Flow is not DAG: vertex is not defined: x"),
    ],
)
def test_flows_that_never_end(found: dict[str, Any], message: str) -> None:
    assert create("/jobflows/validate", found).message == message
    assert update("/jobflows/validate", found, flow(a=[])).message == message


# HyperNodes


def hyper_node(*patterns: str) -> dict[str, Any]:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}} for pattern in patterns]
    return {"metadata": {"name": "h"}, "spec": {"members": members}}


def test_hyper_nodes() -> None:
    assert create("/hypernodes/validate", hyper_node(r"node-\d+", "^a$")).message == ""
    assert "member must have at least one member" in create("/hypernodes/validate", hyper_node()).message
    found = update("/hypernodes/validate", hyper_node("a", "a(b", "[c"), hyper_node("a"))
    assert [refusal.field for refusal in found.refusals] == [
        "spec.members[1].selector.regexMatch.pattern",
        "spec.members[2].selector.regexMatch.pattern",
    ]
    assert "member regexMatch pattern is invalid: error parsing regexp: missing closing ): `a(b`" in found.message


@pytest.mark.parametrize(
    ("type_of", "selector", "warned"),
    [
        ("Node", {"exactMatch": {"name": "n"}}, ""),
        ("Node", {"labelMatch": {"matchLabels": {"a": "b"}}}, ""),
        ("Node", {}, "it selects nothing: add exactMatch, regexMatch or labelMatch"),
        ("HyperNode", {"exactMatch": {"name": "h"}}, ""),
        ("HyperNode", {"regexMatch": {"pattern": "h.*"}}, "a HyperNode can be selected only by exactMatch.name"),
        ("HyperNode", {}, "a HyperNode can be selected only by exactMatch.name"),
    ],
)
def test_who_writes_a_member_that_selects_nothing_is_warned(
    type_of: str, selector: dict[str, Any], warned: str
) -> None:
    member = {"type": type_of, **({"selector": selector} if selector else {})}
    found = {"metadata": {"name": "h"}, "spec": {"members": [*hyper_node("n")["spec"]["members"], member]}}
    verdict = create("/hypernodes/validate", found)

    assert verdict.allowed
    assert [text.startswith("spec.members[1].selector: ") for text in verdict.warnings] == [True] * bool(warned)
    assert all(warned in text for text in verdict.warnings)


# Cron jobs


def cron_job(name: str = "c", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job()["spec"]}, **spec},
    }


@pytest.mark.parametrize(
    ("found", "sentence", "field"),
    [
        (cron_job(schedule=""), "schedule is required", "spec.schedule"),
        (cron_job(schedule="CRON_TZ=UTC 1 * * * *"), "schedule should not contain TZ or CRON_TZ", "spec.schedule"),
        (cron_job(schedule="61 * * * *"), "schedule is not a valid cron expression", "spec.schedule"),
        (cron_job(schedule="* * * *"), "schedule is not a valid cron expression", "spec.schedule"),
        (cron_job(timeZone=""), "timeZone must be nil or non-empty string, got empty string", "spec.timeZone"),
        (cron_job(timeZone="local"), "timeZone can't be Local", "spec.timeZone"),
        (cron_job(timeZone="../etc/passwd"), "unknown timeZone", "spec.timeZone"),
        (cron_job(timeZone="-a"), "unknown timeZone", "spec.timeZone"),
        (cron_job(timeZone="America/" + "x" * 15), "unknown timeZone", "spec.timeZone"),
        (cron_job(timeZone="Mars/Olympus"), "invalid timeZone", "spec.timeZone"),
        (cron_job("c" * 53), "must be no more than 52 characters", "metadata.name"),
        (cron_job("a b"), 'invalid cronJob name "a b"', "metadata.name"),
    ],
)
def test_cron_jobs_that_are_refused(found: dict[str, Any], sentence: str, field: str) -> None:
    for verdict in (create("/cronjobs/validate", found), update("/cronjobs/validate", found, cron_job())):
        assert sentence in verdict.message
        assert {refusal.field for refusal in verdict.refusals} == {field}


@pytest.mark.parametrize(
    "found",
    [cron_job(), cron_job("c" * 52), cron_job(schedule="@every 1h"), cron_job(timeZone="America/New_York")],
)
def test_cron_jobs_that_are_taken(found: dict[str, Any]) -> None:
    verdict = create("/cronjobs/validate", found)

    assert (verdict.message, verdict.warnings) == ("", ())


def test_several_flaws_of_a_cron_job_are_joined() -> None:
    message = create("/cronjobs/validate", cron_job("c" * 53, schedule="", timeZone="")).message

    assert message.startswith("schedule is required, but got empty; timeZone must be nil or non-empty string")
    assert message.count("; ") == 2


def test_flaws_of_its_jobs_are_warnings() -> None:
    found = cron_job(jobTemplate={"spec": job(task(minAvailable=2), plugins={"magic": []})["spec"]})

    verdict = create("/cronjobs/validate", found)

    assert verdict.allowed
    assert any("unable to find job plugin: magic" in warning for warning in verdict.warnings)
