"""minResources of a PodGroup: what its minimum of pods asks for, under the names that quotas count as well.

Beside every request stands its name in quotas (``requests.cpu``), and the pods themselves are counted, as Volcano
writes it. Readers that count resources leave the quota names aside.
"""

from typing import Final

from volcano_py.api import keys
from volcano_py.api.types import PodSpec
from volcano_py.cache.requests import pod_request

_BINARY: Final = ((6, "Ei"), (5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki"))
_BYTES: Final = (keys.MEMORY, keys.EPHEMERAL_STORAGE)


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
            found[name] = found[f"requests.{name}"] = _quantity(name, total)
    return found


def _quantity(name: str, amount: int) -> str:
    """Return an amount (thousandths, of memory bytes) as people write it, exactly."""
    units, rest = (amount, 0) if name == keys.MEMORY else divmod(amount, 1000)
    if rest:
        return f"{amount}m"
    if name in _BYTES or name.startswith(keys.HUGEPAGES_PREFIX):
        for power, suffix in _BINARY:
            whole, rest = divmod(units, 1024**power)
            if whole and not rest:
                return f"{whole}{suffix}"
    return str(units)
