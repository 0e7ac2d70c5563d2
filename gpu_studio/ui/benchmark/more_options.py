"""The options of a benchmark that most users leave as they are, folded under a button."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from gpu_studio.ui.parts import Text

_GAP = 5
_MOST_CHANGES = 9


class MoreOptions(QWidget):
    """A button, a line that says what is chosen, and the widgets in `column` behind them.

    The button has the number of choices that differ from the default.

    Attributes:
        button: the button that shows and hides the options.
        handle: the button at the left of the room that it may need, to be placed in a bar.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_bar = self._is_offered = False
        self.button = QToolButton()
        self.button.setObjectName("benchmark.more")
        self.button.setCheckable(True)
        self.button.setProperty("fold", True)
        self.button.setToolTip("Sizes, precision, time per run, and how to measure")
        self.button.toggled.connect(self._show)
        self._summary = Text("", "muted", name="benchmark.more.summary", wraps=True)
        self._body = QWidget()
        outer = self._outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(_GAP)
        self.handle = QWidget()
        line = QHBoxLayout(self.handle)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self.button)
        line.addStretch(1)
        outer.addWidget(self.handle)
        outer.addWidget(self._summary)
        outer.addWidget(self._body)
        self.column = QVBoxLayout(self._body)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(_GAP)
        self._changes = 0
        self._show()

    def set_bar(self, is_bar: bool) -> None:
        """Leave the button to a bar above, or take it back."""
        self._is_bar = is_bar
        self.button.setText(_text(is_open=True, changes=_MOST_CHANGES))
        # In a bar another count moves nothing.
        self.handle.setMinimumWidth(self.button.sizeHint().width() if is_bar else 0)
        if not is_bar:
            self._outer.insertWidget(0, self.handle)
        self._show()

    def offer(self) -> None:
        """Show the button and the line: it is known what can be chosen."""
        self._is_offered = True
        self._show()

    def open(self) -> None:
        """Show the options, for example because one of them has a mistake."""
        self.button.setChecked(True)

    def show_summary(self, summary: str, changes: int) -> None:
        """Say what is chosen, and how many choices differ from the default."""
        self._summary.setText(summary)
        self._changes = changes
        self._show()

    def _show(self) -> None:
        is_open = self.button.isChecked()
        self.button.setText(_text(is_open=is_open, changes=self._changes))
        self.button.setAccessibleName(self.button.text()[2:])
        self.handle.setVisible(self._is_offered)
        self._body.setVisible(is_open)
        self._summary.setVisible(self._is_offered and not is_open and not self._is_bar)
        self.setVisible(is_open or not self._is_bar)


def _text(*, is_open: bool, changes: int) -> str:
    count = f" ({changes} changed)" if changes else ""
    return f"{'▾' if is_open else '▸'} More options{count}"
