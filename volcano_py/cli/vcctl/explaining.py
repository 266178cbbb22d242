"""`vcctl job why` and `vcctl queue why`: an explanation, printed for one screen."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.texts import columns, head, one_line, padded, wrapped
from volcano_py.client import why
from volcano_py.client.problem import Problem
from volcano_py.client.waiting_facts import facts_of_job, facts_of_queue
from volcano_py.kube.resource import QUEUES, VCJOBS

_GAP = 2
_NAME = 30  # a name is not cut shorter than this
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
        lines = list(_laid_out(found, call.width, form))
        if not call.height or len(lines) < call.height:
            break
    bold, plain = (_BOLD, _PLAIN) if call.coloured else ("", "")
    for line, is_title in lines:
        call.write(f"{bold}{line}{plain}\n" if is_title else f"{line}\n")


def _laid_out(found: why.Explanation, width: int, form: _Form) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and whether each is a title."""
    for line in _wrapped(f"{found.subject}: {found.answer}", width, ""):
        yield line, True
    for section in (_shortened(one, form.rows) for one in found.sections):
        title = f"{section.title} ({section.more} more)" if section.more > 0 else section.title
        if form.airy:
            yield "", False
        if section.headers and not form.airy:  # the title takes the place of the first header
            section = section._replace(headers=(title, *section.headers[1:]))
            first, *lines = _columns(section, width, "")
            yield first, True
        else:
            yield title, True
            lines = _columns(section, width, "  ") if section.headers else _sentences(section, width, form)
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
    """Return a table; long names are cut first, then the last column, and a cell that is cut ends with an ellipsis."""
    rows = [section.headers, *(tuple(one_line(cell) for cell in row) for row in section.rows)]
    widths = [max(columns(row[place]) for row in rows) for place in range(len(section.headers))]
    room = width - len(indent) - sum(widths[1:]) - _GAP * (len(widths) - 1)
    if widths[0] > max(room, _NAME):
        widths[0] = max(room, _NAME)
        rows = [(_cut(row[0], widths[0]), *row[1:]) for row in rows]
    return [_cut(indent + _line(row, widths), width) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(padded(cell, size + _GAP) for cell, size in zip(row, widths, strict=True)).rstrip()


def _cut(line: str, width: int) -> str:
    return line if columns(line) <= width else f"{head(line, width - 1)}…"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return wrapped(one_line(text), max(width, 40), first=indent, others=f"{indent}  ", long_words=False)
