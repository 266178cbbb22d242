"""Archives that do not depend on when and by whom they are made."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path


def repack(archive: Path, epoch: int) -> None:
    """Write a .tar.gz again: sorted, with one time, and without users."""
    with tarfile.open(archive) as old:
        members = sorted(old.getmembers(), key=lambda member: member.name)
        contents = {member.name: _content(old, member) for member in members}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in members:
            new.addfile(_anonymous(member, epoch), io.BytesIO(contents[member.name]))
    with archive.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=epoch) as compressed:
        compressed.write(packed.getvalue())


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member) if member.isfile() else None
    return file.read() if file is not None else b""


def _anonymous(member: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    member.pax_headers = {}
    return member


def checksums(files: Iterable[Path]) -> str:
    """Return the lines that `sha256sum -c` reads."""
    return "".join(f"{_digest(file)}  {file.name}\n" for file in sorted(files))


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
