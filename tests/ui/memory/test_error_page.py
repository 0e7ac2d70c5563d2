"""Reading an error."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit

from gpu_studio.core.memory.oom_reader import explain_oom_text
from gpu_studio.ui.memory.error_page import ErrorPage
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.parts import Text
from tests.driving.memory import every_control_is_named, shown
from tests.driving.window import click, find, text


@pytest.fixture
def reader(theme, qtbot):
    return shown(qtbot, ErrorPage(theme))


def paste(page, words):
    find(page, "memory.error.text", QPlainTextEdit).setPlainText(words)


def test_an_error_becomes_a_tank_a_meaning_and_what_to_try(reader, qtbot):
    empty = text(reader, "memory.error.headline")
    error = (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 3.95 GiB total "
        "capacity; 3.01 GiB already allocated; 2.00 MiB free; 3.43 GiB reserved in total by "
        "PyTorch)"
    )
    paste(reader, error)
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") != empty)
    explained = explain_oom_text(error)
    assert explained.kind == "fragmented"
    assert text(reader, "memory.error.headline") == explained.headline
    tank = find(reader, "memory.error.tank", TankBar).tank
    assert {part.key for part in tank.parts} >= {"tensors", "holes", "free", "not_told"}
    assert "20 MiB" in text(reader, "memory.error.meaning")
    assert "expandable_segments" in text(reader, "memory.error.advice")
    assert text(reader, "memory.error.part")  # how exact the error's numbers are


def test_an_error_without_numbers_has_a_meaning_and_no_tank(reader, qtbot):
    error = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"
    paste(reader, error)
    headline = explain_oom_text(error).headline
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") == headline)
    assert "cuBLAS" in headline
    assert find(reader, "memory.error.tank").isHidden()


@pytest.mark.parametrize("words", ["hello", "\0" * 50, "<b>CUDA</b> " * 1000])
def test_any_other_text_gets_a_clear_sentence(reader, qtbot, words):
    empty = text(reader, "memory.error.headline")
    paste(reader, words)
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") != empty)
    assert explain_oom_text(words) is None
    assert find(reader, "memory.error.advice").isHidden()
    assert find(reader, "memory.error.tank").isHidden()


def test_the_example_is_one_and_clear_takes_it_away(reader, qtbot):
    empty = text(reader, "memory.error.headline")
    click(reader, "memory.error.example")
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") != empty)
    example = find(reader, "memory.error.text", QPlainTextEdit).toPlainText()
    assert text(reader, "memory.error.headline") == explain_oom_text(example).headline
    click(reader, "memory.error.clear")
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") == empty)


def test_what_was_moved_to_ram_is_drawn_beyond_a_line(reader, qtbot):
    card = (
        "GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Of the allocated memory "
    )
    held = " is allocated by PyTorch, and 2.00 MiB is reserved by PyTorch but unallocated."
    paste(reader, f"{card}14.00 GiB{held}")
    qtbot.waitUntil(lambda: "full" in text(reader, "memory.error.headline"))
    assert "end of the card" in text(reader, "memory.error.part")
    tank = find(reader, "memory.error.tank", TankBar).tank
    assert (tank.card_bytes, tank.total_bytes) == (8 << 30, (14 << 30) + (2 << 20))
    paste(reader, f"{card}7.00 GiB{held}")
    qtbot.waitUntil(lambda: "end of the card" not in text(reader, "memory.error.part"))


def test_every_control_has_a_name_to_be_read_aloud(reader):
    every_control_is_named(reader)


def test_of_a_long_log_only_the_end_is_pasted(reader, qtbot):
    box = find(reader, "memory.error.text", QPlainTextEdit)
    cut = find(reader, "memory.error.cut", Text)
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."
    QGuiApplication.clipboard().setText("step 1\n" * 100_000 + error)
    box.paste()
    assert len(box.toPlainText()) == 200_000
    assert box.toPlainText().endswith(error)
    assert not cut.isHidden()
    assert "200,000" in cut.text()
    click(reader, "memory.error.clear")
    assert cut.isHidden()
    QGuiApplication.clipboard().setText(error)
    box.paste()
    assert box.toPlainText() == error
    assert cut.isHidden()
