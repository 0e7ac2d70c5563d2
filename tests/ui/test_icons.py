import logging

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QIcon

from gpu_studio.core.resources import resource_path
from gpu_studio.model.settings import Settings
from gpu_studio.ui.icons import ICONS, icon
from gpu_studio.ui.theme import COLOURS, Theme


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


def test_a_drawing_names_no_colour_of_its_own():
    for name in ICONS:
        text = resource_path(f"icons/{name}.svg").read_text(encoding="utf-8")
        assert "currentColor" in text, name
        assert "#" not in text, name


def test_an_icon_that_was_made_before_follows_the_theme(looks):
    settings, theme = looks
    created = icon("play", theme, "accent", "on_accent")
    settings.change(theme="dark")
    assert ink(shown(created)) == {QColor(COLOURS["accent"][1]).name()}
    assert ink(shown(created, state=QIcon.State.On)) == {QColor(COLOURS["on_accent"][1]).name()}
    assert ink(shown(created, QIcon.Mode.Disabled)) == {QColor(COLOURS["disabled"][1]).name()}


def test_a_dense_screen_gets_more_pixels_of_the_same_picture(looks):
    once, twice = (shown(icon("cpu", looks[1]), scale=scale) for scale in (1.0, 2.0))
    assert (once.width(), twice.width()) == (48, 96)
    half = twice.toImage().scaled(48, 48).pixelColor(24, 15).alpha()
    assert (half > 128) is (once.toImage().pixelColor(24, 15).alpha() > 128)
    assert len(ink(twice)) == 1


def test_a_missing_file_is_an_empty_icon_and_a_line_in_the_log(looks, caplog):
    with caplog.at_level(logging.WARNING):
        assert icon("no-such-icon", looks[1]).isNull()
    assert "no-such-icon" in caplog.text
