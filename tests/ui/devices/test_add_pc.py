"""Other PCs on the Devices tab: added in the dialog, grouped with their answers, and removed."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from gpu_studio.core.other_pc import LineProblem, command_to_install
from gpu_studio.model.pc import RemotePc
from gpu_studio.model.studio import Studio
from gpu_studio.model.worker import Task
from gpu_studio.ui.devices.add_pc_dialog import AddPcDialog
from gpu_studio.ui.devices.copy_dialog import CopyDialog
from gpu_studio.ui.devices.devices_tab import DevicesTab
from gpu_studio.ui.eliding import ElidedText
from tests.driving.devices import choose_more, devices
from tests.driving.pages import settle
from tests.driving.window import click, find, places, sees, text, wait_until
from tests.fakes.other_pcs import OtherPcs

_HEADING = "devices.pc.attic.heading.answer.sentence"


@pytest.fixture
def shown(qtbot: QtBot, ready_studio: Studio, tab: DevicesTab) -> DevicesTab:
    tab.show()
    qtbot.waitExposed(tab)
    return tab


@pytest.fixture
def dialog(shown: DevicesTab) -> Iterator[AddPcDialog]:
    choose_more(shown, "Add a PC")
    opened = find(shown.window(), "add_pc", AddPcDialog)
    yield opened
    if isValid(opened):
        opened.reject()
    QApplication.processEvents()


def type_in(root: QWidget, name: str, words: str) -> None:
    edit = find(root, name, QLineEdit)
    edit.selectAll()
    QTest.keyClick(edit, Qt.Key.Key_Delete)
    QTest.keyClicks(edit, words)


def refused(dialog: AddPcDialog, host: str) -> str:
    """Return the answer about a host that cannot be added."""
    type_in(dialog, "add_pc.host", host)
    click(dialog, "add_pc.add")
    wait_until(lambda: find(dialog, "add_pc.add").isEnabled())
    parts = (text(dialog, f"add_pc.answer.{part}") for part in ("sentence", "below"))
    return "\n".join(filter(None, parts))


def test_a_pc_that_answers_is_added_and_removed(
    ready_studio: Studio, shown: DevicesTab, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    assert not sees(shown, "devices.pc"), "one PC has no heading"
    type_in(dialog, "add_pc.host", "ssh lea@attic")
    assert "called “attic”" in text(dialog, "add_pc.answer.sentence")
    assert other_pcs.asked == []
    click(dialog, "add_pc.add")
    wait_until(lambda: ready_studio.board.usable_cards)
    assert not isValid(dialog) or not dialog.isVisible()
    assert other_pcs.asked == ["attic"], "it is asked once"
    (kept,) = ready_studio.settings.choices.pcs
    assert (kept.name, kept.host) == ("attic", "lea@attic")
    wait_until(lambda: "can use" in text(shown, _HEADING))
    assert sees(shown, "devices.pc"), "several PCs have a heading each"
    name = find(shown, "devices.pc.attic.heading.name", ElidedText)
    wait_until(lambda: name.width() > 0 and not name.is_elided)
    devices(shown, "devices.pc.attic.table")[1].click()
    assert "GT 1030" in text(shown, "devices.verdict.sentence")
    buttons = ("devices.pc.attic.connect", "devices.pc.attic.remove")
    for is_presented in (True, False):
        shown.present(is_presented=is_presented)
        assert [sees(shown, one) for one in buttons] == [not is_presented] * 2
    click(shown, "devices.pc.attic.connect")
    wait_until(lambda: "not connected" in text(shown, _HEADING))
    assert ready_studio.settings.choices.disconnected_pcs == ("attic",)
    click(shown, "devices.pc.attic.connect")
    wait_until(lambda: "can use" in text(shown, _HEADING))

    def confirm() -> None:
        box = find(shown, "devices.pc.question", QMessageBox)
        next(one for one in box.buttons() if one.text() == "Remove").click()

    QTimer.singleShot(0, confirm)
    click(shown, "devices.pc.attic.remove")
    assert ready_studio.settings.choices.pcs == ()
    wait_until(lambda: not sees(shown, "devices.pc"))


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", ""])
def test_a_host_that_is_none_is_never_asked(
    dialog: AddPcDialog, other_pcs: OtherPcs, host: str
) -> None:
    assert "ost" in refused(dialog, host)
    assert other_pcs.asked == []


def test_each_failure_has_its_next_step_and_moves_no_control(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    type_in(dialog, "add_pc.host", "lea@attic")
    settle()
    before, size = places(dialog), dialog.size()
    assert {"add_pc.add", "add_pc.cancel", "add_pc.host"} <= before.keys()
    for problem in LineProblem:
        other_pcs.refusal = problem
        sentence, *_, step = refused(dialog, "lea@attic").split("\n")
        assert sentence.endswith(".")
        assert len(step) > len("Connect."), problem
        settle()
        now = places(dialog)
        assert {name: now[name] for name in before} == before, problem
        assert dialog.size() == size
        assert sees(dialog, "add_pc.copy") is (problem is LineProblem.NO_PROGRAM)
        if problem is LineProblem.NO_PROGRAM:
            click(dialog, "add_pc.copy")
            assert QApplication.clipboard().text() == command_to_install()
    type_in(dialog, "add_pc.host", "lea@elsewhere")
    assert "Nothing was sent" in text(dialog, "add_pc.answer.sentence"), "of another host"
    assert ready_studio.pcs.others == ()


def test_a_pc_without_pytorch_is_added_and_says_what_to_type(
    ready_studio: Studio, shown: DevicesTab, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    other_pcs.engine_there = "missing"
    type_in(dialog, "add_pc.host", "192.0.2.7")
    assert "“another PC”" in text(dialog, "add_pc.answer.sentence"), "no address in results"
    type_in(dialog, "add_pc.host", "attic=192.0.2.7")
    click(dialog, "add_pc.add")
    wait_until(lambda: ready_studio.pcs.others)
    wait_until(lambda: "engine install" in text(shown, _HEADING))


def test_a_second_pc_needs_another_name(
    ready_studio: Studio, attic: RemotePc, dialog: AddPcDialog
) -> None:
    for name in ("attic", "ATTIC", "cuda:0", "a/b", " "):
        type_in(dialog, "add_pc.host", f"{name}=me@attic")
        click(dialog, "add_pc.add")
        assert "name" in text(dialog, "add_pc.answer.sentence")
    type_in(dialog, "add_pc.host", "loft=me@attic")
    click(dialog, "add_pc.add")
    wait_until(lambda: len(ready_studio.pcs.others) == 2)


def test_cancel_ends_a_question_at_once(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    other_pcs.answers.clear()
    type_in(dialog, "add_pc.host", "attic")
    click(dialog, "add_pc.add")
    assert "Connecting" in text(dialog, "add_pc.answer.sentence")
    click(dialog, "add_pc.cancel")
    wait_until(lambda: not ready_studio.pcs.findChildren(Task))
    assert (ready_studio.pcs.others, other_pcs.sources) == ((), [])


WHOLE = "GPU-1234 <b>"


@pytest.fixture
def copy_dialog(qtbot):
    created = CopyDialog(lambda form, masked: f"{form} {'masked' if masked else WHOLE}")
    qtbot.addWidget(created)
    return created


def test_what_is_shown_is_what_is_copied(copy_dialog):
    preview = copy_dialog.findChild(QPlainTextEdit, "devices.copy.preview")
    assert preview.toPlainText() == "text masked"
    copy_dialog.findChild(QComboBox, "devices.copy.form").setCurrentIndex(1)
    assert preview.toPlainText() == "markdown masked"
    whole = copy_dialog.findChild(QCheckBox, "devices.copy.whole")
    assert not {"serial", "host"} & set(whole.text().split())  # neither is read
    whole.setChecked(True)
    copy_dialog.findChild(QPushButton, "devices.copy.now").click()
    assert QGuiApplication.clipboard().text() == preview.toPlainText() == f"markdown {WHOLE}"
