"""Metrics say what happened: Volcano's names, after a hundred jobs, against all versions of the objects.

Counts and, at rest, gauges must be exact. The times of objects are whole seconds, so sums of durations are exact to a
second for each pod.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import pytest

from tests.e2e.exposed import Exposed, labels
from tests.e2e.hundred_jobs import GPU, QUEUE_SPECS, Run
from tests.e2e.what_happened import Amounts, Happened, amounts
from volcano_py.api import keys

pytestmark = pytest.mark.timeout(480)  # the first test waits for the hundred jobs
SCHEDULER, CONTROLLERS, WEBHOOKS = (f"volcano-{name}-service" for name in ("scheduler", "controllers", "admission"))
UNLIMITED = 1.7976931348623157e308
ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim")
PLUGINS = ("priority", "gang", "conformance", "drf", "predicates", "capacity", "nodeorder")
STAGES = ("Watched", "Assumed", "PreBound", "Bound")
BIND_BACK_S = 1.0  # whole seconds in objects
SLOW_BIND_S = 6.0  # what a bind may take on a busy machine, and a second
KINDS = ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")


class Wanted(NamedTuple):
    """A metric of the reference: where it is, its type and labels."""

    service: str
    kind: str
    labels: tuple[str, ...] = ()


REFERENCE: dict[str, Wanted] = {
    "volcano_job_completed_phase_count": Wanted(CONTROLLERS, "counter", ("job_name", "queue_name")),
    "volcano_job_failed_phase_count": Wanted(CONTROLLERS, "counter", ("job_name", "queue_name")),
    "volcano_jobflow_succeed_phase_count": Wanted(CONTROLLERS, "counter", ("jobflow_namespace",)),
    "volcano_jobflow_failed_phase_count": Wanted(CONTROLLERS, "counter", ("jobflow_namespace",)),
    "volcano_controller_job_to_pod_creation_latency_milliseconds": Wanted(CONTROLLERS, "histogram"),
    **{
        f"volcano_queue_pod_group_{phase}_count": Wanted(CONTROLLERS, "gauge", ("queue_name",))
        for phase in ("inqueue", "pending", "running", "unknown", "completed")
    },
    "volcano_e2e_scheduling_latency_milliseconds": Wanted(SCHEDULER, "histogram"),
    "volcano_open_session_duration_milliseconds": Wanted(SCHEDULER, "histogram"),
    "volcano_e2e_job_scheduling_latency_milliseconds": Wanted(SCHEDULER, "histogram"),
    **{
        f"volcano_e2e_job_scheduling_{what}": Wanted(SCHEDULER, "gauge", ("job_name", "queue", "job_namespace"))
        for what in ("duration", "start_time", "last_time")
    },
    "volcano_plugin_scheduling_latency_milliseconds": Wanted(SCHEDULER, "histogram", ("plugin", "OnSession")),
    "volcano_action_scheduling_latency_milliseconds": Wanted(SCHEDULER, "histogram", ("action",)),
    "volcano_task_scheduling_latency_milliseconds": Wanted(SCHEDULER, "histogram", ("stage",)),
    "volcano_scheduling_stage_duration_milliseconds": Wanted(SCHEDULER, "histogram", ("stage",)),
    "volcano_pod_preemption_victims": Wanted(SCHEDULER, "gauge"),
    "volcano_total_preemption_attempts": Wanted(SCHEDULER, "counter"),
    "volcano_eviction_transactions_total": Wanted(SCHEDULER, "counter", ("action",)),
    "volcano_schedule_attempts_total": Wanted(SCHEDULER, "counter", ("result",)),
    "volcano_unschedule_task_count": Wanted(SCHEDULER, "gauge", ("job_id",)),
    "volcano_unschedule_job_count": Wanted(SCHEDULER, "gauge"),
    "volcano_job_retry_counts": Wanted(SCHEDULER, "counter", ("job_id",)),
    "volcano_job_share": Wanted(SCHEDULER, "gauge", ("job_ns", "job_id")),
    "volcano_queue_share": Wanted(SCHEDULER, "gauge", ("queue_name",)),
    "volcano_queue_overused": Wanted(SCHEDULER, "gauge", ("queue_name",)),
    **{f"volcano_queue_{kind}_milli_cpu": Wanted(SCHEDULER, "gauge", ("queue_name",)) for kind in KINDS},
    **{f"volcano_queue_{kind}_memory_bytes": Wanted(SCHEDULER, "gauge", ("queue_name",)) for kind in KINDS},
    **{
        f"volcano_queue_{kind}_scalar_resources": Wanted(SCHEDULER, "gauge", ("queue_name", "resource"))
        for kind in KINDS
    },
    "rest_client_requests_total": Wanted(SCHEDULER, "counter", ("method", "code")),
    "rest_client_request_duration_seconds": Wanted(CONTROLLERS, "histogram", ("verb",)),
}
"""Metrics that Volcano's dashboards or its reference name. `volcano_queue_weight` follows below, as it is the plugin
`proportion` that sets it."""


@pytest.fixture(scope="module")
def happened(hundred_jobs: Run) -> Happened:
    return Happened(hundred_jobs)


@pytest.fixture
def scheduler(hundred_jobs: Run) -> Exposed:
    return hundred_jobs.at_rest[SCHEDULER]


@pytest.fixture
def controllers(hundred_jobs: Run) -> Exposed:
    return hundred_jobs.at_rest[CONTROLLERS]


@pytest.mark.parametrize(("name", "wanted"), REFERENCE.items(), ids=list(REFERENCE))
def test_it_is_there_with_type_and_labels(hundred_jobs: Run, name: str, wanted: Wanted) -> None:
    page = hundred_jobs.at_rest[wanted.service]
    suffix = "_count" if wanted.kind == "histogram" else ""
    found = {tuple(sorted(dict(one))) for one in page.values(f"{name}{suffix}")}

    assert page.types[name] == wanted.kind
    assert found == {tuple(sorted(wanted.labels))}


def test_a_hundred_jobs_ran(hundred_jobs: Run, happened: Happened) -> None:
    assert len(hundred_jobs.jobs) == len(happened.jobs) == 100
    assert Counter(hundred_jobs.jobs.values()) == {"Completed": 75, "Failed": 11, "Running": 10, "Pending": 4}


# Controllers


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_ended_jobs(controllers: Exposed, happened: Happened, phase: str) -> None:
    entered = happened.entered(happened.jobs, phase)

    assert controllers.values(f"volcano_job_{phase.lower()}_phase_count") == {
        labels({"job_name": job, "queue_name": happened.queue_of_job(job)}): times for job, times in entered.items()
    }


@pytest.mark.parametrize("phase", ["Succeed", "Failed"])
def test_ended_flows(controllers: Exposed, happened: Happened, phase: str) -> None:
    entered = Counter(key.split("/")[0] for key in happened.entered(happened.flows, phase))

    assert controllers.by("jobflow_namespace", f"volcano_jobflow_{phase.lower()}_phase_count") == entered


@pytest.mark.parametrize("phase", ["Inqueue", "Pending", "Running", "Unknown", "Completed"])
def test_pod_groups_of_queues(controllers: Exposed, happened: Happened, phase: str) -> None:
    wanted = {queue: phases[phase] for queue, phases in happened.group_phases().items()}

    assert controllers.by("queue_name", f"volcano_queue_pod_group_{phase.lower()}_count") == wanted


def test_from_jobs_to_their_pods(controllers: Exposed, happened: Happened) -> None:
    name = "volcano_controller_job_to_pod_creation_latency_milliseconds"
    ages = sum(pod.created - happened.job_created(pod) for pod in happened.pods)
    n = len(happened.pods)

    assert controllers.one(f"{name}_count") == n
    assert ages * 1000 <= controllers.one(f"{name}_sum") <= (ages + n * BIND_BACK_S) * 1000


def test_created_pods_are_counted_as_requests(controllers: Exposed, happened: Happened) -> None:
    created = controllers.one("volcano_py_api_requests_total", verb="create", resource="pods", result="201")

    assert created == len(happened.pods)


@pytest.mark.parametrize("service", [SCHEDULER, CONTROLLERS, WEBHOOKS])
def test_requests_by_method_are_the_same_requests(hundred_jobs: Run, service: str) -> None:
    page = hundred_jobs.at_rest[service]
    total = page.total("volcano_py_api_requests_total")

    assert total > 0
    assert page.total("rest_client_requests_total") == total
    assert page.total("rest_client_request_duration_seconds_count") == total
    seconds = page.total("volcano_py_api_request_seconds_sum")
    assert page.total("rest_client_request_duration_seconds_sum") == pytest.approx(seconds)


# Cycles


def test_every_cycle_is_timed_once(scheduler: Exposed) -> None:
    cycles = scheduler.one("volcano_py_cycles_total", result="ended")

    assert cycles > 100
    assert scheduler.one("volcano_e2e_scheduling_latency_milliseconds_count") == cycles
    assert scheduler.one("volcano_open_session_duration_milliseconds_count") == cycles
    assert scheduler.total("volcano_py_wakeups_total") - cycles in {0, 1}  # one may be under way
    assert scheduler.by("action", "volcano_action_scheduling_latency_milliseconds_count") == dict.fromkeys(
        ACTIONS, cycles
    )
    assert scheduler.values("volcano_plugin_scheduling_latency_milliseconds_count") == {
        labels({"plugin": plugin, "OnSession": hook}): cycles
        for plugin in PLUGINS
        for hook in ("OnSessionOpen", "OnSessionClose")
    }


def test_the_parts_of_a_cycle_are_shorter_than_the_cycle(hundred_jobs: Run, scheduler: Exposed) -> None:
    total = scheduler.one("volcano_e2e_scheduling_latency_milliseconds_sum")
    opening = scheduler.one("volcano_open_session_duration_milliseconds_sum")
    actions = scheduler.total("volcano_action_scheduling_latency_milliseconds_sum")
    ranking = sum(
        scheduler.one("volcano_scheduling_stage_duration_milliseconds_sum", stage=stage)
        for stage in ("Predicate", "Scoring")
    )

    assert 0 < opening + actions < total < (hundred_jobs.rested - hundred_jobs.began + 30) * 1000
    assert 0 < ranking < actions


def test_cycles_that_placed_pods_say_so_in_the_log(hundred_jobs: Run, scheduler: Exposed) -> None:
    before_deletion = hundred_jobs.logs["scheduler"].split('"actions"')[1]  # from the first configuration to the second
    placed = sum(int(found) for found in re.findall(r'"placed": (\d+)', before_deletion))

    assert scheduler.one("volcano_schedule_attempts_total", result="scheduled") == placed


# Pods


def test_every_bound_pod_is_counted_in_each_stage(scheduler: Exposed, happened: Happened) -> None:
    bound = len(happened.bound)

    assert scheduler.by("stage", "volcano_task_scheduling_latency_milliseconds_count") == {
        **dict.fromkeys(STAGES, bound),
        "Watched": len(happened.pods),
    }
    stages = scheduler.by("stage", "volcano_scheduling_stage_duration_milliseconds_count")
    assert (stages["PreBind"], stages["Bind"]) == (bound, bound)
    assert stages["Predicate"] >= stages["Scoring"] > 0
    assert scheduler.one("volcano_py_binds_total", result="bound") == bound
    assert scheduler.one("volcano_schedule_attempts_total", result="scheduled") == bound
    created = scheduler.one("volcano_py_api_requests_total", verb="create", resource="pods/binding", result="201")
    assert created == bound


def test_ages_of_pods_when_they_were_bound(scheduler: Exposed, happened: Happened) -> None:
    sums = scheduler.by("stage", "volcano_task_scheduling_latency_milliseconds_sum")
    ages = sum((pod.bound or 0.0) - pod.created for pod in happened.bound)
    n = len(happened.bound)

    assert sums["Assumed"] <= sums["PreBound"] <= sums["Bound"]
    assert (ages - n * BIND_BACK_S) * 1000 <= sums["Bound"] <= (ages + n * BIND_BACK_S) * 1000


def test_ages_of_pod_groups_when_their_pods_were_placed(scheduler: Exposed, happened: Happened) -> None:
    name = "volcano_e2e_job_scheduling_latency_milliseconds"
    ages = sum((pod.bound or 0.0) - happened.group_created(pod) for pod in happened.bound)
    n = len(happened.bound)
    stages = scheduler.by("stage", "volcano_task_scheduling_latency_milliseconds_sum")
    binding = stages["Bound"] - stages["Assumed"]  # a pod is placed before it is bound

    assert scheduler.one(f"{name}_count") == n
    placed = scheduler.one(f"{name}_sum") + binding
    assert (ages - n * BIND_BACK_S) * 1000 <= placed <= (ages + n * BIND_BACK_S) * 1000


def test_times_of_jobs(scheduler: Exposed, happened: Happened) -> None:
    last: dict[str, float] = {}
    for pod in happened.bound:
        if pod.group in happened.alive_groups:
            last[pod.group] = max(last.get(pod.group, 0.0), pod.bound or 0.0)

    def shown(what: str) -> dict[str, float]:
        found = scheduler.values(f"volcano_e2e_job_scheduling_{what}")
        for series in found:
            key = f"{dict(series)['job_namespace']}/{dict(series)['job_name']}"
            assert dict(series)["queue"] == happened.alive_groups[key]["spec"]["queue"]
        return {f"{dict(one)['job_namespace']}/{dict(one)['job_name']}": value for one, value in found.items()}

    starts, lasts, durations = shown("start_time"), shown("last_time"), shown("duration")
    assert starts.keys() == lasts.keys() == durations.keys() == last.keys()
    for key, bound in last.items():
        assert starts[key] == pytest.approx(_created(happened, key), abs=1e-3)
        assert bound - SLOW_BIND_S <= lasts[key] <= bound + BIND_BACK_S
        assert durations[key] == pytest.approx((lasts[key] - starts[key]) * 1000, abs=1.0)


def test_jobs_below_their_minimum(scheduler: Exposed, happened: Happened) -> None:
    below = happened.below_minimum()

    assert len(below) == 4
    assert scheduler.by("job_id", "volcano_unschedule_task_count") == below
    assert scheduler.one("volcano_unschedule_job_count") == len(below)
    retries = scheduler.by("job_id", "volcano_job_retry_counts")
    assert retries.keys() == below.keys()
    cycles = scheduler.one("volcano_py_cycles_total", result="ended")
    assert all(0 < times <= cycles for times in retries.values())


def test_shares_of_jobs(scheduler: Exposed, happened: Happened) -> None:
    total = happened.capacity
    wanted = {
        labels({"job_ns": key.split("/")[0], "job_id": key.split("/")[1]}): max(
            held.milli_cpu / total.milli_cpu, held.memory_bytes / total.memory_bytes, held.gpus / total.gpus
        )
        for key, held in happened.held_by_job().items()
    }

    assert scheduler.values("volcano_job_share") == pytest.approx(wanted)


def test_evictions(hundred_jobs: Run, scheduler: Exposed, happened: Happened) -> None:
    evicted = sum(pod.evicted for pod in happened.pods)
    plans = re.findall(r'"action": "(\w+)", "victims": (\d+)', hundred_jobs.logs["scheduler"])

    assert evicted == 2
    assert sum(int(victims) for _, victims in plans) == evicted
    transactions = scheduler.by("action", "volcano_eviction_transactions_total")
    assert {action: count for action, count in transactions.items() if count} == Counter(action for action, _ in plans)
    assert scheduler.one("volcano_pod_preemption_victims") == int(plans[-1][1])
    assert scheduler.one("volcano_py_evictions_total", result="evicted") == evicted
    assert scheduler.one("volcano_total_preemption_attempts") >= len(plans)


# Queues


def by_queue(page: Exposed, kind: str) -> dict[str, Amounts]:
    cpu = page.by("queue_name", f"volcano_queue_{kind}_milli_cpu")
    memory = page.by("queue_name", f"volcano_queue_{kind}_memory_bytes")
    scalars = f"volcano_queue_{kind}_scalar_resources"
    gpus = page.by("queue_name", scalars, resource=GPU)
    pods = page.by("queue_name", scalars, resource="pods")
    return {queue: Amounts(cpu[queue], memory[queue], gpus.get(queue, 0.0), pods.get(queue, 0.0)) for queue in cpu}


@pytest.mark.parametrize("conf", ["capacity", "proportion"])
def test_what_queues_hold_and_ask_for(hundred_jobs: Run, scheduler: Exposed, happened: Happened, conf: str) -> None:
    page = scheduler if conf == "capacity" else hundred_jobs.by_weight

    assert by_queue(page, "allocated") == happened.held_by_queue()
    assert by_queue(page, "request") == happened.requested_by_queue()


def test_what_is_reserved_for_enqueued_jobs(scheduler: Exposed, happened: Happened) -> None:
    wanted = dict.fromkeys(happened.queues, Amounts())
    for obj in happened.alive_groups.values():
        if obj["status"]["phase"] == "Inqueue":
            queue = obj["spec"]["queue"]
            found = amounts(obj["spec"]["minResources"])
            wanted[queue] = wanted[queue].plus(found)

    assert by_queue(scheduler, "inqueue") == wanted


def test_what_queues_deserve_and_may_hold(hundred_jobs: Run, scheduler: Exposed, happened: Happened) -> None:
    names = hundred_jobs.queues
    deserved = {name: amounts(QUEUE_SPECS.get(name, {}).get("deserved", {})) for name in names}
    guaranteed = amounts(QUEUE_SPECS["batch"]["guarantee"]["resource"])
    total = happened.capacity
    left = Amounts(total.milli_cpu - guaranteed.milli_cpu, total.memory_bytes - guaranteed.memory_bytes)

    shown = {kind: by_queue(scheduler, kind) for kind in ("deserved", "capacity", "real_capacity")}
    for name, queue in names.items():
        assert shown["deserved"][queue] == deserved[name], name
        limits = QUEUE_SPECS.get(name, {}).get("capability")
        own = total if name == "batch" else left  # a queue may use its own guarantee, but not that of another
        limit = (UNLIMITED, UNLIMITED) if limits is None else amounts(limits)[:2]
        assert shown["capacity"][queue][:2] == limit, name
        assert shown["real_capacity"][queue][:2] == tuple(map(min, limit, own[:2])), name


def test_shares_of_queues(hundred_jobs: Run, scheduler: Exposed, happened: Happened) -> None:
    held = happened.held_by_queue()
    shares = scheduler.by("queue_name", "volcano_queue_share")
    for name, spec in QUEUE_SPECS.items():
        queue = hundred_jobs.queues[name]
        deserved = amounts(spec["deserved"])
        pairs = list(zip(held[queue], deserved, strict=True))[:3]
        assert shares[queue] == pytest.approx(max(has / due for has, due in pairs if due)), name
        assert scheduler.one("volcano_queue_overused", queue_name=queue) == 0, name


def test_weights_of_queues_and_what_they_deserve_by_weight(hundred_jobs: Run, happened: Happened) -> None:
    page = hundred_jobs.by_weight
    weights = {name: obj["spec"].get("weight", 1) for name, obj in happened.queues.items()}

    assert page.by("queue_name", "volcano_queue_weight") == weights
    deserved = by_queue(page, "deserved")
    assert sum(amount.milli_cpu for amount in deserved.values()) <= happened.capacity.milli_cpu
    for queue, has in happened.held_by_queue().items():
        assert deserved[queue].milli_cpu >= has.milli_cpu, queue  # nobody asks for more than there is
    assert "volcano_queue_capacity_milli_cpu{" not in page.text  # the other plugin's


# After the end


def test_series_of_deleted_jobs_and_queues_are_gone(hundred_jobs: Run) -> None:
    gone = {*hundred_jobs.jobs, *(job.split("/")[1] for job in hundred_jobs.jobs)}
    queues = set(hundred_jobs.queues.values()) - {keys.DEFAULT_QUEUE}
    for page in hundred_jobs.deleted.values():
        used = {value for sample in page.samples for value in sample.labels.values()}
        assert not used & (gone | queues)
        assert not {value for value in used if "/" in value} & gone
    scheduler = hundred_jobs.deleted[SCHEDULER]
    assert scheduler.one("volcano_unschedule_job_count") == 0
    for name in ("volcano_unschedule_task_count", "volcano_job_retry_counts", "volcano_job_share"):
        assert scheduler.values(name) == {}


def test_histograms_and_counters_outlive_their_jobs(hundred_jobs: Run, happened: Happened) -> None:
    page = hundred_jobs.deleted[SCHEDULER]

    assert page.one("volcano_task_scheduling_latency_milliseconds_count", stage="Bound") == len(happened.bound)


def test_jobs_cost_few_series(hundred_jobs: Run) -> None:
    """A job of a hundred costs at most 8 series while it is there, and none when it is gone."""
    for service, page in hundred_jobs.at_rest.items():
        before, after = len(page.samples), len(hundred_jobs.deleted[service].samples)
        print(f"{service}: {before} series with 100 jobs and 3 queues, {after} without")
        assert before - after < 8 * len(hundred_jobs.jobs)
        assert after < 3000


def _created(happened: Happened, key: str) -> float:
    from datetime import datetime

    text: Any = happened.alive_groups[key]["metadata"]["creationTimestamp"]
    return datetime.fromisoformat(text).timestamp()
