"""Garbage that looks like objects: every rule answers, and what it fills in can be written.

The review of a mutation comes before the API server has checked types, so every field may hold anything that JSON can.
"""

import copy
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.admission.changes import changed
from tests.admission.table import CASES, DEFAULTS
from tests.admission.table.case import ALWAYS_THERE, PLAIN
from volcano_py.admission.contract import CREATE, DELETE, UPDATE, Options, Request, Verdict
from volcano_py.admission.pods import resource_groups
from volcano_py.admission.reviews import answered
from volcano_py.admission.rules import RULES

Obj = Mapping[str, Any]
OBJECTS: dict[str, list[Obj]] = {kind: [plain] for kind, plain in PLAIN.items()}
for _case in CASES.values():
    OBJECTS[_case.kind] += [changed(PLAIN[_case.kind], _case.bad), changed(PLAIN[_case.kind], _case.good)]
for _default in DEFAULTS.values():
    OBJECTS[_default.kind].append(_default.object)


def nested(depth: int, inner: Any = None) -> Any:
    """Return lists and objects in one another."""
    for index in range(depth):
        inner = {"a": inner} if index % 2 else [inner]
    return inner


def words(value: Any) -> set[str]:
    """Return every name of a field, and every text."""
    if isinstance(value, Mapping):
        return {*value} | {word for item in value.values() for word in words(item)}
    if isinstance(value, list):
        return {word for item in value for word in words(item)}
    return {value} if isinstance(value, str) else set()


WORDS = sorted({word for objects in OBJECTS.values() for one in objects for word in words(one)})
ODD = (
    *(
        "",
        " ",
        "\0",
        "é" * 300,
        "x" * 70_000,
        "9" * 5000,
        "-1",
        "1e1.5",
        "1e999999999",
        "-" * 64,
        "٣",
        "ǅ",
        "\U0001f600",
    ),
    *(
        "%",
        "100%%",
        "*/0 * * * *",
        "@every",
        "@every 99999999999h",
        "(" * 500,
        "a{1000}" * 20,
        "\\p{",
        "[[:a",
        "../..",
        "/",
    ),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.sampled_from((0, -1, 1, 2**31, 2**63, -(2**63), 2**70, 10**1000))
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(ODD)
    | st.sampled_from(WORDS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
) | st.sampled_from([nested(8), nested(300), [None] * 3, {"": None}])


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every owner of a field or item, with its key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@st.composite
def broken(draw: Any, kind: str) -> dict[str, Any]:
    """Draw an object of a kind in which some fields hold something else."""
    made: dict[str, Any] = copy.deepcopy(dict(draw(st.sampled_from(OBJECTS[kind]))))
    for _ in range(draw(st.integers(0, 4))):
        if found := places(made):
            owner, key = found[draw(st.integers(0, len(found) - 1))]
            owner[key] = copy.deepcopy(draw(GARBAGE))
    return made


@dataclass
class Around:
    """Other objects, as broken as the one that is judged."""

    found: Iterable[Obj]
    annotations: Mapping[str, str] = field(default_factory=dict)
    pods: int = 0

    def queue(self, name: str) -> Obj | None:
        return next(iter(self.found), None) if name else None

    def queues(self) -> Iterable[Obj]:
        return self.found

    def children(self, name: str) -> Iterable[Obj]:
        return self.found

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        return self.annotations

    def allocated_pods(self, queue: str) -> int:
        return self.pods


@settings(max_examples=600)
@given(st.data(), st.sampled_from(sorted(RULES)), st.sampled_from([CREATE, UPDATE, DELETE]))
def test_every_rule_answers(data: st.DataObject, path: str, operation: str) -> None:
    kind = path.split("/")[1]
    obj, old = data.draw(broken(kind)), data.draw(broken(kind))
    view = Around(
        data.draw(st.lists(broken("queues"), max_size=3)),
        data.draw(st.dictionaries(st.sampled_from(["scheduling.volcano.sh/queue-name"]), st.text(max_size=5))),
        data.draw(st.integers(0, 2)),
    )
    groups = resource_groups({"resourceGroups": data.draw(GARBAGE)})
    options = Options(queue_gate=True, check_allocated_pods=True, resource_groups=groups)

    verdict = RULES[path](Request(operation, "ns", data.draw(st.sampled_from(ODD)), obj, old), view, options)

    assert isinstance(verdict, Verdict)
    assert msgspec.json.decode(answered("u", verdict))["response"]["allowed"] == verdict.allowed
    if operation == CREATE:
        patched(obj, verdict.patch)


def patched(obj: Obj, patch: Iterable[Obj]) -> Any:
    """Apply a JSON Patch as strictly as an API server: what is written to is there."""
    made = json.loads(json.dumps(obj))
    for one in patch:
        *way, last = (step.replace("~1", "/").replace("~0", "~") for step in one["path"].split("/")[1:])
        owner = made
        for step in way:
            owner = owner[step]
        assert isinstance(owner, dict), one["path"]
        assert one["op"] == "add" or (one["op"] == "replace" and last in owner)
        owner[last] = one["value"]
    return made


@pytest.mark.parametrize("depth", [400, 900])
@pytest.mark.parametrize("path", RULES)
def test_what_is_nested_deeply_gets_an_answer(path: str, depth: int) -> None:
    whole = OBJECTS[path.split("/")[1]][0]
    deep = nested(depth)
    for number in range(len(places(whole))):
        strange = copy.deepcopy(dict(whole))
        owner, key = places(strange)[number]
        owner[key] = deep
        for operation, old in ((CREATE, {}), (UPDATE, whole), (UPDATE, strange)):
            verdict = RULES[path](Request(operation, "ns", "a", strange, old), Around(()), Options(queue_gate=True))
            assert isinstance(verdict, Verdict)


@pytest.mark.parametrize("kind", ["jobs", "podgroups", "pods", "jobflows", "cronjobs"])
def test_an_object_whose_name_the_api_server_makes(kind: str) -> None:
    """Webhooks see the generated name; should one see none, it answers."""
    unnamed = changed(PLAIN[kind], {"metadata": {"generateName": "made-"}})
    for path in RULES:
        if path.split("/")[1] == kind:
            assert isinstance(RULES[path](Request(CREATE, "ns", "", unnamed), Around(ALWAYS_THERE), Options()), Verdict)


def test_a_thousand_tasks_are_judged_soon() -> None:
    job = changed(PLAIN["jobs"], {})
    (task,) = job["spec"]["tasks"]
    job["spec"]["tasks"] = [
        {**task, "name": f"t{index}", "dependsOn": {"name": [f"t{index - 1}"]} if index else {"name": []}}
        for index in range(1000)
    ]
    queue = Around([ALWAYS_THERE[1]])
    queue.children = lambda name: ()  # type: ignore[method-assign]
    start = time.process_time()

    filled = patched(job, RULES["/jobs/mutate"](Request(CREATE, "ns", "j", job), queue, Options()).patch)
    verdict = RULES["/jobs/validate"](Request(CREATE, "ns", "j", filled), queue, Options())
    assert verdict.message == ""
    assert RULES["/jobs/validate"](Request(UPDATE, "ns", "j", filled, filled), queue, Options()).message == ""
    assert time.process_time() - start < 5.0
