"""Probes and hooks of containers: what is called, and how often."""

import re
from typing import Any, Final

from volcano_py.admission import names
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import (
    Flaws,
    each,
    forbidden,
    invalid,
    not_negative,
    one_of,
    required,
    within,
)
from volcano_py.admission.reading import entries, number, part, parts, text

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES: Final = ("HTTP", "HTTPS")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+", re.ASCII)


def probe(found: Obj, path: str, grace_s: int, kind: str) -> Flaws:
    """Judge a probe."""
    yield from handler(found, path, grace_s)
    for field in _COUNTS:
        yield from not_negative(f"{path}.{field}", number(found, field))
    own_grace = number(found, "terminationGracePeriodSeconds")
    if own_grace is not None:
        if kind == "readinessProbe":
            yield invalid(f"{path}.terminationGracePeriodSeconds", own_grace, "must not be set for readinessProbes")
        elif own_grace <= 0:
            yield invalid(f"{path}.terminationGracePeriodSeconds", own_grace, "must be greater than 0")
    successes = number(found, "successThreshold")
    if kind != "readinessProbe" and successes not in (None, 0, 1):
        yield invalid(f"{path}.successThreshold", successes, "must be 1")


def handler(found: Obj, path: str, grace_s: int) -> Flaws:
    """Judge what a probe or hook calls: exactly one thing."""
    given = [kind for kind in _HANDLERS if isinstance(found.get(kind), dict)]
    if not given:
        yield required(path, "must specify a handler type")
    for kind in given[1:]:
        yield forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
    for kind in given[:1]:
        what, at = part(found, kind), f"{path}.{kind}"
        if kind == "exec":
            if not entries(what, "command"):
                yield required(f"{at}.command")
        elif kind == "httpGet":
            yield from _port(what.get("port"), f"{at}.port")
            yield from one_of(f"{at}.scheme", text(what, "scheme"), _SCHEMES)
            for header in parts(what, "httpHeaders"):
                if not _HEADER.fullmatch(text(header, "name")):
                    detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name')"
                    yield invalid(f"{at}.httpHeaders", text(header, "name"), detail)
        elif kind == "tcpSocket":
            yield from _port(what.get("port"), f"{at}.port")
        elif kind == "grpc":
            yield from within(f"{at}.port", number(what, "port") or 0, 1, 65535)
        else:
            seconds = number(what, "seconds") or 0
            if not 0 <= seconds <= grace_s:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
                yield invalid(at, seconds, detail)


def _port(port: Any, path: str) -> Flaws:
    if isinstance(port, str):
        yield from each(path, port, names.port_name(port))
    else:
        yield from within(path, port if isinstance(port, int) else 0, 1, 65535)
