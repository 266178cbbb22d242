"""The plot of the steady load: latencies, what the nodes and the queue did, memory, and writes."""

from typing import Any

from matplotlib.ticker import FuncFormatter, NullFormatter

_COLOURS = ("#2a6fbb", "#d9822b", "#3c8d5a", "#8e5bb5", "#9aa5b1")
_WRITES_SHOWN = 7


def _rows(record: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Return the schedulers that ran, each with its colour."""
    rows = [row for row in record["steady"] if "missing" not in row]
    return [(row, _COLOURS[number % len(_COLOURS)]) for number, row in enumerate(rows)]


def _quantiles(record: dict[str, Any], axis: Any, series: str, marks: str, title: str, event: str) -> None:
    """Draw the share of pods within a time, over times on a log scale, with p50, p99 and the worst in the legend."""
    for row, colour in _rows(record):
        seconds, summary = row["series"][series], row[marks]
        if not seconds:
            continue
        label = f"{row['scheduler']}: {_time(summary['p50'])}, {_time(summary['p99'])}, {_time(summary['worst'])}"
        shown = [max(one, 0.001) for one in seconds]
        axis.step(shown, range(101), where="post", color=colour, label=label)
        axis.plot([shown[50], shown[99], shown[100]], [50, 99, 100], "o", color=colour, markersize=4)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _time(value * 1000)))
    axis.xaxis.set_minor_formatter(NullFormatter())  # within one decade, its labels would overlap
    axis.set_ylim(0, 130)  # room for the legend
    axis.set_yticks(range(0, 101, 20))
    axis.set_xlabel(f"time from {event}")
    axis.set_ylabel("% of pods")
    axis.set_title(title, fontsize=11)
    if axis.lines:
        axis.legend(fontsize=8, title="p50, p99, worst", title_fontsize=8, loc="upper left")


def _time(ms: float) -> str:
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


def room(record: dict[str, Any], axis: Any) -> None:
    """Draw how long room waits for a bind."""
    _quantiles(record, axis, "room_to_bind_s", "room_to_bind_ms", "From room to bind", "room to bind sent")


def reason(record: dict[str, Any], axis: Any) -> None:
    """Draw how long a new pod is without a reason."""
    _quantiles(
        record, axis, "creation_to_reason_s", "creation_to_reason_ms", "From creation to reason", "creation to reason"
    )


def _over_time(record: dict[str, Any], axis: Any, series: str, title: str, label: str, factor: float = 1) -> None:
    for row, colour in _rows(record):
        for number, half in enumerate(row["series"][series]):
            at = row["series"]["at_s"][: len(half)]
            name = row["scheduler"] if number == 0 else None
            shown = [one * factor for one in half[: len(at)]]
            axis.plot(at, shown, color=colour, linewidth=1.2, alpha=1 if number == 0 else 0.55, label=name)
    axis.set_xlabel("seconds")
    axis.set_ylabel(label)
    axis.set_title(title, fontsize=11)
    axis.legend(fontsize=8)


def taken(record: dict[str, Any], axis: Any) -> None:
    """Draw which share of the slots is taken."""
    _over_time(record, axis, "full", "Slots taken (100 % is 95 % of the CPU)", "% of slots", 100)
    bottom, _ = axis.get_ylim()
    axis.set_ylim(min(bottom, 90), 100.5)


def waiting(record: dict[str, Any], axis: Any) -> None:
    """Draw how many gangs wait."""
    _over_time(record, axis, "waiting", "Gangs that wait", "gangs")
    axis.set_ylim(0, axis.get_ylim()[1] * 1.25)  # room for the legend


def memory(record: dict[str, Any], axis: Any) -> None:
    """Draw the memory of the schedulers."""
    _over_time(record, axis, "rss_mib", "Memory", "resident MiB")
    axis.set_ylim(0, axis.get_ylim()[1] * 1.25)  # room for the legend


def writes(record: dict[str, Any], axis: Any) -> None:
    """Draw the writes per bind, by verb and resource, with CPU and cycles in the labels."""
    rows = _rows(record)
    total: dict[str, float] = {}
    for row, _ in rows:
        for what, number in row["writes_per_bind"].items():
            total[what] = max(total.get(what, 0.0), number)
    shown = sorted(total, key=lambda what: total[what])[-_WRITES_SHOWN:]
    height = 0.8 / max(len(rows), 1)
    for place, (row, colour) in enumerate(rows):
        numbers = [row["writes_per_bind"].get(what, 0.0) for what in shown]
        at = [i - 0.4 + height * (len(rows) - place - 0.5) for i in range(len(shown))]
        cycles = "" if row["cycles_per_s"] is None else f", {row['cycles_per_s']:g} cycles/s"
        axis.barh(at, numbers, height * 0.92, color=colour, label=f"{row['scheduler']}: {row['cores']:g} cores{cycles}")
        for y, number in zip(at, numbers, strict=True):
            axis.annotate(
                f"{number:.2g}", (number, y), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7
            )
    axis.set_yticks(range(len(shown)), shown, fontsize=8)
    axis.set_xlim(right=axis.get_xlim()[1] * 1.1)
    axis.set_xlabel("writes per bind")
    axis.set_title("Writes", fontsize=11)
    axis.legend(fontsize=8, loc="lower right")


PANELS = (room, reason, taken, waiting, memory, writes)
