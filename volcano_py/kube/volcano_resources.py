"""Where the objects of a batch system live on the API server."""

from typing import Final

from volcano_py.api import keys
from volcano_py.kube.resource import Resource

PODGROUPS: Final = Resource(keys.SCHEDULING_GROUP, keys.SCHEDULING_VERSION, "podgroups", "PodGroup")
NODE_SHARDS: Final = Resource(keys.SHARD_GROUP, keys.SHARD_VERSION, "nodeshards", "NodeShard", namespaced=False)
QUEUES: Final = Resource(keys.SCHEDULING_GROUP, keys.SCHEDULING_VERSION, "queues", "Queue", namespaced=False)
