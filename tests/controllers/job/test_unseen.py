"""Objects that were created and that the watch has not shown yet."""

from volcano_py.controllers.job.unseen import SEEN_WITHIN_S, Created, Unseen
from volcano_py.kube.resource import PODS

POD = Created(PODS, "train-worker-0", "u1")


def test_an_object_is_overdue_exactly_when_it_was_said_to_be() -> None:
    for now in (0.1, 12.35, 31.349999):
        unseen = Unseen()
        unseen.add(POD, now)
        later = now + (unseen.next_overdue_s(now) or 0.0)

        assert unseen.overdue(now) == []
        assert unseen.overdue(later) == [POD]


def test_an_object_that_exists_is_looked_for_again() -> None:
    unseen = Unseen()
    unseen.add(POD, 0.0)
    unseen.exists(POD, SEEN_WITHIN_S)

    assert unseen.next_overdue_s(SEEN_WITHIN_S) == SEEN_WITHIN_S


def test_an_object_that_the_watch_shows_while_it_is_read_is_not_looked_for_again() -> None:
    unseen = Unseen()
    unseen.add(POD, 0.0)
    unseen.seen(POD.uid)
    unseen.exists(POD, SEEN_WITHIN_S)

    assert unseen.next_overdue_s(SEEN_WITHIN_S) is None
