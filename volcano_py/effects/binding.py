"""A bind as it goes over the wire."""

import msgspec

from volcano_py.model.decisions import Bind


class _Target(msgspec.Struct, rename="camel", gc=False):
    name: str
    api_version: str = "v1"
    kind: str = "Node"


class _Metadata(msgspec.Struct, gc=False):
    namespace: str
    name: str
    uid: str


class _Binding(msgspec.Struct, rename="camel", gc=False):
    metadata: _Metadata
    target: _Target
    api_version: str = "v1"
    kind: str = "Binding"


_ENCODER = msgspec.json.Encoder()


def binding_body(bind: Bind) -> bytes:
    """Return the JSON of a Binding; the uid is a precondition, so that no other pod of the same name is bound."""
    namespace, name, uid = bind.task
    return _ENCODER.encode(_Binding(_Metadata(namespace, name, uid), _Target(bind.node)))
