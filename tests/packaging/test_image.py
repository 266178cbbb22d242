"""What is left out of the image, and that continuous integration builds and tries it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_asyncio
import pytest

from tests.packaging.dockerfile import read_dockerfile
from tests.packaging.pages import REPOSITORY

FOLDER = REPOSITORY / "manifests" / "image"
SLIM, BUILD = FOLDER / "slim.sh", FOLDER / "build.sh"

STAYS = """
    bin/vc-scheduler
    bin/volcano-py
    share/volcano-py/manifests/crds/queues.yaml
    site-packages/numpy/__init__.py
    site-packages/numpy/__pycache__/__init__.cpython-311.pyc
    site-packages/numpy/py.typed
    site-packages/numpy/testing/__init__.py
    site-packages/volcano_py/testing/__init__.py
    site-packages/kubernetes_asyncio/config/kube_config.py
    site-packages/kubernetes_asyncio/client/__init__.py
    site-packages/certifi/cacert.pem
    site-packages/some.dist-info/licenses/LICENSE.md
    site-packages/LICENSE
"""
GOES = """
    bin/f2py
    bin/activate
    include/python3.11/some.h
    site-packages/numpy/__init__.pyi
    site-packages/numpy/__init__.pxd
    site-packages/numpy/_core/lib/libnpymath.a
    site-packages/numpy/_core/_simd.cpython-311-x86_64-linux-gnu.so
    site-packages/numpy/_core/_umath_tests.cpython-311-x86_64-linux-gnu.so
    site-packages/numpy/_core/tests/test_umath.py
    site-packages/numpy/f2py/__init__.py
    site-packages/numpy/distutils/__init__.py
    site-packages/numpy/_pyinstaller/__init__.py
    site-packages/kubernetes_asyncio/config/kube_config_test.py
    site-packages/kubernetes_asyncio/config/__pycache__/kube_config_test.cpython-311.pyc
    site-packages/kubernetes_asyncio/client/models/__pycache__/v1_pod.cpython-311.pyc
    site-packages/CHANGELOG.md
"""
GENERATED = ("api/core_v1_api", "models/v1_pod")


def place(home: Path, name: str) -> Path:
    return home / name.replace("site-packages", "lib/python3.11/site-packages", 1)


@pytest.fixture(scope="module")
def slimmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an installation after slim.sh."""
    home = tmp_path_factory.mktemp("installation")
    client = [f"site-packages/kubernetes_asyncio/client/{name}.py" for name in GENERATED]
    for name in (*STAYS.split(), *GOES.split(), *client):
        path = place(home, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('"""What it does."""\nNAME = __name__\n')
    (home / "bin" / "python").symlink_to(sys.executable)
    subprocess.run([SLIM, home], check=True, timeout=30)
    return home


@pytest.mark.parametrize("name", STAYS.split())
def test_what_runs_stays(slimmed: Path, name: str) -> None:
    assert place(slimmed, name).is_file()


@pytest.mark.parametrize("name", GOES.split())
def test_what_nothing_needs_to_run_goes(slimmed: Path, name: str) -> None:
    assert not place(slimmed, name).exists()


@pytest.mark.parametrize("name", GENERATED)
def test_the_generated_client_is_imported_without_its_sources_and_docstrings(slimmed: Path, name: str) -> None:
    folder, _, module = name.partition("/")
    path = place(slimmed, f"site-packages/kubernetes_asyncio/client/{folder}")
    code = f"import {module} as m; print(m.NAME, m.__doc__, m.__file__)"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert said.stdout.split() == [module, "None", str(path / f"{module}.pyc")]


def test_the_generated_client_relies_on_no_docstring_and_no_assertion() -> None:
    client = Path(kubernetes_asyncio.__file__).parent / "client"
    sources = [path for folder in ("api", "models") for path in (client / folder).glob("*.py")]

    assert len(sources) > 700
    assert [path.name for path in sources if re.search(r"__doc__|getdoc|^\s*assert ", path.read_text(), re.M)] == []


def test_the_base_and_the_arguments_of_pip_are_read_from_the_dockerfile() -> None:
    arguments, stages = read_dockerfile(REPOSITORY / "Dockerfile")
    script = BUILD.read_text()

    assert "sed -n 's/^ARG PYTHON_IMAGE=//p' Dockerfile" in script
    assert "sed -n 's/^ARG \\(PIP_[A-Z_]*\\)$/\\1/p' Dockerfile" in script
    assert arguments["PYTHON_IMAGE"].endswith("-bookworm")
    assert "suite=bookworm" in script
    assert "PIP_INDEX_URL" in [argument.text for argument in stages[0].all("ARG")]


def test_the_size_has_one_limit() -> None:
    assert BUILD.read_text().count("LIMIT_MB=") == 1


@pytest.mark.parametrize("script", [SLIM, BUILD, REPOSITORY / ".ci" / "run"], ids=lambda path: path.name)
def test_a_script_can_be_run_and_stops_at_the_first_error(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert "\nset -euo pipefail\n" in script.read_text()
    subprocess.run([shutil.which("bash") or "bash", "-n", script], check=True, timeout=30)


def test_continuous_integration_builds_it_and_installs_what_that_takes() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text()

    assert "make image\n" in script
    assert "for program in buildah debootstrap;" in script
    assert "\nimage:\n\t@manifests/image/build.sh\n" in (REPOSITORY / "Makefile").read_text()
