#!/usr/bin/env python3
"""Build the packages of GPU Studio, from a checkout on Linux.

    python3 packaging/build.py windows --out DIR --python FOLDER [--wheels FOLDER] [--sign COMMAND]
    python3 packaging/build.py linux --out DIR [--wheels FOLDER]
    python3 packaging/build.py prove windows|linux --out DIR [--wheels FOLDER]

With --fast, they compress little, in seconds and not in minutes: for a try, not for a release.

`windows` makes GPU-Studio-VERSION-setup.exe. FOLDER is python.org's embeddable package for
64-bit Windows, as a zip file or unpacked; run build.py with a Python of the same 3.N. It needs
Debian's nsis and gcc-mingw-w64-x86-64. `linux` makes a .deb for older
Debians, one for newer ones, and a portable .tar.xz.

Two builds of the same commit give the same bytes. `prove` installs what DIR has, uses it as a
person does, and removes it: Windows under Wine, Linux in a bare Debian; both need root.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT)]

from studio_build import app_folder, changes, linux_packages, sizes, starter, windows_setup  # noqa: E402
from studio_build.console import BuildError, end_as_exception, say  # noqa: E402


def build_windows(
    out: Path, wheels: Path | None, work: Path, options: argparse.Namespace
) -> list[Path]:
    """Make the setup for Windows; return it."""
    program = app_folder.program_of(ROOT)
    say("The program's folder…")
    app = app_folder.make_windows(program, options.python.resolve(), wheels, work)
    starter.compile_starters(program, work, app)
    uninstaller = starter.compile_uninstaller(program, work)
    if options.sign:
        starter.sign_programs([*(app / name for name in starter.NAMES), uninstaller], options.sign)
    app_folder.set_times(app, program.epoch)
    say(sizes.table(app))
    say("The setup, compressed by NSIS (minutes)…")
    fast, sign = options.fast, options.sign
    return [windows_setup.compile_setup(program, app, uninstaller, out, fast, sign)]


def build_linux(out: Path, wheels: Path | None, work: Path, is_fast: bool) -> list[Path]:
    """Make the packages for Linux; return them."""
    program = app_folder.program_of(ROOT)

    def finished(app: Path) -> Path:
        linux_packages.add_starter(program, app)
        app_folder.set_times(app, program.epoch)
        say(sizes.table(app))
        return app

    def packed(app: Path, kind: linux_packages.Kind) -> Path:
        return linux_packages.write_deb(program, finished(app), out, kind, manual, is_fast)

    say("Three folders, each compressed (minutes)…")
    portable = finished(app_folder.make_linux(program, wheels, work))
    manual = linux_packages.manual_of(program, portable)
    made = [linux_packages.write_tar(program, portable, out, is_fast)]
    older = app_folder.make_linux(program, wheels, work, app_folder.DEBIAN_MINOR - 1)
    made.append(packed(older, linux_packages.SELF_CONTAINED))
    newer = app_folder.make_on_debian(program, wheels, work)
    return [*made, packed(newer, linux_packages.ON_DEBIAN)]


def main() -> int:
    """Run what was asked for; return the exit status."""
    options = _parser().parse_args()
    end_as_exception()
    options.out.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    try:
        if options.what == "prove":
            return _prove(options)
        made = _build(options)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path in made:
        say(f"{path.name}: {sizes.in_words(path.stat().st_size)}")
    too_large = [path.name for path in made if path.stat().st_size > sizes.LARGEST_PACKAGE]
    if too_large:
        sys.stderr.write(f"Over {sizes.in_words(sizes.LARGEST_PACKAGE)}: {too_large}\n")
        return 1
    say(f"Built in {time.monotonic() - began_s:.0f} s.")
    return 0


def _build(options: argparse.Namespace) -> list[Path]:
    history = (ROOT / "CHANGES.md").read_text(encoding="utf-8")
    changes.newest(history, app_folder.program_of(ROOT).version)
    out, wheels = options.out.resolve(), options.wheels and options.wheels.resolve()
    with tempfile.TemporaryDirectory(prefix="gpu-studio-build-") as folder:
        if options.what == "windows":
            return build_windows(out, wheels, Path(folder), options)
        return build_linux(out, wheels, Path(folder), options.fast)


def _prove(options: argparse.Namespace) -> int:
    command = [sys.executable, "-m", "tests.installed", options.system, str(options.out.resolve())]
    for name, folder in (("--wheels", options.wheels), ("--older", options.older)):
        command += [name, str(folder.resolve())] if folder else []
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "packaging")}
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode


def _parser() -> argparse.ArgumentParser:
    text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=text)
    whats = parser.add_subparsers(dest="what", required=True)
    for system in ("windows", "linux"):
        command = whats.add_parser(system, help=f"make the packages for {system.title()}")
        command.add_argument("--out", type=Path, required=True, help="where they go")
        command.add_argument("--wheels", type=Path, help="take the wheels from this folder alone")
        command.add_argument("--fast", action="store_true", help="compress little: for a try")
        if system == "windows":
            command.add_argument("--python", type=Path, required=True,
                                 help="python.org's embeddable package")  # fmt: skip
            command.add_argument("--sign", help="the command that signs a file, given its path")
    prove = whats.add_parser("prove", help="install, use and remove a package")
    prove.add_argument("system", choices=("windows", "linux"))
    prove.add_argument("--out", type=Path, required=True, help="where the package is")
    prove.add_argument("--wheels", type=Path, help="PyTorch's wheels, else they are downloaded")
    prove.add_argument("--older", type=Path,
                       help="the packages of an older version, to update first")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
