"""Every place that says the version of the project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_PLACES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "volcano_py/__init__.py": r'^__version__ = "(.+)"$',
    "chart/Chart.yaml": r"^(?:version|appVersion): (.+)$",
    "Dockerfile": r"docker build -t volcano-py:(\S+)",
    "README.md": r"docker build -t volcano-py:(\S+)",
    "docs/install.md": r"(?:volcano-py:|newTag: )(\d+\.\d+\.\d+)",
    "docs/migration.md": r"volcano-py:(\d+\.\d+\.\d+)",
}
_IMAGE = r"^\s*image: volcano-py:(\S+)$"


def places(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each place and the version that it says; a place that says none is an error."""
    for name, pattern in _PLACES.items():
        found = re.findall(pattern, (root / name).read_text(), re.MULTILINE)
        if not found:
            raise ValueError(f"{name} does not say a version: {pattern}")
        yield from ((name, version) for version in found)
    for file in sorted((root / "manifests").rglob("*.yaml")):
        for version in re.findall(_IMAGE, file.read_text(), re.MULTILINE):
            yield str(file.relative_to(root)), version


def project_version(root: Path) -> str:
    """Return the version of the project."""
    return next(version for name, version in places(root) if name == "pyproject.toml")


def disagreements(root: Path) -> list[str]:
    """Return one sentence for each place that says another version than pyproject.toml."""
    wanted = project_version(root)
    return [
        f"{name} says {version}, and pyproject.toml says {wanted}: write the same version in both"
        for name, version in places(root)
        if version != wanted
    ]
