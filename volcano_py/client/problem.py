"""Why a command cannot do what it was asked to do, in one sentence for its user."""


class Problem(Exception):
    """A command fails; the message names the object and, where there is one, the next command to try."""


class ApiProblem(Problem):
    """The API server refused a request."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float = 0.0, about: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
        """When the server wants to be asked again; 0 if it does not say so."""
        self.about = about
        """The resource that was asked for, such as `jobs.batch.volcano.sh`; empty if the server does not say so."""


class Unreachable(Problem):
    """The API server does not answer; it may do so later."""


def in_one_line(error: Exception) -> str:
    """Return what is wrong with a text, with its place; the library for YAML draws the place in lines of its own."""
    found, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if found and mark:
        context = getattr(error, "context", None)
        return f"line {mark.line + 1}, column {mark.column + 1}: {f'{context}: ' if context else ''}{found}"
    return " ".join(str(error).replace(' in "<unicode string>",', " in").split())
