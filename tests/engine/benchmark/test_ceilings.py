from types import SimpleNamespace

import pytest
import torch

from gpu_studio.core.devices.devices import Device
from gpu_studio.core.messages.run_messages import Limit, RunFinished
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.benchmark import ceilings
from gpu_studio.engine.benchmark.ceilings import UndisturbedRate, ceilings_of
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.train_step import TrainStep
from tests.engine.answers import ask, run_request

CPU = torch.device("cpu")
CARD = Case(device=torch.device("cuda", 0), size=8)


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = SimpleNamespace(begin=lambda: None, end=lambda: None, other_processes=False)
    monkeypatch.setattr(ceilings, "CpuWatch", lambda: quiet)
    monkeypatch.setattr(ceilings, "_COPY", UndisturbedRate())
    monkeypatch.setattr(ceilings, "_PRODUCTS", {})
    monkeypatch.setattr(ceilings, "_measure_copy", lambda: 20e9)
    monkeypatch.setattr(ceilings, "_measure_product", lambda dtype: 300e9)


@pytest.mark.usefixtures("rates")
def test_a_result_says_its_share_of_what_the_cpu_can_do():
    result = ask(run_request(size=64))[-1]
    assert isinstance(result, RunFinished)
    assert result.reached.share == pytest.approx(
        result.details.bytes_per_call / 20e9 / result.median_s
    )
    assert result.reached.ceiling.replace("\u202f", " ") == "memory bandwidth, 20.0 GB/s"
    result = ask(run_request(size=512, workload="matmul"))[-1]
    assert result.reached.share == pytest.approx(2 * 512**3 / 300e9 / result.median_s)
    assert result.reached.ceiling.replace("\u202f", " ") == "peak arithmetic, 300 GFLOP/s"


@pytest.mark.parametrize(
    ("busy", "rate"),
    [
        ([False], 5.0),
        ([None], 5.0),  # too short to tell
        ([True, False], 8.0),
        ([True, True, True], None),
    ],
)
def test_a_disturbed_peak_is_no_peak(
    monkeypatch: pytest.MonkeyPatch, busy: list[bool | None], rate: float | None
):
    seen, measured = iter(busy), iter([5.0, 8.0, 2.0])

    class Watched:
        def __init__(self) -> None:
            self.other_processes = next(seen)

        def begin(self) -> None: ...

        def end(self) -> None: ...

    monkeypatch.setattr(ceilings, "CpuWatch", Watched)
    ceiling = UndisturbedRate()
    found = [ceiling.get(lambda: next(measured)) for _ in busy]
    assert found[-1] == rate
    if rate is not None:
        assert ceiling.get(lambda: pytest.fail("measured once more")) == rate


@pytest.mark.usefixtures("rates")
@pytest.mark.parametrize(("cache_bytes", "is_cached"), [(32 << 20, True), (1 << 16, False)])
def test_what_fits_no_cache_disproves_a_ceiling_that_it_beats(
    monkeypatch: pytest.MonkeyPatch, cache_bytes: int, is_cached: bool
):
    monkeypatch.setattr(ceilings, "_measure_copy", lambda: 1e6)
    monkeypatch.setattr(ceilings, "last_level_bytes", lambda: cache_bytes)
    result = ask(run_request(size=512))[-1]
    assert isinstance(result, RunFinished)
    assert (result.reached is not None) is is_cached


def test_a_cards_ceilings_follow_from_what_the_driver_reports(monkeypatch: pytest.MonkeyPatch):
    card = SimpleNamespace(
        major=6, minor=1, multi_processor_count=3, name="NVIDIA GeForce GT 1030",
        total_memory=2 << 30,
    )  # fmt: skip
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: card.name)
    assert ceilings_of(CARD, None, "float32") is None  # PyTorch before 2.8 does not tell the clock
    described = Device(
        kind="cuda", name=card.name, sm_clock_max_mhz=1468, memory_clock_max_mhz=3004,
        memory_bus_width_bits=64, telemetry=Telemetry(pcie_generation=3, pcie_width=4),
    )  # fmt: skip
    ceilings = ceilings_of(CARD, described, "float32")
    # GT 1030 with GDDR5: 48.1 GB/s, 1.13 TFLOP/s, PCIe 3.0 × 4.
    assert ceilings[Limit.MEMORY] == pytest.approx(48.06e9, rel=1e-3)
    assert ceilings[Limit.ARITHMETIC] == pytest.approx(1.127e12, rel=1e-3)
    assert ceilings[Limit.LINK] == pytest.approx(3.94e9, rel=1e-2)
    card.clock_rate, card.memory_clock_rate, card.memory_bus_width = 1468e3, 3004e3, 64
    from_torch = ceilings_of(CARD, None, "float32")
    assert from_torch[Limit.MEMORY] == ceilings[Limit.MEMORY]
    assert Limit.LINK not in from_torch


@pytest.mark.parametrize(
    ("options", "computed_in"),
    [({}, "float32"), ({"amp": "on", "amp_dtype": "bfloat16"}, "bfloat16")],
)
def test_a_result_says_what_it_was_computed_in(
    options: dict[str, str], computed_in: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ceilings, "_PRODUCTS", {})
    monkeypatch.setattr(ceilings, "_measure_product", lambda dtype: 1e6 * dtype.itemsize)
    request = run_request(workload="train_step", size=8, budget_s=0.01, options=options)
    result = ask(request)[-1]
    assert isinstance(result, RunFinished)
    assert result.conditions.computed_in == computed_in
    rate = 1e6 * getattr(torch, computed_in).itemsize
    operations = TrainStep().work(make_case(TrainStep.description, CPU, 8)).operations
    assert result.reached.share == pytest.approx(operations / rate / result.median_s, rel=0.01)
