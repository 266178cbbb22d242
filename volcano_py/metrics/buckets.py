"""Histogram buckets."""


def exponential(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return ``count`` bounds from ``first`` to ``last``, with the same factor between neighbours."""
    factor = (last / first) ** (1 / (count - 1))
    return (*(round(first * factor**step, 6) for step in range(count - 1)), last)
