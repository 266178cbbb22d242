"""Read the tables of a Markdown page as data."""

import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"


def rows(page: Path, section: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of the one table of a section."""
    found = re.search(rf"^#+ {re.escape(section)}\n(.*?)(?=^#+ |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page.name} has no section {section!r}"
    table = [line for line in found[1].splitlines() if line.startswith("|")]
    for line in table[2:]:
        yield [cell.strip() for cell in line.strip().strip("|").split("|")]
