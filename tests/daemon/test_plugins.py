"""Other people's plugins in a daemon: tried before they are used, exchanged while it runs, kept while broken."""

import asyncio
import contextlib
import subprocess
from types import SimpleNamespace

import pytest

from tests.daemon.test_configuration import watched
from tests.effects.waiting import until
from volcano_py.conf.loader import parse_conf
from volcano_py.conf.reload import ConfFile, LoadedConf
from volcano_py.conf.schema import ConfError
from volcano_py.daemon import plugins
from volcano_py.daemon.configuration import Configuration
from volcano_py.daemon.plugins import policy_of
from volcano_py.scheduler.third_party import PluginFolder

CONF = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: mine\n'
MINE = """
import time
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import Plugin

class Mine(Plugin, NodeOrder):
    name = "mine"
    version = 1

    def node_order(self, task, nodes):
        return nodes.idle[0] / 1000
"""


def loaded(text: str = CONF) -> LoadedConf:
    return LoadedConf(parse_conf(text, "conf"), text)


def version(policy) -> int:
    return next(plugin.version for tier in policy.instantiate() for plugin, _ in tier if plugin.name == "mine")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "plugins").mkdir()
    file = tmp_path / "plugins" / "mine.py"
    file.write_text(MINE)
    return file


def test_a_plugin_of_a_folder_is_used_when_the_configuration_names_it(file):
    policy, unused = policy_of(loaded(), PluginFolder(file.parent))

    assert version(policy) == 1
    assert unused == ()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        pytest.param("/ 1000", "/ 0 * 0", "conf:5: plugin mine failed in node_order: answered with NaN", id="nan"),
        pytest.param("import time", "import tyme", "conf:5: .*mine.py:2: ModuleNotFoundError", id="import"),
        pytest.param("version = 1", "time.sleep(600)", "conf:5: plugins .* hangs", id="hangs"),
        pytest.param(
            "version = 1",
            "import os; os.write(1, b'\\xff'); os.kill(os.getpid(), 9)",
            "conf:5: a plugin ended .* code -9: \ufffd",
            id="bytes",
        ),
        pytest.param(
            "version = 1",
            "import os; os._exit(0)",
            "conf:5: a plugin ended .* code 0: .*mine.py:8: the plugin ends the process$",
            id="ends-well",
        ),
        pytest.param(
            "version = 1",
            "def __init__(self, arguments): raise ValueError(1)",
            r"conf:5: plugin mine failed in __init__: ValueError: 1 \(.*mine.py:8\)$",
            id="init",
        ),
    ],
)
def test_a_plugin_that_fails_its_trial_is_not_used(file, old, new, problem):
    file.write_text(MINE.replace(old, new))

    with pytest.raises(ConfError, match=problem):
        policy_of(loaded(), PluginFolder(file.parent), limit_s=3.0 if "sleep" in new else 20.0)


def test_a_plugin_that_hangs_is_refused_with_its_line(file):
    """The trial ends by itself before the daemon gives up: only the trial knows the line."""
    file.write_text(MINE.replace("return", "time.sleep(99); return"))

    with pytest.raises(ConfError, match=r"conf:5: .*mine.py:11: the plugin hangs or is slow"):
        policy_of(loaded(), PluginFolder(file.parent), limit_s=8.0)


def test_a_broken_plugin_file_that_no_configuration_names_is_reported(file):
    (file.parent / "other.py").write_text("oops")

    policy, unused = policy_of(loaded(), PluginFolder(file.parent))

    assert version(policy) == 1
    assert [text.rpartition("other.py")[2] for text in unused] == [":1: NameError: name 'oops' is not defined"]


def test_an_unknown_plugin_name_is_an_error_that_lists_files_that_failed_to_load(file):
    file.write_text("oops")

    with pytest.raises(ConfError, match=r'conf:5: unknown plugin "mine".*mine\.py:1: NameError'):
        policy_of(loaded(), PluginFolder(file.parent))


async def test_a_changed_file_is_exchanged_and_a_broken_one_leaves_the_last_good_one(file, tmp_path, monkeypatch):
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF)
    configuration = Configuration.of_file(ConfFile(conf), PluginFolder(file.parent))

    async with watched(conf, CONF, configuration) as running:
        file.write_text(MINE.replace("version = 1", "version = 2"))
        await until(lambda: running.policies, 10.0)
        assert version(running.policies[-1]) == 2

        file.write_text(MINE.replace("return", "raise"))
        await until(lambda: running.error, 10.0)
        assert "plugin mine failed in node_order: TypeError" in str(running.error)
        assert version(running.configuration.policy) == 2


NOTHING_OF_MINE = CONF.replace("  - name: mine\n", "")


@pytest.mark.parametrize(
    ("conf", "plugins"),
    [
        pytest.param(NOTHING_OF_MINE, {"mine.py": MINE}, id="not-named"),
        pytest.param(NOTHING_OF_MINE, {}, id="empty-folder"),
        pytest.param(CONF, {"mine.py": MINE}, id="named"),
        pytest.param(CONF, {"mine.py": MINE.replace("return", "raise")}, id="refused"),
        pytest.param(CONF, {"mine.py": "oops"}, id="cannot-be-loaded"),
    ],
)
def test_a_folder_that_was_looked_at_is_quiet_until_a_file_changes(tmp_path, conf, plugins):
    for name, text in {"other.py": "", **plugins}.items() if plugins else ():
        (tmp_path / name).write_text(text)
    folder = PluginFolder(tmp_path)
    with contextlib.suppress(ConfError):
        policy_of(loaded(conf), folder)

    assert [folder.changed() for _ in range(3)] == [False] * 3

    (tmp_path / "mine.py").write_text(f"{MINE}\n# changed")
    assert [folder.changed() for _ in range(3)] == [False, True, True]


async def test_a_broken_configuration_is_refused_once_if_a_plugin_has_changed_too(file, tmp_path):
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF)
    configuration = Configuration.of_file(ConfFile(conf), PluginFolder(file.parent))

    async with watched(conf, CONF, configuration) as running:
        file.write_text(MINE.replace("version = 1", "version = 2"))
        conf.write_text("actions: [")
        await until(lambda: running.error, 10.0)
        await asyncio.sleep(0.2)
        refused = running.metric("reloads_total", result="refused")
        await asyncio.sleep(0.5)

        assert running.metric("reloads_total", result="refused") == refused


async def test_a_plugin_that_was_mended_while_the_configuration_was_broken_is_loaded_with_it(file, tmp_path):
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF)
    configuration = Configuration.of_file(ConfFile(conf), PluginFolder(file.parent))

    async with watched(conf, CONF, configuration) as running:
        conf.write_text("actions: [")
        await until(lambda: running.error, 10.0)
        refused = running.metric("reloads_total", result="refused")
        file.write_text(MINE.replace("version = 1", "version = 2"))
        await until(lambda: running.metric("reloads_total", result="refused") > refused, 10.0)
        conf.write_text(CONF)
        await until(lambda: not running.error, 30.0)

        assert version(running.configuration.policy) == 2


def test_only_what_was_tried_is_loaded(tmp_path, monkeypatch):
    """Somebody writes a file again during its trial."""
    path, tried = tmp_path / "mine.py", []
    path.write_text(MINE)

    def changes(command, **options):
        tried.append(path.read_text())
        ran = subprocess.run(command, **options)
        if len(tried) == 1:
            path.write_text(MINE.replace("version = 1", "version = 22"))
        return ran

    monkeypatch.setattr(plugins, "subprocess", SimpleNamespace(run=changes, TimeoutExpired=subprocess.TimeoutExpired))
    policy, _ = policy_of(loaded(CONF), PluginFolder(tmp_path))

    assert len(tried) == 2
    assert version(policy) == 22


def test_files_that_change_all_the_time_are_not_loaded(tmp_path, monkeypatch):
    folder = PluginFolder(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(folder, "is_as_read", lambda: False)

    with pytest.raises(ConfError, match="change during their trial"):
        policy_of(loaded(CONF), folder)
