"""Splits a byte stream into lines."""


class LineSplitter:
    """Takes pieces of a stream and returns whole lines; a line may span many pieces."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of an incomplete line; joined once, however many there are

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now, without line breaks and without empty lines."""
        if b"\n" not in data:
            self._pieces.append(data)
            return []
        if self._pieces:
            self._pieces.append(data)
            data = b"".join(self._pieces)
            self._pieces.clear()
        lines = data.split(b"\n")
        rest = lines.pop()
        if rest:
            self._pieces.append(rest)
        return [line for line in lines if line]

    @property
    def pending(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._pieces)
