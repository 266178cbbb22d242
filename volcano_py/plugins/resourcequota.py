"""Resourcequota: a job is not enqueued if a quota of its namespace would refuse its pods.

For every ResourceQuota of the job's namespace:

    enqueued <=>  used + reserved + min <= hard   in every name that minResources request and the quota limits

used, hard  from the quota's status
reserved    minResources of the namespace's jobs that this session enqueues; and for the jobs enqueued before (phase
            Inqueue) the part of minResources that none of their pods requests yet

Names must be equal: ``cpu`` is not ``requests.cpu``; PodGroups made by the controllers name both. A job without
minResources is enqueued. Scopes of quotas are ignored. (Volcano: plugins/resourcequota.)

Differences: Volcano forgets after each session which jobs it has enqueued, so it may enqueue the next job before the
first one has its pods. If several quotas refuse, Volcano names any of them; here it is the first by name.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.contract.extension_points import JobEnqueueable, JobEnqueued, Vote, Votes
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.facts import QuotaRecord
from volcano_py.model.objects import JobRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import format_amount, is_scalar
from volcano_py.model.statuses import PodGroupPhase

_PREFIXES: Final = ("requests.", "limits.")


class ResourceQuotas(Plugin, JobEnqueueable, JobEnqueued):
    """Enqueueing of jobs within the quotas of their namespaces."""

    name = "resourcequota"

    def on_session_open(self, ssn: State) -> None:
        """Sum up what jobs enqueued before this session will still use of their namespaces' quotas."""
        self._ssn, self._quotas = ssn, ssn.facts.quotas
        self._reserved: dict[str, dict[str, float]] = {}  # namespace -> name -> amount
        self._own: dict[int, dict[str, float]] = {}  # job row -> its part of that when the session opened
        if not self._quotas:
            return
        jobs, names = ssn.jobs, ssn.resources.names
        there = jobs.allocated + jobs.pending  # (n_resources, n_jobs), requests of pods that quotas count as used
        # A Python loop over the jobs in phase Inqueue, most of them in namespaces without quotas.
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

    def enqueueable_jobs(self, jobs: Rows) -> Votes:
        """Permit the jobs of namespaces without a quota; each other job is asked about."""
        quotas, records = self._quotas, self._ssn.jobs.records
        places = np.zeros(len(jobs), dtype=np.int64)
        if quotas:  # a Python loop over jobs: namespaces are in their records
            of = [records[row] for row in jobs.tolist()]
            places[[record is not None and record.key.namespace in quotas for record in of]] = -1
        return Votes(places, [Vote.PERMIT])

    def job_enqueued(self, job: JobInfo) -> None:
        """Reserve the job's minResources in its namespace's quotas."""
        if job.record.min_resources is not None and job.key.namespace in self._quotas:
            self._reserve(job.key.namespace, _asked(job.record))

    def _reserve(self, namespace: str, amounts: Mapping[str, float]) -> None:
        reserved = self._reserved.setdefault(namespace, {})
        for name, amount in amounts.items():
            reserved[name] = reserved.get(name, 0.0) + amount


def _asked(record: JobRecord) -> dict[str, float]:
    return {**(record.min_resources or {}), **{name: amount for name, amount in record.min_quota.items() if amount}}


def _lacking(record: JobRecord, held: Mapping[str, float]) -> dict[str, float]:
    """Return the part of a job's minResources that its present pods do not request; ``held`` is what they request.

    A name that only quotas have is compared with the resource it refers to (``requests.cpu``: cpu, ``count/pods``:
    pods). Other such names (``limits.cpu``) count in full while the job has no pod, and not at all afterwards.
    """
    lacking = {}
    for name, amount in _asked(record).items():
        plain = name.removeprefix("requests.").removeprefix("count/")
        unit = 1.0 if name == plain or plain not in (keys.MEMORY, keys.PODS) else 1000.0  # see `model.facts`
        there = held.get(plain, amount if held[keys.PODS] else 0.0) * unit
        lacking[name] = max(amount - there, 0.0)
    return lacking


def _text(quota: QuotaRecord, asked: Mapping[str, float], over: list[str]) -> str:
    """Return Volcano's sentence with the exceeded amounts and the name of the quota."""
    parts = (
        f"{word}: " + ",".join(f"{name}={_written(name, amounts.get(name, 0.0))}" for name in over)
        for word, amounts in (("requested", asked), ("used", quota.used), ("limited", quota.hard))
    )
    return f"resource quota insufficient, {', '.join(parts)} (ResourceQuota {quota.namespace}/{quota.name})"


def _written(name: str, amount: float) -> str:
    """Return an amount in the usual notation; amounts that only quotas count are in thousandths (`model.facts`)."""
    if name in (keys.CPU, keys.MEMORY, keys.PODS) or is_scalar(name):
        return format_amount(name, amount)
    plain = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), "")
    return format_amount(plain, amount / 1000 if plain == keys.MEMORY else amount)
