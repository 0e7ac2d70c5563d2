"""What glibc does with freed memory: kept where times are taken, given back by the window.

By default, glibc gives the pages of a large freed result back to the system and asks for them
again, or keeps them: that depends on the layout of the heap, so on luck. A result whose pages are
new costs a page fault for every 4 KiB. With these settings glibc keeps up to 1 GiB.

A process that stands for the user's own script gets the defaults back (`without_steady`). Only
glibc reads these variables: other systems get none. Standard library only.

The window's process does the opposite (`give_large_back`). glibc takes a large piece from the
system by itself, and gives it back when it is freed. But each time that happens, the threshold for
"large" rises to that size, up to 32 MiB; from then on such pieces come from the heap and stay
there, in part and for each thread (mallopt(3), M_MMAP_THRESHOLD). A window on which 150 hostile
files were dropped six times kept 337 MiB in place of 191. A threshold that is set stays.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT_BYTES = 1 << 30
# Before glibc 2.36 a larger threshold may be refused without a word (`HEAP_MAX_SIZE / 2`), and then
# results over 128 KiB would never be kept.
_OLD_LARGEST_BYTES = 32 << 20
_WITHOUT_LIMIT = (2, 36)
_THRESHOLDS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
_TUNABLES = "GLIBC_TUNABLES"
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in malloc.h
_LARGE_BYTES = 1 << 20
VARIABLE = "GPU_STUDIO_STEADY"
"""Marks that this program set the thresholds, and not the user."""


def glibc_version() -> tuple[int, ...] | None:
    """Return this system's version of glibc; None if it has another C library."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")  # type: ignore[attr-defined, unused-ignore]
        return tuple(map(int, version.split("."))) if name == "glibc" else None
    except (AttributeError, OSError, ValueError):  # Windows; another C library; an odd version
        return None


def is_set_by_user(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the user decided what glibc keeps."""
    return VARIABLE not in environ and (
        any(name in environ for name in _THRESHOLDS)
        or "glibc.malloc." in environ.get(_TUNABLES, "")
    )


def steady_variables(
    environ: Mapping[str, str] = os.environ, version: tuple[int, ...] | None = glibc_version()
) -> dict[str, str]:
    """Return the variables that let a process keep freed memory.

    Empty if the user set one of them, or if the C library is not glibc.

    Args:
        environ: This process's variables.
        version: The version of glibc; None for another C library.
    """
    if version is None or is_set_by_user(environ):
        return {}
    largest_bytes = KEPT_BYTES if version >= _WITHOUT_LIMIT else _OLD_LARGEST_BYTES
    trim, mmap = _THRESHOLDS
    return {trim: str(KEPT_BYTES), mmap: str(largest_bytes), VARIABLE: "1"}


def without_steady(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return an environment without the variables that `steady_variables` set."""
    if VARIABLE not in environ:
        return dict(environ)
    removed = (*_THRESHOLDS, VARIABLE)
    return {name: value for name, value in environ.items() if name not in removed}


def give_large_back() -> None:
    """Keep no freed memory of 1 MiB or more, unless the user decided about it."""
    if glibc_version() is None or is_set_by_user():
        return
    import ctypes  # 2 ms, where it is of use

    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
