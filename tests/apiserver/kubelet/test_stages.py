"""Stages: the built-in ones by golden files, and what may be written in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from volcano_py.apiserver.kubelet.stages import Facts, Stage, StageError, load_stage, load_stages, render, select

GOLDEN = sorted(Path(__file__).with_name("stages").glob("*.input.yaml"))
FACTS = Facts(now="NOW", pod_ip="10.0.0.1", host_ip="10.128.0.1")
MINIMAL = """
name: s
resource: pods
when:
  - {field: spec.nodeName, exists: true}
then: {delete: true}
"""


def _of(resource: str) -> list[Stage]:
    return [stage for stage in load_stages() if stage.resource == resource]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".input.yaml"))
def test_an_object_is_in_the_expected_stage_with_the_expected_effect(path: Path) -> None:
    obj = yaml.safe_load(path.read_text())
    expected: dict[str, Any] = yaml.safe_load(Path(str(path).replace(".input.", ".output.")).read_text())
    stage = select(_of(obj["kind"].lower() + "s"), obj)
    assert (stage.name if stage else None) == expected["stage"]
    if stage is None:
        return
    if "delay" in expected:
        assert stage.delay.of(obj) == expected["delay"]
    assert stage.delete is expected.get("delete", False)
    if "status" in expected:
        assert render(stage.status, obj, FACTS) == expected["status"]


def test_every_built_in_stage_has_a_golden_case() -> None:
    covered = {yaml.safe_load(Path(str(path).replace(".input.", ".output.")).read_text())["stage"] for path in GOLDEN}
    assert {stage.name for stage in load_stages()} <= covered


def test_jitter_is_bounded_and_the_same_for_the_same_object() -> None:
    [heartbeat] = [stage for stage in load_stages() if stage.name == "node-heartbeat"]
    delays = {uid: heartbeat.delay.of({"metadata": {"uid": uid}}) for uid in ("a", "b", "c")}
    assert delays == {uid: heartbeat.delay.of({"metadata": {"uid": uid}}) for uid in ("a", "b", "c")}
    assert len(set(delays.values())) == 3
    assert all(300 <= (delay or 0) <= 360 for delay in delays.values())


def test_an_annotation_that_is_no_number_gives_no_delay() -> None:
    text = MINIMAL + "delay: {annotation: x}\n"
    stage = load_stage(text, "s.yaml")
    assert not stage.matches({"metadata": {"annotations": {"x": "soon"}}, "spec": {"nodeName": "n"}})
    assert stage.matches({"metadata": {"annotations": {"x": "1"}}, "spec": {"nodeName": "n"}})


def test_expressions_stand_alone_or_inside_text() -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"n": 3}}
    assert render({"x": "${spec.n}", "y": "pod ${metadata.name} of ${spec.n}"}, obj, FACTS) == {
        "x": 3,
        "y": "pod a of 3",
    }


def test_two_stages_that_match_one_object_are_an_error_that_names_both() -> None:
    stages = [load_stage(MINIMAL.replace("name: s", f"name: {name}"), "s.yaml") for name in ("one", "two")]
    with pytest.raises(StageError, match="stages one and two both match pods a"):
        select(stages, {"metadata": {"name": "a"}, "spec": {"nodeName": "n"}})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: s", "nmae: s", "s.yaml: unknown key nmae; known are name, resource"),
        ("name: s", "", "s.yaml: missing or misshapen: 'name'"),
        ("exists: true", "is: true", "s.yaml: when: unknown key is"),
        ("field: spec.nodeName, exists: true", "field: spec.nodeName", "field spec.nodeName needs one of exists, in"),
        ("spec.nodeName", "spec..nodeName", "field path 'spec..nodeName' cannot be read"),
        ("{delete: true}", "{}", "then: give either status or delete: true"),
        ("{delete: true}", "{delete: true, status: {}}", "then: give either status or delete: true"),
        (MINIMAL, "[]", "a stage is a mapping"),
    ],
)
def test_a_stage_that_cannot_be_used_says_where_and_why(old: str, new: str, message: str) -> None:
    with pytest.raises(StageError) as caught:
        load_stage(MINIMAL.replace(old, new), "s.yaml")
    assert message in str(caught.value)


def test_stages_may_come_from_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="no stages found"):
        load_stages(tmp_path)
    (tmp_path / "b.yaml").write_text(MINIMAL.replace("name: s", "name: b"))
    (tmp_path / "a.yaml").write_text(MINIMAL.replace("name: s", "name: a"))
    assert [stage.name for stage in load_stages(tmp_path)] == ["a", "b"]
