"""Reads a pickle of only numbers, texts, lists, tuples and dictionaries.

A pickle is a program: Python's own reader runs the file's instructions. This is that reader (the
version that is written in Python, ``pickle._Unpickler``), limited to the opcodes of plain values.
Opcodes that look up names, call something or build objects do not exist here. A file with them is
refused, with the name that it asked for. The values are counted during the reading, so that a file
cannot use more memory than a few times its size, nor keep the reader busy with nothing. Real
snapshots have 3 or more bytes per value, and Python's writer ends a list's batch at a thousand
values. ``pickletools`` explains the opcodes; those that only protocols 0 and 1 write are left out.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


LARGEST_FILE_BYTES = 256 << 20
MOST_OBJECTS = 20_000_000
MOST_CONTAINERS = 4_000_000
DEEPEST = 32
STOPPED = "The reading was stopped."
_FEWEST_BYTES_A_VALUE = 2  # checked above this number of values:
_FEW_VALUES = 50_000
_MOST_WAITING = 100_000
_TURN = 16_384  # steps between two checks of whether to continue
_LONGEST_NUMBER_BYTES = 9

_CODES = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
_CONTAINERS = ("EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")
_VALUES = (
    *_CONTAINERS, "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1",
    "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINGET", "LONG_BINGET",
)  # fmt: skip
# These make no value: they place or remember one, or describe how the pickle is written.
_OTHERS = (
    "PROTO", "FRAME", "MARK", "POP", "POP_MARK", "APPEND", "APPENDS", "SETITEM",
    "SETITEMS", "BINPUT", "LONG_BINPUT", "MEMOIZE",
)  # fmt: skip
_PROGRAM = (
    "GLOBAL", "INST", "STACK_GLOBAL", "REDUCE", "BUILD", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID",
    "BINPERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER",
)  # fmt: skip


class UnsafePickleError(Exception):
    """A pickle that is refused; the text is the reason as a sentence."""


def load_plain(
    content: bytes,
    is_over: Callable[[], bool] = lambda: False,
    check: Callable[[dict[Any, Any], list[Any]], None] = lambda _entries, _keys: None,
) -> Any:
    """Return the contents of a pickle.

    Args:
        content: the whole pickle.
        is_over: returns whether the result is no longer needed; called during the reading.
        check: called with each dictionary after entries were set, and their keys; raises
            `UnsafePickleError` if the contents so far are already too much.

    Raises:
        UnsafePickleError: it is not a pickle, has other values than plain ones, is too large or
            nested too deeply, or is no longer needed.
    """
    if len(content) > LARGEST_FILE_BYTES:
        raise UnsafePickleError(_too_large(content))
    try:
        value = _PlainUnpickler(io.BytesIO(content), is_over, check).load()
    except (
        pickle.UnpicklingError, struct.error, IndexError, TypeError, ValueError, OverflowError,
    ) as error:  # fmt: skip
        raise UnsafePickleError("The pickle is incomplete: it ends early or is damaged.") from error
    _check_depth(value, 1, {}, is_over)
    return value


def _too_large(content: bytes) -> str:
    return f"It has {len(content) >> 20} MiB; the limit is {LARGEST_FILE_BYTES >> 20} MiB."


def load_in_child(content: bytes) -> Any:
    """Return the contents of a pickle, ten times as fast as `load_plain`, and less careful.

    Python's own reader, written in C: it runs nothing either, since every name that a file asks for
    is refused, and without a name there is nothing to call or to build. But it counts nothing, and
    a few bytes can make it ask for all memory. So this is for a child process with limits of time
    and memory (`process.child_call`).

    Raises:
        UnsafePickleError: it is not a pickle, or asks for a name.
        MemoryError: the limit was too low for it.
    """
    if len(content) > LARGEST_FILE_BYTES:
        raise UnsafePickleError(_too_large(content))
    try:
        return _NamelessUnpickler(io.BytesIO(content)).load()
    except (
        pickle.UnpicklingError, struct.error, IndexError, TypeError, ValueError, OverflowError,
        EOFError, AttributeError, KeyError, RecursionError,
    ) as error:  # fmt: skip
        raise UnsafePickleError("The pickle is incomplete: it ends early or is damaged.") from error


class _NamelessUnpickler(pickle.Unpickler):
    """Python's unpickler, without names and without references to something outside."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse a class or a function."""
        raise UnsafePickleError(
            f"It asks for {module[:60]}.{name[:60]}: it wants to run a program."
        )

    def persistent_load(self, _pid: Any) -> Any:
        """Refuse an object from outside."""
        raise UnsafePickleError("It asks for an object outside of the file.")


class _PlainUnpickler(pickle._Unpickler):
    """Python's unpickler, limited to the opcodes of plain values, with a count of each.

    Args:
        file: the pickle; its frames are ignored, because all of it is in memory.
        is_over: see `load_plain`.
        check: see `load_plain`.
    """

    stack: list[Any]
    metastack: list[list[Any]]
    memo: dict[int, Any]
    pop_mark: Callable[[], list[Any]]

    def __init__(
        self,
        file: io.BytesIO,
        is_over: Callable[[], bool],
        check: Callable[[dict[Any, Any], list[Any]], None],
    ) -> None:
        super().__init__(file)
        self._is_over = is_over
        self._check = check
        self._position = file.tell
        self.read, self.readline = file.read, file.readline
        self._counts = [0] * 256
        self.stack, self.metastack = [], []
        self.append = self.stack.append

    def load(self) -> Any:
        read, counts, actions = self.read, self._counts, _ACTIONS
        code = None
        while code != _STOP:
            for _ in range(_TURN):
                code = read(1)[0]
                if code == _STOP:
                    break
                counts[code] += 1
                action = actions.get(code)
                if action is None:
                    raise UnsafePickleError(self._refusal(code))
                action(self)
            self._look_around()
        if len(self.stack) != 1 or self.metastack:
            raise UnsafePickleError("It is not a single pickle: something is left over.")
        return self.stack[0]

    def _look_around(self) -> None:
        """Refuse a file that only grows."""
        values = sum(self._counts[_CODES[name]] for name in _VALUES)
        containers = sum(self._counts[_CODES[name]] for name in _CONTAINERS)
        waiting = len(self.metastack) + len(self.stack) + sum(map(len, self.metastack))
        if self._is_over():
            raise UnsafePickleError(STOPPED)
        if values > max(_FEW_VALUES, self._position() // _FEWEST_BYTES_A_VALUE):
            raise UnsafePickleError("It has more values than a file of its size should.")
        if waiting > _MOST_WAITING:
            raise UnsafePickleError(f"It has more than {_MOST_WAITING} values waiting at once.")
        if len(self.memo) > values:
            raise UnsafePickleError("It stores more values than it has.")
        if values > MOST_OBJECTS:
            raise UnsafePickleError(f"It has more than {MOST_OBJECTS} values.")
        if containers > MOST_CONTAINERS:
            raise UnsafePickleError(f"It has more than {MOST_CONTAINERS} lists.")

    def _refusal(self, code: int) -> str:
        name = next((name for name in _PROGRAM if _CODES[name] == code), None)
        if name in ("GLOBAL", "INST"):
            asked = self.readline(61).strip() + b"." + self.readline(61).strip()
            return f"It asks for {asked.decode('ascii', 'replace')}: it wants to run a program."
        if name == "STACK_GLOBAL":
            asked_texts = [str(value)[:60] for value in self.stack[-2:]]
            return f"It asks for {'.'.join(asked_texts)}: it wants to run a program."
        if name is not None:
            return f"It has the opcode {name}: it wants to run a program."
        return f"It is not a pickle of plain values: it has the opcode {code:#04x}."

    def load_proto(self) -> None:
        if self.read(1)[0] > pickle.HIGHEST_PROTOCOL:
            raise UnsafePickleError("Its pickle protocol is newer than this program supports.")

    def load_frame(self) -> None:
        self.read(8)  # the frame's length does not matter

    def load_long1(self) -> None:
        size = self.read(1)[0]
        if size > _LONGEST_NUMBER_BYTES:
            raise UnsafePickleError("It has a number of more than 64 bits.")
        self.append(pickle.decode_long(self.read(size)))

    def load_append(self) -> None:
        self._extend([self.stack.pop()])

    def load_appends(self) -> None:
        self._extend(self.pop_mark())

    def load_setitem(self) -> None:
        value = self.stack.pop()
        self._set([self.stack.pop(), value])

    def load_setitems(self) -> None:
        self._set(self.pop_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise UnsafePickleError("It appends to something that is not a list.")
        target.extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise UnsafePickleError("It sets entries of something that is not a dictionary.")
        keys = items[::2]
        if not all(isinstance(key, (str, int, float, type(None))) for key in keys):
            raise UnsafePickleError("It has a key that is neither a text nor a number.")
        target.update(zip(keys, items[1::2], strict=True))
        self._check(target, keys)


_STOP = _CODES["STOP"]
_ACTIONS: dict[int, Callable[[Any], None]] = {
    code: getattr(_PlainUnpickler, pickle._Unpickler.dispatch[code].__name__)
    for code in (_CODES[name] for name in (*_VALUES, *_OTHERS))
}


def _check_depth(
    value: object, level: int, depths: dict[int, int], is_over: Callable[[], bool]
) -> int:
    """Return how deeply a value is nested; refuse a value that is too deep or contains itself.

    Each container is checked once, however often it occurs: a billion laughs are ten. ``depths``
    has the checked containers by their ``id``, with 0 during the check.
    """
    if level > DEEPEST:
        raise UnsafePickleError(f"It is nested more than {DEEPEST} deep.")
    if not isinstance(value, (list, dict, tuple)):
        return 0
    known = depths.get(id(value))
    if known == 0:
        raise UnsafePickleError("It is nested without end: something contains itself.")
    if known is None:
        if len(depths) % _TURN == 0 and is_over():
            raise UnsafePickleError(STOPPED)
        depths[id(value)] = 0
        known = 1
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (list, dict, tuple)):
                known = max(known, 1 + _check_depth(inner, level + 1, depths, is_over))
        depths[id(value)] = known
    if level - 1 + known > DEEPEST:
        raise UnsafePickleError(f"It is nested more than {DEEPEST} deep.")
    return known
