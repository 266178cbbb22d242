"""HyperNodes from labels of nodes: nodes in, HyperNodes out.

Each label of a kind of network makes a tier. A node belongs to the HyperNode of its value of the narrowest label, that
one to the HyperNode of the node's value of the next label, and so on up to the first label that the node lacks.
"""

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from volcano_py.api import keys
from volcano_py.api.topology import HYPER_NODE_MEMBER, NODE_MEMBER, HyperNode
from volcano_py.controllers.hypernode.configuration import LABEL_SOURCE
from volcano_py.controllers.plan import Plan
from volcano_py.controllers.writes import Create, Delete, Patch, Write
from volcano_py.kube.resource import HYPER_NODES

_SUFFIX: Final = 5
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, as in names that the API server generates
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


class Wanted(NamedTuple):
    """A HyperNode that should exist."""

    prefix: str
    """Of its name."""
    key: str
    value: str
    tier: int
    members: tuple[str, ...]
    """Nodes at tier 1, HyperNodes above."""


class Level(NamedTuple):
    """One value of one label."""

    kind: str
    tier: int
    key: str
    value: str


def plan(
    types: Mapping[str, tuple[str, ...]], nodes: Mapping[str, Mapping[str, str]], existing: Iterable[HyperNode]
) -> Plan:
    """Return the writes that bring the HyperNodes of this source into being; ``nodes`` has labels by name.

    A HyperNode that stands for the same label and value keeps its name.
    """
    left = {one.metadata.name: one for one in existing if is_ours(one)}
    members = _members(types, nodes)
    names = _names(members, left)
    creations: list[Write] = []
    changes: list[Write] = []
    for level, found in members.items():
        name = names[level]
        who = sorted(names[member] if isinstance(member, Level) else member for member in found)
        body = _body(level, name, who)
        before = left.pop(name, None)
        if before is None:
            creations.append(Create(HYPER_NODES, "", body))
        elif not _is_as(before, body):
            changes.append(Patch(HYPER_NODES, "", name, {**body, "metadata": _with_uid(body["metadata"], before)}))
    gone = [Delete(HYPER_NODES, "", name, one.metadata.uid) for name, one in sorted(left.items())]
    step = (*creations, *changes, *gone)  # all at once: one that is refused holds up no others
    return Plan((step,) if step else ())


def is_ours(one: HyperNode) -> bool:
    """Say whether a HyperNode was found from labels."""
    return one.metadata.labels.get(keys.TOPOLOGY_SOURCE) == LABEL_SOURCE


def _members(
    types: Mapping[str, tuple[str, ...]], nodes: Mapping[str, Mapping[str, str]]
) -> dict[Level, set[str | Level]]:
    """Return nodes or HyperNodes by the HyperNode that has them, lower tiers of a kind first."""
    found: dict[Level, set[str | Level]] = {}
    for kind, labels in sorted(types.items()):
        for node, has in sorted(nodes.items()):
            member: str | Level = node
            for tier, key in enumerate(labels, start=1):
                if not has.get(key):
                    break
                level = Level(kind, tier, key, has[key])
                found.setdefault(level, set()).add(member)
                member = level
    return dict(sorted(found.items()))


def _names(levels: Iterable[Level], existing: Mapping[str, HyperNode]) -> dict[Level, str]:
    """Return the names of the HyperNodes of levels: no two have the same, and those that exist keep theirs."""
    levels = list(levels)
    marked: dict[tuple[str, str], list[str]] = {}  # label and value -> HyperNodes with it
    for name, one in sorted(existing.items()):
        for label in one.metadata.labels.items():
            marked.setdefault(label, []).append(name)
    names: dict[Level, str] = {}
    taken: set[str] = set()
    for level in levels:
        found = marked.get((level.key, level.value), ())
        kept = next((name for name in found if name.startswith(_prefix(level)) and name not in taken), None)
        if kept is not None:
            names[level] = kept
            taken.add(kept)
    for level in levels:
        if level not in names:
            names[level] = next(name for name in _new_names(level) if name not in taken)
            taken.add(names[level])
    return names


def _new_names(level: Level) -> Iterator[str]:
    """Yield names that depend on the label and its value alone, the first of which is nearly always free."""
    for attempt in itertools.count():
        yield _prefix(level) + _suffix(level, attempt)


def _prefix(level: Level) -> str:
    cleaned = _NOT_IN_NAMES.sub("-", level.kind.lower()).strip("-")
    return f"hypernode-{cleaned}-tier{level.tier}-"


def _suffix(level: Level, attempt: int) -> str:
    """Return letters that depend on the label and its value alone, so that the same domain gets the same name."""
    parts = (*level, attempt) if attempt else level
    number = int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:8], "big")
    letters = []
    for _ in range(_SUFFIX):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def _body(level: Level, name: str, members: list[str]) -> dict[str, Any]:
    kind = NODE_MEMBER if level.tier == 1 else HYPER_NODE_MEMBER
    return {
        "apiVersion": HYPER_NODES.api_version,
        "kind": HYPER_NODES.kind,
        "metadata": {"name": name, "labels": {level.key: level.value, keys.TOPOLOGY_SOURCE: LABEL_SOURCE}},
        "spec": {
            "tier": level.tier,
            "tierName": level.key,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def _is_as(one: HyperNode, body: Mapping[str, Any]) -> bool:
    spec = one.spec
    written = [
        (member.type, member.selector.exact_match.name if member.selector.exact_match else None)
        for member in spec.members
    ]
    wanted = [(member["type"], member["selector"]["exactMatch"]["name"]) for member in body["spec"]["members"]]
    same_spec = (spec.tier, spec.tier_name, written) == (body["spec"]["tier"], body["spec"]["tierName"], wanted)
    return same_spec and body["metadata"]["labels"].items() <= one.metadata.labels.items()


def _with_uid(metadata: Mapping[str, Any], one: HyperNode) -> dict[str, Any]:
    return {**metadata, "uid": one.metadata.uid}
