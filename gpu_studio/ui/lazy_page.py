"""Pages that are imported and made when they are needed, not before the window is painted."""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gpu_studio.ui.steps import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 40  # widgets: a few milliseconds
_END = object()


def imported(path: str) -> Any:
    """Return what a path names: ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class PageInSteps(QWidget):
    """A page that can be made in several turns of the event loop, as it takes too long for one.

    Args:
        arguments: those of `build`.
    """

    def __init__(self, *arguments: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        for _ in self.build(*arguments):
            pass

    def build(self, *arguments: Any) -> Iterator[None]:
        """Make the parts of the page; each ``yield`` is a place for the turn of the event loop."""
        raise NotImplementedError

    @classmethod
    def in_steps(cls, *arguments: Any) -> Generator[None, None, Any]:
        """Make a page step by step; the generator returns it. Nobody may see it before."""
        page = cls.__new__(cls)
        QWidget.__init__(page)
        yield from page.build(*arguments)
        return page


class LazyPage(QObject):
    """A page that is made on first use, or bit by bit after the first paint.

    Importing a page's module takes as long as making the page, so a thread does it. Making it, and
    giving it its place, are steps of their own.

    Signals:
        created(QWidget): the page, once.

    Attributes:
        page: the page; None before it is made.

    Args:
        path: what makes the page: ``package.module:name``. A generator makes it bit by bit, and
            returns it.
        arguments: its arguments.
        parent: the owner.
    """

    created = Signal(object)

    def __init__(self, path: str, *arguments: object, parent: QObject) -> None:
        super().__init__(parent)
        self._path, self._arguments = path, arguments
        self._is_cancelled = False
        self._steps = self._all_steps()
        self._is_done = False
        self.page: QWidget | None = None

    def make(self) -> Any:
        """Return the page; the first call makes it, or the rest of it."""
        while self.page is None:
            self._make_next()
        return self.page

    def make_soon(self) -> None:
        """Make the page in steps of the event loop."""
        steps().load(self._path.partition(":")[0])
        steps().add(self._make)

    def cancel(self) -> None:
        """Take no more steps: the window is closed."""
        self._is_cancelled = True

    def _make(self) -> None:
        if not self._is_cancelled and not self._is_done:
            self._make_next()
            steps().add(self._make)

    def _make_next(self) -> None:
        """Take a step; after one that raised, the page is begun anew."""
        taken, self._steps = self._steps, self._all_steps()
        self._is_done = next(taken, _END) is _END
        self._steps = taken

    def _all_steps(self) -> Iterator[None]:
        kind = imported(self._path)
        if isinstance(kind, type) and issubclass(kind, PageInSteps):
            page = yield from kind.in_steps(*self._arguments)
        else:
            page = kind(*self._arguments)
            if isinstance(page, Generator):
                page = yield from page
        yield
        self.page = page
        self.created.emit(page)
        for number, widget in enumerate(page.findChildren(QWidget)):
            if number % _AT_ONCE == 0:
                yield
            if isValid(widget):
                widget.ensurePolished()  # the style sheet: otherwise when the page is first shown
