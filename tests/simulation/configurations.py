"""The configuration of the schedulers, as a file in memory that changes and breaks."""

from functools import lru_cache
from pathlib import Path
from typing import Final

from volcano_py.conf.loader import parse_conf
from volcano_py.conf.reload import LoadedConf

_SAMPLES: Final = Path(__file__).parents[2] / "conf"


@lru_cache(maxsize=16)
def conf_text(name: str) -> str:
    """Return a configuration by name: a file of `conf/`.

    With ``+preempt`` it also evicts; with ``+capacity`` queues have capacities in place of weights.
    """
    base, *more = name.split("+")
    text = (_SAMPLES / f"{base}.yaml").read_text()
    if "preempt" in more:
        text = text.replace('"enqueue, allocate, backfill"', '"enqueue, allocate, backfill, preempt, reclaim"')
    if "capacity" in more:
        text = text.replace("- name: proportion", "- name: capacity")
    return text


class ConfSource:
    """The configuration file of all schedulers, in memory (`volcano_py.conf.reload.ConfFile`)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = conf_text(name)
        self._version = 0

    def put(self, name: str, text: str | None = None) -> None:
        """Replace the content; ``text`` may be faulty."""
        self.name, self.text = name, conf_text(name) if text is None else text
        self._version += 1

    def file(self) -> "_ConfFile":
        """Return the file as one process sees it."""
        return _ConfFile(self)

    @property
    def version(self) -> int:
        """How often it has changed."""
        return self._version


class _ConfFile:
    def __init__(self, source: ConfSource) -> None:
        self._source = source
        self._read = -1

    def load(self) -> LoadedConf:
        self._read = self._source.version
        text = self._source.text
        return LoadedConf(parse_conf(text, "simulated.conf"), text)

    def changed(self) -> bool:
        return self._read != self._source.version
