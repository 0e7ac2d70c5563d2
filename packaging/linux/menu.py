"""Put the portable folder into the applications menu (``add``), or take it out (``remove``)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

APP = Path(__file__).resolve().parent
APP_ID = "gpu-studio"
STARTER = "gpu-studio"


class OtherEntryError(Exception):
    """The menu has no entry of this folder; the text says what it has."""


def quoted(argument: str) -> str:
    """Quote an argument for the key Exec, by the Desktop Entry Specification 1.5.

    Inside double quotes, four characters need a backslash. Every backslash is then doubled,
    because the value is itself an escaped string. A percent sign is doubled.
    """
    inner = re.sub(r'(["`$\\])', r"\\\1", argument).replace("\\", "\\\\").replace("%", "%%")
    return f'"{inner}"'


def entry_text(template: str, command: Sequence[str], **keys: str) -> str:
    """Return the template with another command, and with more or other keys.

    Args:
        template: The text of gpu-studio.desktop.
        command: The program and its arguments.
        **keys: Values that are a string, as `Icon`.
    """
    lines = [
        line for line in template.splitlines() if line.partition("=")[0] not in (*keys, "Exec")
    ]
    lines.append("Exec=" + " ".join(quoted(word) for word in command))
    lines += [f"{key}={_escaped(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


def menu_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Return where a desktop looks for the entries of a user."""
    return Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "applications"


def write_entry(path: Path, text: str) -> None:
    """Write an entry, which a file manager may start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def add_to_menu(app: Path, environ: Mapping[str, str], home: Path) -> Path:
    """Put a portable folder into the menu; return the entry."""
    path = menu_folder(environ, home) / f"{APP_ID}.desktop"
    template = (app / f"{APP_ID}.desktop").read_text(encoding="utf-8")
    starter, icon = app / STARTER, app / "resources" / "app" / "gpu-studio.svg"
    # TryExec hides the entry once the folder is gone.
    text = entry_text(template, [str(starter)], TryExec=str(starter), Icon=str(icon))
    write_entry(path, text)
    refresh_desktop([path])
    return path


def remove_from_menu(app: Path, environ: Mapping[str, str], home: Path) -> Path:
    """Take a portable folder out of the menu; return the entry that was there.

    Raises:
        OtherEntryError: there is none of this folder.
    """
    path = menu_folder(environ, home) / f"{APP_ID}.desktop"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if f"TryExec={_escaped(str(app / STARTER))}" not in text.splitlines():
        found = f"{path} belongs to another installation" if text else "there is no entry"
        raise OtherEntryError(f"This folder is not in the menu: {found}.")
    path.unlink()
    refresh_desktop([path])
    return path


def refresh_desktop(paths: Sequence[Path]) -> None:
    """Let the desktop read entries again: the first in the menu, all others on the desktop."""
    commands = [["update-desktop-database", "-q", str(paths[0].parent)]]
    # GNOME starts a desktop entry only if it is marked as trusted.
    commands += [["gio", "set", str(path), "metadata::trusted", "true"] for path in paths[1:]]
    for command in commands:
        if shutil.which(command[0]):
            subprocess.run(command, capture_output=True, check=False, timeout=10)


def main() -> int:
    """Do what was asked for; return the exit status."""
    package = json.loads((APP / "installed.json").read_text(encoding="utf-8"))["package"]
    if package != "tar":
        sys.stderr.write("GPU Studio is installed: its package keeps its entry in the menu.\n")
        return 1
    try:
        if sys.argv[1] == "add":
            path = add_to_menu(APP, os.environ, Path.home())
            print(f"GPU Studio is in your menu: {path}")
            print("If you move this folder, type the command again there.")
        else:
            path = remove_from_menu(APP, os.environ, Path.home())
            print(f"GPU Studio is no longer in your menu: {path} is removed.")
    except OtherEntryError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"The menu cannot be changed: {error.filename}: {error.strerror}.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
