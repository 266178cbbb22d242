"""Area hyper_nodes: the tree of HyperNodes and what their members select."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same, same_set
from tests.conformance.row_files import Case
from volcano_py.api import topology as wire
from volcano_py.api.meta import ObjectMeta
from volcano_py.model.hyper_nodes import HyperNodeTree, NodeNames, hyper_node_record, node_member, selected_names


def tree_of(written: Iterable[Mapping[str, Any]]) -> HyperNodeTree:
    return HyperNodeTree(hyper_node_record(msgspec.convert(one, wire.HyperNode)) for one in written)


def _shown(tree: HyperNodeTree) -> dict[str, Any]:
    """Return a tree as rows have it; they have no nodes, so every node that is named exists."""
    names = sorted({member.name for one in tree.by_name.values() for member in one.nodes if member.name})
    domains = tree.domains(NodeNames(names, [{}] * len(names)))
    return {
        "hyperNodes": {
            name: {"tier": one.tier, **({"parent": tree.parent[name]} if name in tree.parent else {})}
            for name, one in tree.by_name.items()
        },
        "byTier": {str(tier): list(found) for tier, found in tree.by_tier.items()},
        "realNodes": {name: sorted(names[row] for row in rows) for name, rows in domains.items()},
        "ready": tree.ready,
    }


def _build(case: Case) -> Outcome:
    return _shown(tree_of(case.input["hyperNodes"]))


def _repair(case: Case) -> Outcome:
    """Add the HyperNodes one after the other; then replace one of them."""
    given, correction = case.input["hyperNodes"], case.input["correction"]
    ready = [tree_of(given[: end + 1]).ready for end in range(len(given))]
    name = correction["metadata"]["name"]
    mended = tree_of([one for one in given if one["metadata"]["name"] != name] + [correction])
    assert mended.ready
    return {**_shown(mended), "error": not all(ready)}


def _members(case: Case) -> Outcome:
    selector = msgspec.convert(case.input.get("selector", {}), wire.MemberSelector)
    metas = [msgspec.convert(node["metadata"], ObjectMeta) for node in case.input["nodes"]]
    nodes = NodeNames([meta.name for meta in metas], [meta.labels for meta in metas])
    return {"members": selected_names(node_member(selector, "selector"), nodes)}


def _of_one(question: str) -> Operation:
    def run(case: Case) -> Outcome:
        return {question: getattr(tree_of(case.input["hyperNodes"]), question)(case.input["hyperNode"])}

    return Operation(run, {question: same}, frozenset({"hyperNodes", "hyperNode"}))


_TREE: Final = {"hyperNodes": same, "byTier": same, "realNodes": same, "ready": same}
OPERATIONS: Final = {
    "build": Operation(_build, _TREE, frozenset({"hyperNodes"})),
    "repair": Operation(_repair, {**_TREE, "error": same}, frozenset({"hyperNodes", "correction"})),
    "selectorLeaves": Operation(
        lambda case: {"hyperNodes": tree_of(case.input["hyperNodes"]).selecting_leaves()},
        {"hyperNodes": same_set},
        frozenset({"hyperNodes"}),
    ),
    "leaves": _of_one("leaves"),
    "ancestors": _of_one("ancestors"),
    "members": Operation(_members, {"members": same}, frozenset({"selector", "nodes"})),
}
