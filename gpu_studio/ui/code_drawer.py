"""The Code drawer: the PyTorch code of the page in front."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QFontDatabase, QGuiApplication, QTextOption
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPlainTextEdit, QToolButton

from gpu_studio.core.switcher.whole_snippet import runs_as_it_stands
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_parts import fill_menu
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent
    from PySide6.QtWidgets import QTabWidget

    from gpu_studio.model.snippets import Snippets
    from gpu_studio.ui.theme import Theme


_PASTED = "Runs as is in any Python with PyTorch. The code follows the page that you see."
_STARTED = "Needs several processes: see its first line for how to start them."
_NOTHING = "Run something on this page, and its PyTorch code appears here."
_LEAST_COLUMNS, _MOST_COLUMNS = 40, 64  # of code; longer lines wrap
_PASTE = (
    "Paste Python here, or drop a .py on the window. Lines run as they are, on the CPU and on your "
    "card in turns; a function work(device) is timed alone."
)
_SHARE = 0.3  # of the window: the page below is still read
_TIP = "Show the PyTorch code of this page (F9)"


class CodeDrawer(Card):
    """Runnable lines with a Copy button, over the right part of the pages.

    It moves nothing: the page below keeps its width. Escape closes it. The user's own code can be
    pasted instead.

    Signals:
        opened_or_closed(bool): whether it is open now.
        own_code_entered(OwnCode): the user wants to time it on both sides.

    Attributes:
        handle: the button beside the tabs that opens and closes it.
    """

    opened_or_closed = Signal(bool)
    own_code_entered = Signal(object)

    def __init__(self, snippets: Snippets, theme: Theme, pages: QTabWidget) -> None:
        super().__init__(pages, name="code.drawer")
        self.setAccessibleName("Code")
        self._pages = pages
        self._text = QPlainTextEdit()
        self._text.setObjectName("code")
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._text.setAccessibleName("PyTorch code of this page")
        self._text.setPlaceholderText(_NOTHING)
        self._copy = button("Copy", self._copy_code, name="code.copy", tip="Copy this code")
        self._copy.setIcon(icon("copy", theme))
        self._close = button("Close", self.hide, name="code.close", tip="Close the code (Esc)")
        self._note = Text(role="muted", name="code.note", wraps=True)
        self._own = button("Your own code", self._turn, name="code.own", tip=_PASTE)
        self._own.setCheckable(True)
        self._run = button("Run on both", self._enter_own, name="code.own.run")
        self._examples = button("Examples", lambda: None, name="code.own.examples")
        menu = QMenu(self._examples)
        self._examples.setMenu(menu)
        menu.aboutToShow.connect(self._fill_examples)
        self._own_row = FlowRow(self._run, self._examples, spacing=GAP)
        head = QHBoxLayout()
        self.column.addLayout(head)
        head.setSpacing(GAP)
        head.addWidget(Text("Code", "title"), 1)
        head.addWidget(self._own)
        head.addWidget(self._copy)
        head.addWidget(self._close)
        self.column.addWidget(self._note)
        self.column.addWidget(self._own_row)
        self._own_row.hide()
        self._text.textChanged.connect(self._on_typed)
        self.column.addWidget(self._text, 1)
        self.action = QAction(icon("code", theme), "&Code", self, checkable=True)
        self.action.setToolTip(_TIP)
        self.action.setIconVisibleInMenu(False)
        self.action.setShortcut("F9")
        self.action.toggled.connect(self._open)
        self.handle = self._make_handle()
        self._snippets, self._shown = snippets, ""
        snippets.snippet_changed.connect(self._show)
        snippets.wanted.connect(self.show)
        for place in (pages, pages.tabBar()):
            place.installEventFilter(self)
        self.hide()

    def setVisible(self, visible: bool) -> None:
        """Keep the menu, the button and the keyboard's place in step."""
        if visible != self.isHidden():
            return
        focused = self.window().focusWidget()
        super().setVisible(visible)
        self.action.setChecked(visible)
        for place in (self._pages, self._pages.tabBar()):
            (place.installEventFilter if visible else place.removeEventFilter)(self)
        code = self._snippets.snippet_changed
        (code.connect if visible else code.disconnect)(self._show)
        if visible:
            self._show(self._snippets.snippet)
            self._fit()
            self.raise_()
        elif focused is not None and self.isAncestorOf(focused):
            self.handle.setFocus()
        self.opened_or_closed.emit(visible)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay at the right edge below the tabs."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.LayoutRequest):
            self._fit()
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close with Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    def _make_handle(self) -> QToolButton:
        """Return the button beside the tabs that opens and closes the drawer."""
        handle = QToolButton()
        handle.setObjectName("code.open")
        handle.setDefaultAction(self.action)
        handle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        handle.setAccessibleName("Code")
        handle.setAccessibleDescription(_TIP)
        handle.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._pages.setCornerWidget(handle, Qt.Corner.TopRightCorner)
        return handle

    def _open(self, is_open: bool) -> None:
        self.setVisible(is_open)
        if is_open:
            self._text.setFocus()

    def _fit(self) -> None:
        if self.isHidden():
            return
        top = max(self._pages.tabBar().height(), self.handle.height())
        margins = self.column.contentsMargins()
        frame = margins.left() + margins.right() + 2 * self._text.frameWidth() + 2 * GAP
        frame += self._text.verticalScrollBar().sizeHint().width()
        column = self._text.fontMetrics().horizontalAdvance("0")
        least = max(frame + _LEAST_COLUMNS * column, self.minimumSizeHint().width())
        wanted = min(round(_SHARE * self._pages.width()), frame + _MOST_COLUMNS * column)
        width = min(max(wanted, least), self._pages.width())
        self.setGeometry(
            self._pages.width() - width, top, width, max(self._pages.height() - top, 0)
        )

    def _turn(self) -> None:
        """Take the user's own code, or show the page's again."""
        is_own = self._own.isChecked()
        self._text.setReadOnly(not is_own)
        self._text.setTabChangesFocus(not is_own)
        self._text.setPlaceholderText(_PASTE if is_own else _NOTHING)
        self._own_row.setVisible(is_own)
        self._show(self._snippets.snippet)
        self._text.setFocus()

    def _fill_examples(self) -> None:
        from gpu_studio.core.benchmark.own_code import EXAMPLES  # with the first own code

        menu = self._examples.menu()
        fill_menu(menu, [(title, partial(self._begin_with, name)) for title, name in EXAMPLES])

    def _begin_with(self, name: str) -> None:
        from gpu_studio.core.benchmark.own_code import example

        self._text.setPlainText(example(name))

    def _on_typed(self) -> None:
        if self._own.isChecked():
            self._run.setEnabled(bool(self._text.toPlainText().strip()))
            self._copy.setEnabled(self._run.isEnabled())

    def _enter_own(self) -> None:
        from gpu_studio.core.benchmark.own_code import own_code

        code = own_code(self._text.toPlainText())
        self.hide()
        self.own_code_entered.emit(code)

    def _show(self, snippet: str) -> None:
        if self._own.isChecked():
            self._note.setText(_PASTE)
            self._note.show()
            self._text.setPlainText("") if self._text.toPlainText() == self._shown else None
            self._on_typed()
            return
        self._shown = snippet
        self._text.setPlainText(snippet)
        self._copy.setEnabled(bool(snippet))
        self._note.setText(_PASTED if runs_as_it_stands(snippet) else _STARTED)
        self._note.setVisible(bool(snippet))

    def _copy_code(self) -> None:
        QGuiApplication.clipboard().setText(self._text.toPlainText())
