from collections.abc import Callable, Iterator

import pytest

from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.testing import a_cluster

Watched = Callable[[ClusterCache], list[set[Change]]]


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., ClusterCache]]:
    """Make clusters like `a_cluster`, and validate each of them at the end."""
    made: list[ClusterCache] = []

    def make(*objects: object, **options: object) -> ClusterCache:
        made.append(a_cluster(*objects, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for cache in made:
        cache.validate()


@pytest.fixture
def changes_of() -> Watched:
    """Record the changes that a cache reports from now on, batch by batch."""

    def watch(cache: ClusterCache) -> list[set[Change]]:
        told: list[set[Change]] = []
        cache.on_change(lambda changes: told.append(set(changes)))
        return told

    return watch
