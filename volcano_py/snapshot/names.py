"""Numbers in the names of pods."""


def name_suffix(name: str) -> int:
    """Return the number after the last dash of a name with two or more dashes, else -1 (Volcano's order of tasks)."""
    head, dash, last = name.rpartition("-")
    if dash and "-" in head and last.isascii() and last.isdigit() and len(last) < 18:
        return int(last)
    return -1
