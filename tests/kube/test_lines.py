"""Lines out of pieces."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.kube.lines import LineSplitter

LINES = st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line), max_size=8)


@given(lines=LINES, cuts=st.lists(st.integers(0, 200), max_size=10))
def test_however_a_stream_is_cut_the_same_lines_come_out(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    splitter = LineSplitter()

    found = [line for start, end in itertools.pairwise(edges) for line in splitter.feed(data[start:end])]

    assert found == lines


def test_a_line_that_has_not_ended_is_kept_back() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"a\nb") == [b"a"]
    assert splitter.feed(b"c\n\n") == [b"bc"]
