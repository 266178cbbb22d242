"""Helm as a program, and the objects that it and kustomize render."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "chart"
MANIFESTS = REPOSITORY / "manifests"

Object = dict[str, Any]
Objects = dict[tuple[str, str], Object]
"""By kind and name."""


class HelmFailed(Exception):
    """Helm ended with an error; the message holds what it printed."""


@dataclass(frozen=True)
class Helm:
    """The helm program, with a folder for its caches and for files of values."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def run(self, *arguments: str | Path, values: Mapping[str, Any] | None = None, timeout: float = 120.0) -> str:
        """Run helm and return its standard output; raise HelmFailed with its standard error."""
        given = [] if values is None else ["--values=-"]
        ran = subprocess.run(
            [str(self.program), *map(str, arguments), *given],
            env=self._environment(),
            input=None if values is None else json.dumps(values),
            stdin=subprocess.DEVNULL if values is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        if ran.returncode:
            raise HelmFailed(f"helm {' '.join(map(str, arguments))} ended with {ran.returncode}: {ran.stderr}")
        return ran.stdout

    def template(
        self,
        values: Mapping[str, Any] | None = None,
        release: str = "volcano",
        namespace: str = "volcano-system",
        chart: Path = CHART,
    ) -> Objects:
        """Return the objects that an installation of the chart would create."""
        return read_objects(self.run("template", release, chart, f"--namespace={namespace}", values=values or {}))

    def _environment(self) -> dict[str, str]:
        folders = {f"HELM_{name}_HOME": str(self.home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        kubeconfig = {"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {"KUBECONFIG": os.devnull}
        return {**os.environ, **folders, **kubeconfig}


def kustomize(kubectl: Path, folder: Path) -> Objects:
    """Return the objects that `kubectl apply -k` of a folder would apply."""
    ran = subprocess.run(
        [str(kubectl), "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=True
    )
    return read_objects(ran.stdout)


def read_objects(text: str) -> Objects:
    """Return the objects of several documents; a name that occurs twice is an error."""
    found: Objects = {}
    for document in documents(text):
        key = document["kind"], document["metadata"]["name"]
        assert key not in found, f"{key} is rendered twice"
        found[key] = document
    return found


def documents(text: str) -> Iterator[Object]:
    """Yield the documents of a text; those in JSON are read as JSON, which is forty times faster."""
    for document in re.split(r"(?m)^---$", text):
        bare = re.sub(r"(?m)^#.*\n", "", document).strip()
        if bare:
            yield json.loads(bare) if bare.startswith("{") else yaml.load(bare, yaml.CSafeLoader)


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Yield where two values differ, as `path: left | right`; lists are compared by position."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from differences(left.get(key), right.get(key), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif left != right:
        yield f"{path.removeprefix('.')}: {left!r} | {right!r}"
