"""Completion: the script for a shell, and the candidates that the script asks for.

The script calls `vcctl __complete WORDS...` with the words of the line; the last one is the word under the cursor. Each
answer is a line: a candidate, a tab and its meaning.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.finding import find, table
from volcano_py.cli.vcctl.flags import SWITCH, Command, Flag, Values, read_flags
from volcano_py.client.problem import Problem

FILES: Final = ":files"
"""The answer that leaves the word to the shell's own completion of files."""
_FILES_TOO, _NO_FILES = ":0", ":4"
"""What kubectl calls directives."""
_LIMIT_S: Final = 2.0
_PROGRAMS: Final = ("vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume")

_BASH: Final = """\
# Completion of vcctl and the programs beside it in bash: source <(vcctl completion bash)
_vcctl_complete() {
    local line candidates=()
    local word="${COMP_WORDS[COMP_CWORD]}"
    [[ "$word" == "=" ]] && word=""  # bash makes three words of --output=json
    while IFS= read -r line; do
        if [[ "$line" == ":files" ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
        fi
        candidates+=("${line%%$'\\t'*}")
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "${candidates[*]}" -- "$word")
}
complete -F _vcctl_complete @PROGRAMS@
"""
_ZSH: Final = """\
#compdef @PROGRAMS@
# Completion of vcctl and the programs beside it in zsh: source <(vcctl completion zsh)
_vcctl_complete() {
    local line
    local -a candidates
    for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ "$line" == ":files" ]]; then
            _files
            return
        fi
        [[ -n "$line" ]] && candidates+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done
    _describe 'vcctl' candidates
}
compdef _vcctl_complete @PROGRAMS@
"""
_FISH: Final = """\
# Completion of vcctl and the programs beside it in fish: vcctl completion fish | source
function __vcctl_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
for program in @PROGRAMS@
    complete -c $program -f -a '(__vcctl_complete)'
end
"""
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def print_script(call: Call) -> int:
    """Print the script for a shell."""
    shell = call.flags.text("shell")
    if shell not in _SCRIPTS:
        raise Problem(f"{shell or 'no shell'} is not supported: write vcctl completion bash, zsh or fish")
    call.write(_SCRIPTS[shell].replace("@PROGRAMS@", " ".join(_PROGRAMS)))
    return 0


def print_candidates(program: str, words: Sequence[str]) -> int:
    """Print what may stand in place of the last word; a failure completes nothing."""
    *before, last = words or [""]
    # bash makes three words of --output=json.
    before = [word for place, word in enumerate(before) if word != "=" or not before[place - 1].startswith("--")]
    last = "" if last == "=" else last
    for candidate, meaning in candidates(program, before, last):
        if candidate == FILES or candidate.startswith(last):
            print(f"{candidate}\t{meaning}" if meaning else candidate)
    return 0


def print_for_kubectl(words: Sequence[str]) -> int:
    """Print candidates as kubectl wants them: the last line says whether names of files are candidates, too."""
    *before, last = words or [""]
    found = list(candidates("vcctl", before, last))
    for candidate, meaning in found:
        if candidate != FILES and candidate.startswith(last):
            print(f"{candidate}\t{meaning}" if meaning else candidate)
    print(_FILES_TOO if any(candidate == FILES for candidate, _ in found) else _NO_FILES)
    return 0


def candidates(program: str, before: Sequence[str], last: str) -> Iterator[tuple[str, str]]:
    """Yield candidates for the last word and what each means."""
    command, rest = find(program, before)
    if command is None:
        return
    if not command.run:
        inner = [one for one in table(program) if one.path[:-1] == command.path]
        yield from ((one.path[-1], one.help) for one in inner)
        return
    if waiting := _open_flag(command, rest):
        yield from _values(program, command, waiting, rest[:-1])
    elif last.startswith("-"):
        name, equals, _ = last.partition("=")
        flag = next((one for one in command.flags if f"--{one.name}" == name), None)
        if equals and flag:
            yield from ((f"{name}={value}", what) for value, what in _values(program, command, flag, rest))
        else:
            yield from ((f"--{one.name}", one.help) for one in command.flags)
            yield "--help", "explain the command"
    elif command.argument:
        yield from _values(program, command, command.flag(command.argument), rest)


def _open_flag(command: Command, words: Sequence[str]) -> Flag | None:
    """Return the flag whose value comes next."""
    if not words or not words[-1].startswith("-") or "=" in words[-1]:
        return None
    written = words[-1]
    for flag in command.flags:
        if flag.kind != SWITCH and written in (f"--{flag.name}", f"-{flag.short}"):
            return flag
    return None


def _values(program: str, command: Command, flag: Flag, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    if flag.choices or flag.offers:
        yield from ((choice, "") for choice in (*flag.choices, *flag.offers))
    elif flag.values == "files":
        yield FILES, ""
    elif flag.values:
        try:
            yield from _names(program, command, flag.values, words)
        except Problem:
            return  # no cluster, no candidates: an error in the middle of a command line helps nobody


def _names(program: str, command: Command, what: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of objects in the cluster, or of contexts."""
    try:
        flags = read_flags(command, words)
    except Problem:
        flags = Values({}, command)
    if what == "contexts":
        from volcano_py.client.access import context_names

        yield from ((name, "") for name in context_names(flags.text("kubeconfig")))
        return
    from volcano_py.kube import resource

    kinds = {
        "jobs": resource.VCJOBS,
        "queues": resource.QUEUES,
        "namespaces": resource.NAMESPACES,
        "jobflows": resource.JOB_FLOWS,
        "jobtemplates": resource.JOB_TEMPLATES,
    }
    if what not in kinds:
        return
    kind = kinds[what]
    with Call(program, command, flags, timeout_s=_LIMIT_S) as call:
        for obj in call.api.list(kind, call.namespace):
            yield obj["metadata"]["name"], ""
