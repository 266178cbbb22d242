"""Reads YAML text into :class:`~volcano_py.conf.schema.SchedulerConf`; checks the structure but not the names.

Unknown keys are ignored, as in Volcano, but each one gives a warning with the key that was probably meant. A wrong
structure (a tier that is text, a plugin without a name) is an error.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from volcano_py.conf.defaults import BUILT_IN_CONF, BUILT_IN_FILE
from volcano_py.conf.document import Document
from volcano_py.conf.schema import FLAGS, ActionConf, ConfError, PluginConf, SchedulerConf, Where

_TOP = ("actions", "tiers", "configurations", "metrics")
_PLUGIN = ("name", "arguments", *sorted(FLAGS))


def built_in_conf() -> SchedulerConf:
    """Return the configuration for a scheduler without a configuration file."""
    return parse_conf(BUILT_IN_CONF, BUILT_IN_FILE)


def load_conf(path: Path) -> SchedulerConf:
    """Read a configuration file; raise ConfError with file, line and key if it cannot be used."""
    return parse_conf(read_conf(path), str(path))


def read_conf(path: Path) -> str:
    """Return the text of a configuration file; raise ConfError if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}; check --scheduler-conf"
        raise ConfError(Where(str(path), 0), problem) from error
    except UnicodeDecodeError as error:
        raise ConfError(Where(str(path), 0), f"is not UTF-8 text: {error.reason} at byte {error.start}") from error


def parse_conf(text: str, file: str) -> SchedulerConf:
    """Read a configuration; ``file`` is its name in messages."""
    document = Document(text, file)
    try:
        return _read(document)
    except RecursionError as error:
        raise ConfError(Where(file, 1), "an anchor contains itself") from error


def _read(document: Document) -> SchedulerConf:
    top = document.mapping(document.root, "")
    _warn_of_unknown(document, top, _TOP, "")
    actions_node = top["actions"][1] if "actions" in top else None
    if document.is_null(actions_node):
        document.fail(
            actions_node or document.root, 'actions is missing; write, for example, actions: "enqueue, allocate"'
        )
    return SchedulerConf(
        file=document.file,
        actions=_read_actions(document, actions_node),
        actions_where=document.where(actions_node),
        tiers=_read_tiers(document, _value(top, "tiers")),
        configurations=_read_configurations(document, _value(top, "configurations")),
        metrics=_read_metrics(document, _value(top, "metrics")),
        warnings=tuple(document.warnings),
    )


def _read_actions(document: Document, node: yaml.Node | None) -> tuple[str, ...]:
    names = tuple(part.strip() for part in document.text(node, "actions").split(","))
    if "" in names:
        document.fail(node, "actions has an empty name; write names with single commas between them")
    return names


def _read_tiers(document: Document, node: yaml.Node | None) -> tuple[tuple[PluginConf, ...], ...]:
    tiers: list[tuple[PluginConf, ...]] = []
    seen: dict[str, Where] = {}
    for number, item in enumerate(document.sequence(node, "tiers")):
        key = f"tiers[{number}]"
        tier = document.mapping(item, key)
        _warn_of_unknown(document, tier, ("plugins",), key)
        plugins = document.sequence(_value(tier, "plugins"), f"{key}.plugins")
        tiers.append(
            tuple(_read_plugin(document, plugin, f"{key}.plugins[{row}]", seen) for row, plugin in enumerate(plugins))
        )
    return tuple(tiers)


def _read_plugin(document: Document, node: yaml.Node, key: str, seen: dict[str, Where]) -> PluginConf:
    entries = document.mapping(node, key)
    name = document.text(_value(entries, "name"), f"{key}.name") if "name" in entries else ""
    if not name:
        document.fail(node, f"{key}.name is missing; every plugin needs one")
    where = document.where(entries["name"][0])
    if name in seen:
        document.fail(
            entries["name"][0], f"{key}.name: plugin {name} is already in line {seen[name].line}; keep one of the two"
        )
    seen[name] = where
    _warn_of_unknown(document, entries, _PLUGIN, f"{key} ({name})")
    flags = {
        flag: stated
        for flag, (_, value) in entries.items()
        if flag in FLAGS and (stated := document.flag(value, f"{key}.{flag}")) is not None
    }
    return PluginConf(name, where, flags, _read_arguments(document, _value(entries, "arguments"), f"{key}.arguments"))


def _read_configurations(document: Document, node: yaml.Node | None) -> tuple[ActionConf, ...]:
    read: list[ActionConf] = []
    for number, item in enumerate(document.sequence(node, "configurations")):
        key = f"configurations[{number}]"
        entries = document.mapping(item, key)
        _warn_of_unknown(document, entries, ("name", "arguments"), key)
        name = document.text(_value(entries, "name"), f"{key}.name") if "name" in entries else ""
        if not name:
            document.fail(item, f"{key}.name is missing; it names the action that the arguments are for")
        if any(entry.name == name for entry in read):
            document.warn(item, f"{key}: {name} is repeated here; its first entry counts")
        arguments = _read_arguments(document, _value(entries, "arguments"), f"{key}.arguments")
        read.append(ActionConf(name, document.where(item), arguments))
    return tuple(read)


def _read_metrics(document: Document, node: yaml.Node | None) -> Mapping[str, str]:
    return {
        key: document.text(value, f"metrics.{key}") for key, (_, value) in document.mapping(node, "metrics").items()
    }


def _read_arguments(document: Document, node: yaml.Node | None, key: str) -> Mapping[str, Any]:
    return {name: document.value(value) for name, (_, value) in document.mapping(node, key).items()}


def _value(entries: Mapping[str, tuple[yaml.Node, yaml.Node]], key: str) -> yaml.Node | None:
    return entries[key][1] if key in entries else None


def _warn_of_unknown(
    document: Document, entries: Mapping[str, tuple[yaml.Node, yaml.Node]], known: Iterable[str], key: str
) -> None:
    known = tuple(known)
    for name, (node, _) in entries.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = (
                f"; did you mean {near[0]}?" if near else f"; known keys: {', '.join(known)}" if len(known) < 6 else ""
            )
            document.warn(node, f"unknown key {f'{key}.{name}' if key else name} is ignored{hint}")
