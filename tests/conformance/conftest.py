from pathlib import Path

import pytest

OWN_ROWS = Path(__file__).parent / "rows"

# Handlers hold the assertions of the rows; this makes pytest show the compared values.
pytest.register_assert_rewrite("tests.conformance.operations", "tests.conformance.handlers")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows", metavar="DIR", default=None, help="folder of conformance rows to run instead of our own")
