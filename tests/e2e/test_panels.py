"""Panels say the same with two replicas as with one: `promtool test rules` on their queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.e2e.prometheus import require_programs
from tests.e2e.test_alerts import promtool
from tools.dashboards.description import read_all
from tools.dashboards.draw import Window, query_of

QUERIES = {
    (dashboard.name, panel.title, target.legend): target.query
    for dashboard in read_all()
    for panel in dashboard.panels
    for target in panel.targets
}
LEADER = {'volcano_py_leader{instance="s"}': "1x9", 'volcano_py_leader{instance="t"}': "0x9"}


class Case(NamedTuple):
    """What a query answers: labels of its series and their values."""

    dashboard: str
    panel: str
    legend: str
    series: dict[str, str]
    answer: dict[str, float]


CASES = [
    Case(
        "scheduler",
        "Watches that were lost",
        "{{resource}}",
        {
            'volcano_py_lists{instance="s",resource="pods"}': "1x9",
            'volcano_py_lists{instance="t",resource="pods"}': "1x9",
        },
        {"{}": 0},
    ),
    Case(
        "scheduler",
        "Watches that were lost",
        "{{resource}}",
        {
            'volcano_py_lists{instance="s",resource="pods"}': "3x9",
            'volcano_py_lists{instance="t",resource="pods"}': "2x9",
        },
        {'{resource="pods"}': 3},
    ),
    Case(
        "scheduler",
        "Objects that cannot be read",
        "{{resource}}",
        {f'volcano_py_quarantined_objects{{instance="{one}",resource="pods"}}': "2x9" for one in "st"},
        {'{resource="pods"}': 2},
    ),
    Case(
        "scheduler",
        "Binds under way",
        "limit",
        {**LEADER, **{f'volcano_py_bind_limit{{instance="{one}"}}': "50x9" for one in "st"}},
        {"{}": 50},
    ),
    Case(
        "webhooks",
        "Certificate ends in",
        "",
        {
            'volcano_py_admission_certificate_expiry_timestamp_seconds{instance="s"}': "100000x9",
            'volcano_py_admission_certificate_expiry_timestamp_seconds{instance="t"}': "0x9",  # none is loaded yet
        },
        {"{}": 100000 - 300},
    ),
    Case(
        "jobs",
        "Failed jobs",
        "{{queue_name}}",
        {  # one of them was resumed, and failed again
            'volcano_job_failed_phase_count{job_name="a/b",queue_name="q"}': "2x9",
            'volcano_job_failed_phase_count{job_name="a/c",queue_name="q"}': "1x9",
        },
        {'{queue_name="q"}': 2},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.panel)
def test_a_panel_shows_what_is_so(tmp_path: Path, case: Case) -> None:
    require_programs()
    samples = [{"labels": labels, "value": value} for labels, value in case.answer.items()]
    query = query_of(QUERIES[case.dashboard, case.panel, case.legend], Window(0, 300, 60))
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": "5m", "exp_samples": samples}],
    }
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))

    promtool("test", "rules", file)
