"""The experiments users came with give the numbers that users expect."""

import importlib
from pathlib import Path

import pytest

from benchmarks.article import e1, e2, e3, e4
from benchmarks.article.__main__ import NAMES


def test_with_gang_every_job_ends_after_the_ones_before_it():
    report = e1.run(runs=4)

    for row in (row for row in report.rows if row["gang"] == "yes"):
        assert row["runs that ended"] == row["runs"]
        assert row["seconds to the end, mean"] == pytest.approx(row["jobs x run time"], abs=2)
        assert row["wasted pod seconds, mean"] == pytest.approx(0, abs=1e-6)


def test_without_gang_one_job_ends_as_well_and_five_can_wait_for_each_other_for_ever():
    rows = {(row["jobs"], row["gang"]): row for row in e1.run(runs=4, counts=(1, 5)).rows}

    alone = rows[1, "no"]["seconds to the end, mean"]
    assert alone == pytest.approx(rows[1, "yes"]["seconds to the end, mean"], abs=0.1)
    assert rows[5, "no"]["runs that ended"] == 0
    assert rows[5, "no"]["wasted pod seconds, mean"] > 1000


@pytest.mark.parametrize("cluster", e2.CLUSTERS)
def test_every_server_stands_with_its_share_of_the_workers(cluster):
    with_topology, without = e2.run(clusters=[cluster]).rows

    assert with_topology["runs laid out as wanted"] == with_topology["runs"] == 20
    assert with_topology["least"] == with_topology["most"] == e2.BEST
    assert without["runs laid out as wanted"] == 0
    assert without["on different nodes, mean"] > e2.BEST


def test_binpack_fills_a_node_before_the_next():
    assert sorted(e3.placed(16, packed=True).values()) == [0, 16]
    assert sorted(e3.placed(24, packed=True).values()) == [4, 20]
    assert sorted(e3.placed(24, packed=False).values()) == [12, 12]


def test_drf_gives_both_jobs_the_same_and_the_order_of_arrival_does_not():
    fair, by_arrival = e4.run().rows

    assert abs(fair["large runs at 15 s"] - fair["small runs at 15 s"]) <= 1
    assert fair["large runs at 15 s"] + fair["small runs at 15 s"] == e4.ROOM
    assert by_arrival["large runs at 15 s"] >= e4.ROOM - 1
    assert fair["small ended, seconds"] < by_arrival["small ended, seconds"]


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
