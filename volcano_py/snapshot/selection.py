"""Which pods the selectors in use select, updated as pods, terms and namespace labels change.

A pod's labels matter to scheduling only if some term, its own or another pod's, selects on them. So a task's shape
contains the selectors in use that select it instead of its labels. Then pods with individual labels (an index, a hash)
still share a shape, and counting the pods of a selector means counting shapes.

    a task arrives, or its labels change   its labels lead to the selectors that could select it; these are evaluated
    a selector comes into use              the label it requires leads to the tasks it could select; it is evaluated
    a selector goes out of use             the tasks that it selects are stored with it

Labels that selectors require are indexed over all tasks from their first use on.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from volcano_py.model.objects import TaskRecord
from volcano_py.model.pod_terms import PodSelector
from volcano_py.model.requirements import Requirement

_INDEXED_AT_MOST: Final = 64  # label keys; a full index drops the keys that no selector requires any more


class _Anchor(NamedTuple):
    """A label that a selector requires; values () means any value, key "" that the selector requires no label."""

    key: str = ""
    values: tuple[str, ...] = ()


class _Usage:
    """A selector in use."""

    __slots__ = ("anchor", "holders", "tasks")

    def __init__(self, anchor: _Anchor) -> None:
        self.anchor = anchor
        self.holders = 0  # number of tasks whose terms contain it
        self.tasks: set[str] = set()  # uids of the tasks it selects


class Selection:
    """The selectors in use, and the tasks that each selects."""

    def __init__(self) -> None:
        self._usages: dict[PodSelector, _Usage] = {}
        self._by_label: dict[tuple[str, str], set[PodSelector]] = {}  # selectors by a label they require
        self._by_key: dict[str, set[PodSelector]] = {}  # selectors that require a key
        self._others: set[PodSelector] = set()
        self._records: dict[str, TaskRecord] = {}  # by uid
        self._selected: dict[str, frozenset[PodSelector]] = {}  # by uid, only for tasks that some selector selects
        self._index: dict[str, dict[str, set[str]]] = {}  # key -> value -> uids
        self._namespaces: dict[str, Mapping[str, str]] = {}

    @property
    def in_use(self) -> bool:
        """Whether there is any selector."""
        return bool(self._usages)

    def of(self, uid: str) -> frozenset[PodSelector]:
        """Return the selectors in use that select a task."""
        return self._selected.get(uid, frozenset())

    # Tasks

    def put(self, record: TaskRecord, selectors: Collection[PodSelector], before: Collection[PodSelector]) -> set[str]:
        """Add or replace a task; take the selectors of its terms now and before.

        Returns the uids of the other tasks for which the answer of `of` has changed.
        """
        known = self._records.get(record.uid)
        if known is None or known.labels != record.labels or known.namespace != record.namespace:
            self._forget(record.uid)
            self._records[record.uid] = record
            self._note(record)
            found = self._selectors_of(record)
            for selector in found:
                self._usages[selector].tasks.add(record.uid)
            self._select(record.uid, found)
        else:
            self._records[record.uid] = record
        return self._use(selectors, before) - {record.uid}

    def drop(self, uid: str, before: Collection[PodSelector]) -> set[str]:
        """Forget a task and the selectors of its terms; return the other tasks, by uid, whose selectors changed."""
        self._forget(uid)
        return self._use((), before) - {uid}

    def _forget(self, uid: str) -> None:
        record = self._records.pop(uid, None)
        if record is None:
            return
        for selector in self._selected.pop(uid, frozenset()):
            self._usages[selector].tasks.discard(uid)
        for key, value in record.label_map.items() if self._index else ():
            values = self._index.get(key)
            if values is not None:
                values[value].discard(uid)
                if not values[value]:
                    del values[value]

    def _note(self, record: TaskRecord) -> None:
        for key, value in record.label_map.items() if self._index else ():
            values = self._index.get(key)
            if values is not None:
                values.setdefault(value, set()).add(record.uid)

    def _selectors_of(self, record: TaskRecord) -> frozenset[PodSelector]:
        if not self._usages:
            return frozenset()
        labels = record.label_map
        candidates = set(self._others)
        for pair in labels.items():
            candidates |= self._by_label.get(pair, frozenset())
            candidates |= self._by_key.get(pair[0], frozenset())
        space = self._namespaces.get(record.namespace, {})
        return frozenset(one for one in candidates if one.selects(record.namespace, space, labels))

    def _select(self, uid: str, selectors: frozenset[PodSelector]) -> None:
        if selectors:
            self._selected[uid] = selectors
        else:
            self._selected.pop(uid, None)

    # Selectors

    def _use(self, selectors: Collection[PodSelector], before: Collection[PodSelector]) -> set[str]:
        changed: set[str] = set()
        for selector in selectors:
            usage = self._usages.get(selector)
            if usage is None:
                changed |= self._begin(selector)
                usage = self._usages[selector]
            usage.holders += 1
        for selector in before:
            usage = self._usages[selector]
            usage.holders -= 1
            if not usage.holders:
                changed |= self._end(selector)
        return changed

    def _begin(self, selector: PodSelector) -> set[str]:
        anchor = self._anchor(selector)
        usage = self._usages[selector] = _Usage(anchor)
        for shelf, key in self._shelves(anchor):
            shelf.setdefault(key, set()).add(selector)
        if not anchor.key:
            self._others.add(selector)
        for uid in self._candidates(selector, anchor):
            record = self._records[uid]
            if selector.selects(record.namespace, self._namespaces.get(record.namespace, {}), record.label_map):
                usage.tasks.add(uid)
                self._select(uid, self.of(uid) | {selector})
        return set(usage.tasks)

    def _end(self, selector: PodSelector) -> set[str]:
        usage = self._usages.pop(selector)
        for shelf, key in self._shelves(usage.anchor):
            shelf[key].discard(selector)
            if not shelf[key]:
                del shelf[key]
        self._others.discard(selector)
        for uid in usage.tasks:
            self._select(uid, self.of(uid) - {selector})
        return usage.tasks

    def _anchor(self, selector: PodSelector) -> _Anchor:
        """Return the requirement that narrows the pods down most: In with the fewest values, else Exists.

        Of several, it is the one that the fewest selectors have as theirs: the labels of an application often begin
        with one that all instances have, and only a later one tells them apart.
        """
        found = selector.labels or () if selector.readable else ()
        listed = [requirement for requirement in found if requirement.operator == "In"]
        if listed:
            best = min(listed, key=lambda one: (len(one.values), self._crowd(one)))
            return _Anchor(best.key, best.values)
        return next((_Anchor(one.key) for one in found if one.operator == "Exists"), _Anchor())

    def _crowd(self, requirement: Requirement) -> int:
        """Return how many selectors are found by the labels of a requirement."""
        return sum(len(self._by_label.get((requirement.key, value), ())) for value in requirement.values)

    def _shelves(self, anchor: _Anchor) -> Iterator[tuple[dict[object, set[PodSelector]], object]]:
        """Yield each index, with the key in it, that leads from the required label to the selector."""
        by_label: dict[object, set[PodSelector]] = self._by_label  # type: ignore[assignment]
        by_key: dict[object, set[PodSelector]] = self._by_key  # type: ignore[assignment]
        for value in anchor.values:
            yield by_label, (anchor.key, value)
        if anchor.key and not anchor.values:
            yield by_key, anchor.key

    def _candidates(self, selector: PodSelector, anchor: _Anchor) -> Iterable[str]:
        """Return the uids of tasks that a selector may select."""
        if selector.labels is None or not selector.readable:
            return ()
        if not anchor.key:
            return list(self._records)
        values = self._index.get(anchor.key)
        if values is None:
            values = self._build_index(anchor.key)
        chosen = anchor.values or values
        return [uid for value in chosen for uid in values.get(value, ())]

    def _build_index(self, key: str) -> dict[str, set[str]]:
        if len(self._index) >= _INDEXED_AT_MOST:
            required = {usage.anchor.key for usage in self._usages.values()}
            self._index = {known: values for known, values in self._index.items() if known in required}
        values: dict[str, set[str]] = {}
        # A Python loop over all tasks, once for every label key that a selector newly requires.
        for uid, record in self._records.items():
            labels = record.labels
            if key in labels[::2]:
                values.setdefault(record.label_map[key], set()).add(uid)
        self._index[key] = values
        return values

    # Namespaces

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> set[str]:
        """Set a namespace's labels; return the uids of the tasks for which the answer of `of` has changed.

        An unknown namespace counts as one without labels.
        """
        if labels == self._namespaces.get(name, {}):
            return set()
        if labels:
            self._namespaces[name] = dict(labels)
        else:
            self._namespaces.pop(name, None)
        if not any(selector.namespace_labels for selector in self._usages):
            return set()
        changed: set[str] = set()
        # A Python loop over all tasks, only when namespace labels change while selectors use some.
        for uid, record in self._records.items():
            if record.namespace != name:
                continue
            found, before = self._selectors_of(record), self.of(uid)
            for selector in found - before:
                self._usages[selector].tasks.add(uid)
            for selector in before - found:
                self._usages[selector].tasks.discard(uid)
            if found != before:
                self._select(uid, found)
                changed.add(uid)
        return changed
