"""The page of pitfalls: broken, why, fixed."""

from __future__ import annotations

import math

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QListWidget,
    QPushButton,
    QTextEdit,
)

from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import (
    Figure,
    PitfallFailed,
    PitfallOutcome,
    RunPitfall,
)
from gpu_studio.core.switcher.pitfall_words import ChangedLine
from gpu_studio.model import pages
from gpu_studio.model.pages import SWITCHER
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.scroll_page import TabScroll
from gpu_studio.ui.switcher.changed_code import ChangedCode
from tests.driving.window import click, find, numbers, text
from tests.fakes.descriptions import described
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import pitfall, pitfall_finished
from tests.ui.switcher.answers import PITFALLS, free


def outcome(part, **changes):
    return PitfallOutcome(part=part, sentence=f"It was {part}.", **changes)


@pytest.fixture
def lab(tab):
    tab.pages.go_to(pages.PITFALLS)
    return tab


def test_broken_why_and_fixed(lab, engines, studio, qtbot):
    mixed = PITFALLS[0]
    assert text(lab, "switcher.lab.title") == mixed.title
    assert text(lab, "switcher.lab.why") == mixed.why
    assert text(lab, "switcher.lab.remark") == mixed.remark
    assert find(lab, "switcher.lab.broken_card").isHidden()
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    finished = pitfall_finished(RunPitfall(name="mixed_devices", device="cuda:0", part="broken"))
    assert text(lab, "switcher.lab.broken.error") == finished.broken.error
    assert changed(lab) == ["− # broken", "+ # fixed"]
    assert find(lab, "switcher.lab.broken_card").property("tone") == "failure"
    assert find(lab, "switcher.lab.fixed_card").isHidden()
    studio.snippets.turn_to(SWITCHER)
    assert studio.snippets.snippet == "# broken\n"
    click(lab, "switcher.lab.fix")
    qtbot.waitUntil(find(lab, "switcher.lab.fixed_card").isVisible)
    assert find(lab, "switcher.lab.fixed_card").property("tone") == "good"
    figures = [label.text() for label in find(lab, "switcher.lab.fixed_card").findChildren(QLabel)]
    assert "2.00\u202fms" in figures
    entry = find(lab, "switcher.lab.list", QListWidget).item(0)
    words = entry.data(Qt.ItemDataRole.AccessibleTextRole)
    assert all(part in words for part in ("broken", "fixed"))
    assert engines.requests[-1] == RunPitfall(name="mixed_devices", device="cuda:0", part="fixed")


def test_broken_and_fixed_stand_side_by_side_where_there_is_room(lab, qtbot):
    for name in ("break", "fix"):
        click(lab, f"switcher.lab.{name}")
        qtbot.waitUntil(find(lab, f"switcher.lab.{name}").isEnabled)
    broken, fixed = find(lab, "switcher.lab.broken_card"), find(lab, "switcher.lab.fixed_card")
    why = find(lab, "switcher.lab.why_card")
    qtbot.waitUntil(lambda: broken.y() < fixed.y() < why.y())
    lab.resize(1500, 900)
    qtbot.waitUntil(lambda: broken.y() == fixed.y() < why.y())
    assert broken.x() < fixed.x()


def test_another_pitfall_has_its_own_story(lab, qtbot):
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    find(lab, "switcher.lab.list", QListWidget).setCurrentRow(1)
    assert text(lab, "switcher.lab.title") == PITFALLS[1].title
    assert find(lab, "switcher.lab.broken_card").isHidden()
    assert find(lab, "switcher.lab.remark").isHidden()
    find(lab, "switcher.lab.list", QListWidget).setCurrentRow(0)
    assert find(lab, "switcher.lab.broken_card").isVisible()


def test_figures_of_a_card_that_nobody_has_tried_say_so(lab, engines, qtbot):
    sentence = untested_sentence("Intel")
    assert find(lab, "switcher.lab.untested").isHidden()
    engines.scripts[RunPitfall] = lambda _engine, request: [
        pitfall_finished(request, untested=sentence)
    ]
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.untested").isVisible)
    assert text(lab, "switcher.lab.untested") == sentence


def test_it_is_broken_on_the_device_that_is_chosen(lab, engines, studio, qtbot):
    find(lab, "switcher.lab.device", QComboBox).setCurrentText("cuda:1")
    click(lab, "switcher.lab.break")
    free(qtbot, studio)
    assert engines.requests[-1].device == "cuda:1"


def test_a_stand_in_is_labelled(lab, engines, qtbot):
    finished = pitfall_finished(RunPitfall(name="mixed_devices", device="cpu", part="broken"))
    stands_in = msgspec.structs.replace(finished.broken, stand_in="The meta device stands in.")
    engines.scripts[RunPitfall] = [msgspec.structs.replace(finished, broken=stands_in)]
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    assert "stand-in" in text(lab, "switcher.lab.broken.title")
    assert stands_in.stand_in in text(lab, "switcher.lab.broken.stand_in")


def test_a_loss_curve_is_drawn_and_reported(lab, engines, qtbot):
    finished = pitfall_finished(RunPitfall(name="mixed_devices", device="cpu", part="broken"))
    learning = outcome("broken", curves={"loss": (2.0, 1.0)})
    engines.scripts[RunPitfall] = [msgspec.structs.replace(finished, broken=learning)]
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    plot = find(lab, "switcher.lab.broken.plot")
    assert plot.isVisible()
    assert plot.curve_keys == ("loss",)
    assert plot.accessibleDescription().startswith("loss")
    assert numbers(plot.accessibleDescription()) == ["2", "1", "2"]  # from, to, steps
    assert find(lab, "switcher.lab.broken_card").property("tone") == "amber"  # slow, no error


def test_an_earlier_result_beside_an_error_is_marked_and_not_green(lab, engines, qtbot):
    def measure(_engine, request):
        value_s = {"broken": 0.002, "fixed": 0.001}[request.part]
        figure = Figure(name="call_s", title="A call", value=value_s, unit="s", aim="less")
        shown = outcome(request.part, figures=(figure,))
        return [pitfall_finished(request, **{request.part: shown})]

    engines.scripts[RunPitfall] = measure
    for name in ("break", "fix"):
        click(lab, f"switcher.lab.{name}")
        qtbot.waitUntil(find(lab, f"switcher.lab.{name}").isEnabled)
    cards = [find(lab, f"switcher.lab.{part}_card") for part in ("broken", "fixed")]
    titles = [text(lab, f"switcher.lab.{part}.title") for part in ("broken", "fixed")]
    assert [card.property("tone") for card in cards] == ["amber", "good"]
    assert find(lab, "switcher.lab.lesson_card").isVisible()
    failure = Failure(FailureKind.NO_KERNEL, "This PyTorch has no code for the GT 1030.")
    engines.scripts[RunPitfall] = [PitfallFailed(name="mixed_devices", failure=failure)]
    click(lab, "switcher.lab.fix")
    qtbot.waitUntil(find(lab, "switcher.lab.failure_card").isVisible)
    assert [card.property("tone") for card in cards] == ["", ""]
    for part, title in zip(("broken", "fixed"), titles, strict=True):
        assert text(lab, f"switcher.lab.{part}.title").startswith(title)
        assert "earlier" in text(lab, f"switcher.lab.{part}.title")
    assert find(lab, "switcher.lab.lesson_card").isHidden()


@pytest.mark.usefixtures("impatient")
def test_while_one_runs_it_can_be_stopped_and_no_other_begins(lab, engines, studio, qtbot):
    engines.scripts[RunPitfall] = [Pause(deaf=True)]
    assert find(lab, "switcher.lab.stop").isHidden()
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(engines.latest.paused.is_set)
    assert not find(lab, "switcher.lab.break", QPushButton).isEnabled()
    assert not find(lab, "switcher.lab.fix").isEnabled()
    click(lab, "switcher.lab.stop")
    qtbot.waitUntil(find(lab, "switcher.lab.break").isEnabled)
    assert text(lab, "switcher.lab.failure")
    assert find(lab, "switcher.lab.failure_card").isVisible()


def test_the_longest_title_is_whole_in_the_narrowest_window(lab, engines, studio, qtbot):
    long = pitfall("a_title_that_is_a_good_deal_longer_than_others")
    engines.scripts[DescribeEngine] = [described(pitfalls=(*PITFALLS, long))]
    studio.session.restart(studio.session.environment)
    entries = find(lab, "switcher.lab.list", QListWidget)
    qtbot.waitUntil(lambda: entries.count() == len(PITFALLS) + 1)
    lab.resize(640, 500)
    lab.show()
    title = entries.item(len(PITFALLS)).text()
    assert entries.fontMetrics().horizontalAdvance(title) < entries.viewport().width()


@pytest.mark.parametrize(
    ("fixed_s", "words", "tone"),
    [
        (0.001, "With the fix: a call 1.00 ms", "good"),
        (0.004, "The fix did not help here: a call 4.00 ms", "amber"),
    ],
)
def test_what_the_fix_did_to_the_number_is_reported_beside_it(
    lab, engines, qtbot, fixed_s, words, tone
):
    def measure(_engine, request):
        values_s = {"broken": 0.002, "fixed": fixed_s}
        figure = Figure(
            name="call_s", title="A call", value=values_s[request.part], unit="s", aim="less"
        )
        return [
            pitfall_finished(request, **{request.part: outcome(request.part, figures=(figure,))})
        ]

    engines.scripts[RunPitfall] = measure
    click(lab, "switcher.lab.fix")
    qtbot.waitUntil(find(lab, "switcher.lab.fixed_card").isVisible)
    assert find(lab, "switcher.lab.fixed.comparison").isHidden()
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.fixed.comparison").isVisible)
    assert text(lab, "switcher.lab.fixed.comparison").replace("\u202f", " ").startswith(words)
    assert find(lab, "switcher.lab.fixed_card").property("tone") == tone
    bars = find(lab, "switcher.lab.change.call_s", ResultBars)
    assert [(bar.name, bar.value) for bar in bars.bars] == [("Broken", 0.002), ("Fixed", fixed_s)]
    assert bars.bars[1].role == tone
    assert bars.isVisible()


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
    lab.resize(700, 500)
    click(lab, "switcher.lab.break")
    box = find(lab, "switcher.lab.code", QTextEdit)
    qtbot.waitUntil(box.isVisible)
    assert changed(lab) == [f"− {long}", f"+ {long.replace('=0', '=2')}", "  …", "+ wait()"]
    qtbot.waitUntil(lambda: box.document().size().height() <= box.viewport().height())
    assert box.document().idealWidth() <= box.viewport().width()
    assert box.document().begin().layout().lineCount() > 1
    shades = [block(box, number).blockFormat().background().color() for number in range(4)]
    assert shades[0] != shades[1] == shades[3] != shades[2]


def test_a_result_leaves_the_bars_and_the_code_in_view(lab, engines, qtbot):
    """In the smallest window that the program supports, and in one that shows only the buttons."""
    place = TabScroll(lab)
    qtbot.addWidget(place)
    place.resize(960, 450)
    place.show()
    lab.show()
    long = "# the same line\n" * 30

    def measure(_engine, request):
        value_s = {"broken": 0.002, "fixed": 0.001}[request.part]
        figures = tuple(
            Figure(name=name, title=name, value=value_s, unit="s", aim="less")
            for name in ("call_s", "whole_s")
        )
        shown = {request.part: outcome(request.part, figures=figures)}
        scripts = {"broken_snippet": f"{long}one()\n", "fixed_snippet": f"{long}other()\n"}
        return [pitfall_finished(request, **shown, **scripts)]

    engines.scripts[RunPitfall] = measure
    card = find(lab, "switcher.lab.lesson_card")
    for part in ("break", "fix"):
        click(lab, f"switcher.lab.{part}")
        qtbot.waitUntil(find(lab, f"switcher.lab.{part}").isEnabled)
        qtbot.waitUntil(card.isVisible)
        qtbot.waitUntil(lambda: is_whole(card, place))
    assert place.verticalScrollBar().value() == 0
    place.resize(960, 200)
    click(lab, "switcher.lab.break")
    qtbot.waitUntil(lambda: 0 <= top_of(card, place) < 40)
    place.takeWidget()  # the fixture closes the tab


def is_whole(card, place):
    top = top_of(card, place)
    return top >= 0 and top + card.height() <= place.viewport().height()


def changed(lab):
    """Return the lines of code that the fix changes, with their signs."""
    return find(lab, "switcher.lab.code", QTextEdit).toPlainText().splitlines()


def block(box, number):
    return box.document().findBlockByNumber(number)


def top_of(card, place):
    """Return how far under the top of what is shown a card begins, in pixels."""
    return card.mapTo(place.viewport(), QPoint(0, 0)).y()


def test_changed_lines_that_come_while_hidden_have_their_height_when_shown(theme, qtbot):
    box = ChangedCode(theme, name="code")
    qtbot.addWidget(box)
    few = ((ChangedLine(is_added=True, text="x = 1"),),)
    for _ in range(3):
        box.show_places(few * 20)
        box.show_places(few)
    box.show()
    assert box.viewport().height() == math.ceil(box.document().size().height())
