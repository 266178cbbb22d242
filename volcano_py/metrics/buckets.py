"""Histogram buckets."""


def exponential(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return ``count`` bounds from ``first`` to ``last``, each the same factor above the one before."""
    factor = (last / first) ** (1 / (count - 1))
    return (*(round(first * factor**step, 6) for step in range(count - 1)), last)
