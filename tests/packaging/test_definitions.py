"""An installation has the definitions of PodGroup and Queue, where the programs look for them."""

import tomllib

import pytest

from tests.packaging.pages import REPOSITORY


@pytest.mark.xfail(strict=True, reason="pyproject.toml does not name the definitions as data files yet")
def test_the_definitions_are_installed_with_the_project():
    data_files = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]

    installed = {
        file.name for pattern in data_files["share/volcano-py/manifests/crds"] for file in REPOSITORY.glob(pattern)
    }
    assert installed == {file.name for file in (REPOSITORY / "manifests" / "crds").iterdir()}
