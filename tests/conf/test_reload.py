"""Noticing that a configuration file has changed, however it is changed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from volcano_py.conf.reload import ConfFile, built_in
from volcano_py.conf.schema import ConfError

ONE = 'actions: "enqueue, allocate"\n'
OTHER = 'actions: "allocate"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text(ONE)
    return path


def at_rest(file: ConfFile) -> bool:
    """Look twice, as a change is taken when it has come to rest."""
    file.changed()
    return file.changed()


def a_config_map(folder: Path, text: str) -> Path:
    """Lay a file out as a kubelet does: name -> ..data/name, ..data -> a folder with a time in its name."""
    folder.mkdir()
    switch(folder, text, "..2024_01_01")
    (folder / "scheduler.conf").symlink_to("..data/scheduler.conf")
    return folder / "scheduler.conf"


def switch(folder: Path, text: str, version: str) -> None:
    """Put other content there in one step."""
    (folder / version).mkdir()
    (folder / version / "scheduler.conf").write_text(text)
    (folder / "..data_tmp").symlink_to(version)
    (folder / "..data_tmp").rename(folder / "..data")


def test_a_file_that_stays_as_it_is_has_not_changed(path):
    file = ConfFile(path)
    file.load()

    assert not at_rest(file)


def write(path: Path) -> None:
    path.write_text(OTHER)


def replace(path: Path) -> None:
    """Do as editors and configuration tools do: write another file and rename it."""
    other = path.with_suffix(".new")
    other.write_text(OTHER)
    other.rename(path)


def replace_by_one_of_equal_size_and_time(path: Path) -> None:
    before = path.stat()
    other = path.with_suffix(".new")
    other.write_text(ONE.replace("enqueue, ", ",enqueue "))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(path)


@pytest.mark.parametrize("change", [write, replace, replace_by_one_of_equal_size_and_time, Path.unlink])
def test_a_change_is_seen_however_it_is_made(path, change: Callable[[Path], None]):
    file = ConfFile(path)
    file.load()

    change(path)

    assert at_rest(file)


def test_a_config_map_that_is_switched_has_changed(tmp_path):
    file = ConfFile(a_config_map(tmp_path / "mount", ONE))
    file.load()
    assert not at_rest(file)

    switch(tmp_path / "mount", OTHER, "..2024_01_02")

    assert at_rest(file)
    assert file.load().text == OTHER


def test_a_change_is_not_taken_while_the_file_is_being_written(path):
    file = ConfFile(path)
    file.load()

    path.write_text("act")
    assert not file.changed()
    path.write_text(OTHER)
    assert not file.changed()

    assert file.changed()


def test_a_change_is_reported_until_it_has_been_read(path):
    file = ConfFile(path)
    file.load()
    write(path)
    assert at_rest(file)
    assert file.changed()

    assert file.load().conf.actions == ("allocate",)

    assert not at_rest(file)


def test_an_unusable_file_is_read_again_only_after_a_change(path):
    file = ConfFile(path)
    file.load()
    path.write_text("tiers: []\n")
    assert at_rest(file)
    with pytest.raises(ConfError, match=r"scheduler\.conf:1: actions is missing"):
        file.load()
    assert not at_rest(file)

    write(path)

    assert at_rest(file)
    assert file.load().conf.actions == ("allocate",)


def test_a_missing_file_is_reported_with_a_remedy(path):
    file = ConfFile(path)
    path.unlink()

    with pytest.raises(ConfError, match="cannot be read: No such file or directory; check --scheduler-conf"):
        file.load()


def test_equal_texts_have_equal_hashes(path, tmp_path):
    copy = tmp_path / "copy.conf"
    copy.write_text(ONE)

    assert ConfFile(path).load().hash == ConfFile(copy).load().hash
    copy.write_text(OTHER)
    assert ConfFile(path).load().hash != ConfFile(copy).load().hash


def test_the_built_in_configuration_has_a_hash_too():
    assert built_in().conf.actions == ("enqueue", "allocate", "backfill")
    assert len(built_in().hash) == 16


def test_a_read_that_fails_is_repeated_after_pauses_that_grow(path, monkeypatch):
    file = ConfFile(path)
    file.load()
    fails = True
    read_text = Path.read_text

    def read(self: Path, *args: object, **options: object) -> str:
        if fails:
            raise OSError(5, "Input/output error")
        return read_text(self, *args, **options)

    monkeypatch.setattr(Path, "read_text", read)
    write(path)
    attempts = []
    for poll in range(200):
        if file.changed():
            attempts.append(poll)
            with pytest.raises(ConfError, match="Input/output error"):
                file.load()
    assert attempts == [1, 2, 4, 8, 16, 32, 64, 128, 192]

    path.write_text(ONE + ONE)  # what changes is read at once
    assert at_rest(file)
    fails = False
    path.write_text(OTHER)
    assert at_rest(file)
    assert file.load().text == OTHER
    assert not at_rest(file)


def test_a_file_that_is_gone_is_an_error_once_and_read_when_it_is_back(path):
    file = ConfFile(path)
    file.load()
    path.unlink()
    assert at_rest(file)
    with pytest.raises(ConfError, match="cannot be read"):
        file.load()
    assert not any(file.changed() for _ in range(5))

    path.write_text(ONE)

    assert at_rest(file)
