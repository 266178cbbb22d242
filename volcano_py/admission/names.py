"""What names, labels and label values may look like: the rules of Kubernetes, and its sentences.

Every function returns what is wrong, and nothing for a valid text.
"""

import re
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"
_IS_LABEL: Final = re.compile(_LABEL, re.ASCII)
_IS_SUBDOMAIN: Final = re.compile(_SUBDOMAIN, re.ASCII)
_IS_QUALIFIED: Final = re.compile(_QUALIFIED, re.ASCII)
_IS_VALUE: Final = re.compile(_VALUE, re.ASCII)
_IS_CONFIG_KEY: Final = re.compile("[-._a-zA-Z0-9]+", re.ASCII)
_IS_PORT_NAME: Final = re.compile("[-a-z0-9]+", re.ASCII)
_IS_ENV_NAME: Final = re.compile("[ -<>-~]+", re.ASCII)  # printable, without "="
LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253


def label(text: str) -> tuple[str, ...]:
    """Judge a DNS label (RFC 1123)."""
    found = _too_long(text, LONGEST_LABEL)
    if not _IS_LABEL.fullmatch(text):
        found += (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            f"'{_LABEL}')",
        )
    return found


def subdomain(text: str) -> tuple[str, ...]:
    """Judge a DNS subdomain (RFC 1123)."""
    found = _too_long(text, LONGEST_SUBDOMAIN)
    if not _IS_SUBDOMAIN.fullmatch(text):
        found += (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_SUBDOMAIN}')",
        )
    return found


def qualified(text: str) -> tuple[str, ...]:
    """Judge a qualified name: ``name`` or ``prefix/name``, such as the key of a label."""
    found: tuple[str, ...] = ()
    pieces = text.split("/")
    if len(pieces) > 2:
        return (
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS "
            "subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    if len(pieces) == 2:
        found = (
            tuple(f"prefix part {problem}" for problem in subdomain(pieces[0]))
            if pieces[0]
            else ("prefix part must be non-empty",)
        )
    name = pieces[-1]
    if not name:
        found += ("name part must be non-empty",)
    found += tuple(f"name part {problem}" for problem in _too_long(name, LONGEST_LABEL))
    if not _IS_QUALIFIED.fullmatch(name):
        found += (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}')",
        )
    return found


def label_value(text: str) -> tuple[str, ...]:
    """Judge the value of a label."""
    found = _too_long(text, LONGEST_LABEL)
    if not _IS_VALUE.fullmatch(text):
        found += (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
            f"for validation is '{_VALUE}')",
        )
    return found


def port_name(text: str) -> tuple[str, ...]:
    """Judge the name of a port (RFC 6335)."""
    found: tuple[str, ...] = ("must be no more than 15 characters",) if len(text) > 15 else ()
    if not _IS_PORT_NAME.fullmatch(text):
        found += ("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",)
    if not any("a" <= letter <= "z" for letter in text):
        found += ("must contain at least one letter (a-z)",)
    if "--" in text:
        found += ("must not contain consecutive hyphens",)
    if text[:1] == "-" or text[-1:] == "-":
        found += ("must not begin or end with a hyphen",)
    return found


def env_name(text: str) -> tuple[str, ...]:
    """Judge the name of an environment variable."""
    if _IS_ENV_NAME.fullmatch(text):
        return ()
    return (
        "a valid environment variable name must consist only of printable ASCII characters other than '=' "
        "(e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1')",
    )


def _too_long(text: str, longest: int) -> tuple[str, ...]:
    return (f"must be no more than {longest} bytes",) if len(text.encode()) > longest else ()


def config_key(text: str) -> tuple[str, ...]:
    """Judge a key of a ConfigMap or Secret."""
    found = _too_long(text, LONGEST_SUBDOMAIN)
    if not _IS_CONFIG_KEY.fullmatch(text):
        found += (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        )
    return found + (("must not be '.' or start with '..'",) if text == "." or text.startswith("..") else ())


def search_path(text: str) -> tuple[str, ...]:
    """Judge a DNS search path: a subdomain whose labels may have underscores."""
    return tuple(problem for problem in subdomain(text.replace("_", "x")))
