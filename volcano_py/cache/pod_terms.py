"""Reads a pod's inter-pod terms and spread constraints from its spec; each selector gets one canonical form.

``matchLabelKeys`` and ``mismatchLabelKeys`` of an affinity term become requirements of its selector. The API server
does the same when a pod is created (kube-apiserver v1.36, registry/core/pod: applyMatchLabelKeysAndMismatchLabelKeys).
If the selector has such a requirement for a key already, no other is added, so that labels changed later do not change
the term. For spread constraints, kube-scheduler adds the requirements itself, from the present labels; so does this
module.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from volcano_py.api import core
from volcano_py.api.core import Pod, PodSpec
from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement
from volcano_py.cache.fields import int32
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread, WeighedPodTerm
from volcano_py.model.requirements import Requirement
from volcano_py.snapshot.node_terms import valid_expression

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_IGNORE: Final = "Ignore"
_HONOR: Final = "Honor"
_DO_NOT_SCHEDULE: Final = "DoNotSchedule"
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


def pod_terms(pod: Pod) -> PodTerms:
    """Return a pod's affinity and anti-affinity to other pods; preferred terms of weight 0 are left out."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return PodTerms()
    near, away = affinity.pod_affinity, affinity.pod_anti_affinity
    preferred = [
        WeighedPodTerm(sign * int32(one.weight, f"spec.affinity.{name}.{_PREFERRED}[{index}].weight"), term)
        for side, name, sign in ((near, "podAffinity", 1), (away, "podAntiAffinity", -1))
        for index, one in enumerate(side.preferred if side is not None else ())
        if one.weight and (term := _term(one.pod_affinity_term, pod))
    ]
    return PodTerms(
        near=tuple(_term(term, pod) for term in (near.required if near is not None else ())),
        away=tuple(_term(term, pod) for term in (away.required if away is not None else ())),
        preferred=tuple(preferred),
    )


def spreads(pod: Pod) -> tuple[Spread, ...]:
    """Return a pod's topology spread constraints in their order."""
    return tuple(_spread(constraint, pod) for constraint in pod.spec.topology_spread_constraints)


def identity(pod: Pod) -> tuple[str, ...]:
    """Return the namespace and labels that a pod's terms depend on, () if it has no terms."""
    spec = pod.spec
    if not spec.topology_spread_constraints and not _pod_affinities(spec):
        return ()
    used = sorted({key for keys in _label_keys(spec) for key in keys})
    labels = pod.metadata.labels
    return (pod.metadata.namespace, *(text for key in used if key in labels for text in (key, labels[key])))


def _pod_affinities(spec: PodSpec) -> list[core.PodAffinity]:
    affinity = spec.affinity
    if affinity is None:
        return []
    return [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]


def _label_keys(spec: PodSpec) -> Iterator[list[str]]:
    for side in _pod_affinities(spec):
        for term in (*side.required, *(one.pod_affinity_term for one in side.preferred)):
            yield term.match_label_keys
            yield term.mismatch_label_keys
    for constraint in spec.topology_spread_constraints:
        yield constraint.match_label_keys


def _term(term: core.PodAffinityTerm, pod: Pod) -> PodTerm:
    own = pod.metadata.namespace
    spaces = tuple(sorted(set(term.namespaces))) if term.namespaces or term.namespace_selector is not None else (own,)
    labels = requirements(term.label_selector)
    if labels is not None:
        labels = _with_label_keys(labels, term.match_label_keys, "In", pod.metadata.labels)
        labels = _with_label_keys(labels, term.mismatch_label_keys, "NotIn", pod.metadata.labels)
    return PodTerm(_selector(spaces, requirements(term.namespace_selector), labels), term.topology_key)


def _with_label_keys(
    found: tuple[Requirement, ...], keys: Iterable[str], operator: str, labels: Mapping[str, str]
) -> tuple[Requirement, ...]:
    have = {requirement.key for requirement in found if requirement.operator == operator}
    more = {Requirement(key, operator, (labels[key],)) for key in keys if key in labels and key not in have}
    return tuple(sorted({*found, *more}))


def _spread(constraint: core.TopologySpreadConstraint, pod: Pod) -> Spread:
    labels = requirements(constraint.label_selector)
    if labels is not None:
        own = pod.metadata.labels
        more = {Requirement(key, "In", (own[key],)) for key in constraint.match_label_keys if key in own}
        labels = tuple(sorted({*labels, *more}))
    return Spread(
        selector=_selector((pod.metadata.namespace,), None, labels),
        key=constraint.topology_key,
        max_skew=constraint.max_skew,
        hard=constraint.when_unsatisfiable == _DO_NOT_SCHEDULE,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honor_affinity=constraint.node_affinity_policy != _IGNORE,
        honor_taints=constraint.node_taints_policy == _HONOR,
    )


def _selector(
    namespaces: tuple[str, ...],
    namespace_labels: tuple[Requirement, ...] | None,
    labels: tuple[Requirement, ...] | None,
) -> PodSelector:
    readable = all(
        requirement.operator in _OPERATORS and valid_expression(requirement)
        for requirement in (*(namespace_labels or ()), *(labels or ()))
    )
    return PodSelector(namespaces, namespace_labels, labels, readable)


def requirements(selector: LabelSelector | None) -> tuple[Requirement, ...] | None:
    """Return the requirements of a selector, sorted; None if there is no selector."""
    if selector is None:
        return None
    equal = (Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    return tuple(sorted({*equal, *map(_requirement, selector.match_expressions)}))


def _requirement(written: LabelSelectorRequirement) -> Requirement:
    return Requirement(written.key, written.operator, tuple(sorted(set(written.values))))
