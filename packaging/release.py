#!/usr/bin/env python3
"""Make a release: check the versions, build all packages, and write the checksums.

    python packaging/release.py VERSION --python python-3.13.N-embed-amd64.zip --out DIR

packaging/RELEASING.md says what to do before and after it. It publishes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT)]

from studio_build import changes, python_package  # noqa: E402
from studio_build.address import address_of  # noqa: E402
from studio_build.app_folder import program_of  # noqa: E402
from studio_build.console import BuildError, end_as_exception, run, say  # noqa: E402
from studio_build.linux_packages import MAINTAINER  # noqa: E402

CHECKSUMS = "SHA256SUMS"


def check(root: Path, version: str) -> changes.Release:
    """Return what CHANGES.md says about the version that is to be released.

    Raises:
        BuildError: the checkout is not that version, or has changes that no commit has; or nobody
            could find the project, or the .deb's maintainer.
    """
    if missing := [name for name in MAINTAINER if not os.environ.get(name)]:
        raise BuildError(f"The .deb names a maintainer: set {' and '.join(missing)}.")
    if (address := address_of(root)).is_placeholder:
        raise BuildError(
            f"{address.url} is not an address: write the project's as Homepage in pyproject.toml."
        )
    program = program_of(root)
    if program.version != version:
        raise BuildError(f"pyproject.toml has version {program.version}, not {version}.")
    release = changes.newest((root / "CHANGES.md").read_text(encoding="utf-8"), version)
    git = ["git", "-C", str(root)]
    if run([*git, "status", "--porcelain"]):
        raise BuildError("There are changes that no commit has: a release is built from a commit.")
    if run([*git, "tag", "--list", f"v{version}"]):
        raise BuildError(f"There is a tag v{version} already: choose the next version.")
    return release


def checksums(folder: Path) -> str:
    """Return the lines that ``sha256sum --check`` reads, for all packages in a folder."""
    rows = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != CHECKSUMS:
            rows.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    return "".join(rows)


def _build(out: Path, *arguments: str) -> None:
    command = [sys.executable, str(ROOT / "packaging" / "build.py"), *arguments, "--out", str(out)]
    if subprocess.run(command, check=False).returncode != 0:
        raise BuildError(f"build.py {arguments[0]} failed.")


def main() -> int:
    """Make the release; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("version", help="for example 0.2.0")
    parser.add_argument(
        "--python", type=Path, required=True, help="python.org's embeddable package"
    )
    parser.add_argument("--sign", help="the command that signs a file for Windows")
    parser.add_argument("--out", type=Path, required=True, help="a new or empty folder")
    options = parser.parse_args()
    end_as_exception()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        if any(options.out.iterdir()):
            raise BuildError(f"{options.out} has other files.")
        release = check(ROOT, options.version)
        signed = ["--sign", options.sign] if options.sign else []
        _build(options.out, "windows", "--python", str(options.python), *signed)
        _build(options.out, "linux")
        program = program_of(ROOT)
        with tempfile.TemporaryDirectory(prefix="gpu-studio-release-") as work:
            python_package.write_python_package(program, Path(work), options.out / "pypi")
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    (options.out / CHECKSUMS).write_text(checksums(options.out), encoding="utf-8", newline="\n")
    say((options.out / CHECKSUMS).read_text(encoding="utf-8"))
    say(f"Changes of {release.version}:\n" + "\n".join(f"- {one}" for one in release.changes))
    say(f"\nProve both packages, then type: git tag v{release.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
