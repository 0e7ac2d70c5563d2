import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QFont, QIcon
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QMainWindow, QVBoxLayout, QWidget

from gpu_studio.model.settings import Settings
from gpu_studio.ui.icons import ICONS, icon
from gpu_studio.ui.theme import COLOURS, Theme, application_font

GIVES_EACH_LOOK = True


@pytest.fixture(autouse=True)
def look_is_restored(qapp):
    font = qapp.font()
    yield
    qapp.setFont(font)
    qapp.setStyleSheet("")  # the next test's look is not in force


@pytest.mark.parametrize(("system", "taken"), [(9.0, 9.5), (11.0, 9.5), (12.0, 12.0), (18.0, 18.0)])
def test_a_font_that_someone_made_large_stays_large(qapp, system, taken):
    font = QFont("Some Family")
    font.setPointSizeF(system)
    chosen = application_font(font)
    assert chosen.pointSizeF() == taken
    assert chosen.families()[-1] == "Some Family"  # the last resort


@pytest.mark.parametrize("name", ["QMenu", "QTipLabel"])
def test_menus_tables_and_tips_have_the_windows_font(qapp, settings, monkeypatch, name):
    set_sheet = qapp.setStyleSheet

    def set_sheet_as_on_windows(sheet: str) -> None:
        set_sheet(sheet)
        qapp.setFont(QFont("Some Family", 31), name)

    monkeypatch.setattr(qapp, "setStyleSheet", set_sheet_as_on_windows)
    settings.change(theme="light")
    theme = Theme(settings)
    theme.apply()
    assert QApplication.font(name) == qapp.font()
    settings.change(theme="dark")
    assert theme.is_dark
    assert QApplication.font(name) == qapp.font()


@pytest.fixture
def theme(qapp, settings) -> Theme:
    settings.change(theme="light")
    theme = Theme(settings)
    theme.apply()
    return theme


def test_a_change_of_theme_looks_as_a_start_with_it(qtbot, qapp, settings, theme):
    window, page = QMainWindow(), QWidget()
    column = QVBoxLayout(page)
    for role in ("muted", "headline", ""):
        label = QLabel("A label")
        label.setProperty("role", role)
        column.addWidget(label)
    choice = QComboBox()
    choice.addItem("A choice")
    column.addWidget(choice)
    window.setCentralWidget(page)
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    settings.change(theme="dark")
    assert label.palette().windowText().color().name() == theme.colour("text").lower()
    dark = window.grab().toImage()
    qapp.setStyleSheet(qapp.styleSheet())
    assert window.grab().toImage() == dark


@pytest.fixture
def looks(qapp):
    settings = Settings(None)
    settings.change(theme="light")
    theme = Theme(settings)
    theme.apply()
    return settings, theme


def ink(picture):
    image = picture.toImage()
    return {
        image.pixelColor(x, y).name()
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y).alpha() == 255
    }


def shown(made, mode=QIcon.Mode.Normal, state=QIcon.State.Off, scale=1.0):
    return made.pixmap(QSize(48, 48), scale, mode, state)


def test_every_icon_has_a_drawing_in_the_themes_colour(looks):
    drawn = {name: ink(shown(icon(name, looks[1]))) for name in ICONS}
    assert drawn == {name: {QColor(COLOURS["text"][0]).name()} for name in ICONS}
