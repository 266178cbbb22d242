"""The operators' guide and troubleshooting: log lines, reasons, codes, metrics and files are those of the programs."""

import re
from pathlib import Path

from tests.packaging.measured import of_scheduler, series
from tests.packaging.pages import DOCS, REPOSITORY, rows
from volcano_py.api import keys
from volcano_py.controllers.cronjob import reports
from volcano_py.controllers.job import decision

PAGE = DOCS / "operators.md"
SOURCES = "\n".join(file.read_text() for file in (REPOSITORY / "volcano_py").rglob("*.py"))


def test_every_line_of_the_log_that_is_explained_is_written_somewhere():
    events = [cells[0].strip("`") for cells in rows(PAGE, "Log lines")]

    assert [event for event in events if f'"{event}"' not in SOURCES] == []


def test_reasons_are_those_of_conditions_and_events():
    reasons = {cells[2].strip("`") for cells in rows(PAGE, "Conditions and events")}
    known = {value for name, value in vars(keys).items() if name.startswith(("REASON_", "EVENT_"))}

    assert {"Unreadable", "FailedPodGroup", "OwnerCycle"} <= reasons - known  # not decisions of a cycle
    assert [reason for reason in reasons - known if f'"{reason}"' not in SOURCES] == []


def test_every_event_of_the_programs_is_listed():
    events = {value for name, value in vars(keys).items() if name.startswith("EVENT_")} - {"Normal", "Warning"}
    events |= {
        value for name, value in vars(reports).items() if name.isupper() and isinstance(value, str)
    }  # of cron jobs
    events |= {*decision._PROBLEM_EVENTS.values(), decision.FAILED_CREATE, decision.EVENT_GROUP_PENDING}
    listed = {
        word for cells in rows(PAGE, "Conditions and events") for word in re.findall(r"`(\w+)`", cells[2] + cells[3])
    }

    assert events - listed == set()


def test_codes_and_metrics_of_the_page_on_troubleshooting_exist():
    page = DOCS / "troubleshooting.md"
    codes = {code for cells in rows(page, "Reason codes") for code in re.findall(r"`([^`]+)`", cells[0])}
    metrics = set(re.findall(r"`(volcano_[a-z_]+[a-z])", page.read_text()))
    known = series(of_scheduler())

    assert [code for code in sorted(codes) if "<" not in code and f'"{code}"' not in SOURCES] == []
    families = {metric.family for metric in known.values()}
    assert [name for name in sorted(metrics) if not any(family.startswith(name) for family in families)] == []


def test_every_sample_configuration_is_listed():
    listed = {cells[0].strip("`") for cells in rows(PAGE, "Configure")}

    assert listed == {file.name for file in (REPOSITORY / "conf").glob("*.yaml")}


def test_files_that_guides_name_exist():
    for page in DOCS.glob("*.md"):
        text = page.read_text()
        for path in re.findall(r"`((?:manifests|conf|docs|volcano_py)/[\w./-]*)`", text):
            assert (REPOSITORY / path).exists(), f"{page.name}: {path}"


def test_pages_and_files_that_the_readme_names_exist():
    text = (REPOSITORY / "README.md").read_text()
    links = re.findall(r"\]\(((?!http|#)[^)#]+)", text)
    paths = re.findall(r"`((?:manifests|conf|docs|volcano_py)/[\w./-]*)`", text)

    assert len(links) > 10
    assert [name for name in (*links, *paths) if not (REPOSITORY / name).exists()] == []


def test_links_to_files_lead_to_a_file():
    broken = [
        f"{page.name}: {link}"
        for page in (REPOSITORY / "README.md", *DOCS.glob("*.md"), *DOCS.glob("decisions/*.md"))
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert broken == []


def test_links_to_sections_lead_to_a_heading():
    def anchors(page: Path) -> set[str]:
        headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
        return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

    broken = []
    for page in (REPOSITORY / "README.md", *DOCS.glob("*.md"), *DOCS.glob("decisions/*.md")):
        for name, anchor in re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", page.read_text()):
            if anchor not in anchors(page.parent / name if name else page):
                broken.append(f"{page.name}: {name}#{anchor}")
    assert broken == []
