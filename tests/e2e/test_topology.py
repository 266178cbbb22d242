"""Jobs with network topologies and sub-groups on a real API server, on tainted nodes that their pods tolerate.

A rack has two nodes of two cores: room for four pods.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.controlplane.waiting import wait_until
from tests.e2e.job_cluster import MERGE, JobCluster
from tests.e2e.jobs import Job, Jobs, Obj
from tests.e2e.racks import HYPER_NODES, POOL, ROW_TIER, SOFT, TAINT, TOLERATIONS, Racks, hard
from tests.e2e.together import together
from tests.e2e.vcjobs import task, template

CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
  - name: network-topology-aware
"""
"""Without topologies, pods would go to the emptiest nodes, wherever these are."""

NAME = "volcano-controller-configmap"
FROM_LABELS = "volcano.sh%2Fnetwork-topology-source%3Dlabel"
PARTITION = "volcano.sh/partition-id"


@pytest.fixture(scope="module", autouse=True)
def with_topology(job_cluster: JobCluster) -> None:
    """Let the scheduler of all tests here place by HyperNodes."""
    job_cluster.scheduler.take_conf(CONF)


def racks_of(jobs: Jobs, *rows: int) -> Racks:
    """Build a network for a test; it is removed at the end."""
    racks = Racks(jobs.plane.cluster, jobs.cluster.nodes, *rows)
    for path in racks.paths:
        jobs.cluster.remove_at_end(path)
    return racks


def partitions(total: int, size: int, least: int | None = None, topology: Mapping[str, Any] | None = None) -> Obj:
    """Return the partition policy of a task."""
    return {
        "totalPartitions": total,
        "partitionSize": size,
        **({} if least is None else {"minPartitions": least}),
        **({} if topology is None else {"networkTopology": dict(topology)}),
    }


def create(
    jobs: Jobs, racks: Racks, replicas: int, policy: Mapping[str, Any] | None = None, cpu: str = "1", **spec: Any
) -> Job:
    """Create a job of equal pods in one task, with partitions if a policy is given."""
    more = {} if policy is None else {"partitionPolicy": dict(policy)}
    return jobs.create([task("w", replicas, racks.template(cpu), **more)], anywhere=True, **spec)


def running(job: Job) -> list[Obj]:
    """Return its pods that run."""
    return [job.pods()[f"{job.name}-{name}"] for name in job.in_phase("Running")]


def runs(job: Job, pods: int) -> list[Obj]:
    """Wait until so many of its pods run, and return them."""
    job.wait(f"{pods} pods run", lambda: len(job.in_phase("Running")) == pods)
    return running(job)


def by_partition(pods: Sequence[Obj]) -> dict[str, list[Obj]]:
    """Return pods by the partition that they belong to."""
    found = defaultdict(list)
    for pod in pods:
        found[pod["metadata"]["labels"][PARTITION]].append(pod)
    return dict(found)


def why(job: Job) -> str:
    """Wait until its PodGroup says why it waits, and return that."""

    def said() -> str:
        conditions = (job.group() or {}).get("status", {}).get("conditions", [])
        return next((one["message"] for one in conditions if one["type"] == "Unschedulable"), "")

    return job.wait("says why it waits", said)


# Topologies of jobs and of their sub-groups


@together
def test_a_job_with_a_hard_topology_runs_in_one_rack(jobs: Jobs) -> None:
    racks = racks_of(jobs, 3)
    job = create(jobs, racks, 4, networkTopology=hard(1))

    assert len(racks.racks(runs(job, 4))) == 1


@together
def test_a_hard_topology_by_the_name_of_a_tier_keeps_a_job_in_one_row(jobs: Jobs) -> None:
    racks = racks_of(jobs, 2, 2)
    job = create(jobs, racks, 7, networkTopology=hard(ROW_TIER))

    assert len(racks.rows(runs(job, 7))) == 1


@together
def test_a_job_too_large_for_its_tier_waits_and_says_which_tier_would_do(jobs: Jobs) -> None:
    racks = racks_of(jobs, 2)
    job = create(jobs, racks, 6, networkTopology=hard(1))

    assert "tier 2" in why(job)
    job.stays("no pod has a node", lambda: not any(pod["spec"].get("nodeName") for pod in job.pods().values()))


@together
def test_a_tier_name_that_no_hyper_node_has_limits_nothing_and_pods_are_near(jobs: Jobs) -> None:
    racks = racks_of(jobs, 2)
    small, large = (create(jobs, racks, size, networkTopology=hard("aisle")) for size in (4, 4))

    assert len(racks.racks(runs(small, 4))) == len(racks.racks(runs(large, 4))) == 1


@together
def test_a_job_with_a_soft_topology_spans_as_little_as_it_can(jobs: Jobs) -> None:
    racks = racks_of(jobs, 2, 2)
    small = create(jobs, racks, 4, networkTopology=dict(SOFT))

    assert len(racks.racks(runs(small, 4))) == 1  # before the large one may take a part of each rack
    assert len(racks.rows(runs(create(jobs, racks, 12, networkTopology=dict(SOFT)), 12))) == 2


@together
@pytest.mark.parametrize("below", [hard(1), SOFT, None], ids=["hard", "soft", "none"])
def test_a_hard_topology_of_a_job_bounds_its_sub_groups(jobs: Jobs, below: Mapping[str, Any] | None) -> None:
    racks = racks_of(jobs, 2, 2)
    job = create(jobs, racks, 8, partitions(2, 4, 2, below), networkTopology=hard(2))
    pods = runs(job, 8)

    assert len(racks.rows(pods)) == 1
    if below is not None:
        assert [len(racks.racks(part)) for part in by_partition(pods).values()] == [1, 1]


@together
def test_a_soft_topology_of_a_job_leaves_its_sub_groups_their_hard_one(jobs: Jobs) -> None:
    racks = racks_of(jobs, 1, 1)
    job = create(jobs, racks, 8, partitions(2, 4, 2, hard(1)), networkTopology=dict(SOFT))
    pods = runs(job, 8)

    assert [len(racks.racks(part)) for part in by_partition(pods).values()] == [1, 1]
    assert len(racks.rows(pods)) == 2


@together
def test_sub_groups_alone_have_a_topology(jobs: Jobs) -> None:
    racks = racks_of(jobs, 3)
    job = create(jobs, racks, 9, partitions(3, 3, 3, hard(1)))
    parts = by_partition(runs(job, 9))

    assert [len(racks.racks(part)) for part in parts.values()] == [1, 1, 1]


@together
def test_sub_groups_without_any_topology_run_anywhere(jobs: Jobs) -> None:
    racks = racks_of(jobs, 1, 1)
    job = create(jobs, racks, 8, partitions(2, 4, 2))

    assert {name: len(part) for name, part in by_partition(runs(job, 8)).items()} == {"0": 4, "1": 4}


# Minimums


@together
def test_as_many_sub_groups_run_as_have_room_and_each_of_them_whole(jobs: Jobs) -> None:
    """Two of three are needed; two racks have room for one each, and the third one for a half."""
    racks = racks_of(jobs, 2)
    racks.add_rack("half", "row-0", 1, 2)
    jobs.cluster.remove_at_end(racks.paths[-1])
    job = create(jobs, racks, 12, partitions(3, 4, 2, hard(1)), minAvailable=8)
    parts = by_partition(runs(job, 8))

    assert sorted(len(part) for part in parts.values()) == [4, 4]
    assert [len(racks.racks(part)) for part in parts.values()] == [1, 1]
    job.stays("the third sub-group waits as a whole", lambda: len(job.in_phase("Running")) == 8)


@together
def test_a_job_whose_minimum_is_above_that_of_its_sub_groups_waits_for_its_own(jobs: Jobs) -> None:
    """One sub-group is needed and has room; the job needs both."""
    racks = racks_of(jobs, 1)
    job = create(jobs, racks, 8, partitions(2, 4, 1, hard(1)), minAvailable=8)
    why(job)
    job.stays("no pod has a node", lambda: not any(pod["spec"].get("nodeName") for pod in job.pods().values()))

    racks.add_rack("more", "row-0", 2, 2)
    jobs.cluster.remove_at_end(racks.paths[-1])

    assert [len(racks.racks(part)) for part in by_partition(runs(job, 8)).values()] == [1, 1]


@together
def test_a_job_with_too_few_sub_groups_waits(jobs: Jobs) -> None:
    """Two of two sub-groups are needed, and there is room for one and a half."""
    racks = racks_of(jobs, 1)
    racks.add_rack("half", "row-0", 1, 2)
    jobs.cluster.remove_at_end(racks.paths[-1])
    job = create(jobs, racks, 8, partitions(2, 4, 2, hard(1)), minAvailable=4)

    why(job)
    job.stays("no pod has a node", lambda: not any(pod["spec"].get("nodeName") for pod in job.pods().values()))


# Jobs that have begun


@together
@pytest.mark.parametrize("topology", [hard(1), hard(2), SOFT], ids=["rack", "row", "soft"])
def test_a_killed_pod_returns_to_the_domain_of_its_job(jobs: Jobs, topology: Mapping[str, Any]) -> None:
    racks = racks_of(jobs, 1, 1)
    job = create(jobs, racks, 3, networkTopology=dict(topology))
    before = racks.racks(runs(job, 3))
    uids = job.uids()

    job.evict("w-1")
    job.wait("another pod runs", lambda: len(job.in_phase("Running")) == 3 and job.uids() != uids)

    assert racks.racks(running(job)) == before


@together
def test_a_sub_group_that_is_killed_returns_to_its_domain(jobs: Jobs) -> None:
    racks = racks_of(jobs, 3, 3)
    job = create(jobs, racks, 8, partitions(2, 4, 2, hard(1)), networkTopology=hard(2))
    before = by_partition(runs(job, 8))
    gone = {pod["metadata"]["uid"] for pod in before["1"]}

    for pod in before["1"]:
        job.evict(pod["metadata"]["name"].removeprefix(f"{job.name}-"))
    job.wait("runs again", lambda: len(job.in_phase("Running")) == 8 and not gone & set(job.uids().values()))

    after = by_partition(running(job))
    assert {name: racks.racks(part) for name, part in after.items()} == {
        name: racks.racks(part) for name, part in before.items()
    }


@together
def test_a_job_whose_rack_fails_goes_to_another_one_as_a_whole(jobs: Jobs) -> None:
    racks = racks_of(jobs, 2)
    job = create(jobs, racks, 4, networkTopology=hard(1))
    (failed,) = racks.racks(runs(job, 4))
    uids = set(job.uids().values())

    for node in racks.nodes[failed]:
        jobs.cluster.cordon(node)
    job.evict("w-0")
    job.wait("one is gone", lambda: len(job.in_phase("Running")) == 3)
    job.stays("the rest of the job stays, and its new pod waits for it", lambda: len(job.in_phase("Running")) == 3)
    for name in ("w-1", "w-2", "w-3"):
        job.evict(name)
    job.wait("runs again", lambda: len(job.in_phase("Running")) == 4 and not uids & set(job.uids().values()))

    assert racks.racks(running(job)) == racks.nodes.keys() - {failed}


# HyperNodes that come from labels


def test_jobs_are_placed_by_hyper_nodes_that_the_controllers_find_from_labels(jobs: Jobs) -> None:
    """The configuration comes, changes and goes while everything runs; what it made stays when it goes."""
    cluster, namespace = jobs.plane.cluster, jobs.cluster.installed.namespace
    stem = f"e2e.volcano-py/{jobs.name()}"
    rack, row = f"{stem}-rack", f"{stem}-row"
    pool = {POOL: jobs.name()}
    nodes = {
        name: labels
        for labels in ({rack: "a", row: "x"}, {rack: "b", row: "x"}, {rack: "c", row: "y"})
        for name in jobs.cluster.nodes(2, cpu=2, labels={**pool, **labels}, taints=[f"{TAINT}=training:NoSchedule"])
    }
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    pods = template(cpu="1", selector=pool, tolerations=TOLERATIONS)

    def configuration(*labels: str) -> Obj:
        types = {"net": [{"nodeLabel": label} for label in (*labels, "kubernetes.io/hostname")]}
        source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
        return {"data": {"volcano-controller.conf": json.dumps({"networkTopologyDiscovery": [source]})}}

    def found() -> Counter[int]:
        items = cluster.request("GET", f"{HYPER_NODES}?labelSelector={FROM_LABELS}")["items"]
        return Counter(one["spec"]["tier"] for one in items)

    def members() -> set[str]:
        items = cluster.request("GET", f"{HYPER_NODES}?labelSelector={FROM_LABELS}")["items"]
        return {member["selector"]["exactMatch"]["name"] for one in items for member in one["spec"]["members"]}

    def labels_of(job: Job, count: int, label: str) -> set[str]:
        return {nodes[pod["spec"]["nodeName"]][label] for pod in runs(job, count)}

    meta = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}}
    if jobs.plane.owned:  # manifests/ installs it, empty
        cluster.request("DELETE", f"{maps}/{NAME}")
    cluster.request("POST", maps, {**meta, **configuration(rack)})
    try:
        wait_until("racks are found", lambda: found() == {1: 3}, 20.0)
        small = jobs.create([task("w", 4, pods)], anywhere=True, networkTopology=hard(1))
        assert len(labels_of(small, 4, rack)) == 1
        small.delete()
        small.wait("is gone with its pods", lambda: small.gone() and not small.pods())

        cluster.request("PATCH", f"{maps}/{NAME}", configuration(row, rack), content_type=MERGE)
        wait_until("racks and rows are found", lambda: found() == {1: 3, 2: 2}, 20.0)
        large = jobs.create([task("w", 6, pods)], anywhere=True, networkTopology=hard(row))
        assert labels_of(large, 6, row) == {"x"}
        large.delete()
        large.wait("is gone with its pods", lambda: large.gone() and not large.pods())

        (more,) = jobs.cluster.nodes(1, cpu=2, labels={**pool, rack: "a", row: "x"})
        wait_until("the rack has one more node", lambda: more in members(), 20.0)
        without = {"metadata": {"labels": {rack: None, row: None}}}
        for node in (name for name, labels in nodes.items() if labels[row] == "y"):
            cluster.request("PATCH", f"/api/v1/nodes/{node}", without, content_type=MERGE)
        wait_until("an empty rack and its row are gone", lambda: found() == {1: 2, 2: 1}, 20.0)
    finally:
        cluster.request("DELETE", f"{maps}/{NAME}")
    large.stays("the HyperNodes stay without the configuration", lambda: found() == {1: 2, 2: 1})
    cluster.request("DELETE", f"{HYPER_NODES}?labelSelector={FROM_LABELS}")
