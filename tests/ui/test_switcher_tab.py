from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QPushButton,
    QRadioButton,
    QTableView,
)

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    DeviceUsed,
    ModelDescription,
    PlaceModel,
    RequestFailed,
    UseDevice,
)
from gpu_studio.model.placement_table import AFTER, KIND, TYPE
from gpu_studio.ui.switcher_tab import SwitcherTab
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, gt_1030_card, rtx_3060_card, two_cards
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import place_finished, place_row
from tests.ui.by_name import click, find, text

FIRST, SECOND = gt_1030_card().uuid, rtx_3060_card().uuid
MODELS = (
    ModelDescription(name="linear_10", title="Linear(10, 10)", sentence="One layer."),
    ModelDescription(name="convnet", title="Small network", sentence="It has buffers."),
)


@pytest.fixture
def inventory():
    return two_cards()


@pytest.fixture
def scripts(engines, inventory):
    def describe(engine, _request):
        shown = engine.environment.visible_devices
        count = len(inventory.cards) if shown is None else 1
        cuda = described_with_cuda(device_count=count, visible_devices=shown, models=MODELS)
        return [cuda if inventory.cards else described(models=MODELS)]

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
def tab(scripts, studio, theme, qtbot):
    """The tab, shown, with its engine and sensors not yet started."""
    tab = SwitcherTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(980, 700)
    tab.show()
    qtbot.waitExposed(tab)
    return tab


@pytest.fixture
def ready(tab, studio, qtbot):
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and bool(tab.model.rows))
    return tab


@pytest.fixture
def placing(ready):
    ready.show_page("Place")
    return ready


def radio(tab, identity):
    return find(tab, f"switcher.radio.{identity}", QRadioButton)


def test_before_the_engine_is_there_the_tab_says_so(tab, scripts, engines, studio, qtbot):
    assert "engine is starting" in text(tab, "switcher.why")
    scripts[DescribeEngine] = [Pause(), described_with_cuda(models=MODELS)]
    studio.start()
    qtbot.waitUntil(lambda: "engine is starting" in text(tab, "switcher.why"))
    for name in ("switcher.activate", "switcher.visible_only", "switcher.move", "switcher.model"):
        assert not find(tab, name).isEnabled(), name
    qtbot.waitUntil(engines.latest.paused.is_set)
    engines.latest.go()
    qtbot.waitUntil(find(tab, "switcher.move").isEnabled)
    assert find(tab, "switcher.activate").isEnabled()
    assert find(tab, "switcher.why").isHidden()


def test_a_card_is_chosen_with_the_mouse_anywhere_on_it(ready, qtbot):
    qtbot.mouseClick(find(ready, f"switcher.card.{SECOND}"), Qt.MouseButton.LeftButton)
    assert radio(ready, SECOND).isChecked()
    assert not radio(ready, FIRST).isChecked()
    assert find(ready, f"switcher.card.{SECOND}").property("selected") is True
    assert find(ready, "switcher.move", QPushButton).text() == "Move to cuda:1"


def test_a_card_is_chosen_with_the_keyboard(ready, qtbot):
    first = radio(ready, FIRST)
    assert first.isChecked()
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Down)
    assert radio(ready, SECOND).isChecked()
    assert find(ready, "switcher.move", QPushButton).text() == "Move to cuda:1"


def test_choosing_a_device_writes_the_lines_that_name_it(placing, studio, qtbot):
    targets = find(placing, "switcher.target", QComboBox)
    targets.setFocus()
    qtbot.keyClick(targets, Qt.Key.Key_End)
    order = 'import os\n\nos.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"\n\nimport torch\n'
    assert studio.snippet.startswith(order)
    assert 'torch.device("cuda:1")' in studio.snippet
    placing.show_page("Choose")
    radio(placing, "cpu").click()
    assert studio.snippet.startswith("import torch\n")
    assert 'torch.device("cpu")' in studio.snippet


def test_use_this_card(ready, engines, qtbot):
    radio(ready, SECOND).click()
    click(qtbot, ready, "switcher.activate")
    qtbot.waitUntil(lambda: "is now the current card" in text(ready, "switcher.said"))
    assert engines.requests[-1] == UseDevice(cuda_index=1)
    qtbot.waitUntil(lambda: "current" in radio(ready, SECOND).accessibleDescription())
    assert find(ready, "switcher.said_card").property("tone") == "good"


def test_no_such_card_is_told_with_the_valid_range(ready, scripts, qtbot):
    sentence = "cuda:1 is not there: this PC has cuda:0."
    scripts[UseDevice] = [RequestFailed(failure=Failure(FailureKind.NO_SUCH_DEVICE, sentence))]
    radio(ready, SECOND).click()
    click(qtbot, ready, "switcher.activate")
    qtbot.waitUntil(lambda: text(ready, "switcher.said").startswith(sentence))
    assert find(ready, "switcher.said_card").property("tone") == "failure"


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_card_without_cuda_is_told_in_the_engines_words(tab, scripts, studio, qtbot):
    sentence = "CUDA is not available: This PyTorch is built without CUDA."
    scripts[DescribeEngine] = [described(models=MODELS)]
    scripts[UseDevice] = [RequestFailed(failure=Failure(FailureKind.NO_CUDA, sentence))]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and len(tab.model.rows) == 2)
    radio(tab, FIRST).click()
    assert not find(tab, "switcher.move").isEnabled()
    click(qtbot, tab, "switcher.activate")
    qtbot.waitUntil(lambda: text(tab, "switcher.said").startswith(sentence))
    assert "built for the CPU alone" in radio(tab, FIRST).accessibleDescription()


def test_what_is_lost_is_said_before_one_card_is_shown_and_there_is_a_way_back(
    ready, engines, qtbot
):
    assert "are lost, your results stay" in text(ready, "switcher.explained")
    assert find(ready, "switcher.show_all").isHidden()
    radio(ready, SECOND).click()
    click(qtbot, ready, "switcher.visible_only")
    assert engines.latest.environment.visible_devices == SECOND
    qtbot.waitUntil(lambda: radio(ready, FIRST).text() == "hidden")
    assert radio(ready, SECOND).text() == "cuda:0"
    qtbot.waitUntil(find(ready, "switcher.show_all").isEnabled)
    assert not find(ready, "switcher.visible_only").isEnabled()
    click(qtbot, ready, "switcher.show_all")
    qtbot.waitUntil(lambda: radio(ready, SECOND).text() == "cuda:1")
    assert radio(ready, FIRST).text() == "cuda:0"
    assert find(ready, "switcher.show_all").isHidden()


def test_a_model_is_moved_and_proved(placing, engines, qtbot):
    ready = placing
    table = find(ready, "switcher.placement", QTableView)
    assert not table.isVisible()
    assert "Press “Move to cuda:0”" in text(ready, "switcher.hint")
    models = find(ready, "switcher.model", QComboBox)
    models.setFocus()
    qtbot.keyClick(models, Qt.Key.Key_Down)
    assert text(ready, "switcher.about_model") == "It has buffers."
    targets = find(ready, "switcher.target", QComboBox)
    qtbot.keyClick(targets, Qt.Key.Key_End)
    assert radio(ready, SECOND).isChecked()  # the Choose page follows
    click(qtbot, ready, "switcher.move")
    qtbot.waitUntil(lambda: "same input, same output" in text(ready, "switcher.proof"))
    assert engines.requests[-1] == PlaceModel(model="convnet", device="cuda:1")
    assert table.isVisible()
    assert table.model().index(1, AFTER).data() == "cuda:1"
    assert find(ready, "switcher.proof_card").property("tone") == "good"
    qtbot.keyClick(models, Qt.Key.Key_Up)
    assert not table.isVisible()
    assert find(ready, "switcher.proof_card").isHidden()


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_same_table_has_the_cpu_as_its_target_and_says_why(ready, qtbot):
    assert "The CPU is the only device here" in text(ready, "switcher.why")
    assert "This PyTorch was built without CUDA." in text(ready, "switcher.why")
    assert not find(ready, "switcher.activate").isEnabled()
    assert not find(ready, "switcher.visible_only").isEnabled()
    ready.show_page("Place")
    assert radio(ready, "cpu").isChecked()
    click(qtbot, ready, "switcher.move")
    table = find(ready, "switcher.placement", QTableView)
    qtbot.waitUntil(lambda: table.model().rowCount() == 2)
    assert table.model().index(0, AFTER).data() == "cpu"


def test_devices_in_the_table_take_their_own_ink(placing, theme, qtbot):
    from PySide6.QtGui import QPalette
    from PySide6.QtWidgets import QStyleOptionViewItem

    ready = placing
    radio(ready, SECOND).click()
    click(qtbot, ready, "switcher.move")
    table = find(ready, "switcher.placement", QTableView)
    qtbot.waitUntil(lambda: table.model().rowCount() == 2)
    inks = []
    for column in range(AFTER + 1):
        option = QStyleOptionViewItem()
        table.itemDelegate().initStyleOption(option, table.model().index(0, column))
        inks.append(option.palette.color(QPalette.ColorRole.Text).name().upper())
    assert inks[-2:] == [theme.colour("cpu_ink"), theme.colour("gpu1_ink")]
    assert inks[0] not in inks[-2:]


def test_a_narrow_tab_keeps_the_devices_in_sight(placing, qtbot):
    ready = placing
    table = find(ready, "switcher.placement", QTableView)
    click(qtbot, ready, "switcher.move")
    qtbot.waitUntil(table.isVisible)
    assert not table.isColumnHidden(KIND)
    ready.resize(770, 520)
    assert table.isColumnHidden(KIND)
    assert table.isColumnHidden(TYPE)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0)
    assert ready.minimumSizeHint().width() <= 780
    assert ready.minimumSizeHint().height() <= 500
    ready.resize(1400, 900)
    assert not table.isColumnHidden(TYPE)


def test_every_control_has_a_name_to_be_read_aloud(ready):
    for kind in (QPushButton, QComboBox, QRadioButton, QTableView):
        for widget in ready.findChildren(kind):
            if not widget.objectName().startswith("qt_"):
                assert widget.accessibleName(), widget.objectName()
                assert widget.objectName(), widget


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_name_from_outside_is_plain_text(tab, sensor_source, studio, qtbot):
    import msgspec

    inventory = gt_1030()
    evil = msgspec.structs.replace(inventory.cards[0], name="<b>bold</b> & co")
    sensor_source._events[0] = msgspec.structs.replace(inventory, devices=(inventory.cpu, evil))
    studio.start()
    qtbot.waitUntil(lambda: len(tab.model.rows) == 2)
    card = find(tab, f"switcher.card.{FIRST}")
    names = [label for label in card.findChildren(QLabel) if label.text() == "<b>bold</b> & co"]
    assert len(names) == 1
    assert names[0].textFormat() is Qt.TextFormat.PlainText


def test_tab_reaches_the_devices_before_what_is_done_with_them(ready):
    chain, at = [], ready.window()
    while (at := at.nextInFocusChain()) is not ready.window():
        chain.append(at.objectName())
    places = [
        chain.index(name)
        for name in (
            "switcher.pages", f"switcher.radio.{FIRST}", f"switcher.radio.{SECOND}",
            "switcher.activate", "switcher.visible_only", "switcher.target",
            "switcher.tensors.size", "switcher.model", "switcher.move", "switcher.placement",
        )
    ]  # fmt: skip
    assert places == sorted(places)
