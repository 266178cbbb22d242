"""Reads YAML text into :class:`~volcano_py.conf.schema.SchedulerConf`; checks the structure but not the names.

Unknown keys are ignored, as in Volcano, but each one gives a warning with the key that was probably meant. A wrong
structure (a tier that is text, a plugin without a name) is an error.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from volcano_py.conf.defaults import BUILT_IN_CONF, BUILT_IN_FILE
from volcano_py.conf.document import Document
from volcano_py.conf.schema import FLAGS, ActionConf, ConfError, PluginConf, SchedulerConf, Where
from volcano_py.conf.spelling import did_you_mean

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
    _refuse_manifest(document, top)
    _warn_of_unknown(document, top, _TOP, "")
    actions_node = top["actions"][1] if "actions" in top else None
    if document.is_null(actions_node):
        document.fail(
            actions_node or document.root, 'actions is missing; write, for example, actions: "enqueue, allocate"'
        )
    metrics, metrics_places = _read_metrics(document, top.get("metrics"))
    return SchedulerConf(
        file=document.file,
        actions=_read_actions(document, actions_node),
        actions_where=document.where(actions_node),
        tiers=_read_tiers(document, _value(top, "tiers")),
        configurations=_read_configurations(document, _value(top, "configurations")),
        metrics=metrics,
        metrics_places=metrics_places,
        warnings=tuple(document.warnings),
    )


def _refuse_manifest(document: Document, top: Mapping[str, tuple[yaml.Node, yaml.Node]]) -> None:
    """Refuse a ConfigMap: unknown keys alone would not say that the configuration is inside it."""
    kind = _value(top, "kind")
    if "actions" in top or not isinstance(kind, yaml.ScalarNode) or kind.value != "ConfigMap":
        return
    data = _value(top, "data")
    names = [f"data[{name.value}]" for name, _ in data.value] if isinstance(data, yaml.MappingNode) else []
    document.fail(
        top["kind"][0], f"this is a ConfigMap: give the text under {' or '.join(names) or 'data'} as a file of its own"
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
    arguments, places = _read_arguments(document, _value(entries, "arguments"), f"{key}.arguments")
    return PluginConf(name, where, flags, arguments, places)


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
        arguments, places = _read_arguments(document, _value(entries, "arguments"), f"{key}.arguments")
        read.append(ActionConf(name, document.where(entries["name"][0]), arguments, places))
    return tuple(read)


def _read_metrics(
    document: Document, entry: tuple[yaml.Node, yaml.Node] | None
) -> tuple[Mapping[str, str], Mapping[str, Where]]:
    """Return the section, and the place of each key; that of the section has the key ``metrics``."""
    if entry is None:
        return {}, {}
    section, node = entry
    entries = dict(_flat(document, node, ""))
    texts = {key: document.text(value, f"metrics.{key}") for key, (_, value) in entries.items()}
    return texts, {"metrics": document.where(section)} | _places(document, entries)


def _flat(document: Document, node: yaml.Node, above: str) -> Iterator[tuple[str, tuple[yaml.Node, yaml.Node]]]:
    """Yield the entries of a mapping and of those in it: ``tls: {insecureSkipVerify: x}`` has a key with a dot."""
    for name, entry in document.mapping(node, f"metrics.{above}".rstrip(".")).items():
        if isinstance(entry[1], yaml.MappingNode):
            yield from _flat(document, entry[1], f"{above}{name}.")
        else:
            yield f"{above}{name}", entry


def _read_arguments(
    document: Document, node: yaml.Node | None, key: str
) -> tuple[Mapping[str, Any], Mapping[str, Where]]:
    """Return the arguments, and the place of each."""
    entries = document.mapping(node, key)
    return {name: document.value(value) for name, (_, value) in entries.items()}, _places(document, entries)


def _places(document: Document, entries: Mapping[str, tuple[yaml.Node, yaml.Node]]) -> dict[str, Where]:
    return {key: document.where(name) for key, (name, _) in entries.items()}


def _value(entries: Mapping[str, tuple[yaml.Node, yaml.Node]], key: str) -> yaml.Node | None:
    return entries[key][1] if key in entries else None


def _warn_of_unknown(
    document: Document, entries: Mapping[str, tuple[yaml.Node, yaml.Node]], known: Iterable[str], key: str
) -> None:
    known = tuple(known)
    for name, (node, _) in entries.items():
        if name not in known:
            hint = did_you_mean(name, known) or (f"; known keys: {', '.join(known)}" if len(known) < 6 else "")
            document.warn(node, f"unknown key {f'{key}.{name}' if key else name} is ignored{hint}")
