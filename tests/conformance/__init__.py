"""Conformance rows: behaviour as data, run against the code that must behave so.

    row_files    reads a folder of rows
    exclusions   which rows fail for now, and why (exclusions.yaml)
    operations   the type of a handler: an operation, the keys it knows, how results are compared
    handlers/    one module per area or family of operations, and the table of all handlers
    test_rows    one test per row

To add an area: write its module in ``handlers/``, put its operations into the table of ``handlers/__init__.py``, and
take the area out of ``exclusions.yaml``. A key that a handler does not know fails the row, so no key is ignored.
"""
