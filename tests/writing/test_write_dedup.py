from volcano_py.writing.write_dedup import WriteDedup


class Watch:
    def __init__(self):
        self.version = "1"

    def version_of(self, name: str) -> str:
        return self.version


def test_the_same_content_is_a_repeat_until_the_watch_has_caught_up_and_after():
    watch = Watch()
    dedup: WriteDedup[str, str] = WriteDedup(watch.version_of)
    dedup.remember("a", "ns/a", "text", "answer", shown_before="1", version_after="2")

    assert dedup.repeats("a", "text", "ns/a")
    watch.version = "2"
    assert dedup.repeats("a", "text", "ns/a")


def test_other_content_is_no_repeat():
    dedup: WriteDedup[str, str] = WriteDedup(Watch().version_of)
    dedup.remember("a", "ns/a", "text", "answer", shown_before="1", version_after="2")

    assert not dedup.repeats("a", "other", "ns/a")
    assert not dedup.repeats("b", "text", "ns/b")


def test_content_that_another_writer_changed_is_written_again():
    watch = Watch()
    dedup: WriteDedup[str, str] = WriteDedup(watch.version_of)
    dedup.remember("a", "ns/a", "text", "answer", shown_before="1", version_after="2")

    watch.version = "3"

    assert not dedup.repeats("a", "text", "ns/a")


def test_an_old_one_is_forgotten_when_there_are_too_many():
    dedup: WriteDedup[str, str] = WriteDedup(Watch().version_of, capacity=2)
    for key in "abcde":
        dedup.remember(key, key, "text", "answer", "1", "2")

        assert dedup.repeats(key, "text", key)
        assert len(dedup) <= 2


def test_the_answer_to_the_last_write_is_kept_until_another_writer_writes():
    watch = Watch()
    dedup: WriteDedup[str, str] = WriteDedup(watch.version_of)
    dedup.remember("a", "ns/a", "text", "answer", shown_before="1", version_after="2")

    assert dedup.answer("a", "ns/a") == "answer"
    watch.version = "3"
    assert dedup.answer("a", "ns/a") is None


def test_writes_to_objects_that_are_gone_are_forgotten():
    """Otherwise thousands of statuses would stay in memory, each with its texts."""
    versions: dict[str, str] = {"lives": "2"}
    dedup: WriteDedup[str, str] = WriteDedup(lambda name: versions.get(name, ""))
    dedup.remember("lives", "lives", "text", "answer", "1", "2")
    for number in range(1000):
        name = f"object-{number}"
        versions[name] = "1"
        dedup.remember(name, name, "text", "answer", "1", "2")
        versions.pop(f"object-{number - 10}", None)  # each is deleted after a while

    assert len(dedup) < 40
    assert dedup.repeats("lives", "text", "lives")
