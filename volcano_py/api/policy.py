"""The group ``policy``: pod disruption budgets."""

from datetime import datetime

from volcano_py.api.meta import LabelSelector, ObjectMeta, Wire


class PodDisruptionBudgetSpec(Wire, frozen=True):
    """Which pods a budget protects; how many of them is the disruption controller's business."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    """How many disruptions the controller allows now."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, datetime | None] = {}


class PodDisruptionBudget(Wire, frozen=True):
    """A limit to how many pods may be taken away at once."""

    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
