"""Share a result: a preview of exactly what is written, and the ways to save or copy it."""

from __future__ import annotations

import json
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
    QVBoxLayout,
)

from gpu_studio.core.notice import Notice
from gpu_studio.ui.combo_box import ComboBox
from gpu_studio.ui.parts import GAP, Text, resize_on_screen
from gpu_studio.ui.saving import save_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

_SIZE = (820, 640)
_LONGEST_NAME = 60
_MASKED = (
    "Names of the user and this PC, UUIDs, serial numbers and folders are not in it. The preview "
    "is exactly what is written."
)
_STRIPPED = (
    "Chat programs may take the data out of a picture. Then only the picture is left: send the "
    "data as well, which GPU Studio opens as the same result."
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
    def ending(self) -> str:
        return PurePath(self.file_name).suffix


class ShareDialog(QDialog):
    """Shows the chosen form, and saves or copies the bytes that it shows.

    Args:
        forms: the ways to share, the usual one first.
        has_name: whether the result can have a name of this PC.
        parent: the window.
    """

    def __init__(
        self, forms: Sequence[ShareForm], *, has_name: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("share")
        self.setWindowTitle("Share the result")
        resize_on_screen(self, _SIZE)
        self._forms, self._contents = tuple(forms), b""
        self._form = ComboBox()
        self._form.setObjectName("share.form")
        self._form.setAccessibleName("Form")
        for form in self._forms:
            self._form.addItem(form.title)
        self._name = QLineEdit()
        self._name.setObjectName("share.name")
        self._name.setAccessibleName("Name of this PC")
        self._name.setPlaceholderText("Name of this PC (optional)")
        self._name.setMaxLength(_LONGEST_NAME)
        self._name.setVisible(has_name)
        self._form.setVisible(len(self._forms) > 1)
        self._picture = _Picture()
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

    @property
    def contents(self) -> bytes:
        """The bytes that are shown, saved or copied."""
        return self._contents

    def _arrange(self) -> None:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        role = QDialogButtonBox.ButtonRole.ActionRole
        self._copy = buttons.addButton("Copy", role)
        self._copy.setObjectName("share.copy")
        self._copy.clicked.connect(self._copy_shown)
        self._save = buttons.addButton("Save…", role)
        self._save.setObjectName("share.save")
        self._save.clicked.connect(self._save_file)
        widths = []
        for form in self._forms:
            self._save.setText(_save_label(form))
            widths.append(self._save.sizeHint().width())
        self._save.setMinimumWidth(max(widths))  # another form moves no button
        buttons.rejected.connect(self.reject)
        close = buttons.button(QDialogButtonBox.StandardButton.Close)
        for one in (self._copy, self._save, close):
            one.setAutoDefault(False)  # Return in the name must not save
        column, line = QVBoxLayout(self), QHBoxLayout()
        column.addLayout(line)
        line.setSpacing(GAP)
        line.addWidget(self._form)
        line.addWidget(self._name, 1)
        line.addStretch()
        column.addWidget(self._picture, 3)
        column.addWidget(self._text, 2)
        column.addWidget(self._message)
        column.addWidget(buttons)

    def _show(self) -> None:
        form = self._forms[self._form.currentIndex()]
        self._contents = form.contents(" ".join(self._name.text().split()))
        is_picture = form.ending == ".png"
        self._picture.setVisible(is_picture)
        self._save.setText(_save_label(form))
        self._message.setText(f"{_MASKED} {_STRIPPED}" if is_picture else _MASKED)
        if is_picture:
            image = QImage.fromData(self._contents)
            self._picture.show_image(image)
            self._text.setPlainText(_data_of(image))
        else:
            self._text.setPlainText(self._contents.decode())

    def _copy_shown(self) -> None:
        if self._forms[self._form.currentIndex()].ending == ".png":
            QGuiApplication.clipboard().setImage(QImage.fromData(self._contents))
        else:
            QGuiApplication.clipboard().setText(self._contents.decode())
        self._message.setText(f"Copied. {_MASKED}")

    def _save_file(self) -> None:
        form = self._forms[self._form.currentIndex()]
        title = f"Save {form.title.lower()}"
        notice = save_as(self, title, form.file_name, form.kind, self._contents)
        if notice != Notice():
            self._message.setText(notice.sentence)


def _save_label(form: ShareForm) -> str:
    return f"Save {form.title.lower()}…"


class _Picture(QLabel):
    """A picture, as large as there is room."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("share.picture")
        self.setAccessibleName("The picture")
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setMinimumSize(320, 168)
        self._image = QImage()

    def show_image(self, image: QImage) -> None:
        self._image = image
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        if self._image.isNull():
            return
        ratio = self.devicePixelRatioF()
        fitted = self._image.scaled(
            self.size() * ratio,
            Qt.AspectRatioMode.KeepAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
        fitted.setDevicePixelRatio(ratio)
        self.setPixmap(QPixmap.fromImage(fitted))


def _data_of(image: QImage) -> str:
    """Return the texts inside a picture, the data in lines."""
    lines = []
    for keyword in image.textKeys():
        text = image.text(keyword)
        try:
            lines.append(
                f"{keyword}:\n{json.dumps(json.loads(text), indent=1, ensure_ascii=False)}"
            )
        except ValueError:
            lines.append(f"{keyword}: {text}")
    return "The data inside the picture:\n" + "\n".join(lines)
