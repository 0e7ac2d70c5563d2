"""Lets overrides of Qt's virtual methods raise on Python 3.11 and older.

If an override raises while Python waits for Qt, PySide keeps the exception for the Python code that
called Qt, and prepends the method's name to the message. PySide expects an instance there. Up to
Python 3.11, what C code raises (``1 / 0``, ``int("x")``, a deleted Qt object) is a type and a text
until a Python handler sees it, and PySide crashes the process with a segmentation fault.
``docs/development/pyside-raising-overrides.md`` has the program that shows it.

So every override gets a handler, in this program's classes and in pyqtgraph's. The exception then
arrives where Python 3.12 brings it: at the caller of Qt, or at ``sys.excepthook``.
"""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

import shiboken6

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Not every method that hides one of Qt's: PySide counts the arguments of a method that a signal is
# connected to, and a handler that takes any number would get too many.
_VIRTUAL = frozenset({
    "boundingRect", "childrenBoundingRect", "clone", "columnCount", "data", "done", "dropMimeData",
    "event", "eventFilter", "fixup", "focusNextPrevChild", "hasHeightForWidth", "headerData",
    "heightForWidth", "hitButton", "initStyleOption", "initializeGL", "insertFromMimeData",
    "isSequential", "itemChange", "minimumSizeHint", "nextCheckState", "paint", "paintGL", "pixmap",
    "readData", "reject", "rowCount", "run", "scaledPixmap", "selectionChanged", "setVisible",
    "shape", "showPopup", "sizeHint", "sort", "stepBy", "stepEnabled", "validate",
})  # fmt: skip
_BINDINGS = ("PySide6", "Shiboken", "shiboken6")
_MADE_BY_SHIBOKEN: Any = shiboken6.Shiboken.Object


def guard_overrides() -> None:
    """Guard the overrides of all classes with a Qt base: existing ones and later ones.

    Call this before the first window is made: PySide looks an object's overrides up only once.
    """
    if sys.version_info >= (3, 12):  # an exception is always an instance
        return
    if "__init_subclass__" in vars(_MADE_BY_SHIBOKEN):  # called before: all classes have it
        return
    for existing in set(_subclasses(_MADE_BY_SHIBOKEN)):
        _guard(existing)
    _MADE_BY_SHIBOKEN.__init_subclass__ = classmethod(_guard_new)


def hidden_methods(kind: type) -> Iterator[tuple[type, str, FunctionType]]:
    """Yield the Python methods that hide one of Qt's: where each stands, its name and itself.

    They may stand in a base without Qt that a class mixes in.
    """
    bindings = [base for base in kind.__mro__ if _is_binding(base)]
    for home in kind.__mro__:
        if home is object or _is_binding(home):
            continue
        for name, method in list(vars(home).items()):
            if (
                isinstance(method, FunctionType)
                and not name.startswith("_")
                and any(name in vars(base) for base in bindings)
            ):
                yield home, name, method


def is_virtual(name: str) -> bool:
    """Return whether a method of this name overrides one that Qt itself calls."""
    return name in _VIRTUAL or name.endswith("Event")


def is_guarded(method: object) -> bool:
    """Return whether `guard_overrides` has put its handler around this method."""
    return getattr(method, "__code__", None) is _HANDLER


def _subclasses(kind: type) -> Iterator[type]:
    below: list[type] = type.__subclasses__(kind)
    for one in below:
        yield one
        yield from _subclasses(one)


def _guard_new(kind: type, /, **named: Any) -> None:
    super(_MADE_BY_SHIBOKEN, kind).__init_subclass__(**named)
    _guard(kind)


def _guard(kind: type) -> None:
    for home, name, method in hidden_methods(kind):
        if is_virtual(name) and not is_guarded(method):
            setattr(home, name, _guarded(method))


def _is_binding(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _BINDINGS


def _guarded(method: Callable[..., Any]) -> Any:
    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except BaseException:
            raise  # entering this handler has made the exception an instance

    return call


_HANDLER = _guarded(print).__code__
