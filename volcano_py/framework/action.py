"""Actions with arguments; an action without arguments is a plain function of the session."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from volcano_py.conf.arguments import Warn
from volcano_py.framework.session import Session


class Action(ABC):
    """An action that its entry in ``configurations`` can change."""

    arguments: ClassVar[frozenset[str]]  # argument keys it understands; others are warned about

    @classmethod
    @abstractmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "Action":
        """Return the action with these arguments, and tell ``warn`` what was ignored.

        Raises ValueError on a value with which the action must not run.
        """

    @abstractmethod
    def __call__(self, ssn: Session) -> None:
        """Run the action."""
