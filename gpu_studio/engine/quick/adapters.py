"""The adapters that compute without PyTorch: each card once for each graphics interface.

wgpu is optional: where it, the loader or a driver is missing, a sentence says what to install.
"""

from __future__ import annotations

import ctypes.util
import logging
import sys
from typing import Any, NamedTuple

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import Adapter
from gpu_studio.core.texts import plain_text

# wgpu's names of the interfaces, each with ours for an address and a sentence.
_INTERFACES = {
    "Vulkan": ("vulkan", "Vulkan"),
    "D3D12": ("directx", "DirectX 12"),
    "Metal": ("metal", "Metal"),
    "OpenGL": ("opengl", "OpenGL"),
    "OpenGLES": ("opengl", "OpenGL"),
}
_DTYPES_OF = {"shader-f16": "float16"}
_LONGEST_NAME = 80
INSTALL_DRIVER = {
    "linux": (
        "Install its Vulkan driver: “sudo apt install mesa-vulkan-drivers” on Debian and Ubuntu, "
        "“sudo dnf install mesa-vulkan-drivers” on Fedora, “vulkan-radeon” or “vulkan-intel” on "
        "Arch; for NVIDIA, its own driver has it."
    ),
    "win32": "Install the graphics driver of the card's maker: Windows' own often has no Vulkan.",
}
_NO_LOADER = "This PC has no Vulkan loader (libvulkan1). "

_log = logging.getLogger(__name__)


class FoundAdapter(NamedTuple):
    """An adapter with wgpu's object for it."""

    facts: Adapter
    handle: Any


def find_adapters() -> list[FoundAdapter]:
    """Return the adapters in wgpu's order: cards of each interface first, software last.

    Asking wakes a sleeping card, and a driver may crash in it: only for a child process.

    Raises:
        StudioError: there is none; the sentence says what to install.
    """
    try:
        import wgpu
    except (ImportError, OSError, RuntimeError) as error:
        _log.warning("wgpu cannot be imported: %s", error)
        message = f"The part of GPU Studio that measures without PyTorch (wgpu) is missing: {error}"
        raise StudioError(FailureKind.NO_SUCH_DEVICE, message) from error
    found: list[FoundAdapter] = []
    for handle in wgpu.gpu.enumerate_adapters_sync():
        kind, interface = _INTERFACES.get(handle.info["backend_type"], ("", ""))
        if kind:
            index = sum(one.facts.interface == interface for one in found)
            found.append(FoundAdapter(_facts(handle, f"{kind}:{index}", interface), handle))
    if not found:
        raise StudioError(FailureKind.NO_SUCH_DEVICE, why_none())
    return sorted(found, key=lambda one: one.facts.is_software)


def _facts(handle: Any, address: str, interface: str) -> Adapter:
    info, limits, features = handle.info, handle.limits, handle.features
    is_software = info["adapter_type"] == "CPU"
    extra = [dtype for feature, dtype in _DTYPES_OF.items() if feature in features]
    return Adapter(
        address=address,
        name=_name(str(info["device"]), is_software=is_software),
        interface=interface,
        driver=plain_text(str(info["description"]))[:_LONGEST_NAME],
        is_software=is_software,
        vendor_id=int(info["vendor_id"]),
        device_id=int(info["device_id"]),
        dtypes=("float32", *extra),
        has_clock="timestamp-query" in features,
        largest_buffer_bytes=largest_buffer_bytes(limits),
    )


def _name(text: str, *, is_software: bool) -> str:
    """Return a name as a result shows it; that of software without the CPU's properties."""
    name = plain_text(text)[:_LONGEST_NAME].strip()
    return (name.partition(" (")[0] if is_software else name) or "An adapter without a name"


def largest_buffer_bytes(limits: Any) -> int:
    """Return the bytes of the largest buffer that a shader can work on."""
    return min(int(limits["max-buffer-size"]), int(limits["max-storage-buffer-binding-size"]))


def why_none(platform: str = sys.platform) -> str:
    """Return why no adapter was found, and what to install."""
    lacks_loader = platform == "linux" and ctypes.util.find_library("vulkan") is None
    reason = _NO_LOADER if lacks_loader else "No driver here offers Vulkan or DirectX 12. "
    return f"{reason}{INSTALL_DRIVER.get(platform, '')}".strip()
