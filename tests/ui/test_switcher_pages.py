"""The Switcher's pages, as a person uses them, over scripted engines."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QTableView,
)

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption
from gpu_studio.core.protocol import (
    DescribeEngine,
    FileInspected,
    InspectFile,
    PitfallFailed,
    PitfallStarted,
    PlaceModel,
    PlaceTensors,
    RequestFailed,
    RunPitfall,
    RunWorkload,
    TensorsPlaced,
)
from gpu_studio.ui.switcher.switcher_place import PlacePage
from gpu_studio.ui.switcher_tab import SwitcherTab
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import two_cards
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import pitfall, pitfall_finished, place_finished, place_row
from tests.ui.by_name import click, find, text

PITFALLS = (
    pitfall("mixed_devices", remark="The book is wrong."),
    pitfall("visible_devices_too_late"),
    pitfall("model_on_cpu"),
)
WAYS = WorkloadOption(name="feed", title="The batches come", sentence="How.", values=("a", "b"))
WORKERS = WorkloadOption(name="workers", title="Workers", sentence="How many.", values=("0", "2"))


def workload(name, **changes):
    plain = WorkloadDescription(
        name=name, title=f"Title of {name}", sentence="It works.", dtypes=("float32",),
        sizes=(32, 64, 128), throughput_unit="FLOP/s", options=(WAYS, WORKERS),
        size_text="{size} samples",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


WORKLOADS = (
    *map(workload, ("dataloader", "train_step", "conv2d")),
    workload("data_parallel", skipped="It needs two cards, or two processes."),
)


def outcome(part, **changes):
    return PitfallOutcome(part=part, sentence=f"It was {part}.", **changes)


def fall(_engine, request):
    return [
        PitfallStarted(name=request.name, part=request.part, snippet=f"# {request.part}\n"),
        pitfall_finished(request),
    ]


@pytest.fixture
def inventory():
    return two_cards()


@pytest.fixture
def engines(engines, inventory):
    about = {"pitfalls": PITFALLS, "workloads": WORKLOADS}
    cuda = described_with_cuda(device_count=2, **about)
    engines.scripts |= {
        DescribeEngine: [cuda if inventory.cards else described(**about)],
        RunPitfall: fall,
        RunWorkload: lambda _engine, request: run_events(
            request,
            parts_s={"loading": 0.002, "computing": 0.001},
            curves={"loss": (2.0, 1.0, 0.5)},
            findings=(f"{request.options['feed']} was tried.",),
            peak_allocated_bytes=1 << 20,
        ),
        InspectFile: lambda _engine, request: [
            FileInspected(path=request.path, size_bytes=2048, tensors=2, tensor_bytes=1024)
        ],
        PlaceModel: lambda _engine, request: [
            place_row(device_after=request.device),
            place_finished(device=request.device, proof="values" if request.path else "output"),
        ],
        PlaceTensors: lambda _engine, request: [
            place_row("x", kind="tensor", device_after=request.device),
            TensorsPlaced(
                device=request.device, size=request.size, dtype=request.dtype, moved_bytes=400,
                cpu_made_s=1e-3, moved_s=2e-3, made_s=3e-3, same_values=True,
                result_device=request.device,
            ),
        ],
    }  # fmt: skip
    return engines


@pytest.fixture
def tab(engines, studio, theme, qtbot):
    tab = SwitcherTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(980, 640)
    tab.show()
    qtbot.waitExposed(tab)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and bool(tab.model.rows))
    return tab


def titles(tab):
    return [tab.pages.tabText(index) for index in range(tab.pages.count())]


def free(qtbot, studio):
    qtbot.waitUntil(lambda: studio.session.is_free)


# ── choose ───────────────────────────────────────────────────────────────────────────────────


def test_the_pages_are_made_when_they_are_looked_at(tab):
    assert titles(tab) == [
        "Choose", "Place", "Pitfalls", "Feeding", "AMP and reproducibility", "Several cards",
    ]  # fmt: skip
    assert tab.findChild(QListWidget, "switcher.lab.list") is None
    tab.show_page("Pitfalls")
    assert find(tab, "switcher.lab").isVisible()
    assert not find(tab, "switcher.cards").isVisible()


def test_what_comes_too_late_is_shown_live(tab, engines, studio, qtbot):
    click(qtbot, tab, "switcher.demonstrate")
    qtbot.waitUntil(lambda: "Too late: It was broken." in text(tab, "switcher.too_late"))
    assert text(tab, "switcher.in_time") == "In time: It was fixed."
    assert engines.requests[-1] == RunPitfall(
        name="visible_devices_too_late", device="cuda:0", part="both"
    )
    assert find(tab, "switcher.stand_in").isHidden()


def test_what_is_lost_is_said_beside_the_button_that_loses_it(tab):
    lost = find(tab, "switcher.explained", QLabel)
    assert "Models and memory of the present engine are lost" in lost.text()
    assert lost.parent() is find(tab, "switcher.visible_only").parent()


# ── place ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def placing(tab):
    tab.show_page("Place")
    return tab


def test_the_three_steps_stand_side_by_side(placing):
    cards = [find(placing, f"switcher.{name}_card") for name in ("identify", "tensors", "move")]
    assert len({card.y() for card in cards}) == 1
    assert [card.x() for card in cards] == sorted(card.x() for card in cards)


def test_tensors_are_placed_on_the_chosen_device(placing, engines, studio, qtbot):
    targets = find(placing, "switcher.target", QComboBox)
    targets.setCurrentIndex(2)
    targets.activated.emit(2)
    find(placing, "switcher.tensors.size", QComboBox).setCurrentIndex(0)
    click(qtbot, placing, "switcher.tensors.place")
    qtbot.waitUntil(lambda: "their product is on cuda:1" in text(placing, "switcher.proof"))
    assert engines.requests[-1] == PlaceTensors(device="cuda:1", size=256, dtype="float32")
    assert find(placing, "switcher.placement", QTableView).model().rowCount() == 1
    click(qtbot, placing, "switcher.move")
    qtbot.waitUntil(lambda: "same output" in text(placing, "switcher.proof"))
    assert "product" not in text(placing, "switcher.proof")


def test_half_is_chosen_beside_the_model(placing, engines, studio, qtbot):
    find(placing, "switcher.dtype", QComboBox).setCurrentText("float16")
    click(qtbot, placing, "switcher.move")
    free(qtbot, studio)
    assert engines.requests[-1].dtype == "float16"


def test_a_file_is_looked_at_before_it_can_be_moved(placing, engines, studio, qtbot):
    page = placing.findChild(PlacePage)
    page.open_path("/home/me/mine.pt")
    qtbot.waitUntil(lambda: "weights_only" in text(placing, "switcher.about_model"))
    assert "2 KiB on disk, 2 tensors of 1 KiB" in text(placing, "switcher.about_model")
    models = find(placing, "switcher.model", QComboBox)
    assert models.currentText() == "mine.pt"
    assert not any(isinstance(request, PlaceModel) for request in engines.requests)
    click(qtbot, placing, "switcher.move")
    qtbot.waitUntil(lambda: "what the file holds" in text(placing, "switcher.proof"))
    assert engines.requests[-1] == PlaceModel(path="/home/me/mine.pt", device="cuda:0")


def test_a_refused_file_says_why_and_the_model_stays(placing, engines, studio, qtbot):
    failure = Failure(FailureKind.FILE_REFUSED, "“evil.pt” has code in it.")
    engines.scripts[InspectFile] = [RequestFailed(failure=failure)]
    placing.findChild(PlacePage).open_path("evil.pt")
    qtbot.waitUntil(lambda: text(placing, "switcher.about_model") == failure.message)
    assert find(placing, "switcher.about_model").property("role") == "failure"
    models = find(placing, "switcher.model", QComboBox)
    assert models.currentText() == "Linear(10, 10)"
    models.activated.emit(0)
    assert text(placing, "switcher.about_model") == "One layer."


def test_no_file_chosen_is_no_request(placing, engines):
    before = len(engines.requests)
    placing.findChild(PlacePage).open_path("")
    assert len(engines.requests) == before


# ── pitfalls ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def lab(tab):
    tab.show_page("Pitfalls")
    return tab


def test_broken_why_and_fixed(lab, engines, studio, qtbot):
    assert text(lab, "switcher.lab.title") == "Mixed devices"
    assert text(lab, "switcher.lab.why") == "There is a reason."
    assert text(lab, "switcher.lab.remark") == "The book is wrong."
    assert find(lab, "switcher.lab.broken_card").isHidden()
    click(qtbot, lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    assert text(lab, "switcher.lab.broken.error") == "RuntimeError: two devices"
    assert find(lab, "switcher.lab.broken.code", QPlainTextEdit).toPlainText() == "# broken"
    assert find(lab, "switcher.lab.broken_card").property("tone") == "failure"
    assert find(lab, "switcher.lab.fixed_card").isHidden()
    assert studio.snippet == "# broken\n"
    click(qtbot, lab, "switcher.lab.fix")
    qtbot.waitUntil(find(lab, "switcher.lab.fixed_card").isVisible)
    assert find(lab, "switcher.lab.fixed_card").property("tone") == "good"
    figures = [label.text() for label in find(lab, "switcher.lab.fixed_card").findChildren(QLabel)]
    assert "2.00\u202fms" in figures
    assert find(lab, "switcher.lab.list", QListWidget).item(0).text().endswith("broken and fixed")
    assert engines.requests[-1] == RunPitfall(name="mixed_devices", device="cuda:0", part="fixed")


def test_broken_and_fixed_stand_side_by_side_where_there_is_room(lab, qtbot):
    for name in ("break", "fix"):
        click(qtbot, lab, f"switcher.lab.{name}")
        qtbot.waitUntil(find(lab, f"switcher.lab.{name}").isEnabled)
    broken, fixed = find(lab, "switcher.lab.broken_card"), find(lab, "switcher.lab.fixed_card")
    why = find(lab, "switcher.lab.why_card")
    qtbot.waitUntil(lambda: broken.y() < why.y() < fixed.y())
    lab.resize(1500, 900)
    qtbot.waitUntil(lambda: broken.y() == fixed.y() < why.y())
    assert broken.x() < fixed.x()


def test_another_pitfall_has_its_own_story(lab, qtbot):
    click(qtbot, lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    find(lab, "switcher.lab.list", QListWidget).setCurrentRow(1)
    assert text(lab, "switcher.lab.title") == "Visible devices too late"
    assert find(lab, "switcher.lab.broken_card").isHidden()
    assert find(lab, "switcher.lab.remark").isHidden()
    find(lab, "switcher.lab.list", QListWidget).setCurrentRow(0)
    assert find(lab, "switcher.lab.broken_card").isVisible()


def test_it_is_broken_on_the_device_that_is_chosen(lab, engines, studio, qtbot):
    find(lab, "switcher.lab.device", QComboBox).setCurrentText("cuda:1")
    click(qtbot, lab, "switcher.lab.break")
    free(qtbot, studio)
    assert engines.requests[-1].device == "cuda:1"


def test_a_stand_in_is_labelled(lab, engines, qtbot):
    finished = pitfall_finished(RunPitfall(name="mixed_devices", device="cpu", part="broken"))
    stands_in = msgspec.structs.replace(finished.broken, stand_in="The meta device stands in.")
    engines.scripts[RunPitfall] = [msgspec.structs.replace(finished, broken=stands_in)]
    click(qtbot, lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    assert text(lab, "switcher.lab.broken.title") == "Broken, with a stand-in"
    assert text(lab, "switcher.lab.broken.stand_in") == "Stand-in: The meta device stands in."


def test_a_loss_curve_is_drawn_and_said(lab, engines, qtbot):
    finished = pitfall_finished(RunPitfall(name="mixed_devices", device="cpu", part="broken"))
    learning = outcome("broken", curves={"loss": (2.0, 1.0)})
    engines.scripts[RunPitfall] = [msgspec.structs.replace(finished, broken=learning)]
    click(qtbot, lab, "switcher.lab.break")
    qtbot.waitUntil(find(lab, "switcher.lab.broken_card").isVisible)
    plot = find(lab, "switcher.lab.broken.plot")
    assert plot.isVisible()
    assert plot.curve_keys == ("loss",)
    assert plot.accessibleDescription() == "loss: 2 to 1 in 2 steps."
    assert find(lab, "switcher.lab.broken_card").property("tone") == "amber"  # slow, no error


def test_a_failure_that_is_not_the_point_is_told_as_one(lab, engines, qtbot):
    failure = Failure(FailureKind.NO_KERNEL, "This PyTorch has no code for the GT 1030.")
    engines.scripts[RunPitfall] = [PitfallFailed(name="mixed_devices", failure=failure)]
    click(qtbot, lab, "switcher.lab.break")
    qtbot.waitUntil(lambda: text(lab, "switcher.lab.failure") == failure.message)
    assert find(lab, "switcher.lab.failure_card").isVisible()
    assert find(lab, "switcher.lab.break").isEnabled()


@pytest.mark.usefixtures("impatient")
def test_while_one_runs_it_can_be_stopped_and_no_other_begins(lab, engines, studio, qtbot):
    engines.scripts[RunPitfall] = [Pause(deaf=True)]
    assert find(lab, "switcher.lab.stop").isHidden()
    click(qtbot, lab, "switcher.lab.break")
    qtbot.waitUntil(engines.latest.paused.is_set)
    assert find(lab, "switcher.lab.break", QPushButton).text() == "It runs …"
    assert not find(lab, "switcher.lab.fix").isEnabled()
    click(qtbot, lab, "switcher.lab.stop")
    qtbot.waitUntil(find(lab, "switcher.lab.break").isEnabled)
    assert "was ended before it had answered" in text(lab, "switcher.lab.failure")


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


# ── workloads side by side ───────────────────────────────────────────────────────────────────


@pytest.fixture
def feeding(tab):
    tab.show_page("Feeding")
    return tab


def test_all_ways_of_the_first_option_are_checked_and_the_default_of_the_others(feeding):
    boxes = {box.objectName(): box.isChecked() for box in feeding.findChildren(QCheckBox)}
    assert boxes == {
        "switcher.dataloader.feed.a": True, "switcher.dataloader.feed.b": True,
        "switcher.dataloader.workers.0": True, "switcher.dataloader.workers.2": False,
    }  # fmt: skip
    run = find(feeding, "switcher.dataloader.run", QPushButton)
    assert run.text() == "Run 2 ways"
    find(feeding, "switcher.dataloader.workers.2", QCheckBox).setChecked(True)
    assert run.text() == "Run 4 ways"


def test_the_ways_stand_side_by_side(feeding, engines, studio, qtbot):
    assert find(feeding, "switcher.dataloader.results").isHidden()
    click(qtbot, feeding, "switcher.dataloader.run")
    free(qtbot, studio)
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [request.options for request in asked] == [
        {"feed": "a", "workers": "0"}, {"feed": "b", "workers": "0"},
    ]  # fmt: skip
    assert {(request.device, request.size) for request in asked} == {("cuda:0", 64)}
    rows = find(feeding, "switcher.dataloader.results", QTableView).model()
    shown = [rows.index(row, 0).data() for row in range(rows.rowCount())]
    assert shown == ["a", "b"]
    assert rows.index(0, 2).data() == "1\u202fMiB"
    assert rows.index(0, 3).data() == "loading 2.00\u202fms, computing 1.00\u202fms"
    bars = find(feeding, "switcher.dataloader.parts").bars
    assert [[part.name for part in bar.parts] for bar in bars] == [["loading", "computing"]] * 2
    assert text(feeding, "switcher.dataloader.findings") == "a: a was tried.\nb: b was tried."
    plot = find(feeding, "switcher.dataloader.loss")
    assert plot.curve_keys == ("a", "b")


def test_every_way_is_in_sight_where_the_table_is_wider_than_the_window(
    feeding, engines, studio, qtbot
):
    feeding.resize(700, 900)
    feeding.show()
    click(qtbot, feeding, "switcher.dataloader.run")
    free(qtbot, studio)
    table = find(feeding, "switcher.dataloader.results", QTableView)
    table.horizontalHeader().setMinimumSectionSize(200)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() > 0)
    qtbot.waitUntil(lambda: table.verticalScrollBar().maximum() == 0)
    last = table.model().index(table.model().rowCount() - 1, 0)
    assert table.viewport().rect().contains(table.visualRect(last).bottomLeft())


def test_a_workload_that_cannot_run_says_why(tab):
    tab.show_page("Several cards")
    assert text(tab, "switcher.data_parallel.reason") == "It needs two cards, or two processes."
    assert not find(tab, "switcher.data_parallel.run").isEnabled()


def test_mixed_precision_and_the_same_bits_are_on_one_page(tab, engines, studio, qtbot):
    tab.show_page("AMP and reproducibility")
    for name in ("train_step", "conv2d"):
        assert text(tab, f"switcher.{name}.title") == f"Title of {name}"
    click(qtbot, tab, "switcher.conv2d.run")
    free(qtbot, studio)
    assert engines.requests[-1].workload == "conv2d"
    assert find(tab, "switcher.train_step.results").isHidden()


def test_a_run_that_fails_says_so_in_the_sentence(feeding, engines, studio, qtbot):
    failure = Failure(FailureKind.TOO_LARGE, "That does not fit.")
    engines.scripts[RunWorkload] = [RequestFailed(failure=failure)]
    click(qtbot, feeding, "switcher.dataloader.run")
    free(qtbot, studio)
    assert text(feeding, "switcher.dataloader.verdict") == "That does not fit."


def test_an_engine_without_the_workload_says_so(engines, studio, theme, qtbot):
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=())]
    tab = SwitcherTab(studio, theme)
    qtbot.addWidget(tab)
    tab.show_page("Feeding")
    assert "is starting" in text(tab, "switcher.dataloader.reason")
    studio.start()
    qtbot.waitUntil(lambda: "does not know" in text(tab, "switcher.dataloader.reason"))
    assert not find(tab, "switcher.dataloader.run").isEnabled()


@pytest.mark.parametrize("title", ["Place", "Pitfalls", "Feeding", "AMP and reproducibility"])
def test_every_control_of_a_page_has_a_name_and_fits(tab, title):
    tab.show_page(title)
    for kind in (QPushButton, QComboBox, QCheckBox, QListWidget, QTableView, QPlainTextEdit):
        for widget in tab.findChildren(kind):
            if not widget.objectName().startswith("qt_"):
                assert widget.objectName(), widget
                assert widget.accessibleName(), widget.objectName()
    tab.resize(760, 500)
    assert tab.minimumSizeHint().width() <= 780
    assert tab.minimumSizeHint().height() <= 500
