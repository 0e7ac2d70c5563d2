import getpass
import re
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QLineEdit, QWidget

from gpu_studio.core.benchmark.comparison import sides_of
from gpu_studio.core.benchmark.standard_record import StandardRun, read_standard
from gpu_studio.ui.saving import ask_save_path
from gpu_studio.ui.standard_page import ShareDialog, standard_picture
from gpu_studio.ui.theme import COLOURS, Theme
from tests.core.benchmark.standard_runs import standard_run
from tests.driving.pages import settle
from tests.driving.window import click, find, places, text

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


@pytest.fixture
def dialog(qtbot, theme: Theme) -> ShareDialog:
    shown = ShareDialog(sides_of(standard_run()), theme)
    qtbot.addWidget(shown)
    shown.show()
    return shown


def test_the_picture_and_the_data_are_saved_and_copied_under_the_name_that_was_typed(
    dialog: ShareDialog, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No control moves, wherever it was saved, and Return in the name saves nothing."""
    monkeypatch.setattr(getpass, "getuser", lambda: "erika.m")
    seen, size = places(dialog), dialog.size()
    name = find(dialog, "share.name", QLineEdit)
    qtbot.keyClicks(name, "Old tower")
    qtbot.keyClick(name, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert "Copied" not in text(dialog, "share.said")
    named = msgspec.structs.replace(standard_run(), pc_name="Old tower")
    for form, ending in (("save", ".png"), ("data", ".json")):
        path = tmp_path / f"{'a-name-that-is-as-long-as-those-of-people-' * 4}{ending}"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, path=path: (str(path), ""))
        click(dialog, f"share.{form}")
        assert read_standard(path) == named
        assert b"erika" not in path.read_bytes()
    click(dialog, "share.copy")
    assert QGuiApplication.clipboard().image() == QImage.fromData(dialog.contents)
    settle()
    now = places(dialog)
    assert {"share.save", "share.copy", "share.data", "share.name"} <= now.keys()
    assert not {one for one in now.keys() & seen.keys() if now[one] != seen[one]}
    assert dialog.size() == size


def shown(run: StandardRun, theme: Theme) -> tuple[QImage, set[str]]:
    image = QImage.fromData(standard_picture(sides_of(run), theme))
    places = ((x, y) for x in range(0, image.width(), 2) for y in range(0, image.height(), 4))
    return image, {image.pixelColor(x, y).name() for x, y in places}


def color(role: str, *, is_dark: bool) -> str:
    return QColor(COLOURS[role][is_dark]).name()


@pytest.mark.parametrize("is_dark", [True, False])
def test_a_picture_has_the_run_inside_and_the_colors_of_the_window(
    theme: Theme, tmp_path: Path, is_dark: bool
) -> None:
    theme._settings.change(theme="dark" if is_dark else "light")
    image, colors = shown(standard_run(), theme)
    path = tmp_path / "picture.png"
    image.save(str(path))
    assert read_standard(path) == standard_run()
    assert image.width() == 1200
    assert 630 < image.height() < 1200
    assert image.pixelColor(3, 3).name() == color("window", is_dark=is_dark)
    assert {color(role, is_dark=is_dark) for role in ("cpu", "gpu0", "track")} <= colors
