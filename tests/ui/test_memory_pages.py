"""The pages of the Memory tab that need no engine: reading an error, what fits, a snapshot."""

from __future__ import annotations

import pickle

import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QPlainTextEdit, QPushButton, QTableView

from gpu_studio.core.allocator import AllocatorModel
from gpu_studio.ui.memory.error_page import ErrorPage
from gpu_studio.ui.memory.fit_page import FitPage
from gpu_studio.ui.memory.memory_segments import SegmentPage
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.tank import TankBar
from tests.fakes.pc import cpu_only
from tests.ui.by_name import click, find, text

MIB = 1 << 20


def shown(qtbot, page):
    qtbot.addWidget(page)
    page.resize(980, 620)
    page.show()
    qtbot.waitExposed(page)
    return page


# ── reading an error ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def reader(theme, qtbot):
    return shown(qtbot, ErrorPage(theme))


def paste(page, words):
    find(page, "memory.error.text", QPlainTextEdit).setPlainText(words)


def test_an_error_becomes_a_tank_a_meaning_and_what_to_try(reader, qtbot):
    assert text(reader, "memory.error.headline") == "Paste one."
    paste(
        reader,
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 3.95 GiB total "
        "capacity; 3.41 GiB already allocated; 2.00 MiB free; 3.43 GiB reserved in total by "
        "PyTorch)",
    )
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") == "Fragmented.")
    tank = find(reader, "memory.error.tank", TankBar).tank
    assert {part.key for part in tank.parts} >= {"tensors", "holes", "free", "not_told"}
    assert "20 MiB were asked for" in text(reader, "memory.error.meaning")
    assert "expandable_segments" in text(reader, "memory.error.advice")
    numbers = find(reader, "memory.error.numbers", QTableView).model()
    assert numbers.index(0, 0).data() == "Tried to allocate"
    exact = [[numbers.index(row, column).data() for column in (1, 2)] for row in range(2)]
    assert exact == [["20\u202fMiB", "± 5.12\u202fKiB"], ["3.95\u202fGiB", "± 5.12\u202fMiB"]]
    assert "to two decimals" in text(reader, "memory.error.part")


def test_an_error_without_numbers_has_a_meaning_and_no_tank(reader, qtbot):
    paste(
        reader, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"
    )
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") == "cuBLAS got no memory.")
    assert find(reader, "memory.error.tank").isHidden()
    assert find(reader, "memory.error.numbers_card").isHidden()


@pytest.mark.parametrize("words", ["hello", "\0" * 50, "<b>CUDA</b> " * 1000])
def test_any_other_text_gets_a_clear_sentence(reader, qtbot, words):
    paste(reader, words)
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") == "Not an out-of-memory error.")
    assert "CUDA out of memory" in text(reader, "memory.error.meaning")
    assert find(reader, "memory.error.advice").isHidden()


def test_the_example_is_one_and_clear_takes_it_away(reader, qtbot):
    click(qtbot, reader, "memory.error.example")
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") == "The card is full.")
    click(qtbot, reader, "memory.error.clear")
    qtbot.waitUntil(lambda: text(reader, "memory.error.headline") == "Paste one.")


def test_of_several_errors_the_first_is_explained_or_the_last(reader, qtbot):
    def free():
        numbers = find(reader, "memory.error.numbers", QTableView).model()
        rows = [[numbers.index(r, c).data() for c in (0, 1)] for r in range(numbers.rowCount())]
        return dict(rows)["Free on the card"].replace("\u202f", " ")

    last = find(reader, "memory.error.last", QCheckBox)
    assert last.isHidden()
    one = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1.95 GiB "
    paste(reader, f"{one}of which 1.00 GiB is free.\n{one}of which 3.00 MiB is free.")
    qtbot.waitUntil(lambda: "2 errors" in text(reader, "memory.error.meaning"))
    assert (free(), last.isVisible()) == ("1 GiB", True)
    last.click()
    assert "this is the last" in text(reader, "memory.error.meaning")
    assert free() == "3 MiB"
    paste(reader, f"{one}of which 1.00 GiB is free.")
    qtbot.waitUntil(last.isHidden)
    assert "errors" not in text(reader, "memory.error.meaning")


# ── will it fit ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def inventory():
    return cpu_only()


@pytest.fixture
def memory(ready_studio, qtbot):
    from gpu_studio.model.memory import MemoryModel

    memory = MemoryModel(ready_studio, ready_studio)
    qtbot.waitUntil(lambda: memory.chosen.is_modelled)
    return memory


@pytest.fixture
def fits(memory, theme, qtbot):
    return shown(qtbot, FitPage(memory, theme))


def test_what_a_modelled_gt_1030_holds_and_what_not(fits, qtbot):
    qtbot.waitUntil(lambda: bool(text(fits, "memory.fit.sentence")), timeout=20_000)
    card = text(fits, "memory.fit.card")
    assert "GT 1030" in card
    assert card.endswith("MODELLED")
    side = int(text(fits, "memory.fit.matrix").split()[0])
    free = AllocatorModel(1996 * MIB, 60 * MIB)
    free.allocate(4 * side * side)  # the model itself says so
    assert 22_000 < side < 23_000
    assert text(fits, "memory.fit.inference.verdict").startswith("✖ Inference does not fit: 1.")
    assert "Training with Adam does not fit: 13.0 GiB are missing" in text(
        fits, "memory.fit.training_fit.verdict"
    )
    tank = find(fits, "memory.fit.training_fit.tank", TankBar)
    assert tank.tank.card_bytes == 1996 * MIB
    tank.grab()
    network = find(fits, "memory.fit.parameters", QComboBox)
    network.setCurrentText("124M")
    qtbot.waitUntil(
        lambda: text(fits, "memory.fit.training_fit.verdict") == "✔ Training with Adam fits",
        timeout=20_000,
    )


def test_a_number_that_is_none_is_refused_in_place(fits, qtbot):
    network = find(fits, "memory.fit.parameters", QComboBox)
    network.setCurrentText("lots")
    assert "7B" in text(fits, "memory.fit.reason")
    assert network.lineEdit().property("invalid") is True
    network.setCurrentText("7B")
    assert text(fits, "memory.fit.reason") == ""
    assert network.lineEdit().property("invalid") is False


def test_the_pcs_ram_is_no_card(memory, fits):
    memory.devices.choose("cpu")
    assert "Choose a card above" in text(fits, "memory.fit.reason")


# ── snapshots ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def segments(memory, theme, qtbot):
    return shown(qtbot, SegmentPage(memory, theme))


def test_a_snapshot_from_a_file_is_drawn_and_put_away_again(segments, tmp_path, qtbot):
    model = AllocatorModel(2 << 30)
    kept = [model.allocate(3 * MIB) for _ in range(8)]
    model.free(kept[3])
    path = tmp_path / "theirs.pickle"
    path.write_bytes(pickle.dumps(model.snapshot()))
    segments.open_snapshot(path)
    view = find(segments, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None and len(view.blocks) == 2)
    assert text(segments, "memory.largest") == "theirs.pickle"
    assert "21 MiB allocated of 40 MiB reserved" in text(segments, "memory.fragmentation")
    click(qtbot, segments, "memory.snapshot.close")
    assert view.blocks is None
    assert find(segments, "memory.snapshot.close").isHidden()


class Hostile:
    """Would run something if it were loaded."""

    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize(
    "content", [pickle.dumps(Hostile()), b"", b"not a pickle", pickle.dumps({"segments": [1]})]
)
def test_anything_else_is_refused_with_the_reason(segments, tmp_path, qtbot, capsys, content):
    path = tmp_path / "theirs.pickle"
    path.write_bytes(content)
    segments.open_snapshot(path)
    qtbot.waitUntil(lambda: "theirs.pickle" in text(segments, "memory.snapshot.refusal"))
    assert find(segments, "memory.snapshot.refusal").isVisible()
    assert find(segments, "memory.segments", SegmentMapView).blocks is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("page", ["reader", "fits", "segments"])
def test_every_control_has_a_name_to_be_read_aloud(request, page):
    made = request.getfixturevalue(page)
    for kind in (QPushButton, QComboBox, QTableView, TankBar, QPlainTextEdit):
        for widget in made.findChildren(kind):
            assert widget.accessibleName(), widget.objectName()
            assert widget.objectName(), widget
