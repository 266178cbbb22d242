"""Files of jobs, job flows and job templates: what is wrong in them is named, and flags beside them are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.vcctl.running import Cluster
from volcano_py.client.documents import read_documents
from volcano_py.client.problem import Problem
from volcano_py.kube.resource import JOB_FLOWS, VCJOBS, Resource

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 1
  tasks:
  - name: w
    replicas: 1
    template: {spec: {containers: [{name: main, image: busybox}]}}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "file.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ("name: 123", "metadata.name is a number: 123; write it in quotes"),
        ("name: 1.5", "metadata.name is a number: 1.5; write it in quotes"),
        ("name: yes", "metadata.name is no text: true; write it in quotes"),
        ("name: a, namespace: 7", "metadata.namespace is a number: 7; write it in quotes"),
        ("generateName: 5", "metadata.generateName is a number: 5; write it in quotes"),
        ("name: ''", "has a Job without a name; write metadata.name"),
    ],
)
def test_a_name_that_is_no_text_must_be_quoted(tmp_path: Path, metadata: str, sentence: str) -> None:
    path = written(tmp_path, JOB.replace("name: train", metadata))

    with pytest.raises(Problem) as problem:
        read_documents(str(path), VCJOBS, generated=True)

    assert sentence in str(problem.value)


@pytest.mark.parametrize("kind", [VCJOBS, JOB_FLOWS])
def test_a_key_that_is_there_twice_is_named_with_its_lines(tmp_path: Path, kind: Resource) -> None:
    path = written(tmp_path, f"{JOB}    replicas: 3\n")

    with pytest.raises(Problem) as problem:
        read_documents(str(path), kind)

    assert str(problem.value) == (
        f"file {path} has the key replicas twice in one map, in lines 8 and 10; leave one of them out"
    )


def test_a_merged_key_may_be_overridden(tmp_path: Path) -> None:
    task = "spec:\n  tasks:\n  - &first {name: w, replicas: 1}\n  - {<<: *first, name: v}\n  - {<<: *first, name: u}\n"
    path = written(tmp_path, f"metadata: {{name: a}}\n{task}")

    (found,) = read_documents(str(path), VCJOBS)

    assert found["spec"]["tasks"] == [{"name": name, "replicas": 1} for name in "wvu"]


@pytest.mark.parametrize(
    ("written_as", "value"),
    [
        ("1:30:00", "1:30:00"),
        ("22:22", "22:22"),
        ("1:30.5", "1:30.5"),
        ("2026-11-28", "2026-11-28"),
        ("=", "="),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("12", 12),
        ("-1_000", -1000),
        ("0755", 0o755),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("yes", True),
        ("~", None),
        ("1.5.2", "1.5.2"),
        ("-", [None]),
    ],
)
def test_values_are_read_as_kubectl_reads_them(tmp_path: Path, written_as: str, value: object) -> None:
    path = written(tmp_path, f"metadata: {{name: a}}\nspec:\n  minAvailable:\n    {written_as}\n")

    (found,) = read_documents(str(path), VCJOBS)

    assert found["spec"]["minAvailable"] == value
    assert type(found["spec"]["minAvailable"]) is type(value)


def test_of_several_jobs_the_one_that_is_refused_is_named_and_the_others_are_created(
    cluster: Cluster, tmp_path: Path
) -> None:
    space = cluster.namespace("several")
    cluster.job("second", space)
    path = written(tmp_path, "---\n".join(JOB.replace("train", name) for name in ("first", "second", "third")))

    ran = cluster.run(f"job run -n {space} -f {path}")

    assert ran.code == 255
    first, third, problem = ran.out.splitlines()
    assert (first, third) == ("run job first successfully", "run job third successfully")
    assert problem.startswith("Failed to run job: job second: ")


def test_flags_beside_a_file_are_named_because_they_have_no_effect(cluster: Cluster, tmp_path: Path) -> None:
    space, path = cluster.namespace("beside"), written(tmp_path, JOB)

    ran, warnings = cluster.warned(
        f"job run other -f {path} -n {space} -i alpine -r 3 -m 2 -q a -S b -R cpu=1 -L cpu=1"
    )

    assert (ran.code, ran.out) == (0, "run job train successfully\n")
    flags = "--image, --name, --min, --replicas, --requests, --limits, --scheduler, --queue"
    assert warnings == f"Warning: file {path} says all about its jobs; these flags have no effect: {flags}\n"
    assert cluster.api.get(VCJOBS, "train", space)["spec"]["tasks"][0]["replicas"] == 1


def test_a_file_alone_warns_of_nothing(cluster: Cluster, tmp_path: Path) -> None:
    cluster.says(f"job run -f {written(tmp_path, JOB)} -n {cluster.namespace('alone')}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: b: c", "is not YAML: line 1, column 5: mapping values are not allowed "),
        ("a: *x", "is not YAML: line 1, column 4: found undefined alias 'x'"),
        ("\ta: b", "is not YAML: line 1, column 1: while scanning for the next token: found character '\\t'"),
    ],
)
def test_what_is_no_yaml_has_its_place_and_no_drawing(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(Problem) as problem:
        read_documents(str(written(tmp_path, text)), VCJOBS)

    assert sentence in str(problem.value)
    assert "^" not in str(problem.value)
