"""Writes that need webhooks: a draft passes through all of them, then is stored unless the object changed meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable

from volcano_py.apiserver.drafts import Draft
from volcano_py.apiserver.objects import Obj, copy_value
from volcano_py.apiserver.patches import json_patch
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.requests import Call
from volcano_py.apiserver.status import MODIFIED, StatusError, bad_request, conflict
from volcano_py.apiserver.store import Stored
from volcano_py.apiserver.webhooks.caller import Caller, CallFailed
from volcano_py.apiserver.webhooks.matching import MUTATING, VALIDATING, Subject, any_configured, hooks_for
from volcano_py.apiserver.webhooks.review import Verdict, denied, question

log = logging.getLogger(__name__)

_ATTEMPTS = 5  # after so many concurrent changes of the object, the write is a conflict


class WebhookChain:
    """Calls the webhooks of one server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._caller = Caller()

    def concerns(self, call: Call) -> bool:
        """Whether a request needs webhooks."""
        target = call.target
        return (
            target.verb in ("create", "update", "patch", "delete", "deletecollection")
            and target.subresource in ("", "status")
            and any_configured(self._registry)
        )

    async def admit(self, make: Callable[[], Draft], call: Call) -> Draft:
        """A draft that every webhook admits; prepared again if the object changes meanwhile."""
        for _ in range(_ATTEMPTS):
            draft = make()
            old = None if draft.old is None else draft.old.obj
            operation = "CREATE" if draft.old is None else "UPDATE"
            subject = _subject(call, operation, draft.namespace, draft.name)
            await self._mutate(draft, subject, old)
            self._registry.check(draft)
            await self._validate(subject, draft.obj, old, draft.context.dry_run, draft.context.warnings)
            if self._current(draft) is draft.old or draft.old is None:
                return draft
        target = call.target
        raise conflict(target.resource.group, target.resource.plural, target.name, MODIFIED)

    def _current(self, draft: Draft) -> Stored | None:
        return self._registry.collection(draft.resource).get(draft.key)

    async def admit_deletion(self, found: list[Stored], call: Call, dry_run: bool) -> list[str]:
        """Ask the webhooks about deletions; returns their warnings."""
        warnings: list[str] = []
        for stored in found:
            meta = stored.obj["metadata"]
            subject = _subject(call, "DELETE", meta.get("namespace"), meta["name"])
            for hook in hooks_for(self._registry, MUTATING, subject, None, stored.obj):
                await self._ask(hook, subject, None, stored.obj, dry_run, warnings)
            await self._validate(subject, None, stored.obj, dry_run, warnings)
        return warnings

    async def _mutate(self, draft: Draft, subject: Subject, old: Obj | None) -> None:
        resource, context = draft.resource, draft.context
        for hook in hooks_for(self._registry, MUTATING, subject, draft.obj, old):
            verdict = await self._ask(hook, subject, draft.obj, old, context.dry_run, context.warnings)
            if verdict is None or not verdict.patch:
                continue
            changed = copy_value(draft.obj)
            changed["apiVersion"] = resource.versions[context.version].api_version
            try:
                changed = json_patch(changed, verdict.patch)
            except StatusError as error:
                detail = "; ".join(getattr(error, "__notes__", ()))
                raise _internal(f'the patch of webhook "{hook["name"]}" does not apply: {detail}') from error
            if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
                raise _internal(f'the patch of webhook "{hook["name"]}" leaves no object')
            # A webhook must not change the object's identity.
            for field in ("name", "namespace", "uid", "resourceVersion"):
                if field in draft.obj["metadata"]:
                    changed["metadata"][field] = draft.obj["metadata"][field]
            resource.strategy.check_shape(changed)
            if old is None and not context.subresource:
                resource.strategy.default(changed, context)
            changed["kind"], changed["apiVersion"] = resource.kind, resource.storage.api_version
            draft.obj = changed

    async def _validate(
        self, subject: Subject, obj: Obj | None, old: Obj | None, dry_run: bool, warnings: list[str]
    ) -> None:
        for hook in hooks_for(self._registry, VALIDATING, subject, obj, old):
            await self._ask(hook, subject, obj, old, dry_run, warnings)

    async def _ask(
        self, hook: Obj, subject: Subject, obj: Obj | None, old: Obj | None, dry_run: bool, warnings: list[str]
    ) -> Verdict | None:
        """The verdict of one webhook; None if it failed and may be ignored; StatusError if it refuses."""
        name = hook["name"]
        if dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{name}" does not support dry run')
        try:
            verdict = await self._caller.ask(hook, question(subject, obj, old, dry_run))
        except CallFailed as error:
            if hook.get("failurePolicy") == "Ignore":
                log.warning("webhook %s failed and is ignored: %s", name, error)
                return None
            raise _internal(f'failed calling webhook "{name}": {error}') from error
        warnings.extend(verdict.warnings)
        if not verdict.allowed:
            refusal = denied(name, verdict.status)
            refusal.warnings = list(warnings)
            raise refusal
        return verdict

    async def close(self) -> None:
        """Close connections to webhooks."""
        await self._caller.close()


def _subject(call: Call, operation: str, namespace: str | None, name: str) -> Subject:
    target = call.target
    return Subject(target.resource, target.version, target.subresource, operation, namespace, name)


def _internal(message: str) -> StatusError:
    details: Obj = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)
