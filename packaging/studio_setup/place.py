"""Choose the environment's folder: in the checkout, unless its file names get too long for Windows.

By default, Windows allows paths of at most 259 characters (Microsoft, "Maximum Path Length
Limitation"). PyTorch has license files whose paths take 190 of them. pip would notice only while it
unpacks, after the whole download.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_LONGEST_NAME = 259
# Lib\site-packages\torch-2.13.0+cu126.dist-info\licenses\…\duktape-1.5.2\LICENSE.txt has 191.
_LONGEST_INSIDE = 200
_SWITCH = r"SYSTEM\CurrentControlSet\Control\FileSystem"


def environment_folder(root: Path, system: str = sys.platform, home: Path | None = None) -> Path:
    """Return the folder of a checkout's environment, which may not exist yet.

    Args:
        root: The checkout.
        system: A value of `sys.platform`.
        home: The user's home folder; None asks the system.
    """
    beside = root / ".venv"
    is_short = len(str(beside)) + 1 + _LONGEST_INSIDE <= _LONGEST_NAME
    if system != "win32" or is_short or allows_long_names():
        return beside
    # Not in AppData: Windows redirects it for Python from the Microsoft Store.
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return (home or Path.home()) / ".gpu-studio" / name


def allows_long_names() -> bool:
    """Return whether long paths are enabled in this Windows."""
    winreg: Any = importlib.import_module("winreg")
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _SWITCH) as key:
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])
    except OSError:
        return False
