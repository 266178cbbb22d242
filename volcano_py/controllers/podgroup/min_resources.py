"""minResources of a PodGroup: the requests of its minimum of pods, also under the names that quotas use.

As in Volcano, every request is written twice, the second time under its name in quotas (``requests.cpu``), and the
number of pods is written, too. Readers that count resources ignore the quota names.
"""

from volcano_py.api import keys
from volcano_py.api.core import PodSpec
from volcano_py.model.pod_request import pod_request
from volcano_py.model.resources import quantity_text


def min_resources(spec: PodSpec, members: int) -> dict[str, str]:
    """Return the requests of ``members`` equal pods; raise QuantityError naming the field that cannot be read."""
    if members == 0:
        return {}
    found: dict[str, str] = {}
    for name, amount in sorted(pod_request(spec).raw.items()):
        total = int(amount) * members
        if name == keys.PODS:
            found[name] = found[f"count/{name}"] = str(total)
        else:
            found[name] = found[f"requests.{name}"] = quantity_text(name, total)
    return found
