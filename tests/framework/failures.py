"""What tests say of plugins that fail."""

import re
from collections.abc import Iterable


def without_places(failures: Iterable[str]) -> list[str]:
    """Return the failures without file and line, which differ from checkout to checkout."""
    return [re.sub(r" \(\S+\.py:\d+\)", "", failure) for failure in failures]
