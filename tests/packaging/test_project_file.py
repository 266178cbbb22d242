"""What the project file must name, so that an installation is complete."""

import tomllib
from typing import Any

import yaml

from tests.packaging.pages import REPOSITORY

DEPLOYMENTS = (REPOSITORY / "manifests" / "deployment", REPOSITORY / "manifests" / "webhooks")


def project_file() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def test_the_definitions_are_installed_where_the_programs_look_for_them():
    data_files = project_file()["tool"]["setuptools"]["data-files"]["share/volcano-py/manifests/crds"]

    installed = {file.name for pattern in data_files for file in REPOSITORY.glob(pattern)}
    present = {file.name for file in (REPOSITORY / "manifests" / "crds").iterdir()}
    assert installed == present - {"Kustomization"}


def test_every_program_of_the_deployments_is_a_command_of_the_project():
    files = [file for folder in DEPLOYMENTS for file in folder.glob("*.yaml")]
    documents = [one for file in files for one in yaml.safe_load_all(file.read_text())]
    pods = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Deployment"]
    assert len(pods) == 3
    commands = {container["command"][0] for pod in pods for container in pod["containers"]}

    assert commands <= project_file()["project"]["scripts"].keys()
