"""The table of all rules, asked of the pure rules; and no sentence of the rules is without a case."""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.admission.changes import changed
from tests.admission.dict_view import DictView
from tests.admission.refused_templates import BAD
from tests.admission.table import CASES, DEFAULTS, RESOURCE_GROUPS, Case
from tests.admission.table.case import ABSENT, ALWAYS_THERE, FLAGS, NEVER_ASKED, PLAIN, at
from tests.admission.template_parts import template_of
from volcano_py.admission import contract, pod_rules
from volcano_py.admission.contract import CREATE, DELETE, UPDATE, Refusal, Request, Verdict
from volcano_py.admission.pod_rules.template import template_flaws
from volcano_py.admission.pods import resource_groups
from volcano_py.admission.rules import RULES

PACKAGE = Path(contract.__file__).parent
JUDGES = (
    "cronjobs",
    "hypernodes",
    "jobflows",
    "jobs",
    "podgroups",
    "pods",
    "policies",
    "queues",
    "queue_state",
    "reading",
)
SENTENCES = {"Refusal", "invalid", "not_open", "tier_given_twice", "wrong_operation", "cpu_flaws"}
"""What gives a sentence where it is called."""

POD_SENTENCES = {
    *("required", "invalid", "forbidden", "not_supported", "duplicate", "not_found", "each", "one_of", "within"),
    *("not_negative", "Refusal"),
}
FRAGMENTS = (
    "must be <= capability",
    "must have the same length",
    "'minAvailable' is greater than 'replicas' in task",
    "must not specify event and exitCode simultaneously",
    "invalid policy action",
    "either VolumeClaim or VolumeClaimName must be specified",
    "job updates may not add or remove tasks",
    "job updates may not change fields other than",
    "vertex is not defined",
    "must be a positive integer",
    "percentage which between 1% ~ 99%",
    "not allow configure multiple annotations",
)
"""What tools look for in messages."""


def judged(case: Case, good: bool = False) -> Verdict:
    """Ask the pure rule about the object that is refused, or about its counterpart."""
    queues = case.queues_around_the_good_one if good else case.queues
    changes = case.good if good else case.bad
    found = {queue["metadata"]["name"]: queue for queue in (*ALWAYS_THERE, *queues)}
    old: Mapping[str, Any] = case.old if case.operation == UPDATE else {}
    new = changed(old or PLAIN[case.kind], changes)
    if case.operation == UPDATE and case.kind == "queues":
        found[old["metadata"]["name"]] = old
    name = new["metadata"]["name"]
    if case.operation == DELETE:
        old, new = found.get(name, {}), {}
    return RULES[case.path](Request(case.operation, "ns", name, new, old), DictView(found.values()), FLAGS)


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_refused(name: str) -> None:
    case = CASES[name]
    verdict = judged(case)

    assert not verdict.allowed
    assert case.says in verdict.message
    (said, *_) = [one for one in verdict.refusals if case.says in one.message]
    assert said.field == case.at
    assert said.hint or not case.at or case.unreachable == ABSENT


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.unreachable != NEVER_ASKED])
def test_its_counterpart_is_taken(name: str) -> None:
    assert judged(CASES[name], good=True).message == ""


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_what_tools_look_for_is_in_a_case(fragment: str) -> None:
    assert any(fragment in case.says for case in CASES.values())


def judged_too_deep() -> Verdict:
    """Ask about a change whose template holds lists in lists; API servers take out what no field is for."""
    inner: Any = None
    for _ in range(600):
        inner = [inner]
    deep = changed(PLAIN["jobs"], {})
    deep["spec"]["tasks"][0]["template"]["spec"]["strange"] = inner
    return RULES["/jobs/validate"](Request(UPDATE, "ns", "j", deep, PLAIN["jobs"]), DictView(ALWAYS_THERE), FLAGS)


def test_what_is_nested_too_deeply_is_refused() -> None:
    assert judged_too_deep().message == "the object is nested too deeply"


# Mutation


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_filled_in(name: str) -> None:
    default = DEFAULTS[name]
    options = contract.Options(queue_gate=True, resource_groups=resource_groups(yaml.safe_load(RESOURCE_GROUPS)))
    view = DictView(ALWAYS_THERE, {"ns": default.namespace})

    verdict = RULES[default.path](Request(CREATE, "ns", "a", default.object), view, options)

    made = patched(default.object, verdict.patch)
    assert {path: at(made, path) for path in default.gets} == default.gets


def patched(obj: Mapping[str, Any], patch: tuple[Any, ...]) -> dict[str, Any]:
    """Apply additions and replacements of fields, as a JSON Patch has them."""
    steps = {one["path"].removeprefix("/").replace("~1", "\0"): one["value"] for one in patch}
    assert {one["op"] for one in patch} <= {"add", "replace"}
    made = changed(obj, {})
    for path, value in steps.items():
        *way, last = (step.replace("\0", "/") for step in path.split("/"))
        owner: Any = made
        for step in way:
            owner = owner[step]
        owner[last] = value
    return made


# Nothing is left out


def test_no_sentence_of_the_rules_is_without_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [sys.modules[f"volcano_py.admission.{name}"] for name in JUDGES]
    seen = watch(monkeypatch)
    for case in CASES.values():
        judged(case)
    judged_too_deep()

    assert [place for module in modules for place in unseen(module, SENTENCES, seen)] == []


def test_no_sentence_about_templates_is_without_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [
        sys.modules[f"{pod_rules.__name__}.{path.stem}"] for path in Path(pod_rules.__path__[0]).glob("[a-z]*.py")
    ]
    seen = watch(monkeypatch)
    for changes in BAD.values():
        template_flaws(template_of(changes), "template", pod_level_resources=True)

    assert [place for module in modules for place in unseen(module, POD_SENTENCES, seen)] == []


def watch(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """Return a set that fills with the lines on which refusals are made, and those that called them."""
    seen: set[tuple[str, int]] = set()

    class Watched(Refusal):
        def __init__(self, *values: str, **named: str) -> None:
            super().__init__(*values, **named)
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(str(PACKAGE)):
                seen.add((frame.f_code.co_filename, frame.f_lineno))
                frame = frame.f_back

    for module in list(sys.modules.values()):
        ours = module.__name__.startswith(contract.__name__.rpartition(".")[0]) and module is not contract
        if ours and getattr(module, "Refusal", None) is Refusal:
            monkeypatch.setattr(module, "Refusal", Watched)
    return seen


def unseen(module: ModuleType, calls: set[str], seen: set[tuple[str, int]]) -> Iterator[str]:
    """Yield the calls of a module that give a sentence, and that gave none."""
    assert module.__file__ is not None
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls:
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if not any((module.__file__, line) in seen for line in lines):
                yield f"{Path(module.__file__).name}:{node.lineno}: {ast.unparse(node)}"
