from pathlib import Path

import pytest

from tests.conformance.conftest import OWN_ROWS
from tests.conformance.exclusions import read_exclusions
from tests.conformance.handlers import operation_of
from tests.conformance.row_files import Case, Row, RowsError, read_rows


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = metafunc.config.getoption("--rows", default=None)
    exclusions = read_exclusions()
    try:
        rows = read_rows(Path(folder) if folder else OWN_ROWS)
    except RowsError as error:
        raise pytest.UsageError(str(error)) from None
    params = [pytest.param(row, exclusions.compared(row), id=row.id, marks=exclusions.marks(row)) for row in rows]
    metafunc.parametrize(("row", "case"), params)


def test_row(row: Row, case: Case) -> None:
    assert not row.unknown, f"the row has keys that are not in the format: {', '.join(row.unknown)}"
    operation_of(row.area, case.operation).check(case)
