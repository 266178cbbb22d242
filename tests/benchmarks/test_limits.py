"""Limits beside workloads: which row answers to one, and when it is met."""

from pathlib import Path

import pytest
import yaml

from benchmarks.limits import Line, lines

WORKLOADS = sorted((Path(__file__).parents[2] / "benchmarks" / "workloads").glob("*.yaml"))
ROWS = [{"nodes": 100, "cost": 5.0}, {"nodes": 1000, "cost": 12.0, "writes": {"per_pod": 1.1}}]


@pytest.mark.parametrize(
    ("limit", "met", "used"),
    [
        pytest.param({"of": "cost", "where": {"nodes": 100}, "at_most": 10}, True, 0.5, id="below"),
        pytest.param({"of": "cost", "where": {"nodes": 1000}, "at_most": 10}, False, 1.2, id="above"),
        pytest.param({"of": "cost", "where": {"nodes": 1000}, "at_least": 6}, True, 0.5, id="above-is-good"),
        pytest.param(
            {"of": "writes.per_pod", "where": {"nodes": 1000}, "at_most": 1.1}, True, 1.0, id="nested-and-equal"
        ),
    ],
)
def test_a_limit_is_met_or_not(limit, met, used):
    (line,) = lines([{"what": "cost", **limit}], ROWS)

    assert line.met == met
    assert line.used == pytest.approx(used)


def test_a_limit_without_a_matching_row_is_left_out():
    assert lines([{"what": "cost", "of": "cost", "where": {"nodes": 7}, "at_most": 1}], ROWS) == []


def test_a_limit_with_several_matching_rows_is_refused():
    with pytest.raises(ValueError, match="limit 'cost': 2 rows match"):
        lines([{"what": "cost", "of": "cost", "at_most": 1}], ROWS)


def test_a_rate_of_zero_exceeds_every_limit():
    assert Line("rate", 0.0, 0.8, at_least=True).used == float("inf")


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_no_limit_of_a_workload_matches_several_of_its_cases(path):
    workload = yaml.safe_load(path.read_text())

    for limit in workload.get("limits", []):
        wanted = limit.get("where", {})
        cases = [case for case in workload["cases"] if all(case.get(key) == value for key, value in wanted.items())]
        assert len(cases) <= 1, limit["what"]
