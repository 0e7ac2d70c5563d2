import contextlib
import io
import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.placement_messages import (
    FileInspected,
    InspectFile,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
)
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.switcher import placement, tensor_file
from gpu_studio.engine.switcher.placement import PlacedFile
from gpu_studio.engine.switcher.tensor_file import open_tensors
from gpu_studio.engine.switcher.timed_copy import TimedCopy
from gpu_studio.process.child_call import ChildAnswer
from tests.engine.answers import ask, only
from tests.engine.switcher.tensor_files import BAD, GOOD, LEGACY, WITNESS, copied, saved, state_dict


@pytest.fixture
def opened_here(monkeypatch: pytest.MonkeyPatch):
    """Let this process do the work of the child."""

    class Here:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def run(self, content: bytes, **_limits: object) -> ChildAnswer:
            try:
                return ChildAnswer(tensor_file.answer(content), 0)
            except ValueError as error:
                return ChildAnswer(str(error).encode(), 1)

    monkeypatch.setattr(tensor_file, "ChildCall", Here)


def refusal(path: Path) -> str:
    (failed,) = ask(InspectFile(path=str(path)))
    assert isinstance(failed, RequestFailed), failed
    assert failed.failure.kind is FailureKind.FILE_REFUSED
    assert not failed.failure.traceback_text
    return failed.failure.message


@pytest.mark.usefixtures("opened_here")
@pytest.mark.parametrize("name", GOOD)
def test_a_good_file_is_described_as_pytorch_reads_it(name: str, tmp_path: Path):
    path = tmp_path / "good.pt"
    path.write_bytes(GOOD[name]())
    (result,) = ask(InspectFile(path=str(path)))
    assert isinstance(result, FileInspected)
    assert result.size_bytes == path.stat().st_size
    tensors = open_tensors(str(path))
    assert result.tensors == len(tensors)
    assert result.tensor_bytes == sum(tensor.nbytes for tensor in tensors.values())
    assert result.left_out == (2 if name == "checkpoint" else 0)


@pytest.mark.usefixtures("opened_here")
@pytest.mark.parametrize("name", GOOD)
def test_a_file_is_placed_bit_for_bit(name: str, tmp_path: Path):
    path = tmp_path / "good.pt"
    path.write_bytes(GOOD[name]())
    dispatcher = Dispatcher()
    events = ask(PlaceModel(path=str(path), device="cpu"), dispatcher)
    finished = events[-1]
    assert isinstance(finished, PlaceFinished)
    assert (finished.proof, finished.same_output, finished.tolerance) == ("values", True, 0.0)
    assert finished.model == "good.pt"
    assert [row.name for row in only(PlaceRow, events)] == list(open_tensors(str(path)))
    half = ask(PlaceModel(path=str(path), device="cpu", dtype="float16"), dispatcher)[-1]
    assert half.same_output is True
    assert half.largest_difference <= half.tolerance


@pytest.mark.usefixtures("opened_here")
@pytest.mark.parametrize(
    "value",
    [{1, 2}, 1 + 2j, b"bytes", bytearray(b"b"), Counter("aab"), torch.device("cpu"), torch.float16],
    ids=str,
)
def test_what_pytorchs_safe_reader_makes_beside_the_tensors_is_left_out(value: Any, tmp_path: Path):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(saved({"w": torch.ones(3), "beside": value}))
    (result,) = ask(InspectFile(path=str(path)))
    assert isinstance(result, FileInspected), result
    assert (result.tensors, result.left_out) == (1, 2 if isinstance(value, Counter) else 1)
    assert ask(PlaceModel(path=str(path), device="cpu"))[-1].same_output is True


def test_a_value_that_half_cannot_hold_is_reported(opened_here: None, tmp_path: Path):
    path = tmp_path / "large.pt"
    path.write_bytes(saved({"w": torch.tensor([1e6, 1.0])}))
    finished = ask(PlaceModel(path=str(path), device="cpu", dtype="float16"))[-1]
    assert finished.same_output is False


def test_a_changed_bit_is_seen(opened_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "good.pt"
    path.write_bytes(saved({"w": torch.ones(100), "n": torch.tensor([float("nan")])}))
    assert ask(PlaceModel(path=str(path), device="cpu"))[-1].same_output is True

    def spoiling(thing: PlacedFile, copy: TimedCopy) -> None:
        changed = thing._tensors["w"].clone()
        changed[7] = torch.nextafter(changed[7], torch.tensor(2.0))
        thing._tensors["w"] = changed

    monkeypatch.setattr(PlacedFile, "move", spoiling)
    assert ask(PlaceModel(path=str(path), device="cpu"))[-1].same_output is False


def test_a_file_that_was_written_meanwhile_is_opened_again(opened_here: None, tmp_path: Path):
    """Its tensors stay in the file until they are read: what was mapped may be gone."""
    path, dispatcher = tmp_path / "mine.pt", Dispatcher()
    request = PlaceModel(path=str(path), device="cpu")
    path.write_bytes(saved({"w": torch.ones(1000)}))
    assert ask(request, dispatcher)[-1].tensors == 1
    path.write_bytes(saved({"w": torch.ones(10), "b": torch.ones(10)}))
    rows = only(PlaceRow, ask(request, dispatcher))
    assert [(row.name, row.shape) for row in rows] == [("w", (10,)), ("b", (10,))]
    path.write_bytes(path.read_bytes()[:200])
    assert "is cut off" in ask(request, dispatcher)[-1].failure.message
    path.unlink()
    assert "it does not exist" in ask(request, dispatcher)[-1].failure.message


def test_an_unchanged_file_stays_where_it_was_placed(
    opened_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, dispatcher = tmp_path / "mine.pt", Dispatcher()
    path.write_bytes(saved({"w": torch.ones(10)}))
    request = PlaceModel(path=str(path), device="cpu")
    ask(request, dispatcher)

    def reopen(_path: str) -> None:
        raise AssertionError("it was opened again")

    monkeypatch.setattr(placement, "open_tensors", reopen)
    assert ask(request, dispatcher)[-1].same_output is True


@pytest.mark.usefixtures("opened_here")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_the_reason_and_nothing_runs(name: str, tmp_path: Path):
    os.environ.pop(WITNESS, None)
    make, words = BAD[name]
    path = tmp_path / "bad.pt"
    path.write_bytes(make())
    assert words in refusal(path)
    (failed,) = ask(PlaceModel(path=str(path), device="cpu"))
    assert words in failed.failure.message
    assert "weights_only to False" not in failed.failure.message  # PyTorch's advice to run the code
    assert WITNESS not in os.environ


def test_the_evil_file_of_this_corpus_does_run_in_a_careless_reader():
    """Else the test above would prove nothing."""
    os.environ.pop(WITNESS, None)
    torch.load(io.BytesIO(BAD["code"][0]()), weights_only=False)
    assert os.environ.pop(WITNESS) == "ran"


def test_a_file_that_takes_all_memory_or_an_hour_costs_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "bomb.pt"
    path.write_bytes(copied(1_000_000))
    monkeypatch.setattr(tensor_file, "_MEMORY_BYTES", 600 << 20)
    if sys.platform != "darwin":
        assert "needs more memory" in refusal(path)
    monkeypatch.setattr(tensor_file, "_LONGEST_S", 0.1)
    assert "0 s to open and was stopped" in refusal(path)


def test_before_pytorch_2_10_no_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "good.pt"
    path.write_bytes(saved(state_dict()))
    monkeypatch.setattr(torch, "__version__", "2.9.1+cu126")
    assert "needs PyTorch 2.10 or newer" in refusal(path)
    (failed,) = ask(PlaceModel(path=str(path), device="cpu"))
    assert "this is PyTorch 2.9.1+cu126" in failed.failure.message


def test_what_is_no_file(opened_here: None, tmp_path: Path):
    assert "it does not exist" in refusal(tmp_path / "nothing.pt")
    assert "not an ordinary file" in refusal(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.pt")
        assert "not an ordinary file" in refusal(tmp_path / "pipe.pt")


def test_a_name_from_outside_is_shown_in_one_line(opened_here: None, tmp_path: Path):
    line_end = "" if sys.platform == "win32" else "\n"  # which no name has there
    path = tmp_path / f"bad{line_end}name{'x' * 100}.pt"
    path.write_bytes(b"")
    assert refusal(path).count("\n") == 0
    assert len(refusal(path)) < 100


def test_a_file_that_does_not_fit_into_memory_is_not_opened(
    opened_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "good.pt"
    path.write_bytes(saved(state_dict(), **LEGACY))
    free = SimpleNamespace(available=100)
    monkeypatch.setattr(tensor_file.psutil, "virtual_memory", lambda: free)
    (failed,) = ask(PlaceModel(path=str(path), device="cpu"))
    assert "only 100\u202fbytes of the PC's memory is free" in failed.failure.message


_ZIP, _OLD = saved(state_dict()), saved(state_dict(), **LEGACY)


@hypothesis.given(
    good=st.sampled_from([_ZIP, _OLD]),
    changes=st.lists(
        st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8
    ),
    cut=st.integers(0, 1 << 16),
)
@hypothesis.settings(
    max_examples=150,
    suppress_health_check=[
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,  # PyTorch opens each file anew, also on a busy PC
    ],
)
def test_no_damage_is_more_than_a_refusal(
    tmp_path: Path, good: bytes, changes: list[tuple[int, int]], cut: int
):
    raw = bytearray(good[: max(1, cut % (2 * len(good)))])
    for place, value in changes:
        raw[place % len(raw)] = value
    path = tmp_path / "damaged.pt"
    path.write_bytes(raw)
    with contextlib.suppress(StudioError):
        found = tensor_file.read_tensors(str(path), mmap=True)
        assert sum(one.untyped_storage().nbytes() for _, one in found if one is not None) <= len(
            raw
        )
