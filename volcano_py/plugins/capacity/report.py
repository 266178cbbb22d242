"""What users are told of a queue: amounts by name of the resource."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from volcano_py.framework.memory import QueueReport
from volcano_py.model.resource_lists import UNLIMITED
from volcano_py.model.resources import CPU_ROW, MEMORY_ROW, Floats
from volcano_py.plugins.capacity.entitlements import Entitlements


@dataclass(frozen=True, eq=False)
class Amounts:
    """What queues and all below them come to, each (n_resources, n_queues)."""

    held: Floats
    request: Floats
    reserved: Floats
    due: Entitlements

    def of(self, row: int, names: Sequence[str], share: float) -> QueueReport:
        """Return the report of a queue; a queue is overused if it holds more than it deserves (Volcano)."""

        def named(columns: Floats) -> dict[str, float]:
            return dict(zip(names, columns[:, row].tolist(), strict=True))

        def limits(columns: Floats) -> dict[str, float]:
            """Return limits: none of cpu or memory is the greatest double, one of a scalar is left out."""
            return {
                name: min(amount, UNLIMITED)
                for resource, (name, amount) in enumerate(named(columns).items())
                if not np.isinf(amount) or resource in (CPU_ROW, MEMORY_ROW)
            }

        return QueueReport(
            weight=None,
            share=share,
            overused=share > 1,
            allocated=named(self.held),
            request=named(self.request),
            deserved=named(self.due.deserved),
            inqueue=named(self.reserved),
            capacity=limits(self.due.capability),
            real_capacity=limits(self.due.ceiling),
        )
