"""Which rights manifests/ grant to each process, which of them it uses, and how the two differ.

A right is a verb on a resource, in all namespaces or in one, for all names or for some. `granted` reads rights from the
roles of manifests/, `Record` reads used ones from the audit logs of API servers, and `compare` says where they differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.controlplane.audit import LOGS

REPOSITORY = Path(__file__).resolve().parents[2]
MANIFESTS = REPOSITORY / "manifests"
ELSEWHERE = "*"
"""Stands for every namespace but that of the account, and for requests across namespaces."""
NAMED = ("admissionregistration.k8s.io",)
"""Groups of cluster-wide objects of which roles name single ones."""
PROCESSES = ("volcano-py/", "vc-controller-manager/", "vc-webhook-manager/")
"""How the user agents of our processes begin; requests of tests under the same account do not count."""
BLOCKED = "you can't set finalizers on"  # by the plugin OwnerReferencesPermissionEnforcement
PROVED, RECORD = "proved.jsonl", "record.json"


class Right(NamedTuple):
    """A verb on a resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        """Return it as users write it: `patch jobs.batch.volcano.sh/status`."""
        resource, _, subresource = self.resource.partition("/")
        full = f"{resource}.{self.group}" if self.group else resource
        return f"{self.verb} {full}{'/' if subresource else ''}{subresource}"


@dataclass(frozen=True)
class Grant:
    """A right that a role of manifests/ gives an account."""

    account: str
    """NAMESPACE/NAME of the ServiceAccount."""
    right: Right
    namespace: str
    """Of a Role; "" for a ClusterRole."""
    names: tuple[str, ...]
    """For which objects; empty for all."""
    role: str
    file: str

    def covers(self, use: Use) -> bool:
        """Say whether it allows a request."""
        return (
            (self.account, self.right) == (use.account, use.right)
            and (not self.namespace or self.namespace == use.namespace)
            and (not self.names or use.name in self.names)
        )

    def includes(self, other: Grant) -> bool:
        """Say whether it allows all that another one allows."""
        return (
            (self.account, self.right) == (other.account, other.right)
            and self.namespace in ("", other.namespace)
            and (not self.names or bool(other.names and set(other.names) <= set(self.names)))
        )


class Use(NamedTuple):
    """A kind of request of an account."""

    account: str
    right: Right
    namespace: str
    """That of the account, or ELSEWHERE."""
    name: str
    """Of the object, if it is in the namespace of the account, or its group is in NAMED."""


@dataclass
class Record:
    """What the processes of a run have asked for."""

    used: Counter[Use] = field(default_factory=Counter)
    refused: Counter[Use] = field(default_factory=Counter)
    others: dict[str, str] = field(default_factory=dict)
    """Other requests that were refused for want of a right, with the answer."""
    proved: set[tuple[str, Right]] = field(default_factory=set)
    """Rights that only admission checks; a test has shown that nothing works without them."""
    whole: bool = False
    """Whether every test has run, so that each right should have been used."""

    def take_logs(self, folder: Path) -> None:
        """Read the audit logs of a folder, and what tests have proved."""
        for log in sorted(folder.glob(LOGS)):
            with log.open() as lines:
                for line in lines:
                    if line.endswith("\n"):  # an API server that was killed leaves half a line
                        self._take(json.loads(line))
        proved = folder / PROVED
        for line in proved.read_text().splitlines() if proved.exists() else ():
            account, *right = json.loads(line)
            self.proved.add((account, Right(*right)))

    def add(self, other: Record) -> None:
        """Add what another run has asked for."""
        self.used += other.used
        self.refused += other.refused
        self.others |= other.others
        self.proved |= other.proved

    def write(self, file: Path) -> None:
        """Write it to a file."""
        text = {
            "whole": self.whole,
            "used": [_flat(use, count) for use, count in sorted(self.used.items())],
            "refused": [_flat(use, count) for use, count in sorted(self.refused.items())],
            "others": self.others,
            "proved": sorted([account, *right] for account, right in self.proved),
        }
        file.write_text(json.dumps(text, indent=1) + "\n")

    @classmethod
    def read(cls, file: Path) -> Record:
        """Read what `write` wrote."""
        text = json.loads(file.read_text())
        return cls(
            used=Counter(dict(map(_use, text["used"]))),
            refused=Counter(dict(map(_use, text["refused"]))),
            others=text["others"],
            proved={(account, Right(*right)) for account, *right in text["proved"]},
            whole=text["whole"],
        )

    def _take(self, event: Mapping[str, Any]) -> None:
        account = account_of(event)
        if account is None or not str(event.get("userAgent", "")).startswith(PROCESSES):
            return
        forbidden = event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        target = event.get("objectRef")
        if target is None or "resource" not in target:
            if forbidden:
                self.others[f"{account}: {event['verb']} {event['requestURI']}"] = "refused"
            return
        use = _use_of(account, event["verb"], target)
        (self.refused if forbidden else self.used)[use] += 1
        status = event.get("responseStatus", {})
        if BLOCKED in status.get("message", ""):
            self.others[f"{account}: {use.right}"] = status["message"]


def account_of(event: Mapping[str, Any]) -> str | None:
    """Return NAMESPACE/NAME of the ServiceAccount that sent a request; None for other users."""
    kind, _, account = str(event["user"]["username"]).partition("system:serviceaccount:")
    return None if kind or not account else account.replace(":", "/")


def _use_of(account: str, verb: str, target: Mapping[str, Any]) -> Use:
    resource = "/".join(filter(None, (target["resource"], target.get("subresource", ""))))
    right = Right(target.get("apiGroup", ""), resource, verb)
    home = target.get("namespace", "") == account.partition("/")[0]
    named = home or right.group in NAMED
    return Use(account, right, target["namespace"] if home else ELSEWHERE, target.get("name", "") if named else "")


def _flat(use: Use, count: int) -> list[Any]:
    return [use.account, *use.right, use.namespace, use.name, count]


def _use(flat: list[Any]) -> tuple[Use, int]:
    account, group, resource, verb, namespace, name, count = flat
    return Use(account, Right(group, resource, verb), namespace, name), count


# What is granted


def granted(folder: Path = MANIFESTS) -> list[Grant]:
    """Return the rights that the roles of a folder give to ServiceAccounts, from all of its files."""
    documents = list(_documents(folder))
    roles = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): (one, file)
        for one, file in documents
        if one["kind"] in ("Role", "ClusterRole")
    }
    found: list[Grant] = []
    for binding, _ in documents:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        namespace = binding["metadata"].get("namespace", "")
        wanted = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        role, file = roles[wanted[0], namespace if wanted[0] == "Role" else "", wanted[1]]
        for subject in binding["subjects"]:
            if subject["kind"] != "ServiceAccount":
                raise ValueError(f"{file}: {binding['metadata']['name']} binds a {subject['kind']}, unknown here")
            account = f"{subject['namespace']}/{subject['name']}"
            found += _grants(account, role, namespace, file)
    return found


def _documents(folder: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for file in sorted(folder.rglob("*.yaml")):
        text = file.read_text()
        if "rbac.authorization.k8s.io" not in text:
            continue
        for document in yaml.safe_load_all(text):
            if isinstance(document, dict) and document.get("apiVersion") == "rbac.authorization.k8s.io/v1":
                yield document, str(file.relative_to(folder.parent))


def _grants(account: str, role: Mapping[str, Any], namespace: str, file: str) -> Iterator[Grant]:
    if "aggregationRule" in role or any("nonResourceURLs" in rule for rule in role["rules"]):
        raise ValueError(f"{file}: {role['metadata']['name']} grants more than resources, which is unknown here")
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Grant(
                        account,
                        Right(group, resource, verb),
                        namespace,
                        tuple(rule.get("resourceNames", ())),
                        f"{role['kind']} {role['metadata']['name']}",
                        file,
                    )


# The comparison


@dataclass(frozen=True)
class Differences:
    """Where granted and used rights differ; each is a list of sentences."""

    lacking: list[str]
    """Refused or used, and granted by none of the manifests."""
    excess: list[str]
    """Granted, and never used."""

    def table(self) -> str:
        """Return all of them as text."""
        parts = (
            ("Rights that a process uses, and that manifests/ do not grant:", self.lacking),
            ("Rights that manifests/ grant, and that no process has used in the whole run:", self.excess),
        )
        return "\n".join(line for title, lines in parts if lines for line in (title, *(f"  {each}" for each in lines)))


def compare(grants: Iterable[Grant], record: Record) -> Differences:
    """Compare what is granted with what was used; nothing is in excess unless the whole run is recorded."""
    grants = list(grants)
    return Differences(lacking(grants, record), excess(grants, record) if record.whole else [])


def lacking(grants: list[Grant], record: Record) -> list[str]:
    """Return what a process has used or tried, and no role grants."""
    known = {grant.account for grant in grants}
    found = []
    for uses, how in ((record.refused, "refused"), (record.used, "allowed by a role outside of manifests/")):
        for use, count in sorted(uses.items()):
            if use.account in known and not any(grant.covers(use) for grant in grants):
                found.append(f"{use.account}: {use.right}{_place(use)}, {count} times {how}{_near(grants, use)}")
    return found + [
        f"{what}: {said}" for what, said in sorted(record.others.items()) if what.partition(":")[0] in known
    ]


def _place(use: Use) -> str:
    if use.namespace == ELSEWHERE:
        return ""
    return f" in namespace {use.namespace}" + (f", name {use.name}" if use.name else "")


def _near(grants: list[Grant], use: Use) -> str:
    """Name the role that should have the right: one that has others on the resource, or any of the account."""
    of_account = [grant for grant in grants if grant.account == use.account]
    of_resource = [grant for grant in of_account if grant.right[:2] == use.right[:2]]
    nearest = (of_resource or of_account)[:1]
    return "".join(f"; it belongs into {grant.role} ({grant.file}), or the request must go" for grant in nearest)


def excess(grants: list[Grant], record: Record) -> list[str]:
    """Return what roles grant and no process uses, what is granted too widely, and what is granted twice."""
    return [*_unused(grants, record), *_twice(grants)]


def _unused(grants: list[Grant], record: Record) -> Iterator[str]:
    for grant in grants:
        if (grant.account, grant.right) in record.proved:
            continue
        uses = [use for use in record.used if grant.covers(use)]
        where = f"{grant.role} ({grant.file})"
        if not uses:
            of = f" of {', '.join(grant.names)}" if grant.names else ""
            yield f"{grant.account}: {grant.right}{of} is never used; {where}"
        elif not grant.namespace and all(use.namespace != ELSEWHERE for use in uses):
            yield f"{grant.account}: {grant.right} is used in {uses[0].namespace} only: a Role is enough; {where}"
        for name in grant.names:
            if uses and not any(use.name == name for use in uses):
                yield f"{grant.account}: {grant.right} is never used for {name}; {where}"


def _twice(grants: list[Grant]) -> Iterator[str]:
    for index, grant in enumerate(grants):
        for position, other in enumerate(grants):
            # Of two that are the same, only the second one is too much.
            if other.includes(grant) and (position < index or not grant.includes(other)):
                also = f"{other.role} ({other.file})"
                yield f"{grant.account}: {grant.right} is granted twice; {grant.role} ({grant.file}) and {also}"
