"""The programs of a control plane: their versions, where to find them, and which are missing.

Two places hold programs: the folder that $KUBEBUILDER_ASSETS names (the convention of envtest: kube-apiserver, etcd,
kubectl) and a cache outside the work tree. The cache's name is a hash of everything that determines what a build
produces, so a changed go.mod never uses an old program, and two checkouts of the same commit share one. Helm has a
folder of its own beside it, so that a new version of Helm does not build the control plane again.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MODULE = Path(__file__).resolve().parent
KUBERNETES_VERSION = "v1.36.3"
KWOK_VERSION = "v0.8.0"
HELM_VERSION = "v4.3.1"
ASSETS = "KUBEBUILDER_ASSETS"

_COMPONENT = "k8s.io/component-base/version"
_MAJOR, _MINOR = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
# Without the stamp the server reports v0.0.0, and clients choose their features by that version.
BUILD_FLAGS = (
    "-trimpath",
    "-ldflags",
    f"-s -w -X {_COMPONENT}.gitVersion={KUBERNETES_VERSION}"
    f" -X {_COMPONENT}.gitMajor={_MAJOR} -X {_COMPONENT}.gitMinor={_MINOR}",
)
HELM_FLAGS = ("-trimpath", "-ldflags", f"-s -w -X helm.sh/helm/v4/internal/version.version={HELM_VERSION}")


@dataclass(frozen=True)
class Program:
    """One program: its name, the Go package it is built from, and its version if it is not part of our module."""

    name: str
    package: str
    version: str = ""
    flags: tuple[str, ...] = BUILD_FLAGS


KUBE_APISERVER = Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver")
ETCD = Program("etcd", "go.etcd.io/etcd/server/v3")
KUBECTL = Program("kubectl", "k8s.io/kubernetes/cmd/kubectl")
KUBE_CONTROLLER_MANAGER = Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager")
KWOK = Program("kwok", "sigs.k8s.io/kwok/cmd/kwok", version=KWOK_VERSION)
KUBE_SCHEDULER = Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler")
HELM = Program("helm", "helm.sh/helm/v4/cmd/helm", version=HELM_VERSION, flags=HELM_FLAGS)

PROGRAMS = (KUBE_APISERVER, ETCD, KUBECTL, KUBE_CONTROLLER_MANAGER, KWOK, KUBE_SCHEDULER, HELM)
"""Everything that tests and benchmarks may start, in build order: the one whose packages others reuse is first."""


class MissingPrograms(Exception):
    """Programs of the control plane are neither in the cache nor in $KUBEBUILDER_ASSETS."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(
            f"not built yet: {', '.join(names)}; run `python -m tests.controlplane.build`,"
            f" or name a folder that holds them in {ASSETS}"
        )


@dataclass(frozen=True)
class Binaries:
    """The path of each program; programs that were not requested or not found are absent."""

    paths: Mapping[str, Path]

    def __getitem__(self, name: str) -> Path:
        """Return the path of a program; MissingPrograms says how to get it."""
        try:
            return self.paths[name]
        except KeyError:
            raise MissingPrograms([name]) from None

    def missing(self, programs: Iterable[Program] = PROGRAMS) -> list[Program]:
        """Return those of the programs that were found nowhere."""
        return [program for program in programs if program.name not in self.paths]

    def require(self, names: Iterable[str]) -> None:
        """Raise MissingPrograms if one of the names was not found."""
        absent = [name for name in names if name not in self.paths]
        if absent:
            raise MissingPrograms(absent)


def cache_folder(program: Program | None = None) -> Path:
    """Return the cache folder for a program, or for the control plane that is built from the current module."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "volcano-py"
    machine = (sys.platform, platform.machine())
    if program is HELM:
        return base / "helm" / _short_hash("\0".join((HELM_VERSION, *HELM_FLAGS, *machine)).encode())
    files = [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    return base / "controlplane" / _short_hash(*files, "\0".join((KWOK_VERSION, *BUILD_FLAGS, *machine)).encode())


def _short_hash(*decides: bytes) -> str:
    return hashlib.sha256(b"".join(decides)).hexdigest()[:16]


def find_binaries() -> Binaries:
    """Look for every program: in $KUBEBUILDER_ASSETS first, then in the cache; nothing is built."""
    assets = [Path(folder)] if (folder := os.environ.get(ASSETS)) else []
    found: dict[str, Path] = {}
    for program in PROGRAMS:
        for place in (*assets, cache_folder(program)):
            path = place / program.name
            if os.access(path, os.X_OK) and path.is_file():
                found[program.name] = path
                break
    return Binaries(found)


if __name__ == "__main__":  # for PATH
    print(":".join(dict.fromkeys(str(path.parent) for path in find_binaries().paths.values())))
