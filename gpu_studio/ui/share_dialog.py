"""Share a result: a preview of exactly what is written, and the ways to save or copy it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase, QGuiApplication, QImage, QPixmap
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
)

from gpu_studio.core.notice import Notice
from gpu_studio.ui.eliding import ComboBox
from gpu_studio.ui.parts import GAP, Text, resize_on_screen
from gpu_studio.ui.saving import save_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtWidgets import QWidget

_SIZE = (820, 640)
_LONGEST_NAME = 60
_PREVIEW_WIDTH = 760
_MASKED = (
    "Names of the user and this PC, UUIDs, serial numbers and folders are not in it. The preview "
    "is exactly what is written."
)
_STRIPPED = (
    "The picture has the data inside, from which GPU Studio opens it again. Chat programs may take "
    "the data out: send the data as well."
)


class ShareForm(NamedTuple):
    """A way to share: ``contents`` returns the file's bytes for a name of this PC, often empty.

    ``file_name`` begins the suggested name and has the ending; ``kind`` is for the file dialog.
    """

    title: str
    file_name: str
    kind: str
    contents: Callable[[str], bytes]

    @property
    def is_picture(self) -> bool:
        """Whether the bytes are a picture; otherwise they are text."""
        return PurePath(self.file_name).suffix == ".png"


class ShareDialog(QDialog):
    """Shows the chosen form, and saves or copies the bytes that it shows.

    Args:
        forms: the ways to share, the usual one first.
        parent: the window.

    Attributes:
        contents: the bytes that are shown, saved or copied.
    """

    def __init__(self, forms: Sequence[ShareForm], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("share")
        self.setWindowTitle("Share the result")
        resize_on_screen(self, _SIZE)
        self._forms, self.contents = tuple(forms), b""
        self._form = ComboBox()
        self._form.setObjectName("share.form")
        self._form.setAccessibleName("Form")
        self._form.addItems([form.title for form in self._forms])
        self._name = QLineEdit()
        self._name.setObjectName("share.name")
        self._name.setAccessibleName("Name of this PC")
        self._name.setPlaceholderText("Name of this PC (optional)")
        self._name.setMaxLength(_LONGEST_NAME)
        self._picture = QLabel()
        self._picture.setAccessibleName("The picture")
        self._picture.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._text = QPlainTextEdit()
        self._text.setObjectName("share.preview")
        self._text.setAccessibleName("What is written")
        self._text.setReadOnly(True)
        self._text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._message = Text("", "muted", name="share.said", wraps=True)
        self._arrange()
        self._form.currentIndexChanged.connect(self._show)
        self._name.editingFinished.connect(self._show)
        self._show()

    def _arrange(self) -> None:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        for title, act in (("Copy", self._copy), ("Save…", self._save)):
            added = buttons.addButton(title, QDialogButtonBox.ButtonRole.ActionRole)
            added.setObjectName(f"share.{title.lower().rstrip('…')}")
            added.clicked.connect(act)
        for button in buttons.findChildren(QPushButton):
            button.setAutoDefault(False)  # Return in the name must not save
        buttons.rejected.connect(self.reject)
        scrolled = QScrollArea()
        scrolled.setWidgetResizable(True)
        scrolled.setWidget(self._picture)
        self._previews = QStackedWidget()
        self._previews.addWidget(scrolled)
        self._previews.addWidget(self._text)
        column, line = QVBoxLayout(self), QHBoxLayout()
        column.addLayout(line)
        line.setSpacing(GAP)
        line.addWidget(self._form)
        line.addWidget(self._name, 1)
        column.addWidget(self._previews, 1)
        column.addWidget(self._message)
        column.addWidget(buttons)

    @property
    def _chosen(self) -> ShareForm:
        return self._forms[self._form.currentIndex()]

    def _show(self) -> None:
        form = self._chosen
        self.contents = form.contents(" ".join(self._name.text().split()))
        self._message.setText(f"{_MASKED} {_STRIPPED}" if form.is_picture else _MASKED)
        self._previews.setCurrentIndex(0 if form.is_picture else 1)
        if form.is_picture:
            ratio = self.devicePixelRatioF()
            image = QImage.fromData(self.contents).scaledToWidth(
                round(_PREVIEW_WIDTH * ratio), Qt.TransformationMode.SmoothTransformation
            )
            image.setDevicePixelRatio(ratio)
            self._picture.setPixmap(QPixmap.fromImage(image))
        else:
            self._text.setPlainText(self.contents.decode())

    def _copy(self) -> None:
        if self._chosen.is_picture:
            QGuiApplication.clipboard().setImage(QImage.fromData(self.contents))
        else:
            QGuiApplication.clipboard().setText(self.contents.decode())
        self._message.setText(f"Copied. {_MASKED}")

    def _save(self) -> None:
        form = self._chosen
        title = f"Save {form.title.lower()}"
        notice = save_as(self, title, form.file_name, form.kind, self.contents)
        if notice != Notice():
            self._message.setText(notice.sentence)
