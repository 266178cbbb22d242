"""Each alert fires when it should, with the right words, and only then: `promtool test rules` on `alerts.yaml`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.prometheus import require_programs
from tools.dashboards.__main__ import WRITTEN

RULES_FILE = WRITTEN / "prometheus-rules.yaml"
CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("alerts.yaml").read_text())
RULES = [rule for group in yaml.safe_load(RULES_FILE.read_text())["groups"] for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}


@pytest.fixture(autouse=True)
def programs() -> None:
    require_programs()


def promtool(*arguments: str | Path, text: str | None = None) -> str:
    """Run promtool; return what it printed, and fail if it is not content."""
    done = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def quiet_cases(name: str) -> list[dict[str, Any]]:
    found = CASES[name]["quiet"]
    return found if isinstance(found, list) else [found]


def run(tmp_path: Path, name: str, case: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    series = [{"series": name, "values": values} for name, values in case["series"].items()]
    asked = {"alertname": name, "eval_time": case["at"], "exp_alerts": expected}
    test = {"interval": "1m", "input_series": series, "alert_rule_test": [asked]}
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES_FILE)], "evaluation_interval": "1m", "tests": [test]}))
    promtool("test", "rules", file)


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    assert CASES.keys() == ALERTS.keys()
    for name, case in CASES.items():
        assert case["fires"]["says"], name
        assert quiet_cases(name), name


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_fires_and_says_why(tmp_path: Path, name: str) -> None:
    rule = ALERTS[name]
    for case in (CASES[name][key] for key in ("fires", "fires too") if key in CASES[name]):
        annotations = {"summary": rule["annotations"]["summary"], "description": case["says"]}
        labels = {"severity": rule["labels"]["severity"], **case.get("labels", {})}

        run(tmp_path, name, case, [{"exp_labels": labels, "exp_annotations": annotations}])


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_quiet(tmp_path: Path, name: str) -> None:
    for case in quiet_cases(name):
        run(tmp_path, name, case, [])


def test_promtool_accepts_the_rules() -> None:
    assert f"{len(RULES)} rules found" in promtool("check", "rules", RULES_FILE)
