"""The page about network topology: its manifests do what it says, and its text is one that users get."""

import re
from typing import Any

import msgspec
import yaml

from tests.packaging.pages import DOCS, rows
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup, SubGroupPolicy
from volcano_py.api.topology import HyperNode
from volcano_py.conf.loader import parse_conf
from volcano_py.controllers.job.pod_group import create
from volcano_py.scheduler import resolve
from volcano_py.testing import Result, Scenario, a_hyper_node, a_job, a_node, a_pod

PAGE = DOCS / "topology.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
CONF = BLOCKS[0]
EXAMPLES: dict[str, dict[str, Any]] = {
    document["metadata"]["name"]: document for block in BLOCKS[1:] for document in yaml.safe_load_all(block)
}
NETWORK = [
    *(a_node(f"n{index}", labels={"example.com/rack": "1"}, cpu=2) for index in range(2)),
    *(a_node(f"gpu-2{index}", cpu=2) for index in range(2)),
    *(msgspec.convert(EXAMPLES[name], HyperNode) for name in ("rack-1", "rack-2", "row-a")),
]
"""The racks of the page, with room for four pods of one core each."""


def run(*objects: Any, network: list[Any] = NETWORK) -> Result:
    return Scenario(*network, *objects, conf=CONF).run()


def racks(result: Result, *pods: str) -> set[str]:
    return {"rack-2" if result.placements[pod].startswith("gpu") else "rack-1" for pod in pods}


def test_the_configuration_of_the_page_leaves_nothing_out() -> None:
    policy = resolve(parse_conf(CONF, "page"))

    assert policy.missing == ()
    assert policy.warnings == ()


def test_the_members_of_the_page_are_chosen_by_labels_pattern_and_name() -> None:
    tree = Scenario(*NETWORK, conf=CONF).cache.snapshot()
    found = {name: [tree.nodes.names[row] for row in tree.domains.rows(name)] for name in ("rack-1", "rack-2", "row-a")}

    assert found == {
        "rack-1": ["n0", "n1"],
        "rack-2": ["gpu-20", "gpu-21"],
        "row-a": ["gpu-20", "gpu-21", "n0", "n1"],
    }


def test_the_job_of_the_page_has_its_topology_in_its_pod_group() -> None:
    job = msgspec.convert(EXAMPLES["train"], Job)

    assert create(job, {}).body["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}


def test_the_sub_groups_of_the_page_have_a_rack_each() -> None:
    group = msgspec.convert({"status": {"phase": "Pending"}, **EXAMPLES["serve"]}, PodGroup)
    group = msgspec.structs.replace(
        group, metadata=msgspec.structs.replace(group.metadata, namespace="default", uid="u")
    )
    labels = [{"role": "worker", "example.com/replica": str(index // 4)} for index in range(8)]
    pods = [a_pod(f"serve-{index}", group="serve", cpu=1, labels=labels[index]) for index in range(8)]

    result = run(group, *pods)

    parts = [racks(result, *(f"serve-{index}" for index in indices)) for indices in (range(4), range(4, 8))]
    assert sorted(map(sorted, parts)) == [["rack-1"], ["rack-2"]]


def test_the_table_of_sub_groups_has_every_field() -> None:
    fields = {cells[0].strip("`") for cells in rows(PAGE, "Sub-groups")}

    assert fields == {field.encode_name for field in msgspec.structs.fields(SubGroupPolicy)}


def test_a_gang_that_is_too_large_says_what_the_page_quotes() -> None:
    quoted = " ".join(line.removeprefix("> ") for line in PAGE.read_text().splitlines() if line.startswith("> "))
    spec = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}

    result = run(a_job("train", tasks=6, cpu=1, group_spec=spec))

    assert quoted in result.jobs["train"].message
    assert result.placements == {}


def test_a_hyper_node_that_two_others_name_counts_for_both_as_the_page_says() -> None:
    network = [*NETWORK, a_hyper_node("row-b", 2, children=["rack-1"])]
    spec = {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}}

    result = run(a_job("train", tasks=8, cpu=1, group_spec=spec), network=network)

    assert racks(result, *result.placements) == {"rack-1", "rack-2"}
