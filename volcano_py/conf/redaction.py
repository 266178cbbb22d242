"""A configuration as it may be shown to anybody: its values as they were read, without those that are secret."""

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
    """Return a configuration that can be read, written anew: without comments, and without secrets.

    Secret is what stands under a key that says so, however it is written; of the section ``metrics`` everything but
    what is known to be harmless, as a key may be misspelt; and who logs in in an address.
    """
    document = Document(text, "")
    found = document.value(document.root)
    if isinstance(found, dict) and isinstance(found.get(_METRICS), dict):
        metrics = found[_METRICS]
        found[_METRICS] = {key: value if key in PUBLIC_KEYS else HIDDEN for key, value in metrics.items()}
    return yaml.safe_dump(_hidden(found), sort_keys=False, allow_unicode=True, width=120)


def without_user_info(text: str) -> str:
    """Return a text without what stands before the @ of addresses in it."""
    return _USER_INFO.sub(f"://{HIDDEN}@", text)


def _hidden(value: Any, key: str = "") -> Any:
    if _SECRET.search(key):
        return value if value in (None, "") else HIDDEN
    if isinstance(value, dict):
        return {name: _hidden(entry, str(name)) for name, entry in value.items()}
    if isinstance(value, list):
        return [_hidden(entry) for entry in value]
    return without_user_info(value) if isinstance(value, str) else value
