"""Compares the versions of an object: its states come from a watch and as answers to our own writes, in any order."""


def is_older(version: str, than: str) -> bool:
    """Say whether a resourceVersion is older than another; versions that are no numbers cannot be compared."""
    return version.isdigit() and than.isdigit() and int(version) < int(than)
