"""The group ``topology.volcano.sh``: HyperNodes."""

from volcano_py.api.meta import LabelSelector, ObjectMeta, Wire

NODE_MEMBER = "Node"
HYPER_NODE_MEMBER = "HyperNode"


class ExactMatch(Wire, frozen=True):
    """Selects one object."""

    name: str = ""


class RegexMatch(Wire, frozen=True):
    """Selects nodes by their names."""

    pattern: str = ""


class MemberSelector(Wire, frozen=True):
    """What a member selects; the definition asks for one of the three."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class HyperNodeMember(Wire, frozen=True):
    """A member: nodes, or one HyperNode."""

    type: str
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Wire, frozen=True):
    """The place of a HyperNode in the network."""

    tier: int = 0
    tier_name: str = ""
    members: list[HyperNodeMember] = []


class HyperNodeStatus(Wire, frozen=True):
    """What the controller counts."""

    node_count: int = 0


class HyperNode(Wire, frozen=True):
    """A network domain."""

    metadata: ObjectMeta
    spec: HyperNodeSpec = HyperNodeSpec()
    status: HyperNodeStatus = HyperNodeStatus()
