"""The users' guide to jobs: its manifests are accepted, and its tables and picture are those of the controller."""

import re
from collections import defaultdict
from typing import Any

import aiohttp
import pytest
import yaml

from tests.packaging.pages import DOCS, REPOSITORY, rows
from volcano_py.controllers.job import decision, phases, policies
from volcano_py.controllers.job.phases import TABLE
from volcano_py.local.cluster import LocalCluster

PAGE = DOCS / "jobs.md"
TEXT = PAGE.read_text()
PARTS = (policies.RESTART_TASK, policies.RESTART_POD, policies.RESTART_PARTITION)
SOURCES = "\n".join(file.read_text() for file in (REPOSITORY / "volcano_py" / "controllers").rglob("*.py"))


def manifests() -> list[dict[str, Any]]:
    """Return every object of the page, also the one in the shell command."""
    (command,) = re.findall(r"<<EOF\n(.*?)EOF", TEXT, re.DOTALL)
    blocks = [*re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL), command]
    return [document for block in blocks for document in yaml.safe_load_all(block)]


def first_words(section: str) -> set[str]:
    """Return what stands in backquotes or capitals in the first column of a section's table."""
    return {word for cells in rows(PAGE, section) for word in re.findall(r"[\w*]+", cells[0])}


async def test_the_api_server_takes_every_manifest_of_the_page():
    async with LocalCluster() as cluster, aiohttp.ClientSession() as session:
        for document in manifests():
            version, kind = document["apiVersion"], document["kind"]
            resource = cluster.registry.resources.of_kind(version, kind)
            assert resource is not None, kind
            path = f"/apis/{version}/namespaces/default/{resource.plural}"
            async with session.post(cluster.url + path, json=document, params={"fieldValidation": "Strict"}) as answer:
                assert answer.status == 201, (document["metadata"], await answer.text())


def test_the_picture_has_every_change_of_phase_and_no_other():
    (picture,) = re.findall(r"```mermaid\n(.*?)```", TEXT, re.DOTALL)
    drawn = defaultdict(set)
    for before, after in re.findall(r"(\S+) --> (\w+)", picture):
        drawn["" if before == "[*]" else before].add(after)

    assert drawn == {phase: set(after) for phase, after in phases.SUCCESSORS.items() if after}


def test_every_phase_has_its_line():
    (table,) = re.findall(r"(\| phase \| what happens.*?)\n\n", TEXT, re.DOTALL)
    named = {word for line in table.splitlines()[2:] for word in re.findall(r"\w+", line.split("|")[1])}

    assert named == set(TABLE)


def test_the_events_of_policies_are_those_that_pods_cause():
    caused = {
        policies.POD_FAILED,
        policies.POD_EVICTED,
        policies.POD_PENDING,
        policies.UNKNOWN,
        policies.TASK_COMPLETED,
        policies.TASK_FAILED,
    }

    assert first_words("Events of policies") == caused | {policies.ANY}


def test_the_actions_are_those_that_change_a_job_in_some_phase():
    effective = {action for rules in TABLE.values() for action in rules}

    assert first_words("Actions") | {policies.RESUME_JOB} == effective


def test_commands_have_the_actions_that_need_no_target():
    effective = {action for rules in TABLE.values() for action in rules}

    assert first_words("Commands") == effective - set(PARTS)


@pytest.mark.parametrize("phase", TABLE)
def test_actions_have_an_effect_in_the_phases_that_the_page_names(phase: str):
    text = "`ResumeJob` works only in the phases Aborting and Aborted. All other actions work in Pending, Running and"

    assert text in TEXT
    active = {phases.PENDING, phases.RUNNING, phases.RESTARTING}
    everything = {action for rules in TABLE.values() for action in rules}
    if phase in active:
        assert set(TABLE[phase]) == everything - {policies.RESUME_JOB}
    else:
        assert set(TABLE[phase]) <= {policies.RESUME_JOB}


def test_every_reason_why_a_job_cannot_proceed_has_its_line():
    reasons = {cells[0].strip("`") for cells in rows(PAGE, "What a job says")}

    assert reasons == decision.PROBLEMS


def test_every_event_on_a_job_is_recorded_somewhere():
    events = {name for cells in rows(PAGE, "Events") for name in re.findall(r"`(\w+)`", cells[0])}

    assert len(events) > 10
    assert [name for name in sorted(events) if f'"{name}"' not in SOURCES] == []
