"""A record in JSON, which may come from a stranger: of a check, or of a standard run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError, first_line
from gpu_studio.core.messages.run_messages import in_parts
from gpu_studio.core.texts import with_plain_texts

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_RECORD_BYTES = 1 << 20
_T = TypeVar("_T")
_Record = TypeVar("_Record", bound=msgspec.Struct)


class _Version(msgspec.Struct):
    schema: int


def decode_results(content: bytes, kind: type[_T]) -> _T:
    """Return JSON as a type that has results of runs in it; those of older versions as well.

    Raises:
        msgspec.MsgspecError: it is not of that type.
        RecursionError, UnicodeDecodeError: it is no JSON that this program wrote.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError:
        return msgspec.convert(in_parts(msgspec.json.decode(content)), kind)


def decode_record_of(
    kind: type[_Record],
    text: bytes,
    schema: int,
    refused: Callable[[str], StudioError],
    name: str,
    look: Callable[[bytes], None] = lambda _text: None,
) -> _Record:
    """Return a record, with plain texts.

    Args:
        kind: its type.
        text: the JSON.
        schema: the version that this program writes.
        refused: returns the error for a reason.
        name: the name of its file; empty if it has none.
        look: raises for a record of this version that cannot be used whatever it has.

    Raises:
        StudioError: it is not of that type, or a newer program made it.
    """
    if len(text) > LARGEST_RECORD_BYTES:
        raise refused("it is too large")
    try:
        found = msgspec.json.decode(text, type=_Version).schema
        if found > schema:
            who = f"A newer version of GPU Studio made {name or 'this file'}"
            raise StudioError(FailureKind.FILE_REFUSED, f"{who}: update GPU Studio.")
        if found < schema:
            raise refused("its schema number is invalid")
        look(text)
        return with_plain_texts(decode_results(text, kind))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        reason, _, _ = str(error).partition(" - at `$")  # its place, for a programmer
        raise refused(first_line(reason, 200)) from error
