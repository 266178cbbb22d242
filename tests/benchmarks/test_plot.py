"""The picture of a run."""

import pytest

from benchmarks.limits import Line
from benchmarks.plot import draw

RECORD = {
    "when": "2026-11-21T12:00:00+00:00",
    "machine": {"commit": "abc", "cores": 2},
    "decision": [{"nodes": n, "k": k, "cpu_us_per_pod": 10.0 * k} for n in (100, 1000) for k in (1, 10)],
    "binding": [
        {"server": "real", "gangs": 1, "k": 10, "nodes": 5, "bind_rate_ratio": 0.9}
        | {"bare": {"binds_per_s": 100.0}, "scheduler": {"binds_per_s": 90.0}}
    ],
    "limits": [Line("cost", 5, 10).as_json(), Line("rate", 0.0, 1, at_least=True).as_json()],
}


@pytest.mark.parametrize("parts", [("decision",), ("binding", "limits"), ("decision", "binding", "limits")])
def test_any_part_of_a_record_is_drawn(tmp_path, parts):
    record = {key: value for key, value in RECORD.items() if key in ("when", "machine", *parts)}

    assert draw(record, tmp_path / "out" / "a.png").read_bytes().startswith(b"\x89PNG")
