"""The experiments users came with give the numbers that users expect."""

import importlib
from pathlib import Path

import pytest

from benchmarks.article import e1, e2, e3, e4, e5, e6, e7, p1, p2, p3, p4
from benchmarks.article.__main__ import NAMES


def test_with_gang_jobs_run_and_end_one_after_another():
    report = e1.run(runs=2)

    for row in (row for row in report.rows if row["gang"] == "yes"):
        assert row["runs that ended"] == row["runs"]
        assert row["seconds to the end, mean"] == pytest.approx(row["jobs x run time"], abs=2)
        assert row["wasted pod seconds, mean"] == pytest.approx(0, abs=1e-6)


def test_without_gang_one_job_ends_but_five_can_deadlock():
    rows = {(row["jobs"], row["gang"]): row for row in e1.run(runs=2).rows}

    alone = rows[1, "no"]["seconds to the end, mean"]
    assert alone == pytest.approx(rows[1, "yes"]["seconds to the end, mean"], abs=0.1)
    assert rows[2, "no"]["wasted pod seconds, mean"] > 100
    assert rows[5, "no"]["runs that ended"] == 0
    assert rows[5, "no"]["wasted pod seconds, mean"] > 1000


@pytest.mark.parametrize("cluster", e2.CLUSTERS)
def test_every_parameter_server_shares_a_node_with_its_workers(cluster):
    with_topology, without = e2.run(runs=4, clusters=[cluster]).rows

    assert with_topology["runs with the requested layout"] == with_topology["runs"] == 4
    assert all(e2.as_wanted(e2.once(cluster, topology=True, seed=seed)) for seed in range(4, e2.RUNS))
    assert with_topology["least"] == with_topology["most"] == e2.BEST
    assert without["runs with the requested layout"] == 0
    assert without["on different nodes, mean"] > e2.BEST


def test_binpack_fills_a_node_before_the_next():
    assert sorted(e3.placed(16, packed=True).values()) == [0, 16]
    assert sorted(e3.placed(24, packed=True).values()) == [4, 20]
    assert sorted(e3.placed(24, packed=False).values()) == [12, 12]


def test_drf_gives_both_jobs_the_same_and_arrival_order_would_not():
    fair, by_arrival = e4.run().rows

    assert abs(fair["large runs at 15 s"] - fair["small runs at 15 s"]) <= 1
    assert fair["large runs at 15 s"] + fair["small runs at 15 s"] == e4.ROOM
    assert by_arrival["large runs at 15 s"] >= e4.ROOM - 1
    assert fair["small ended, seconds"] < by_arrival["small ended, seconds"]


def test_namespaces_run_pods_by_their_weights():
    weighted, alike = e5.run().rows

    assert (weighted["heavy (weight 3) runs"], weighted["light (weight 1) runs"]) == (
        pytest.approx(30, abs=1),
        pytest.approx(10, abs=1),
    )
    assert alike["heavy (weight 3) runs"] == alike["light (weight 1) runs"] == 20


def test_a_new_queue_gets_its_third_and_then_nothing_changes():
    alone, two, three = e6.run().rows

    assert alone["first runs"] == e6.ROOM
    assert [two[f"{name} runs"] for name in ("first", "second")] == [30, 30]
    assert all(three[f"{name} runs"] == pytest.approx(e6.ROOM / 3, abs=1) for name in e6.QUEUES)
    assert three["evicted since"] == 20
    assert three["last eviction, seconds"] < e6.QUEUES["third"] + 5


def test_a_gang_of_high_priority_takes_what_jobs_hold_beyond_their_minimum_or_nothing():
    small, exact, large = e7.run().rows

    assert [(row["runs"], row["evicted elastic"]) for row in (small, exact, large)] == [(10, 10), (16, 16), (0, 0)]
    assert all(row["evicted critical"] == row["evicted firm"] == 0 for row in (small, exact, large))
    assert exact["elastic runs"] == e7.NEEDED


def test_areas_lend_what_is_idle_and_get_it_back():
    spark, hadoop, services = e_rows = p1.run().rows

    runs = [[row[f"{name} runs (part {p1.PARTS[name]})"] for name in p1.ARRIVALS] for row in e_rows]
    assert runs == [[60, 0, 0], [42, 18, 0], [18, 18, 24]]
    assert (spark["evicted"], hadoop["evicted"], services["evicted"]) == (0, 18, 24)


def test_two_consumers_end_with_a_half_each_after_one_eviction():
    rows = [tuple(row.values()) for row in p2.run().rows]

    assert rows == [("T1", 2, 0, 0), ("T2", 2, 0, 1), ("T3", 1, 1, 1)]


def test_reserved_or_protected_pods_are_not_evicted_and_victims_get_their_grace_period():
    steady, large, newcomer = p3.run().rows
    timeline = p3.once()

    assert (steady["runs after"], steady["evicted"]) == (p3.RESERVED, 0)
    assert large["evicted"] > 0
    assert large["protected evicted"] == 0
    assert large["runs after"] == newcomer["runs after"] == (p3.ROOM - p3.RESERVED) / 2
    assert newcomer["runs after"] == large["evicted"]
    assert min(entry.time for entry in timeline.of("started", "newcomer")) >= p3.ARRIVES_S + p3.GRACE_S


def test_evictions_follow_arrivals_and_nothing_else():
    rows = p4.run().rows

    assert [row["evicted"] for row in rows] == [0, 0, 30, 0, 20, 0]
    assert [row["third runs"] for row in rows[-2:]] == [20, 20]


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_says_what_it_shows(name):
    module = importlib.import_module(f"benchmarks.article.{name}")

    assert module.__doc__.startswith(name.upper())
    assert callable(module.run)


def test_a_report_becomes_a_table_and_a_picture(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.article.report.OUT", tmp_path)

    e3.run().show()

    assert "E3" in capsys.readouterr().out
    assert Path(tmp_path / "e3.png").read_bytes().startswith(b"\x89PNG")
