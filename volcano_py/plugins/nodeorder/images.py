"""ImageLocality: prefers nodes that already have a pod's images, by image size (kube-scheduler v1.36, imagelocality).

    part(image, node) = floor(size * (nodes with the image / all nodes)), 0 if the node does not have the image
    score = floor(100 * (min(max(sum of parts, 23 MiB), c * 1000 MiB) - 23 MiB) / (c * 1000 MiB - 23 MiB))

The sum is over the images of all containers and image volumes; an image named twice counts twice. c = number of
containers, including init containers, without volumes. An image on every node counts with its full size and an image on
few nodes with little, so not all pods of a new image go to the one node that has it.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from volcano_py.model.arrays import Floats
from volcano_py.snapshot.columns import NodeColumns

_MIB: Final = 1024.0 * 1024.0
_SMALLEST: Final = 23 * _MIB
_LARGEST_PER_CONTAINER: Final = 1000 * _MIB
_ABSENT: Final = -1.0


def sizes(image: str, nodes: NodeColumns) -> Floats:
    """Return the size of an image on every node of the view, shape (n_nodes,), -1 where it is missing."""
    records = nodes.statics.records
    rows = range(len(records)) if nodes.rows is None else nodes.rows
    # A Python loop over nodes: images are in their records. Answers are cached until a record changes.
    return np.array([records[row].images.get(image, _ABSENT) for row in rows], dtype=float)


def image_locality(found: Iterable[Floats], n_containers: int, n_nodes: int) -> Floats:
    """Return the scores of all nodes, shape (n_nodes,), from the sizes of each image of a pod."""
    total = np.zeros(n_nodes)
    for size in found:
        spread = np.count_nonzero(size >= 0) / max(n_nodes, 1)
        total += np.floor(np.maximum(size, 0.0) * spread)
    largest = n_containers * _LARGEST_PER_CONTAINER
    if largest <= _SMALLEST:
        return np.zeros(n_nodes)
    bounded = np.minimum(np.maximum(total, _SMALLEST), largest)
    return np.asarray(np.floor(100.0 * (bounded - _SMALLEST) / (largest - _SMALLEST)))
