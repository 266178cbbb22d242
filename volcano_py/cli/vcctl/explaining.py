"""`vcctl job why` and `vcctl queue why`: an explanation, printed for one screen."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.printing import cut
from volcano_py.cli.vcctl.texts import columns, head, one_line, padded, wrapped
from volcano_py.client import why
from volcano_py.client.problem import Problem
from volcano_py.client.waiting_facts import facts_of_job, facts_of_queue
from volcano_py.kube.resource import QUEUES, VCJOBS

_GAP = 2
_NAME: Final = 30
_SHORT_NAME: Final = 8
_TEXT: Final = 24
_NAMES: Final = ("Queue",)
"""Headers of columns of names, beside the first column."""
_COMMANDS = ("vcctl ", "kubectl ")  # they stay in one line, so that they can be copied
_BOLD, _PLAIN = "\033[1m", "\033[0m"


def why_job(call: Call) -> int:
    """Explain why a job waits."""
    name, namespace = call.flags.text("name"), call.flags.text("namespace")
    if not name:
        raise Problem("job name (specified by --name or -N) is mandatory to explain a particular job")
    with call.about(VCJOBS, name, f"vcctl job list -n {namespace}"):
        facts = facts_of_job(call.api, name, namespace, call.flags.text("scheduler-url"))
    _print(call, why.why_job(facts, call.now()))
    return 0


def why_queue(call: Call) -> int:
    """Explain why the jobs of a queue wait."""
    name = call.flags.text("name")
    if not name:
        raise Problem("queue name must be specified")
    with call.about(QUEUES, name, "vcctl queue list"):
        facts = facts_of_queue(call.api, name, call.flags.text("scheduler-url"))
    _print(call, why.why_queue(facts, name, call.now()))
    return 0


class _Form(NamedTuple):
    """How much room an explanation takes."""

    airy: bool = True
    """Empty lines between the parts, and a line of its own for each title."""
    rows: int = 0
    """At most this many rows of tables that go on; 0 for all."""
    wrapped: bool = True
    """Long sentences go on in the next line; else they are cut."""


_FORMS: Final = (_Form(), _Form(False), _Form(False, 3), _Form(False, 1), _Form(False, 1, False))
"""From the most legible to the shortest."""


def _print(call: Call, found: why.Explanation) -> None:
    """Print the most legible form that fits on the screen."""
    for form in _FORMS:
        lines = list(_laid_out(found, call.width, form, whole=not call.on_terminal))
        if not call.height or len(lines) < call.height:
            break
    bold, plain = (_BOLD, _PLAIN) if call.coloured else ("", "")
    for line, is_title in lines:
        call.write(f"{bold}{line}{plain}\n" if is_title else f"{line}\n")


def _laid_out(found: why.Explanation, width: int, form: _Form, *, whole: bool) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and whether each is a title; ``whole`` leaves tables as wide as they are."""
    of_tables = 0 if whole else width
    for line in _wrapped(f"{found.subject}: {found.answer}", width, ""):
        yield line, True
    for section in (_shortened(one, form.rows) for one in found.sections):
        title = f"{section.title} ({section.more} more)" if section.more > 0 else section.title
        if form.airy:
            yield "", False
        if section.headers and not form.airy:  # the title takes the place of the first header
            section = section._replace(headers=(title, *section.headers[1:]))
            first, *lines = _columns(section, of_tables, "")
            yield first, True
        else:
            yield title, True
            lines = _columns(section, of_tables, "  ") if section.headers else _sentences(section, width, form)
        yield from ((line, False) for line in lines)
    if found.ways_out:
        if form.airy:
            yield "", False
        yield "What to do", True
        for way in found.ways_out:
            commanded = way.startswith(_COMMANDS)
            yield from ((line, False) for line in ([f"  {one_line(way)}"] if commanded else _wrapped(way, width, "  ")))


def _shortened(section: why.Section, rows: int) -> why.Section:
    if not rows or not section.short or len(section.rows) <= rows:
        return section
    left_out = len(section.rows) - rows
    return section._replace(rows=section.rows[:rows], more=section.more + left_out)


def _sentences(section: why.Section, width: int, form: _Form) -> list[str]:
    if not form.wrapped:
        return [_cut(f"  {one_line(row[0])}", width) for row in section.rows]
    return [line for row in section.rows for line in _wrapped(row[0], width, "  ")]


def _columns(section: why.Section, width: int, indent: str) -> list[str]:
    """Return a table that fits into a width (0: it need not); a cell that is cut has an ellipsis."""
    rows = [section.headers, *(tuple(one_line(cell) for cell in row) for row in section.rows)]
    longest = [max(columns(row[place]) for row in rows) for place in range(len(section.headers))]
    if not width:
        return [indent + _line(row, longest) for row in rows]
    least = [columns(header) for header in ("", *section.headers[1:])]  # a title may stand in the first place
    widths = _fitting(longest, least, width - len(indent) - _GAP * (len(longest) - 1))
    named = [place == 0 or header in _NAMES for place, header in enumerate(section.headers)]
    return [
        _cut(indent + _line(_shrunk(row, widths, named if number else ()), widths), width)
        for number, row in enumerate(rows)
    ]


def _fitting(longest: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths that fit: long cells give way first, then the text in the last column, then shorter cells."""
    widths, last = list(longest), len(longest) - 1
    for other, text in ((_NAME, longest[last]), (_NAME, _TEXT), (_SHORT_NAME, _TEXT)):
        floors = [max(text if place == last else other, header) for place, header in enumerate(least)]
        while sum(widths) > room:
            widest = max(range(len(widths)), key=lambda place: (widths[place] > floors[place], widths[place]))
            if widths[widest] <= floors[widest]:
                break
            widths[widest] -= 1
    return widths


def _shrunk(row: Sequence[str], widths: Sequence[int], named: Sequence[bool]) -> list[str]:
    """Return cells that are not wider than their columns: names lose their middle, other texts their end."""
    names = named or [False] * len(row)
    return [(cut if is_name else _cut)(cell, size) for cell, size, is_name in zip(row, widths, names, strict=True)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(padded(cell, size + _GAP) for cell, size in zip(row, widths, strict=True)).rstrip()


def _cut(line: str, width: int) -> str:
    return line if columns(line) <= width else f"{head(line, width - 1)}…"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return wrapped(one_line(text), max(width, 40), first=indent, others=f"{indent}  ", long_words=False)
