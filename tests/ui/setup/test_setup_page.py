import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QMessageBox,
    QProgressBar,
    QPushButton,
)

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.record import Wanted
from gpu_studio.core.builds.trouble import (
    REDISTRIBUTABLE,
    disk_full,
    missing_runtime,
    no_network,
)
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.model import engine_handover
from gpu_studio.model.pages import SET_UP
from gpu_studio.model.studio import Studio
from tests.driving.window import choose_data, click, find, open_tab, sees, text, wait_until
from tests.fakes.descriptions import described
from tests.fakes.pc import gt_1030
from tests.fakes.scripted_builds import FakeShelf, record
from tests.ui.fitting import misfits

STAGES = InstallStage


def percent(window):
    return text(window, "setup.figure").removesuffix(" %")


def test_the_first_start_shows_the_page_with_one_question(pc_with):
    window = pc_with().window
    wait_until(lambda: sees(window, "setup.page"))
    assert not sees(window, "tabs")
    size = {"win32": "130 MB", "linux": "200 MB"}.get(sys.platform, "MB")
    assert size in find(window, "setup.begin", QPushButton).text()
    wait_until(lambda: "GT 1030" in text(window, "setup.device"))  # before anything is installed
    assert "2 GiB VRAM" in text(window, "setup.device.line")
    offer = text(window, "setup.offer")
    assert "cu126" in offer
    assert "20 GB free" in offer  # the disk is told before
    assert sees(window, "setup.begin")
    labels = find(window, "setup.page").findChildren(QLabel)
    buttons = find(window, "setup.page").findChildren(QPushButton)
    shown = " ".join(one.text() for one in (*labels, *buttons) if one.isVisible())
    assert not any(word in shown for word in ("engine", "wheel"))
    for absent in ("setup.progress", "setup.pause", "setup.again", "setup.copy", "setup.builds"):
        assert not sees(window, absent), absent


def test_a_program_with_its_own_pytorch_has_no_such_page(make_window):
    window = make_window(gt_1030())
    window.show()
    wait_until(lambda: window.findChild(Studio).session.is_free)
    assert not sees(window, "setup.line")
    assert window.findChild(QAction, "menu.set_up") is None
    window.findChild(Studio).go_to(SET_UP)
    assert sees(window, "tabs")


def test_you_can_look_around_first_and_every_page_says_what_it_waits_for(pc_with):
    window = pc_with().window
    wait_until(lambda: sees(window, "setup.page"))
    click(window, "setup.close")
    assert sees(window, "tabs")
    assert not sees(window, "setup.page")
    assert "not installed" in text(window, "status")
    assert "not installed" in text(window, "setup.line.sentence")
    wait_until(lambda: sees(window, "devices.verdict.action"))
    open_tab(window, "Benchmark")
    assert "not installed" in find(window, "benchmark.run", QPushButton).toolTip()
    assert not find(window, "benchmark.run", QPushButton).isEnabled()
    open_tab(window, "Race")
    assert "not installed" in text(window, "race.outcome")
    assert not find(window, "race.run", QPushButton).isEnabled()
    open_tab(window, "Check")
    assert "not installed" in text(window, "check.next")
    open_tab(window, "Memory")
    assert text(window, "memory.oom.reason") == engine_handover.NOT_INSTALLED
    open_tab(window, "Switcher")
    assert "not installed" in text(window, "switcher.why")
    assert sees(window, "setup.line")
    click(window, "setup.line.show")
    assert sees(window, "setup.page")
    assert not sees(window, "setup.line")


def test_esc_goes_back_to_the_tabs(qtbot, pc_with):
    window = pc_with().window
    wait_until(lambda: sees(window, "setup.page"))
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert sees(window, "tabs")


def test_a_download_shows_share_bytes_and_time(pc_with):
    pc = pc_with()
    pc.begin()
    pc.installer.say(STAGES.DOWNLOADING, 77_000_000, 207_000_000, left_s=65.0)
    wait_until(lambda: percent(pc.window) == "37")
    shown = text(pc.window, "setup.bytes")
    assert "77 MB" in shown
    assert "207 MB" in shown
    assert "1 minute left" in shown
    assert find(pc.window, "setup.progress", QProgressBar).value() == 372
    assert "CPU" in text(pc.window, "setup.title")
    assert "cu126" in text(pc.window, "setup.next")
    for absent in ("setup.begin", "setup.folder", "setup.go_on", "setup.again"):
        assert not sees(pc.window, absent), absent
    click(pc.window, "setup.close")
    action = find(pc.window, "devices.verdict.action", QPushButton)
    wait_until(lambda: "Show" in action.text())  # it has begun: there is nothing to set up
    assert "GT 1030" in text(pc.window, "devices.verdict.sentence")
    assert "207 MB" in text(pc.window, "setup.line.sentence")
    assert find(pc.window, "setup.line.progress", QProgressBar).value() == 372


def test_a_pause_and_its_end(pc_with):
    pc = pc_with()
    pc.begin()
    pc.installer.answers_pause = False
    click(pc.window, "setup.pause")
    assert pc.installer.is_paused
    assert not find(pc.window, "setup.pause", QPushButton).isEnabled()
    pc.installer.say(STAGES.PAUSED, 30, 100)
    wait_until(lambda: sees(pc.window, "setup.go_on"))
    assert "paused" in text(pc.window, "setup.title")
    assert percent(pc.window) == "30"
    click(pc.window, "setup.close")
    assert "paused" in text(pc.window, "setup.line.sentence")
    assert find(pc.window, "setup.line.show", QPushButton).text() == "Show"
    click(pc.window, "setup.line.show")
    click(pc.window, "setup.go_on")
    wait_until(lambda: len(pc.installer.calls) == 2)
    assert sees(pc.window, "setup.pause")


def test_a_failure_has_cause_action_and_details(pc_with):
    pc = pc_with()
    pc.begin()
    pc.fail(no_network("download.pytorch.org", "URLError: no such host"))
    window = pc.window
    wait_until(lambda: sees(window, "setup.again"))
    assert "download.pytorch.org" in text(window, "setup.title")
    assert "try again" in text(window, "setup.action")
    click(window, "setup.copy")
    copied = QGuiApplication.clipboard().text()
    for fact in ("no_network", "no such host", "cpu", "cu126", "pip download"):
        assert fact in copied
    click(window, "setup.close")
    shown = text(window, "setup.line.sentence")
    assert "download.pytorch.org" in shown
    assert "CPU build" in shown  # above a tab, nothing else says what failed
    click(window, "setup.line.show")
    click(window, "setup.again")
    wait_until(lambda: len(pc.installer.calls) == 2)
    assert not sees(window, "setup.copy")


def test_what_windows_lacks_is_one_press_away(pc_with, monkeypatch):
    pc = pc_with()
    window = pc.window
    pc.begin("setup.cpu_only")
    assert not sees(window, "setup.open")
    pc.fail(missing_runtime("DLL load failed"))
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: not opened.append(url.toString()))
    click(window, "setup.open")
    assert opened == [REDISTRIBUTABLE]
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _: False)
    click(window, "setup.open")
    assert QGuiApplication.clipboard().text() == REDISTRIBUTABLE
    assert "copied" in text(window, "setup.action")


@pytest.mark.parametrize("end", ["paused", "failed"])
def test_an_installation_that_came_to_a_halt_is_given_up_after_a_question(pc_with, end):
    pc = pc_with()
    window = pc.window
    pc.begin()
    assert not sees(window, "setup.give_up")
    pc.store.unfinished = 101_000_000
    if end == "paused":
        click(window, "setup.pause")
        wait_until(lambda: sees(window, "setup.go_on"))
    else:
        pc.fail(no_network("download.pytorch.org"))
    click(window, "setup.give_up")
    box = window.findChild(QMessageBox, "setup.give_up.question")
    assert "101\u202fMB" in box.informativeText()
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert pc.store.unfinished
    pc.store.may_remove.clear()
    click(window, "setup.give_up")
    box = [one for one in window.findChildren(QMessageBox) if one.isVisible()][-1]
    click(box, "setup.give_up.question.sure")
    wait_until(lambda: "Removing" in text(window, "setup.title"))
    assert not sees(window, "setup.give_up")
    pc.store.may_remove.set()
    wait_until(lambda: "not installed" in text(window, "setup.title"))
    assert pc.store.unfinished == 0
    assert pc.store.wish.builds == ()  # the next start asks again
    assert sees(window, "setup.begin")
    assert len(pc.installer.calls) == 1


def test_a_folder_of_wheels_is_used_instead(pc_with, monkeypatch):
    pc = pc_with()
    pc.begin()
    pc.fail(no_network("download.pytorch.org"))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    click(pc.window, "setup.folder")
    assert len(pc.installer.calls) == 1  # the dialog was closed
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/my wheels")
    click(pc.window, "setup.folder")
    wait_until(lambda: len(pc.installer.calls) == 2)
    assert pc.installer.calls[-1] == ("cpu", Path("/my wheels"), "install")
    pc.fail(no_network("the package index"))
    click(pc.window, "setup.download")
    click(pc.window, "setup.again")
    wait_until(lambda: len(pc.installer.calls) == 3)
    assert pc.installer.calls[-1] == ("cpu", None, "install")


def test_why_this_one_reports_card_and_driver_and_lets_choose_another(pc_with):
    pc = pc_with()
    window = pc.window
    wait_until(lambda: sees(window, "setup.why.more"))
    assert not sees(window, "setup.why_text")
    click(window, "setup.why.more")
    why = text(window, "setup.why_text")
    assert "GT 1030 (6.1)" in why
    assert "570.86.16" in why
    choose_data(window, "setup.choose", "cu130")
    pc.begin("setup.install_chosen")
    assert pc.installer.calls[0][0] == "cu130"


def test_only_the_cpus_engine(pc_with):
    pc = pc_with()
    pc.begin("setup.cpu_only")
    assert pc.store.wish.builds == ("cpu",)
    pc.installer.finish(record("cpu"))
    wait_until(lambda: sees(pc.window, "setup.begin"))  # the card's engine can follow
    assert "cu126" in find(pc.window, "setup.begin", QPushButton).text()


def test_from_the_first_press_to_the_card(pc_with_all_pages, engines):
    pc = pc_with_all_pages()
    window = pc.window
    pc.begin()
    pc.installer.finish(record("cpu"))
    wait_until(lambda: pc.builds.engine.in_use == "cpu" and len(pc.installer.calls) == 2)
    wait_until(lambda: "in use" in text(window, "setup.build.cpu.state"))
    assert "meanwhile" in text(window, "setup.next")
    pc.installer.finish(record("cu126", on_card=True))
    wait_until(lambda: "in use" in text(window, "setup.build.cu126.state"))
    assert "cu126" in text(window, "setup.title")
    assert not sees(window, "setup.progress")
    click(window, "setup.close")
    assert not sees(window, "setup.line")
    assert "1.4\u202fGB" in text_hidden(window, "setup.disk")


def text_hidden(window, name):
    """Return a text of the page behind the tabs."""
    return find(window, name).text()


def test_the_finding_about_a_card_installs_its_engine(pc_with, engines):
    engines.scripts[DescribeEngine] = [described()]
    pc = pc_with(FakeShelf(record("cpu"), wanted=Wanted(("cpu",), "cpu")))
    window = pc.window
    wait_until(lambda: "cu126" in find(window, "devices.verdict.action", QPushButton).text())
    assert not sees(window, "devices.verdict.command")
    click(window, "devices.verdict.action")
    wait_until(lambda: pc.installer.calls)
    assert pc.installer.calls[0][0] == "cu126"
    assert sees(window, "setup.page")
    pc.installer.finish(record("cu126"))
    wait_until(lambda: pc.builds.engine.in_use == "cu126")  # although another one was chosen before


@pytest.mark.usefixtures("letters")
def test_it_can_be_read_in_any_font_and_size(pc_with):
    pc = pc_with(FakeShelf(record("cpu"), wanted=Wanted()))
    window, found = pc.window, []
    pc.studio.go_to(SET_UP)
    click(window, "setup.why.more")
    for size in ((900, 520), (1280, 800)):
        window.resize(*size)
        QApplication.processEvents()
        found += [f"offer at {size[0]}: {what}" for what in misfits(find(window, "setup.page"))]
    pc.begin()
    pc.fail(disk_full("/home/anybody/.local/share/gpu-studio/engines", 2_650_000_000))
    for size in ((900, 520), (1280, 800)):
        window.resize(*size)
        QApplication.processEvents()
        found += [f"failed at {size[0]}: {what}" for what in misfits(find(window, "setup.page"))]
    click(window, "setup.close")
    QApplication.processEvents()
    found += [f"line: {what}" for what in misfits(find(window, "setup.line"))]
    assert not found, "\n".join(found)
