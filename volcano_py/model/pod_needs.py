"""What the claims of a pod need of a node.

Pods whose claims need the same get the same answers, although each pod has claims of its own: a hundred pods with one
claim each of one class, size and mode have one need. A claim, handle or volume appears in a need only if more than one
pod uses it, or if nothing else will do.
"""

from typing import Final, NamedTuple

from volcano_py.model.rejections import Reason
from volcano_py.model.selectors import LabelSelector
from volcano_py.model.shape import NodeTerm
from volcano_py.model.volumes import FILESYSTEM, ClaimKey, Disk

Affinity = tuple[NodeTerm, ...] | None
"""The nodes that can reach a volume: those that match any of the terms; None: all nodes."""

Zones = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels of zones and regions with the values in them."""


class Reached(NamedTuple):
    """A bound claim: its volume must be reached from the node."""

    affinity: Affinity = None
    zones: Zones = ()
    missing: bool = False  # there is no such volume


class Wanted(NamedTuple):
    """A claim that gets its volume when its pod gets a node: one that exists, or one that is made for it."""

    storage_class: str
    size: int = 0  # bytes
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    selector: LabelSelector | None = None
    selected_node: str = ""  # its volume is being made for this node
    reserved: tuple[str, ...] = ()  # volumes that are reserved for the claim
    shared: ClaimKey | None = None  # the claim, if other pods use it, too


class SharedVolume(NamedTuple):
    """A volume that several pods use, of a CSI driver with a limit: it counts once on each node."""

    driver: str
    claim: ClaimKey
    """The claim, or a key that stands for several volumes that are one to the driver (`snapshot.twin_volumes`)."""


class PodNeed(NamedTuple):
    """What the claims of one pod need; of a pod on a node, only what it holds there."""

    refusal: Reason | None = None  # why no node will do
    reached: tuple[Reached, ...] = ()
    wanted: tuple[Wanted, ...] = ()  # by rising size
    attached: tuple[tuple[str, int], ...] = ()  # CSI drivers with a limit -> volumes that only this pod uses
    shared: tuple[SharedVolume, ...] = ()  # volumes of such drivers that other pods use, too
    exclusive: tuple[ClaimKey, ...] = ()  # ReadWriteOncePod claims that other pods use, too
    disks: tuple[Disk, ...] = ()  # disks that the pod names without a claim
    zone_refusal: Reason | None = None  # why no node will do for VolumeZone alone
    limits_refusal: Reason | None = None  # why no node will do for NodeVolumeLimits alone


NO_NEED: Final = PodNeed()
