from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.ledger.ledger import Ledger, Patience
from volcano_py.ledger.states import TRANSITIONS, AssumedState, is_live
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef


def a_bind(name: str = "p1", node: str = "n1") -> Bind:
    return Bind(TaskRef("default", name, f"uid-{name}"), node, JobKey("default", "g1"))


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = Ledger(Patience(unsent_s=100, unconfirmed_s=10))
    yield ledger
    ledger.validate()


def test_a_bind_goes_through_assumed_sent_acknowledged_and_confirmed(ledger: Ledger) -> None:
    assert ledger.assume(a_bind(), 7, now=1.0).state is AssumedState.ASSUMED
    sent = ledger.sent("uid-p1", 2.0)
    acknowledged = ledger.acknowledged("uid-p1", 3.0)
    confirmed = ledger.confirm("uid-p1")

    assert sent is not None
    assert sent.state is AssumedState.SENT
    assert acknowledged is not None
    assert (acknowledged.state, acknowledged.generation) == (AssumedState.ACKNOWLEDGED, 7)
    assert confirmed == acknowledged
    assert len(ledger) == 0
    assert (ledger.counts.assumed, ledger.counts.confirmed, ledger.counts.forgotten) == (1, 1, 0)


def test_a_second_bind_of_a_pod_is_refused_while_the_first_is_live(ledger: Ledger) -> None:
    ledger.assume(a_bind(node="n1"), 0, now=0.0)

    with pytest.raises(ValueError, match="pod default/p1 has a live bind on node n1"):
        ledger.assume(a_bind(node="n2"), 0, now=1.0)

    ledger.forget("uid-p1")
    assert ledger.assume(a_bind(node="n2"), 0, now=2.0).node == "n2"


def test_the_watch_may_confirm_before_the_answer_arrives(ledger: Ledger) -> None:
    ledger.assume(a_bind(), 0, now=0.0)
    ledger.sent("uid-p1", 0.0)
    ledger.confirm("uid-p1")

    assert ledger.acknowledged("uid-p1", 1.0) is None


def test_an_answer_counts_even_if_sending_was_not_noted(ledger: Ledger) -> None:
    ledger.assume(a_bind(), 0, now=0.0)

    entry = ledger.acknowledged("uid-p1", 1.0)

    assert entry is not None
    assert entry.state is AssumedState.ACKNOWLEDGED


def test_sending_again_keeps_an_acknowledged_bind(ledger: Ledger) -> None:
    ledger.assume(a_bind(), 0, now=0.0)
    ledger.acknowledged("uid-p1", 1.0)

    entry = ledger.sent("uid-p1", 2.0)

    assert entry is not None
    assert entry.state is AssumedState.ACKNOWLEDGED


def test_an_overdue_bind_is_reported_repeatedly_and_never_dropped(ledger: Ledger) -> None:
    ledger.assume(a_bind(), 0, now=0.0)
    ledger.sent("uid-p1", 0.0)

    reports = [[entry.task.name for entry in ledger.expired(now)] for now in (9.0, 10.0, 11.0, 20.0)]

    assert reports == [[], ["p1"], [], ["p1"]]
    assert len(ledger) == 1
    assert ledger.counts.overdue == 2


def test_a_bind_that_waits_to_be_sent_has_more_time(ledger: Ledger) -> None:
    ledger.assume(a_bind("queued"), 0, now=0.0)
    ledger.assume(a_bind("sent"), 0, now=0.0)
    ledger.sent("uid-sent", 0.0)

    assert [entry.task.name for entry in ledger.expired(50.0)] == ["sent"]
    assert [entry.task.name for entry in ledger.expired(100.0)] == ["queued", "sent"]


def test_the_oldest_age_is_that_of_the_first_assumed(ledger: Ledger) -> None:
    assert ledger.oldest_age(5.0) == 0.0
    ledger.assume(a_bind("a"), 0, now=1.0)
    ledger.assume(a_bind("b"), 0, now=3.0)

    assert ledger.oldest_age(5.0) == 4.0
    ledger.confirm("uid-a")
    assert ledger.oldest_age(5.0) == 2.0


def test_what_is_being_prepared_has_no_age(ledger: Ledger) -> None:
    ledger.assume(a_bind("a"), 0, now=1.0)
    ledger.assume(a_bind("b"), 0, now=3.0)

    assert ledger.oldest_age(5.0, lambda uid: uid != "uid-a") == 2.0
    assert ledger.oldest_age(5.0, lambda uid: False) == 0.0


def test_ending_an_unknown_bind_changes_nothing(ledger: Ledger) -> None:
    assert ledger.confirm("uid-p1") is None
    assert ledger.forget("uid-p1") is None
    assert ledger.sent("uid-p1", 0.0) is None
    assert (ledger.counts.confirmed, ledger.counts.forgotten) == (0, 0)


def test_every_live_state_can_end_and_an_end_is_final() -> None:
    for state, following in TRANSITIONS.items():
        if is_live(state):
            assert {AssumedState.CONFIRMED, AssumedState.FORGOTTEN} <= following
        else:
            assert not following


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["assume", "sent", "acknowledged", "confirm", "forget", "expired"]),
            st.sampled_from(["a", "b", "c"]),
        ),
        max_size=40,
    )
)
def test_any_order_of_calls_leaves_the_ledger_consistent(steps: list[tuple[str, str]]) -> None:
    ledger = Ledger(Patience(unsent_s=3, unconfirmed_s=2))
    for now, (step, name) in enumerate(steps):
        uid = f"uid-{name}"
        if step == "assume":
            if ledger.get(uid) is None:
                ledger.assume(a_bind(name), 0, float(now))
        elif step == "expired":
            ledger.expired(float(now))
        elif step in ("confirm", "forget"):
            getattr(ledger, step)(uid)
        else:
            getattr(ledger, step)(uid, float(now))
        ledger.validate()
