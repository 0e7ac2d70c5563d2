import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPushButton, QToolTip

from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.ui.banner import Banner
from gpu_studio.ui.parts import letters
from gpu_studio.ui.trust_chip import TrustChip
from tests.driving.window import click, find, sees


@pytest.fixture
def chip(qtbot, theme):
    def make(tone=Tone.GOOD, text="Verified", detail=""):
        created = TrustChip(name="chip")
        qtbot.addWidget(created)
        created.show_notice(Notice(text, tone, detail))
        created.resize(created.sizeHint())
        created.show()
        return created

    return make


@pytest.mark.parametrize("by_key", [False, True])
def test_reasons_are_heard_and_read_by_mouse_and_keyboard(qtbot, chip, by_key):
    reason = f"Only {3 + by_key} samples: <more> time."  # a tool tip of before says another number
    shown = chip(Tone.AMBER, "Few samples", f"{reason}\nA busy CPU.")
    assert shown.accessibleName() == "Few samples"
    assert reason in shown.accessibleDescription()
    assert shown.focusPolicy() is Qt.FocusPolicy.StrongFocus  # Tab reaches it
    if by_key:
        QTest.keyClick(shown, Qt.Key.Key_Return)
    else:
        QTest.mouseClick(shown, Qt.MouseButton.LeftButton)
    assert f"Only {3 + by_key} samples: &lt;more&gt; time." in QToolTip.text()


SENTENCE = "This PyTorch has no code for your GT 1030 (6.1)."


@pytest.fixture
def banner(qtbot, theme):
    created = Banner(theme)
    qtbot.addWidget(created)
    created.resize(letters(created, 140), 10)
    return created


def show_in(banner, sentence=SENTENCE, **parts):
    banner.show_headline(Finding(code="program", sentence=sentence, **parts))


def test_all_of_it_is_one_line_until_you_ask_for_details(banner):
    show_in(banner, detail="Why.\nAnd why not.", command="a command")
    banner.show()
    line = find(banner, "banner.copy", QPushButton).sizeHint().height()
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
