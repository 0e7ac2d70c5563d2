"""The Memory tab over a GT 1030 and an engine that answers from a script."""

import pytest

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.model.memory import error_model, fit_model, memory_model
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.ui.memory.memory_tab import MemoryTab
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.memory_answers import memory_read
from tests.fakes.pc import gt_1030


@pytest.fixture(autouse=True)
def polls_and_answers_come_soon(monkeypatch):
    monkeypatch.setattr(memory_model, "_POLL_MS", 20)
    monkeypatch.setattr(memory_model, "_FAST_POLL_MS", 20)
    monkeypatch.setattr(error_model, "_AFTER_TYPING_MS", 10)
    monkeypatch.setattr(fit_model, "_AFTER_CHOOSING_MS", 0)


@pytest.fixture
def inventory():
    return gt_1030()


@pytest.fixture
def scripts(engines, inventory):
    cuda = described_with_cuda(device_count=len(inventory.cards))
    engines.scripts |= {
        DescribeEngine: [cuda if inventory.cards else described()],
        ReadMemory: lambda _engine, request: [
            memory_read(request.device, allocated=100, reserved=120)
        ],
    }
    return engines.scripts


@pytest.fixture
def tab(scripts, studio, theme, qtbot):
    """The tab, shown, with its engine and sensors not yet started."""
    tab = MemoryTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(980, 700)
    tab.show()
    qtbot.waitExposed(tab)
    return tab


@pytest.fixture
def memory(ready_studio, qtbot):
    """The memory model alone, on a PC without a card."""
    memory = MemoryModel(ready_studio, ready_studio)
    qtbot.waitUntil(lambda: memory.chosen.is_modelled)
    return memory
