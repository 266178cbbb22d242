"""Asks a Prometheus over its HTTP interface."""

import json
import urllib.parse
import urllib.request
from collections.abc import Sequence

from tools.dashboards.draw import Answered, Ask

_PATIENCE_S = 30.0


def at(url: str) -> Ask:
    """Return what answers queries from the Prometheus at a URL."""

    def ask(query: str, start: float, end: float, step: float) -> Sequence[Answered]:
        parameters = urllib.parse.urlencode({"query": query, "start": start, "end": end, "step": step})
        with urllib.request.urlopen(f"{url}/api/v1/query_range?{parameters}", timeout=_PATIENCE_S) as answer:
            found = json.load(answer)["data"]["result"]
        return [Answered(one["metric"], [(float(at), float(value)) for at, value in one["values"]]) for one in found]

    return ask
