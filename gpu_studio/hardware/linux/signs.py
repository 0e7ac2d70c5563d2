"""Reads the marks of a Linux system that tell why a card is not used; opens no driver."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.devices.signs import DeviceFile, Signs
from gpu_studio.core.texts import plain_text
from gpu_studio.hardware.cpu import text_of
from gpu_studio.hardware.pci import normal_bus_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path("/")
_DEVICE_FILES = (
    "dev/kfd", "dev/dri/renderD*", "dev/dxg", "dev/nvidiactl", "dev/nvidia[0-9]*", "dev/nvidia-uvm",
)  # fmt: skip
_MODULES = (
    "nvidia", "nvidia_uvm", "nouveau", "nova_core", "amdgpu", "radeon", "xe", "i915", "vfio_pci",
)  # fmt: skip
# Files by which container systems mark their insides: podman's and toolbox's documentation,
# docker's .dockerenv, flatpak-metadata(5), "The Container Interface" of systemd.
_MARKS = (
    (".flatpak-info", "flatpak"), (".dockerenv", "docker"), ("run/.containerenv", "podman"),
    (".singularity.d", "apptainer"), (".apptainer.d", "apptainer"),
)  # fmt: skip
_MANAGERS = ("run/host/container-manager", "run/systemd/container")
_KNOWN_MANAGERS = {"docker": "docker", "podman": "podman", "lxc": "lxc", "lxc-libvirt": "lxc"}
_MODULE_PLACES = ("", "usr", "run/booted-system/kernel-modules")
_MODULE_FILE = re.compile(r"^\S*/([\w-]+)\.ko\S*?(?::|$)", re.MULTILINE)
# Linux, Documentation/admin-guide/kernel-parameters.txt; modprobe.d(5).
_OPTIONS = re.compile(
    r"(?<!\S)(?:nomodeset|(?:modprobe\.|module_)blacklist=\S*(?:nvidia|amdgpu|i915|xe)\S*"
    r"|(?:amdgpu|i915|xe)\.modeset=0)(?!\S)"
)
_LEVEL_ZERO = "libze_intel_gpu.so.1"
_LIBRARY_FOLDERS = (
    "usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib", "lib/x86_64-linux-gnu",
    "run/opengl-driver/lib", "usr/lib/wsl/lib", "usr/lib/x86_64-linux-gnu/intel-opencl",
)  # fmt: skip
_COMPLAINT = re.compile(
    r"(?=.*(?:NVRM|nvidia|nouveau|amdgpu|kfd|\bxe\b|i915|firmware))"
    r"(?=.*(?:fail|error|invalid|not supported|cannot|could not|fallen off|requires|mismatch"
    r"|rejected|unsupported|wedged))",
    re.IGNORECASE,
)
_MOST_RECORDS, _MOST_BYTES, _MOST_COMPLAINTS, _LONGEST = 20_000, 8192, 12, 160


def signs_of(
    root: Path = ROOT, environment: Mapping[str, str] = os.environ, release: str | None = None
) -> Signs:
    """Return the marks of a system.

    Args:
        root: its root folder.
        environment: the variables of this process.
        release: that of the running kernel; this PC's if None.
    """
    release = operating_system.release() if release is None else release
    return Signs(
        sandbox=sandbox_of(root, environment),
        release=release,
        files=tuple(_device_files(root)),
        modules=tuple(name for name in _MODULES if (root / "sys/module" / name).is_dir()),
        installed=_installed(root, release),
        options=tuple(_OPTIONS.findall(text_of(root / "proc/cmdline"))),
        nvidia_module=plain_text(text_of(root / "proc/driver/nvidia/version").partition("\n")[0]),
        has_level_zero=_has_level_zero(root, environment),
        kernel_log=tuple(complaints(root / "dev/kmsg")),
    )


def sandbox_of(root: Path, environment: Mapping[str, str]) -> str:
    """Return what keeps this program apart from the PC, a key of `SANDBOXES`; empty if nothing."""
    # A program that a snap starts has its variables; only one inside is confined by its profile.
    profile = text_of(root / "proc/self/attr/current")
    if profile.startswith("snap.") and "(enforce)" in profile:
        return "snap"
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    for path, name in _MARKS:
        if os.path.lexists(root / path):
            return name
    manager = next((text for path in _MANAGERS if (text := text_of(root / path).strip())), "")
    manager = manager or environment.get("container", "")
    return _KNOWN_MANAGERS.get(manager, "container") if manager else ""


def complaints(path: Path) -> list[str]:
    """Return the last complaints about graphics drivers in the kernel's log; none if it is closed.

    A read returns one record, ``6,1234,5678,-;NVRM: …``: Documentation/ABI/testing/dev-kmsg.
    """
    found: list[str] = []
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return found
    try:
        for _ in range(_MOST_RECORDS):
            data = os.read(descriptor, _MOST_BYTES)
            if not data:
                break
            for line in data.decode("utf-8", errors="replace").splitlines():
                text = plain_text(line.partition(";")[2]).strip()[:_LONGEST]
                if _COMPLAINT.search(text) and text not in found:
                    found = [*found, text][-_MOST_COMPLAINTS:]
    except OSError:  # no more records, or one that was overwritten while it was read
        pass
    finally:
        os.close(descriptor)
    return found


def _installed(root: Path, release: str) -> tuple[str, ...] | None:
    """Return the graphics drivers that a kernel can load; None without its lists: modules.dep(5).

    In a container there are none, or another kernel's.
    """
    folders = (root / place / "lib/modules" / release for place in _MODULE_PLACES)
    lists = [text_of(one / name) for one in folders for name in ("modules.dep", "modules.builtin")]
    if not any(lists):
        return None
    names = {name.replace("-", "_") for text in lists for name in _MODULE_FILE.findall(text)}
    return tuple(name for name in _MODULES if name in names)


def _device_files(root: Path) -> Iterator[DeviceFile]:
    for pattern in _DEVICE_FILES:
        for path in sorted(root.glob(pattern))[:32]:
            group, is_member = group_of(path.stat())
            yield DeviceFile(
                name=f"/{path.relative_to(root).as_posix()}",
                may_open=os.access(path, os.R_OK | os.W_OK),
                group=group,
                is_member=is_member,
                slot=_slot_of(root, path.name) if path.name.startswith("renderD") else "",
            )


def _slot_of(root: Path, name: str) -> str:
    """Return the slot of the card behind a render node; empty if it is on no bus."""
    place = os.path.realpath(root / "sys/class/drm" / name / "device")
    return normal_bus_id(os.path.basename(place)) or ""


def group_of(status: os.stat_result) -> tuple[str, bool]:
    """Return the group that may open a file, and whether this user is listed in it."""
    if sys.platform == "win32":
        return "", False
    else:  # noqa: RET505 - so that mypy checks it for either system
        import grp
        import pwd

        if status.st_mode & 0o060 != 0o060 or status.st_gid == 0:
            return "", False
        try:
            group = grp.getgrgid(status.st_gid)
            user = pwd.getpwuid(os.getuid())
        except KeyError:
            return str(status.st_gid), status.st_gid in os.getgroups()
        return group.gr_name, user.pw_name in group.gr_mem or user.pw_gid == status.st_gid


def _has_level_zero(root: Path, environment: Mapping[str, str]) -> bool:
    named = [Path(one) for one in environment.get("LD_LIBRARY_PATH", "").split(":") if one]
    folders = [*(root / folder for folder in _LIBRARY_FOLDERS), *named, Path(sys.prefix, "lib")]
    return any((folder / _LEVEL_ZERO).exists() for folder in folders)
