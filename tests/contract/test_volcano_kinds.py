"""Contract: what an API server makes of objects of Volcano's kinds, by the definitions in `manifests/crds`."""

from __future__ import annotations

import pytest

from tests.contract.volcano_kinds import POD, Kinds, Obj
from tests.tools.samples import POD_TEMPLATE, every_field

TEMPLATE = "spec.tasks.0.template.spec"


@pytest.mark.parametrize("plural", ["jobs", "jobtemplates", "cronjobs"])
async def test_a_pod_template_with_every_field_stays_as_it_was_written(kinds: Kinds, plural: str) -> None:
    inside = "spec.jobTemplate.spec.tasks" if plural == "cronjobs" else "spec.tasks"
    template = every_field(POD_TEMPLATE)
    answer = await kinds.post(plural, {f"{inside}.0.template": template})
    assert answer.status == 201, answer
    stored = answer.body["spec"]["jobTemplate"]["spec"] if plural == "cronjobs" else answer.body["spec"]
    assert stored["tasks"][0]["template"] == template


@pytest.mark.parametrize("spec", [{}, {"containers": [{"name": "main"}]}], ids=["no-containers", "least"])
async def test_nothing_is_added_to_a_pod_template(kinds: Kinds, spec: Obj) -> None:
    template = {"metadata": {}, "spec": {**POD, **spec}}
    answer = await kinds.post("jobs", {"spec.tasks.0.template": template})
    assert answer.body["spec"]["tasks"][0]["template"] == template


@pytest.mark.parametrize(
    ("plural", "path", "unknown"),
    [
        ("jobs", "spec.minAvailible", "spec.minAvailible"),
        ("jobs", f"{TEMPLATE}.containers.0.imagee", "spec.tasks[0].template.spec.containers[0].imagee"),
        ("jobs", f"{TEMPLATE}.nodeselector", "spec.tasks[0].template.spec.nodeselector"),
        ("jobs", "spec.tasks.0.template.metadata.lables", "spec.tasks[0].template.metadata.lables"),
        ("jobs", "spec.tasks.0.template.metadata.generateName", "spec.tasks[0].template.metadata.generateName"),
        ("cronjobs", "spec.jobTemplate.metadata.uid", "spec.jobTemplate.metadata.uid"),
        ("cronjobs", "spec.jobTemplate.spec.task", "spec.jobTemplate.spec.task"),
        ("jobtemplates", "spec.task", "spec.task"),
        ("jobflows", "spec.flows.0.patch.jobSpec.task", "spec.flows[0].patch.jobSpec.task"),
        ("commands", "spec", "spec"),
        ("hypernodes", "spec.size", "spec.size"),
    ],
)
async def test_a_misspelt_field_fails_strict_validation_and_is_dropped_with_a_warning_otherwise(
    kinds: Kinds, plural: str, path: str, unknown: str
) -> None:
    strict = await kinds.post(plural, {path: "x"})
    assert (strict.status, strict.reason) == (400, "BadRequest"), strict
    assert f'unknown field "{unknown}"' in strict.message
    lenient = await kinds.post(plural, {path: "x"}, fieldValidation="Warn")
    assert lenient.status == 201, lenient
    assert f'unknown field \\"{unknown}\\"' in lenient.headers["Warning"]


JOB_DEFAULTS = {"queue": "default", "maxRetry": 3}


@pytest.mark.parametrize(
    ("plural", "changes", "spec"),
    [
        pytest.param("jobs", {"spec": {}}, JOB_DEFAULTS, id="job"),
        pytest.param(
            "jobs",
            {
                "spec": {
                    "tasks": [{"partitionPolicy": {"totalPartitions": 1, "partitionSize": 2, "networkTopology": {}}}]
                }
            },
            {
                **JOB_DEFAULTS,
                "tasks": [
                    {
                        "replicas": 0,
                        "partitionPolicy": {
                            "totalPartitions": 1,
                            "partitionSize": 2,
                            "minPartitions": 0,
                            "networkTopology": {"mode": "hard"},
                        },
                    }
                ],
            },
            id="task",
        ),
        pytest.param("jobtemplates", {"spec": {}}, JOB_DEFAULTS, id="job-template"),
        pytest.param(
            "cronjobs",
            {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {}}}},
            {
                "schedule": "@daily",
                "jobTemplate": {"spec": JOB_DEFAULTS},
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
            },
            id="cron-job",
        ),
        pytest.param(
            "jobflows",
            {"spec": {"flows": [{"name": "a", "patch": {"jobSpec": {"minAvailable": 1}}}]}},
            {"flows": [{"name": "a", "patch": {"jobSpec": {"minAvailable": 1}}}]},
            id="a-patch-has-none",
        ),
        pytest.param(
            "podgroups",
            {"spec": {"networkTopology": {}, "subGroupPolicy": [{}]}},
            {
                "queue": "default",
                "networkTopology": {"mode": "hard"},
                "subGroupPolicy": [{"subGroupSize": 1, "minSubGroups": 0}],
            },
            id="pod-group",
        ),
        pytest.param("queues", {"spec": {}}, {"weight": 1, "priority": 0, "dequeueStrategy": "traverse"}, id="queue"),
        pytest.param(
            "colocationconfigurations",
            {"spec": {"memoryQos": {}}},
            {"memoryQos": {"highRatio": 100, "lowRatio": 0, "minRatio": 0}},
            id="colocation",
        ),
    ],
)
async def test_what_is_left_out_has_its_default(kinds: Kinds, plural: str, changes: Obj, spec: Obj) -> None:
    answer = await kinds.post(plural, changes)
    assert answer.status == 201, answer
    assert answer.body["spec"] == spec


async def test_null_counts_as_left_out_except_as_the_arguments_of_a_job_plugin(kinds: Kinds) -> None:
    changes = {"spec": {"queue": None, "tasks": None, "priorityClassName": None, "plugins": {"env": None}}}
    answer = await kinds.post("jobs", changes)
    assert answer.body["spec"] == {**JOB_DEFAULTS, "plugins": {"env": None}}


@pytest.mark.parametrize(
    ("plural", "status"),
    [
        ("jobs", {"state": {"phase": "Running", "lastTransitionTime": "2026-01-01T00:00:00Z"}, "running": 1}),
        ("cronjobs", {"active": [{"kind": "Job", "name": "a"}], "lastScheduleTime": "2026-01-01T00:00:00Z"}),
        ("queues", {"state": "Open"}),
        ("jobflows", {"state": {"phase": "Succeed"}, "unKnowJobs": ["a"]}),
        ("jobtemplates", {"jobDependsOnList": ["a"]}),
        ("hypernodes", {"nodeCount": 3}),
        ("nodeshards", {"nodesInUse": ["a"]}),
        ("colocationconfigurations", {"conditions": []}),
    ],
)
async def test_the_status_is_written_apart_from_the_object(kinds: Kinds, plural: str, status: Obj) -> None:
    path, made = await kinds.made(plural, {"status": status})
    assert "status" not in made
    written = await kinds.api.patch(f"{path}/status", {"status": status}, fieldValidation="Strict")
    assert (written.status, written.body["status"]) == (200, status), written
    assert written.meta["generation"] == made["metadata"]["generation"]
    kept = await kinds.api.patch(path, {"status": {}, "metadata": {"labels": {"a": "b"}}})
    assert kept.body["status"] == status


@pytest.mark.parametrize(
    ("plural", "status", "field"),
    [
        ("jobs", {"state": {"phase": "Lost"}}, "status.state.phase"),
        ("jobs", {"state": {"lastTransitionTime": "yesterday"}}, "status.state.lastTransitionTime"),
        ("jobs", {"conditions": [{}]}, "status.conditions[0].status"),
        *(
            ("jobs", {counter: -1}, f"status.{counter}")
            for counter in ("minAvailable", "pending", "running", "succeeded", "failed", "terminating", "unknown")
        ),
        ("jobs", {"version": -1}, "status.version"),
        ("jobs", {"retryCount": -1}, "status.retryCount"),
        ("queues", {"state": "Shut"}, "status.state"),
        ("queues", {"inqueue": -1}, "status.inqueue"),
        ("jobflows", {"state": {"phase": "Done"}}, "status.state.phase"),
        ("jobflows", {"jobStatusList": [{"restartCount": -1}]}, "status.jobStatusList[0].restartCount"),
        ("hypernodes", {"nodeCount": -1}, "status.nodeCount"),
        ("colocationconfigurations", {"conditions": [{"type": "A"}]}, "status.conditions[0].reason"),
    ],
)
async def test_a_status_outside_its_limits_is_refused(kinds: Kinds, plural: str, status: Obj, field: str) -> None:
    path, _ = await kinds.made(plural)
    answer = await kinds.api.patch(f"{path}/status", {"status": status})
    assert (answer.status, answer.reason) == (422, "Invalid"), answer
    assert field in answer.message


async def test_the_status_of_a_pod_group_is_written_with_the_object(kinds: Kinds) -> None:
    path, made = await kinds.made("podgroups", {"status": {"phase": "Inqueue"}})
    assert made["status"] == {"phase": "Inqueue"}
    assert (await kinds.api.patch(f"{path}/status", {"status": {"phase": "Running"}})).status == 404
    assert (await kinds.api.patch(path, {"status": {"phase": "Running"}})).body["status"]["phase"] == "Running"


@pytest.mark.parametrize("plural", ["commands", "numatopologies"])
async def test_these_kinds_have_no_status(kinds: Kinds, plural: str) -> None:
    path, _ = await kinds.made(plural)
    assert (await kinds.api.get(f"{path}/status")).status == 404
