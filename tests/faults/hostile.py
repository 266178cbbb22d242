"""Makes hostile objects: JSON that an API server may hold and that no code of ours expects. Seeded and pure.

The wire types say which fields our programs read, so every field that they read gets odd values sooner or later. Some
values have a type that the API server would refuse, as an older version of it may have stored them.
"""

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.api import keys

Obj = dict[str, Any]
SOON: Final = 0.3  # how often a field that may be left out is there
WRONG: Final = 0.02  # how often a value has a type that the API server would refuse

TEXTS: Final = (
    *(
        "",
        " ",
        "a",
        "default",
        "root",
        "n1",
        "g1",
        "Open",
        "0",
        "-1",
        "1",
        "5",
        "50%",
        "101%",
        "-5%",
        "1e400",
        "nan",
        "inf",
    ),
    *(
        "99999999999999999999",
        "true",
        "yes",
        "null",
        "{}",
        "[]",
        "[1",
        '{"a": {"b": "1o0"}}',
        '{"a": null}',
        "é\u0000ß",
    ),
    *(
        "\U0001f4a9",
        "\u202e",
        "a" * 5000,
        "a/b/c/d",
        "/",
        ",",
        "a:b;c",
        "*",
        "(",
        "[a-",
        "(a+)+$",
        "%s%n{0}",
        "10s",
        "-10s",
    ),
    *(
        "1h99999999999h",
        "0.0000000001ns",
        "2026-11-27",
        "1.1.1.1",
        "::1",
        "http://",
        "\n",
        "..",
        "a=b,c!=d",
        "!",
        "1/0",
    ),
    *("00:00-24:00", "25:61-99:99", "Mon", "* * * * *", "@every 1s", "60 24 32 13 8", "rack-1,rack-2;;|"),
)
NAMES: Final = (
    "",
    "default",
    "root",
    "n1",
    "n2",
    "g1",
    "odd-0",
    "odd-1",
    "odd-2",
    "volcano-global-default-queue",
    "nowhere",
)
QUANTITIES: Final = (
    *("0", "1", "-1", "100m", "1n", "-1n", "0.0000000001", "9e99", "-9e99", "1e-99", "1Ei", "9223372036854775807"),
    *(
        "1e1000000",
        "123456789012345678901234567890",
        "0.1u",
        "1.",
        ".5",
        "+1",
        "1e3",
        "1E",
        "1E3",
        "1 Gi",
        "1o0",
        "",
        "٣",
    ),
    *(0, 1, -1, 2**63, 2**64, 10**30, 0.1, 1e308, -1e-308, 1e19),
)
NUMBERS: Final = (0, 1, -1, 2, 10, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**30)
FRACTIONS: Final = (0.0, -1.5, 1e308, -1e308, 5e-324, 0.1)
TIMES: Final = (
    *("2026-11-27T19:00:00Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    *("2026-11-27T19:00:00.123456789Z", "2026-11-27T19:00:00.000000001+23:59", "2026-11-27T19:00:00-23:59"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-12-31T23:59:59.999999Z"),
)
RESOURCES: Final = (
    *(
        keys.CPU,
        keys.MEMORY,
        keys.PODS,
        keys.EPHEMERAL_STORAGE,
        "nvidia.com/gpu",
        "hugepages-2Mi",
        "hugepages-",
        "a/b/c",
    ),
    *("attachable-volumes-x", "count/pods", "requests.cpu", "volcano.sh/gpu-memory", "example.com/é", "/", "x" * 300),
)
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "in"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule", ""),
    "phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Inqueue", "Bound", "Lost", "Completed", ""),
    "state": ("Open", "Closed", "Closing", "Unknown", ""),
    "schedulerName": (keys.SCHEDULER_NAME, keys.SCHEDULER_NAME, "default-scheduler", ""),
    "restartPolicy": ("Always", "Never", "OnFailure", ""),
    "status": ("True", "False", "Unknown", ""),
    "type": ("PodScheduled", "Ready", "Unschedulable", "InternalIP", ""),
    "kind": ("Job", "ReplicaSet", "StatefulSet", "PodGroup", "Node", ""),
    "topologyKey": ("kubernetes.io/hostname", "zone", ""),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway", ""),
    "mode": ("hard", "soft", ""),
    "action": (
        "AbortJob",
        "RestartJob",
        "TerminateJob",
        "CompleteJob",
        "ResumeJob",
        "OpenQueue",
        "CloseQueue",
        "RestartPod",
    ),
    "event": ("*", "PodFailed", "PodEvicted", "TaskCompleted", "Unknown", "OutOfSync", "CommandIssued"),
}
NOTES: Final = tuple(
    sorted({value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str) and "/" in value})
)
"""Every annotation and label that our programs know, and some texts that are neither."""


class Hostile(NamedTuple):
    """One object: its JSON, and whether it has a value that the API server would refuse."""

    body: Obj
    wrong: bool


class Maker:
    """Makes hostile objects of wire types; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._made: Counter[str] = Counter()
        self._wrong = False
        self._odd = 1.0  # how often a value of the object under way is odd

    def of(self, wire: type, *, namespaced: bool = True) -> Hostile:
        """Return an object of a wire type."""
        number = self._made[wire.__name__]
        self._made[wire.__name__] += 1
        self._wrong = False
        self._odd = self._rng.choice((0.0, 0.02, 0.2, 1.0))
        body: Obj = self._value(msgspec.inspect.type_info(wire), "", 0)
        meta = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
        body["metadata"] = {
            **(meta or {}),
            "name": f"odd-{number}",
            "namespace": "default" if namespaced else "",
            "uid": f"uid-{wire.__name__}-{number}",
            "resourceVersion": str(number + 1),
            "managedFields": self._rng.choice((None, [], [None], [{"fieldsV1": {"f:a": {}}}], "odd", {"a": 1})),
        }
        return Hostile(body, self._wrong)

    def _value(self, info: Any, name: str, depth: int) -> Any:
        rng = self._rng
        if depth and rng.random() < WRONG * self._odd:
            self._wrong = True
            return rng.choice((None, True, "odd", 7, -0.5, [], {}, [None], {"": None}))
        match info:
            case msgspec.inspect.StructType():
                return self._struct(info, depth)
            case msgspec.inspect.DictType():
                return self._map(info, name, depth)
            case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
                return [self._value(info.item_type, name, depth + 1) for _ in range(rng.choice((0, 1, 1, 2)))]
            case msgspec.inspect.UnionType():
                kinds = [kind for kind in info.types if not isinstance(kind, msgspec.inspect.NoneType)]
                if any(isinstance(kind, msgspec.inspect.FloatType) for kind in kinds):
                    return rng.choice(QUANTITIES if self._is_odd() else ("1", "0", "100m", "1Gi", "2e3", 1))
                return self._value(rng.choice(kinds), name, depth)
            case msgspec.inspect.StrType():
                return self._text(name)
            case msgspec.inspect.IntType():
                return rng.choice(NUMBERS if self._is_odd() else NUMBERS[:5])
            case msgspec.inspect.FloatType():
                return rng.choice(FRACTIONS)
            case msgspec.inspect.BoolType():
                return rng.random() < 0.5
            case msgspec.inspect.DateTimeType():
                return rng.choice(TIMES if self._is_odd() else TIMES[:2])
            case _:
                return rng.choice((None, {}, {"a": "b"}, "odd", 7, {"data": {"cpu": "1o0"}}))

    def _struct(self, info: Any, depth: int) -> Obj:
        found: Obj = {}
        for field in info.fields:
            if field.required or depth < 2 or self._rng.random() < SOON:
                found[field.encode_name] = self._value(field.type, field.encode_name, depth + 1)
        return found

    def _map(self, info: Any, name: str, depth: int) -> Obj:
        rng = self._rng
        if name in ("annotations", "labels"):
            notes = {key: rng.choice((*TEXTS, *NAMES)) for key in rng.sample(NOTES, rng.choice((0, 1, 3, 8)))}
            return notes | ({keys.GROUP_NAME: rng.choice(NAMES)} if rng.random() < 0.5 else {})
        names = RESOURCES if isinstance(info.value_type, msgspec.inspect.UnionType) else (*NAMES, *TEXTS[:9])
        chosen = rng.sample(names, rng.choice((0, 1, 2, 4)))
        return {key: self._value(info.value_type, key, depth + 1) for key in chosen}

    def _is_odd(self) -> bool:
        return self._rng.random() < self._odd

    def _text(self, name: str) -> str:
        rng = self._rng
        words = WORDS.get(name)
        if words is not None and not (self._is_odd() and rng.random() < 0.2):
            return rng.choice(words)
        if name.lower().endswith(("name", "queue", "parent", "names", "group")):
            return rng.choice(NAMES)
        return rng.choice(TEXTS if self._is_odd() else ("a", "b", "1", "10s"))
