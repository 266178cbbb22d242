"""minResources of a PodGroup: what its minimum of pods asks for, under the names that quotas count as well.

Beside every request stands its name in quotas (``requests.cpu``), and the pods themselves are counted, as Volcano
writes it. Readers that count resources leave the quota names aside.
"""

from volcano_py.api import keys
from volcano_py.api.core import PodSpec
from volcano_py.model.pod_request import pod_request
from volcano_py.model.resources import quantity_text


def min_resources(spec: PodSpec, members: int) -> dict[str, str]:
    """Return what so many pods like this one ask for; raise QuantityError naming the field that cannot be read."""
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
