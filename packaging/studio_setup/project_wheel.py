"""Install the program into its environment: a wheel that only points to the checkout.

The standard library builds it, so that no build tool has to be downloaded. pip installs it and
creates the system's `gpu-studio` commands.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any

from studio_setup.console import SetupError
from studio_setup.launch import NO_WINDOW

if TYPE_CHECKING:
    from pathlib import Path

# Python 3.10 has no tomllib, but its pip contains tomli.
_READ_PROJECT = """
import json, sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    print(json.dumps(tomllib.load(file)["project"]))
"""


def read_project(python: Path, pyproject: Path) -> dict[str, Any]:
    """Return the table [project] of pyproject.toml, read by the environment's interpreter.

    Raises:
        SetupError: The file cannot be read.
    """
    command = [str(python), "-I", "-X", "utf8", "-c", _READ_PROJECT, str(pyproject)]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, creationflags=NO_WINDOW
    )
    if done.returncode != 0:
        raise SetupError(f"Cannot read {pyproject}: download GPU Studio again.")
    project: dict[str, Any] = json.loads(done.stdout)
    return project


def build_pointer_wheel(project: dict[str, Any], root: Path, folder: Path) -> Path:
    """Write the wheel into a folder.

    Args:
        project: The table [project] of pyproject.toml.
        root: The checkout that the wheel points to.
        folder: The folder for the wheel.

    Returns:
        The wheel's path.
    """
    name = project["name"].replace("-", "_")
    stem = f"{name}-{project['version']}"
    meta = f"{stem}.dist-info"
    files = {
        # ASCII code only: older Pythons read .pth files in the locale's encoding.
        f"{name}.pth": f"import sys; sys.path.append({str(root)!a})\n",
        f"{meta}/METADATA": _metadata(project),
        f"{meta}/WHEEL": "Wheel-Version: 1.0\nGenerator: gpu-studio-setup\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
        f"{meta}/entry_points.txt": _entry_points(project),
    }
    record = "".join(_record_line(path, text) for path, text in files.items())
    files[f"{meta}/RECORD"] = f"{record}{meta}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text.encode("utf-8"))
    return wheel


def _metadata(project: dict[str, Any]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
    lines += [f"Summary: {project['description']}"]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    return "\n".join(lines) + "\n"


def _entry_points(project: dict[str, Any]) -> str:
    lines = []
    for section, key in (("console_scripts", "scripts"), ("gui_scripts", "gui-scripts")):
        lines.append(f"[{section}]")
        lines += [f"{name} = {target}" for name, target in project.get(key, {}).items()]
    return "\n".join(lines) + "\n"


def _record_line(path: str, text: str) -> str:
    content = text.encode("utf-8")
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"
