"""The flag ``--feature-gates``: the features of Volcano and of Kubernetes' scheduler, and the effect of each value.

Some features can be switched. Each other feature is always on or always off here. The value that matches is accepted
silently. The other value is listed in the warning about flags, with what is missing or what to do instead.
`docs/flags.md` shows the table.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from volcano_py.api import keys
from volcano_py.cli.volcano_flags import IgnoredFlag, parse_boolean
from volcano_py.runtime.options import OptionError

FLAG: Final = "--feature-gates"


class Feature(NamedTuple):
    """One feature."""

    name: str
    as_here: bool  # the value without the flag
    otherwise: str = ""  # why the other value has no effect; "" if it switches the feature


_ROOM: Final = "what CSI drivers say about their room always counts"
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
_OF_VOLUMES: Final = (
    Feature("CSIStorage", True, _ROOM),
    Feature("StorageCapacityScoring", False, _NEVER),
    Feature("VolumeAttributesClass", True, _ALWAYS),
    Feature("VolumeLimitScaling", False, _NEVER),
)

SCHEDULER_FEATURES: Final = (
    Feature(keys.QUEUE_ADMISSION, False),
    Feature(
        "PodDisruptionBudgetsSupport", True, "budgets are always watched; to ignore them, leave out the plugin pdb"
    ),
    Feature("PriorityClass", True, "PriorityClasses are always read; to ignore them, leave out the plugin priority"),
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
    Feature("WorkLoadSupport", True, "PodGroups are always made for workloads; to avoid that, leave out pg-controller"),
    Feature("VolcanoJobSupport", True, "jobs are always run; to avoid that, leave out job-controller"),
    Feature("CronVolcanoJobSupport", True, "cron jobs are always run; to avoid that, leave out cronjob-controller"),
    Feature("QueueCommandSync", True, "commands for queues are always carried out"),
)

ADMISSION_FEATURES: Final = (Feature(keys.QUEUE_ADMISSION, False),)

_ALL_NAMES: Final = frozenset(feature.name for feature in (*SCHEDULER_FEATURES, *CONTROLLER_FEATURES))


def read_feature_gates(
    texts: Iterable[str], features: Iterable[Feature]
) -> tuple[Mapping[str, bool], list[IgnoredFlag]]:
    """Return whether each feature is on, by name, and the features that cannot be switched as asked.

    ``texts`` are values of the flag, each like ``name=true,other=false``; the last value of a feature counts. Features
    of the other program are accepted silently, so that one flag serves all programs. Raises OptionError for text that
    cannot be read.
    """
    table = {feature.name: feature for feature in features}
    asked: dict[str, bool] = {}
    for text in texts:
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = part.partition("=")
            if not equals:
                raise OptionError(f"{FLAG}: {part!r} is neither true nor false: write {part}=true")
            try:
                asked[name.strip()] = parse_boolean(value.strip())
            except OptionError as error:
                raise OptionError(f"{FLAG}: {name.strip()}: {error}") from error
    enabled = {name: feature.as_here for name, feature in table.items()}
    ignored: list[IgnoredFlag] = []
    for name, on in asked.items():
        feature, shown = table.get(name), f"{FLAG}={name}={str(on).lower()}"
        if feature is None:
            if name not in _ALL_NAMES:
                ignored.append(IgnoredFlag(shown, "unknown feature"))
        elif on != feature.as_here and feature.otherwise:
            ignored.append(IgnoredFlag(shown, feature.otherwise))
        else:
            enabled[name] = on
    return enabled, ignored
