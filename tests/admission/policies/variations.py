"""Objects at random from a seed: good ones with one to three changes, most of them bad."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.admission.policies.asks import KINDS, Ask, Obj, an_update
from volcano_py.admission.contract import CREATE
from volcano_py.api import keys

GONE: Final = object()
Changes = Mapping[str, Any]
_NONE: Final[Changes] = {}

_TEMPLATE: Final = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}], "restartPolicy": "Never"}}
_TWICE: Final = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}
_ALL: Final = [{"event": "*", "action": "RestartJob"}]
_TWO: Final = [{"event": "PodFailed", "action": "RestartJob"}, {"event": "PodEvicted", "action": "AbortJob"}]


def _numa(*cpus: Any, field: str = "requests") -> Obj:
    containers = [
        {"name": f"c{number}", "image": "busybox:1", "resources": {field: {"cpu": cpu}} if cpu else {}}
        for number, cpu in enumerate(cpus)
    ]
    return {"spec": {"containers": containers, "restartPolicy": "Never"}}


def _chain(*waits: tuple[str, list[str]]) -> list[Obj]:
    return [
        {"name": name, "replicas": 1, "template": _TEMPLATE, "dependsOn": {"name": names}} if names else _task(name)
        for name, names in waits
    ]


def _task(name: str, **fields: Any) -> Obj:
    return {"name": name, "replicas": 1, "template": _TEMPLATE, **fields}


def _claim(**fields: Any) -> Obj:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **fields}


GOOD: Final[Mapping[str, Obj]] = {
    "jobs": {
        "queue": "default",
        "minAvailable": 2,
        "tasks": [
            _task("master", minAvailable=1, policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]),
            _task("worker", replicas=4, dependsOn={"name": ["master"]}),
        ],
        "policies": _TWO,
        "plugins": {"env": [], "svc": []},
        "volumes": [{"mountPath": "/data", "volumeClaimName": "data"}],
    },
    "queues": {
        "weight": 2,
        "capability": {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": 4},
        "deserved": {"cpu": "4", "memory": "8Gi"},
        "guarantee": {"resource": {"cpu": "2", "memory": "4Gi"}},
    },
    "podgroups": {"minMember": 2, "queue": "default", "minResources": {"cpu": "1"}},
    "cronjobs": {
        "schedule": "*/5 * * * *",
        "timeZone": "Europe/Berlin",
        "jobTemplate": {"spec": {"tasks": [_task("main")]}},
    },
    "jobflows": {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]},
    "hypernodes": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]},
    "pods": {
        "schedulerName": "volcano",
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "busybox:1"}],
    },
}

_POLICIES: Final[tuple[list[Obj], ...]] = (
    _ALL,
    [*_ALL, *_TWO],
    [{"event": "PodRunning", "action": "AbortJob"}],
    [{"events": ["OutOfSync", "PodFailed"], "action": "EnqueueJob"}],
    [{"event": "PodFailed", "action": "RestartJob", "exitCode": 3}],
    [{"event": "PodFailed", "action": "RestartJob", "exitCode": 0, "timeout": "5"}],
    [{"action": "RestartJob"}],
    [{"event": "PodFailed"}],
    [{"event": "PodFailed", "action": 'Say"hello"'}],
    [{"events": ["PodFailed", "PodFailed"], "event": "PodFailed", "action": "RestartJob"}],
    [*_TWO, {"events": ["PodFailed", "PodEvicted", "Unknown"], "action": "AbortJob"}],
    [{"exitCode": 0, "action": "RestartJob"}, {"exitCode": 3, "action": "x"}, {"exitCode": 3}, {"exitCode": 4}],
    [{"event": "PodPending", "action": "AbortJob", "timeout": "1h30m"}, {"exitCode": -1, "timeout": "soon"}],
    [{"events": ["*", "PodFailed"], "action": "AbortJob"}],
    [{"event": "PodFailed", "exitCode": 3, "action": "AbortJob"}, {"event": "PodFailed", "action": "AbortJob"}],
    [*_TWO, {"events": ["PodFailed", "Unknown", "PodFailed"], "action": "AbortJob"}],
    [],
)
_PLUGINS: Final[tuple[Obj, ...]] = (
    {"mpi": []},
    {"mpi": None},
    {"mpi": ["--master=worker", "--port=5000"]},
    {"mpi": ["--master", "worker"]},
    {"mpi": ["--master=nobody", "-master=worker"]},
    {"mpi": ["--master"]},
    {"mpi": ["-master", "nobody"]},
    {"mpi": ["--master=nobody"], "zebra": [], "ape": ["-x"], "": []},
    {"tensorflow": [], "svc": ["--x"]},
    {"ray": []},
    {"mpi": ["--master=worker"], "ssh": []},
)
_TASKS: Final[tuple[list[Obj], ...]] = (
    [_task("a"), _task("a"), _task("a", replicas=0)],
    [{"replicas": 3, "template": _TEMPLATE}, {"name": "b", "template": _TEMPLATE}],
    [_task("w" * 60)],
    [_task("numa", topologyPolicy="restricted", template=_numa("2", "1500m", None))],
    [_task("numa", topologyPolicy="single-numa-node", template=_numa(3, "0", field="limits"))],
    [_task("numa", topologyPolicy="none", template=_numa("1500m"))],
    [_task("net", template={"spec": {**_TEMPLATE["spec"], "hostNetwork": True}})],
    [_task("net", template={"spec": {**_TEMPLATE["spec"], "hostNetwork": True, "dnsPolicy": "Default"}})],
    _chain(("a", ["b"]), ("b", ["c"]), ("c", ["a"])),
    _chain(("a", ["a"]), ("b", [])),
    _chain(("a", ["nobody"]), ("b", [])),
    _chain(("a", []), ("b", ["a"]), ("c", ["a", "b"]), ("d", ["c", "b"]), ("e", ["d"])),
    _chain(*((f"t{number}", [f"t{(number + 1) % 25}"]) for number in range(25))),
    _chain(*((f"t{number}", [f"t{number + 1}"] if number < 31 else []) for number in range(32))),
    [],
)
_PARTITIONS: Final[tuple[Obj, ...]] = (
    {"totalPartitions": 2, "partitionSize": 2},
    {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
    {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 1, "networkTopology": _TWICE},
    {"totalPartitions": 0, "partitionSize": 2},
)
_VOLUMES: Final[tuple[list[Obj], ...]] = (
    [{"mountPath": "/a", "volumeClaim": _claim()}, {"mountPath": "/a", "volumeClaimName": "b"}],
    [{"mountPath": "/a", "volumeClaim": _claim(), "volumeClaimName": "a"}],
    [{"mountPath": "/a"}, {"mountPath": "/b", "volumeClaimName": ""}],
    [{"mountPath": "/a", "volumeClaimName": "No_name"}, {"mountPath": "/c", "volumeClaimName": "a.b-c"}],
    [{"mountPath": ""}],
    [],
)
_AMOUNTS: Final = ("1", "2", "3500m", "-1", "0", 5, "1.5", "100Gi", "1e3", "20", "0.0001")
_RESOURCES: Final = ("cpu", "memory", "nvidia.com/gpu", "pods", "example.com/a", "requests.example.com/b", "aaa")
_SCHEDULES: Final = (
    *[
        "",
        " ",
        "TZ=UTC 0 20 * * *",
        "* * * *",
        "0 0 1 jan,JUL ?",
        "*/0 * * * *",
        "60 * * * *",
        "5-1 * * * *",
        "@hourly",
    ],
    *["@every 1h30m", "@every", "@every 5", "@sometimes", "30 6-16/4 * * 1-5", "0 0 31 12 sun-sat", "0 0 * * 7"],
    *[
        "a * * * *",
        "1,,2 * * * *",
        ", * * * *",
        "1/2/3 * * * *",
        "*/5-10 * * * *",
        "-1 * * * *",
        "0 24 * * *",
        "10-5/2 * * * *",
        "5-30/2 * * * *",
    ],
    *["0 0 0 * *", "* * * feb-jan *", "* * * * sun,mon", "50/5 * * * *", "1-2-3 * * * *", "jan * * * *", "0\t0 * * *"],
)
_ZONES: Final = [
    "",
    "UTC",
    "Local",
    "LOCAL",
    "Pacific/Honolulu",
    "UTC!",
    "Amerrica/New_York",
    "Etc/GMT+5",
    "-a",
    "../a",
]
_ZONES_LONG: Final = ["America/Argentina/ComodRivadavia", "Abcdefghijklmnop/B", "Europe//Berlin"]
_FLOWS: Final[tuple[list[Obj], ...]] = (
    [],
    [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["z", "a", "y", "z"]}}, {"name": "c"}],
    [{"name": "a", "dependsOn": {"targets": ["b"]}}, {"name": "b", "dependsOn": {"targets": ["a"]}}],
    [{"name": "a", "dependsOn": {"targets": ["a"]}}, {"name": "a"}],
    [{"name": "a"}, {"name": "a", "dependsOn": {"targets": ["a"]}}],
    [{"name": f"s{number}", "dependsOn": {"targets": [f"s{(number + 1) % 32}"]}} for number in range(32)],
    [{"name": f"s{n}", "dependsOn": {"targets": [f"s{m}" for m in range(n)]}} for n in range(32)],
)
_MEMBERS: Final[tuple[list[Obj], ...]] = tuple(
    [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}]
    for pattern in ("node-[0-9]+", "a(b", "[", "(?i)n.*", "(?=a)", "x{1001}", r"\d+\b", "*")
)
_BUDGETS: Final = ["1", "0", "-3", "+4", "30%", "0%", "100%", "99%", "many", "", "%", "1.5", "9" * 30, 'a"b', "5%%"]

_RICH: Final = {
    "tasks/1/template": {
        "metadata": {"labels": {"app": "a"}, "annotations": {"note": "b"}},
        "spec": {
            "nodeSelector": {"zone": "a"},
            "containers": [
                {
                    "name": "main",
                    "image": "busybox:1",
                    "env": [{"name": "A", "value": "1"}],
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
                    "tty": False,
                }
            ],
            "hostNetwork": False,
            "initContainers": [{"name": "first", "image": "busybox:1"}],
        },
    },
    "volumes": [{"mountPath": "/data", "volumeClaim": _claim()}, {"mountPath": "/old", "volumeClaimName": "old"}],
    "policies": [{"event": "PodPending", "action": "AbortJob", "timeout": "90m"}],
    "runningEstimate": "2h",
}
"""A job whose template has something to change."""
_OF_TEMPLATE: Final[Mapping[str, tuple[Any, ...]]] = {
    "tasks/1/template/metadata/labels": ({"app": "b"}, {}, GONE),
    "tasks/1/template/metadata/annotations/note": ("c", GONE),
    "tasks/1/template/metadata/finalizers": ([],),
    "tasks/1/template/spec/nodeSelector": ({"zone": "b"}, GONE),
    "tasks/1/template/spec/tolerations": ([], [{"operator": "Exists"}]),
    "tasks/1/template/spec/securityContext": ({},),
    "tasks/1/template/spec/hostNetwork": (True, GONE),
    "tasks/1/template/spec/dnsPolicy": ("ClusterFirstWithHostNet", GONE),
    "tasks/0/maxRetry": (0, 3, GONE),
    "maxRetry": (0, 3, GONE),
    "schedulerName": ("volcano", "other", "", GONE),
    "plugins": ({"env": []}, {"env": [], "svc": [], "pytorch": []}, {"env": [], "pytorch": []}),
    "tasks/1/template/spec/schedulerName": ("", "other"),
    "tasks/1/template/spec/containers/0/tty": (True, GONE),
    "tasks/1/template/spec/containers/0/securityContext": ({}, {"privileged": True}),
    "runningEstimate": ("2h0m0s", "120m", "121m", "9999999h", GONE),
    "policies": tuple(
        [{"event": "PodPending", "action": "AbortJob", "timeout": span}] for span in ("1h30m0s", "1.5h", "1h31m")
    ),
    "tasks/1/template/spec/containers/0/image": ("busybox:2",),
    "tasks/1/template/spec/containers/0/env": ([], GONE),
    "tasks/1/template/spec/containers/0/command": ([], ["sh"]),
    "tasks/1/template/spec/containers/0/resources/requests": ({"cpu": "1000m", "memory": "1024Mi"}, {"cpu": 1}, GONE),
    "tasks/1/template/spec/containers/0/resources/limits/cpu": ("2000m", 2, "3"),
    "tasks/1/template/spec/initContainers/0/resources": ({}, {"limits": {}}, {"limits": {"cpu": "1"}}),
    "tasks/1/template/spec/initContainers": (GONE, []),
    "volumes/0/volumeClaimName": ("made", ""),
    "volumes/0/volumeClaim/resources/requests/storage": ("1024Mi", "2Gi"),
    "volumes/0/volumeClaim/storageClassName": ("fast", ""),
    "volumes/0/volumeClaim/accessModes": (["ReadWriteMany"],),
    "volumes/1/volumeClaimName": ("new",),
    "volumes/1/mountPath": ("/new",),
}
MUTABLE: Final = ("tasks/1/minAvailable", "tasks/1/replicas", "minAvailable", "priorityClassName")
"""What may change in a job."""
CHANGES: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
    "jobs": {
        "policies": _POLICIES,
        "tasks/1/policies": _POLICIES,
        "plugins": _PLUGINS,
        "tasks": _TASKS,
        "volumes": _VOLUMES,
        "tasks/1/partitionPolicy": _PARTITIONS,
        "tasks/1/minAvailable": (0, 2, 4, 5, GONE),
        "tasks/1/replicas": (0, 1, 6, GONE, -1, "3"),
        "tasks/0/maxRetry": (0, 5, GONE),
        "tasks/0/name": ("worker", "Master", GONE, "m"),
        "minAvailable": (0, 1, 5, 6, GONE, -1),
        "maxRetry": (0, 7, GONE),
        "networkTopology": (_TWICE, {"mode": "soft"}, {"highestTierName": "a"}),
        "runningEstimate": ("1h", "-1.5s", "1 hour", "", 'x"y', "0", "5m30"),
        "queue": ("root", "default", GONE, "nowhere", ""),
        "schedulerName": ("volcano", "other", "", GONE),
        "priorityClassName": ("high",),
    },
    "queues": {
        **{
            f"{path}/{name.replace('/', '~')}": _AMOUNTS
            for path in ("capability", "deserved", "guarantee/resource")
            for name in _RESOURCES
        },
        "deserved": (GONE,),
        "guarantee": (GONE, {}),
        "weight": (GONE, 0, 7, 100_000),
        "reclaimable": (False, GONE),
        "parent": ("root", "itself", "nobody", GONE),
    },
    "podgroups": {
        "networkTopology": (_TWICE, {"highestTierAllowed": 0}, {}),
        "subGroupPolicy": (
            [{"name": "a", "networkTopology": _TWICE}, {"name": "b"}, {"networkTopology": _TWICE}],
            [{"name": "a"}],
        ),
        "queue": (GONE, "other", "default", ""),
        "minMember": (0, GONE, -1),
    },
    "cronjobs": {"schedule": tuple(_SCHEDULES), "timeZone": (*_ZONES, *_ZONES_LONG, GONE), "suspend": (True,)},
    "jobflows": {"flows": _FLOWS, "jobRetainPolicy": ("retain", "never")},
    "hypernodes": {"members": (*_MEMBERS, [*_MEMBERS[0], *_MEMBERS[1]], [], GONE), "tier": (0, -1)},
    "pods": {"schedulerName": ("volcano", "default-scheduler", GONE)},
}
UPDATES: Final[Mapping[str, tuple[Mapping[str, tuple[Any, ...]], ...]]] = {
    "jobs": (CHANGES["jobs"], {path: CHANGES["jobs"][path] for path in MUTABLE}, _OF_TEMPLATE),
    "queues": (CHANGES["queues"], {"capability/cpu": ("8000m", 8, "9"), "parent": ("root", "changing")}),
}
"""What updates change: anything, or what is interesting."""
_NAMES: Final = ("itself", "a.b", *("n" * length for length in (52, 53, 54, 55, 64)))
_HIERARCHIES: Final = (
    *[("root/a/b", "1/2/3"), ("a/b", "2/3"), ("a", "1/2"), ("a/b", "1/x"), ("a/b/c", "0/-1/0"), ("a", ""), ("", "1")],
    *[("a/b", "1e2/.5"), ("a/b", "nan/inf"), ("rooted/b", "1/+2."), ('q"/b', "1/1_0")],
)
NAMESPACES: Final[tuple[Mapping[str, str], ...]] = ({}, {}, {keys.QUEUE_NAME: "team"}, {keys.QUEUE_NAME: "default"})


def creations(plural: str, seed: int, count: int) -> Iterator[Ask]:
    """Yield questions about new objects."""
    generator = random.Random(f"{plural} {seed}")
    for number in range(count):
        obj, told = _varied(plural, generator, generator.choice((1, 1, 2, 3)), CHANGES[plural])
        annotations = generator.choice(NAMESPACES) if plural == "podgroups" else {}
        yield Ask(f"{plural} {seed}/{number}: {told}", plural, CREATE, obj, annotations=annotations)


def updates(plural: str, seed: int, count: int) -> Iterator[Ask]:
    """Yield questions about changes of good objects."""
    generator = random.Random(f"{plural} {seed} again")
    changes, base = UPDATES[plural], _RICH if plural == "jobs" else _NONE
    for number in range(count):
        old, _ = _varied(plural, generator, 0, {}, base)
        obj, told = _varied(plural, generator, generator.choice((0, 1, 1, 2)), generator.choice(changes), base)
        name = "root" if plural == "queues" and generator.random() < 0.3 else "changing"
        for one in (old, obj):
            one["metadata"]["name"] = name
        yield an_update(f"{plural} {seed}/{number}: update {told}", plural, obj, old)


def _varied(
    plural: str, generator: random.Random, count: int, changes: Mapping[str, Any], base: Changes = _NONE
) -> tuple[Obj, str]:
    """Return a good object with some changes, and which they are."""
    kind, spec = KINDS[plural], copy.deepcopy(GOOD[plural])
    for path, value in base.items():
        _set(spec, path, value)
    metadata: Obj = {"name": generator.choice(_NAMES) if generator.random() < 0.2 else "itself"}
    told: dict[str, Any] = {}
    for path in sorted(generator.sample(sorted(changes), min(count, len(changes)))):
        value = generator.choice(changes[path])
        if _set(spec, path, value):
            told[path] = "gone" if value is GONE else value
    if plural == "queues" and count and generator.random() < 0.3:
        place, weights = generator.choice(_HIERARCHIES)
        metadata["annotations"] = {keys.HIERARCHY: place, keys.HIERARCHY_WEIGHTS: weights}
    if plural == "pods":
        given = generator.sample([keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE], generator.choice((0, 1, 1, 2)))
        metadata["annotations"] = {key: generator.choice(_BUDGETS) for key in given}
    obj = {"apiVersion": kind.group_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
    return obj, f"{metadata} {told}"


def _set(spec: Obj, path: str, value: Any) -> bool:
    """Change a field; say whether its owner is there."""
    *way, last = path.split("/")
    owner: Any = spec
    for step in way:
        if isinstance(owner, list):
            if int(step) >= len(owner):
                return False
            owner = owner[int(step)]
        else:
            owner = owner.setdefault(step, {})
    last = last.replace("~", "/")
    if value is GONE:
        owner.pop(last, None)
    else:
        owner[last] = copy.deepcopy(value)
    return True
