"""Resourcequota: jobs whose pods a quota of their namespace would refuse are not let in.

For every ResourceQuota of the job's namespace:

    let in <=>  used + reserved + min <= hard   in every name of which minResources ask for any and the quota limits it

with used and hard from the quota's status, and reserved = minResources of the jobs of the namespace that are let in
during this session, and of those that were let in before (phase Inqueue) what no pod of theirs asks for yet. Names must
be equal: ``cpu`` is not ``requests.cpu``; the PodGroups that the controllers make name both. A job without minResources
is let in. Scopes of quotas are not looked at. (Volcano: plugins/resourcequota.)

Differences: Volcano forgets after a session whom it let in, and lets the next one in too before the first has its pods.
It names any one of several quotas that refuse; here it is the first by name.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.contract.extension_points import JobEnqueueable, JobEnqueued, Vote
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.facts import QuotaRecord
from volcano_py.model.objects import JobRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import format_amount, is_scalar
from volcano_py.model.statuses import PodGroupPhase

_PREFIXES: Final = ("requests.", "limits.")


class ResourceQuotas(Plugin, JobEnqueueable, JobEnqueued):
    """Quotas of namespaces at the door."""

    name = "resourcequota"

    def on_session_open(self, ssn: State) -> None:
        """Add up what jobs that were let in before will still take of their namespaces' quotas."""
        self._quotas = ssn.facts.quotas
        self._reserved: dict[str, dict[str, float]] = {}  # namespace -> name -> amount
        self._own: dict[int, dict[str, float]] = {}  # job row -> its part of that, as the session opened
        if not self._quotas:
            return
        jobs, names = ssn.jobs, ssn.resources.names
        there = jobs.allocated + jobs.pending  # (n_resources, n_jobs), pods that a quota counts as used
        # A Python loop over the jobs that have been let in and are not running yet, in namespaces that have quotas.
        for row in np.flatnonzero(jobs.rules.present & (jobs.phase == PodGroupPhase.INQUEUE)).tolist():
            record = jobs.record(row)
            if record.key.namespace in self._quotas and record.min_resources is not None:
                held = dict(zip(names, there[:, row].tolist(), strict=True))
                self._own[row] = _lacking(record, held)
                self._reserve(record.key.namespace, self._own[row])

    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Permit a job that fits into all quotas of its namespace, reject any other."""
        if job.record.min_resources is None:
            return Vote.PERMIT
        asked = _asked(job.record)
        reserved, own = self._reserved.get(job.key.namespace, {}), self._own.get(job.row, {})
        for quota in self._quotas.get(job.key.namespace, ()):
            over = [
                name
                for name, amount in sorted(asked.items())
                if name in quota.hard
                and amount + quota.used.get(name, 0.0) + reserved.get(name, 0.0) - own.get(name, 0.0) > quota.hard[name]
            ]
            if over:
                return Reason(self.name, "quota-exceeded", _text(quota, asked, over))
        return Vote.PERMIT

    def job_enqueued(self, job: JobInfo) -> None:
        """Count what the job will take of its namespace's quotas."""
        if job.record.min_resources is not None and job.key.namespace in self._quotas:
            self._reserve(job.key.namespace, _asked(job.record))

    def _reserve(self, namespace: str, amounts: Mapping[str, float]) -> None:
        reserved = self._reserved.setdefault(namespace, {})
        for name, amount in amounts.items():
            reserved[name] = reserved.get(name, 0.0) + amount


def _asked(record: JobRecord) -> dict[str, float]:
    return {**(record.min_resources or {}), **{name: amount for name, amount in record.min_quota.items() if amount}}


def _lacking(record: JobRecord, held: Mapping[str, float]) -> dict[str, float]:
    """Return what the pods that a job lacks will take of quotas, by what those that it has ask for.

    Names that only quotas have go by what they stand for (``requests.cpu``: cpu, ``count/pods``: pods); the others
    (``limits.cpu``) are lacking as long as there is no pod at all.
    """
    lacking = {}
    for name, amount in _asked(record).items():
        plain = name.removeprefix("requests.").removeprefix("count/")
        unit = 1.0 if name == plain or plain not in (keys.MEMORY, keys.PODS) else 1000.0  # see `model.facts`
        there = held.get(plain, amount if held[keys.PODS] else 0.0) * unit
        lacking[name] = max(amount - there, 0.0)
    return lacking


def _text(quota: QuotaRecord, asked: Mapping[str, float], over: list[str]) -> str:
    """Return Volcano's sentence with the amounts of what is exceeded, and the name of the quota."""
    parts = (
        f"{word}: " + ",".join(f"{name}={_written(name, amounts.get(name, 0.0))}" for name in over)
        for word, amounts in (("requested", asked), ("used", quota.used), ("limited", quota.hard))
    )
    return f"resource quota insufficient, {', '.join(parts)} (ResourceQuota {quota.namespace}/{quota.name})"


def _written(name: str, amount: float) -> str:
    """Return an amount as people write it; what only quotas count is in thousandths (`model.facts`)."""
    if name in (keys.CPU, keys.MEMORY, keys.PODS) or is_scalar(name):
        return format_amount(name, amount)
    plain = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), "")
    return format_amount(plain, amount / 1000 if plain == keys.MEMORY else amount)
