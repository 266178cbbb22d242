"""The real kube-scheduler as a judge of pods: it reads everything, may change nothing, and logs its judgements.

The ``schedulerName`` of a pod selects how it is judged:

    score     every filter that Volcano wraps, and every scorer with the weight 1
    most      the same filters; MostAllocated alone
    refuse    the same filters and one that every node fails: the message counts each node's first refusal
    spread    PodTopologySpread and the one that every node fails
    affinity  InterPodAffinity and the one that every node fails

With `CLAIM_PROFILES` it judges claims: ``claims`` has every volume filter, and each of `CLAIM_WAYS` one of them and the
one that every node fails.

It may not bind, so every pod is judged on the same cluster. A pod that found a node is not tried again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
import yaml

from tests.controlplane.servers import SCHEDULER
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane

FILTERS: Final = (
    *("NodeUnschedulable", "TaintToleration", "NodePorts", "NodeResourcesFit"),
    *("PodTopologySpread", "InterPodAffinity", "NodeAffinity"),
)
SCORERS: Final = (
    *("NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodeAffinity", "TaintToleration"),
    *("InterPodAffinity", "PodTopologySpread", "ImageLocality"),
)
REFUSING: Final = {
    "refuse": FILTERS,
    "spread": ("PodTopologySpread", "NodeAffinity"),
    "affinity": ("InterPodAffinity", "NodeAffinity"),
}
WAYS: Final = ("score", "most", *REFUSING)
CLAIM_WAYS: Final = {
    "restrictions": "VolumeRestrictions",
    "limits": "NodeVolumeLimits",
    "binding": "VolumeBinding",
    "zone": "VolumeZone",
}
NOBODY: Final = "node(s) didn't match scheduler-enforced node affinity"
GROUP: Final = "kubescheduler.config.k8s.io/v1"

T = TypeVar("T")

_ACCOUNT: Final = "judge"
_SCORED, _CHOSEN = "Plugin scored node for pod", "Attempting to bind pod to node"
_NO_FIT, _FAILED = "Unable to schedule pod; no fit; waiting", "Error scheduling pod; retrying"
_LINE: Final = re.compile(rf'^[IEW]\d{{4}} .*?\] "({"|".join((_SCORED, _CHOSEN, _NO_FIT, _FAILED))})"(.*)$')
_VALUE: Final = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S*)')
_NO_RETRY: Final = 3600


@dataclass
class Judgement:
    """The judgement of one pod."""

    scores: dict[str, dict[str, int]] = field(default_factory=dict)  # scorer -> node -> score
    node: str = ""  # the node that it would have chosen
    error: str = ""
    done: bool = False

    @property
    def feasible(self) -> set[str]:
        """The nodes that pass every filter; if there is only one, no scorer runs."""
        return set(next(iter(self.scores.values()))) if self.scores else {self.node} - {""}

    @property
    def refusals(self) -> Counter[str]:
        """The number of nodes per reason; an error without such counts is its own reason."""
        counts = re.fullmatch(r"0/\d+ nodes are available: (.*)\.", self.error)
        if counts is None or not counts[1][0].isdigit():  # an error, or one reason for all nodes
            return Counter([self.error])
        parts = (part.partition(" ") for part in counts[1].split(", "))
        return Counter({text: int(number) for number, _, text in parts})


class Judge:
    """A running kube-scheduler. It knows the objects at its start, and pods created since."""

    def __init__(self, plane: ControlPlane, profiles: Sequence[dict[str, Any]] | None = None) -> None:
        """``profiles`` are those of the documentation above, or `CLAIM_PROFILES`."""
        self._profiles = PROFILES if profiles is None else profiles
        self._plane = plane
        self._log = plane.processes.log(SCHEDULER)
        self._judgements: dict[str, Judgement] = {}
        self._read, self._rest = 0, b""

    def __enter__(self) -> Judge:
        """Start it."""
        processes = self._plane.processes
        self._log.unlink(missing_ok=True)
        config = processes.folder / "judge.yaml"
        config.write_text(yaml.safe_dump(self._config()))
        # A result cached for equal pods, or a second try, would answer another question.
        gates = "--feature-gates=OpportunisticBatching=false,SchedulerPopFromBackoffQ=false"
        verbosity = ("--v=3", "--vmodule=schedule_one=10")
        program = self._plane.binaries[SCHEDULER]
        processes.start(SCHEDULER, [program, f"--config={config}", "--secure-port=0", gates, *verbosity])
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._plane.processes.kill(SCHEDULER)

    def judgement(self, pod: str) -> Judgement:
        """Wait for the judgement of a pod, ``namespace/name``."""

        def done() -> Judgement | None:
            self._plane.processes.check_alive(SCHEDULER)
            self._take_in()
            found = self._judgements.get(pod)
            return found if found is not None and found.done else None

        found = wait_until(f"kube-scheduler's judgement of {pod}", done, 20.0, every=0.004)
        assert found is not None
        return found

    def _take_in(self) -> None:
        with self._log.open("rb") as log:
            log.seek(self._read)
            more = log.read()
        self._read += len(more)
        *lines, self._rest = (self._rest + more).split(b"\n")
        for line in lines:
            said = _LINE.match(line.decode())
            if said is not None:
                self._note(said[1], {key: _text(value) for key, value in _VALUE.findall(said[2])})

    def _note(self, what: str, values: dict[str, str]) -> None:
        found = self._judgements.setdefault(values["pod"], Judgement())
        if what == _SCORED:
            found.scores.setdefault(values["plugin"], {})[values["node"]] = int(values["score"])
        elif what == _CHOSEN:
            found.node = values["node"]
        else:
            found.done = True
            found.error = "" if found.node else values["err"]  # failed binds are expected

    def _config(self) -> dict[str, Any]:
        kubeconfig = self._plane.cluster.kubeconfig_for("kube-system", _ACCOUNT)
        return {
            "apiVersion": GROUP,
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": 100,
            "podInitialBackoffSeconds": _NO_RETRY,
            "podMaxBackoffSeconds": _NO_RETRY,
            "profiles": list(self._profiles),
        }


def typed(wire: Mapping[str, Any], kind: type[T]) -> T:
    """Return an object as this scheduler reads it: from JSON, so that what it does not decode stays JSON."""
    return msgspec.json.decode(msgspec.json.encode(wire), type=kind)


def may_only_look(plane: ControlPlane) -> None:
    """Create the judge's ServiceAccount, which may only read."""
    rbac, name = "/apis/rbac.authorization.k8s.io/v1", {"metadata": {"name": _ACCOUNT}}
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    subject = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _ACCOUNT}
    plane.request("POST", "/api/v1/namespaces/kube-system/serviceaccounts", name)
    plane.request("POST", f"{rbac}/clusterroles", {**name, "rules": [rule]})
    plane.request("POST", f"{rbac}/clusterrolebindings", {**name, "roleRef": role, "subjects": [subject]})


def _profile(
    name: str,
    filters: tuple[str, ...],
    scorers: tuple[str, ...],
    strategy: str = "LeastAllocated",
    refuse_all: bool = False,
) -> dict[str, Any]:
    """Return a profile with Volcano's arguments: no weight for required terms of other pods, GPUs in the balance."""
    two = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    nowhere = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "nobody-has-this", "operator": "Exists"}]}]}
    added = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": nowhere}} if refuse_all else {}
    return {
        "schedulerName": name,
        "plugins": {
            "multiPoint": {"disabled": [{"name": "*"}]},
            "queueSort": _only(["PrioritySort"]),
            "bind": _only(["DefaultBinder"]),
            "preFilter": _only(each for each in filters if each not in ("NodeUnschedulable", "TaintToleration")),
            "filter": _only(filters),
            "preScore": _only(each for each in scorers if each != "ImageLocality"),
            "score": _only(scorers, weight=1),
        },
        "pluginConfig": [
            _arguments("InterPodAffinity", hardPodAffinityWeight=0),
            _arguments("NodeResourcesFit", scoringStrategy={"type": strategy, "resources": two}),
            _arguments("NodeResourcesBalancedAllocation", resources=[*two, {"name": "nvidia.com/gpu", "weight": 1}]),
            _arguments("NodeAffinity", **added),
        ],
    }


def _only(names: Iterable[str], **more: int) -> dict[str, Any]:
    return {"disabled": [{"name": "*"}], "enabled": [{"name": name, **more} for name in names]}


def _arguments(plugin: str, **values: Any) -> dict[str, Any]:
    return {"name": plugin, "args": {"apiVersion": GROUP, "kind": f"{plugin}Args", **values}}


PROFILES: Final = (
    _profile("score", FILTERS, SCORERS),
    _profile("most", FILTERS, ("NodeResourcesFit",), strategy="MostAllocated"),
    *(_profile(way, filters, (), refuse_all=True) for way, filters in REFUSING.items()),
)
CLAIM_PROFILES: Final = (
    _profile("claims", tuple(CLAIM_WAYS.values()), ("NodeResourcesFit",)),
    *(_profile(way, (plugin, "NodeAffinity"), (), refuse_all=True) for way, plugin in CLAIM_WAYS.items()),
)


def _text(value: str) -> str:
    return str(json.loads(value)) if value.startswith('"') else value
