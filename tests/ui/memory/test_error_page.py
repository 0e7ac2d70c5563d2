"""Read an error: a pasted text or a log, and what is known of it."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLabel, QPlainTextEdit

from gpu_studio.core.errors.reader import read_error
from gpu_studio.model.memory import error_model
from gpu_studio.model.memory.error_model import ErrorModel
from gpu_studio.model.pages import ERROR, MEMORY, Destination
from gpu_studio.model.worker import Worker
from gpu_studio.ui.memory.error_page import ErrorPage
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.memory import shown, start
from tests.driving.window import click, find, plain, sees, table, text
from tests.fakes.slow_work import SlowWork

FRAGMENTED = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 3.95 GiB total "
    "capacity; 3.01 GiB already allocated; 2.00 MiB free; 3.43 GiB reserved in total by PyTorch)"
)


@pytest.fixture
def page(memory, theme, qtbot):
    return shown(qtbot, ErrorPage(memory, theme))


def verdict(page) -> str:
    return text(page, "memory.error.verdict")


def folded(page, name: str) -> str:
    """Return a text of the details."""
    return plain(find(page, name, QLabel).text())


def paste(page, words) -> None:
    QGuiApplication.clipboard().setText(words)
    click(page, "memory.error.paste")


def test_an_error_becomes_a_verdict_with_its_bar_and_what_helps(page, qtbot):
    paste(page, FRAGMENTED)
    qtbot.waitUntil(lambda: verdict(page) == "Fragmented.")
    tank = find(page, "memory.error.tank", TankBar).tank
    assert {part.key for part in tank.parts} >= {"tensors", "holes", "free", "not_told"}
    assert "20 MiB" in text(page, "memory.error.sentence")
    assert "expandable_segments" in table(page, "memory.error.steps")[0][0]
    assert "two decimals" in text(page, "memory.error.told")
    paste(page, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`")
    qtbot.waitUntil(lambda: "cuBLAS" in verdict(page))
    assert not sees(page, "memory.error.tank")


@pytest.mark.parametrize("words", ["hello", "\0" * 50, "<b>CUDA</b> " * 1000])
def test_any_other_text_gets_a_clear_sentence(page, qtbot, words):
    paste(page, words)
    qtbot.waitUntil(lambda: verdict(page) == "This error is not known here.")
    assert not sees(page, "memory.error.tank")


def test_the_example_is_one_and_clear_takes_it_away(page, qtbot):
    assert verdict(page) == "Paste an error."
    click(page, "memory.error.example")
    example = find(page, "memory.error.text", QPlainTextEdit).toPlainText()
    headline = plain(read_error(example).answer.verdicts[0].notice.sentence)
    qtbot.waitUntil(lambda: verdict(page) == headline)
    click(page, "memory.error.clear")
    assert verdict(page) == "Paste an error."


def test_of_a_long_log_only_the_end_is_pasted(page, qtbot, tmp_path):
    box = find(page, "memory.error.text", QPlainTextEdit)
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."
    for way in (lambda: paste(page, "step 1\n" * 100_000 + error), box.paste):
        way()
        assert len(box.toPlainText()) == 200_000
        assert box.toPlainText().endswith(error)
        assert "200,000" in text(page, "memory.error.reason")
        click(page, "memory.error.clear")
        assert not sees(page, "memory.error.reason")
    log = tmp_path / "train.log"
    log.write_text(error, encoding="utf-16")
    page.model.open_file(log)
    qtbot.waitUntil(lambda: box.toPlainText() == error)
    assert not sees(page, "memory.error.reason")
    log.write_text("step 1\n" * 50_000 + error + "\nstep 2" * 50_000)
    page.model.open_file(log)
    qtbot.waitUntil(lambda: verdict(page) == "Out of memory.")
    assert len(box.toPlainText()) < 1000


def test_a_log_is_chosen_or_dropped(tab, studio, qtbot, tmp_path, monkeypatch):
    log = tmp_path / "comfy.log"
    log.write_text("AssertionError: Torch not compiled with CUDA enabled")
    start(tab, studio)
    tab.go_to(Destination(page=MEMORY, paths=(log,)))
    page = tab.findChild(ErrorPage)
    assert tab.pages.front == ERROR
    qtbot.waitUntil(lambda: "built for the CPU" in verdict(page))
    other = tmp_path / "other.txt"
    other.write_text("RuntimeError: No HIP GPUs are available")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(other), ""))
    click(page, "memory.error.open")
    qtbot.waitUntil(lambda: "AMD" in verdict(page))
    page.model.open_file(tmp_path)
    qtbot.waitUntil(lambda: "Cannot read" in text(page, "memory.error.reason"))
    paste(page, "RuntimeError: CUDA error: out of memory")
    qtbot.waitUntil(lambda: not sees(page, "memory.error.reason"))


def test_the_end_waits_for_the_reader_and_reads_no_more(tab, studio, monkeypatch, qtbot):
    slow_work = SlowWork(monkeypatch)
    monkeypatch.setattr(error_model, "read_error", slow_work)
    start(tab, studio)
    tab.pages.go_to(ERROR)
    model = tab.findChild(ErrorModel)
    model.choose(text="CUDA out of memory")
    qtbot.waitUntil(slow_work.has_begun.is_set)
    studio.close()
    assert slow_work.was_waited_for(model)
    slow_work.has_begun.clear()
    model.choose(text="CUDA error: out of memory")
    qtbot.waitUntil(lambda: not model.findChildren(Worker))
    assert not slow_work.has_begun.is_set()
