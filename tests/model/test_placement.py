from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    DeviceUsed,
    EngineEnded,
    PlaceModel,
    RequestFailed,
    RunWorkload,
    UseDevice,
)
from gpu_studio.model.placement import PlacementModel
from gpu_studio.model.placement_table import (
    AFTER,
    BEFORE,
    BYTES,
    DEVICE_ROLE,
    HEADINGS,
    NAME,
    SHAPE,
    PlacementTable,
)
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, reading, rtx_3060_card, two_cards
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import place_finished, place_row

SECOND = rtx_3060_card().uuid


def plain(text):
    return text.replace("\u202f", " ")


@pytest.fixture
def inventory():
    return two_cards()


@pytest.fixture
def scripts(engines, inventory):
    """Engines that see what their environment shows them."""

    def describe(engine, _request):
        shown = engine.environment.visible_devices
        count = len(inventory.cards) if shown is None else 1
        cuda = described_with_cuda(device_count=count, visible_devices=shown)
        return [cuda if inventory.cards else described()]

    engines.scripts |= {
        DescribeEngine: describe,
        UseDevice: lambda _engine, request: [
            DeviceUsed(cuda_index=request.cuda_index, name="NVIDIA GeForce RTX 3060")
        ],
        PlaceModel: lambda _engine, request: [
            place_row("weight", device_after=request.device),
            place_row("bias", (10,), device_after=request.device),
            place_finished(device=request.device),
        ],
    }
    return engines.scripts


@pytest.fixture
def model(scripts, ready_studio):
    return PlacementModel(ready_studio, ready_studio)


def idle(qtbot, model):
    qtbot.waitUntil(lambda: model.parent().session.state.is_idle)


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def test_the_cpu_and_every_card_are_rows(model):
    assert [(row.number, row.name, row.address) for row in model.rows] == [
        ("cpu", "Ryzen 7 5700G with Radeon Graphics", "cpu"),
        ("cuda:0", "GT 1030", "cuda:0"),
        ("cuda:1", "RTX 3060", "cuda:1"),
    ]
    assert "always there" in model.rows[0].facts
    assert "current by default" in model.rows[1].facts
    assert model.rows[0].about == ""
    assert model.rows[1].about == (
        "nvidia-smi 0 = cuda:0 = drives your monitor  ·  compute capability 6.1  ·  this PyTorch "
        "can use it"
    )
    assert model.chosen.address == "cuda:0"


def test_free_memory_is_live(model, sensor_source, inventory, qtbot):
    assert plain(model.rows[1].facts).startswith("2 GiB")
    sensor_source.send(reading(inventory))
    qtbot.waitUntil(lambda: plain(model.rows[1].facts).startswith("1.66 GiB of 2 GiB free"))


def test_the_chosen_card_is_used(model, engines, qtbot):
    model.choose(SECOND)
    assert model.can_use
    model.use()
    assert not model.can_use, "one at a time"
    qtbot.waitUntil(lambda: model.said_of_choice.text != "")
    assert model.said_of_choice.text == "cuda:1 GeForce RTX 3060 is now the current card."
    assert engines.requests[-1] == UseDevice(cuda_index=1)
    idle(qtbot, model)
    assert model.rows[2].is_current
    assert not model.rows[1].is_current
    assert model.can_use


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (FailureKind.NO_CUDA, "CUDA is not available: PyTorch finds no NVIDIA driver on this PC."),
        (FailureKind.NO_SUCH_DEVICE, "cuda:1 is not there: this PC has cuda:0."),
    ],
)
def test_the_two_errors_of_choosing_keep_the_engines_sentence(
    model, scripts, qtbot, kind, sentence
):
    scripts[UseDevice] = [RequestFailed(failure=Failure(kind, sentence))]
    model.choose(SECOND)
    model.use()
    qtbot.waitUntil(lambda: model.said_of_choice.tone == "failure")
    assert model.said_of_choice.text.startswith(sentence)
    assert model.rows[1].is_current
    assert model.can_use


def test_an_engine_that_dies_while_a_card_is_chosen_is_told(model, scripts, qtbot):
    scripts[UseDevice] = [EngineEnded(exit_code=-6)]
    model.use()
    qtbot.waitUntil(lambda: model.said_of_choice.tone == "failure")
    assert "signal 6" in model.said_of_choice.text
    idle(qtbot, model)
    assert model.can_use


def test_the_cpu_has_no_number_to_be_used_by(model, engines):
    model.choose("cpu")
    assert not model.can_use
    assert not model.can_show_only
    before = len(engines.requests)
    model.use()
    model.show_only()
    assert len(engines.requests) == before
    assert len(engines.made) == 1


def test_showing_one_card_is_a_fresh_engine_with_its_uuid(model, engines, qtbot):
    model.choose(SECOND)
    model.show_only()
    assert engines.latest.environment.visible_devices == SECOND
    qtbot.waitUntil(lambda: model.rows[2].number == "cuda:0")
    assert model.rows[1].number == "hidden"
    assert "hidden by CUDA_VISIBLE_DEVICES" in model.rows[1].facts
    assert model.rows[1].address is None
    assert model.rows[1].warning == ""
    assert model.said_of_choice.text == "The fresh engine sees 1 card."
    idle(qtbot, model)
    assert not model.can_show_only, "it is shown alone already"
    model.show_all()
    assert engines.latest.environment.visible_devices is None
    qtbot.waitUntil(lambda: model.rows[2].number == "cuda:1")
    assert model.said_of_choice.text == "The fresh engine sees 2 cards."
    idle(qtbot, model)
    assert not model.can_show_all


def test_a_hidden_card_can_be_shown_but_not_used(model, qtbot):
    model.choose(SECOND)
    model.show_only()
    qtbot.waitUntil(lambda: model.rows[1].number == "hidden")
    idle(qtbot, model)
    model.choose(model.rows[1].identity)
    assert not model.can_use
    assert not model.can_move
    assert model.can_show_only


def test_nobodys_run_is_ended_by_showing_one_card(model, scripts, engines, qtbot):
    scripts[RunWorkload] = [Pause()]
    request = RunWorkload(run_id="r", workload="w", device="cpu", size=1, dtype="float32")
    session = model.parent().session
    session.submit(request)
    qtbot.waitUntil(engines.latest.paused.is_set)
    assert not model.can_show_only
    model.show_only()
    assert len(engines.made) == 1
    session.stop(request)
    idle(qtbot, model)
    assert model.can_show_only


def test_a_card_without_a_uuid_cannot_be_shown_alone(scripts, studio, sensor_source, qtbot):
    import msgspec

    nameless = msgspec.structs.replace(
        two_cards(), devices=(*two_cards().devices[:2], rtx_3060_card(uuid=None))
    )
    sensor_source._events[0] = nameless
    model = PlacementModel(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and len(model.rows) == 3)
    model.show_only()
    qtbot.waitUntil(lambda: model.rows[2].number == "hidden" and model.can_show_all)
    model.choose(model.rows[2].identity)
    assert not model.can_show_only


def test_without_a_sensor_reader_the_cards_are_those_the_engine_counts(
    scripts, studio, sensor_source, engines, qtbot
):
    sensor_source._events.clear()
    model = PlacementModel(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and len(model.rows) == 3)
    assert [row.number for row in model.rows] == ["cpu", "cuda:0", "cuda:1"]
    assert model.chosen.address == "cuda:0"
    model.choose("cuda:1")
    model.use()
    qtbot.waitUntil(lambda: model.rows[2].is_current)
    assert engines.requests[-1] == UseDevice(cuda_index=1)
    qtbot.waitUntil(lambda: studio.session.is_free)


def test_a_card_without_code_says_so_in_the_words_of_the_devices_tab(
    scripts, studio, qtbot, engines
):
    scripts[DescribeEngine] = [described_with_cuda(device_count=2, arch_list=("sm_75", "sm_86"))]
    model = PlacementModel(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: len(model.rows) == 3 and model.rows[1].warning != "")
    assert model.rows[1].warning.startswith("This PyTorch has no code for your GT 1030 (6.1)")
    assert model.rows[2].warning == ""


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_card_that_this_pytorch_cannot_use_keeps_its_number_and_says_why(
    scripts, studio, engines, qtbot
):
    scripts[DescribeEngine] = [described()]
    model = PlacementModel(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: len(model.rows) == 2 and model.rows[1].warning != "")
    row = model.rows[1]
    assert row.address is None
    assert "built for the CPU alone" in row.warning
    assert model.chosen.identity == "cpu"
    model.choose(row.identity)
    assert model.can_use, "the engine says in its own words what is missing"
    assert not model.can_move


# ── moving ───────────────────────────────────────────────────────────────────────────────────


def cell(model, row, column, role=Qt.ItemDataRole.DisplayRole):
    return model.table.data(model.table.index(row, column), role)


def test_a_moved_model_is_a_table_with_its_proof(model, engines, qtbot):
    model.choose(SECOND)
    model.move("linear_10")
    assert model.is_moving
    assert not model.can_move
    qtbot.waitUntil(lambda: not model.is_moving)
    assert engines.requests[-1] == PlaceModel(model="linear_10", device="cuda:1")
    assert model.table.rowCount() == 2
    assert [cell(model, 0, column) for column in (NAME, BEFORE, AFTER)] == [
        "weight", "cpu", "cuda:1",
    ]  # fmt: skip
    assert model.said_of_move.tone == "good"
    assert "same input, same output" in model.said_of_move.text


def test_another_move_replaces_the_table(model, qtbot):
    for _ in range(2):
        model.move("linear_10")
        qtbot.waitUntil(lambda: not model.is_moving)
        idle(qtbot, model)
    assert model.table.rowCount() == 2


def test_a_different_output_is_a_failure(model, scripts, qtbot):
    scripts[PlaceModel] = [place_finished(same_output=False, largest_difference=0.5)]
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    assert model.said_of_move.tone == "failure"


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (
            RequestFailed(failure=Failure(FailureKind.NO_KERNEL, "No code for this card.")),
            "No code for this card. The Devices tab names the build",
        ),
        (EngineEnded(exit_code=-11), "signal 11"),
    ],
)
def test_a_move_that_fails_in_the_middle_keeps_its_rows(model, scripts, qtbot, ending, said):
    scripts[PlaceModel] = [place_row(), ending]
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    assert said in model.said_of_move.text
    assert model.said_of_move.tone == "failure"
    assert model.table.rowCount() == 1
    idle(qtbot, model)
    assert model.can_move


def test_a_fresh_engine_says_that_the_model_ended_with_the_old_one(model, qtbot):
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    idle(qtbot, model)
    model.parent().session.restart()
    qtbot.waitUntil(lambda: "engine has ended" in model.said_of_move.text)
    assert model.table.rowCount() == 2, "the result stays"
    assert model.said_of_move.text.startswith("84")


def test_another_model_begins_with_an_empty_table(model, qtbot):
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    model.forget_move()
    assert model.table.rowCount() == 0
    assert model.said_of_move.text == ""


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_cpu_is_the_target(model, engines, qtbot):
    assert [row.number for row in model.rows] == ["cpu"]
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    assert engines.requests[-1].device == "cpu"


def test_before_the_engine_is_there_nothing_can_be_done(scripts, studio, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    model = PlacementModel(studio, studio)
    assert model.rows == []
    assert model.chosen is None
    studio.start()
    qtbot.waitUntil(lambda: len(model.rows) == 3)
    assert not model.can_use
    assert not model.can_move
    assert not model.can_show_only
    assert model.models == ()


# ── the table ────────────────────────────────────────────────────────────────────────────────


def test_the_table_writes_numbers_to_the_right_and_names_its_devices(qapp):
    table = PlacementTable()
    table.append(place_row("conv.weight", (32, 3, 3, 3)))
    table.append(place_row("count", (), dtype="int64", bytes=8, kind="buffer"))
    heads = [table.headerData(i, Qt.Orientation.Horizontal) for i in range(table.columnCount())]
    assert tuple(heads) == HEADINGS
    assert table.data(table.index(0, SHAPE)) == "32 × 3 × 3 × 3"
    assert table.data(table.index(1, SHAPE)) == "scalar"
    assert plain(table.data(table.index(0, BYTES))) == "3 456"
    right = Qt.AlignmentFlag.AlignRight
    for at in (
        table.data(table.index(0, BYTES), Qt.ItemDataRole.TextAlignmentRole),
        table.headerData(BYTES, Qt.Orientation.Horizontal, Qt.ItemDataRole.TextAlignmentRole),
    ):
        assert at & right
    assert table.data(table.index(0, BEFORE), DEVICE_ROLE) == "cpu"
    assert table.data(table.index(0, AFTER), DEVICE_ROLE) == "cuda:0"
    assert table.data(table.index(0, NAME), DEVICE_ROLE) is None
    assert "not learned" in table.data(table.index(1, NAME), Qt.ItemDataRole.ToolTipRole)
    table.append(place_row("<img>", (1,)))  # a name in somebody's file
    assert "&lt;img&gt;" in table.data(table.index(2, NAME), Qt.ItemDataRole.ToolTipRole)
