"""Will it fit? Asked with a number, a model's file, or a recorded history."""

import json
import pickle
import re

import pytest
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QLabel,
    QSpinBox,
)

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.memory.replay.replay_call import AskWhatIf, OpenHistory
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.model.latest import Latest
from gpu_studio.model.memory import fit_model
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.model.pages import FIT, MEMORY, SEGMENTS, Destination
from gpu_studio.ui.memory.fit_page import FitPage
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.memory import MIB, shown
from tests.driving.window import choose_data, click, find, plain, sees, table, text
from tests.fakes.histories import TrainingHistory
from tests.fakes.memory_answers import memory_read
from tests.fakes.run_answers import finished
from tests.fakes.weights_files import write_gguf, write_safetensors

RATES = {"cuda:0": 40e9, "cpu": 20e9}


@pytest.fixture
def page(memory, theme, qtbot):
    """The page on a PC with a GT 1030 that copies 40 GB/s."""
    return shown(qtbot, FitPage(memory, theme))


@pytest.fixture
def memory(scripts, ready_studio, qtbot):
    def copied(_engine, request):
        rate = RATES[request.device]
        return [finished(request, (0.01,), throughput=rate, throughput_unit="B/s")]

    scripts[RunWorkload] = copied
    memory = MemoryModel(ready_studio, ready_studio)
    qtbot.waitUntil(lambda: memory.chosen.is_real_card)
    memory.poll()
    qtbot.waitUntil(lambda: memory.sizes_bytes is not None and ready_studio.session.is_free)
    return memory


@pytest.fixture
def simulated(memory, page):
    """The page with a simulated GT 1030."""
    memory.devices.choose("model:1996")
    return page


@pytest.fixture
def path(tmp_path):
    """A recorded history."""
    training = TrainingHistory(batch=8, conf="max_split_size_mb:512")
    training.run(2, layers=6)
    training.write(tmp_path / "train.pickle")
    return tmp_path / "train.pickle"


def ask(page, network: str, dtype: str = "") -> None:
    find(page, "memory.fit.parameters", QComboBox).setCurrentText(network)
    if dtype:
        find(page, "memory.fit.dtype", QComboBox).setCurrentText(dtype)


def verdict(page) -> str:
    return text(page, "memory.fit.verdict")


def training(page) -> str:
    return text(page, "memory.fit.training.verdict")


def speed(page) -> str:
    return text(page, "memory.speed.sentence")


def folded(page, name: str) -> str:
    """Return a text of the details."""
    return plain(find(page, name, QLabel).text())


# ── a number ─────────────────────────────────────────────────────────────────────────────────────


def test_what_a_simulated_gt_1030_holds_and_what_not(simulated, qtbot):
    qtbot.waitUntil(lambda: verdict(simulated).startswith("✖ The model does not fit: 1."))
    assert re.search(r"Adam does not fit: 16\.\d GiB more", training(simulated))
    assert ("4-bit", "✔") in [
        (row[0][-5:], row[2][0]) for row in table(simulated, "memory.fit.steps")
    ]
    tank = find(simulated, "memory.fit.training.tank", TankBar)
    assert tank.tank.card_bytes == 1996 * MIB
    ask(simulated, "100M")
    qtbot.waitUntil(lambda: "may fit" in training(simulated))
    ask(simulated, "60M")
    known = "? Training with Adam: the activations are not known"
    qtbot.waitUntil(lambda: training(simulated) == known)
    assert verdict(simulated) == "✔ The model fits"
    assert not sees(simulated, "memory.fit.steps")


def test_training_with_its_activations_fits_or_not(simulated, qtbot):
    find(simulated, "memory.fit.optimizer", QComboBox).setCurrentText("SGD")
    ask(simulated, "GPT-2")
    may = "? Training with SGD may fit: nearly all of the room is needed"
    qtbot.waitUntil(lambda: training(simulated) == may)
    assert " to " in text(simulated, "memory.fit.training.told")
    find(simulated, "memory.speed.batch", QSpinBox).setValue(8)
    qtbot.waitUntil(lambda: training(simulated).startswith("✖ Training with SGD does not fit"))
    steps = table(simulated, "memory.fit.steps")
    assert [row[0] for row in steps[:2]] == ["A batch of 4", "A batch of 1"]
    assert "SGD with momentum" not in str(steps)  # it would need more
    find(simulated, "memory.fit.optimizer", QComboBox).setCurrentText("Adam and AMP")
    qtbot.waitUntil(lambda: "Adam and AMP" in training(simulated))
    tank = find(simulated, "memory.fit.training.tank", TankBar).tank
    assert {part.key for part in tank.parts} >= {"tensors", "gradients", "copies", "moments"}


def test_a_number_that_is_none_is_refused_in_place(page):
    network = find(page, "memory.fit.parameters", QComboBox)
    ask(page, "lots")
    assert "7B" in text(page, "memory.fit.reason")
    assert network.lineEdit().property("invalid") is True
    ask(page, "7B")
    assert text(page, "memory.fit.reason") == ""
    assert network.lineEdit().property("invalid") is False


def test_a_hidden_page_works_nothing_out(page, qtbot):
    qtbot.waitUntil(lambda: verdict(page) != "")
    page.hide()
    page.model.choose(batch=2)
    assert not any(one.is_busy for one in page.model.findChildren(Latest))


def test_a_card_and_what_others_hold_are_chosen_here_or_in_the_tab(page, memory, qtbot):
    ask(page, "1B", "16-bit")
    qtbot.waitUntil(lambda: "✖" in verdict(page))
    choose_data(page, "memory.fit.card", "own")
    find(page, "memory.fit.own", QDoubleSpinBox).setValue(4)
    qtbot.waitUntil(lambda: verdict(page) == "✔ The model fits")
    find(page, "memory.fit.others", QDoubleSpinBox).setValue(3)
    qtbot.waitUntil(lambda: "✖" in verdict(page))
    assert "simulated card has no bandwidth" in speed(page)
    choose_data(page, "memory.fit.card", "model:1996")
    assert memory.chosen.identity == "model:1996"
    memory.devices.choose("cpu")
    assert find(page, "memory.fit.card", QComboBox).currentData() == "cpu"


def test_no_speed_before_the_bandwidth_is_measured(page, scripts, qtbot):
    measured = scripts[RunWorkload]
    failure = Failure(FailureKind.OUT_OF_MEMORY, "512 MiB are needed, 100 MiB are free.")
    scripts[RunWorkload] = lambda _engine, request: [
        RunFailed(run_id=request.run_id, failure=failure)
    ]
    ask(page, "1B", "4-bit")
    qtbot.waitUntil(lambda: "has not been measured" in speed(page))
    assert not any(character.isdigit() for character in speed(page))
    click(page, "memory.speed.measure")
    qtbot.waitUntil(lambda: "512 MiB are needed" in speed(page))
    scripts[RunWorkload] = measured
    qtbot.waitUntil(find(page, "memory.speed.measure").isEnabled)
    click(page, "memory.speed.measure")
    qtbot.waitUntil(lambda: speed(page).startswith("At most 71.1 tokens a second on"))
    assert "40.0 GB/s over 562 MB" in folded(page, "memory.speed.detail")
    assert not sees(page, "memory.speed.measure")


def test_the_pcs_ram_has_a_speed_and_no_training(page, memory, qtbot):
    memory.devices.choose("cpu")
    memory.poll()
    ask(page, "1B", "16-bit")
    qtbot.waitUntil(lambda: "into the PC's RAM" in verdict(page))
    click(page, "memory.speed.measure")
    qtbot.waitUntil(lambda: "tokens a second on the CPU" in speed(page))
    assert "30.0 GB/s over" in folded(page, "memory.speed.detail")  # 3/2 of the copy
    assert not sees(page, "memory.fit.training.answer")


# ── a model's file ───────────────────────────────────────────────────────────────────────────────


def open_file(page, monkeypatch, path) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    click(page, "memory.fit.open")


def test_a_file_has_its_own_answer(page, qtbot, monkeypatch, tmp_path):
    config = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8}
    (tmp_path / "config.json").write_text(json.dumps(config))
    one = write_safetensors(tmp_path / "one.safetensors", {"weight": ("F32", (4096, 4096))})
    open_file(page, monkeypatch, one)
    assert text(page, "memory.fit.file") == "one.safetensors"
    qtbot.waitUntil(lambda: "one.safetensors as in the file" in text(page, "memory.fit.sentence"))
    assert "16.7772 million" in folded(page, "memory.fit.details")
    assert "KV cache: 64 MiB" in folded(page, "memory.fit.details")
    assert not sees(page, "memory.fit.dtype")
    click(page, "memory.fit.way.number")
    qtbot.waitUntil(lambda: "1 billion" in text(page, "memory.fit.sentence"))
    other = tmp_path / "other.bin"
    other.write_bytes(b"PK")
    open_file(page, monkeypatch, other)
    refusal = "other.bin is neither a safetensors nor a GGUF file."
    qtbot.waitUntil(lambda: text(page, "memory.fit.reason") == refusal)
    assert not sees(page, "memory.fit.answer")
    find(page, "memory.speed.batch", QSpinBox).setValue(2)
    assert text(page, "memory.fit.reason") == refusal


def test_a_quantized_or_packed_file_is_for_use_only(page, qtbot, monkeypatch, tmp_path):
    path = write_gguf(tmp_path / "one.gguf", {"general.architecture": "x"},
                      {"token_embd.weight": ("Q4_0", (4096, 4096))})  # fmt: skip
    open_file(page, monkeypatch, path)
    qtbot.waitUntil(lambda: "float32 or 16 bits" in text(page, "memory.fit.training.told"))
    packed = write_safetensors(tmp_path / "packed.safetensors", {"q": ("I32", (4096 << 7, 4096))})
    open_file(page, monkeypatch, packed)
    qtbot.waitUntil(lambda: "✖" in verdict(page))
    assert [row[0] for row in table(page, "memory.fit.steps")] == ["A larger card"]


# ── a history ────────────────────────────────────────────────────────────────────────────────────


def test_a_history_is_answered_for_each_choice(page, path, qtbot):
    page.model.open_file(path)
    conf = find(page, "memory.what_if.conf", QComboBox)
    qtbot.waitUntil(lambda: conf.currentText() == "max_split_size_mb:512")  # as recorded
    choose_data(page, "memory.fit.card", "own")
    find(page, "memory.fit.own", QDoubleSpinBox).setValue(0.75)
    find(page, "memory.fit.others", QDoubleSpinBox).setValue(0.2)
    qtbot.waitUntil(lambda: "is enough" in text(page, "memory.fit.sentence"))
    assert verdict(page).startswith("✖ It does not fit on 0.75 GiB: it fails at")
    assert ".py:" in text(page, "memory.fit.told")
    assert ".py:" in table(page, "memory.what_if.lines")[0][0]
    assert table(page, "memory.fit.steps")[-1][0] == "A larger card"
    smallest = text(page, "memory.fit.sentence")
    find(page, "memory.fit.own", QDoubleSpinBox).setValue(80)
    qtbot.waitUntil(lambda: verdict(page) == "✔ It fits on 80 GiB")
    find(page, "memory.fit.others", QDoubleSpinBox).setValue(2.2)
    qtbot.waitUntil(lambda: text(page, "memory.fit.sentence") not in ("", smallest))
    conf.setCurrentText("max_split_size_mb:3")
    assert "max_split_size_mb" in text(page, "memory.fit.reason")


def test_a_history_is_answered_anew_when_the_card_changes(page, memory, path, scripts, qtbot):
    page.model.open_file(path)
    qtbot.waitUntil(lambda: "is enough" in text(page, "memory.fit.sentence"))
    scripts[ReadMemory] = [memory_read(free_bytes=600 * MIB)]
    memory.poll()
    tank = find(page, "memory.fit.tank", TankBar)
    in_use = (1996 - 576) * MIB  # in steps of 64 MiB
    qtbot.waitUntil(lambda: tank.tank is not None and tank.tank.parts[0].size_bytes == in_use)


def test_a_refused_file_leaves_the_open_history(page, path, tmp_path, qtbot):
    page.model.open_file(path)
    qtbot.waitUntil(lambda: page.model.history is not None)
    (tmp_path / "theirs.pkl").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    page.model.open_file(tmp_path / "theirs.pkl")
    qtbot.waitUntil(lambda: "wants to run a program" in text(page, "memory.fit.reason"))
    assert text(page, "memory.fit.file") == "train.pickle"


def test_a_model_that_a_history_overtakes_is_not_named_as_if_it_was_read(
    page, path, tmp_path, qtbot
):
    page.model.open_file(tmp_path / "slow.safetensors")
    page.model.open_file(path)
    qtbot.waitUntil(lambda: page.model.history is not None)
    page.model.choose(way="file")
    assert "slow" not in text(page, "memory.fit.file")


def test_another_history_is_replayed_by_itself_and_once(page, path, tmp_path, qtbot, monkeypatch):
    def tensors() -> int:
        tank = find(page, "memory.fit.tank", TankBar).tank
        return {part.key: part.size_bytes for part in tank.parts}.get("tensors", 0) if tank else 0

    asked, ask_child = [], fit_model.ask
    monkeypatch.setattr(
        fit_model, "ask", lambda question, *how: asked.append(question) or ask_child(question, *how)
    )
    page.model.open_file(path)
    qtbot.waitUntil(lambda: tensors() > 0)
    first = tensors()
    other = TrainingHistory(batch=32, conf="max_split_size_mb:512")  # the same but for its numbers
    other.run(2, layers=6)
    other.write(tmp_path / "other.pickle")
    page.model.open_file(tmp_path / "other.pickle")
    qtbot.waitUntil(lambda: text(page, "memory.fit.file") == "other.pickle")
    qtbot.waitUntil(lambda: tensors() > first)
    assert [type(one) for one in asked] == 2 * [OpenHistory, AskWhatIf]


def test_the_lines_for_your_own_script_come_in_the_code_drawer(page, ready_studio, qtbot):
    click(page, "memory.fit.way.history")
    with qtbot.waitSignal(ready_studio.snippets.wanted):
        click(page, "memory.what_if.record")
    ready_studio.snippets.turn_to(FIT)
    ready_studio.snippets.turn_to(MEMORY)
    assert "_record_memory_history" in ready_studio.snippets.snippet
    compile(ready_studio.snippets.snippet, "snippet", "exec")


def test_a_dropped_file_opens_in_its_way(tab, path, qtbot):
    whole = pickle.loads(path.read_bytes()) | {"device_traces": []}
    path.write_bytes(pickle.dumps(whole))
    tab.go_to(Destination(page=MEMORY, paths=(path,)))
    qtbot.waitUntil(lambda: tab.pages.front == SEGMENTS)  # a snapshot of one moment
    qtbot.waitUntil(lambda: text(tab, "memory.segment_map.moment") == "train.pickle")
