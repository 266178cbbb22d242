"""The flag ``--feature-gates``: features of Volcano and of Kubernetes' scheduler, and what each value comes to here.

A feature that can be switched here is switched. Of any other feature, the value that asks for what happens here anyway
is accepted in silence. The other value is named in the one warning about flags, with what is missing or what to do
instead. `docs/flags.md` shows the table.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from volcano_py.api import keys
from volcano_py.cli.volcano_flags import LeftAside, parse_boolean
from volcano_py.runtime.options import OptionError

FLAG: Final = "--feature-gates"


class Feature(NamedTuple):
    """One feature."""

    name: str
    as_here: bool  # without the flag
    otherwise: str = ""  # what the other value comes to; "" if it does what it says


_NO_JOBS: Final = "jobs of Volcano are not run by this program yet"
_NO_VOLUMES: Final = "pods with volume claims are not placed yet"
_NO_CLAIMS: Final = "pods with resource claims are not placed yet"
_ALWAYS: Final = "always on here"
_NEVER: Final = "not implemented yet"

_OF_PODS: Final = tuple(
    Feature(name, True, _ALWAYS)
    for name in (
        "InPlacePodVerticalScaling",
        "MatchLabelKeysInPodTopologySpread",
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        "NodeInclusionPolicyInPodTopologySpread",
        "PodLevelResources",
        "PodSchedulingReadiness",
        "SidecarContainers",
    )
)
_OF_CLAIMS: Final = tuple(
    Feature(name, False, _NO_CLAIMS)
    for name in (
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRANodeAllocatableResources",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRASchedulerFilterTimeout",
        "DynamicResourceAllocation",
    )
)
_OF_VOLUMES: Final = tuple(
    Feature(name, False, _NO_VOLUMES)
    for name in ("CSIStorage", "StorageCapacityScoring", "VolumeAttributesClass", "VolumeLimitScaling")
)

SCHEDULER_FEATURES: Final = (
    Feature(keys.QUEUE_ADMISSION, False),
    Feature("PodDisruptionBudgetsSupport", True, "budgets are always watched: leave the plugin pdb out instead"),
    Feature("PriorityClass", True, "PriorityClasses are always read: leave the plugin priority out instead"),
    Feature("ResourceTopology", False, "the plugin numaaware does not exist here yet"),
    *_OF_PODS,
    *_OF_CLAIMS,
    *_OF_VOLUMES,
    Feature("GangScheduling", False, _NEVER),
    Feature("GenericWorkload", False, _NEVER),
    Feature("NodeDeclaredFeatures", False, _NEVER),
    Feature("TaintTolerationComparisonOperators", False, "tolerations with Lt and Gt tolerate nothing here"),
)
CONTROLLER_FEATURES: Final = (
    Feature("WorkLoadSupport", True, "PodGroups are always made for workloads: leave out pg-controller instead"),
    Feature("VolcanoJobSupport", False, _NO_JOBS),
    Feature("CronVolcanoJobSupport", False, _NO_JOBS),
    Feature("QueueCommandSync", False, "commands for queues are not carried out yet"),
)

_EVERYBODYS: Final = frozenset(feature.name for feature in (*SCHEDULER_FEATURES, *CONTROLLER_FEATURES))


def read_feature_gates(texts: Iterable[str], features: Iterable[Feature]) -> tuple[Mapping[str, bool], list[LeftAside]]:
    """Return which features are on by name, and those that cannot be what is asked for.

    ``texts`` are values of the flag, each ``name=true,other=false``; a later one counts. Features of the other program
    are taken in silence, as the flag is the same for all programs. Raises OptionError for what cannot be read.
    """
    table = {feature.name: feature for feature in features}
    asked: dict[str, bool] = {}
    for text in texts:
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = part.partition("=")
            if not equals:
                raise OptionError(f"{FLAG}: {part!r} says neither true nor false: write {part}=true")
            try:
                asked[name.strip()] = parse_boolean(value.strip())
            except OptionError as error:
                raise OptionError(f"{FLAG}: {name.strip()}: {error}") from error
    enabled = {name: feature.as_here for name, feature in table.items()}
    aside: list[LeftAside] = []
    for name, on in asked.items():
        feature, shown = table.get(name), f"{FLAG}={name}={str(on).lower()}"
        if feature is None:
            if name not in _EVERYBODYS:
                aside.append(LeftAside(shown, "nobody knows this feature here"))
        elif on != feature.as_here and feature.otherwise:
            aside.append(LeftAside(shown, feature.otherwise))
        else:
            enabled[name] = on
    return enabled, aside
