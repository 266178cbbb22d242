"""Terms between pods: which pods a selector means, and where a pod wants to stand with regard to them.

Everything here is content, so that equal terms of two pods are one term.
"""

from collections.abc import Mapping
from typing import NamedTuple

from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import LabelSelector


class PodSelector(NamedTuple):
    """Some pods, by namespace and labels. Tuples are sorted and without doubles."""

    namespaces: tuple[str, ...] = ()  # pods of these, and
    namespace_labels: tuple[Requirement, ...] | None = None  # of namespaces with these labels; (): all, None: no others
    labels: tuple[Requirement, ...] | None = None  # (): every pod, None: none
    readable: bool = True  # no requirement is invalid; one that cannot be read selects nothing

    def selects(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Say whether a pod of this namespace, which has these labels, is meant.

        (kube-scheduler: AffinityTerm.Matches. There, a namespaceSelector of an incoming pod's term that an empty set
        of labels satisfies selects every namespace; here, as documented, only the namespaces that satisfy it.)
        """
        if self.labels is None or not self.readable:
            return False
        inside = namespace in self.namespaces or (
            self.namespace_labels is not None and LabelSelector(self.namespace_labels).matches(namespace_labels)
        )
        return inside and LabelSelector(self.labels).matches(labels)


class PodTerm(NamedTuple):
    """Pods to stand near to or away from: in the same or in another domain of a node label."""

    selector: PodSelector
    key: str


class WeighedPodTerm(NamedTuple):
    """A pod term that adds its weight for every such pod in the domain; below 0 for pods to stand away from."""

    weight: int
    term: PodTerm


class PodTerms(NamedTuple):
    """What a pod says about its neighbours."""

    near: tuple[PodTerm, ...] = ()  # required affinity: all terms
    away: tuple[PodTerm, ...] = ()  # required anti-affinity
    preferred: tuple[WeighedPodTerm, ...] = ()

    @property
    def readable(self) -> bool:
        """Whether no selector is invalid."""
        preferred = (term.term for term in self.preferred)
        return all(term.selector.readable for term in (*self.near, *self.away, *preferred))


class Spread(NamedTuple):
    """How evenly pods should stand over the domains of a node label (a topology spread constraint)."""

    selector: PodSelector  # in the pod's own namespace
    key: str
    max_skew: int
    hard: bool  # DoNotSchedule
    min_domains: int = 1
    honor_affinity: bool = True  # domains are of nodes that the pod's node selector and affinity allow
    honor_taints: bool = False  # domains are of nodes whose taints the pod tolerates
    default: bool = False  # the system's, for a pod that has no constraints of its own
