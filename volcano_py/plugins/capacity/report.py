"""Queue reports for users, with amounts by resource name."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from volcano_py.framework.state.report import QueueReport
from volcano_py.model.arrays import Floats
from volcano_py.model.resource_lists import UNLIMITED
from volcano_py.model.resources import CPU_ROW, MEMORY_ROW
from volcano_py.plugins.capacity.entitlements import Entitlements


@dataclass(frozen=True, eq=False)
class Amounts:
    """Sums over each queue and all queues below it, each (n_resources, n_queues)."""

    held: Floats
    request: Floats
    reserved: Floats
    due: Entitlements

    def reports(self, names: Sequence[str], shares: Sequence[float]) -> Iterator[QueueReport]:
        """Yield the report of each queue in turn; a queue is overused if it holds more than it deserves (Volcano)."""
        due = self.due
        columns = (self.held, self.request, due.deserved, self.reserved, due.capability, due.ceiling)
        # A Python loop over queues: there is one report per queue.
        for share, *amounts in zip(shares, *(column.T.tolist() for column in columns), strict=True):
            held, request, deserved, reserved = (dict(zip(names, row, strict=True)) for row in amounts[:4])
            yield QueueReport(
                weight=None,
                share=share,
                overused=share > 1,
                allocated=held,
                request=request,
                deserved=deserved,
                inqueue=reserved,
                capacity=_limits(names, amounts[4]),
                real_capacity=_limits(names, amounts[5]),
            )


def _limits(names: Sequence[str], amounts: Sequence[float]) -> dict[str, float]:
    """Return limits by name; an unlimited cpu or memory is the greatest double, an unlimited scalar is left out."""
    return {
        name: min(amount, UNLIMITED)
        for resource, (name, amount) in enumerate(zip(names, amounts, strict=True))
        if amount != inf or resource in (CPU_ROW, MEMORY_ROW)
    }
