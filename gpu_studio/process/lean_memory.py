"""Lets glibc give large pieces of memory back to the system, for the process of the window.

glibc takes a large piece from the system by itself, and gives it back when it is freed. But each
time that happens, the threshold for "large" rises to that size, up to 32 MiB; from then on such
pieces come from the heap and stay there, in part and for each thread (mallopt(3),
M_MMAP_THRESHOLD). A window on which 150 hostile files were dropped six times kept
337 MiB in place of 191. A threshold that is set stays. Only glibc does so; standard library only.
"""

from __future__ import annotations

from gpu_studio.process.steady_memory import glibc_version, is_set_by_user

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in malloc.h
_LARGE_BYTES = 1 << 20


def give_large_back() -> None:
    """Keep no freed memory of 1 MiB or more, unless the user decided about it."""
    if glibc_version() is None or is_set_by_user():
        return
    import ctypes  # 2 ms, where it is of use

    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
