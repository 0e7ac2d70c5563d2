"""Lessons: chosen in the list, broken, fixed, run, and what is shown of them."""

from __future__ import annotations

import math

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QTableView, QTextEdit

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome, RunPitfall
from gpu_studio.core.switcher.pitfall_words import ChangedLine
from gpu_studio.engine.pitfalls.registry import PITFALLS as EVERY_PITFALL
from gpu_studio.model.pages import LESSONS, SWITCHER, Destination
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.switcher.lessons_page import ChangedCode
from tests.driving.window import choose_row, click, entries, find, numbers, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import pitfall_finished
from tests.ui.switcher.lessons import PITFALLS, WORKLOADS


@pytest.fixture
def lab(tab):
    tab.pages.go_to(LESSONS)
    return tab


_LIST = "switcher.lab.list"


def choose(lab, title):
    choose_row(lab, _LIST, entries(lab, _LIST).index(title))


def test_another_page_opens_a_lesson(tab):
    last = PITFALLS[-1]
    tab.go_to(Destination(page=LESSONS, lesson=last.name))
    assert text(tab, "switcher.lab.title") == last.title


def test_broken_why_and_fixed(lab, engines, studio, qtbot):
    mixed = PITFALLS[0]
    assert text(lab, "switcher.lab.title") == mixed.title
    click(lab, "switcher.lab.about.more")
    assert text(lab, "switcher.lab.why") == mixed.why
    assert text(lab, "switcher.lab.remark") == mixed.remark
    assert find(lab, "switcher.lab.broken_card").isHidden()
    buttons = [find(lab, f"switcher.lab.{name}") for name in ("break", "fix")]
    assert [one.property("primary") for one in buttons] == [True, False]
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    assert text(lab, "switcher.lab.broken.error") == "RuntimeError: two devices"
    assert changed(lab) == ["− # broken", "+ # fixed"]
    assert find(lab, "switcher.lab.broken_card").property("tone") == "failure"
    assert find(lab, "switcher.lab.fixed_card").isHidden()
    assert [one.property("primary") for one in buttons] == [False, True]
    studio.snippets.turn_to(SWITCHER)
    assert studio.snippets.snippet == "# broken\n"
    click(lab, "switcher.lab.fix")
    qtbot.waitUntil(find(lab, "switcher.lab.fixed_card").isVisible)
    assert find(lab, "switcher.lab.fixed_card").property("tone") == "good"
    qtbot.waitUntil(lambda: f"{mixed.title}  ✔" in entries(lab, _LIST))
    assert studio.settings.choices.lessons == ("mixed_devices",)
    assert engines.requests[-1] == RunPitfall(name="mixed_devices", device="cuda:0", part="fixed")


def test_the_arrow_keys_go_from_lesson_to_lesson(lab, qtbot):
    lessons = find(lab, _LIST)
    lessons.setFocus()
    choose(lab, PITFALLS[-1].title)
    assert text(lab, "switcher.lab.title") == PITFALLS[-1].title
    assert find(lab, "switcher.lab.remark").isHidden()
    qtbot.keyClick(lessons, Qt.Key.Key_Down)
    assert text(lab, "switcher.lab.title") == "Feeding the card"
    assert find(lab, "switcher.lab.break").isHidden()
    assert find(lab, "switcher.lab.run").isVisible()


def test_an_experiment_shows_its_ways_and_their_loss(lab, studio, qtbot):
    choose(lab, "Feeding the card")
    click(lab, "switcher.lab.run")
    qtbot.waitUntil(lambda: studio.session.is_free)
    bars = find(lab, "switcher.lab.figures.0", ResultBars)
    assert [bar.name for bar in bars.bars] == ["a", "b"]
    busy = find(lab, "switcher.lab.busy", ResultBars)
    assert [[*dict(bar.parts)] for bar in busy.bars] == [["loading", "computing"]] * 2
    plot = find(lab, "switcher.lab.loss")
    assert plot.isVisible()
    assert plot.curve_keys == ("a", "b")
    choose(lab, PITFALLS[0].title)
    assert not bars.isVisible()
    assert not plot.isVisible()


def test_a_loss_curve_is_told_in_words(lab, engines, qtbot):
    learning = PitfallOutcome(part="broken", sentence="", curves={"loss": (2.0, 1.0)})
    finished = pitfall_finished(RunPitfall(name="mixed_devices", device="cpu", part="broken"))
    engines.scripts[RunPitfall] = [msgspec.structs.replace(finished, broken=learning)]
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    plot = find(lab, "switcher.lab.loss")
    assert plot.accessibleDescription().startswith("Broken")
    assert numbers(plot.accessibleDescription()) == ["2", "1", "2"]  # from, to, steps


@pytest.mark.usefixtures("impatient")
def test_while_one_runs_it_can_be_stopped_and_no_other_begins(lab, engines, qtbot):
    engines.scripts[RunPitfall] = [Pause(deaf=True)]
    assert not find(lab, "switcher.lab.stop").isVisible()
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(engines.latest.paused.is_set)
    assert not find(lab, "switcher.lab.break", QPushButton).isEnabled()
    assert not find(lab, "switcher.lab.fix").isEnabled()
    click(lab, "switcher.lab.stop")
    qtbot.waitUntil(find(lab, "switcher.lab.break").isEnabled)
    assert text(lab, "switcher.lab.answer")
    assert find(lab, "switcher.lab.answer_card").property("tone") == "failure"


def test_all_words_of_the_list_are_whole_in_a_window_of_900_by_520(lab, engines, studio, qtbot):
    every = described_with_cuda(
        pitfalls=tuple(one.description for one in EVERY_PITFALL), workloads=WORKLOADS
    )
    engines.scripts[DescribeEngine] = [every]
    studio.settings.change(lessons=tuple(one.name for one in every.pitfalls))
    studio.session.restart()
    lab.resize(900, 450)
    lessons = find(lab, _LIST, QTableView)
    qtbot.waitUntil(lambda: len(entries(lab, _LIST)) > len(EVERY_PITFALL))
    qtbot.waitUntil(lambda: lessons.sizeHintForColumn(1) <= lessons.columnWidth(1))
    assert lessons.columnWidth(0) + lessons.columnWidth(1) <= lessons.viewport().width()


def test_only_the_lines_that_the_fix_changes_stand_there_wrapped_and_marked(lab, engines, qtbot):
    same = "import torch\n" * 30
    long = "loader = DataLoader(photos, num_workers=0, pin_memory=False, batch_size=64, timeout=1)"
    engines.scripts[RunPitfall] = lambda _engine, request: [
        pitfall_finished(
            request,
            broken_snippet=f"{same}    {long}\n{same}",
            fixed_snippet=f"{same}    {long.replace('=0', '=2')}\n{same}wait()\n",
        )
    ]
    lab.resize(760, 500)
    click(lab, "switcher.lab.break")
    box = find(lab, "switcher.lab.code", QTextEdit)
    qtbot.waitUntil(box.isVisible)
    assert changed(lab) == [f"− {long}", f"+ {long.replace('=0', '=2')}", "  …", "+ wait()"]
    qtbot.waitUntil(lambda: box.document().size().height() <= box.viewport().height())
    assert box.document().idealWidth() <= box.viewport().width()
    assert box.document().begin().layout().lineCount() > 1
    shades = [
        box.document().findBlockByNumber(number).blockFormat().background().color()
        for number in range(4)
    ]
    assert shades[0] != shades[1] == shades[3] != shades[2]


def changed(lab):
    """Return the lines of code that the fix changes, with their signs."""
    return find(lab, "switcher.lab.code", QTextEdit).toPlainText().splitlines()


def test_changed_lines_that_come_while_hidden_have_their_height_when_shown(theme, qtbot):
    box = ChangedCode(theme, name="code")
    qtbot.addWidget(box)
    few = ((ChangedLine(is_added=True, text="x = 1"),),)
    for _ in range(3):
        box.show_places(few * 20)
        box.show_places(few)
    box.show()
    assert box.viewport().height() == math.ceil(box.document().size().height())
