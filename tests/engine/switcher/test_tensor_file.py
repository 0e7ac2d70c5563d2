"""The user's own file: good ones are read as PyTorch reads them, bad ones are refused, unrun."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from argparse import Namespace
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
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
from gpu_studio.engine.switcher import placement
from gpu_studio.engine.switcher.placement import PlacedFile
from gpu_studio.engine.switcher.tensor_file import open_tensors, read_header
from tests.engine.answers import ask, only

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.engine.switcher.timed_copy import TimedCopy
from tests.engine.switcher.tensor_files import BAD, GOOD, LEGACY, WITNESS, saved, state_dict


def refusal(path: Path) -> str:
    (failed,) = ask(InspectFile(path=str(path)))
    assert isinstance(failed, RequestFailed), failed
    assert failed.failure.kind is FailureKind.FILE_REFUSED
    assert not failed.failure.traceback_text
    return failed.failure.message


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
    assert result.is_mapped is ("old" not in name)


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


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (np.ones(4), "NumPy arrays or numbers"),
        (np.float64(0.5), "number.item()"),
        (np.int64(3), "number.item()"),
        (frozenset({1}), "a value of the type builtins.frozenset beside its tensors"),
        (datetime(2026, 1, 1), "a value of the type datetime.datetime"),
        (PurePosixPath("/x"), f"a value of the type {PurePosixPath.__module__}.PurePosixPath"),
        (Namespace(lr=0.1), "a value of the type argparse.Namespace"),
        (defaultdict(list), "a value of the type collections.defaultdict"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_does_no_harm_is_refused_without_calling_it_code(
    value: Any, sentence: str, tmp_path: Path
):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(saved({"w": torch.ones(3), "beside": value}))
    with pytest.raises(pickle.UnpicklingError):  # as PyTorch does; otherwise it could be opened
        torch.load(path, weights_only=True)
    assert sentence in refusal(path)
    assert "code" not in refusal(path)


@pytest.mark.parametrize(
    "name",
    ["numpy.testing runstring", "numpy.f2py.diagnose run_command", "numpy load", "builtins eval"],
)
def test_neighbours_of_harmless_names_are_code(name: str, tmp_path: Path):
    module, function = name.split(" ")
    path = file_that_names(module, function, tmp_path)
    assert f"has code in it: opening it would call {module}.{function}" in refusal(path)


@pytest.mark.parametrize("module", ["pathlib", "pathlib._local"])
def test_a_path_is_no_code_whichever_python_saved_it(module: str, tmp_path: Path):
    sentence = refusal(file_that_names(module, "PurePosixPath", tmp_path))
    assert f"a value of the type {module}.PurePosixPath" in sentence
    assert "code" not in sentence


def file_that_names(module: str, name: str, folder: Path) -> Path:
    """Write a file that is loaded by calling a name of a module."""
    path = folder / "naming.pt"
    stream = io.BytesIO(saved({"w": torch.ones(1), "beside": {1}}))
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(path, "w") as new:
        for record in old.namelist():
            content = old.read(record)
            if record.endswith("data.pkl"):
                assert b"c__builtin__\nset\n" in content
                content = content.replace(b"c__builtin__\nset\n", f"c{module}\n{name}\n".encode())
            new.writestr(record, content)
    return path


def test_a_value_that_half_cannot_hold_is_reported(tmp_path: Path):
    path = tmp_path / "large.pt"
    path.write_bytes(saved({"w": torch.tensor([1e6, 1.0])}))
    finished = ask(PlaceModel(path=str(path), device="cpu", dtype="float16"))[-1]
    assert finished.same_output is False


def test_a_changed_bit_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "good.pt"
    path.write_bytes(saved({"w": torch.ones(100), "n": torch.tensor([float("nan")])}))
    assert ask(PlaceModel(path=str(path), device="cpu"))[-1].same_output is True

    def spoiling(thing: PlacedFile, copy: TimedCopy) -> None:
        changed = thing._tensors["w"].clone()
        changed[7] = torch.nextafter(changed[7], torch.tensor(2.0))
        thing._tensors["w"] = changed

    monkeypatch.setattr(PlacedFile, "move", spoiling)
    assert ask(PlaceModel(path=str(path), device="cpu"))[-1].same_output is False


def test_a_file_that_was_written_meanwhile_is_opened_again(tmp_path: Path):
    """Its tensors stay in the file until they are read: what was mapped may be gone."""
    path, dispatcher = tmp_path / "mine.pt", Dispatcher()
    request = PlaceModel(path=str(path), device="cpu")
    path.write_bytes(saved({"w": torch.ones(1000)}))
    assert ask(request, dispatcher)[-1].tensors == 1
    path.write_bytes(saved({"w": torch.ones(10), "b": torch.ones(10)}))
    rows = only(PlaceRow, ask(request, dispatcher))
    assert [(row.name, row.shape) for row in rows] == [("w", (10,)), ("b", (10,))]
    path.write_bytes(path.read_bytes()[:200])
    assert "cut off" in ask(request, dispatcher)[-1].failure.message
    path.unlink()
    assert "it does not exist" in ask(request, dispatcher)[-1].failure.message


def test_an_unchanged_file_stays_where_it_was_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, dispatcher = tmp_path / "mine.pt", Dispatcher()
    path.write_bytes(saved({"w": torch.ones(10)}))
    request = PlaceModel(path=str(path), device="cpu")
    ask(request, dispatcher)

    def reopen(_path: str) -> None:
        raise AssertionError("it was opened again")

    monkeypatch.setattr(placement, "open_tensors", reopen)
    assert ask(request, dispatcher)[-1].same_output is True


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_the_reason_and_nothing_runs(name: str, tmp_path: Path):
    os.environ.pop(WITNESS, None)
    make, words = BAD[name]
    path = tmp_path / "bad.pt"
    path.write_bytes(make())
    assert words in refusal(path)
    (failed,) = ask(PlaceModel(path=str(path), device="cpu"))
    assert words in failed.failure.message
    assert WITNESS not in os.environ


@pytest.mark.parametrize("name", ["code", "code, plain pickle"])
def test_the_evil_files_of_this_corpus_do_run_in_a_careless_reader(name: str, tmp_path: Path):
    """Else the tests above would prove nothing."""
    os.environ.pop(WITNESS, None)
    if name == "code":
        torch.load(io.BytesIO(BAD[name][0]()), weights_only=False)
    else:
        pickle.loads(BAD[name][0]())
    assert os.environ.pop(WITNESS) == "ran"


def test_what_is_no_file(tmp_path: Path):
    assert "it does not exist" in refusal(tmp_path / "nothing.pt")
    assert "not an ordinary file" in refusal(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.pt")
        assert "not an ordinary file" in refusal(tmp_path / "pipe.pt")


def test_a_name_from_outside_is_shown_in_one_line(tmp_path: Path):
    line_end = "" if sys.platform == "win32" else "\n"  # which no name has there
    path = tmp_path / f"bad{line_end}name{'x' * 100}.pt"
    path.write_bytes(b"")
    assert refusal(path).count("\n") == 0
    assert len(refusal(path)) < 100


def test_pytorch_has_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "good.pt"
    path.write_bytes(saved(state_dict()))
    asked: list[dict[str, Any]] = []

    def refusing(*_: Any, **options: Any) -> None:
        asked.append(options)
        raise pickle.UnpicklingError("Weights only load failed. … weights_only to False")

    monkeypatch.setattr(torch, "load", refusing)
    with pytest.raises(StudioError, match="refused by PyTorch's safe reader") as caught:
        open_tensors(str(path))
    mmap = sys.platform != "win32"
    assert asked == [{"map_location": "cpu", "weights_only": True, "mmap": mmap}]
    assert "False" not in str(caught.value)  # no advice to run the code


def test_tensors_that_are_not_those_of_the_header_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "good.pt"
    path.write_bytes(saved({"w": torch.ones(3)}))
    monkeypatch.setattr(torch, "load", lambda *_, **__: {"w": torch.ones(4)})
    with pytest.raises(StudioError, match="do not agree"):
        open_tensors(str(path))


_ZIP, _OLD = saved(state_dict()), saved(state_dict(), **LEGACY)


@hypothesis.given(
    good=st.sampled_from([_ZIP, _OLD]),
    changes=st.lists(
        st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8
    ),
    cut=st.integers(0, 1 << 16),
)
@hypothesis.settings(
    max_examples=300, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_no_damage_is_more_than_a_refusal(
    tmp_path: Path, good: bytes, changes: list[tuple[int, int]], cut: int
):
    raw = bytearray(good[: max(1, cut % (2 * len(good)))])
    for place, value in changes:
        raw[place % len(raw)] = value
    path = tmp_path / "damaged.pt"
    path.write_bytes(raw)
    try:
        declared = read_header(path).tensor_bytes
    except StudioError:
        return
    assert declared <= len(raw)
