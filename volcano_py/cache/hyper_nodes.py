"""Converts HyperNodes to the records of the tree."""

from sys import intern

from volcano_py.api import topology as wire
from volcano_py.cache.facts import label_selector
from volcano_py.model.hyper_nodes import HyperNode, NodeMember


def hyper_node_record(written: wire.HyperNode) -> HyperNode:
    """Return the record of a HyperNode; raise ValueError naming the field that cannot be read.

    A member that is a HyperNode is read by ``exactMatch`` alone, as in Volcano.
    """
    nodes, children = [], []
    for index, member in enumerate(written.spec.members):
        exact = member.selector.exact_match
        if member.type == wire.HYPER_NODE_MEMBER:
            if exact is not None and exact.name:
                children.append(intern(exact.name))
        else:
            nodes.append(node_member(member.selector, f"spec.members[{index}].selector"))
    spec = written.spec
    return HyperNode(intern(written.metadata.name), spec.tier, intern(spec.tier_name), tuple(nodes), tuple(children))


def node_member(selector: wire.MemberSelector, where: str) -> NodeMember:
    """Return what selects nodes; raise ValueError naming the field that cannot be read."""
    exact, pattern, labels = selector.exact_match, selector.regex_match, selector.label_match
    if exact is not None:
        return NodeMember(name=intern(exact.name))
    if pattern is not None:
        return NodeMember(pattern=pattern.pattern)
    return NodeMember(labels=None if labels is None else label_selector(labels, f"{where}.labelMatch"))
