"""Differences of what users have: jobs, cron jobs, flows, queues, pods, nodes and HyperNodes."""

from __future__ import annotations

from typing import Any

from tests.migration import ordinary
from tests.migration.copies import Copy
from tests.migration.ordinary import job, job_spec, task
from tests.migration.planting import Obj, plant

# Jobs


def _job(copy: Copy, name: str, spec: Obj, phase: str = "Running", **status: Any) -> None:
    one = job(name, phase, spec, **status)
    copy.add(one, ordinary.group_of(one), *ordinary.pods_of(one))


@plant(("Job", "p1", "job-plugin"))
def a_plugin_of_jobs(copy: Copy) -> None:
    _job(copy, "p1", job_spec(plugins={"horovod": []}))


@plant(("Job", "p2", "job-refused"))
def a_policy_with_an_unknown_event(copy: Copy) -> None:
    _job(copy, "p2", job_spec(policies=[{"event": "NodeLost", "action": "RestartJob"}]))


@plant(("Job", "p3", "job-refused"))
def a_policy_with_an_unknown_action(copy: Copy) -> None:
    _job(copy, "p3", job_spec(policies=[{"event": "PodFailed", "action": "Panic"}]))


@plant(("Job", "p4", "policy-action"))
def an_exit_code_with_an_unknown_action(copy: Copy) -> None:
    _job(copy, "p4", job_spec(policies=[{"exitCode": 7, "action": "Panic"}]))


@plant(("Job", "p5", "policy-unknown"))
def a_policy_for_unknown_after_a_restart(copy: Copy) -> None:
    _job(copy, "p5", job_spec(policies=[{"event": "Unknown", "action": "RestartJob"}]), version=2)


@plant(("Job", "p6", "policy-timeout"))
def a_delay_under_way(copy: Copy) -> None:
    one = job("p6", "Running", job_spec(policies=[{"event": "PodEvicted", "action": "RestartJob", "timeout": "10m"}]))
    copy.add(one, ordinary.group_of(one), next(ordinary.pods_of(one)))


@plant(("Job", "p7", "numa-policy"))
def a_numa_policy(copy: Copy) -> None:
    _job(copy, "p7", job_spec(task(topologyPolicy="single-numa-node")))


@plant(("Job", "p8", "resource-claims"))
def resource_claims(copy: Copy) -> None:
    one = task()
    one["template"]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    _job(copy, "p8", job_spec(one))


@plant(("Job", "p9", "shared-devices"))
def part_of_a_gpu(copy: Copy) -> None:
    one = task()
    one["template"]["spec"]["containers"][0]["resources"] = {"limits": {"volcano.sh/vgpu-memory": "4000", "cpu": "1"}}
    _job(copy, "p9", job_spec(one))


@plant(("Job", "p10", "job-queue"))
def a_queue_that_is_gone(copy: Copy) -> None:
    _job(copy, "p10", job_spec(queue="gone"))


@plant(("Job", "p13", "job-scheduler"))
def a_job_of_another_scheduler(copy: Copy) -> None:
    _job(copy, "p13", job_spec(schedulerName="default-scheduler"))


@plant(("PriorityClass", "volcano-batch-high", "priority-class"))
def a_priority_with_our_name(copy: Copy) -> None:
    metadata = {"name": "volcano-batch-high"}
    copy.add({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 500})


@plant(("Job", "p11", "claim-twice"))
def a_claim_with_two_paths(copy: Copy) -> None:
    volumes = [{"mountPath": path, "volumeClaimName": "data"} for path in ("/a", "/b")]
    _job(copy, "p11", job_spec(volumes=volumes))


@plant(("Job", "p12", "job-phase"))
def a_phase_of_a_fork(copy: Copy) -> None:
    copy.add(job("p12", "Suspended"))


@plant(("Command", "stop-it", "command"))
def a_command_that_waits(copy: Copy) -> None:
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "job-running", "uid": "u"}
    copy.add(
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"name": "stop-it", "namespace": ordinary.NAMESPACE},
            "action": "AbortJob",
            "target": target,
        }
    )


# Cron jobs and flows


@plant(("CronJob", "zoned", "cronjob-refused"))
def a_zone_in_a_schedule(copy: Copy) -> None:
    copy.add(ordinary.cron_job("zoned", "TZ=Asia/Shanghai 0 3 * * *"))


@plant(("CronJob", "short", "cronjob-every"))
def starts_every_few_seconds(copy: Copy) -> None:
    copy.add(ordinary.cron_job("short", "@every 20s"))


@plant(("CronJob", "late", "cronjob-deadline"))
def a_deadline_shorter_than_the_distance(copy: Copy) -> None:
    copy.add(ordinary.cron_job("late", "@every 1h", startingDeadlineSeconds=60))


@plant(("CronJob", "numa", "numa-policy"))
def a_cron_job_with_a_numa_policy(copy: Copy) -> None:
    copy.add(ordinary.cron_job("numa", jobTemplate={"spec": job_spec(task(topologyPolicy="restricted"))}))


@plant(("JobFlow", "patched", "flow-patch"))
def a_patch_of_a_step(copy: Copy) -> None:
    copy.add(ordinary.flow("patched", {"name": "train", "patch": {"jobSpec": {"queue": "ml"}}}))


@plant(("JobFlow", "probed", "flow-probe"))
def a_probe_over_http(copy: Copy) -> None:
    probe = {"httpGetList": [{"taskName": "worker", "path": "/", "port": 80}]}
    step = {"name": "train", "dependsOn": {"targets": ["prepare"], "probe": probe}}
    copy.add(ordinary.flow("probed", {"name": "prepare"}, step))


@plant(("JobFlow", "waiting", "flow-task-probe"))
def a_probe_of_tasks(copy: Copy) -> None:
    probe = {"taskStatusList": [{"taskName": "worker", "phase": "Running"}]}
    step = {"name": "train", "dependsOn": {"targets": ["prepare"], "probe": probe}}
    copy.add(ordinary.flow("waiting", {"name": "prepare"}, step))


@plant(("JobFlow", "orphan", "flow-template"))
def a_flow_without_its_template(copy: Copy) -> None:
    copy.add(ordinary.flow("orphan", {"name": "gone"}))


@plant(("JobTemplate", "horovod", "job-plugin"))
def a_template_with_a_plugin(copy: Copy) -> None:
    copy.add(ordinary.template("horovod", job_spec(plugins={"horovod": []})))


# Queues


@plant(("Queue", "fifo", "queue-fifo"))
def a_strict_queue(copy: Copy) -> None:
    copy.add(ordinary.queue("fifo", dequeueStrategy="fifo"))


@plant(("Queue", "new", "queue-state"))
def a_queue_without_state(copy: Copy) -> None:
    copy.add({**ordinary.queue("new"), "status": {}})


@plant(("Queue", "lost", "queue-state"))
def a_queue_of_unknown_state(copy: Copy) -> None:
    copy.add(ordinary.queue("lost", "Unknown"))


@plant(("Queue", "ending", "queue-state"))
def a_queue_that_never_closes(copy: Copy) -> None:
    done = job("done", "Completed", job_spec(queue="ending"))
    copy.add(ordinary.queue("ending", "Closing"), done, ordinary.group_of(done, "Completed"))


@plant(("Queue", "child", "queue-parent"))
def a_queue_without_its_parent(copy: Copy) -> None:
    copy.add(ordinary.queue("child", parent="gone"))


@plant(("Queue", "a", "queue-circle"))
def queues_in_a_circle(copy: Copy) -> None:
    copy.add(ordinary.queue("a", parent="b"), ordinary.queue("b", parent="a"))


@plant(("Queue", "greedy", "queue-refused"))
def a_guarantee_above_the_deserved_amount(copy: Copy) -> None:
    copy.add(ordinary.queue("greedy", deserved={"cpu": "2"}, guarantee={"resource": {"cpu": "4"}}))


@plant(("Queue", "research", "queue-refused"))
def children_that_deserve_more_than_their_parent(copy: Copy) -> None:
    copy.add(ordinary.queue("audio", parent="research", deserved={"cpu": "6"}))


@plant(("Queue", "far", "queue-clusters"))
def a_queue_for_other_clusters(copy: Copy) -> None:
    copy.add(ordinary.queue("far", extendClusters=[{"name": "other", "weight": 1}]))


# Pods, nodes and topology


@plant(("Pod", "claims", "resource-claims"))
def a_pod_with_resource_claims(copy: Copy) -> None:
    copy.add(ordinary.bare_pod("claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]))


@plant(("ReplicaSet", "serving", "shared-devices"))
def a_deployment_with_parts_of_gpus(copy: Copy) -> None:
    container = {"name": "main", "image": "i", "resources": {"limits": {"volcano.sh/vgpu-number": "1"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "serving", "uid": "u", "controller": True}
    for index in range(3):
        pod = ordinary.bare_pod(f"serving-{index}", containers=[container])
        copy.add({**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}})


@plant(("Pod", "numa", "numa-policy"))
def a_pod_with_a_numa_policy(copy: Copy) -> None:
    pod = ordinary.bare_pod("numa")
    pod["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = "single-numa-node"
    copy.add(pod)


@plant(("PodGroup", "odd", "podgroup-phase"))
def a_phase_of_a_podgroup(copy: Copy) -> None:
    group = ordinary.group_of(job("odd"), "Scheduling")
    copy.add({**group, "metadata": {"name": "odd", "namespace": ordinary.NAMESPACE}})


@plant(("HyperNode", "spine-hn", "hypernode-source"))
def a_hyper_node_of_a_server(copy: Copy) -> None:
    one = ordinary.hyper_node("spine-hn", 1, "Node", "node-7")
    one["metadata"]["labels"] = {"volcano.sh/network-topology-source": "ufm"}
    copy.add(one)


@plant(("HyperNode", "leaf-0", "hypernode-tree"))
def a_hyper_node_with_two_parents(copy: Copy) -> None:
    copy.add(ordinary.hyper_node("spine-2", 2, "HyperNode", "leaf-0"))


@plant(("HyperNode", "broken", "hypernode-member"))
def a_member_that_is_missing(copy: Copy) -> None:
    copy.add(ordinary.hyper_node("broken", 3, "HyperNode", "nowhere"))


@plant(("HyperNode", "pattern", "hypernode-refused"))
def a_pattern_that_cannot_be_read(copy: Copy) -> None:
    one = ordinary.hyper_node("pattern", 1, "Node")
    one["spec"]["members"] = [{"type": "Node", "selector": {"regexMatch": {"pattern": "node-("}}}]
    copy.add(one)


@plant(("Numatopology", "node-0", "numa"))
def an_exporter_of_numa_nodes(copy: Copy) -> None:
    spec = {"policies": {"CPUManagerPolicy": "static"}}
    copy.add(
        {
            "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
            "kind": "Numatopology",
            "metadata": {"name": "node-0"},
            "spec": spec,
        }
    )


@plant(("NodeShard", "volcano", "node-shard"))
def a_shard_of_nodes(copy: Copy) -> None:
    copy.add(
        {
            "apiVersion": "shard.volcano.sh/v1alpha1",
            "kind": "NodeShard",
            "metadata": {"name": "volcano"},
            "spec": {"nodesDesired": ["node-0"]},
        }
    )


@plant(("ColocationConfiguration", "web", "colocation"))
def a_configuration_of_colocation(copy: Copy) -> None:
    copy.add(
        {
            "apiVersion": "config.volcano.sh/v1alpha1",
            "kind": "ColocationConfiguration",
            "metadata": {"name": "web", "namespace": ordinary.NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "memoryQos": {"highRatio": 80}},
        }
    )


@plant(("Node", "gpu-0", "node-devices"))
def a_node_with_shared_devices(copy: Copy) -> None:
    copy.add(ordinary.node("gpu-0", **{"volcano.sh/node-vgpu-register": "GPU-1,10,16384,V100,hami,true:"}))
