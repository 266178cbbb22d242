"""Prints a configuration without its secrets: the values as they were read, secret ones hidden."""

import re
from typing import Any, Final

import yaml

from volcano_py.conf.document import Document
from volcano_py.conf.node_metrics import PUBLIC_KEYS

HIDDEN: Final = "***"
_SECRET: Final = re.compile(r"password|passwd|secret|token|credential|api.?key|authorization|bearer", re.IGNORECASE)
_USER_INFO: Final = re.compile(r"://[^\s'\"]*@")
_METRICS: Final = "metrics"


def redacted(text: str) -> str:
    """Return the text of a valid configuration, without comments and secrets.

    Hidden are the values of keys whose names suggest a secret, the user and password in an address, and in the section
    ``metrics`` every value except those of known harmless keys, because a key may be misspelt.
    """
    document = Document(text, "")
    found = document.value(document.root)
    if isinstance(found, dict) and isinstance(found.get(_METRICS), dict):
        metrics = found[_METRICS]
        found[_METRICS] = {key: value if key in PUBLIC_KEYS else HIDDEN for key, value in metrics.items()}
    return yaml.safe_dump(_hidden(found), sort_keys=False, allow_unicode=True, width=120)


def without_user_info(text: str) -> str:
    """Return a text without the user and password in its addresses."""
    return _USER_INFO.sub(f"://{HIDDEN}@", text)


def _hidden(value: Any, key: str = "") -> Any:
    if _SECRET.search(key):
        return value if value in (None, "") else HIDDEN
    if isinstance(value, dict):
        return {name: _hidden(entry, str(name)) for name, entry in value.items()}
    if isinstance(value, list):
        return [_hidden(entry) for entry in value]
    return without_user_info(value) if isinstance(value, str) else value
