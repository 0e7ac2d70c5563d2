"""The options of a benchmark that most users leave as they are, folded under a button."""

from __future__ import annotations

from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from gpu_studio.ui.parts import Text

_GAP = 5


class MoreOptions(QWidget):
    """A button, a line that says what is chosen, and the widgets in `column` behind them.

    The button has the number of choices that differ from the default.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_bar = False
        self._button = QToolButton()
        self._button.setObjectName("benchmark.more")
        self._button.setCheckable(True)
        self._button.setToolTip("Sizes, precision, time per run, and how to measure")
        self._button.toggled.connect(self._show)
        self._summary = Text("", "muted", name="benchmark.more.summary", wraps=True)
        self._body = QWidget()
        outer = self._outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(_GAP)
        outer.addWidget(self._button)
        outer.addWidget(self._summary)
        outer.addWidget(self._body)
        self.column = QVBoxLayout(self._body)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(_GAP)
        self._changes = 0
        self._show()

    @property
    def button(self) -> QToolButton:
        """The button that shows and hides the options."""
        return self._button

    def set_bar(self, is_bar: bool) -> None:
        """Leave the button to a bar above, or take it back."""
        self._is_bar = is_bar
        if not is_bar:
            self._outer.insertWidget(0, self._button)
        self._show()

    def open(self) -> None:
        """Show the options, for example because one of them has a mistake."""
        self._button.setChecked(True)

    def tell(self, summary: str, changes: int) -> None:
        """Say what is chosen, and how many choices differ from the default."""
        self._summary.setText(summary)
        self._changes = changes
        self._show()

    def _show(self) -> None:
        is_open = self._button.isChecked()
        count = f" ({self._changes} changed)" if self._changes else ""
        self._button.setText(f"{'▾' if is_open else '▸'} More options{count}")
        self._button.setAccessibleName(f"More options{count}")
        self._body.setVisible(is_open)
        self._summary.setVisible(not is_open and not self._is_bar)
        self.setVisible(is_open or not self._is_bar)
