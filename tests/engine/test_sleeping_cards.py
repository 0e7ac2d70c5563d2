from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.engine import device
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.hardware.linux.sys_tree import SysTree
from gpu_studio.hardware.makers import are_all_cards_asleep
from tests.engine.answers import ask, only, run_request

POLITELY = DescribeEngine(wakes_cards=False)


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What CUDA was asked by a build for CUDA that sees no card; each such question wakes cards."""
    asked: list[str] = []

    def note(name: str, answer: Any) -> Any:
        asked.append(name)
        return answer

    def init() -> None:
        asked.append("init")
        raise RuntimeError("No CUDA GPUs are available")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    for name, answer in (("is_available", False), ("device_count", 0), ("get_arch_list", [])):
        monkeypatch.setattr(torch.cuda, name, partial(note, name, answer))
    monkeypatch.setattr(torch.cuda, "init", init)
    device._first_state.cache_clear()
    yield asked
    device.leave_cards_alone(False)
    device._first_state.cache_clear()


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A laptop's card in a folder like /sys; its status is to be written."""
    folder = tmp_path / "bus" / "pci" / "devices" / "0000:01:00.0"
    (folder / "power").mkdir(parents=True)
    for name, value in (("class", "0x030200"), ("vendor", "0x10de"), ("device", "0x2560")):
        (folder / name).write_text(value)
    status = folder / "power" / "runtime_status"
    status.write_text("suspended\n")
    return status


@pytest.fixture
def dispatcher(card: Path, tmp_path: Path) -> Dispatcher:
    return Dispatcher(are_cards_asleep=partial(are_all_cards_asleep, SysTree(tmp_path)))


def test_an_engine_reports_what_it_is_without_waking_a_card(
    questions: list[str], dispatcher: Dispatcher
):
    (described,) = ask(POLITELY, dispatcher)
    assert questions == []
    assert described.cards_asleep
    assert not described.cuda_available
    assert "asleep" in described.cuda_reason
    assert described.cuda_build == "13.0"


def test_work_on_the_cpu_wakes_no_card(questions: list[str], dispatcher: Dispatcher):
    ask(POLITELY, dispatcher)
    ask(ReadMemory(device="cpu"), dispatcher)
    assert only(RunFinished, ask(run_request(), dispatcher))
    (failed,) = only(RunFailed, ask(run_request(device="cuda:0"), dispatcher))
    assert failed.failure.kind is FailureKind.NO_CUDA
    assert "asleep" in failed.failure.message
    assert questions == []


def test_who_wants_the_cards_wakes_them(questions: list[str], dispatcher: Dispatcher):
    ask(POLITELY, dispatcher)
    (described,) = ask(DescribeEngine(), dispatcher)
    assert "is_available" in questions
    assert not described.cards_asleep
    assert "sees no card" in described.cuda_reason


def test_a_card_that_is_awake_is_asked_about(
    questions: list[str], dispatcher: Dispatcher, card: Path
):
    ask(POLITELY, dispatcher)
    card.write_text("active\n", encoding="utf-8")
    (described,) = ask(POLITELY, dispatcher)
    assert not described.cards_asleep
    assert "is_available" in questions


def test_where_cuda_was_asked_there_is_nothing_to_be_careful_about(
    questions: list[str], dispatcher: Dispatcher
):
    ask(DescribeEngine(), dispatcher)
    (described,) = ask(POLITELY, dispatcher)
    assert not described.cards_asleep


def test_a_build_without_cuda_wakes_nothing_and_says_why_it_is_of_no_use(
    questions: list[str], dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.version, "cuda", None)
    (described,) = ask(POLITELY, dispatcher)
    assert not described.cards_asleep
    assert "built without CUDA" in described.cuda_reason
