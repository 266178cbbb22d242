"""Which rights are used, read from audit logs, and where they differ from the roles of manifests/."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.controlplane.audit import FOLDER, POLICY, audit_log, audit_options
from tests.controlplane.rights import MANIFESTS, Record, Right, Use, compare, excess, granted, lacking
from tests.e2e.rights import judge, pytest_configure, pytest_sessionfinish

HOME = "volcano-system"
ACCOUNT = f"{HOME}/volcano-test"
PODS_LIST, PODS_DELETE = Right("", "pods", "list"), Right("", "pods", "delete")
SECRET_GET, LEASE_GET = Right("", "secrets", "get"), Right("coordination.k8s.io", "leases", "get")
CLUSTER_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]}]
OWN_RULES = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]},
]


def a_role(kind: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a role and its binding."""
    api = "rbac.authorization.k8s.io/v1"
    metadata = {"name": "test", **({"namespace": HOME} if kind == "Role" else {})}
    return [
        {"apiVersion": api, "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": api,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"kind": kind, "name": "test"},
            "subjects": [{"kind": "ServiceAccount", "name": "volcano-test", "namespace": HOME}],
        },
    ]


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A folder of manifests with a ClusterRole and a Role."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    documents = a_role("ClusterRole", CLUSTER_RULES) + a_role("Role", OWN_RULES)
    (folder / "rights.yaml").write_text(yaml.safe_dump_all(documents))
    return folder


def an_event(verb: str, target: dict[str, str] | None, **more: Any) -> dict[str, Any]:
    """Return a line of an audit log."""
    event = {
        "verb": verb,
        "user": {"username": f"system:serviceaccount:{HOME}:volcano-test"},
        "userAgent": "volcano-py/1.0",
        "requestURI": "/somewhere",
        "annotations": {"authorization.k8s.io/decision": "allow"},
        **more,
    }
    return event if target is None else {**event, "objectRef": target}


def recorded(folder: Path, *events: dict[str, Any]) -> Record:
    """Return the record of a whole run with these lines in its log."""
    (folder / "requests-1-2.log").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    record = Record(whole=True)
    record.take_logs(folder)
    return record


FORBIDDEN = {"annotations": {"authorization.k8s.io/decision": "forbid"}}
LIST_PODS = an_event("list", {"resource": "pods"})
DELETE_POD = an_event("delete", {"resource": "pods", "namespace": "ml", "name": "a"})
GET_LEASE = an_event(
    "get", {"apiGroup": "coordination.k8s.io", "resource": "leases", "namespace": HOME, "name": "leader"}
)
GET_SECRET = an_event("get", {"resource": "secrets", "namespace": HOME, "name": "mine"})
ALL = (LIST_PODS, DELETE_POD, GET_LEASE, GET_SECRET)


def test_what_is_granted_is_read_from_roles_that_are_bound(manifests: Path) -> None:
    found = {(grant.right, grant.namespace, grant.names, grant.role) for grant in granted(manifests)}

    assert found == {
        (PODS_LIST, "", (), "ClusterRole test"),
        (PODS_DELETE, "", (), "ClusterRole test"),
        (LEASE_GET, HOME, (), "Role test"),
        (SECRET_GET, HOME, ("mine",), "Role test"),
    }
    assert {grant.file for grant in granted(manifests)} == {"manifests/rights.yaml"}


def test_the_real_manifests_grant_rights_to_three_accounts() -> None:
    accounts = {grant.account for grant in granted(MANIFESTS)}

    assert accounts == {f"{HOME}/volcano-{name}" for name in ("scheduler", "controllers", "admission")}


def test_rights_that_are_all_used_do_not_differ(manifests: Path, tmp_path: Path) -> None:
    differences = compare(granted(manifests), recorded(tmp_path, *ALL))

    assert differences.table() == ""


@pytest.mark.parametrize(
    ("unused", "said"),
    [
        pytest.param(DELETE_POD, "delete pods is never used; ClusterRole test (manifests/rights.yaml)", id="cluster"),
        pytest.param(GET_LEASE, "get leases.coordination.k8s.io is never used; Role test", id="namespace"),
        pytest.param(GET_SECRET, "get secrets of mine is never used; Role test", id="name"),
    ],
)
def test_a_right_that_is_never_used_is_in_excess(
    manifests: Path, tmp_path: Path, unused: dict[str, Any], said: str
) -> None:
    record = recorded(tmp_path, *(event for event in ALL if event is not unused))

    (sentence,) = excess(granted(manifests), record)

    assert said in sentence


def test_a_cluster_wide_right_may_be_for_single_webhook_configurations(tmp_path: Path) -> None:
    rule = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations"],
        "resourceNames": ["ours"],
        "verbs": ["patch"],
    }
    (tmp_path / "rights.yaml").write_text(yaml.safe_dump_all(a_role("ClusterRole", [rule])))
    target = {"apiGroup": rule["apiGroups"][0], "resource": rule["resources"][0]}
    ours, another = (an_event("patch", {**target, "name": name}) for name in ("ours", "another"))

    assert compare(granted(tmp_path), recorded(tmp_path, ours)).table() == ""
    (sentence,) = lacking(granted(tmp_path), recorded(tmp_path, ours, another))
    assert "patch validatingwebhookconfigurations" in sentence


def test_a_partial_run_finds_no_excess(manifests: Path, tmp_path: Path) -> None:
    record = recorded(tmp_path, LIST_PODS)
    record.whole = False

    assert compare(granted(manifests), record).table() == ""


def test_a_cluster_role_that_is_used_in_one_namespace_only_is_too_wide(manifests: Path, tmp_path: Path) -> None:
    at_home = an_event("delete", {"resource": "pods", "namespace": HOME, "name": "a"})

    (sentence,) = excess(granted(manifests), recorded(tmp_path, LIST_PODS, at_home, GET_LEASE, GET_SECRET))

    assert "delete pods is used in volcano-system only: a Role is enough" in sentence


def test_a_right_that_two_rules_grant_is_granted_twice(manifests: Path, tmp_path: Path) -> None:
    documents = a_role("ClusterRole", [*CLUSTER_RULES, *CLUSTER_RULES[:1]]) + a_role("Role", OWN_RULES)
    (manifests / "rights.yaml").write_text(yaml.safe_dump_all(documents))

    sentences = excess(granted(manifests), recorded(tmp_path, *ALL))

    assert len(sentences) == 2
    assert "list pods is granted twice" in sentences[0]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        pytest.param(
            an_event("patch", {"resource": "pods", "namespace": "ml", "name": "a"}, **FORBIDDEN),
            "patch pods, 1 times refused; it belongs into ClusterRole test (manifests/rights.yaml)",
            id="verb",
        ),
        pytest.param(
            an_event("get", {"resource": "secrets", "namespace": HOME, "name": "other"}, **FORBIDDEN),
            "get secrets in namespace volcano-system, name other, 1 times refused; it belongs into Role test",
            id="name",
        ),
        pytest.param(
            an_event("patch", {"resource": "pods", "subresource": "status", "namespace": "ml"}),
            "patch pods/status, 1 times allowed by a role outside of manifests/",
            id="subresource-that-another-role-allows",
        ),
        pytest.param(an_event("get", None, **FORBIDDEN), "get /somewhere: refused", id="no-resource"),
        pytest.param(
            an_event(
                "create",
                {"resource": "podgroups", "apiGroup": "scheduling.volcano.sh", "namespace": "ml"},
                responseStatus={"code": 403, "message": "forbidden: a resource you can't set finalizers on: , <nil>"},
            ),
            "create podgroups.scheduling.volcano.sh: forbidden: a resource you can't set finalizers on",
            id="owner",
        ),
    ],
)
def test_a_right_that_a_process_needs_and_does_not_have_is_lacking(
    manifests: Path, tmp_path: Path, request_: dict[str, Any], said: str
) -> None:
    record = recorded(tmp_path, *ALL, request_)
    record.whole = False  # the same in every run

    sentences = compare(granted(manifests), record).lacking

    assert any(sentence.startswith(f"{ACCOUNT}: ") and said in sentence for sentence in sentences), sentences


def test_a_granted_right_that_was_taken_away_for_a_while_is_not_lacking(manifests: Path, tmp_path: Path) -> None:
    refused = an_event("list", {"resource": "pods"}, **FORBIDDEN)

    assert lacking(granted(manifests), recorded(tmp_path, *ALL, refused)) == []


def test_a_refused_request_is_no_use_of_a_right(manifests: Path, tmp_path: Path) -> None:
    refused = an_event("list", {"resource": "pods"}, **FORBIDDEN)

    assert "list pods is never used" in "".join(excess(granted(manifests), recorded(tmp_path, refused, *ALL[1:])))


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(an_event("list", {"resource": "secrets"}, userAgent="kubectl/v1", **FORBIDDEN), id="kubectl"),
        pytest.param(an_event("list", {"resource": "secrets"}, user={"username": "admin"}), id="another-user"),
    ],
)
def test_requests_of_tests_do_not_count(manifests: Path, tmp_path: Path, event: dict[str, Any]) -> None:
    record = recorded(tmp_path, *ALL, event)

    assert compare(granted(manifests), record).table() == ""
    assert sum(record.used.values()) == len(ALL)


def test_a_right_that_only_admission_checks_needs_a_proof(manifests: Path, tmp_path: Path) -> None:
    rules = [*CLUSTER_RULES, {"apiGroups": [""], "resources": ["pods/finalizers"], "verbs": ["update"]}]
    documents = a_role("ClusterRole", rules) + a_role("Role", OWN_RULES)
    (manifests / "rights.yaml").write_text(yaml.safe_dump_all(documents))
    before = excess(granted(manifests), recorded(tmp_path, *ALL))
    (tmp_path / "proved.jsonl").write_text(json.dumps([ACCOUNT, "", "pods/finalizers", "update"]) + "\n")

    after = excess(granted(manifests), recorded(tmp_path, *ALL))

    assert ["update pods/finalizers is never used" in sentence for sentence in before] == [True]
    assert after == []


@pytest.mark.parametrize("kinds", [("ClusterRole", "Role"), ("Role", "ClusterRole")], ids=" ".join)
def test_a_narrow_right_beside_a_wide_one_is_granted_twice(tmp_path: Path, kinds: tuple[str, str]) -> None:
    wide = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    rules = {"ClusterRole": [wide], "Role": [{**wide, "resourceNames": ["mine"]}]}
    (tmp_path / "rights.yaml").write_text(
        yaml.safe_dump_all([one for kind in kinds for one in a_role(kind, rules[kind])])
    )

    found = [sentence for sentence in excess(granted(tmp_path), Record()) if "twice" in sentence]

    assert len(found) == 1
    assert "granted twice; Role test" in found[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"subjects": [{"kind": "Group", "name": "system:serviceaccounts:volcano-system"}]}, "binds a Group"),
        ({"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}, "grants more than resources"),
    ],
    ids=["a-group", "urls"],
)
def test_grants_of_unknown_kinds_are_not_overlooked(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    role, binding = a_role("ClusterRole", CLUSTER_RULES)
    changed = [{**one, **{key: change[key] for key in change if key in one}} for one in (role, binding)]
    (tmp_path / "rights.yaml").write_text(yaml.safe_dump_all(changed))

    with pytest.raises(ValueError, match=said):
        granted(tmp_path)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = recorded(
        tmp_path, *ALL, an_event("get", None, **FORBIDDEN), an_event("get", {"resource": "x"}, **FORBIDDEN)
    )
    record.proved.add((ACCOUNT, PODS_LIST))

    record.write(tmp_path / "record.json")

    assert Record.read(tmp_path / "record.json") == record


def test_half_a_line_of_a_killed_server_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "requests-1-2.log").write_text(f'{json.dumps(LIST_PODS)}\n{{"verb": "de')
    record = Record()

    record.take_logs(tmp_path)

    assert record.used == Counter({Use(ACCOUNT, PODS_LIST, "*", ""): 1})


# Runs


def test_a_rerun_of_failed_tests_adds_to_the_record_of_the_whole_run(tmp_path: Path) -> None:
    grant = granted()[0]
    never_used = f"{grant.account}: {grant.right} is never used; {grant.role} ({grant.file})"
    rerun = Record(used=Counter({Use(grant.account, grant.right, "*", ""): 1}))
    first = judge(Record(whole=True), tmp_path, rerun=False)

    second = judge(rerun, tmp_path, rerun=True)

    assert never_used in first.excess
    assert never_used not in second.excess
    assert len(second.excess) == len(first.excess) - 1
    assert Record.read(tmp_path / "record.json").used == rerun.used


def test_a_run_of_some_tests_leaves_the_record_of_the_whole_run_alone(tmp_path: Path) -> None:
    judge(Record(whole=True), tmp_path, rerun=False)

    differences = judge(Record(used=Counter({Use(ACCOUNT, PODS_LIST, "*", ""): 1})), tmp_path, rerun=False)

    assert differences.table() == ""
    assert not Record.read(tmp_path / "record.json").used


class _Session(SimpleNamespace):
    """What `pytest_sessionfinish` reads of a session."""

    def __init__(self, folder: Path, **options: Any) -> None:
        stash = pytest.Stash()
        cache = SimpleNamespace(mkdir=lambda name: folder)
        config = SimpleNamespace(
            stash=stash, cache=cache, getoption=lambda name, default=None: options.get(name, default)
        )
        if "worker" in options:
            config.workerinput = {}
        super().__init__(config=config, shouldstop=False, shouldfail=False, testsfailed=0, exitstatus=0)


@pytest.mark.parametrize(
    ("options", "status", "whole"),
    [
        ({}, pytest.ExitCode.OK, True),
        ({}, pytest.ExitCode.TESTS_FAILED, True),
        ({}, pytest.ExitCode.INTERRUPTED, False),
        ({"lf": True}, pytest.ExitCode.OK, False),
        ({"dist": "worksteal"}, pytest.ExitCode.OK, False),
    ],
    ids=["all", "some-failed", "interrupted", "rerun", "parallel"],
)
def test_only_a_run_of_all_tests_to_the_end_shows_unused_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], status: pytest.ExitCode, whole: bool
) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    session = _Session(tmp_path, **options)
    pytest_configure(session.config)
    Path(os.environ[FOLDER]).mkdir()

    pytest_sessionfinish(session, status)

    assert Record.read(tmp_path / "last-run.json").whole == whole
    assert (tmp_path / "record.json").exists() == whole


def test_a_process_of_a_parallel_run_leaves_the_logs_to_the_one_that_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    session = _Session(tmp_path, worker=True)
    pytest_configure(session.config)

    pytest_sessionfinish(session, pytest.ExitCode.OK)

    assert (tmp_path / "run").exists()
    assert not (tmp_path / "last-run.json").exists()


# Audit logs


def test_an_api_server_writes_an_audit_log_only_into_a_named_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    assert audit_log(6443) is None
    monkeypatch.setenv(FOLDER, str(tmp_path))
    log = audit_log(6443)

    assert log is not None
    assert log.match("requests-*-6443.log")
    options = audit_options(log, tmp_path / "policy.yaml")
    assert f"--audit-log-path={log}" in options
    assert yaml.safe_load((tmp_path / "policy.yaml").read_text()) == POLICY
