import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit, QPushButton

from gpu_studio.core.notice import Action
from gpu_studio.model.headline import Headline
from gpu_studio.ui.banner import Banner
from gpu_studio.ui.parts import letters
from tests.driving.window import click, find, sees

SENTENCE = "This PyTorch has no code for your GT 1030 (6.1)."


@pytest.fixture
def banner(qtbot, theme):
    created = Banner(theme)
    qtbot.addWidget(created)
    created.resize(letters(created, 140), 10)
    return created


def show_in(banner, sentence=SENTENCE, **parts):
    banner.show_headline(Headline(code="program", sentence=sentence, **parts))


def test_all_of_it_is_one_line_until_you_ask_for_details(banner):
    show_in(banner, detail="Why.\nAnd why not.", command="a command", action=Action.SHOW_LOG)
    banner.show()
    line = find(banner, "banner.action", QPushButton).sizeHint().height()
    assert banner.heightForWidth(banner.width()) < 1.5 * line
    assert not sees(banner, "banner.command")
    assert not sees(banner, "banner.detail")
    click(banner, "banner.more")
    assert sees(banner, "banner.command")
    assert sees(banner, "banner.detail")
    assert find(banner, "banner.command", QLineEdit).text() == "a command"


def test_the_command_is_copied_where_no_button_does_it(banner):
    show_in(banner, command="a command")
    click(banner, "banner.copy")
    assert QGuiApplication.clipboard().text() == "a command"
    show_in(banner, command="a command", action=Action.SHOW_LOG)
    assert not sees(banner, "banner.copy")


def test_another_sentence_is_folded_again(banner):
    show_in(banner, detail="Why.")
    click(banner, "banner.more")
    show_in(banner, sentence="Something else.", detail="Why else.")
    assert not sees(banner, "banner.detail")
    show_in(banner, sentence="Something else.")
    assert not sees(banner, "banner.more")
