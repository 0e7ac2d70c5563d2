"""Stand-ins for what a PC would bring: an engine that answers from a script, sensors, devices.

A script is a list of events, or a function of (engine, request) that yields them. A `Pause` in it
holds the engine in the middle of its work until the test says `ScriptedEngine.go`, or until it is
stopped or abandoned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.pitfall_messages import Figure, PitfallDescription, PitfallOutcome
from gpu_studio.core.pc.devices import (
    CardReading,
    Device,
    Driver,
    GpuProcess,
    Inventory,
    Reading,
    SensorEvent,
    Telemetry,
)
from gpu_studio.core.protocol import (
    CacheEmptied,
    DescribeEngine,
    EngineDescribed,
    EngineEnded,
    Event,
    MemoryRead,
    ModelDescription,
    OomFinished,
    PitfallFinished,
    PlaceFinished,
    PlaceRow,
    Request,
    RequestFailed,
    RunFinished,
    RunPhaseChanged,
    RunPitfall,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
    SegmentsRead,
    WorkloadDescription,
    is_last,
)
from gpu_studio.core.statistics import summarize

if TYPE_CHECKING:
    from gpu_studio.core.engine import EngineEnvironment

LONGEST_PAUSE_S = 30.0


class Pause(msgspec.Struct, frozen=True):
    """Hold here. A deaf one is a long call: it does not hear a stop, only an abandon."""

    deaf: bool = False


Script = list[Any] | Callable[["ScriptedEngine", Any], Iterable[Any]]


class ScriptedEngine:
    """Satisfies `core.engine.Engine` with answers from ``scripts``, by the request's type."""

    def __init__(self, scripts: dict[type, Script], environment: EngineEnvironment) -> None:
        self.scripts = scripts
        self.environment = environment
        self.requests: list[Request] = []
        self.calls: list[str] = []
        self.paused = threading.Event()
        self.wake = threading.Condition()
        self._gone = self._stopped = self._abandoned = self._closed = False

    def run(self, request: Request) -> Iterator[Event]:
        self.requests.append(request)
        with self.wake:
            self._gone = self._stopped = self._abandoned = False
        script = self.scripts.get(type(request))
        if script is None:
            message = f"No script for {type(request).__name__}."
            yield RequestFailed(failure=Failure(FailureKind.INTERNAL, message))
            return
        for item in script(self, request) if callable(script) else script:
            if isinstance(item, Pause):
                self._pause(item)
            ending = self._ending(request, item)
            if ending is not None:
                yield ending
                return
            if not isinstance(item, Pause):
                yield item

    def go(self) -> None:
        """Let the pause that holds the engine end."""
        with self.wake:
            self._gone = True
            self.wake.notify_all()

    def stop(self) -> None:
        with self.wake:
            self.calls.append("stop")
            self._stopped = True
            self.wake.notify_all()

    def abandon(self) -> None:
        with self.wake:
            self.calls.append("abandon")
            self._abandoned = True
            self.wake.notify_all()

    def close(self) -> None:
        with self.wake:
            self.calls.append("close")
            self._closed = True
            self.wake.notify_all()

    def _pause(self, pause: Pause) -> None:
        def is_over() -> bool:
            stopped = self._stopped and not pause.deaf
            return self._gone or stopped or self._abandoned or self._closed

        with self.wake:
            self.paused.set()
            assert self.wake.wait_for(is_over, LONGEST_PAUSE_S), "nobody ended this pause"
            self.paused.clear()
            self._gone = False

    def _ending(self, request: Request, item: Any) -> Event | None:
        """Return the early end of an answer: abandoned, or stopped between two calls."""
        with self.wake:
            if self._abandoned or self._closed:
                return EngineEnded(exit_code=None, stopped=True)
            hears = not isinstance(item, Pause) or not item.deaf
            if self._stopped and hears and isinstance(request, RunWorkload):
                if not isinstance(item, Pause) and is_last(item, request):
                    return None
                return RunStopped(run_id=request.run_id)
            return None


class Engines:
    """A factory of scripted engines; ``scripts`` are shared by all it makes, ``made`` are those.

    ``kind`` is the class of the next one, for a test that needs an engine with a fault of its own.
    """

    kind: type[ScriptedEngine] = ScriptedEngine

    def __init__(self, scripts: dict[type, Script] | None = None) -> None:
        self.scripts: dict[type, Script] = {
            DescribeEngine: [described()],
            RunWorkload: lambda _engine, request: run_events(request),
        }
        self.scripts.update(scripts or {})
        self.made: list[ScriptedEngine] = []

    def __call__(self, environment: EngineEnvironment) -> ScriptedEngine:
        engine = self.kind(self.scripts, environment)
        self.made.append(engine)
        return engine

    @property
    def latest(self) -> ScriptedEngine:
        return self.made[-1]

    @property
    def requests(self) -> list[Request]:
        """What all of them were asked, in order."""
        return [request for engine in self.made for request in engine.requests]


class SteadySensors:
    """Satisfies `model.sensors.SensorSource`: an inventory, some readings, then silence."""

    def __init__(self, inventory: Inventory, readings: Iterable[Reading] = ()) -> None:
        self.calls: list[str] = []
        self._events: list[SensorEvent] = [inventory, *readings]
        self._more = threading.Condition()
        self._closed = False

    def readings(self) -> Iterator[SensorEvent]:
        taken = 0
        while True:
            with self._more:
                self._more.wait_for(lambda: self._closed or taken < len(self._events))  # noqa: B023
                if self._closed:
                    return
                event = self._events[taken]
            taken += 1
            yield event

    def send(self, event: SensorEvent) -> None:
        """Bring one more event."""
        with self._more:
            self._events.append(event)
            self._more.notify_all()

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")
        with self._more:
            self._closed = True
            self._more.notify_all()


def elementwise() -> WorkloadDescription:
    return WorkloadDescription(
        name="elementwise",
        title="Elementwise",
        sentence="Ten statements over a square matrix: bound by memory, not by arithmetic.",
        dtypes=("float16", "bfloat16", "float32", "float64"),
        sizes=(256, 512, 1024),
        throughput_unit="B/s",
    )


def matmul() -> WorkloadDescription:
    return WorkloadDescription(
        name="matmul",
        title="Matrix product",
        sentence="One product of two square matrices: bound by arithmetic.",
        dtypes=("float16", "bfloat16", "float32", "float64"),
        sizes=(256, 512, 1024),
        throughput_unit="FLOP/s",
    )


def described(**changes: Any) -> EngineDescribed:
    """Return what a scripted engine says of itself: on the CPU alone unless told otherwise."""
    plain = EngineDescribed(
        pid=4711,
        torch_version="2.13.0+cpu",
        cuda_reason="This PyTorch was built without CUDA.",
        cpu_capability="AVX2",
        cpu_threads=4,
        python_version="3.11.9",
        workloads=(elementwise(), matmul()),
        models=(ModelDescription(name="linear_10", title="Linear(10, 10)", sentence="One layer."),),
        snippet="import torch\n",
    )
    return msgspec.structs.replace(plain, **changes)


def described_with_cuda(**changes: Any) -> EngineDescribed:
    """Return what an engine with a usable card says of itself."""
    with_cuda = {
        "torch_version": "2.13.0+cu126", "cuda_build": "12.6", "cuda_available": True,
        "cuda_reason": None, "device_count": 1, "arch_list": ("sm_61", "sm_86"),
    }  # fmt: skip
    return described(**{**with_cuda, **changes})


def call_time_s(request: RunWorkload) -> float:
    """Return the invented time of one call: a card starts slowly and is ten times as fast."""
    work_s = request.size**2 * 1e-9
    return work_s if request.device == "cpu" else 200e-6 + work_s / 10


def started(request: RunWorkload, **changes: Any) -> RunStarted:
    plain = RunStarted(
        run_id=request.run_id, workload=request.workload, device=request.device,
        size=request.size, dtype=request.dtype, budget_s=request.budget_s,
        snippet=f"# {request.workload} {request.size} {request.dtype} {request.device}\n",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def samples_of(request: RunWorkload, count: int = 40) -> tuple[float, ...]:
    """Return invented samples around `call_time_s`, all different."""
    return tuple(call_time_s(request) * (1 + 0.001 * ((7 * i) % 11 - 5)) for i in range(count))


def batch(
    request: RunWorkload, samples_s: tuple[float, ...], spent_s: float, calls: int = 4
) -> SamplesMeasured:
    return SamplesMeasured(
        run_id=request.run_id, samples_s=samples_s, calls_per_sample=calls, spent_s=spent_s
    )


_DEVICE_NAMES = {
    "cpu": "Ryzen 7 5700G",
    "cuda:0": "NVIDIA GeForce GT 1030",
    "cuda:1": "NVIDIA GeForce RTX 3060",
}


def finished(request: RunWorkload, samples_s: tuple[float, ...], **changes: Any) -> RunFinished:
    """Return the result that these samples give."""
    summary = summarize(samples_s)
    assert summary is not None
    unit = "B/s" if request.workload == "elementwise" else "FLOP/s"
    plain = RunFinished(
        run_id=request.run_id, workload=request.workload, size=request.size, dtype=request.dtype,
        device=request.device,
        device_name=_DEVICE_NAMES.get(request.device, request.device),
        median_s=summary.median_s, iqr_s=summary.iqr_s, ci95_s=summary.ci95_s,
        p99_s=summary.p99_s, samples=summary.samples, calls_per_sample=4,
        throughput=2.0 * request.size**2 / summary.median_s, throughput_unit=unit,
        operations_per_call=2.0 * request.size**2, bytes_per_call=8.0 * request.size**2,
        first_call_s=2 * summary.median_s, warm_up_s=0.3, elapsed_s=request.budget_s,
        verified=True, verification="matches float64 on the CPU",
        throttled=None if request.device == "cpu" else False, cpu_threads=4,
        torch_version="2.13.0", options=request.options, cache=request.cache,
        transfers=request.transfers,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def run_events(request: RunWorkload, **changes: Any) -> Iterator[Event]:
    """Yield a whole run; ``changes`` are of its result."""
    samples_s = samples_of(request)
    half = len(samples_s) // 2
    yield started(request)
    yield RunPhaseChanged(run_id=request.run_id, phase="set-up")
    yield RunPhaseChanged(
        run_id=request.run_id, phase="warm-up", expected_call_s=call_time_s(request)
    )
    yield RunPhaseChanged(run_id=request.run_id, phase="timing")
    yield batch(request, samples_s[:half], request.budget_s / 2)
    yield batch(request, samples_s[half:], request.budget_s)
    yield finished(request, samples_s, **changes)


def cpu_device() -> Device:
    return Device(
        kind="cpu", name="AMD Ryzen 7 5700G with Radeon Graphics", cores=8, threads=16,
        memory_total_bytes=32 << 30, clock_max_mhz=4672.0,
    )  # fmt: skip


def gt_1030_card(**changes: Any) -> Device:
    plain = Device(
        kind="cuda", name="NVIDIA GeForce GT 1030",
        uuid="GPU-1b2f5a80-8d65-4b4f-9f7e-0a6c1c1d1030", memory_total_bytes=2 << 30,
        compute_capability="6.1", architecture="Pascal", nvml_index=0,
        pci_bus_id="00000000:01:00.0", multiprocessors=3, cuda_cores=384,
        memory_bus_width_bits=64, sm_clock_max_mhz=1911.0, memory_clock_max_mhz=3004.0,
        pcie_generation_max=3, pcie_width_max=4, vbios="86.08.3B.00.5A", display_active=True,
        compute_mode="default",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def rtx_3060_card(**changes: Any) -> Device:
    plain = Device(
        kind="cuda", name="NVIDIA GeForce RTX 3060",
        uuid="GPU-77aa0d1c-0000-4c55-b9a1-33060306ffff", memory_total_bytes=12 << 30,
        compute_capability="8.6", architecture="Ampere", nvml_index=1,
        pci_bus_id="00000000:06:00.0", multiprocessors=28, cuda_cores=3584,
        memory_bus_width_bits=192, sm_clock_max_mhz=2100.0, memory_clock_max_mhz=7501.0,
        pcie_generation_max=4, pcie_width_max=16, display_active=False, compute_mode="default",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def cpu_only() -> Inventory:
    """A PC without an NVIDIA card or driver."""
    return Inventory(
        devices=(cpu_device(),),
        driver=Driver(error="No NVIDIA driver is installed.", error_code=12),
    )


def gt_1030() -> Inventory:
    """A PC with one small card that drives the monitor."""
    return Inventory(
        devices=(cpu_device(), gt_1030_card()),
        driver=Driver(version="570.86.16", cuda_version="12.8", nvml_version="12.570.86.16"),
    )


def two_cards() -> Inventory:
    """A PC with two cards, each in its place on the bus."""
    return Inventory(
        devices=(cpu_device(), gt_1030_card(), rtx_3060_card()),
        driver=Driver(version="580.95.05", cuda_version="13.0", nvml_version="13.580.95.05"),
    )


def reading(inventory: Inventory, taken_at_s: float = 0.0, **changes: Any) -> Reading:
    """Return a reading of all devices of an inventory; ``changes`` are of each card's telemetry."""
    card_telemetry = Telemetry(
        power_w=9.5, power_limit_w=30.0, temperature_c=41.0, fan_percent=35.0,
        utilization_percent=4.0, memory_utilization_percent=1.0,
        memory_used_bytes=256 << 20, memory_free_bytes=1700 << 20, pstate=8,
        sm_clock_mhz=227.0, memory_clock_mhz=405.0, pcie_generation=1, pcie_width=4,
        clock_event_reasons=1,
    )  # fmt: skip
    card_telemetry = msgspec.structs.replace(card_telemetry, **changes)
    process = GpuProcess(
        pid=1234, name="/usr/lib/xorg/Xorg", kind="graphics", memory_bytes=90 << 20
    )
    return Reading(
        taken_at_s=taken_at_s,
        cpu=Telemetry(utilization_percent=12.0, memory_used_bytes=8 << 30, sm_clock_mhz=3800.0),
        cards=tuple(
            CardReading(uuid=card.identity, telemetry=card_telemetry, processes=(process,))
            for card in inventory.cards
        ),
    )


def memory_read(
    device: str = "cuda:0", *, allocated: int = 0, reserved: int = 0, **changes: Any
) -> MemoryRead:
    """Return a reading in MiB: a GT 1030 of which others hold 338, or a PC with 32 GiB."""
    if device == "cpu":
        plain = MemoryRead(
            device="cpu", taken_at_s=10.0, process_bytes=350 << 20, total_bytes=32 << 30,
            free_bytes=20 << 30,
        )  # fmt: skip
    else:
        plain = MemoryRead(
            device=device, taken_at_s=10.0, allocated_bytes=allocated << 20,
            reserved_bytes=reserved << 20, releasable_bytes=(reserved - allocated) << 20,
            total_bytes=1996 << 20, free_bytes=(1996 - 338 - reserved) << 20,
        )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def segments_read(read: MemoryRead, **changes: Any) -> SegmentsRead:
    """Return one segment of 20 MiB with 15 MiB in use, the largest hole of 5 MiB at its end."""
    mib = 1 << 20
    plain = SegmentsRead(
        device=read.device, read=read, largest_block_bytes=5 * mib, free_total_bytes=20 * mib,
        addresses=(0x7F0000000000,), sizes=(20 * mib,), is_small=(False,),
        is_expandable=(False,), streams=(0,), pools=((0, 0),), block_counts=(3,),
        block_sizes=(10 * mib, 5 * mib, 5 * mib), requested_sizes=(10 * mib, 5 * mib, 0),
        block_states="002", modelled=read.modelled,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def no_context(device: str = "cuda:0") -> MemoryRead:
    """Return a reading of a card that the engine has not used yet."""
    return MemoryRead(device=device, taken_at_s=10.0)


def oom_finished(outcome: str = "over_budget", **changes: Any) -> OomFinished:
    """Return the end of the GT 1030 experiment with the error's own numbers."""
    plain = OomFinished(
        device="cuda:0", outcome=outcome, tensors=4, tensor_bytes=256 << 20,
        allocated_bytes=1024 << 20, reserved_bytes=1024 << 20, tried_bytes=256 << 20,
        free_bytes=634 << 20, total_bytes=1996 << 20, limit_bytes=1200 << 20, unallocated_bytes=0,
        error_text="CUDA out of memory. Tried to allocate 256.00 MiB.",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def cache_emptied(before: MemoryRead, freed: int, **changes: Any) -> CacheEmptied:
    """Return what empty_cache did: ``freed`` in MiB."""
    after = msgspec.structs.replace(
        before,
        taken_at_s=before.taken_at_s + 0.01,
        reserved_bytes=(before.reserved_bytes or 0) - (freed << 20),
        releasable_bytes=(before.releasable_bytes or 0) - (freed << 20),
        free_bytes=(before.free_bytes or 0) + (freed << 20),
    )
    plain = CacheEmptied(
        device=before.device, predicted_bytes=freed << 20, freed_bytes=freed << 20,
        before=before, after=after,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def place_row(name: str = "weight", shape: tuple[int, ...] = (10, 10), **changes: Any) -> PlaceRow:
    """Return one float32 tensor that went from the CPU to the first card."""
    count = 1
    for length in shape:
        count *= length
    plain = PlaceRow(
        name=name, kind="parameter", shape=shape, dtype="float32", bytes=4 * count,
        device_before="cpu", device_after="cuda:0",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def place_finished(**changes: Any) -> PlaceFinished:
    """Return the proof of a small network's move to the first card."""
    plain = PlaceFinished(
        model="convnet", device="cuda:0", tensors=15, moved_bytes=84 << 10, elapsed_s=0.21e-3,
        same_output=True, largest_difference=2.4e-7, tolerance=1e-5, input_shape=(8, 3, 32, 32),
        output_device="cuda:0", allocated_delta_bytes=86_528,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def pitfall(name: str, **changes: Any) -> PitfallDescription:
    """Return a pitfall of the lab."""
    plain = PitfallDescription(
        name=name, title=name.replace("_", " ").capitalize(), sentence="It goes wrong.",
        why="There is a reason.", remedy="Do it otherwise.", source="A book",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def pitfall_finished(request: RunPitfall, **changes: Any) -> PitfallFinished:
    """Return what came of the parts that were asked for."""
    outcomes = {
        part: PitfallOutcome(
            part=part,
            sentence=f"It was {part}.",
            error="RuntimeError: two devices" if part == "broken" else "",
            figures=(Figure(name="call_s", title="A call", value=0.002, unit="s"),),
        )
        for part in ("broken", "fixed")
        if request.part in (part, "both")
    }
    plain = PitfallFinished(
        name=request.name, device=request.device, broken=outcomes.get("broken"),
        fixed=outcomes.get("fixed"), broken_snippet="# broken\n", fixed_snippet="# fixed\n",
        snippet=f"# {request.part}\n", elapsed_s=0.1,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)
