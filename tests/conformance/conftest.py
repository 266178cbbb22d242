from pathlib import Path

import pytest

OWN_ROWS = Path(__file__).parent / "rows"

# The assertions that decide about a row stand in handlers; this makes them say what they compared.
pytest.register_assert_rewrite("tests.conformance.operations", "tests.conformance.handlers")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows", metavar="DIR", default=None, help="folder of conformance rows to run instead of our own")
