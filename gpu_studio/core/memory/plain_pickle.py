"""Reads a pickle that holds nothing but numbers, texts, lists, tuples and dictionaries.

A pickle is a program: Python's own reader runs what a file says. This one knows no opcode that
looks a name up, calls something or builds an object, so there is nothing to be run; such a file is
refused with the name it asked for. And what it holds is counted while it is read, so that a file
cannot ask for more memory than a few times its size, nor keep the reader busy with nothing: real
snapshots have 3 bytes a value or more, and Python's writer hands a list over a thousand values at
a time. The opcodes are those of Python's ``pickletools``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


LARGEST_FILE_BYTES = 256 << 20
MOST_OBJECTS = 20_000_000
MOST_CONTAINERS = 4_000_000
DEEPEST = 32
_FEWEST_BYTES_A_VALUE = 2  # of more values than that many:
_FEW_VALUES = 50_000
_MOST_WAITING = 100_000
_TURN = 16_384  # steps between two looks at whether somebody still waits
_LONGEST_NUMBER_BYTES = 9

_CALLS = {
    0x63: "GLOBAL", 0x69: "INST", 0x93: "STACK_GLOBAL", 0x52: "REDUCE", 0x62: "BUILD",
    0x6F: "OBJ", 0x81: "NEWOBJ", 0x92: "NEWOBJ_EX", 0x50: "PERSID", 0x51: "BINPERSID",
    0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}  # fmt: skip


class UnsafePickleError(Exception):
    """A pickle that is refused; the text is the reason, as a sentence."""


def load_plain(
    content: bytes,
    is_over: Callable[[], bool] = lambda: False,
    check: Callable[[dict[Any, Any], list[Any]], None] = lambda _entries, _keys: None,
) -> Any:
    """Return what a pickle holds.

    Args:
        content: all of it.
        is_over: whether nobody wants to know any more; asked while it is read.
        check: is given each dictionary when entries were set in it, and their keys; raises
            `UnsafePickleError` where what was read so far is already too much.

    Raises:
        UnsafePickleError: it is no pickle, it holds something else than plain values, it is too
            large or nested too deeply, or nobody wants it any more.
    """
    if len(content) > LARGEST_FILE_BYTES:
        raise UnsafePickleError(
            f"It has {len(content) >> 20} MiB; at most {LARGEST_FILE_BYTES >> 20} MiB are opened."
        )
    try:
        return _Reader(content, is_over, check).read()
    except (IndexError, KeyError, struct.error, TypeError, ValueError, OverflowError) as error:
        raise UnsafePickleError("It is no whole pickle: it ends early or is damaged.") from error


class _Reader:
    """A stack machine with the opcodes of plain values alone."""

    def __init__(
        self,
        content: bytes,
        is_over: Callable[[], bool],
        check: Callable[[dict[Any, Any], list[Any]], None],
    ) -> None:
        self._content = content
        self._is_over = is_over
        self._check = check
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._objects = self._containers = 0

    def read(self) -> Any:
        while not self._take_turn():
            self._look_around()
        if len(self._stack) != 1:
            raise UnsafePickleError("It is no whole pickle: something is left over.")
        _check_depth(self._stack[0], self._is_over)
        return self._stack[0]

    def _take_turn(self) -> bool:
        """Take some steps; return whether the last one was the end."""
        actions = _ACTIONS
        for _ in range(_TURN):
            opcode = self._content[self._at]
            self._at += 1
            if opcode == 0x2E:  # STOP
                return True
            action = actions.get(opcode)
            if action is None:
                raise UnsafePickleError(self._refusal(opcode))
            action(self)
        return False

    def _look_around(self) -> None:
        """Refuse what only wants to be large."""
        if self._is_over():
            raise UnsafePickleError("Reading it was stopped.")
        if self._objects > max(_FEW_VALUES, self._at // _FEWEST_BYTES_A_VALUE):
            raise UnsafePickleError("It holds more values than a file of its size should.")
        if max(len(self._stack), len(self._marks)) > _MOST_WAITING:
            raise UnsafePickleError(f"It has more than {_MOST_WAITING} values waiting at once.")
        if len(self._memo) > self._objects:
            raise UnsafePickleError("It remembers more than it holds.")
        if self._containers > MOST_CONTAINERS:
            raise UnsafePickleError(f"It holds more than {MOST_CONTAINERS} lists.")

    def push(self, value: Any) -> None:
        self._objects += 1
        if self._objects > MOST_OBJECTS:
            raise UnsafePickleError(f"It holds more than {MOST_OBJECTS} values.")
        self._stack.append(value)

    def push_container(self, value: Any) -> None:
        self._containers += 1
        self.push(value)

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._content):
            raise UnsafePickleError("It is no whole pickle: it ends early or is damaged.")
        self._at += size
        return self._content[self._at - size : self._at]

    def number(self, layout: str) -> int:
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return value

    def line(self) -> bytes:
        end = self._content.index(b"\n", self._at)
        return self.take(end - self._at + 1)[:-1]

    def text(self, layout: str) -> None:
        size = self.number(layout)
        self.push(self.take(size).decode("utf-8", "surrogatepass"))

    def long(self, layout: str) -> None:
        size = self.number(layout)
        if size > _LONGEST_NUMBER_BYTES:
            raise UnsafePickleError("It holds a number of more than 64 bits.")
        self.push(int.from_bytes(self.take(size), "little", signed=True))

    def decimal(self) -> None:
        line = self.line()
        if line in (b"00", b"01"):
            self.push(line == b"01")
            return
        if len(line) > 21:
            raise UnsafePickleError("It holds a number of more than 64 bits.")
        self.push(int(line.rstrip(b"L")))

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def to_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def tuple_of(self, count: int) -> None:
        items = tuple(self._stack[len(self._stack) - count :]) if count else ()
        if len(items) != count:
            raise UnsafePickleError("It is no whole pickle: something is missing.")
        del self._stack[len(self._stack) - count :]
        self.push_container(items)

    def append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise UnsafePickleError("It appends to something that is no list.")
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise UnsafePickleError("It sets entries of something that is no dictionary.")
        keys = items[::2]
        for key, value in zip(keys, items[1::2], strict=True):
            if not isinstance(key, (str, int, float, type(None))):
                raise UnsafePickleError("It has a key that is neither a text nor a number.")
            target[key] = value
        self._check(target, keys)

    def pop(self) -> Any:
        return self._stack.pop()

    def remember(self, place: int) -> None:
        self._memo[place] = self._stack[-1]

    def memoize(self) -> None:
        self.remember(len(self._memo))

    def recall(self, place: int) -> None:
        self.push(self._memo[place])

    def _refusal(self, opcode: int) -> str:
        name = _CALLS.get(opcode)
        if name == "GLOBAL" or name == "INST":
            asked = self.line()[:60] + b"." + self.line()[:60]
            return f"It asks for {asked.decode('ascii', 'replace')}: it wants to run a program."
        if name == "STACK_GLOBAL":
            asked_texts = [str(value)[:60] for value in self._stack[-2:]]
            return f"It asks for {'.'.join(asked_texts)}: it wants to run a program."
        if name is not None:
            return f"It has the opcode {name}: it wants to run a program."
        return f"It is no pickle of plain values: it has the opcode {opcode:#04x}."


def _check_depth(value: object, is_over: Callable[[], bool]) -> None:
    """Refuse what is nested too deeply, or holds itself.

    Each container is looked at once, however often it is referred to: a billion laughs are ten.
    """
    depths: dict[int, int] = {}
    path = [(value, _containers_in(value))]
    on_path = {id(value)}
    while path:
        if len(path) > DEEPEST:
            raise UnsafePickleError(f"It is nested more than {DEEPEST} deep.")
        container, waiting = path[-1]
        if waiting:
            inner = waiting.pop()
            if id(inner) in on_path:
                raise UnsafePickleError("It is nested without end: something holds itself.")
            if len(path) + depths.get(id(inner), 0) > DEEPEST:
                raise UnsafePickleError(f"It is nested more than {DEEPEST} deep.")
            if id(inner) not in depths:
                path.append((inner, _containers_in(inner)))
                on_path.add(id(inner))
            continue
        path.pop()
        if len(depths) % _TURN == 0 and is_over():
            raise UnsafePickleError("Reading it was stopped.")
        on_path.discard(id(container))
        inside = (depths.get(id(inner), 0) for inner in _containers_in(container))
        depths[id(container)] = 1 + max(inside, default=0)


def _containers_in(value: object) -> list[object]:
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, (list, dict, tuple))]
    if isinstance(value, (list, tuple)):
        return [item for item in value if isinstance(item, (list, dict, tuple))]
    return []


def _frame(reader: _Reader) -> None:
    reader.number("<Q")  # how far it reaches is of no matter to one that has read all


def _proto(reader: _Reader) -> None:
    if reader.take(1)[0] > 5:
        raise UnsafePickleError("It is of a newer kind of pickle than this program knows.")


_ACTIONS: dict[int, Callable[[_Reader], object]] = {
    0x80: _proto,
    0x95: _frame,
    0x28: _Reader.mark,
    0x30: _Reader.pop,
    0x31: _Reader.to_mark,
    0x4E: lambda r: r.push(None),
    0x88: lambda r: r.push(True),
    0x89: lambda r: r.push(False),
    0x49: _Reader.decimal,
    0x4C: _Reader.decimal,
    0x4A: lambda r: r.push(r.number("<i")),
    0x4B: lambda r: r.push(r.number("<B")),
    0x4D: lambda r: r.push(r.number("<H")),
    0x8A: lambda r: r.long("<B"),
    0x47: lambda r: r.push(struct.unpack(">d", r.take(8))[0]),
    0x46: lambda r: r.push(float(r.line()[:40])),
    0x56: lambda r: r.push(r.line().decode("raw-unicode-escape")),
    0x58: lambda r: r.text("<I"),
    0x8C: lambda r: r.text("<B"),
    0x8D: lambda r: r.text("<Q"),
    0x5D: lambda r: r.push_container([]),
    0x6C: lambda r: _listed(r),
    0x7D: lambda r: r.push_container({}),
    0x64: lambda r: _mapped(r),
    0x29: lambda r: r.tuple_of(0),
    0x74: lambda r: r.push_container(tuple(r.to_mark())),
    0x85: lambda r: r.tuple_of(1),
    0x86: lambda r: r.tuple_of(2),
    0x87: lambda r: r.tuple_of(3),
    0x61: lambda r: r.append([r.pop()]),
    0x65: lambda r: r.append(r.to_mark()),
    0x73: lambda r: _set_one(r),
    0x75: lambda r: r.set_items(r.to_mark()),
    0x94: _Reader.memoize,
    0x70: lambda r: r.remember(int(r.line()[:20])),
    0x71: lambda r: r.remember(r.number("<B")),
    0x72: lambda r: r.remember(r.number("<I")),
    0x67: lambda r: r.recall(int(r.line()[:20])),
    0x68: lambda r: r.recall(r.number("<B")),
    0x6A: lambda r: r.recall(r.number("<I")),
}


def _listed(reader: _Reader) -> None:
    items = reader.to_mark()
    reader.push_container([])
    reader.append(items)


def _mapped(reader: _Reader) -> None:
    items = reader.to_mark()
    reader.push_container({})
    reader.set_items(items)


def _set_one(reader: _Reader) -> None:
    value = reader.pop()
    reader.set_items([reader.pop(), value])
