"""The picture of the demo: it has the tables that the demo draws, and the README shows it."""

import re
from html import unescape
from xml.etree import ElementTree

from rich.table import Table

from benchmarks.picture import PICTURE, WIDTH, drawn, worth_a_picture
from tests.packaging.pages import REPOSITORY
from volcano_py.cli.demo import screen
from volcano_py.local.demo import Frame
from volcano_py.local.workload import GPU_GANG, TRAINING_JOBS, JobView

OUT_OF_DATE = "docs/demo.svg is out of date: make picture"


def a_job_view(name: str, placed: int, why: str = "") -> JobView:
    return JobView(name, "Inqueue", minimum=6, pods=6, placed=placed, running=placed, ended=0, why=why)


def a_frame(*jobs: JobView) -> Frame:
    return Frame(1.0, list(jobs), [("worker-0", "cpu", 1.0, 4.0)], "a note")


BOTH_CASES = a_frame(a_job_view(GPU_GANG, 0, "no GPU"), a_job_view("train-0", 6), a_job_view("train-1", 0, "no CPU"))


def words(svg: str) -> set[str]:
    """Return the words of a picture; rich writes each space as one that does not break."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return {word for text in texts for word in unescape(text).replace("\xa0", " ").split()}


def headers() -> set[str]:
    tables = [part for part in screen(BOTH_CASES, WIDTH).renderables if isinstance(part, Table)]
    return {word for table in tables for column in table.columns for word in str(column.header).split()}


def test_the_picture_has_every_column_of_the_tables():
    assert {"job", "node"} <= headers()
    assert headers() <= words(PICTURE.read_text()), OUT_OF_DATE


def test_the_picture_has_every_job_of_the_demo():
    jobs = {GPU_GANG, *(f"train-{number}" for number in range(TRAINING_JOBS))}

    assert jobs <= words(PICTURE.read_text()), OUT_OF_DATE


def test_the_picture_is_drawn_as_the_program_draws_it_now():
    def form(svg: str) -> list[str]:
        return re.findall(r"\.demo-(?:matrix|title) \{[^}]*\}", svg)

    assert form(PICTURE.read_text()) == form(drawn(BOTH_CASES)), OUT_OF_DATE


def test_a_frame_is_worth_a_picture_only_if_it_shows_both_cases():
    waiting = a_job_view("train-1", 0, "no CPU")

    assert worth_a_picture(BOTH_CASES)
    assert not worth_a_picture(a_frame(a_job_view(GPU_GANG, 0, "no GPU"), waiting))
    assert not worth_a_picture(a_frame(a_job_view(GPU_GANG, 0), a_job_view("train-0", 6), waiting))
    assert not worth_a_picture(a_frame(a_job_view("train-0", 6), waiting))


def test_the_readme_shows_the_picture_and_it_is_well_formed():
    ElementTree.fromstring(PICTURE.read_text())

    assert "(docs/demo.svg)" in (REPOSITORY / "README.md").read_text()
