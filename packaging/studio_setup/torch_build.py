"""Install the chosen build of PyTorch into an environment."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from gpu_studio.core.builds.trouble import TroubleError, TroubleKind
from gpu_studio.core.wheels import CPU_TAG
from studio_setup.console import SetupError
from studio_setup.torch_download import download_torch

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.wheels import WheelChoice
    from studio_setup.pip_runner import Pip

_OUT_OF_REACH = (TroubleKind.NO_NETWORK, TroubleKind.BROKEN_LINE)
_SITE_PACKAGES = ("lib/python*/site-packages", "Lib/site-packages")


def installed_torch(environment: Path) -> tuple[str, str | None] | None:
    """Return (version, CUDA version or None) of an environment's PyTorch, without importing it."""
    for folder in _SITE_PACKAGES:
        for path in environment.glob(f"{folder}/torch/version.py"):
            text = path.read_text(encoding="utf-8")
            version = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
            cuda = re.search(r"^cuda: .* = '([^']+)'", text, re.MULTILINE)
            if version:
                return version[1], cuda[1] if cuda else None
    return None


def pinned_torch(environment: Path) -> str | None:
    """Return the requirement that keeps the PyTorch of an environment as it is.

    torch/version.py names the build ("2.13.0+cpu"), but the package from PyPI, which pip has to
    find again, is called "2.13.0".
    """
    for folder in _SITE_PACKAGES:
        for path in environment.glob(f"{folder}/torch-*.dist-info/METADATA"):
            version = re.search(r"^Version: (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            if version:
                return f"torch=={version[1]}"
    return None


def install_torch(pip: Pip, choice: WheelChoice) -> str:
    """Install the chosen build without its dependencies; they come with the other packages.

    A local wheel comes first, because pip needs more than a minute to find out that an index
    cannot be reached: a wheel in a folder of pip's configuration (`find-links`) is installed
    without asking any index. Then the wheel is downloaded from PyTorch's own index, so that a
    broken line or a new start continues it. The indexes in pip's configuration come last, for users
    behind a mirror.

    Args:
        pip: pip of the environment.
        choice: The build.

    Returns:
        The requirement that pins the installed build.

    Raises:
        SetupError: No index or folder has the build.
    """
    if not _install_local(pip, choice):
        _install_from_index(pip, choice)
    pinned = pinned_torch(pip.environment)
    if pinned is None or installed_torch(pip.environment) is None:
        raise SetupError("The files of PyTorch are missing: start GPU Studio again.")
    return pinned


def _install_local(pip: Pip, choice: WheelChoice) -> bool:
    # If both 2.13.0+cpu and 2.13.0 are there, pip takes 2.13.0+cpu.
    is_cpu = choice.tag == CPU_TAG
    requirement = f"torch=={choice.torch_version}" if is_cpu else choice.requirement
    if not pip.install("--no-index", "--no-deps", requirement):
        return False
    found = installed_torch(pip.environment)
    if is_cpu and found is not None and found[1] is not None:
        pip.uninstall("torch")
        return False
    return True


def _install_from_index(pip: Pip, choice: WheelChoice) -> None:
    failure = None
    if choice.index_url is not None:
        host = choice.index_url.split("/")[2]
        try:
            wheel = download_torch(
                choice, pip.log_path.parent / "downloads", pip.console, time.monotonic
            )
        except TroubleError as error:
            if error.trouble.kind not in _OUT_OF_REACH:
                # pip has its own certificates and its own settings for a proxy.
                if pip.install("--index-url", choice.index_url, "--no-deps", choice.requirement):
                    return
                failure = pip.failure(f"Installing {choice.requirement}")
            else:
                # pip's own message would mention only the other indexes.
                failure = SetupError(
                    f"Cannot reach {host}, and no other index or folder in pip's configuration has "
                    f"{choice.requirement}: {error.trouble.action}\nThe whole log: {pip.log_path}"
                )
        else:
            if pip.install("--no-index", "--no-deps", str(wheel)):
                wheel.unlink(missing_ok=True)
                return
            failure = pip.failure(f"Installing {choice.requirement}")
    if not pip.install("--no-deps", choice.requirement):
        raise failure or pip.failure(f"Installing {choice.requirement}")
