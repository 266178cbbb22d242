"""Decides about one HyperNode: its members and the nodes in, the number of its nodes out."""

from volcano_py.api.topology import HYPER_NODE_MEMBER, HyperNode
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.writes import Patch
from volcano_py.kube.resource import HYPER_NODES
from volcano_py.model.hyper_nodes import NodeNames, node_member, selected_names


def plan(one: HyperNode, nodes: NodeNames) -> Plan:
    """Return the write of the status, if the number has changed."""
    count = node_count(one, nodes)
    if count == one.status.node_count or one.metadata.deletion_timestamp is not None:
        return NOTHING
    body = {"metadata": {"uid": one.metadata.uid}, "status": {"nodeCount": count}}
    return Plan((Patch(HYPER_NODES, "", one.metadata.name, body, subresource="status"),))


def node_count(one: HyperNode, nodes: NodeNames) -> int:
    """Return how many names the members of a HyperNode select, as Volcano counts.

    A member that is named counts without a look whether it exists, and a HyperNode as one. A faulty selector selects
    nothing.
    """
    found: set[str] = set()
    for index, member in enumerate(one.spec.members):
        exact = member.selector.exact_match
        if exact is not None:
            found.add(exact.name)
        elif member.type != HYPER_NODE_MEMBER:
            try:
                selector = node_member(member.selector, f"spec.members[{index}].selector")
            except ValueError:
                continue
            found.update(selected_names(selector, nodes))
    return len(found)
