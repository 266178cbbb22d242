"""The group ``shard.volcano.sh``: NodeShards."""

from volcano_py.api.meta import ObjectMeta, Wire


class NodeShardSpec(Wire, frozen=True):
    """Which nodes a scheduler is to have."""

    nodes_desired: list[str] = []


class NodeShardStatus(Wire, frozen=True):
    """Which nodes it has, as it says itself."""

    nodes_in_use: list[str] = []
    nodes_to_remove: list[str] = []
    nodes_to_add: list[str] = []


class NodeShard(Wire, frozen=True):
    """The nodes of one of several schedulers; its name is the shard's."""

    metadata: ObjectMeta
    spec: NodeShardSpec = NodeShardSpec()
    status: NodeShardStatus = NodeShardStatus()
