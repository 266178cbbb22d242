from collections.abc import Callable, Iterator

import pytest

from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.testing import a_cluster

Watched = Callable[[ClusterCache], list[set[Change]]]


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., ClusterCache]]:
    """Make clusters like `a_cluster`, and check at the end that none contradicts itself."""
    made: list[ClusterCache] = []

    def make(*objects: object, **options: object) -> ClusterCache:
        made.append(a_cluster(*objects, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for cache in made:
        cache.validate()


@pytest.fixture
def changes_of() -> Watched:
    """Record what a cache tells from now on, batch by batch."""

    def watch(cache: ClusterCache) -> list[set[Change]]:
        told: list[set[Change]] = []
        cache.on_change(lambda changes: told.append(set(changes)))
        return told

    return watch
