import os
import threading

import msgspec
import numpy as np
import pytest

from gpu_studio.core.benchmark.trust import doubts_of
from gpu_studio.core.benchmark.verdict import verdict_of
from gpu_studio.core.devices.devices import Device, GpuProcess
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed
from gpu_studio.core.messages.pitfall_messages import RunPitfall
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.engine.benchmark import rounds
from gpu_studio.engine.quick import adapters, run, shaders, work
from gpu_studio.engine.quick.compute import Compute
from gpu_studio.engine.quick.dispatcher import QuickDispatcher

CASES = [("matmul", 64), ("matmul", 200), ("elementwise", 63), ("copy", 1), ("launch", 1)]


@pytest.mark.parametrize(("name", "size"), CASES)
@pytest.mark.parametrize("device", ["cpu", "vulkan:0", "opengl:0"])
def test_each_workload_is_right_on_each_device(result, name, size, device):
    found = result(name, size, device)
    assert (found.verified, found.device, found.size) == (True, device, size)
    assert found.samples >= 1
    assert found.throughput > 0


@pytest.mark.parametrize("name", ["matmul", "elementwise"])
@pytest.mark.parametrize("device", ["cpu", "vulkan:0"])
def test_float16_is_right_where_it_is_offered(result, name, device):
    assert result(name, 64, device, "float16").verified is True


def failure_of(event):
    return event.failure.message if isinstance(event, RunFailed) else ""


def test_runs_take_turns_and_are_compared(made):
    events = made("copy", 1, "cpu,vulkan:0,opengl:0", budget_s=0.2)
    results = [one for one in events if isinstance(one, RunFinished)]
    assert len({one.turns for one in results}) == 1
    names = {one.device: one.device_name for one in results}
    assert names == {
        "cpu": "Test CPU",
        "vulkan:0": "llvmpipe (software) by Vulkan",
        "opengl:0": "llvmpipe (software) by OpenGL",
    }
    turn = [one.run_id for one in events if isinstance(one, SamplesMeasured)]
    assert turn.index("vulkan:0") < len(turn) - 1 - turn[::-1].index("cpu")
    for one in results:  # of a software adapter, nothing speaks of a card
        words = [doubt.sentence for doubt in doubts_of(one)] + [verdict_of(results).sentence]
        assert not any("GPU" in text or "the card" in text for text in words)


def test_what_other_programs_did_in_a_round_is_told_with_the_next(made, monkeypatch):
    class Busy(rounds.CpuWatch):
        def end(self):
            self.other_processes = True

    monkeypatch.setattr(rounds, "CpuWatch", Busy)
    batches = [one for one in made("copy", 1, "cpu", budget_s=0.2) if is_batch(one)]
    assert {(one.round_number > 1, one.other_processes) for one in batches} == {
        (False, None), (True, True),
    }  # fmt: skip


def is_batch(event):
    return isinstance(event, SamplesMeasured)


class CardSensor:
    """The sensors of one card, which is too hot and has another program on it."""

    card = Device(
        kind="cuda", maker="AMD", name="Radeon RX 580", pci_device_id=0x67DF, uuid="GPU-58",
        pci_bus_id="00000000:01:00.0",
    )  # fmt: skip

    def cards(self):
        return [self.card]

    def device(self, identity):
        assert identity == "GPU-58"
        return self.card

    def read(self, identity, wanted):
        assert identity == "GPU-58"
        return Telemetry(clock_event_reasons=ClockReason.DRIVER_HEAT, utilization_percent=0.0)

    def processes(self, identity):
        ours = GpuProcess(pid=os.getpid(), kind="graphics", memory_bytes=1 << 20)
        return (GpuProcess(pid=1, kind="compute", memory_bytes=1 << 20), ours)


@pytest.fixture
def on_a_card(dispatcher, monkeypatch):
    """Lavapipe, as if it were a card of PCI's numbers; and what reads that card."""
    card = {"is_software": False, "vendor_id": 0x1002, "device_id": 0x67DF}
    found = [
        adapters.FoundAdapter(msgspec.structs.replace(one.facts, **card), one.handle)
        for one in adapters.find_adapters()
        if one.facts.address == "vulkan:0"
    ]
    monkeypatch.setattr("gpu_studio.engine.quick.dispatcher.find_adapters", lambda: found)
    return QuickDispatcher("Test CPU", CardSensor())


def test_the_card_that_an_adapter_is_is_read_while_it_is_measured(on_a_card):
    request = RunWorkload(
        run_id="1", workload="copy", device="vulkan:0", size=1, dtype="float32", budget_s=0.05
    )
    *_, found = on_a_card.run(request, threading.Event())
    assert found.conditions.throttled is True
    assert found.conditions.other_processes is True
    words = {doubt.word for doubt in doubts_of(found)}
    assert words >= {"throttled", "shared card"}


# ── faults on purpose ────────────────────────────────────────────────────────────────────────────


WRONG_LANE = ("sums[2] += rows[row + 2u]", "sums[2] += rows[row + 1u]")
FEW_WRONG = ("T(sums[y].z)", "T(select(sums[y].z, sums[y].x, tile.x + lane.x == 7u))")
STUCK_BIT = ("result[i] = source[i]", "result[i] = source[i] | vec4(u32(i == 77u) << 9u)")


@pytest.mark.parametrize(
    ("name", "size", "shader", "fault"),
    [
        ("matmul", 64, "MATMUL", WRONG_LANE),
        ("matmul", 256, "MATMUL", FEW_WRONG),
        ("copy", 1, "COPY", STUCK_BIT),
        ("elementwise", 64, "ELEMENTWISE", ("T(0.33)", "T(0.3301)")),
        ("elementwise", 64, "ELEMENTWISE", ("let b = right[i]", "let b = right[i ^ 1u]")),
        ("launch", 1, "LAUNCH", ("= -result[0]", "= abs(result[0])")),
    ],
)
def test_a_fault_in_a_shader_is_found(result, monkeypatch, name, size, shader, fault):
    code = getattr(shaders, shader)
    assert fault[0] in code
    kind = type(work.find_quick_work(name))
    monkeypatch.setattr(kind, "shader", code.replace(*fault))
    found = result(name, size, "vulkan:0")
    assert found.verified is False
    assert verdict_of([found]).sentence.startswith("Don't trust")


@pytest.mark.parametrize("name", ["matmul", "launch"])
def test_a_dispatch_that_a_driver_dropped_is_found(result, monkeypatch, name):
    real, dropped = Compute.batch, []

    def batch(self, bound, calls, *, is_each_submitted):
        if calls == 1 or dropped:
            return real(self, bound, calls, is_each_submitted=is_each_submitted)
        dropped.append(calls)
        return real(self, bound, calls - 1, is_each_submitted=is_each_submitted)

    monkeypatch.setattr(Compute, "batch", batch)
    monkeypatch.setattr(rounds, "choose_calls", lambda *_: 3)
    found = result(name, 64 if name == "matmul" else 1, "vulkan:0", budget_s=0.02)
    assert dropped == [3]
    assert found.verified is False


def test_a_result_that_goes_wrong_while_it_is_timed_is_found(result, monkeypatch):
    real, calls = work.AdapterCall.result, []

    def spoiled(self):
        calls.append(self)
        found = real(self).copy()
        if len(calls) > 1:  # after the check before the timing
            found.flat[5] = np.nan
        return found

    monkeypatch.setattr(work.AdapterCall, "result", spoiled)
    assert result("elementwise", 64, "vulkan:0").verified is False


# ── what can fail ────────────────────────────────────────────────────────────────────────────────


def test_a_lost_device_is_a_sentence_and_ends_the_process(made, monkeypatch):
    def lost(self, *_, **__):
        raise self._wgpu.GPUError("Validation Error: Parent device is lost")

    monkeypatch.setattr(Compute, "batch", lost)
    events = made("matmul", 64, "vulkan:0")
    assert "The driver has reset llvmpipe" in events[-1].failure.message
    assert events[-1].failure.fatal


def test_a_call_that_a_display_driver_would_end_is_refused(made, monkeypatch):
    monkeypatch.setattr(run, "_LONGEST_CALL_S", 1e-6)
    (text,) = filter(None, map(failure_of, made("matmul", 512, "vulkan:0")))
    assert "Choose a smaller size" in text


@pytest.mark.parametrize(
    ("size", "other", "words"),
    [
        (64, {"cache": "cold"}, "only with PyTorch: a cold cache"),
        (64, {"transfers": True}, "only with PyTorch: copies in each call"),
        (64, {"options": {"form": "statements"}}, "it has no options"),
        (20000, {}, "at most. Choose a smaller size"),
    ],
)
def test_what_it_cannot_do_is_a_sentence(made, monkeypatch, size, other, words):
    monkeypatch.setattr(run.QuickRun, "_expected_call_s", lambda *_: None)
    monkeypatch.setattr(
        work.QuickMatmul, "operands", lambda *_: [np.zeros((200 << 20) if size > 64 else 64, "f4")]
    )
    (text,) = filter(None, map(failure_of, made("matmul", size, "vulkan:0", **other)))
    assert words in text


def test_a_stop_ends_a_run(dispatcher, made):
    stop, requests = threading.Event(), made("copy", 1, "vulkan:0")
    assert requests
    request = RunWorkload(
        run_id="1", workload="copy", device="vulkan:0", size=1, dtype="float32", budget_s=60
    )
    events = []
    for event in dispatcher.run(request, stop):
        events.append(event)
        if isinstance(event, RunPhaseChanged) and event.phase == "timing":
            stop.set()
    assert isinstance(events[-1], RunStopped)


def test_what_needs_pytorch_says_so(dispatcher):
    (event,) = dispatcher.run(RunPitfall(name="no_synchronize", device="cpu"), threading.Event())
    assert event.failure.message == "This needs PyTorch, which is not installed."


def described(dispatcher) -> EngineDescribed:
    (event,) = dispatcher.run(DescribeEngine(), threading.Event())
    return event


def test_it_describes_its_adapters_software_as_such(dispatcher):
    found = described(dispatcher)
    assert {one.name for one in found.workloads} == {"matmul", "elementwise", "copy", "launch"}
    by_address = {one.address: one for one in found.adapters}
    assert by_address["vulkan:0"].is_software
    assert by_address["opengl:0"].is_software
    assert by_address["vulkan:0"].has_clock


@pytest.mark.parametrize("loader", [None, "libvulkan.so.1"])
def test_without_a_driver_the_cpu_is_measured_and_what_to_install_is_said(monkeypatch, loader):
    wgpu = pytest.importorskip("wgpu")
    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", list)
    monkeypatch.setattr(adapters.sys, "platform", "linux")
    monkeypatch.setattr(adapters.ctypes.util, "find_library", lambda _: loader)
    found = described(QuickDispatcher())
    assert found.adapters == ()
    assert "mesa-vulkan-drivers" in found.cuda_reason
    assert ("no Vulkan loader" in found.cuda_reason) is (loader is None)


def test_without_wgpu_the_cpu_is_measured(monkeypatch):
    monkeypatch.setitem(adapters.sys.modules, "wgpu", None)
    dispatcher = QuickDispatcher("Test CPU")
    assert "(wgpu) is missing" in described(dispatcher).cuda_reason
    request = RunWorkload(
        run_id="1", workload="copy", device="cpu", size=1, dtype="float32", budget_s=0.02
    )
    *_, last = dispatcher.run(request, threading.Event())
    assert last.verified is True
