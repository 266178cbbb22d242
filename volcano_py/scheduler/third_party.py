"""Third-party plugins: from packages with an entry point, and from the files of a folder.

They are loaded together with a configuration, never during a cycle. Each file is one module. A plugin that does not fit
into one file is a package with an entry point. Loading a plugin runs its code, so `testing.trial` first does it in a
separate process.
"""

import inspect
import itertools
import sys
import traceback
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from volcano_py.conf.reload import Watched, file_state
from volcano_py.framework.contract.extension_point import ExtensionPoint
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.model.shape import Field
from volcano_py.plugins import PLUGINS

GROUP: Final = "volcano_py.plugins"
"""The entry-point group: each entry names a plugin class, or a module with plugin classes."""

_NO_PLUGINS: Final = ("_", ".", "test_")  # how the names of other files in a folder begin
_HOOKS: Final = ("on_session_open", "on_session_close")
_numbers: Final = itertools.count()


@dataclass(slots=True)
class ThirdParty:
    """What was found: plugin classes by name, their sources, and the problems."""

    plugins: dict[str, type[Plugin]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # name -> file or entry point
    problems: list[str] = field(default_factory=list)

    def take(self, source: str, classes: list[type[Plugin]]) -> None:
        """Add the plugins of one source; a class that cannot be used becomes a problem."""
        if not classes:
            self.problems.append(f"{source}: it has no subclass of volcano_py.framework.contract.Plugin")
        for one in classes:
            problem = _problem(one)
            name = getattr(one, "name", "")
            if problem is None and name in PLUGINS:
                problem = f'"{name}" is the name of a built-in plugin: choose another'
            elif problem is None and name in self.plugins:
                problem = f'"{name}" is already the name of a plugin from {self.sources[name]}: choose another name'
            if problem is None:
                self.plugins[name] = one
                self.sources[name] = source
            else:
                self.problems.append(f"{source}: class {one.__name__}: {problem}")


class PluginFolder:
    """A folder of plugin files, which may change while the process runs.

    These are ``*.py``, except tests (``test_*.py``, ``conftest.py``) and files that begin with ``_`` or ``.``.
    """

    def __init__(self, path: Path) -> None:
        """Take the folder; raise NotADirectoryError if it does not exist."""
        if not path.is_dir():
            raise NotADirectoryError(f"{path} is not a folder, so it has no plugins")
        self.path = path
        self._watched = Watched(lambda: tuple(file_state(file) for file in self._files()))

    def reading(self) -> None:
        """Note the present state of the files: a decision about them follows, whether they are loaded or not."""
        self._watched.reading()

    def is_as_read(self) -> bool:
        """Say whether the files are still as they were when they were last read."""
        return self._watched.is_as_read()

    def load(self, found: ThirdParty) -> None:
        """Run every file again and add its plugins."""
        for file in self._files():
            try:
                module = _run(file)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may raise anything
                found.problems.append(f"{_place(error, file)}: {type(error).__name__}: {error}")
            else:
                found.take(str(file), _classes(module))

    def changed(self) -> bool:
        """Say whether the files differ from those that were loaded, and have not changed since the last call."""
        return self._watched.changed()

    def _files(self) -> list[Path]:
        files = (file for file in self.path.glob("*.py") if file.name != "conftest.py")
        return sorted(file for file in files if not file.name.startswith(_NO_PLUGINS))


def load_plugins(folder: PluginFolder | None = None) -> ThirdParty:
    """Return the plugins of all installed packages and of a folder; errors in them become problems."""
    found = ThirdParty()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        source = f"entry point {entry.name} = {entry.value}"
        try:
            classes = _of_entry(entry)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a package may raise anything
            found.problems.append(f"{source}: {type(error).__name__}: {error}")
        else:
            found.take(source, classes)
    if folder is not None:
        folder.load(found)
    return found


def _of_entry(entry: EntryPoint) -> list[type[Plugin]]:
    loaded: Any = entry.load()
    if isinstance(loaded, ModuleType):
        return _classes(loaded)
    return [loaded] if isinstance(loaded, type) and issubclass(loaded, Plugin) else []


class _Uncached(SourceFileLoader):
    """Compiles the present text: cached bytecode may be of an older text."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _run(file: Path) -> ModuleType:
    name = f"volcano_py_plugin_{next(_numbers)}_{file.stem}"  # a new name, so plugins that run keep their classes
    spec = spec_from_file_location(name, file, loader=_Uncached(name, str(file)))
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python module")
    module = module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks up its module while it is created
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


def _classes(module: ModuleType) -> list[type[Plugin]]:
    """Return the plugins that a module defines itself, in the order of their names."""
    found = (one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Plugin))
    return sorted({one for one in found if one.__module__ == module.__name__}, key=lambda one: one.__name__)


def _problem(plugin: type[Plugin]) -> str | None:
    """Return why a class cannot be used as a plugin."""
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        return 'it has no name: write name = "..." into the class'
    if inspect.isabstract(plugin):
        methods: frozenset[str] = getattr(plugin, "__abstractmethods__", frozenset())
        return f"it inherits an extension point but does not answer it: define {', '.join(sorted(methods))}"
    if not issubclass(plugin, ExtensionPoint) and all(
        getattr(plugin, hook) is getattr(Plugin, hook) for hook in _HOOKS
    ):
        return "it answers no question: inherit an extension point (volcano_py/framework/contract/extension_points.py)"
    return _wrong_attribute(plugin)


def _wrong_attribute(plugin: type[Plugin]) -> str | None:
    """Return what is wrong with what a class states about its answers: it would silently mean something else."""
    depends_on: Any = plugin.depends_on
    reads: Any = plugin.reads
    arguments: Any = plugin.arguments
    if not isinstance(depends_on, DependsOn):
        return f"depends_on is {depends_on!r}: write DependsOn.NODE_ALONE or DependsOn.OTHER_NODES"
    if not isinstance(reads, Set) or not all(isinstance(one, Field) for one in reads):
        return f"reads is {reads!r}: write frozenset({{Field.REQUEST}}), of volcano_py.model.shape.Field"
    if not isinstance(arguments, Set):
        return f'arguments is {arguments!r}: write frozenset({{"my.key"}})'
    for name in ("refusals_stay", "protects", "about_queues"):
        value = getattr(plugin, name, False)
        if not isinstance(value, bool):
            return f"{name} is {value!r}: write True or False"
    methods = [name for name in plugin.counts if not callable(getattr(plugin, name, None))]
    if methods:
        return f'counts names {", ".join(sorted(methods))}, which it has not: write frozenset({{"preemptable"}})'
    return None


def unread_arguments(plugin: type[Plugin]) -> str:
    """Return why the arguments of a plugin have no effect, "" if it has none or reads them."""
    lacks = [name for name in ("parse", "__init__") if inspect.getattr_static(plugin, name) is vars(Plugin)[name]]
    if not plugin.arguments or not lacks:
        return ""
    return f"its arguments ({', '.join(sorted(plugin.arguments))}) have no effect: define {' and '.join(lacks)}"


def _place(error: BaseException, file: Path) -> str:
    """Return the file with the line at which its own code failed."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    lines = (frame.lineno for frame in _frames(error) if frame.filename == str(file))
    line = max(enumerate(lines), default=None)
    return str(file) if line is None else f"{file}:{line[1]}"


def _frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    yield from traceback.extract_tb(error.__traceback__)
