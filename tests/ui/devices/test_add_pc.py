"""Other PCs on the Devices tab: added in the dialog, grouped with their answers, and removed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLineEdit, QMessageBox

from gpu_studio.core.line_trouble import LineProblem
from gpu_studio.core.messages.line_messages import EngineReadiness
from gpu_studio.model.worker import Worker
from gpu_studio.ui.devices.add_pc_dialog import AddPcDialog
from gpu_studio.ui.devices.pc_group import PcGroup
from tests.driving.pages import settle
from tests.driving.window import click, find, places, sees, text, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtWidgets import QWidget
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.pc import Pc
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.devices.devices_tab import DevicesTab
    from tests.fakes.other_pcs import OtherPcs

_NEAR = 24  # pixels: the pointer stays on a button


@pytest.fixture
def shown(qtbot: QtBot, ready_studio: Studio, tab: DevicesTab) -> DevicesTab:
    tab.show()
    qtbot.waitExposed(tab)
    return tab


@pytest.fixture
def dialog(shown: DevicesTab) -> Iterator[AddPcDialog]:
    click(shown, "devices.add_pc")
    opened = find(shown.window(), "add_pc", AddPcDialog)
    yield opened
    QApplication.processEvents()


def type_in(root: QWidget, name: str, words: str) -> None:
    edit = find(root, name, QLineEdit)
    edit.setText(words)
    edit.textEdited.emit(words)


def tried(dialog: AddPcDialog, studio: Studio, host: str) -> str:
    """Return the words of the result for a host."""
    type_in(dialog, "add_pc.host", host)
    click(dialog, "add_pc.try")
    wait_until(lambda: not studio.pcs.attempt.is_running)
    names = [f"add_pc.result.{line}.{part}" for line in range(5)
             for part in ("sentence", "below")]  # fmt: skip
    return "\n".join(filter(None, (text(dialog, name) for name in names)))


def can_add(dialog: AddPcDialog) -> bool:
    return find(dialog, "add_pc.add").isEnabled()


def test_a_pc_that_answers_is_added_and_removed(
    ready_studio: Studio, shown: DevicesTab, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    assert not sees(shown, "devices.pc"), "one PC has no heading"
    assert not can_add(dialog)
    words = tried(dialog, ready_studio, "ssh lea@attic")
    assert words.startswith("Reached in ")
    assert "GeForce GT 1030, 2 GiB" in words
    assert find(dialog, "add_pc.name", QLineEdit).text() == "attic"
    assert other_pcs.engines.made == [], "nothing starts there before it is added"
    click(dialog, "add_pc.add")
    (kept,) = ready_studio.settings.choices.pcs
    assert (kept.name, kept.host, kept.program) == ("attic", "lea@attic", "")
    wait_until(lambda: ready_studio.board.usable_cards)
    wait_until(lambda: "can use" in text(shown, "devices.pc.attic.heading.answer.sentence"))
    assert sees(shown, "devices.pc"), "several PCs have a heading each"
    group = find(shown, "devices.pc.attic", PcGroup)
    group.list.setCurrentIndex(group.list.model().index(1))
    verdict = text(shown, "devices.verdict.sentence")
    assert "GT 1030" in verdict
    click(shown, "devices.pc.attic.connect")
    wait_until(lambda: "not connected" in text(shown, "devices.pc.attic.heading.answer.sentence"))
    assert ready_studio.settings.choices.disconnected_pcs == ("attic",)
    click(shown, "devices.pc.attic.connect")
    wait_until(lambda: "can use" in text(shown, "devices.pc.attic.heading.answer.sentence"))

    def confirm() -> None:
        box = find(shown, "devices.pc.question", QMessageBox)
        next(one for one in box.buttons() if one.text() == "Remove").click()

    QTimer.singleShot(0, confirm)
    click(shown, "devices.pc.attic.remove")
    assert ready_studio.settings.choices.pcs == ()
    wait_until(lambda: not sees(shown, "devices.pc"))


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", ""])
def test_a_host_that_is_none_is_never_asked(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs, host: str
) -> None:
    type_in(dialog, "add_pc.host", host)
    click(dialog, "add_pc.try")
    assert "ost" in text(dialog, "add_pc.result.0.sentence")
    assert (other_pcs.asked, can_add(dialog)) == ([], False)
    click(dialog, "add_pc.cancel")


@pytest.mark.parametrize("problem", LineProblem)
def test_each_failure_has_its_cause_and_its_next_step(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs, problem: LineProblem
) -> None:
    other_pcs.refusal = problem
    lines = tried(dialog, ready_studio, "lea@workshop").split("\n")
    assert len(lines) >= 2
    assert lines[-1].endswith(".")
    assert not can_add(dialog)
    other_pcs.refusal = None
    assert "Engine ready" in tried(dialog, ready_studio, "lea@workshop"), "tried again"
    assert can_add(dialog)
    type_in(dialog, "add_pc.host", "lea@elsewhere")
    assert not can_add(dialog), "another host was not tried"
    click(dialog, "add_pc.cancel")
    assert ready_studio.pcs.others == ()


def test_a_pc_without_pytorch_can_be_added_and_says_what_to_type(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    other_pcs.readiness = EngineReadiness.MISSING
    assert "engine install" in tried(dialog, ready_studio, "192.0.2.7")
    assert can_add(dialog)
    assert find(dialog, "add_pc.name", QLineEdit).text() == "another PC", "no address in results"
    click(dialog, "add_pc.cancel")


def test_a_second_pc_gets_another_name(
    ready_studio: Studio, attic: Pc, dialog: AddPcDialog
) -> None:
    tried(dialog, ready_studio, "me@attic")
    assert find(dialog, "add_pc.name", QLineEdit).text() == "attic 2"
    for name in ("ATTIC", "cuda:0", "a/b", " "):
        type_in(dialog, "add_pc.name", name)
        assert not can_add(dialog), name
    type_in(dialog, "add_pc.name", "loft")
    assert can_add(dialog)
    click(dialog, "add_pc.cancel")


def test_cancel_ends_an_attempt_at_once(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs, monkeypatch: pytest.MonkeyPatch
) -> None:
    greet, asked = other_pcs.greet, threading.Event()

    def never(pc, is_over):
        asked.set()
        while not is_over():
            threading.Event().wait(0.01)
        return greet(pc, is_over)

    monkeypatch.setattr(other_pcs, "greet", never)
    type_in(dialog, "add_pc.host", "attic")
    click(dialog, "add_pc.try")
    wait_until(asked.is_set)
    click(dialog, "add_pc.cancel")
    attempt = ready_studio.pcs.attempt
    wait_until(lambda: not any(one.isRunning() for one in attempt.findChildren(Worker)))
    assert (attempt.notices, attempt.is_usable, other_pcs.sources) == ((), False, [])


def test_a_pc_without_the_program_gets_the_command_that_installs_it(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    assert not sees(dialog, "add_pc.command")
    other_pcs.refusal = LineProblem.NO_PROGRAM
    tried(dialog, ready_studio, "lea@workshop")
    click(dialog, "add_pc.command.copy")
    typed = QApplication.clipboard().text()
    assert typed == find(dialog, "add_pc.command", QLineEdit).text()
    assert typed.endswith("gpu-studio engine install")
    click(dialog, "add_pc.cancel")


def test_no_answer_moves_a_control(
    ready_studio: Studio, dialog: AddPcDialog, other_pcs: OtherPcs
) -> None:
    """Nor does it make the dialog larger: a long answer is scrolled to."""
    type_in(dialog, "add_pc.host", "lea@attic")
    wait_until(lambda: dialog.isVisible())
    QApplication.processEvents()
    before, size = places(dialog), dialog.size()
    assert {"add_pc.try", "add_pc.add", "add_pc.cancel", "add_pc.name"} <= before.keys()

    def moved() -> set[str]:
        settle()
        now = places(dialog)
        # Another label, or the look of the primary button, takes some pixels.
        return {
            name for name, place in before.items() if (now[name] - place).manhattanLength() > _NEAR
        }

    click(dialog, "add_pc.try")
    assert not moved(), "it is being asked"
    wait_until(lambda: not ready_studio.pcs.attempt.is_running)
    assert not moved(), "it answers"
    for problem in LineProblem:
        other_pcs.refusal = problem
        tried(dialog, ready_studio, "lea@attic")
        assert not moved(), problem
        shown = "add_pc.command.copy" if problem is LineProblem.NO_PROGRAM else "add_pc.result.0"
        assert find(dialog, shown).isVisible()
    type_in(dialog, "add_pc.name", "a/b")
    assert moved() <= {"add_pc.add", "add_pc.cancel"}, "a name that cannot be"
    type_in(dialog, "add_pc.name", "attic")
    assert dialog.size() == size
    click(dialog, "add_pc.cancel")
