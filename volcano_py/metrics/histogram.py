"""Histograms for what happens thousands of times a second."""

from bisect import bisect_left

import prometheus_client


class Histogram(prometheus_client.Histogram):
    """A histogram that finds its bucket by bisection: 1 us per value instead of 3, which counts at several per bind."""

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count a value; exemplars are not kept. It must not be NaN."""
        del exemplar
        self._sum.inc(amount)
        self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)
