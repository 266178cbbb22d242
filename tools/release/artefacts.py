"""How each file of a release is made from the exported sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.release.archives import repack
from tools.release.tree import NotReleasable

_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
_WHEEL = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
_TAIL_LINES = 20


@dataclass(frozen=True)
class Workshop:
    """Where a release is made: the exported sources, a folder for scratch, and the folder of the results."""

    sources: Path
    scratch: Path
    dist: Path
    version: str
    epoch: int

    def run(self, command: Sequence[str | Path], folder: Path, **variables: str) -> str:
        """Run a program and return its output; raise NotReleasable with the end of what it printed."""
        environment: Mapping[str, str] = {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch), **variables}
        ran = subprocess.run(list(command), cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode:
            tail = "\n".join((ran.stdout + ran.stderr).splitlines()[-_TAIL_LINES:])
            raise NotReleasable(f"{' '.join(map(str, command))} ended with {ran.returncode}:\n{tail}")
        return ran.stdout

    def packages(self) -> list[Path]:
        """Make the source package, and the wheel from it, so that the source package is known to be complete."""
        python = self._python_with_build_tools()
        self.run([python, "-c", _SDIST, self.dist], self.sources)
        source = self.dist / f"volcano_py-{self.version}.tar.gz"
        repack(source, self.epoch)
        unpacked = self.scratch / "from-source"
        shutil.unpack_archive(source, unpacked, filter="data")
        self.run([python, "-c", _WHEEL, self.dist], unpacked / f"volcano_py-{self.version}")
        return [source, self.dist / f"volcano_py-{self.version}-py3-none-any.whl"]

    def _python_with_build_tools(self) -> Path:
        """Return a Python of its own that has what pyproject.toml asks for to build."""
        folder = self.scratch / "build-tools"
        venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        wanted = tomllib.loads((self.sources / "pyproject.toml").read_text())["build-system"]["requires"]
        self.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], self.scratch)
        return python

    def chart(self) -> list[Path]:
        """Make the package of the Helm chart, which holds the manifests that a checkout only links to."""
        homes = {f"HELM_{name}_HOME": str(self.scratch / name) for name in ("CACHE", "CONFIG", "DATA")}
        self.run(["helm", "package", self.sources / "chart", "--destination", self.dist], self.scratch, **homes)
        package = self.dist / f"volcano-py-{self.version}.tgz"
        repack(package, self.epoch)
        return [package]

    def install_file(self) -> list[Path]:
        """Write what `kubectl apply -k manifests/` applies into one file."""
        applied = self.run(["kubectl", "kustomize", self.sources / "manifests"], self.scratch)
        file = self.dist / "install.yaml"
        title = (
            f"# volcano_py {self.version}: kubectl apply -f install.yaml. docs/install.md explains what it installs.\n"
            f"# If the image is in a registry, replace volcano-py:{self.version} by its full name.\n"
        )
        file.write_text(title + applied)
        return [file]

    def image(self) -> list[Path]:
        """Build and try the image, and write it as an OCI archive."""
        archive = self.dist / f"volcano-py-{self.version}-image.tar"
        self.run([self.sources / "manifests" / "image" / "build.sh"], self.sources, IMAGE_ARCHIVE=str(archive))
        return [archive]
