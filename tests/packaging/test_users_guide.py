"""The users' guide: its manifests do what it says, and its texts are those that users get."""

import copy
import functools
import re
from typing import Any

import msgspec
import pytest
import yaml

from tests.packaging.pages import DOCS, REPOSITORY, rows
from volcano_py.api.core import Pod, PodSpec
from volcano_py.api.keys import GROUP_POD_NUM
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.cache.pods import unsupported
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Bind, Decision
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.testing import Result, Scenario, a_cluster, a_group, a_node, a_pod, a_queue

PAGE = DOCS / "users.md"
CONF = (REPOSITORY / "conf" / "helm-default.yaml").read_text()
EPOCH = 1_750_000_000.0
KINDS: dict[str, type[Pod | PodGroup | Queue]] = {"Pod": Pod, "PodGroup": PodGroup, "Queue": Queue}
EXAMPLES: dict[str, dict[str, Any]] = {
    example["metadata"]["name"]: example
    for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for example in yaml.safe_load_all(block)
}


def an_example(name: str, called: str = "", **spec: Any) -> Any:
    """Return an object of the guide as the API server would have it, perhaps under another name."""
    document = copy.deepcopy(EXAMPLES[name])
    meta = document["metadata"]
    meta |= {"name": called or name, "uid": called or name, "creationTimestamp": "2025-01-01T00:00:00Z"}
    if document["kind"] != "Queue":
        meta["namespace"] = "default"
    if document["kind"] == "Pod":
        document["status"] = {"phase": "Pending"}
    document["spec"] |= spec
    return msgspec.convert(document, KINDS[document["kind"]])


def the_gang(pods: int = 3, **spec: Any) -> list[Any]:
    return [an_example("train"), *(an_example("train-0", f"train-{number}", **spec) for number in range(pods))]


def run(*objects: Any, cpus: tuple[int, ...] = (4, 4, 4), **options: Any) -> Result:
    nodes = [a_node(f"n{number}", cpu=cpu) for number, cpu in enumerate(cpus)]
    return Scenario(*nodes, *objects, conf=CONF, **options).run()


def a_small_gang(cpu: int = 1, **group: Any) -> list[Any]:
    return [a_group("small", **group), a_pod("small-0", group="small", cpu=cpu)]


def an_elastic_job(queue: str, pods: int) -> list[Any]:
    return [a_group(queue, queue=queue), *(a_pod(f"{queue}-{i}", group=queue, cpu=1) for i in range(pods))]


TWO_QUEUES = [a_queue("default"), a_queue("research")]
REQUIRED_TERM = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
    ]
}
SPREAD = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}


def apart(labels: dict[str, str] | None = None, **spec: Any) -> list[Any]:
    return [a_group("small"), a_pod("s", group="small", cpu=1, labels=labels, spec=spec)]


def beside(*others: Any, **affinity: Any) -> Result:
    """Run a small gang on two nodes of one zone, with other pods on them."""
    nodes = [a_node(f"n{number}", labels={"zone": "z"}) for number in range(2)]
    labels = {} if "podAffinity" in affinity else {"a": "b"}
    return Scenario(*nodes, *others, *apart(labels, affinity=affinity), conf=CONF).run()


CASES = {
    "no-room": lambda: run(*the_gang(), cpus=(4, 4, 2)),
    "labels": lambda: run(
        a_group("small"), a_pod("s", group="small", cpu=1, spec={"nodeSelector": {"a": "b"}}), cpus=(4, 4)
    ),
    "anti-affinity": lambda: beside(a_pod("other", node="n0", labels={"a": "b"}), podAntiAffinity=REQUIRED_TERM),
    "hated": lambda: beside(
        a_pod("other", node="n0", labels={"a": "b"}, spec={"affinity": {"podAntiAffinity": REQUIRED_TERM}})
    ),
    "affinity": lambda: beside(podAffinity={**REQUIRED_TERM}),
    "spread": lambda: run(*apart(topologySpreadConstraints=[SPREAD]), cpus=(4, 4)),
    "pods-missing": lambda: run(*the_gang(pods=2)),
    "no-group": lambda: run(an_example("train-0")),
    "no-annotation": lambda: run(a_pod("alone", cpu=1)),
    "no-queue": lambda: run(an_example("study"), a_pod("study-0", group="study", cpu=1)),
    "closed": lambda: run(*a_small_gang(), queues=[a_queue(state="Closed")]),
    "share": lambda: run(*the_gang(), queues=[a_queue(capability={"cpu": 8})]),
    "deserved": lambda: run(
        *an_elastic_job("research", 3), *an_elastic_job("default", 4), cpus=(6,), queues=TWO_QUEUES
    ),
    "overcommit": lambda: run(*a_small_gang(min_resources={"cpu": 15})),
    "quota": lambda: run(*a_small_gang(min_resources={"cpu": 9}), queues=[a_queue(capability={"cpu": 8})]),
    "claim": lambda: run(*the_gang(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])),
    "unsupported": lambda: run(*the_gang(resourceClaims=[{"name": "gpu"}])),
}


EVERYTHING = {
    "volumes": [
        {"name": "a", "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
    ],
    "resourceClaims": [{"name": "gpu"}],
    "containers": [
        {
            "name": "main",
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "resources": {"limits": {"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}},
        }
    ],
}
"""A pod's spec with every constraint there is that could keep it from being placed."""


def explained() -> set[str]:
    """Return the texts that the guide explains."""
    return {cells[0].strip("`") for cells in rows(PAGE, "Why does my pod wait?")}


@functools.cache
def said_in(case: str) -> set[str]:
    """Return what the pods of a case say, the second and third pod as the first one says it."""
    return {
        re.sub(r"train-\d can possibly be assigned to n\d", "train-0 can possibly be assigned to n0", text)
        for text in CASES[case]().conditions.values()
    }


def test_the_gang_is_placed_together_where_there_is_room():
    result = run(*the_gang())

    assert sorted(result.batches[0]) == ["train-0", "train-1", "train-2"]
    assert result.phases == {"train": "Running"}


def test_no_pod_of_the_gang_is_placed_without_room_for_all():
    assert run(*the_gang(), cpus=(4, 4, 2)).placements == {}


def an_annotation_gang(*numbers: str | None) -> list[Any]:
    """Return pods of the gang without a PodGroup, one for each number they state."""
    pods = [an_example("qj-0", f"qj-{index}") for index in range(len(numbers))]
    for pod, number in zip(pods, numbers, strict=True):
        if number is None:
            del pod.metadata.annotations[GROUP_POD_NUM]
        else:
            pod.metadata.annotations[GROUP_POD_NUM] = number
    return pods


def batches(*pods: Any) -> list[list[str]]:
    """Return what one cycle places together."""
    cache = a_cluster(a_node("n0", cpu=8), *pods)
    emitted: list[tuple[Decision, ...]] = []
    run_cycle(cache.snapshot(), resolve(parse_conf(CONF, "conf")), CycleClock(EPOCH), 0, Memory(), emitted.append)
    binds = [[decision.task.name for decision in batch if isinstance(decision, Bind)] for batch in emitted]
    return [names for names in binds if names]


@pytest.mark.parametrize(
    ("numbers", "placed"),
    [
        pytest.param(("3", "3", "3"), ["qj-0", "qj-1", "qj-2"], id="complete"),
        pytest.param(("3", "3"), [], id="one-missing"),
        pytest.param(("2", "3"), [], id="the-largest-number-counts"),
        pytest.param(("2", "2", None), [], id="a-pod-without-number"),
        pytest.param(("2", "two"), [], id="not-a-number"),
    ],
)
def test_a_gang_without_a_podgroup_is_placed_as_the_guide_says(numbers: tuple[str | None, ...], placed: list[str]):
    together = batches(*an_annotation_gang(*numbers))

    assert together[:1] == ([placed] if placed else [])


def test_the_roles_of_the_example_add_up_to_its_minimum():
    spec = an_example("training").spec

    assert sum(spec.min_task_member.values()) == spec.min_member


def test_the_queue_of_the_example_takes_the_job_that_names_it():
    result = run(an_example("research"), an_example("study"), a_pod("study-0", group="study", cpu=1))

    assert result.phases == {"study": "Running"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pod_that_waits_says_what_the_guide_explains(case: str):
    said = said_in(case)

    assert said
    assert said <= explained()


def test_every_text_that_the_guide_explains_is_one_that_pods_say():
    assert explained() <= {text for case in CASES for text in said_in(case)}


def test_the_guide_explains_the_actual_message_of_the_podgroup():
    said = run(*the_gang(), cpus=(4, 4, 2)).why_not("train").message
    quoted = " ".join(line[2:] for line in PAGE.read_text().splitlines() if line.startswith("> "))

    assert quoted == f"1/3 tasks in gang unschedulable: {said}"


def test_the_unsupported_fields_are_listed():
    listed = {cells[0].strip("`") for cells in rows(PAGE, "What is not placed yet")}
    refused = unsupported(msgspec.convert(EVERYTHING, PodSpec))

    assert listed == {re.sub(r"\[[^]]*\]", "[]", path.removeprefix("spec.")) for path in refused}
