from volcano_py.effects.echo import Echoes


class Watch:
    def __init__(self):
        self.version = "1"

    def version_of(self, name: str) -> str:
        return self.version


def test_the_same_content_is_a_repeat_until_the_watch_has_caught_up_and_after():
    watch = Watch()
    echoes: Echoes[str, str] = Echoes(watch.version_of)
    echoes.remember("a", "text", "answer", shown_before="1", version_after="2")

    assert echoes.repeats("a", "text", "ns/a")
    watch.version = "2"
    assert echoes.repeats("a", "text", "ns/a")


def test_other_content_is_no_repeat():
    echoes: Echoes[str, str] = Echoes(Watch().version_of)
    echoes.remember("a", "text", "answer", shown_before="1", version_after="2")

    assert not echoes.repeats("a", "other", "ns/a")
    assert not echoes.repeats("b", "text", "ns/b")


def test_what_somebody_else_has_changed_is_written_again():
    watch = Watch()
    echoes: Echoes[str, str] = Echoes(watch.version_of)
    echoes.remember("a", "text", "answer", shown_before="1", version_after="2")

    watch.version = "3"

    assert not echoes.repeats("a", "text", "ns/a")


def test_the_oldest_is_forgotten_when_there_are_too_many():
    echoes: Echoes[str, str] = Echoes(Watch().version_of, capacity=2)
    for key in "abc":
        echoes.remember(key, "text", "answer", "1", "2")

    assert [echoes.repeats(key, "text", key) for key in "abc"] == [False, True, True]


def test_the_answer_to_the_last_write_is_there_until_somebody_else_writes():
    watch = Watch()
    echoes: Echoes[str, str] = Echoes(watch.version_of)
    echoes.remember("a", "text", "answer", shown_before="1", version_after="2")

    assert echoes.answer("a", "ns/a") == "answer"
    watch.version = "3"
    assert echoes.answer("a", "ns/a") is None
