import msgspec
import pytest
import torch

from gpu_studio.core.benchmark.ceilings import Ceilings, card_ceilings
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.devices.peaks import card_peaks
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.benchmark import admission, run
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.registry import WORKLOADS, find_workload

CARD = torch.device("cuda", 0)
PRODUCTS = ("matmul", "linear", "tiny_linear", "conv2d")


@pytest.fixture
def gt_1030(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyTorch's answers be those of a GT 1030 with GDDR5."""
    peaks = card_peaks("6.1", 3, 1468e6, 64, 3004e6, "NVIDIA GeForce GT 1030")
    assert peaks is not None

    def ceilings_of(case: Case, card: Device | None, computed_in: str) -> Ceilings:
        return card_ceilings(peaks, computed_in)

    be_a_card(monkeypatch, (6, 1))
    monkeypatch.setattr(admission, "ceilings_of", ceilings_of)


def be_a_card(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda one: "NVIDIA GeForce GT 1030")


def case_of(name: str, dtype: str, size: int | None = None, **options: str) -> Case:
    description = find_workload(name).description
    size = size or max(description.sizes)
    return make_case(description, CARD, size, dtype, options=options)


def refusal_of(name: str, case: Case) -> StudioError | None:
    try:
        admission.refuse_unsupported_dtype(find_workload(name), case)
    except StudioError as error:
        return error
    return None


@pytest.mark.parametrize("capability", [(5, 0), (5, 2), (6, 0), (6, 1)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_maxwell_and_pascal_cannot_multiply_in_bfloat16(
    name: str, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    be_a_card(monkeypatch, capability)
    error = refusal_of(name, case_of(name, "bfloat16"))
    assert error is not None
    assert error.kind is FailureKind.DTYPE_UNSUPPORTED
    for word in ("GT 1030", f"{capability[0]}.{capability[1]}", "bfloat16", "float32"):
        assert word in str(error)
    assert "converts" not in str(error)
    for dtype in ("float16", "float32", "float64"):
        assert refusal_of(name, case_of(name, dtype)) is None


@pytest.mark.parametrize("capability", [(7, 0), (7, 5), (8, 6), (12, 0)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_later_cards_can(name: str, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    be_a_card(monkeypatch, capability)
    assert refusal_of(name, case_of(name, "bfloat16")) is None


def test_autocast_to_bfloat16_is_refused_as_well(gt_1030: None):
    case = case_of("train_step", "float32", amp="on", amp_dtype="bfloat16")
    assert refusal_of("train_step", case) is not None
    for options in ({"amp": "on"}, {"amp": "off"}, {"amp": "off", "amp_dtype": "bfloat16"}):
        assert refusal_of("train_step", case_of("train_step", "float32", **options)) is None


def test_every_workload_of_products_is_known():
    """A product in bfloat16 on an old card must never be found out by an error of cuBLAS."""
    for workload in WORKLOADS:
        if workload.description.throughput_unit == "FLOP/s":
            assert workload.has_products, workload.description.name


def test_a_kernel_of_seconds_is_refused_with_what_would_do(gt_1030: None):
    workload = find_workload("matmul")
    with pytest.raises(StudioError) as refusal:
        admission.refuse_long_kernel(workload, case_of("matmul", "float64", 4096), None)
    assert refusal.value.kind is FailureKind.TOO_LARGE
    message = str(refusal.value).replace("\u202f", " ")
    for words in ("4096 × 4096", "float64", "3.90 s", "GT 1030", "2 s", "2048 × 2048 or less"):
        assert words in message
    for dtype, size in (("float64", 2048), ("float32", 4096), ("float16", 4096)):
        admission.refuse_long_kernel(workload, case_of("matmul", dtype, size), None)


def test_the_longest_kernel_counts_and_not_the_whole_call(gt_1030: None):
    # The whole call takes 1.3 s at best, but it is three kernels.
    workload, case = find_workload("conv2d"), case_of("conv2d", "float64", 64)
    kernel_s = admission.kernel_time_s(workload, case, None)
    assert kernel_s == pytest.approx(0.42, abs=0.01)
    admission.refuse_long_kernel(workload, case, None)
    with pytest.raises(StudioError):
        admission.refuse_long_kernel(workload, case.at(256), None)


def test_without_peaks_a_small_call_reports(gt_1030: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "ceilings_of", lambda *arguments: None)
    workload, case = find_workload("matmul"), case_of("matmul", "float64", 4096)
    admission.refuse_long_kernel(workload, case, None)  # nothing is known yet
    admission.refuse_long_kernel(workload, case, None, expected_call_s=0.9)
    with pytest.raises(StudioError, match=r"smaller|or less"):
        admission.refuse_long_kernel(workload, case, None, expected_call_s=1.1)


def test_a_run_asks_before_it_computes(gt_1030: None, monkeypatch: pytest.MonkeyPatch):
    from threading import Event

    from gpu_studio.core.messages.run_messages import RunWorkload

    monkeypatch.setattr(admission, "resolve", lambda address: CARD)
    for name in ("prove_kernels", "refuse_too_large"):
        monkeypatch.setattr(run, name, lambda *arguments: CARD)
    monkeypatch.setattr(run, "time_naively", lambda *arguments: pytest.fail("computed"))
    monkeypatch.setattr(run, "check_answers", lambda *arguments: pytest.fail("computed"))
    request = RunWorkload(
        run_id="1", workload="matmul", device="cuda:0", size=4096, dtype="float64", naive=True
    )
    with pytest.raises(StudioError, match="kernel"):
        list(run.WorkloadRun(request, Event()).events())
    in_bfloat16 = msgspec.structs.replace(request, dtype="bfloat16")
    with pytest.raises(StudioError, match="bfloat16"):
        list(run.WorkloadRun(in_bfloat16, Event()).events())
