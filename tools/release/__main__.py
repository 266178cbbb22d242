"""Make the files of a release: source package, wheel, chart, install.yaml, image, and their checksums.

`make release` runs it with the helm and kubectl of the end-to-end tests. The same commit gives the same files, as long
as setuptools is the same. Only the image differs, because its base changes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.release.archives import checksums
from tools.release.artefacts import Workshop
from tools.release.tree import NotReleasable, changes, commit_time, export
from tools.release.versions import disagreements, project_version

ROOT = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"
_SHOWN = 5


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Make a release and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--dist", type=Path, default=root / "dist", help="folder for the files (default: dist)")
    parser.add_argument(
        "--without-image", action="store_true", help="leave out the image, which needs root and buildah"
    )
    parser.add_argument("--allow-dirty", action="store_true", help="release changes that are not committed, too")
    chosen = parser.parse_args(arguments)
    os.umask(0o022)  # wheels hold the modes of files
    try:
        check(root, image=not chosen.without_image, allow_dirty=chosen.allow_dirty)
        release(root, chosen.dist.resolve(), image=not chosen.without_image)
    except NotReleasable as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def check(root: Path, *, image: bool, allow_dirty: bool) -> None:
    """Raise NotReleasable for whatever would stop the release later, or make it a wrong one."""
    problems = disagreements(root)
    problems += [
        f"{name} is missing: `make release` brings it" for name in ("helm", "kubectl") if not shutil.which(name)
    ]
    if image and (os.geteuid() != 0 or not shutil.which("buildah")):
        problems.append(
            "the image needs root and buildah (apt-get install buildah debootstrap):"
            ' run `sudo make release`, or leave it out: make release RELEASE="--without-image"'
        )
    if not allow_dirty and (changed := changes(root)):
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        problems.append(
            f"these files differ from the last commit: {', '.join(changed[:_SHOWN])}{more}."
            ' Commit them, or release them anyway: make release RELEASE="--allow-dirty"'
        )
    if problems:
        raise NotReleasable("\n".join(problems))


def release(root: Path, dist: Path, *, image: bool) -> list[Path]:
    """Make every file of the release and return them, the checksums last; a failure leaves the folder as it was."""
    former = files_of_a_release(dist)
    epoch = commit_time(root)
    with tempfile.TemporaryDirectory(prefix="volcano-py-release-") as scratch:
        sources, finished = Path(scratch, "sources"), Path(scratch, "dist")
        finished.mkdir()
        export(root, sources, epoch)
        shop = Workshop(sources, Path(scratch), finished, project_version(root), epoch)
        made: list[Path] = []
        for step in (shop.packages, shop.chart, shop.install_file, *([shop.image] if image else [])):
            started = time.monotonic()
            files = step()
            made += files
            for file in files:
                print(f"{file.name}  {file.stat().st_size / 1e6:.1f} MB  ({time.monotonic() - started:.0f} s)")
        sums = finished / SUMS
        sums.write_text(checksums(made))
        released = replace(dist, former, [*made, sums])
    print(f"{SUMS}: check with `cd {dist} && sha256sum -c {SUMS}`")
    return released


def files_of_a_release(dist: Path) -> list[Path]:
    """Return the files of the release before; refuse a folder that holds anything else."""
    sums = dist / SUMS
    ours = {line.split()[1] for line in sums.read_text().splitlines()} | {SUMS} if sums.exists() else set()
    others = sorted({file.name for file in dist.iterdir()} - ours) if dist.exists() else []
    if others:
        raise NotReleasable(
            f"{dist} holds files that are not of a release, such as {others[0]}: empty it, or use --dist"
        )
    return [dist / name for name in ours]


def replace(dist: Path, former: Iterable[Path], files: Iterable[Path]) -> list[Path]:
    """Put files in the place of those of the release before."""
    dist.mkdir(parents=True, exist_ok=True)
    for file in former:
        file.unlink(missing_ok=True)
    return [Path(shutil.move(file, dist / file.name)) for file in files]


if __name__ == "__main__":
    sys.exit(main())
