import getpass
import re
from pathlib import Path

import pytest
from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPlainTextEdit, QPushButton, QWidget

from gpu_studio.core.benchmark.side import sides_of
from gpu_studio.core.benchmark.standard_file import read_standard
from gpu_studio.ui.eliding import ComboBox
from gpu_studio.ui.saving import ask_open_path, ask_save_path
from gpu_studio.ui.share_dialog import ShareDialog
from gpu_studio.ui.standard_page import standard_dialog
from gpu_studio.ui.theme import Theme
from tests.core.benchmark.standard_runs import standard_run
from tests.driving.pages import settle
from tests.driving.window import places

PLACES = QStandardPaths.StandardLocation


@pytest.mark.parametrize(
    ("name", "place"), [("race.png", PLACES.PicturesLocation), ("a.csv", PLACES.DocumentsLocation)]
)
def test_a_new_file_is_suggested_under_a_dated_name(qtbot, monkeypatch, name, place):
    asked = []
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *args: asked.append(args) or ("/a/chosen", "")
    )
    parent = QWidget()
    qtbot.addWidget(parent)
    ending = Path(name).suffix
    assert ask_save_path(parent, "Save", name, "kind") == f"/a/chosen{ending}"
    suggested = Path(asked[0][2])
    assert suggested.parent == Path(QStandardPaths.writableLocation(place))
    stem = Path(name).stem
    assert re.fullmatch(rf"{stem}-\d{{4}}-\d\d-\d\d-\d{{6}}\{ending}", suggested.name)


def test_the_next_file_is_suggested_in_the_folder_of_the_last_one(qtbot, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(
        QFileDialog,
        "getSaveFileName",
        lambda *args: asked.append(Path(args[2]).parent) or (str(tmp_path / "chosen"), ""),
    )
    parent = QWidget()
    qtbot.addWidget(parent)
    for name in ("race.png", "a.csv"):
        ask_save_path(parent, "Save", name, "kind")
    assert asked[1] == tmp_path != asked[0]


def test_a_file_is_looked_for_in_the_folder_of_its_kind(qtbot, monkeypatch):
    asked = []
    monkeypatch.setattr(
        QFileDialog, "getOpenFileName", lambda *args: asked.append(args) or ("", "")
    )
    parent = QWidget()
    qtbot.addWidget(parent)
    assert ask_open_path(parent, "Open", "Pictures (*.png *.jpg);;All files (*)") == ""
    ask_open_path(parent, "Open", "Recordings (*.jsonl)")
    places = [
        QStandardPaths.writableLocation(place)
        for place in (PLACES.PicturesLocation, PLACES.DocumentsLocation)
    ]
    assert [args[2] for args in asked] == places


PICTURE, TEXT, TABLE, DATA = range(4)


@pytest.fixture
def dialog(qtbot, theme: Theme) -> ShareDialog:
    shown = standard_dialog(sides_of(standard_run()), theme)
    qtbot.addWidget(shown)
    shown.show()
    return shown


def choose(dialog: ShareDialog, form: int) -> None:
    dialog.findChild(ComboBox, "share.form").setCurrentIndex(form)


def preview(dialog: ShareDialog) -> str:
    return dialog.findChild(QPlainTextEdit, "share.preview").toPlainText()


@pytest.mark.parametrize(("form", "ending"), [(PICTURE, ".png"), (DATA, ".json")])
def test_a_saved_file_has_the_bytes_that_were_shown(
    dialog: ShareDialog, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form, ending
) -> None:
    path = tmp_path / f"shared{ending}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    choose(dialog, form)
    qtbot.mouseClick(
        dialog.findChild(QPushButton, "share.save"), Qt.MouseButton.LeftButton
    )  # fmt: skip

    assert path.read_bytes() == dialog.contents
    assert read_standard(path) == standard_run()
    if form == DATA:
        assert '"name":"NVIDIA GeForce GT 1030"' in preview(dialog)


def test_the_text_is_copied_in_one_click(dialog: ShareDialog, qtbot) -> None:
    choose(dialog, TEXT)
    qtbot.mouseClick(
        dialog.findChild(QPushButton, "share.copy"), Qt.MouseButton.LeftButton
    )  # fmt: skip

    assert QGuiApplication.clipboard().text() == dialog.contents.decode() == preview(dialog)


def test_the_name_of_the_pc_is_only_what_the_user_typed(
    dialog: ShareDialog, qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "erika.m")
    choose(dialog, DATA)
    name = dialog.findChild(QLineEdit, "share.name")
    qtbot.keyClicks(name, "Old tower")
    qtbot.keyClick(name, Qt.Key.Key_Return)

    assert dialog.isVisible()
    assert "Old tower" in preview(dialog)
    assert b'"pc_name":"Old tower"' in dialog.contents


def test_a_small_screen_has_room_for_the_dialog(dialog: ShareDialog) -> None:
    room = dialog.screen().availableSize()  # 800 × 800 without a screen

    assert dialog.width() <= room.width()
    assert dialog.height() <= room.height()


def test_no_form_and_no_sentence_moves_a_control(
    dialog: ShareDialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Save and Copy have one place, whatever is chosen and wherever it was saved."""
    seen, size = {}, dialog.size()
    for form in (PICTURE, TEXT, TABLE, DATA):
        choose(dialog, form)
        path = tmp_path / ("a-name-that-is-as-long-as-those-of-people-" * 4)
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, path=path: (str(path), ""))
        for name in (None, "share.save", "share.copy"):
            button = dialog.findChild(QPushButton, name) if name is not None else None
            if button is not None and button.isVisible():
                button.click()
            settle()
            now = places(dialog)
            assert not {one for one in now.keys() & seen.keys() if now[one] != seen[one]}
            seen |= now
            assert dialog.size() == size
    assert {"share.save", "share.copy", "share.form", "share.name"} <= seen.keys()
