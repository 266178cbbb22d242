"""Counts of requests by verb and resource: what a client costs the server."""

from __future__ import annotations

from collections import Counter

_WRITES = ("create", "update", "patch", "delete", "deletecollection")


class RequestCounters:
    """Requests by (verb, resource) and by (verb, resource, code); a subresource counts as `pods/binding`."""

    def __init__(self) -> None:
        self._by_verb: Counter[tuple[str, str]] = Counter()
        self._by_code: Counter[tuple[str, str, int]] = Counter()

    def add(self, verb: str, resource: str, code: int) -> None:
        """Count one answered request."""
        self._by_verb[(verb, resource)] += 1
        self._by_code[(verb, resource, code)] += 1

    def count(self, verb: str | None = None, resource: str | None = None, code: int | None = None) -> int:
        """Requests that match the given arguments; an argument that is not given matches everything."""
        return sum(
            number
            for (a_verb, a_resource, a_code), number in self._by_code.items()
            if verb in (None, a_verb) and resource in (None, a_resource) and code in (None, a_code)
        )

    def writes(self) -> dict[tuple[str, str], int]:
        """Write requests by (verb, resource)."""
        return {key: number for key, number in self._by_verb.items() if key[0] in _WRITES}

    def snapshot(self) -> dict[tuple[str, str], int]:
        """All requests by (verb, resource)."""
        return dict(self._by_verb)

    def reset(self) -> None:
        """Start counting anew."""
        self._by_verb.clear()
        self._by_code.clear()
