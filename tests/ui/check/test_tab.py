"""The Check tab as a person sees and drives it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel, QPushButton, QTabWidget
from pytestqt.qtbot import QtBot

from gpu_studio.core.check.check_file import read_record
from gpu_studio.core.check.check_folder import CheckFolder
from gpu_studio.core.check.stages import PLANTED_FAULTS, PLANTED_MARK
from gpu_studio.model.pages import CHECK
from gpu_studio.model.studio import Studio
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.tabs import TABS
from gpu_studio.ui.theme import Theme
from gpu_studio.ui.trust_chip import TrustChip
from tests.driving.window import (
    choose,
    choose_data,
    click,
    find,
    open_tab,
    places,
    property_of,
    sees,
    table,
    text,
    wait_until,
)
from tests.fakes.check_answers import (
    answer_with,
    check_until,
    hot_card,
    requests_of,
    wrong_bit,
)
from tests.fakes.pc import two_cards
from tests.fakes.scripted_engine import Engines, ScriptedEngine

with_cards = pytest.mark.parametrize("inventory", [two_cards()])


def paused(engines: Engines) -> ScriptedEngine:
    wait_until(lambda: any(engine.paused.is_set() for engine in engines.made))
    return next(engine for engine in engines.made if engine.paused.is_set())


def run(tab: CheckTab) -> None:
    """Run the chosen check to its end."""
    click(tab, "check.run")
    wait_over(tab)


def wait_over(tab: CheckTab) -> None:
    wait_until(lambda: tab.check.record and not find(tab, "check.stop").isEnabled())


def states(tab: CheckTab) -> list[str]:
    return [row[1].split()[1] for row in table(tab, "check.stages")]


def what_was_tested(tab: CheckTab, title: str) -> str:
    return next(row[3] for row in table(tab, "check.stages") if row[0] == title)


def chip(tab: CheckTab) -> tuple[str, str]:
    shown = find(tab, "check.chip", TrustChip)
    return (shown.notice.tone.value, shown.notice.sentence) if shown.isVisible() else ("", "")


# ── before ───────────────────────────────────────────────────────────────────────────────────────


@with_cards
def test_a_fresh_tab_asks_about_the_first_card(tab: CheckTab) -> None:
    assert "this card" in text(tab, "check.errors")
    assert find(tab, "check.device", QComboBox).currentText() == "GT 1030"
    assert find(tab, "check.minutes", QComboBox).currentData() == 6
    assert "Save your work" in text(tab, "check.next")
    assert states(tab) == ["Waiting"] * 5
    assert chip(tab) == ("", "")
    assert find(tab, "check.run").isEnabled()
    for name in ("check.save", "check.stop"):
        assert not find(tab, name).isEnabled(), name
    assert not sees(tab, "check.planted")


def test_a_pc_without_a_card_checks_its_cpu_and_says_so(tab: CheckTab, engines: Engines) -> None:
    assert "this CPU" in text(tab, "check.errors")
    assert "RAM" in find(tab, "check.device", QComboBox).currentText()
    assert "RAM of its own process" in text(tab, "check.next")
    click(tab, "check.tests.more")
    plan = text(tab, "check.plan")
    assert "RAM" in plan
    assert "video memory" not in plan.lower()
    choose_data(tab, "check.minutes", 1)
    QTest.keyClick(find(tab, "check.minutes"), Qt.Key.Key_Return)
    run(tab)

    (request,) = requests_of(engines)
    assert (request.device, request.round_s) == ("cpu", 60.0)
    assert not sees(tab, "check.sensors"), "the CPU reports no sensors to the check"
    assert "free" in what_was_tested(tab, "RAM"), "how much of its RAM was tested"


# ── while it runs ────────────────────────────────────────────────────────────────────────────────


@with_cards
def test_a_running_check_says_what_runs_what_is_covered_and_how_hot_it_is(
    tab: CheckTab, engines: Engines
) -> None:
    answer_with(engines, pause_in="memory", findings={"load": (hot_card(),)})
    before = places(tab)
    find(tab, "check.run").setFocus()
    click(tab, "check.run")
    engine = paused(engines)
    wait_until(lambda: "Step 10 of 20" in text(tab, "check.doing"))

    moved = {name for name, place in places(tab).items() if before.get(name, place) != place}
    assert moved <= {"check.tests.more"}, "it is below"
    assert find(tab, "check.stop").hasFocus()
    assert find(tab, "check.chip").height() < 2 * find(tab, "check.when").height()
    assert text(tab, "check.errors") == "0 errors so far"
    assert property_of(tab, "check.errors", "tone") == "amber", "there is a doubt already"
    assert "Video memory" in text(tab, "check.doing")
    assert text(tab, "check.next").startswith("The card slowed itself down")
    assert what_was_tested(tab, "Video memory") == "9 steps"
    shown = [text(tab, f"check.words.{unit}") for unit in ("°C", "MHz", "W")]
    assert [words.split(", ")[1] for words in shown] == ["now 63 °C", "now 1468 MHz", "now 21 W"]
    shown = [row[1] for row in table(tab, "check.stages")]
    assert shown == ["! Inconclusive", "✓ Passed", "✓ Passed", "● Running", "○ Waiting"]
    assert chip(tab)[0] == "quiet"
    assert chip(tab)[1] == "Running, about 90 s left"
    assert "final after the last stage" in text(tab, "check.next")
    curve = find(tab, "check.curves.°C", LivePlot)._curves["temperature_c"]
    wait_until(lambda: curve.shown is not None and len(curve.shown.xs) > 60)
    assert curve.shown is not None
    assert curve.shown.ys[-1] == 63
    for name in ("check.device", "check.minutes", "check.plant", "check.open"):
        assert not find(tab, name).isEnabled(), name
    engine.go()
    wait_over(tab)


# ── after ────────────────────────────────────────────────────────────────────────────────────────


@with_cards
def test_a_pass_says_what_was_tested_and_no_more(tab: CheckTab, ready_studio: Studio) -> None:
    ready_studio.snippets.turn_to(CHECK)
    assert 'torch.device("cuda:0")' in ready_studio.snippets.snippet
    assert "PCI_BUS_ID" in ready_studio.snippets.snippet, "of two cards, it means the same one"
    run(tab)

    assert text(tab, "check.errors") == "0 errors"
    assert chip(tab) == ("good", "Passed")
    assert property_of(tab, "check.errors", "tone") == "good"
    assert "Passing cannot rule out every fault." in text(tab, "check.doing")
    assert text(tab, "check.next").startswith("Next: ")
    assert states(tab) == ["Passed"] * 5
    labels = [
        one.text()
        for one in tab.findChildren(QLabel)
        if one.isVisible() and not one.property("chip")
    ]
    assert len(" ".join(labels).split()) <= 90
    tab.present(is_presented=True)
    assert sees(tab, "check.errors")
    assert not sees(tab, "check.run")
    assert what_was_tested(tab, "Video memory").startswith("1.37 GiB")


@with_cards
def test_a_fault_made_on_purpose_is_marked_everywhere(
    tab: CheckTab, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = PLANTED_FAULTS[1]
    answer_with(engines, pause_in="memory", findings={"memory": (wrong_bit(),)})
    choose(tab, "check.plant", fault.title)
    QTest.keyClick(find(tab, "check.plant"), Qt.Key.Key_Return)
    assert fault.does in text(tab, "check.next")
    click(tab, "check.run")
    engine = paused(engines)
    wait_until(lambda: PLANTED_MARK in text(tab, "check.planted"))
    wait_until(lambda: text(tab, "check.errors") == "1 error so far")
    assert property_of(tab, "check.errors", "tone") == "failure", "at once"
    engine.go()
    wait_over(tab)

    assert requests_of(engines)[0].plant == fault.kind
    assert PLANTED_MARK in text(tab, "check.planted")
    assert saved(tab, tmp_path / "a.png", monkeypatch).planted == fault.kind


# ── records ──────────────────────────────────────────────────────────────────────────────────────


def saved(tab: CheckTab, path: Path, monkeypatch: pytest.MonkeyPatch, kind: str = "") -> Any:
    """Save the shown record; return it as it is read back."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), kind))
    click(tab, "check.save")
    wait_until(lambda: text(tab, "check.outcome"))
    return msgspec.structs.replace(read_record(path), origin="")


@with_cards
@pytest.mark.parametrize("name", ["record.png", "record.json"])
def test_a_record_is_saved_and_opens_again(
    tab: CheckTab, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    answer_with(engines, findings={"memory": (wrong_bit(),)})
    run(tab)
    first = tab.check.record
    assert saved(tab, tmp_path / name, monkeypatch) == first
    assert text(tab, "check.outcome") == f"Saved as {tmp_path / name}"
    answer_with(engines)
    wait_until(find(tab, "check.run").isEnabled)
    run(tab)
    assert text(tab, "check.errors") == "0 errors"
    assert not sees(tab, "check.outcome"), "what was saved is the check before"

    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tmp_path / name), ""))
    click(tab, "check.open")
    opened = msgspec.structs.replace(first, origin=name)
    wait_until(lambda: tab.check.record == opened)

    assert text(tab, "check.errors") == "1 error"
    assert name in text(tab, "check.origin")
    assert sees(tab, "check.curves.°C"), "the curves are in the record"


@with_cards
def test_where_a_record_cannot_be_saved_or_opened_it_is_reported(
    tab: CheckTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tab)
    missing = str(tmp_path / "missing" / "a.png")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (missing, ""))
    click(tab, "check.save")
    assert missing in text(tab, "check.outcome")
    assert property_of(tab, "check.outcome", "tone") == "failure"

    before = tab.check.record
    (tmp_path / "photo.json").write_text("no record")
    tab.check.open_file(tmp_path / "photo.json")
    wait_until(lambda: "photo.json" in text(tab, "check.outcome"))
    assert tab.check.record == before


@with_cards
def test_earlier_checks_of_this_pc_can_be_seen_again(tab: CheckTab, engines: Engines) -> None:
    answer_with(engines, findings={"memory": (wrong_bit(),)})
    assert not sees(tab, "check.records")
    run(tab)
    first = tab.check.record
    wait_until(lambda: len(tab.check.kept) == 1 and find(tab, "check.run").isEnabled())
    answer_with(engines)
    run(tab)
    wait_until(lambda: len(tab.check.kept) == 2)

    menu = find(tab, "check.records", QPushButton).menu()
    menu.aboutToShow.emit()
    next(action for action in menu.actions() if "Failed" in action.text()).trigger()
    wait_until(lambda: text(tab, "check.errors") == "1 error")
    assert tab.check.record == first


# ── in the window ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def window(pages_on_sight: None, whole_window: MainWindow) -> MainWindow:
    return whole_window


@pytest.fixture
def whole_window(qtbot: QtBot, studio: Studio, theme: Theme) -> Iterator[MainWindow]:
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    wait_until(lambda: studio.session.is_free and studio.sensors.inventory)
    yield window
    window.close()


def in_front(window: MainWindow) -> str:
    tabs = find(window, "tabs", QTabWidget)
    return tabs.tabText(tabs.currentIndex())


@pytest.fixture
def cut_off(tmp_path: Path) -> None:
    """An overnight check that a restart of the PC ended in the memory stage."""
    before = CheckFolder(tmp_path / "data" / "checks", "yesterday")
    before.keep_progress("one", check_until("memory").record(), "card one")


@with_cards
def test_a_check_that_was_cut_off_is_reported_on_every_tab_and_a_result(
    cut_off: None, whole_window: MainWindow
) -> None:
    assert in_front(whole_window) == "Devices"
    wait_until(lambda: "restarted 22 minutes" in text(whole_window, "banner.sentence"))
    click(whole_window, "banner.action")

    assert in_front(whole_window) == "Check"
    assert not sees(whole_window, "banner.sentence"), "the tab says it itself"
    wait_until(lambda: "restarted" in text(whole_window, "check.doing"))
    assert text(whole_window, "check.errors") == "Interrupted"
    assert find(whole_window, "check.run").isEnabled()


@with_cards
def test_the_other_tabs_say_that_they_wait_for_the_check(
    window: MainWindow, engines: Engines
) -> None:
    answer_with(engines, pause_in="memory")
    open_tab(window, "Check")
    click(window, "check.run")
    engine = paused(engines)
    assert not sees(window, "banner.sentence"), "this tab shows the check itself"
    for tab in TABS:
        if tab.page == CHECK:
            continue
        open_tab(window, tab.title)
        assert text(window, "banner.sentence").startswith("GT 1030 is being checked.")
    assert text(window, "status") == "PyTorch: waiting for other work"
    click(window, "banner.action")
    assert in_front(window) == "Check"
    open_tab(window, "Race")
    assert sees(window, "banner.sentence"), "it still waits"
    engine.go()
    wait_until(lambda: not sees(window, "banner.sentence"))


@with_cards
def test_the_devices_tab_leads_to_the_check_of_its_card(window: MainWindow) -> None:
    button = find(window, "devices.check", QPushButton)
    wait_until(button.isVisible)
    assert button.text() == "Check this card"
    click(window, "devices.check")

    assert in_front(window) == "Check"
    wait_until(lambda: find(window, "check.run").isEnabled())
    assert find(window, "check.device", QComboBox).currentText() == "GT 1030"
