#!/usr/bin/env python3
"""Write packaging/locks/: the package files that the setup installs, with their SHA-256.

    python packaging/write_locks.py [--uv PATH]

One file for each platform covers every Python that the program supports. uv can resolve for a
platform and a Python that this PC does not have; pip cannot. PyTorch itself is not in the files:
the right build depends on the card, and its index is not PyPI. PyTorch's dependencies are in them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parent.parent
_PYPI = "https://pypi.org/simple"
# The setup's name of a platform, uv's name, and the endings of its wheel names.
_PLATFORMS = {
    "linux-x86_64": ("x86_64-manylinux_2_34", ("any", "x86_64")),
    "windows-x86_64": ("windows", ("any", "win_amd64")),
}
# PyPI's PyTorch for Linux is the cu130 build, so these are the dependencies of that build.
_CUDA = re.compile(r"nvidia-(?!ml-py)|cuda-|triton")
_CUDA_SECTION = "cu130"


class Package(NamedTuple):
    """One version of a package, for one Python.

    Attributes:
        name: As PyPI normalizes it.
        version: For example "2.4.6".
        hashes: The SHA-256 of each matching wheel, in hexadecimal digits.
    """

    name: str
    version: str
    hashes: tuple[str, ...]


def packages_in(pylock: str, endings: tuple[str, ...]) -> list[Package]:
    """Read a lock in the format of PEP 751.

    Args:
        pylock: The text of the file.
        endings: The endings of the platform tags of the wheels to keep.
    """
    found = []
    for row in tomllib.loads(pylock)["packages"]:
        wheels = [
            wheel["hashes"]["sha256"]
            for wheel in row.get("wheels", ())
            if wheel["url"].rsplit("/", 1)[-1].removesuffix(".whl").endswith(endings)
        ]
        found.append(Package(row["name"], row["version"], tuple(sorted(wheels))))
    return found


def marker(minors: list[int], all_minors: list[int]) -> str:
    """Return the environment marker for some of the Python 3.x versions; "" for all of them."""
    if minors == all_minors:
        return ""
    return " or ".join(f'python_version == "3.{minor}"' for minor in minors)


def lock_text(sections: dict[str, dict[int, list[Package]]], note: str) -> str:
    """Write a lock file.

    Args:
        sections: The packages to install, by section and by minor version of Python 3.
        note: The first line.
    """
    lines = [f"# {note}"]
    for section, by_minor in sections.items():
        lines += ["", f"# [{section}]"]
        minors_of = defaultdict(list)
        for minor, packages in by_minor.items():
            for package in packages:
                minors_of[package.name, package.version].append((minor, package.hashes))
        for (name, version), rows in sorted(minors_of.items()):
            where = marker([minor for minor, _ in rows], list(by_minor))
            hashes = sorted({one for _, many in rows for one in many})
            words = [f"{name}=={version}", *([f"; {where}"] if where else [])]
            lines.append(" ".join([*words, *(f"--hash=sha256:{one}" for one in hashes)]))
    return "\n".join(lines) + "\n"


def _resolve(uv: str, platform: str, minor: int, extras: list[str], constraints: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        limits, lock = Path(folder) / "constraints.txt", Path(folder) / "pylock.toml"
        limits.write_text(constraints, encoding="utf-8")
        command = [uv, "pip", "compile", "--quiet", "--no-config", "--only-binary", ":all:"]
        command += ["--default-index", _PYPI, "--constraints", str(limits)]
        command += ["--python-platform", platform, "--python-version", f"3.{minor}"]
        command += [f"--extra={extra}" for extra in extras]
        command += ["--format", "pylock.toml", "--output-file", str(lock)]
        command.append(str(ROOT / "pyproject.toml"))
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return lock.read_text(encoding="utf-8")


def sections_of(
    uv: str, platform: str, minors: list[int], torch_version: str
) -> dict[str, dict[int, list[Package]]]:
    """Return a platform's packages: for the program, for its tests, and for CUDA."""
    uv_name, endings = _PLATFORMS[platform]
    sections: dict[str, dict[int, list[Package]]] = {"run": {}, "test": {}, _CUDA_SECTION: {}}
    for minor in minors:
        print(f"{platform}, Python 3.{minor}", file=sys.stderr)
        everything = _resolve(
            uv, uv_name, minor, ["torch", "test", "lint"], f"torch=={torch_version}"
        )
        packages = [one for one in packages_in(everything, endings) if one.name != "torch"]
        pins = "\n".join(f"{one.name}=={one.version}" for one in packages)
        program = _resolve(uv, uv_name, minor, ["torch"], f"torch=={torch_version}\n{pins}")
        of_program = {one.name for one in packages_in(program, endings)}
        for package in packages:
            is_cuda = _CUDA.match(package.name) is not None
            section = "run" if package.name in of_program else "test"
            sections[_CUDA_SECTION if is_cuda else section].setdefault(minor, []).append(package)
    return {name: rows for name, rows in sections.items() if rows}


def main() -> int:
    """Write the lock files of all platforms."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--uv", default="uv", help="the uv command, if it is not on the path")
    uv = parser.parse_args().uv
    table = json.loads((ROOT / "resources" / "wheels.json").read_text(encoding="utf-8"))
    minors = list(range(table["python"]["oldest"][1], table["python"]["newest"][1] + 1))
    note = "Generated by packaging/write_locks.py from pyproject.toml. Do not edit."
    for platform in _PLATFORMS:
        sections = sections_of(uv, platform, minors, table["torch_version"])
        path = ROOT / "packaging" / "locks" / f"{platform}.txt"
        path.write_text(lock_text(sections, note), encoding="utf-8", newline="\n")
        print(f"Wrote {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
