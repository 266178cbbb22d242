"""Inter-pod terms: selectors of pods, affinity and anti-affinity to them, and topology spread constraints.

All of these are plain values, so equal terms of two pods are one term.
"""

from collections.abc import Mapping
from typing import NamedTuple

from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import LabelSelector


class PodSelector(NamedTuple):
    """A selection of pods by namespace and labels. Tuples are sorted and without duplicates."""

    namespaces: tuple[str, ...] = ()  # pods of these namespaces, and also
    namespace_labels: tuple[Requirement, ...] | None = None  # of namespaces with these labels; (): all, None: no others
    labels: tuple[Requirement, ...] | None = None  # (): every pod, None: none
    readable: bool = True  # no requirement is invalid; an invalid selector selects nothing

    def selects(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Say whether a pod with these labels in this namespace is selected (kube-scheduler: AffinityTerm.Matches).

        In kube-scheduler, if an empty set of labels satisfies the namespaceSelector of an incoming pod's term, the
        selector selects every namespace. Here it selects only the namespaces that satisfy it, as documented.
        """
        if self.labels is None or not self.readable:
            return False
        inside = namespace in self.namespaces or (
            self.namespace_labels is not None and LabelSelector(self.namespace_labels).matches(namespace_labels)
        )
        return inside and LabelSelector(self.labels).matches(labels)


class PodTerm(NamedTuple):
    """Pods to be placed near to or away from: in the same domain of a node label or in another one."""

    selector: PodSelector
    key: str


class WeighedPodTerm(NamedTuple):
    """A preferred term: each such pod in the domain adds the weight, which is negative for anti-affinity."""

    weight: int
    term: PodTerm


class PodTerms(NamedTuple):
    """The affinity and anti-affinity of a pod to other pods."""

    near: tuple[PodTerm, ...] = ()  # required affinity: all terms
    away: tuple[PodTerm, ...] = ()  # required anti-affinity
    preferred: tuple[WeighedPodTerm, ...] = ()

    @property
    def readable(self) -> bool:
        """Whether all selectors are valid."""
        preferred = (term.term for term in self.preferred)
        return all(term.selector.readable for term in (*self.near, *self.away, *preferred))


class Spread(NamedTuple):
    """A topology spread constraint: how evenly pods are spread over the domains of a node label."""

    selector: PodSelector  # in the pod's own namespace
    key: str
    max_skew: int
    hard: bool  # DoNotSchedule
    min_domains: int = 1
    honor_affinity: bool = True  # count only nodes that the pod's node selector and affinity allow
    honor_taints: bool = False  # count only nodes whose taints the pod tolerates
    default: bool = False  # a system default for a pod without constraints of its own
