"""Says whether a user of a kubeconfig acts as somebody else, which is not supported.

To leave it out would give a program other rights than its user wants it to have, most often more.
"""

from collections.abc import Mapping
from typing import Any, Final

_FIELDS: Final = ("as", "as-uid", "as-groups", "as-user-extra")


def impersonation(user: Mapping[str, Any]) -> str:
    """Return why a user cannot be used, "" if it does not act as another one."""
    found = next((name for name in _FIELDS if user.get(name)), "")
    if not found:
        return ""
    return f"its user acts as another one (`{found}`), which is not supported; name a user with rights of its own"
