"""A kubeconfig file for a local system; it exists as long as the system does."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml

NAME: Final = "volcano-py"


class KubeconfigError(Exception):
    """The file cannot be written; the message says why and what to do."""


def kubeconfig(url: str) -> str:
    """Return the text of a kubeconfig for an API server that needs no credentials."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url}}],
        "users": [{"name": NAME, "user": {}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }
    return yaml.safe_dump(document, sort_keys=False)


@contextmanager
def written_kubeconfig(url: str, path: Path | None = None) -> Iterator[Path]:
    """Write a kubeconfig to ``path`` or a temporary folder, and remove it when the block ends."""
    folder = None
    if path is None:
        folder = Path(tempfile.mkdtemp(prefix="volcano-py-"))
        path = folder / "kubeconfig"
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise KubeconfigError(f"{path} already exists and is not overwritten: name another file") from error
        except OSError as error:
            raise KubeconfigError(f"{path} cannot be written: {error.strerror}; name another file") from error
        with os.fdopen(descriptor, "w") as file:
            file.write(kubeconfig(url))
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
    finally:
        if folder is not None:
            folder.rmdir()
