import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import OWN_ROWS
from tests.conformance.exclusions import Exclusions, read_exclusions
from tests.conformance.handlers import AREAS, operation_of
from tests.conformance.operations import Operation, same
from tests.conformance.row_files import NOW, Case, Row, RowsError, read_rows
from volcano_py.model.resource_lists import UNLIMITED
from volcano_py.testing import a_group, a_node, a_pod, a_queue, as_json

DOUBLE = Operation(lambda case: {"y": case.input["x"] * 2}, {"y": same}, frozenset({"x"}))


def a_row(id: str = "area/Test/0", area: str = "area", ignore: str = "") -> Row:
    return Row(id, area, Case("op", {}, {}), ignore)


def a_case(expect: dict[str, Any], scheduler: dict[str, Any] | None = None, **given: Any) -> Case:
    return Case("double", given, expect, scheduler)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    row = {"id": "a/Test/0", "name": "n", "source": {}, "operation": "op", "input": {}, "expect": {"t": {"$now": 60}}}
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "area.json").write_text(json.dumps({"rows": [row, {**row, "id": "a/Test/1", "extra": 1}]}))
    return tmp_path


def test_the_area_of_a_row_is_the_path_of_its_file(folder: Path) -> None:
    first, second = read_rows(folder)

    assert (first.area, first.id, first.unknown) == ("deep/area", "a/Test/0", ())
    assert second.unknown == ("extra",)


def test_times_are_relative_to_the_frozen_present(folder: Path) -> None:
    assert (read_rows(folder)[0].case.expect["t"] - NOW).total_seconds() == 60


def test_the_largest_double_is_no_limit(tmp_path: Path) -> None:
    row = {"id": "r", "operation": "op", "input": {"cpu": [{"$float": "max"}]}, "expect": {}}
    (tmp_path / "a.json").write_text(json.dumps({"rows": [row]}))

    assert read_rows(tmp_path)[0].case.input == {"cpu": [UNLIMITED]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(None, "there are no rows", id="no-file"),
        pytest.param('{"rows": []}', "there are no rows", id="no-row"),
        pytest.param('{"about": "x"}', "has no list of rows", id="another-file"),
        pytest.param("[", "is not JSON", id="not-json"),
        pytest.param('{"rows": [{"id": "x"}]}', r"rows\[0\] has no 'operation'", id="half-a-row"),
    ],
)
def test_a_folder_without_rows_is_refused(tmp_path: Path, text: str | None, problem: str) -> None:
    if text is not None:
        (tmp_path / "a.json").write_text(text)

    with pytest.raises(RowsError, match=problem):
        read_rows(tmp_path)


def test_a_row_passes_if_its_result_is_expected() -> None:
    DOUBLE.check(a_case({"y": 4}, x=2))


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        pytest.param(a_case({"y": 5}, x=2), "4 == 5", id="another-result"),
        pytest.param(a_case({"y": 4}, x=2, z=1), "input has keys that this operation does not know: z", id="input"),
        pytest.param(
            a_case({"y": 4, "w": 1}, x=2), "expect has keys that this operation does not know: w", id="expect"
        ),
        pytest.param(a_case({}, x=2), "expects nothing", id="nothing"),
        pytest.param(a_case({"y": 4}, {"tiers": []}, x=2), "has a scheduler", id="scheduler"),
    ],
)
def test_a_row_fails_if_an_expectation_fails_or_a_key_is_not_read(case: Case, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        DOUBLE.check(case)


@pytest.mark.parametrize(
    ("area", "operation"),
    [("resources", "cycle"), ("scheduler/allocate", "add"), ("allocate", "cycle"), ("new", "add")],
)
def test_an_operation_is_known_only_in_its_area(area: str, operation: str) -> None:
    with pytest.raises(AssertionError, match="no handler"):
        operation_of(area, operation)


def test_session_operations_are_known_in_every_area_of_the_scheduler() -> None:
    assert operation_of("scheduler/new", "cycle") is operation_of("scheduler/preempt", "cycle")


@pytest.mark.parametrize(
    ("row", "marks"),
    [
        pytest.param(a_row(), [], id="not-excluded"),
        pytest.param(a_row("x/Test/1"), [("xfail", {"strict": True, "reason": "later"})], id="by-id"),
        pytest.param(a_row("x/Test/1/twin"), [("xfail", {"strict": True, "reason": "later"})], id="twin"),
        pytest.param(a_row("x/Test/10"), [], id="another-id"),
        pytest.param(a_row(area="new"), [("xfail", {"run": False, "reason": "new thing"})], id="by-area"),
        pytest.param(a_row(area="new/deep"), [("xfail", {"run": False, "reason": "new thing"})], id="below-an-area"),
        pytest.param(a_row(area="newer"), [], id="another-area"),
        pytest.param(
            a_row("x/Test/1", ignore="empty"), [("skip", {"reason": "the row is useless: empty"})], id="ignored"
        ),
    ],
)
def test_rows_are_marked_by_the_list_of_exclusions(row: Row, marks: list[tuple[str, dict[str, Any]]]) -> None:
    exclusions = Exclusions({"new": "new thing"}, {"x/Test/1": "later"})

    assert [(mark.name, mark.kwargs) for mark in exclusions.marks(row)] == marks


@pytest.mark.parametrize(
    ("id", "compared"),
    [
        pytest.param("usage/Test_plugin_predicateFn/0", {"code"}, id="as-the-pattern-says"),
        pytest.param("usage/Test_plugin_predicateFn/0/twin", {"code"}, id="twin"),
        pytest.param("usage/Test_plugin_nodeOrderFn/0", {"code", "message"}, id="others"),
    ],
)
def test_some_keys_of_some_rows_are_not_compared(id: str, compared: set[str]) -> None:
    row = Row(id, "area", Case("op", {}, {"code": 1, "message": "text"}))

    assert read_exclusions().compared(row).expect.keys() == compared


CLAIM = {
    "podGroups": [as_json(a_group(name, namespace="ns", queue="q", phase="Running")) for name in ("low", "high")],
    "queues": [as_json(a_queue("q"))],
    "nodes": [as_json(a_node("n", memory="4Gi", pods=9))],
}
TIERS = {
    "tiers": [{"plugins": [{"name": "conformance", "enablePreemptable": True}]}],
    "effectivePlugins": ["conformance"],
}


def a_pod_of_a_row(name: str, priority: int, group: str, node: str = "") -> dict[str, Any]:
    return as_json(a_pod(name, namespace="ns", group=group, priority=priority, node=node))


@pytest.mark.parametrize("candidates", ["named", "whole", "whole and listed"])
def test_candidates_are_names_or_whole_pods(candidates: str) -> None:
    running, preemptor = a_pod_of_a_row("victim", 1, "low", "n"), a_pod_of_a_row("preemptor", 9, "high")
    listed = [preemptor] if candidates == "whole" else [preemptor, running]
    given = {"candidates": ["ns/victim"] if candidates == "named" else [running], "preemptor": "ns/preemptor"}
    case = Case("preemptable", {**CLAIM, "pods": listed, **given}, {"victims": ["ns/victim"]}, TIERS)

    operation_of("scheduler/victims", "preemptable").check(case)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("- ids: [a]", "an entry has a reason", id="no-reason"),
        pytest.param("- {reason: r, id: [a]}", "an entry has a reason", id="unknown-key"),
        pytest.param("- {reason: r, ids: [a]}\n- {reason: s, ids: [a]}", "a is excluded twice", id="twice"),
        pytest.param(
            "- {reason: r, keys: [x], ids: [a]}\n- {reason: s, keys: [y], ids: [a]}",
            "a is excluded twice",
            id="keys-twice",
        ),
        pytest.param("- {reason: r, keys: [x], areas: [a]}", "with keys has ids", id="keys-of-areas"),
    ],
)
def test_a_list_of_exclusions_that_says_too_little_or_too_much_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "list.yaml"
    path.write_text(text)

    with pytest.raises(ValueError, match=problem):
        read_exclusions(path)


def test_every_exclusion_names_existing_rows_and_no_area_with_handlers() -> None:
    rows, exclusions = read_rows(OWN_ROWS), read_exclusions()

    assert exclusions.ids.keys() <= {row.id for row in rows}
    assert not {area for area in exclusions.areas if not any(row.area.startswith(area) for row in rows)}
    assert [area for area in AREAS if exclusions.area_reason(area)] == []
