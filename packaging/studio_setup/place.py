"""Where a checkout's environment is: beside it, unless Windows could not name what is in there.

Without long paths, which Windows has switched off, no file's name may be longer than 259 characters
(Microsoft, "Maximum Path Length Limitation"), and PyTorch brings licences that lie 190 deep. The
download would be in vain: pip finds out while it unpacks.
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
    """The folder of a checkout's environment, whether it is there or not.

    Args:
        root: The checkout.
        system: As `sys.platform`.
        home: The user's folder; None asks the system.
    """
    beside = root / ".venv"
    is_short = len(str(beside)) + 1 + _LONGEST_INSIDE <= _LONGEST_NAME
    if system != "win32" or is_short or allows_long_names():
        return beside
    # Not below AppData: the Store's Python is shown another one.
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return (home or Path.home()) / ".gpu-studio" / name


def allows_long_names() -> bool:
    """Whether this Windows was told to take names of any length."""
    winreg: Any = importlib.import_module("winreg")
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _SWITCH) as key:
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])
    except OSError:
        return False
