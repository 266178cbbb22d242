"""`vcctl job why` and `vcctl queue why`: an explanation, printed for one screen."""

from collections.abc import Sequence

from volcano_py.cli.vcctl.call import Call
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


def _print(call: Call, found: why.Explanation) -> None:
    bold, plain = (_BOLD, _PLAIN) if call.coloured else ("", "")
    for line in _wrapped(f"{found.subject}: {found.answer}", call.width, ""):
        call.line(f"{bold}{line}{plain}")
    for section in found.sections:
        call.line(f"\n{bold}{section.title}{plain}")
        lines = _columns(section, call.width) if section.headers else _sentences(section, call.width)
        for line in lines:
            call.line(line)
    if found.ways_out:
        call.line(f"\n{bold}What to do{plain}")
        for way in found.ways_out:
            for line in [f"  {way}"] if way.startswith(_COMMANDS) else _wrapped(way, call.width, "  "):
                call.line(line)


def _sentences(section: why.Section, width: int) -> list[str]:
    return [line for row in section.rows for line in _wrapped(row[0], width, "  ")]


def _columns(section: why.Section, width: int) -> list[str]:
    """Return a table; long names are cut first, then the last column, and a cell that is cut ends with an ellipsis."""
    rows = [section.headers, *section.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(section.headers))]
    room = width - _GAP - sum(widths[1:]) - _GAP * (len(widths) - 1)
    if widths[0] > max(room, _NAME):
        widths[0] = max(room, _NAME)
        rows = [(_cut(row[0], widths[0]), *row[1:]) for row in rows]
    return [_cut("  " + _line(row, widths), width) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(cell.ljust(size + _GAP) for cell, size in zip(row, widths, strict=True)).rstrip()


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text,
        max(width, 40),
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
