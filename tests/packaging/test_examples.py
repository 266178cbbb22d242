"""The jobs of `examples/`: each file says what it shows and how to run it, and the index tells the truth about it."""

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.packaging.pages import REPOSITORY, rows
from volcano_py.api import keys
from volcano_py.api.quantity import parse_quantity
from volcano_py.local.cluster import LocalCluster

EXAMPLES = REPOSITORY / "examples"
INDEX = EXAMPLES / "README.md"
FILES = sorted(EXAMPLES.glob("*.yaml"))
GPU = "nvidia.com/gpu"
FILE, ROOM = 0, 2  # columns of the index


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def job_specs(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the spec of every job that a file describes, in a Job, a CronJob or a JobTemplate."""
    for document in documents(file):
        match document["kind"]:
            case "Job" | "JobTemplate":
                yield document["spec"]
            case "CronJob":
                yield document["spec"]["jobTemplate"]["spec"]


def containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for task in spec["tasks"]:
        yield from task["template"]["spec"]["containers"]


def least(spec: dict[str, Any]) -> dict[str, Fraction]:
    """Return what the pods of a job request that must be there for it to start."""
    total: dict[str, Fraction] = {}
    for task in spec["tasks"]:
        for container in task["template"]["spec"]["containers"]:
            asked = {**container["resources"].get("limits", {}), **container["resources"]["requests"]}
            for name, amount in asked.items():
                pods = task.get("minAvailable", task["replicas"])
                total[name] = total.get(name, Fraction()) + pods * Fraction(parse_quantity(amount))
    return total


def widest(file: Path) -> dict[str, Fraction]:
    """Return the room that a file asks for: of its job, or of the two jobs of the flow that run at once."""
    needs = [least(spec) for spec in job_specs(file)]
    at_once = needs[1:3] if file.stem == "flow" else needs
    names = {name for need in at_once for name in need}
    return {name: sum((need.get(name, Fraction()) for need in at_once), Fraction()) for name in names}


def room(text: str) -> dict[str, Fraction]:
    """Read ``8 CPU, 32Gi, 4 GPUs``."""
    found = re.findall(r"([0-9.]+) ?(CPU|GPUs|Gi|Mi)", text)
    units = {"CPU": keys.CPU, "GPUs": GPU, "Gi": keys.MEMORY, "Mi": keys.MEMORY}
    factors = {"Gi": 2**30, "Mi": 2**20}
    return {units[unit]: Fraction(amount) * factors.get(unit, 1) for amount, unit in found}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_begins_with_what_it_shows_and_how_to_run_it(file: Path) -> None:
    shows, run = file.read_text().splitlines()[:2]

    assert shows.startswith("# Shows: ")
    assert run.startswith(f"# Run: kubectl apply -f examples/{file.name}; ")


def test_the_index_lists_every_file() -> None:
    listed = [re.sub(r"\[(.*)\]\((.*)\)", r"\1 \2", row[FILE]) for row in rows(INDEX, "Examples")]

    assert sorted(listed) == [f"{file.name} {file.name}" for file in FILES]


def test_the_index_names_the_room_that_each_job_needs_to_start() -> None:
    said = {row[FILE].partition("]")[0].strip("["): room(row[ROOM]) for row in rows(INDEX, "Examples")}

    assert said == {file.name: widest(file) for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_gang_counts_the_least_pods_of_its_tasks(file: Path) -> None:
    for spec in job_specs(file):
        assert spec["minAvailable"] == sum(task.get("minAvailable", task["replicas"]) for task in spec["tasks"])
        waiting = [task for task in spec["tasks"] if "dependsOn" in task]
        assert all(task["minAvailable"] == 0 for task in waiting), "the gang could never start"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_pods_end_and_say_what_they_need(file: Path) -> None:
    for spec in job_specs(file):
        assert {task["template"]["spec"]["restartPolicy"] for task in spec["tasks"]} <= {"Never", "OnFailure"}
        for container in containers(spec):
            assert set(container["resources"]["requests"]) == {keys.CPU, keys.MEMORY}
            assert re.fullmatch(r"[a-z0-9/-]+:[a-z0-9.-]*[0-9][a-z0-9.-]*", container["image"]), "a version, not latest"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_programs_in_python_compile(file: Path) -> None:
    texts = [
        text for document in documents(file) if document["kind"] == "ConfigMap" for text in document["data"].values()
    ]
    for spec in job_specs(file):
        for container in containers(spec):
            command = container.get("command", [])
            if "python" in command and "-c" in command:
                texts.append(command[-1])
    for text in texts:
        compile(text, file.name, "exec")


async def test_the_embedded_server_takes_every_example_as_it_is() -> None:
    async with LocalCluster() as cluster, aiohttp.ClientSession() as session:
        for file in FILES:
            for document in documents(file):
                version, kind = document["apiVersion"], document["kind"]
                resource = cluster.registry.resources.of_kind(version, kind)
                assert resource is not None, kind
                path = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/default/{resource.plural}"
                query = {"fieldValidation": "Strict"}
                async with session.post(cluster.url + path, json=document, params=query) as answer:
                    assert answer.status == 201, (file.name, await answer.text())
