"""A launcher with an icon, in the menu and on the desktop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from studio_setup.console import SetupError
from studio_setup.launch import NO_WINDOW
from studio_setup.menu_entry import (
    APP_ID,
    desktop_folder,
    entry_text,
    menu_folder,
    refresh_desktop,
    write_entry,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_POWERSHELL = """
[Console]::OutputEncoding = [Text.Encoding]::UTF8
$shell = New-Object -ComObject WScript.Shell
foreach ($place in 'Desktop', 'Programs') {
  $path = Join-Path ([Environment]::GetFolderPath($place)) 'GPU Studio.lnk'
  $link = $shell.CreateShortcut($path)
  $link.TargetPath = $env:GPU_STUDIO_TARGET
  $link.Arguments = $env:GPU_STUDIO_ARGUMENTS
  $link.WorkingDirectory = $env:GPU_STUDIO_FOLDER
  $link.IconLocation = $env:GPU_STUDIO_ICON
  $link.Description = 'GPU Studio'
  $link.Save()
  Write-Output $path
}
"""


def make_shortcut(root: Path) -> list[Path]:
    """Make the launcher for this system; it runs bootstrap.py, which notices an update.

    Args:
        root: The checkout.

    Returns:
        The new files.

    Raises:
        SetupError: The launcher cannot be made here.
    """
    python = getattr(sys, "_base_executable", None) or sys.executable
    system: str = sys.platform
    try:
        if system == "win32":
            return _make_links(root, Path(python))
        if system == "linux":
            return _make_entries(root, Path(python), os.environ, Path.home())
    except OSError as error:
        raise SetupError(
            f"Cannot create the shortcut: {error.filename}: {error.strerror}."
        ) from error
    raise SetupError("Shortcuts are available on Linux and Windows only.")


def checkout_entry(template: str, python: Path, root: Path) -> str:
    """Return the launcher's text: the template with this checkout's command."""
    script = root / "packaging" / "bootstrap.py"
    return entry_text(template, [str(python), str(script), "--progress", "window", "run"])


def _make_entries(root: Path, python: Path, environ: Mapping[str, str], home: Path) -> list[Path]:
    menu = menu_folder(environ, home)
    icons = menu.parent / "icons" / "hicolor"
    template = root / "packaging" / f"{APP_ID}.desktop"
    entry = checkout_entry(template.read_text(encoding="utf-8"), python, root)
    for name, folder in (("svg", "scalable"), ("png", "256x256")):
        icon = icons / folder / "apps" / f"{APP_ID}.{name}"
        icon.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / "resources" / "app" / f"gpu-studio.{name}", icon)
    paths = []
    desktop = desktop_folder(environ, home)
    for place in [menu, *([desktop] if desktop else [])]:
        path = place / f"{APP_ID}.desktop"
        write_entry(path, entry)
        paths.append(path)
    refresh_desktop(paths)
    return paths


def _make_links(root: Path, python: Path) -> list[Path]:
    windowed = python.with_name("pythonw.exe")
    script = root / "packaging" / "bootstrap.py"
    environ = os.environ | {
        "GPU_STUDIO_TARGET": str(windowed if windowed.exists() else python),
        "GPU_STUDIO_ARGUMENTS": f'"{script}" --progress window run',
        "GPU_STUDIO_FOLDER": str(root),
        "GPU_STUDIO_ICON": str(root / "resources" / "app" / "gpu-studio.ico"),
    }
    command = ["powershell", "-NoProfile", "-NonInteractive", "-Command", _POWERSHELL]
    done = subprocess.run(
        command,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        creationflags=NO_WINDOW,
    )
    paths = [Path(line.strip()) for line in done.stdout.splitlines() if line.strip()]
    if done.returncode != 0 or not paths:
        raise SetupError(f"Windows could not create the shortcut: {done.stderr.strip()[:200]}")
    return paths
