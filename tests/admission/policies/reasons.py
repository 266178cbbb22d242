"""What admission policies do not say as the webhooks do, by reason: each reason has the sentences that it is about."""

from __future__ import annotations

import re
from typing import Final

from volcano_py.admission.contract import Refusal, Verdict

NOT_SAID: Final = {
    "the queue of work is another object": re.compile(
        r"unable to find (job )?queue|can only submit (job|PodGroup) to queue with|can only submit job to leaf queue"
    ),
    "the relatives of a queue are other objects": re.compile(
        r"failed to get parent queue|cannot be the parent queue|exceeds its ancestor's|"
        r"is smaller than its descendants'|sum of children's|own descendant|maximum allowed depth|has \d+ child queues"
    ),
    "the path of another queue is in another object": re.compile(r"is not allowed to be in the sub path of"),
    "a pod template is judged when its pods are created": re.compile(r"^ spec\.task\[\d+\]\.template"),
    "the status of a queue is dropped before anybody judges it": re.compile(r"queue state must be in"),
    "what is not there is not found before anybody judges its deletion": re.compile(r"^queue\.[a-z.]+ .* not found$"),
}
"""Reason to the sentences that no policy says."""

OWN_WORDS: Final = {
    "a pattern that cannot be read makes the policy fail": re.compile(
        r"^\.spec\.members\.selector\.regexMatch\.pattern: "
    ),
    "a time zone that does not exist makes the policy fail": re.compile(r"^ invalid timeZone "),
}
"""Reason to sentences of objects that policies refuse, but in the words of the API server."""

SHORTER: Final = {
    "the detail of a schedule": re.compile(r"(schedule is not a valid cron expression: )[^;]*"),
}
"""Reason to the details that the sentence of a policy has otherwise; only the group is compared."""

DEFINITION: Final = {
    "numbers have limits": re.compile(r"should be (greater|less) than or equal to|must be (greater|less) than"),
    "events are a closed set": re.compile(r"Unsupported value"),
    "names, queues, paths have a form": re.compile(r"should match|may not be more than|too long|at least 1 chars"),
    "a field is required": re.compile(r"Required value|should have at least|must specify one of"),
    "metadata.name is a DNS subdomain": re.compile(r"metadata\.name: Invalid value"),
    "a field has a type": re.compile(r"must be of type"),
}
"""Why the definition of a kind refuses an object before any policy sees it, and the words of the API server."""


def said(verdict: Verdict) -> str:
    """Return the text of a verdict without what policies do not say."""
    rest = tuple(one for one in verdict.refusals if not reason_of(one))
    return Verdict(rest, joining=verdict.joining).message


def reason_of(refusal: Refusal) -> str:
    """Return why policies do not say this sentence, "" if they do."""
    return next((reason for reason, words in NOT_SAID.items() if words.search(refusal.message)), "")


def in_own_words(verdict: Verdict) -> str:
    """Return why the API server has words of its own for this verdict, "" if it has not."""
    found = [reason for reason, words in OWN_WORDS.items() for one in verdict.refusals if words.search(one.message)]
    return found[0] if found else ""


def comparable(text: str) -> str:
    """Return a text without details that differ."""
    for pattern in SHORTER.values():
        text = pattern.sub(r"\1", text)
    return text.strip()


def reason_of_definition(words: str) -> str:
    """Return why the definition of a kind refuses an object, "" if these are not its words."""
    return next((reason for reason, pattern in DEFINITION.items() if pattern.search(words)), "")
