import time
from collections.abc import Callable

import pytest
import torch

from gpu_studio.core.check.stages import check_code
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel
from gpu_studio.core.messages.run_messages import RunStarted
from gpu_studio.core.switcher.whole_snippet import runs_as_it_stands, snippet_for_device
from gpu_studio.engine import device
from gpu_studio.engine.device import AcceleratorState
from gpu_studio.engine.memory import caching_allocator
from gpu_studio.engine.pitfalls.pitfall import Pitfall
from gpu_studio.engine.pitfalls.registry import PITFALLS, find_pitfall
from gpu_studio.engine.switcher import placement
from gpu_studio.engine.switcher.placement import MODELS
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload
from tests.engine.answers import ask, only, run_request


def run_snippet(snippet: str, capsys: pytest.CaptureFixture[str]) -> str:
    exec(compile(snippet, "snippet", "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out


@pytest.mark.parametrize(("workload", "dtype"), [("elementwise", "float16"), ("matmul", "float64")])
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


@pytest.mark.parametrize("dtype", ["", "float16", "float32"])
@pytest.mark.parametrize("model", [model.description.name for model in MODELS])
def test_a_placements_snippet_moves_the_model(
    model: str, dtype: str, capsys: pytest.CaptureFixture[str]
):
    (finished,) = only(PlaceFinished, ask(PlaceModel(model=model, device="cpu", dtype=dtype)))
    first, *tensors = run_snippet(finished.snippet, capsys).splitlines()
    assert first.endswith(f"torch.{dtype or 'float32'} cpu")
    assert len(tensors) == finished.tensors
    assert all(line.endswith(" cpu") for line in tensors)


def test_the_lines_that_torchrun_starts_are_not_said_to_run_as_they_stand():
    workload = find_workload("data_parallel")
    for way, is_pasted in (("DataParallel", True), ("DistributedDataParallel", False)):
        case = make_case(
            workload.description, torch.device("cpu"), 64, options={"way": way, "processes": "2"}
        )
        assert runs_as_it_stands(workload.snippet(case)) is is_pasted


# The others are run as scripts when their pitfall is: see pitfalls/test_measured.
_IN_THIS_PROCESS = [
    pitfall
    for pitfall in PITFALLS
    if pitfall.description.name not in ("starved_gpu", "visible_devices_too_late", "sticky_error")
]
_RAISING = {"mixed_devices": RuntimeError}


@pytest.mark.parametrize("part", ["broken", "fixed"])
@pytest.mark.parametrize("pitfall", _IN_THIS_PROCESS, ids=lambda one: one.description.name)
@pytest.mark.filterwarnings("ignore:.*torch.cuda.amp:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*CUDA is not available:UserWarning")
def test_a_pitfalls_snippet_shows_it(
    pitfall: Pitfall, part: str, capsys: pytest.CaptureFixture[str]
):
    snippet = pitfall.snippet(part, "cpu")
    if part == "broken" and pitfall.description.name in _RAISING:
        with pytest.raises(_RAISING[pitfall.description.name], match="meta"):
            run_snippet(snippet, capsys)
    else:
        assert run_snippet(snippet, capsys)


_ON_THE_CPU = {("model_on_cpu", "broken"), ("fresh_results", "broken"), ("fresh_results", "fixed")}


@pytest.mark.parametrize("part", ["broken", "fixed"])
@pytest.mark.parametrize("pitfall", PITFALLS, ids=lambda one: one.description.name)
def test_a_pitfalls_snippet_for_a_card_names_that_card(pitfall: Pitfall, part: str):
    snippet = pitfall.snippet(part, "cuda:1")
    compile(snippet, "snippet", "exec")
    on_the_cpu = (pitfall.description.name, part) in _ON_THE_CPU
    assert ("cuda" in snippet) is not on_the_cpu
    assert '"cpu"' not in snippet
    assert len(snippet.splitlines()) < 45
    assert max(map(len, snippet.splitlines())) <= 100


_ABOUT_CUDA = {"old_amp_import", "visible_devices_too_late"}


@pytest.mark.parametrize("part", ["broken", "fixed"])
def test_a_pitfalls_snippet_for_another_makers_card_does_not_ask_cuda(part: str):
    for pitfall in PITFALLS:
        if pitfall.description.name not in _ABOUT_CUDA:
            assert "torch.cuda" not in pitfall.snippet(part, "xpu:0"), pitfall.description.name


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def have(count: int) -> None:
        monkeypatch.setattr(device, "accelerator_state", lambda: AcceleratorState(count > 0))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return have


def test_on_a_pc_with_several_cards_a_snippet_begins_with_their_order(cards: Callable):
    snippet = 'import torch\n\nx = torch.ones(1, device="cuda:1")\n'
    cards(1)
    assert device.complete(snippet) == snippet
    cards(2)
    order = 'import os\n\nos.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"\n\n'
    assert device.complete(snippet) == order + snippet
    assert device.complete(order + snippet) == order + snippet
    assert device.complete("import torch\n") == "import torch\n"
    assert device.complete("import os\n\n" + snippet) == order + snippet
    remark = "# Save this as share.py.\n"
    assert device.complete(f"{remark}import os\n{snippet}") == remark + order + snippet
    cards(0)
    assert device.complete(snippet) == snippet


def test_the_lines_for_a_chosen_device_make_a_tensor_there(capsys: pytest.CaptureFixture[str]):
    assert run_snippet(snippet_for_device("cpu"), capsys) == "made on cpu\n"
    assert "torch.xpu.set_device(device)" in snippet_for_device("xpu:1")


def test_where_cards_are_hidden_a_snippet_hides_them_as_well(
    cards: Callable, monkeypatch: pytest.MonkeyPatch
):
    cards(1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1234")
    whole = device.complete('import torch\n\nx = torch.ones(1, device="cuda:0")\n')
    assert whole.splitlines()[:4] == [
        "import os", "", 'os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"',
        "os.environ[\"CUDA_VISIBLE_DEVICES\"] = 'GPU-1234'",
    ]  # fmt: skip
    too_late = find_pitfall("visible_devices_too_late").snippet("broken", "cuda:0")
    assert "GPU-1234" not in device.complete(too_late)


@pytest.mark.parametrize(
    "snippet",
    [
        caching_allocator._SNIPPET.format(device="cuda:0", module="torch.cuda"),
        placement._USE_SNIPPET.format(module="torch.cuda", index=0),
    ],
)
def test_snippets_for_a_card_are_complete(snippet: str, capsys: pytest.CaptureFixture[str]):
    if torch.cuda.is_available():
        assert run_snippet(snippet, capsys)
    else:
        # It gets as far as to the first line that needs a card; a CUDA build asks for a driver.
        errors = (AssertionError, AttributeError, RuntimeError)
        with pytest.raises(errors, match=r"CUDA|cuda|NVIDIA driver"):
            run_snippet(snippet, capsys)


def test_the_code_of_a_check_runs_and_finds_no_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    assert "No error" in run_snippet(check_code("cpu"), capsys)
