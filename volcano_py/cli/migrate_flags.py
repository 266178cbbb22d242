"""What our programs do with the flags and variables of Volcano's programs of the same name."""

import argparse
import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from volcano_py.cli.feature_gates import (
    ADMISSION_FEATURES,
    CONTROLLER_FEATURES,
    SCHEDULER_FEATURES,
    Feature,
    read_feature_gates,
)
from volcano_py.cli.vc_controller_manager import controllers_parser
from volcano_py.cli.vc_scheduler import scheduler_parser
from volcano_py.cli.vc_webhook_manager import webhooks_parser
from volcano_py.cli.volcano_flags import (
    ADMISSION_FLAGS,
    CONTROLLER_FLAGS,
    VOLCANO_FLAGS,
    VolcanoFlag,
    ignored_flags,
)
from volcano_py.migration.programs import CONTROLLERS, SCHEDULER, WEBHOOKS, Given
from volcano_py.migration.workloads import Effect, Verdict
from volcano_py.runtime.options import OptionError


@dataclass(frozen=True, slots=True)
class _Program:
    parser: Callable[[], argparse.ArgumentParser]
    flags: Sequence[VolcanoFlag]
    features: Sequence[Feature]


_PROGRAMS: Final[Mapping[str, _Program]] = {
    SCHEDULER: _Program(scheduler_parser, VOLCANO_FLAGS, SCHEDULER_FEATURES),
    CONTROLLERS: _Program(controllers_parser, CONTROLLER_FLAGS, CONTROLLER_FEATURES),
    WEBHOOKS: _Program(webhooks_parser, ADMISSION_FLAGS, ADMISSION_FEATURES),
}


def judge_flag(program: str, given: Given) -> Verdict:
    """Return what our program does with a flag, or with a variable if the name begins with ``$``."""
    known = _PROGRAMS[program]
    if given.name == "feature-gates":
        return _feature(given.value, known.features)
    if given.name.startswith("$"):
        return _variable(given)
    parser = _parser(program)
    flag = str(given)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            flags, unknown = parser.parse_known_args([flag])
    except SystemExit:
        return Verdict(Effect.REFUSED, said.getvalue().rpartition("error: ")[2].strip())
    if unknown:
        return Verdict(Effect.UNKNOWN)
    try:
        ignored = ignored_flags(flags, {}, known.flags)
    except OptionError as error:
        return Verdict(Effect.REFUSED, str(error).removeprefix(f"{flag}: "))
    if not ignored:
        return Verdict(Effect.WORKS)
    meaning = next((one.meaning for one in known.flags if one.name == given.name), "")
    return Verdict(Effect.NONE, meaning)


@cache
def _parser(program: str) -> argparse.ArgumentParser:
    return _PROGRAMS[program].parser()


def _feature(text: str, features: Sequence[Feature]) -> Verdict:
    try:
        _, ignored = read_feature_gates([text], features)
    except OptionError as error:
        return Verdict(Effect.REFUSED, str(error))
    return Verdict(Effect.NONE, ignored[0].why) if ignored else Verdict(Effect.WORKS)


def _variable(given: Given) -> Verdict:
    try:
        ignored = ignored_flags(argparse.Namespace(), {given.name.removeprefix("$"): given.value}, ())
    except OptionError as error:
        return Verdict(Effect.REFUSED, str(error).partition(": ")[2])
    if not ignored:
        return Verdict(Effect.WORKS)
    from volcano_py.cli.volcano_flags import VOLCANO_VARIABLES

    meaning = next((one.meaning for one in VOLCANO_VARIABLES if f"${one.name}" == given.name), "")
    return Verdict(Effect.NONE, meaning)
