"""Which victim candidates reclaim may take, given guaranteed and deserved shares of queues: one candidate at a time."""

from collections.abc import Mapping, Sequence

from tests.reference.entitlements import ALWAYS, Amounts, Due, Queue

NOTHING = 0.1  # smaller amounts count as zero


def may_go(
    candidates: Sequence[tuple[str, Amounts]],  # queue and request, in victim order
    held: Mapping[str, Amounts],  # by queue, with all queues below it
    queues: Mapping[str, Queue],
    due: Mapping[str, Due],
    ways: Mapping[str, Sequence[str]],  # from each queue up to the root
    preemptor: str,
    asked: Amounts | None,  # the preemptor's request, None for a gang
    level: int = 0,
) -> list[bool]:
    accounts = {name: dict(amounts) for name, amounts in held.items()}
    answers = []

    def near(name: str) -> list[str]:
        return [above for above in ways[name][1 : 1 + level] if above != "root"]

    def named(name: str, resource: str) -> bool:
        if resource in ALWAYS:
            return due[name].deserved[resource] >= NOTHING
        below = [child for child, way in ways.items() if way[1:2] == [name]] if name == "root" else [name]
        return any(resource in queues[one].deserved or resource in queues[one].guarantee for one in below)

    def easy(name: str, request: Amounts) -> bool:
        return not any(
            amount >= NOTHING and due[name].deserved[resource] >= NOTHING for resource, amount in request.items()
        )

    def exceeds(name: str, request: Amounts) -> bool:
        return any(
            amount > 0
            and resource != "pods"
            and named(name, resource)
            and accounts[name][resource] > due[name].deserved[resource]
            for resource, amount in request.items()
        )

    for name, request in candidates:
        answers.append(False)
        if not ways[name] or not ways[preemptor]:
            continue
        if asked is not None and not any(
            resource != "pods" and amount >= NOTHING and asked.get(resource, 0.0) >= NOTHING
            for resource, amount in request.items()
        ):
            continue
        left = {resource: amount - request.get(resource, 0.0) for resource, amount in accounts[name].items()}
        if any(due[name].guarantee[resource] - amount >= NOTHING for resource, amount in left.items()):
            continue
        shared = asked is not None and set(near(name)) & set(near(preemptor))
        if easy(name, request):
            if shared and easy(preemptor, asked or {}):
                continue
        elif not exceeds(name, request):
            continue
        others = near(preemptor)
        checked = [
            above
            for index, above in enumerate(near(name) if asked is not None else [])
            if not (index < len(others) and others[index] == above)
        ]
        if not all(easy(above, request) or exceeds(above, request) for above in checked):
            continue
        for account in (name, *checked):
            for resource, amount in request.items():
                accounts[account][resource] -= amount
        answers[-1] = True
    return answers
