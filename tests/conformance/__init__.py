"""Conformance rows: behaviour as data, run against the parts that must show it.

    row_files    what a folder of rows holds
    exclusions   which rows are not met yet, and why (exclusions.yaml)
    operations   what a handler is: an operation, the keys it knows, how results are compared
    handlers/    one module per area or family of operations, and the table of all
    test_rows    one test per row

To add an area: write its module in ``handlers/``, put its operations into the table of ``handlers/__init__.py``, and
take the area out of ``exclusions.yaml``. A key that a handler does not know fails the row, so nothing is left unread.
"""
