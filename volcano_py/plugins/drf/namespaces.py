"""Shares of namespaces within a queue, for queues that are divided fairly between namespaces.

    share(queue, namespace) = dominant share of what the namespace's jobs in the queue hold / weight

The weight of a namespace comes from its ResourceQuotas (``volcano.sh/namespace.weight`` in spec.hard): the highest of
several, 1 without any. A namespace with jobs in two queues competes in each queue separately. (Volcano:
docs/design/fairshare, written in 2019 and dropped; cases E5.)
"""

from collections.abc import Sequence

import numpy as np

from volcano_py.framework.state.queue_accounts import JobSums
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Rows
from volcano_py.plugins.drf.tree import dominant_share


class NamespaceShares:
    """Sums by queue and namespace, updated by every statement."""

    def __init__(self, ssn: State, shared: Rows, total: Floats) -> None:
        """Take the rows of the shared resources (n_shared,) and their totals in the cluster (n_shared,)."""
        self._shared = shared
        self._total = total
        self._rows: dict[tuple[int, str], int] = {}
        nowhere = np.zeros(0, dtype=np.intp)
        groups = [nowhere] * len(ssn.jobs)
        # A Python loop over jobs: namespaces are in their records.
        for row in ssn.jobs.present().tolist():
            queue = int(ssn.queue_of_job[row])
            if queue >= 0:
                key = (queue, ssn.jobs.record(row).key.namespace)
                groups[row] = np.array([self._rows.setdefault(key, len(self._rows))], dtype=np.intp)
        self._sums = JobSums(groups, len(self._rows), ssn.jobs)
        ssn.accounts.track(self._sums)
        weights = [float(ssn.facts.namespace_weight(namespace)) for _, namespace in self._rows]
        self._weights = np.array(weights)

    def of(self, queue: int, namespaces: Sequence[str]) -> Floats:
        """Return the weighted shares of namespaces that have jobs in a queue, shape (n_namespaces,)."""
        rows = np.array([self._rows[queue, namespace] for namespace in namespaces], dtype=np.intp)
        held = self._sums.taken[self._shared][:, rows]
        return np.asarray(dominant_share(held, self._total) / self._weights[rows])
