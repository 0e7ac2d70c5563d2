"""Every snippet runs as it stands."""

from __future__ import annotations

import pytest
import torch

from gpu_studio.core.protocol import DescribeEngine, PlaceFinished, PlaceModel, RunStarted
from gpu_studio.engine import memory, oom, placement
from gpu_studio.engine.models import MODELS
from tests.engine.answers import ask, only, run_request


def run_snippet(snippet: str, capsys: pytest.CaptureFixture[str]) -> str:
    exec(compile(snippet, "snippet", "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out


@pytest.mark.parametrize("workload", ["elementwise", "matmul"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_workloads_snippet_times_it(
    workload: str, dtype: str, capsys: pytest.CaptureFixture[str]
):
    (started,) = only(RunStarted, ask(run_request(workload=workload, dtype=dtype, size=16)))
    assert f'16, "cpu", torch.{dtype}' in started.snippet
    printed = run_snippet(started.snippet, capsys)
    assert float(printed.removesuffix(" s a call\n")) >= 0


def test_the_engines_snippet_prints_what_it_found(capsys: pytest.CaptureFixture[str]):
    (described,) = ask(DescribeEngine())
    printed = run_snippet(described.snippet, capsys)
    assert f"PyTorch {described.torch_version}" in printed
    assert f"CUDA is available: {described.cuda_available}" in printed


@pytest.mark.parametrize("model", [model.description.name for model in MODELS])
def test_a_placements_snippet_moves_the_model(model: str, capsys: pytest.CaptureFixture[str]):
    (finished,) = only(PlaceFinished, ask(PlaceModel(model=model, device="cpu")))
    assert run_snippet(finished.snippet, capsys).endswith(" cpu\n")


@pytest.mark.parametrize(
    "snippet",
    [
        memory._SNIPPET.format(device="cuda:0"),
        placement._USE_SNIPPET.format(index=0),
        oom._SNIPPET.format(
            device="cuda:0", budget_bytes=64 << 20, count=8, size=2048, dtype="float32"
        ),
    ],
)
def test_snippets_for_a_card_are_complete(snippet: str, capsys: pytest.CaptureFixture[str]):
    if torch.cuda.is_available():
        assert run_snippet(snippet, capsys)
    else:
        # It gets as far as to the first line that needs a card.
        with pytest.raises((AssertionError, AttributeError), match=r"CUDA|cuda"):
            run_snippet(snippet, capsys)
