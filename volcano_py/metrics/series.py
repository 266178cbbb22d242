"""Gauges with thousands of series, such as one per job: cheap to set, and read without holding the event loop.

The library keeps an object for each series. To make one takes 30 us, so ten thousand jobs would hold the event loop for
a third of a second. Here a series is an entry in a dict. Its sample is made when the text of its part is made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

Labels = tuple[str, ...]
L = TypeVar("L", bound=Labels)


class SeriesGauge(Collector):
    """A gauge with a series for each combination of its labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name = name
        self._text = text
        self._type = "gauge"  # named as in the library's own gauges
        self._labelnames = tuple(labels)
        self._values: dict[Labels, float] = {}
        registry.register(self)

    def set(self, labels: Labels, value: float) -> None:
        """Set a series; it exists from now on."""
        self._values[labels] = value

    def remove(self, labels: Labels) -> None:
        """Remove a series; there may be none."""
        self._values.pop(labels, None)

    def describe(self) -> Iterator[Metric]:
        """Yield the metric without its series."""
        yield Metric(self._name, self._text, self._type)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric; its samples are made when they are looked at."""
        metric = Metric(self._name, self._text, self._type)
        metric.samples = _Samples(self._name, self._labelnames, self._now())  # type: ignore[assignment]
        yield metric

    def _now(self) -> list[tuple[Labels, float]]:
        return list(self._values.items())


class RoundsGauge(SeriesGauge):
    """A gauge whose series count the rounds that each has been there; to end a round costs the same for any number."""

    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        super().__init__(name, text, labels, registry)
        self._rounds = 0

    def end_round(self) -> None:
        """Raise all series by one."""
        self._rounds += 1

    def begin(self, labels: Labels) -> None:
        """Begin a series with 0, unless it is there."""
        self._values.setdefault(labels, self._rounds)

    def _now(self) -> list[tuple[Labels, float]]:
        return [(labels, self._rounds - begun) for labels, begun in self._values.items()]  # 1 ms for 20,000


class GivenGauge(SeriesGauge):
    """A gauge whose series are given all at once, again and again; a series that is not given any more shows 0."""

    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        super().__init__(name, text, labels, registry)
        self._given: Mapping[Any, float] = {}

    def give(self, values: Mapping[L, float]) -> None:
        """Show these values from now on; they are not copied, so they may not change afterwards."""
        self._values.update(dict.fromkeys(self._given.keys() - values.keys(), 0.0))
        self._given = values

    def keep(self, exists: Callable[[L], bool]) -> None:
        """Remove the series for whose labels ``exists`` says no."""
        self._values = {labels: value for labels, value in self._values.items() if exists(cast(L, labels))}
        self._given = {labels: value for labels, value in self._given.items() if exists(labels)}

    def _now(self) -> list[tuple[Labels, float]]:
        return list({**self._values, **self._given}.items())


class _Samples(Sequence[Sample]):
    """The samples of one moment."""

    def __init__(self, name: str, labels: Labels, values: list[tuple[Labels, float]]) -> None:
        self._name = name
        self._labels = labels
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._sample(*entry) for entry in self._values[index]]
        return self._sample(*self._values[index])

    def _sample(self, labels: Labels, value: float) -> Sample:
        return Sample(self._name, dict(zip(self._labels, labels, strict=True)), value)
