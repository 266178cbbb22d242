"""The chart's files say the same: values.yaml, its schema, the list of Volcano's values, and docs/chart.md."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from tests.chart.rendering import CHART
from tests.chart.volcano_chart import VALUES as VOLCANOS
from tests.packaging.pages import DOCS, rows
from volcano_py import __version__

PAGE = DOCS / "chart.md"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
FOREIGN = yaml.safe_load((CHART / "volcano-values.yaml").read_text())


def values() -> dict[str, Any]:
    """Return every value of the chart, by its path."""
    read = yaml.safe_load((CHART / "values.yaml").read_text())
    return {f"{part}.{name}": value for part, block in read.items() for name, value in block.items()}


def in_schema() -> set[str]:
    return {
        f"{part}.{name}" if "properties" in block else part
        for part, block in SCHEMA["properties"].items()
        for name in block.get("properties", {"": None})
    }


def unused(path: str) -> bool:
    return any(path == one or (one[-1] == "*" and path.startswith(one[:-1])) for one in FOREIGN["unused"])


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def shown(value: Any) -> str:
    if value in (None, "", []):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_page_lists_every_value_with_its_default() -> None:
    found = {name: cells[1] for cells in rows(PAGE, "Values") for name in names(cells[0])}

    assert found == {name: shown(value) for name, value in values().items()}


def test_the_page_lists_the_values_of_volcano_that_are_not_used() -> None:
    tables = {part: dict(rows(PAGE, f"Values of Volcano {part}")) for part in ("without effect", "that are refused")}

    assert tables["without effect"] == {f"`{name}`": why for name, why in FOREIGN["unused"].items()}
    assert tables["that are refused"] == {f"`{name}`": why for name, why in FOREIGN["missing"].items()}


def test_the_schema_knows_the_values_of_the_chart_and_those_of_volcano_and_no_others() -> None:
    plain = {name for name in FOREIGN["unused"] if not name.endswith("*")}

    assert in_schema() == {*values(), *plain, *FOREIGN["missing"]}
    assert all(SCHEMA["properties"][part]["additionalProperties"] is False for part in ("basic", "custom", "service"))


def test_the_schema_lets_families_of_volcanos_values_pass() -> None:
    for part in ("basic", "custom"):
        (pattern,) = SCHEMA["properties"][part]["patternProperties"]
        families = [
            name.partition(".")[2][:-1] for name in FOREIGN["unused"] if name[-1] == "*" and name.startswith(part)
        ]
        assert sorted(families) == sorted(f"{one}_" for one in re.findall(r"[a-z_]*[a-z]", pattern))


def test_every_value_of_volcano_is_used_or_explained() -> None:
    theirs = {f"{part}.{name}" for part, block in VOLCANOS.items() if part != "jobflow" for name in block}

    assert {one for one in theirs if one not in values() and one not in FOREIGN["missing"] and not unused(one)} == set()
    assert {one for one in values() if unused(one)} == {"custom.hypernode_controller_mode"}


def test_the_chart_has_the_version_of_the_project() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert (about["version"], about["appVersion"]) == (__version__, __version__)


def test_the_chart_and_both_guides_need_the_same_kubernetes() -> None:
    (needed,) = re.findall(r">=(\d+\.\d+)\.0-0", yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"])

    assert f"Kubernetes must be {needed} or later" in PAGE.read_text()
    assert f"They need {needed} or later" in (DOCS / "install.md").read_text()


def test_the_manifests_are_a_link_and_no_copy() -> None:
    assert (CHART / "manifests").readlink().as_posix() == "../manifests"
