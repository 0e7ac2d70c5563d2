"""Fields of the structures of drivers and of Windows, several of one type in a row."""

from __future__ import annotations

import ctypes

U8, U32, I32, U64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64


def fields(*rows: tuple[str, type]) -> list[tuple[str, type]]:
    """Return ``_fields_`` of a structure.

    Args:
        rows: the names of fields that follow each other, with spaces between, and their type.
    """
    return [(name, kind) for names, kind in rows for name in names.split()]
