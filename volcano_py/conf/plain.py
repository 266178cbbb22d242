"""Reads YAML files of other programs as plain Python, by the same rules as the configuration of the scheduler.

PyYAML's own constructors raise whatever their conversions raise: ValueError for the date 2026-11-31, KeyError for
``!!bool x``, RecursionError for deep nesting. Here, what is no number or boolean is text, and every error is a
ConfError.
"""

from typing import Any

from volcano_py.conf.document import Document
from volcano_py.conf.schema import ConfError, Where


def read_plain(text: str, file: str) -> Any:
    """Return a document: dict, list, str, int, float, bool or None; raise ConfError. ``file`` is its name in errors."""
    try:
        document = Document(text, file)
        return document.value(document.root)
    except RecursionError as error:
        raise ConfError(Where(file, 1), "it is nested too deeply, or an anchor contains itself") from error
