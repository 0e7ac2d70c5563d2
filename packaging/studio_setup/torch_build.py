"""Put the chosen build of PyTorch into an environment."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from gpu_studio.core.wheels import CPU_TAG
from studio_setup.console import SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.wheels import WheelChoice
    from studio_setup.pip_runner import Pip

_REACH_TIMEOUT_S = 10.0
_SITE_PACKAGES = ("lib/python*/site-packages", "Lib/site-packages")


def installed_torch(environment: Path) -> tuple[str, str | None] | None:
    """(version, CUDA version or None) of the PyTorch in an environment, without importing it."""
    for folder in _SITE_PACKAGES:
        for path in environment.glob(f"{folder}/torch/version.py"):
            text = path.read_text(encoding="utf-8")
            version = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
            cuda = re.search(r"^cuda: .* = '([^']+)'", text, re.MULTILINE)
            if version:
                return version[1], cuda[1] if cuda else None
    return None


def pinned_torch(environment: Path) -> str | None:
    """The requirement that keeps the PyTorch of an environment as it is.

    torch/version.py names the build ("2.13.0+cpu") where the package from PyPI, which pip has to
    find again, is called "2.13.0".
    """
    for folder in _SITE_PACKAGES:
        for path in environment.glob(f"{folder}/torch-*.dist-info/METADATA"):
            version = re.search(r"^Version: (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            if version:
                return f"torch=={version[1]}"
    return None


def install_torch(pip: Pip, choice: WheelChoice) -> str:
    """Install the chosen build, alone: what it needs comes with the other packages.

    What is local comes first, since pip needs more than a minute to find out that an index cannot
    be reached: a wheel in a folder that pip is configured with (`find-links`) is taken without
    asking any index. Then PyTorch's own index is asked, and no other beside it: pip would take a
    package of that name and a higher version from whichever has it. The places that pip is
    configured with come last, for those behind a mirror.

    Args:
        pip: pip of the environment.
        choice: The build.

    Returns:
        The requirement that pins what is installed now.

    Raises:
        SetupError: No place has that build.
    """
    if not _install_local(pip, choice):
        _install_from_index(pip, choice)
    pinned = pinned_torch(pip.environment)
    if pinned is None or installed_torch(pip.environment) is None:
        raise SetupError("PyTorch was installed, but its files are not there: start this again.")
    return pinned


def _install_local(pip: Pip, choice: WheelChoice) -> bool:
    # Of 2.13.0+cpu and 2.13.0, pip takes the former where both are there.
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
        if is_reachable(choice.index_url):
            if pip.install("--index-url", choice.index_url, "--no-deps", choice.requirement):
                return
            failure = pip.failure(f"Installing {choice.requirement}")
        else:
            # pip's own words would speak of the other places only.
            host = choice.index_url.split("/")[2]
            failure = SetupError(
                f"{host} cannot be reached, and no place that pip is configured with has "
                f"{choice.requirement}: check the internet connection, then start this again.\n"
                f"The whole log: {pip.log_path}"
            )
    if not pip.install("--no-deps", choice.requirement):
        raise failure or pip.failure(f"Installing {choice.requirement}")


def is_reachable(url: str) -> bool:
    """Whether a server answers at all, be it with an error; proxies are honoured."""
    try:
        urllib.request.urlopen(f"{url}/torch/", timeout=_REACH_TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        error.close()
    except urllib.error.URLError as error:
        # pip has its own certificates and may succeed where this does not.
        return "CERTIFICATE_VERIFY_FAILED" in str(error.reason)
    except OSError:
        return False
    return True
