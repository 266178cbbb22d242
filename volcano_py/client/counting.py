"""Numbers in sentences."""


def counted(number: int, what: str) -> str:
    """Return `1 pod` or `2 pods`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def have(number: int) -> str:
    """Return `1 has` or `2 have`."""
    return f"{number} has" if number == 1 else f"{number} have"
