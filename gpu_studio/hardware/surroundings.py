"""The program's surroundings: WSL, the distribution, Secure Boot, CUDA variables, the boot."""

from __future__ import annotations

import os
from pathlib import Path

from gpu_studio.core import operating_system
from gpu_studio.core.texts import plain_text

# Environment variables of CUDA and PyTorch that a finding may mention.
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
)
_SOFT_CARDS = "SOFT_CARDS_DIR"
_OS_RELEASE = Path("/etc/os-release")
# The UEFI specification's variable; every user may read it. Linux puts four bytes of attributes
# before the value: Documentation/filesystems/efivarfs.rst.
_SECURE_BOOT = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # proc_sys_kernel(5): random at each boot


def cuda_variables() -> dict[str, str]:
    """Return the variables of this process that CUDA or PyTorch reads."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def are_cards_simulated() -> bool:
    """Return whether this process uses stand-ins for NVIDIA's libraries.

    The soft cards of ``tests/softcards`` set an environment variable.
    """
    return _SOFT_CARDS in os.environ


def is_wsl(release: str | None = None) -> bool:
    """Return whether this Linux runs inside Windows, by its kernel's ``release``."""
    return "microsoft" in (operating_system.release() if release is None else release).lower()


def linux_distribution(os_release: Path = _OS_RELEASE) -> str:
    """Return the ids of a Linux and of its ancestors: ``linuxmint ubuntu debian``."""
    lines = text_of(os_release).splitlines()
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    names = (fields.get(key, "").strip("\"'") for key in ("ID", "ID_LIKE"))
    return plain_text(" ".join(name for name in names if name))


def text_of(path: Path) -> str:
    """Return the text of a file of the system; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def has_secure_boot(variable: Path = _SECURE_BOOT) -> bool:
    """Return whether Linux was started with Secure Boot, as far as it reports that."""
    try:
        return variable.read_bytes()[4:] == b"\x01"
    except OSError:
        return False


def boot_mark(boot_id: Path = _BOOT_ID) -> str:
    """Return a mark that differs after each start of the PC: an id, or the time in seconds."""
    try:
        return boot_id.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        import psutil  # 9 ms

        return str(int(psutil.boot_time()))
