"""A history on the page “What if”, replayed by real child processes."""

from __future__ import annotations

import pickle

import pytest
from PySide6.QtWidgets import QComboBox, QMenu

from gpu_studio.core.messages.memory_messages import (
    RunMemoryExperiment,
)
from gpu_studio.model.memory import what_if_model
from gpu_studio.model.pages import BREAK_IT, SEGMENTS, WHAT_IF, Destination
from gpu_studio.ui.memory.what_if_page import WhatIfPage
from tests.driving.memory import every_control_is_named, run, shown
from tests.driving.window import click, find, text
from tests.fakes.histories import TrainingHistory
from tests.fakes.memory_answers import memory_read, oom_finished


@pytest.fixture(autouse=True)
def choices_count_soon(monkeypatch):
    monkeypatch.setattr(what_if_model, "_AFTER_CHOOSING_MS", 0)


@pytest.fixture
def page(ready_studio, memory, qtbot):
    page = shown(qtbot, WhatIfPage(ready_studio, memory))
    yield page
    page.model.close()


@pytest.fixture
def path(tmp_path):
    training = TrainingHistory(batch=8)
    training.run(2, layers=6)
    training.write(tmp_path / "train.pickle")
    return tmp_path / "train.pickle"


def choose(page, **texts):
    for name, value in texts.items():
        field = find(page, f"memory.what_if.{name}")
        setter = field.setCurrentText if isinstance(field, QComboBox) else field.setText
        setter(value)


def test_a_history_is_answered_for_each_choice(page, path, qtbot):
    page.open_history(path)
    choose(page, card="0.75 GiB", other="0.2")
    qtbot.waitUntil(lambda: text(page, "memory.what_if.verdict").startswith("Fits from"))
    assert find(page, "memory.what_if.trust").isHidden()
    assert "memory_viz" in text(page, "memory.what_if.viewer")
    assert text(page, "memory.what_if.result.out_of_memory").startswith("✖ at")
    assert ".py:" in text(page, "memory.what_if.line")
    first = text(page, "memory.what_if.verdict")
    choose(page, card="80", other="2.2 GiB")
    qtbot.waitUntil(lambda: text(page, "memory.what_if.result.out_of_memory") == "✔ none")
    qtbot.waitUntil(lambda: text(page, "memory.what_if.verdict") not in (first, _LOOKING))
    assert find(page, "memory.what_if.failing").isHidden()


_LOOKING = "Looking for the smallest card…"


def test_a_choice_that_cannot_be_says_why(page, path, qtbot):
    page.open_history(path)
    qtbot.waitUntil(lambda: page.model.on_card is not None)
    before = page.model.choices
    for name, value, word in (
        ("card", "big", "card's memory"),
        ("card", "9999", "card's memory"),
        ("other", "x", "0.5 GiB"),
        ("other", "300", "whole card"),
        ("conf", "max_split_size_mb:3", "max_split_size_mb"),
    ):
        field = find(page, f"memory.what_if.{name}")
        usual = field.currentText() if isinstance(field, QComboBox) else field.text()
        choose(page, **{name: value})
        qtbot.waitUntil(lambda word=word: word in text(page, "memory.what_if.reason"))
        assert page.model.choices == before, value
        choose(page, **{name: usual})
        qtbot.waitUntil(lambda word=word: word not in text(page, "memory.what_if.reason"))


class Hostile:
    """Would run something if it were loaded."""

    def __reduce__(self):
        return (print, ("run",))


def test_a_refused_file_leaves_the_open_history(page, path, tmp_path, qtbot, capfd):
    page.open_history(path)
    qtbot.waitUntil(lambda: page.model.history is not None)
    (tmp_path / "theirs.pkl").write_bytes(pickle.dumps(Hostile()))
    page.open_history(tmp_path / "theirs.pkl")
    qtbot.waitUntil(lambda: "wants to run a program" in text(page, "memory.what_if.notice"))
    assert page.model.name == "train.pickle"
    assert "run" not in capfd.readouterr().out.split()


def test_the_lines_for_your_own_script_come_in_the_code_drawer(page, ready_studio, qtbot):
    menu = find(page, "memory.what_if.record.menu", QMenu)
    with qtbot.waitSignal(ready_studio.snippets.wanted):
        menu.actions()[0].trigger()
    ready_studio.snippets.turn_to(WHAT_IF)
    ready_studio.snippets.turn_to(type(WHAT_IF)("memory"))
    assert "_record_memory_history" in ready_studio.snippets.snippet
    compile(ready_studio.snippets.snippet, "snippet", "exec")


def test_an_experiment_is_recorded_and_replayed(tab, path, scripts, studio, qtbot):
    scripts[RunMemoryExperiment] = lambda _engine, request: [
        memory_read(mark="start"),
        oom_finished(snapshot_path=str(path) if request.snapshot_path else ""),
    ]
    tab.pages.go_to(WHAT_IF)
    page = tab.findChild(WhatIfPage)
    find(page, "memory.what_if.record.menu", QMenu).actions()[1].trigger()
    assert tab.pages.front == BREAK_IT
    run(tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.what_if").isVisible)
    click(tab, "memory.oom.what_if")
    qtbot.waitUntil(lambda: page.model.history is not None)
    assert tab.pages.front == WHAT_IF


def test_a_dropped_snapshot_of_one_moment_opens_on_the_map(tab, path, qtbot):
    whole = pickle.loads(path.read_bytes()) | {"device_traces": []}
    path.write_bytes(pickle.dumps(whole))
    tab.go_to(Destination(page=WHAT_IF, paths=(path,)))
    assert tab.pages.front == WHAT_IF
    qtbot.waitUntil(lambda: tab.pages.front == SEGMENTS)
    qtbot.waitUntil(lambda: text(tab, "memory.largest") == "train.pickle")


def test_every_control_has_a_name_to_be_read_aloud(page):
    every_control_is_named(page)
