"""Texts from outside as plain text: in one line, without what hides, turns around or controls.

A name may have characters that do not show, or that show others in another order (U+202E turns
"gpj.exe" into "exe.jpg"), or that a terminal obeys. Readers of files, drivers and other programs
return texts without them, so that no page and no file has to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

_SPACES = ("\u202f", "\u00a0")  # between a number and its unit
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def plain_text(text: str, instead: str = " ") -> str:
    """Return a text in one line of characters that show, each other one replaced.

    What shows is up to `str.isprintable`: not the categories Cc (control), Cf (format: of
    direction, zero width, U+FEFF), Cs (lone surrogates), Zl and Zp (separators of lines).
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in _SPACES else instead
        for character in text
    )


def file_name(path: Path) -> str:
    """Return a file's name for a sentence."""
    return plain_text(path.name or str(path))


def plain_values(value: Any) -> Any:
    """Return JSON values with plain texts, also as names of fields."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, dict):
        return {plain_values(name): plain_values(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(entry) for entry in value]
    return value


def with_plain_texts(struct: _Struct) -> _Struct:
    """Return a struct that came from outside with plain texts in all its fields."""
    return msgspec.convert(plain_values(msgspec.to_builtins(struct)), type(struct))
