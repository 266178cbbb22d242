"""`migrate check` finds what was planted into a clean copy of a cluster, and nothing else."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from tests.migration import ordinary
from tests.migration.copies import Copy, found_in
from tests.migration.plants import PLANTS, Plant
from tests.migration.volcano_install import Release
from volcano_py.cli.migrate import DIFFERENT, NOT_LOOKED, SAME, as_json, exit_code
from volcano_py.migration.findings import Group

Obj = dict[str, Any]

RELEASES = [Release(), Release("batch", "batch-system")]
_IDS = [one.name for one in RELEASES]


@pytest.mark.parametrize("release", RELEASES, ids=_IDS)
def test_a_clean_copy_has_no_difference(release: Release) -> None:
    report = Copy(release).check()

    assert report.findings == []
    assert exit_code(report) == SAME
    assert len(set(report.looked_at)) > 60


def test_fields_of_pods_follow_the_version_of_kubernetes() -> None:
    """Volcano's definitions have the fields that pods had in the version of Kubernetes that it is built with."""
    copy = Copy()
    changed = 0
    for one in copy.objects:
        if one["kind"] == "CustomResourceDefinition":
            changed += sum(_older_pods(version["schema"]["openAPIV3Schema"]) for version in one["spec"]["versions"])

    assert changed >= 4
    assert copy.check().findings == []


def _older_pods(schema: Obj) -> int:
    properties = schema.get("properties", {})
    changed = 0
    if "schedulingGroup" in properties:
        del properties["schedulingGroup"]
        properties["workloadRef"] = {"type": "object", "properties": {"name": {"type": "string"}}}
        properties["hostname"]["maxLength"] = 64
        changed = 1
    below = [*properties.values(), schema.get("items"), schema.get("additionalProperties")]
    return changed + sum(_older_pods(one) for one in below if isinstance(one, dict))


def test_the_pattern_of_mount_paths_is_volcanos() -> None:
    for one in Copy(objects=()).objects:
        if one["kind"] == "CustomResourceDefinition" and one["metadata"]["name"] == "jobs.batch.volcano.sh":
            schema = one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            volume = schema["properties"]["spec"]["properties"]["volumes"]["items"]["properties"]
            assert volume["mountPath"]["pattern"] == "^[^:]+$"


def test_queues_that_no_controller_has_seen_are_one_note() -> None:
    copy = Copy()
    for one in copy.objects:
        if one["kind"] == "Queue":
            one.pop("status")

    report = copy.check()

    assert report.findings == []
    assert any("no queue has a state" in note for note in report.notes)


def test_what_the_chart_and_the_api_server_add_to_pods_is_no_difference() -> None:
    copy = Copy()
    for part in ("scheduler", "controllers", "admission"):
        program = copy.program(part)
        program["spec"]["template"]["metadata"]["annotations"] = {"rollme/helm-revision": "1"}
        pod = program["spec"]["template"]["spec"]
        pod["securityContext"] = {
            "seLinuxOptions": {"level": "s0:c123,c456"},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        pod |= {"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "restartPolicy": "Always"}
        copy.container(part)["image"] = copy.container(part)["image"].rpartition(":")[0] + ":latest"
        copy.container(part)["securityContext"] |= {"runAsNonRoot": True, "runAsUser": 1000}
        copy.container(part)["resources"] = {}
    copy.container("admission").update(name="admission", env=None)
    scheduler = copy.program("scheduler")["spec"]["template"]["spec"]
    scheduler["volumes"].append({"name": "klog-sock", "emptyDir": {}})
    hyper_nodes = copy.get("ValidatingWebhookConfiguration", "volcano-admission-service-hypernodes-validate")
    hyper_nodes["webhooks"][0]["namespaceSelector"] = {}

    assert copy.check().findings == []


def test_a_key_of_a_config_map_may_have_another_file_name() -> None:
    copy = Copy()
    data = copy.get("ConfigMap", "volcano-scheduler-configmap")["data"]
    data["batch"] = data.pop("volcano-scheduler.conf")
    volume = copy.program("scheduler")["spec"]["template"]["spec"]["volumes"][0]
    volume["configMap"]["items"] = [{"key": "batch", "path": "volcano-scheduler.conf"}]
    assert copy.check().findings == []

    data["batch"] = "actions: vanish"
    assert found_in(copy.check()) == {("ConfigMap", "volcano-scheduler-configmap", "conf-refused")}


def test_a_job_of_many_replicas_is_looked_at_at_once() -> None:
    copy = Copy(objects=())
    many = [ordinary.task("master", 1), ordinary.task("worker", 2_000_000_000)]
    copy.add(ordinary.job("huge", spec=ordinary.job_spec(*many, plugins={"svc": [], "mpi": [], "ssh": ["left"]})))
    assert found_in(copy.check()) == {("Job", "huge", "job-plugin-argument")}


def test_what_a_plugin_says_of_tasks_is_the_same_in_volcano() -> None:
    copy = Copy(objects=())
    copy.add(ordinary.job("alone", spec=ordinary.job_spec(plugins={"pytorch": ["--master=chief"]})))
    assert copy.check().findings == []


def test_names_cannot_write_to_the_terminal() -> None:
    copy = Copy(objects=())
    copy.add(ordinary.job("odd", spec=ordinary.job_spec(plugins={"a\x1b[2J\nb": []})))
    said = [one.what for one in copy.check().findings]
    assert said
    assert all(one.isprintable() for one in said)


def test_without_schemas_the_parts_of_objects_have_any_type() -> None:
    copy = Copy()
    copy.get("Queue", "ml")["spec"] = "none"
    copy.get("Queue", "closed")["status"] = ["Open"]
    copy.get("ValidatingWebhookConfiguration", "volcano-admission-service-jobs-validate")["webhooks"][0]["rules"] = [
        {"apiGroups": [["a"]], "resources": [None], "operations": [{}]}
    ]
    assert ("Queue", "closed", "queue-state") in found_in(copy.check())


@pytest.mark.parametrize("image", ["example.com/svc-scheduler:2", "example.com/svc-agent:2", "nvc-webhook-manager"])
def test_programs_of_others_with_a_longer_name_are_not_volcanos(image: str) -> None:
    copy = Copy()
    other = deepcopy(copy.program("scheduler"))
    other["metadata"] = {"name": "other", "namespace": "team", "labels": {"app": "other"}}
    other["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    other["spec"]["template"]["spec"]["containers"][0]["image"] = image
    copy.add(other)
    assert copy.check().findings == []


def test_a_lease_is_shared_only_in_our_namespace() -> None:
    copy = Copy()
    copy.argument("scheduler", "--leader-elect=true")
    copy.argument("controllers", "--leader-elect=true", "--leader-elect-resource-namespace=kube-system")
    leases = [note for note in copy.check().notes if "Lease" in note]
    assert "ours takes another one" in leases[0]
    assert "ours takes the same one" in leases[1]


@pytest.mark.parametrize("plant", PLANTS, ids=[one.name for one in PLANTS])
def test_one_planted_difference_is_found_and_nothing_else(plant: Plant) -> None:
    copy = Copy()
    plant.change(copy)

    report = copy.check()

    assert found_in(report) == plant.expected(copy)
    assert exit_code(report) == DIFFERENT


@pytest.mark.parametrize("release", RELEASES, ids=_IDS)
def test_many_differences_at_once_are_all_found(release: Release) -> None:
    copy = Copy(release)
    expected = set()
    for plant in PLANTS:
        if plant.name not in _ALONE:
            plant.change(copy)
            expected |= plant.expected(copy)

    assert found_in(copy.check()) == expected
    assert len(expected) > 60


_ALONE = {
    # Each of these changes what another one changes, too.
    *(
        "a-longer-period",
        "a-feature-of-kubernetes",
        "several-schedulers-without-a-lease",
        "no-controllers",
        "a-webhook-by-address",
    ),
    *(
        "hyper-nodes-from-labels",
        "numa-nodes",
        "an-extender",
        "an-action-of-older-volcanos",
        "a-plugin-of-somebody",
        "an-unknown-action",
        "a-plugin-twice",
    ),
    *("an-unknown-argument", "a-misspelt-switch", "another-policy", "the-sharding-controller", "no-cron-jobs"),
    *("resource-groups-that-cannot-be-read", "fewer-webhooks", "two-scheduler-names", "two-controller-managers"),
}


def test_there_are_more_plants_than_thirty_and_each_rule_has_one() -> None:
    copy = Copy(objects=())
    rules = {rule for plant in PLANTS for _, _, rule in plant.expected(copy)}
    assert len(PLANTS) > 45
    assert len(rules) > 40


def test_findings_say_what_to_do() -> None:
    copy = Copy()
    for plant in PLANTS:
        if plant.name not in _ALONE:
            plant.change(copy)
    for finding in copy.check().findings:
        assert finding.what
        assert finding.advice, finding
        assert "\n" not in finding.what + finding.advice


def test_a_kind_that_may_not_be_read_is_named_and_makes_nothing_up() -> None:
    for plural in ("queues", "jobs", "podgroups", "pods", "jobtemplates", "customresourcedefinitions", "configmaps"):
        copy = Copy()
        copy.forbidden = {plural}

        report = copy.check()

        assert report.findings == [], plural
        assert any(plural in line for line in report.not_looked_at)
        assert exit_code(report) == NOT_LOOKED


@pytest.mark.parametrize("seed", range(8))
def test_fields_of_any_shape_do_not_end_the_check(seed: int) -> None:
    random = Random(seed)
    copy = Copy()
    for _ in range(60):
        one = random.choice(copy.objects)
        if one["kind"] != "CustomResourceDefinition":
            _spoil({key: value for key, value in one.items() if key != "metadata"}, random)

    assert copy.check().looked_at


def _spoil(value: object, random: Random, depth: int = 0) -> None:
    """Replace some field below a value by something of another type."""
    if isinstance(value, dict) and value:
        key = random.choice(sorted(value))
        if depth and key not in ("apiVersion", "kind", "name") and random.random() < 0.35:
            value[key] = random.choice([None, "x", 7, [], {}, ["y"], {"a": None}])
        else:
            _spoil(value[key], random, depth + 1)
    elif isinstance(value, list) and value:
        place = random.randrange(len(value))
        if random.random() < 0.2:
            value[place] = random.choice([None, "x", 3])
        else:
            _spoil(value[place], random, depth + 1)


def test_a_cluster_without_volcano_says_so() -> None:
    copy = Copy(objects=())
    copy.objects = []
    report = copy.check()
    assert any("no program of Volcano was found" in note for note in report.notes)


@pytest.mark.parametrize("plural", ["deployments", "daemonsets", "statefulsets"])
def test_programs_that_may_not_be_read_do_not_count_as_absent(plural: str) -> None:
    copy = Copy(objects=())
    copy.forbidden = {plural}
    if plural != "deployments":
        copy.objects = []

    assert not any("no program of Volcano was found" in note for note in copy.check().notes)


def test_json_has_every_finding() -> None:
    copy = Copy()
    copy.argument("scheduler", "--node-selector=a:b")
    found = json.loads(json.dumps(as_json(copy.check(), verbose=True)))
    assert found["summary"]["blocks"] == 1
    assert found["findings"][0]["group"] == Group.BLOCKS.value
    assert found["findings"][0]["object"] == {
        "kind": "Deployment",
        "name": "volcano-scheduler",
        "namespace": "volcano-system",
    }
    assert {"kind": "Queue", "name": "root"} in found["same"]
