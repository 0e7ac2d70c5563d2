"""Starting the user's own program from the window: a real child, on a PC with two cards."""

from __future__ import annotations

import sys

import msgspec
import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.notice import Tone
from gpu_studio.core.switcher.program_start import KeptStart, vulkan_devices
from gpu_studio.model.settings import Settings
from gpu_studio.model.switcher import start_model as module
from gpu_studio.model.switcher.start_model import StartModel
from gpu_studio.process.child_call import ChildAnswer
from tests.driving.window import plain
from tests.fakes.pc import reading


@pytest.fixture
def model(scripts, ready_studio, qtbot):
    qtbot.waitUntil(lambda: ready_studio.sensors.inventory is not None)
    model = StartModel(ready_studio, ready_studio)
    model.see(is_seen=True)
    return model


@pytest.fixture(autouse=True)
def vulkan(monkeypatch):
    """Vulkan lists nothing here, and is asked for what it lists with these variables."""
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(
        module, "vulkan_devices", lambda _call, variables, _is_over: asked.append(variables) or []
    )
    return asked


def script(tmp_path, text):
    path = tmp_path / "a program.py"
    path.write_text(text, encoding="utf-8")
    return f'"{sys.executable}" "{path}"'


def wait_for_end(qtbot, model):
    qtbot.waitUntil(lambda: "ended" in model.notice.sentence)


def test_the_cards_of_this_pc_and_its_cpu_are_offered(model):
    assert [title for title, _ in model.cards] == [
        "On the GT 1030",
        "On the RTX 3060",
        "On the CPU",
    ]
    assert model.target.title == "GT 1030"
    assert not model.can_start, "no program is named"
    model.choose(command="x", card="cpu")
    assert model.can_start
    assert model.target.is_cpu


def test_it_starts_with_what_is_shown_and_tells_its_end(qtbot, model, tmp_path, vulkan):
    said = tmp_path / "said"
    text = (
        "import os\n"
        f"open({str(said)!r}, 'w').write(os.environ['CUDA_VISIBLE_DEVICES'])\nraise SystemExit(3)\n"
    )
    card = model.offered[1]
    model.choose(command=script(tmp_path, text), card=card.key)
    model.start()
    wait_for_end(qtbot, model)
    assert dict(model.rows)["CUDA_VISIBLE_DEVICES"] == card.card.uuid == said.read_text()
    assert "status 3" in model.notice.sentence
    assert model.started.endswith(" on the RTX 3060")
    if sys.platform == "linux":
        assert vulkan[0]["__VK_LAYER_NV_optimus"] == "NVIDIA_only", (
            "the order is asked as it will be"
        )


def test_programs_are_read_until_there_is_an_answer(
    qtbot, model, tmp_path, ready_studio, sensor_source, inventory
):
    model.choose(command=script(tmp_path, "import time; time.sleep(60)"))
    model.start()
    qtbot.waitUntil(lambda: "It runs" in model.notice.sentence)
    assert sensor_source.reads_programs
    model.see(is_seen=False)
    assert sensor_source.reads_programs, "it has no answer yet"
    child = GpuProcess(pid=model._child.pid, name="python", memory_bytes=1 << 20)
    now = reading(inventory, 1.0)
    cards = (msgspec.structs.replace(now.cards[0], processes=(child,)), *now.cards[1:])
    with qtbot.waitSignal(ready_studio.sensors.reading_taken):
        sensor_source.send(msgspec.structs.replace(now, cards=cards))
    assert plain(model.notice.sentence).startswith("It uses the card.")
    assert model.notice.tone is Tone.GOOD
    assert not sensor_source.reads_programs, "nobody looks, and it is told"
    model._child.kill()
    wait_for_end(qtbot, model)


def test_what_was_started_is_kept_with_its_card(qtbot, model, tmp_path, settings):
    first, second = script(tmp_path, "pass"), script(tmp_path, "pass") + " again"
    for command, card in ((first, "cpu"), (second, model.offered[1].key), (first, "cpu")):
        model.choose(command=command, card=card)
        model.start()
        wait_for_end(qtbot, model)
        model._leave()
    assert model.commands == [first, second]
    model.choose(command=second)
    assert model.target.title == "RTX 3060", "the card on which it was started"
    path = tmp_path / "settings.json"
    Settings(path).change(starts=settings.choices.starts)
    assert Settings(path).choices.starts[0] == KeptStart(command=first, card="cpu")


@pytest.mark.parametrize("command", ['"no end', "/not/there at all"])
def test_a_command_that_cannot_start_says_why(qtbot, model, command):
    model.choose(command=command)
    model.start()
    qtbot.waitUntil(lambda: "cannot be" in model.notice.sentence)
    assert model.notice.tone is Tone.FAILURE
    assert not model.kept


@pytest.mark.parametrize("answer", [b"[{", b'[{"name": 3}]', b'[{"name": "\xff"}]'])
def test_an_answer_of_vulkans_that_cannot_be_read_is_a_sentence(qtbot, model, monkeypatch, answer):
    monkeypatch.setattr(module, "vulkan_devices", vulkan_devices)
    monkeypatch.setattr(module, "call_child", lambda *_, **__: ChildAnswer(answer, 0))
    model.choose(command=sys.executable)
    model.start()
    qtbot.waitUntil(lambda: model.notice.tone is Tone.FAILURE)
    assert model.notice.sentence == "Vulkan's answer could not be read."
