"""The admission policies on the real API server say what the rules of the webhooks say, but for listed reasons.

Every question goes to the API server three times: without policies and with the defaults of the rules, with the
policies that fill in defaults, and with all policies.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.admission.policies.asks import KINDS, OPEN, Ask, Obj, asks_of_rows
from tests.admission.policies.reasons import (
    DEFINITION,
    NOT_SAID,
    comparable,
    in_own_words,
    reason_of,
    reason_of_definition,
    said,
)
from tests.admission.policies.variations import GOOD, creations, updates
from tests.conformance.conftest import OWN_ROWS
from tests.conformance.row_files import Row, read_rows
from tests.e2e.control_plane import ControlPlane
from tests.e2e.policies import MUTATING, VALIDATING, WORK, Answer, Policies, objects
from tests.e2e.webhooks import Webhooks
from volcano_py.admission.contract import CREATE, DELETE, UPDATE, Verdict
from volcano_py.api import keys

OURS = {row.id for row in read_rows(OWN_ROWS)}
NOBODY = "no API server could be asked"
_CREATE = "jobs_validate/TestValidateJobCreate"
_QUEUES = "queues_validate/TestAdmitQueues"
_ANCESTOR = "queues_validate/TestValidateChildAgainstAncestorForCapability"
_CHILDREN = "queues_validate/TestValidateChildrenConstraintsForCapability"
_HIERARCHY = "jobs_validate/TestValidateHierarchyCreate"
OTHERWISE: dict[str, tuple[str, ...]] = {
    "definition: numbers have limits": (f"{_CREATE}/8", f"{_CREATE}/25"),
    "definition: events are a closed set": (f"{_CREATE}/11",),
    "definition: a field is required": (f"{_CREATE}/16",),
    "definition: names, queues, paths have a form": (f"{_CREATE}/20", f"{_HIERARCHY}/1", f"{_HIERARCHY}/2"),
    "a pod template is judged when its pods are created": (
        f"{_CREATE}/40",
        f"{_CREATE}/42",
        "jobs_validate/TestTopoSort/0",
    ),
    "the queue of work is another object": (
        "podgroups_validate/TestValidatePodGroup/1",
        "podgroups_validate/TestValidatePodGroup/3",
    ),
    "the relatives of a queue are other objects": (
        "queues_validate/TestValidateQueueDepthDynamic/2",
        *(f"{_ANCESTOR}/{number}" for number in (0, 1, 2, 5)),
        *(f"{_CHILDREN}/{number}" for number in (0, 5)),
    ),
    "the status of a queue is dropped before anybody judges it": (f"{_QUEUES}/3", f"{_QUEUES}/6"),
    NOBODY: ("pods_mutate/TestMutatePods/1", f"{_QUEUES}/11"),
}
"""Rows by the reason why an API server with policies says something else than the rules."""
SEEDS = (1, 2)
RANDOM = {"jobs": 150, "queues": 100, "podgroups": 30, "cronjobs": 60, "jobflows": 15, "hypernodes": 20, "pods": 40}
CHANGED = {"jobs": 120, "queues": 50}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its three answers."""

    ask: Ask
    plain: Answer
    filled: Answer
    judged: Answer

    @property
    def verdict(self) -> Verdict:
        """What the rule says about the object as it would be stored; only if its definition takes it."""
        return self.ask.verdict(self.plain.obj, self.plain.old)


@pytest.fixture(scope="module")
def policies(control_plane: ControlPlane, installed: object) -> Iterator[Policies]:
    if not control_plane.owned:
        pytest.skip("policies of our own would decide about the objects of others")
    found = Policies(control_plane)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> list[Row]:
    folder = request.config.getoption("--rows", default=None)
    return read_rows(Path(folder) if folder else OWN_ROWS)


@pytest.fixture(scope="module")
def asked(policies: Policies, rows: list[Row]) -> dict[str, Asked]:
    asks = [ask for _, ask in asks_of_rows(rows) if ask is not None]
    for seed in SEEDS:
        asks += [ask for plural, count in RANDOM.items() for ask in creations(plural, seed, count)]
        asks += [ask for plural, count in CHANGED.items() for ask in updates(plural, seed, count)]
    plain = {ask.id: policies.answer(ask, ask.defaulted()) for ask in asks}
    policies.apply(MUTATING)
    filled = {ask.id: policies.answer(ask) for ask in asks}
    policies.apply(VALIDATING)
    judged = {ask.id: policies.answer(ask) for ask in asks}
    return {ask.id: Asked(ask, plain[ask.id], filled[ask.id], judged[ask.id]) for ask in asks}


def difference_of_defaults(one: Asked) -> str:
    """Return how the defaults of the policies differ from those of the rules, "" if they do not."""
    if one.plain.obj:
        if one.filled.obj == one.plain.obj:
            return ""
        return f"expected {json.dumps(one.plain.obj)}, got {json.dumps(one.filled.obj)} {one.filled.refusal}"
    if one.filled.refusal and not one.filled.policy and reason_of_definition(one.plain.refusal):
        return ""
    return f"{one.plain.refusal!r} there, {one.filled.policy} {one.filled.refusal!r} with policies"


def difference_of_verdicts(one: Asked) -> str:
    """Return how the verdict of the policies differs from that of the rules, "" if it does not."""
    if not one.plain.obj:
        return "" if one.judged.refusal and not one.judged.policy else f"refused there, {one.judged} with policies"
    verdict = one.verdict
    expected, found = comparable(said(verdict)), comparable(one.judged.refusal)
    if one.judged.refusal and not one.judged.policy:
        return f"refused by no policy: {found}"
    if expected == found or (found and in_own_words(verdict)):
        return ""
    return f"expected {expected!r}, got {found!r}"


def otherwise(row: Row, one: Asked | None) -> str:
    """Return why a row gets another verdict from an API server with policies than from the rules, "" if it does not."""
    if one is None:
        return NOBODY
    if one.judged.refusal and not one.judged.policy:
        return f"definition: {reason_of_definition(one.judged.refusal)}"
    verdict = one.ask.verdict(one.ask.obj, one.ask.old)
    if verdict.allowed == (not one.judged.policy):
        return ""
    return ", ".join(sorted({reason_of(refusal) or refusal.message for refusal in verdict.refusals}))


def test_policies_fill_in_what_the_rules_fill_in(asked: dict[str, Asked]) -> None:
    assert {id_: why for id_, one in asked.items() if (why := difference_of_defaults(one))} == {}


def test_policies_refuse_what_the_rules_refuse_with_the_same_sentences(asked: dict[str, Asked]) -> None:
    assert {id_: why for id_, one in asked.items() if (why := difference_of_verdicts(one))} == {}


def test_every_kind_is_refused_and_accepted_often_enough(asked: dict[str, Asked]) -> None:
    found = Counter((one.ask.plural, bool(one.judged.policy)) for one in asked.values() if one.plain.obj)

    assert set(found) == {(plural, refused) for plural in KINDS for refused in (False, True)}
    assert min(found.values()) >= 5, found


def test_rows_get_the_verdict_of_the_rules_but_for_these(asked: dict[str, Asked], rows: list[Row]) -> None:
    found = {row.id: why for row, ask in asks_of_rows(rows) if (why := otherwise(row, asked[ask.id] if ask else None))}

    assert set(found.values()) <= {*NOT_SAID, *(f"definition: {why}" for why in DEFINITION), NOBODY}
    expected = {id_: why for why, ids in OTHERWISE.items() for id_ in ids}
    assert {id_: why for id_, why in found.items() if id_ in OURS} == {
        id_: why for id_, why in expected.items() if id_ in {row.id for row in rows}
    }


def test_the_types_of_all_expressions_fit(asked: object, policies: Policies) -> None:
    names = [one["metadata"]["name"] for one in objects("ValidatingAdmissionPolicy") if "validations" in one["spec"]]

    assert len(names) == len(KINDS)
    assert {name: policies.status(name).get("typeChecking", {}) for name in names} == {name: {} for name in names}


def test_a_group_without_a_queue_stays_in_that_of_its_namespace(asked: object, policies: Policies) -> None:
    team = {keys.QUEUE_NAME: "team"}

    def written(before: str, after: Obj) -> str:
        old, obj = (big("podgroups", spec, "stays") for spec in ({"queue": before}, after))
        answer = policies.answer(Ask("", "podgroups", UPDATE, obj, old, annotations=team))
        return str(answer.obj["spec"]["queue"])

    assert [written("team", {}), written("team", {"queue": "third"}), written("other", {})] == [
        "team",
        "third",
        "default",
    ]


def test_a_field_that_does_not_exist_would_be_found(asked: object, policies: Policies) -> None:
    policy = next(one for one in objects("ValidatingAdmissionPolicy") if one["metadata"]["name"].startswith("podgroup"))
    policy = copy.deepcopy(policy)
    policy["metadata"]["name"] = "misspelt"
    policy["spec"]["validations"] = [{"expression": "object.spec.subGroupPolicies.size() > 0"}]

    with policies.having(policy):
        found = policies.status("misspelt")["typeChecking"]["expressionWarnings"]
    assert "subGroupPolicies" in found[0]["warning"]


def a_queue_below(parent: str, name: str, state: str = "Open", path: str = "") -> Obj:
    weights = "/".join("1" for _ in path.split("/"))
    annotations = {keys.HIERARCHY: path, keys.HIERARCHY_WEIGHTS: weights} if path else {}
    return {
        **big("queues", {"parent": parent}, name),
        "metadata": {"name": name, "annotations": annotations},
        "status": {"state": state},
    }


def test_policies_with_parameters_know_other_queues(asked: object, policies: Policies) -> None:
    queues = [
        a_queue_below("root", "idle", path="root/a/b"),
        a_queue_below("root", "above"),
        a_queue_below("above", "below"),
        a_queue_below("shut", "under"),
        a_queue_below("root", "shut", "Closed"),
    ]
    named = {queue["metadata"]["name"]: queue for queue in queues}
    path = a_queue_below("root", "new", path="root/a")
    work = [Ask("", plural, CREATE, big(plural, {**GOOD[plural], "queue": name})) for plural in WORK for name in named]
    others = [Ask("", "queues", CREATE, one) for one in (path, a_queue_below("root", "new", path="root/c/d"))]
    gone = [Ask("", "queues", DELETE, queue, queue) for queue in queues]

    with policies.knowing(queues):
        found = [policies.answer(ask) for ask in (*work, *others)]
        kept = [policies.deletion(name) for name in named]
    for ask, answer in zip((*work, *others, *gone), (*found, *kept), strict=True):
        verdict = dataclasses.replace(ask, queues=(*OPEN, *queues)).verdict(answer.obj or ask.defaulted(), {})
        expected = {without_numbers(one.message) for one in verdict.refusals} or {""}
        assert without_numbers(answer.refusal) in expected, ask  # the API server shows any one of them
    assert [bool(one.refusal) for one in (*found, *kept)].count(True) == 6


def without_numbers(text: str) -> str:
    """Return a sentence without what only the webhooks can count."""
    return re.sub(r"has (\d+ )?child queues.*", "has child queues", text.strip(" ;"))


BIG = 100


def big_job(**last: Any) -> Obj:
    template = {"spec": {"containers": [{"name": f"c{n}", "image": "busybox:1"} for n in range(3)]}}
    tasks: list[Obj] = [
        {
            "name": f"task-{number}",
            "replicas": 3,
            "template": template,
            "policies": [{"event": "PodFailed", "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}],
            **({"dependsOn": {"name": [f"task-{number // 4}"]}} if number else {}),
        }
        for number in range(BIG)
    ]
    tasks[-1].update(last)
    return big("jobs", {"tasks": tasks, "policies": [{"exitCode": code + 1} for code in range(BIG)]})


def big(plural: str, spec: Obj, name: str = "big") -> Obj:
    kind = KINDS[plural]
    return {"apiVersion": kind.group_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


def test_big_objects_stay_within_the_limits_of_cost(asked: object, policies: Policies) -> None:
    flows = [
        {"name": f"s{n}", "dependsOn": {"targets": [f"s{m}" for m in range(max(0, n - 5), n)]}} for n in range(BIG)
    ]
    amounts = {f"example.com/r{number}": "1" for number in range(BIG)}
    whole = {"capability": amounts, "deserved": amounts, "guarantee": {"resource": amounts}}
    lacking = {**whole, "deserved": {**amounts, "example.com/r7": "0"}}
    job = Ask("", "jobs", CREATE, big_job()).defaulted()
    scaled = copy.deepcopy(job)
    scaled["spec"]["tasks"][-1]["replicas"] = 5

    good = [big_job(), big("jobflows", {"flows": flows}), big("queues", whole)]
    bad = [big_job(name="task-7"), big("jobflows", {"flows": flows[1:]}), big("queues", lacking)]
    plurals = ("jobs", "jobflows", "queues")
    accepted = [
        policies.answer(Ask("", plural, CREATE, one)).refusal for plural, one in zip(plurals, good, strict=True)
    ]
    refused = [policies.answer(Ask("", plural, CREATE, one)).refusal for plural, one in zip(plurals, bad, strict=True)]
    updates = [policies.answer(Ask("", "jobs", UPDATE, one, job)).refusal for one in (scaled, big_job(maxRetry=8))]

    assert accepted == ["", "", ""]
    assert refused[0].startswith("duplicated task name task-7;"), refused[0]
    assert refused[1] == "jobflow Flow is not DAG: vertex is not defined: s0"
    assert "deserved[example.com/r7]=0 must be >= guarantee[example.com/r7]=1" in refused[2]
    assert updates[0] == ""
    assert updates[1].startswith("job updates may not change fields")


def test_webhooks_and_policies_can_be_on_together(
    asked: object, policies: Policies, control_plane: ControlPlane
) -> None:
    hooks = Webhooks(control_plane, "--leader-elect=false", "--graceful-shutdown-time=2s")
    good = big("jobs", GOOD["jobs"])
    wrong, nowhere = big("jobs", {**GOOD["jobs"], "minAvailable": 9}), big("jobs", {**GOOD["jobs"], "queue": "nowhere"})
    alone = policies.answer(Ask("", "jobs", CREATE, good))

    try:
        hooks.start().install()
        with policies.queue_that_is_open("default"):
            found = [policies.answer(Ask("", "jobs", CREATE, one)) for one in (good, wrong, nowhere)]
    finally:
        hooks.uninstall()
        hooks.stop()
    assert found[0] == alone
    assert found[1].policy == "job-validation-policy"
    assert 'webhook "validatejob.volcano.sh" denied the request: unable to find job queue' in found[2].refusal


def test_an_answer_that_is_too_long_is_cut(asked: object, policies: Policies) -> None:
    bad = [{"name": f"task-{number}", "replicas": 1, "minAvailable": 2, "template": {}} for number in range(BIG)]

    answer = policies.answer(Ask("", "jobs", CREATE, big("jobs", {"tasks": bad})))

    assert answer.refusal.startswith("'minAvailable' is greater than 'replicas' in task: task-0, job: big;")
    assert answer.refusal.endswith(" ...")
    assert len(answer.refusal) > 1000
