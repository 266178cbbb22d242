"""The programs of a control plane: their versions, where to find them, and which are missing.

Two places hold programs: the folder that $KUBEBUILDER_ASSETS names (the convention of envtest: kube-apiserver, etcd,
kubectl) and a cache outside the work tree. The cache's name is a hash of everything that determines what a build
produces, so a changed go.mod never uses an old program, and two checkouts of the same commit share one.
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


@dataclass(frozen=True)
class Program:
    """One program: its name, the Go package it is built from, and its version if it is not part of our module."""

    name: str
    package: str
    version: str = ""


KUBE_APISERVER = Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver")
ETCD = Program("etcd", "go.etcd.io/etcd/server/v3")
KUBECTL = Program("kubectl", "k8s.io/kubernetes/cmd/kubectl")
KUBE_CONTROLLER_MANAGER = Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager")
KWOK = Program("kwok", "sigs.k8s.io/kwok/cmd/kwok", version=KWOK_VERSION)
KUBE_SCHEDULER = Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler")

PROGRAMS = (KUBE_APISERVER, ETCD, KUBECTL, KUBE_CONTROLLER_MANAGER, KWOK, KUBE_SCHEDULER)
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


def cache_folder() -> Path:
    """Return the cache folder for programs built from the current module."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    decides = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        decides.update((MODULE / name).read_bytes())
    decides.update("\0".join((KWOK_VERSION, *BUILD_FLAGS, sys.platform, platform.machine())).encode())
    return base / "volcano-py" / "controlplane" / decides.hexdigest()[:16]


def find_binaries() -> Binaries:
    """Look for every program: in $KUBEBUILDER_ASSETS first, then in the cache; nothing is built."""
    folders = [Path(assets)] if (assets := os.environ.get(ASSETS)) else []
    folders.append(cache_folder())
    found: dict[str, Path] = {}
    for program in PROGRAMS:
        for folder in folders:
            path = folder / program.name
            if os.access(path, os.X_OK) and path.is_file():
                found[program.name] = path
                break
    return Binaries(found)
