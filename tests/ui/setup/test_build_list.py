import pytest
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QMessageBox,
    QPushButton,
)

from gpu_studio.core.builds.record import Wanted
from gpu_studio.model.pages import SET_UP
from gpu_studio.ui.main_window import MainWindow
from tests.driving.window import choose_data, click, find, sees, text, wait_until
from tests.fakes.pc import cpu_only
from tests.fakes.scripted_builds import FakeShelf, record


def test_an_engine_that_failed_its_test_can_be_repaired_and_removed(pc_with):
    pc = pc_with(FakeShelf(record("cpu").broken("its test failed", 700_000_000)))
    window = pc.window
    wait_until(lambda: sees(window, "setup.page"))
    assert "its test failed" in text(window, "setup.build.cpu.state")
    assert not sees(window, "setup.build.cpu.use")
    assert sees(window, "setup.build.cpu.remove")
    assert sees(window, "setup.begin")
    click(window, "setup.build.cpu.repair")
    wait_until(lambda: pc.installer.calls == [("cpu", None, "repair")])


def test_an_installed_engine_is_chosen_without_another_download(pc_with):
    pc = pc_with(FakeShelf(record("cpu"), record("cu126", on_card=True)))
    window, press = pc.window, "setup.install_chosen"
    wait_until(lambda: pc.builds.engine.in_use == "cu126")
    window.show_setup()
    click(window, "setup.why.more")
    assert find(window, "setup.choose", QComboBox).currentData() == "cu126"  # the recommended
    assert not find(window, press, QPushButton).isEnabled()  # it is in use
    choose_data(window, "setup.choose", "cpu")
    assert find(window, press, QPushButton).text().startswith("Use")
    click(window, press)
    wait_until(lambda: pc.builds.engine.in_use == "cpu")
    assert pc.installer.calls == []
    choose_data(window, "setup.choose", "cu130")
    assert find(window, press, QPushButton).text().startswith("Install")


@pytest.fixture
def installed(pc_with):
    pc = pc_with(FakeShelf(record("cpu"), record("cu126", on_card=True)))
    wait_until(lambda: pc.studio.session.is_free)
    return pc


def test_an_installed_engine_starts_without_the_page(installed):
    assert sees(installed.window, "tabs")
    assert not sees(installed.window, "setup.line")
    installed.window.findChild(QAction, "menu.set_up").trigger()
    assert sees(installed.window, "setup.build.cu126.repair")
    assert not sees(installed.window, "setup.build.cu130")


def test_an_engine_is_removed_after_a_question(installed):
    window = installed.window
    installed.studio.go_to(SET_UP)
    click(window, "setup.build.cpu.remove")
    box = window.findChild(QMessageBox, "setup.remove")
    assert "700\u202fMB" in box.informativeText()
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert installed.store.removed == []
    click(window, "setup.build.cpu.remove")
    box = [one for one in window.findChildren(QMessageBox, "setup.remove") if one.isVisible()][-1]
    installed.store.may_remove.clear()  # thousands of files take seconds
    click(box, "setup.remove.sure")
    wait_until(lambda: "Removing" in text(window, "setup.build.cpu.state"))
    for name in ("setup.build.cpu.use", "setup.build.cpu.remove", "setup.build.cu126.repair"):
        assert not find(window, name, QPushButton).isEnabled(), name
    installed.store.may_remove.set()
    wait_until(lambda: installed.store.removed == ["cpu"])
    wait_until(lambda: not sees(window, "setup.build.cpu"))


def test_a_removal_that_fails_is_reported_and_tried_again(pc_with):
    pc = pc_with(FakeShelf(record("cpu"), record("cu126")))
    window = pc.window
    wait_until(lambda: pc.builds.engine.in_use == "cpu")
    window.show_setup()
    pc.store.removal_error = OSError("c10.dll is in use")
    pc.builds.remove("cu126")
    wait_until(lambda: sees(window, "setup.again") and not pc.builds.removing)
    assert "cu126" in text(window, "setup.title")
    click(window, "setup.copy")
    assert "c10.dll" in QGuiApplication.clipboard().text()
    pc.store.removal_error = None
    click(window, "setup.again")
    wait_until(lambda: pc.builds.trouble is None and not pc.builds.removing)
    assert pc.installer.calls == []


def test_a_build_that_cannot_be_loaded_is_offered_again_on_the_first_screen(pc_with, monkeypatch):
    """Nothing is downloaded before the press, and nothing offers to use or repair the old one."""
    were_hidden, show = [], MainWindow.show
    monkeypatch.setattr(
        MainWindow, "show", lambda self: (were_hidden.append(self.tabs.isHidden()), show(self))
    )
    old = record("cpu")._replace(python="3.9")
    pc = pc_with(FakeShelf(old, wanted=Wanted(("cpu",))), cpu_only())
    assert were_hidden == [True]
    assert "3.9 to 3.11" in text(pc.window, "setup.title")
    assert "MB" in text(pc.window, "setup.offer")
    assert not sees(pc.window, "setup.build.cpu.use")
    assert not sees(pc.window, "setup.build.cpu.repair")
    assert sees(pc.window, "setup.build.cpu.remove")
    assert pc.installer.calls == []
    pc.begin()
    assert pc.installer.calls == [("cpu", None, "install")]


def test_an_update_that_is_not_wanted_now_stays_on_the_page(pc_with):
    pc = pc_with(FakeShelf(record("cpu", torch="2.12.0"), wanted=Wanted(("cpu",))), cpu_only())
    wait_until(lambda: sees(pc.window, "setup.line"))
    assert "MB" in text(pc.window, "setup.line.sentence")
    click(pc.window, "setup.line.show")
    click(pc.window, "setup.not_now")
    assert sees(pc.window, "setup.begin")
    click(pc.window, "setup.close")
    assert not sees(pc.window, "setup.line")
    assert pc.installer.calls == []
