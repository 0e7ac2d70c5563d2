"""Pages that are imported and made when they are needed, not before the window is painted."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from gpu_studio.ui.steps import steps

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget


def imported(path: str) -> Any:
    """Return what a path names: ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class LazyPage(QObject):
    """A page that is made on first use, or bit by bit after the first paint.

    Importing a page's module takes as long as making the page, so it is a step of its own.

    Signals:
        created(QWidget): the page, once.

    Attributes:
        page: the page; None before it is made.

    Args:
        path: what makes the page: ``package.module:name``.
        arguments: its arguments.
        parent: the owner.
    """

    created = Signal(object)

    def __init__(self, path: str, *arguments: object, parent: QObject) -> None:
        super().__init__(parent)
        self._path, self._arguments = path, arguments
        self._is_cancelled = False
        self.page: QWidget | None = None

    def make(self) -> Any:
        """Return the page; the first call makes it."""
        if self.page is None:
            self.page = imported(self._path)(*self._arguments)
            self.created.emit(self.page)
        return self.page

    def make_soon(self) -> None:
        """Make the page in steps of the event loop."""
        steps().add(self._import, self._make)

    def cancel(self) -> None:
        """Take no more steps: the window is closed."""
        self._is_cancelled = True

    def _import(self) -> None:
        if not self._is_cancelled:
            imported(self._path)

    def _make(self) -> None:
        if not self._is_cancelled:
            self.make()
