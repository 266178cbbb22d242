"""Keys by which a plugin orders all queues at once say what it says of any two of them."""

from itertools import permutations
from random import Random

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.plugins.test_undo import place_something
from tests.reference.busy import busy_world
from volcano_py.framework.contract.extension_points import QueueOrder
from volcano_py.plugins import PLUGINS

NAMES = sorted(name for name, plugin in PLUGINS.items() if issubclass(plugin, QueueOrder))


@pytest.mark.parametrize("name", NAMES)
def test_keys_of_queues_agree_with_their_comparison(name: str) -> None:
    seen = set()
    for number in range(40):
        plugin = PLUGINS[name](PLUGINS[name].parse({}, lambda text: None))
        ssn = a_session(busy_world(number), plugin)
        place_something(ssn, Random(number))
        assert isinstance(plugin, QueueOrder)
        keys = plugin.queue_keys()
        if keys is None:
            continue
        for left, right in permutations(ssn.state.queues.values(), 2):
            said = float(np.sign(plugin.queue_order(left, right)))
            pairs = [(float(key[left.row]), float(key[right.row])) for key in keys]
            assert next((-1.0 if one < other else 1.0 for one, other in pairs if one != other), 0.0) == said
            seen.add(said)
    assert name == "drf" or seen == {-1.0, 0.0, 1.0}
