"""The language between window and engine: one JSON object a line.

The same lines are the format of recordings and what ``gpu-studio bench --json`` prints. Every
request is answered by any number of events, of which exactly the last is a `LAST_EVENTS`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import Failure  # noqa: TC001  # msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=_tag):
    """The base of all requests and events; its tag is the class name in snake case."""


# ── requests ──────────────────────────────────────────────────────────────────────────────────


class DescribeEngine(Message, frozen=True, kw_only=True):
    """What are you, and what can you run? Makes no CUDA context."""


class RunWorkload(Message, frozen=True, kw_only=True):
    """Time one workload on one device. ``budget_s`` counts the timed part alone."""

    run_id: str
    workload: str
    device: str
    size: int
    dtype: str
    budget_s: float = 2.0
    stop_at_relative_interval: float | None = None


class UseDevice(Message, frozen=True, kw_only=True):
    """Make a card the current one (``torch.cuda.set_device``)."""

    cuda_index: int


class PlaceModel(Message, frozen=True, kw_only=True):
    """Move a built-in model to a device and prove that its output stays the same."""

    model: str
    device: str


class ReadMemory(Message, frozen=True, kw_only=True):
    """How is the memory of a device used? Makes no CUDA context: without one it says so."""

    device: str


class EmptyCache(Message, frozen=True, kw_only=True):
    """Give PyTorch's free segments back to the driver (``torch.cuda.empty_cache``)."""

    device: str


class BreakMemory(Message, frozen=True, kw_only=True):
    """Allocate ``count`` square tensors of ``size`` until they are there or memory ends.

    ``budget_bytes`` caps what the allocator may take (``set_per_process_memory_fraction``), so
    that a real out-of-memory error comes before the card is full.
    """

    device: str
    size: int
    count: int
    dtype: str
    budget_bytes: int


class Stop(Message, frozen=True, kw_only=True):
    """End what is running between two calls. It has no answer of its own."""


Request = (
    DescribeEngine
    | RunWorkload
    | UseDevice
    | PlaceModel
    | ReadMemory
    | EmptyCache
    | BreakMemory
    | Stop
)


# ── events ────────────────────────────────────────────────────────────────────────────────────


class WorkloadDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload is, told by the file that implements it."""

    name: str
    title: str
    sentence: str
    dtypes: tuple[str, ...]
    sizes: tuple[int, ...]
    throughput_unit: str
    source: str = ""


class ModelDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in model of the Switcher tab."""

    name: str
    title: str
    sentence: str


class EngineDescribed(Message, frozen=True, kw_only=True):
    """An engine's own account of itself."""

    pid: int
    torch_version: str
    cuda_build: str | None = None
    cuda_available: bool = False
    cuda_reason: str | None = None
    device_count: int = 0
    arch_list: tuple[str, ...] = ()
    cpu_capability: str | None = None
    cpu_threads: int = 0
    visible_devices: str | None = None
    allocator_configuration: str | None = None
    python_version: str = ""
    workloads: tuple[WorkloadDescription, ...] = ()
    models: tuple[ModelDescription, ...] = ()
    snippet: str = ""
    recording: str | None = None


class RunStarted(Message, frozen=True, kw_only=True):
    """A run was accepted; ``expected_call_s`` is known after the first call (`RunPhaseChanged`)."""

    run_id: str
    workload: str
    device: str
    size: int
    dtype: str
    budget_s: float
    snippet: str = ""
    recording: str | None = None


class RunPhaseChanged(Message, frozen=True, kw_only=True):
    """What a run does now: ``set-up``, ``verification``, ``warm-up`` or ``timing``."""

    run_id: str
    phase: str
    expected_call_s: float | None = None


class SamplesMeasured(Message, frozen=True, kw_only=True):
    """A batch of samples: seconds a call each, every one the mean of ``calls_per_sample`` calls."""

    run_id: str
    samples_s: tuple[float, ...]
    calls_per_sample: int
    spent_s: float


class RunFinished(Message, frozen=True, kw_only=True):
    """The end of a run and its result.

    ``verified`` is true, false, or null where it could not be checked; ``throttled``,
    ``other_processes`` and ``share_of_ceiling`` are null where they are not known.
    ``throughput`` is in ``throughput_unit`` (``B/s``, ``FLOP/s``), from the median.
    """

    run_id: str
    workload: str
    size: int
    dtype: str
    device: str
    device_name: str
    median_s: float
    iqr_s: float
    ci95_s: tuple[float, float]
    p99_s: float
    samples: int
    calls_per_sample: int
    throughput: float
    throughput_unit: str
    operations_per_call: float
    bytes_per_call: float
    first_call_s: float
    warm_up_s: float
    elapsed_s: float
    verified: bool | None = None
    verification: str = ""
    throttled: bool | None = None
    other_processes: bool | None = None
    share_of_ceiling: float | None = None
    cache: str = "hot"
    transfers: bool = False
    tf32: bool | None = None
    cpu_threads: int | None = None
    in_window_process: bool = False
    torch_version: str = ""
    recording: str | None = None


class RunStopped(Message, frozen=True, kw_only=True):
    """The user ended a run; its samples so far stay valid."""

    run_id: str
    samples: int = 0


class RunFailed(Message, frozen=True, kw_only=True):
    """A run ended by an error."""

    run_id: str
    failure: Failure


class DeviceUsed(Message, frozen=True, kw_only=True):
    """The current card is now this one."""

    cuda_index: int
    name: str
    uuid: str | None = None
    snippet: str = ""


class PlaceRow(Message, frozen=True, kw_only=True):
    """One tensor of a moved model; ``bytes`` is its size in memory."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    device_before: str
    device_after: str


class PlaceFinished(Message, frozen=True, kw_only=True):
    """A model was moved: what it cost, and the proof.

    ``same_output`` compares the output for one input before and after within the dtype's
    tolerance; ``allocated_delta_bytes`` is null on the CPU, where PyTorch does not count.
    """

    model: str
    device: str
    tensors: int
    moved_bytes: int
    elapsed_s: float
    same_output: bool | None
    largest_difference: float | None
    tolerance: float
    input_shape: tuple[int, ...]
    output_device: str
    allocated_delta_bytes: int | None = None
    snippet: str = ""


class MemoryRead(Message, frozen=True, kw_only=True):
    """One reading of a device's memory, taken by the engine in one go.

    On a card: PyTorch's allocator (``allocated``, ``reserved``, ``releasable``: what empty_cache
    can give back now) and the driver's total and free. All None while the engine has no CUDA
    context. On the CPU: the engine's own process memory and the PC's.
    """

    device: str
    taken_at_s: float
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    active_bytes: int | None = None
    inactive_split_bytes: int | None = None
    releasable_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    process_bytes: int | None = None
    retries: int | None = None
    ooms: int | None = None
    mark: str | None = None


class CacheEmptied(Message, frozen=True, kw_only=True):
    """What empty_cache was expected to free, and what it freed."""

    device: str
    predicted_bytes: int
    freed_bytes: int
    before: MemoryRead
    after: MemoryRead
    snippet: str = ""


class OomFinished(Message, frozen=True, kw_only=True):
    """The end of an out-of-memory experiment.

    ``outcome`` is ``fits``, ``card_full``, ``over_budget``, ``refused`` or ``stopped``;
    ``tensors`` is how many were there at the end. The other numbers are the error's own, null
    where its text does not have them; ``allocated`` and ``reserved`` were read at the failure.
    """

    device: str
    outcome: str
    tensors: int
    tensor_bytes: int
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    tried_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    limit_bytes: int | None = None
    unallocated_bytes: int | None = None
    error_text: str = ""
    snippet: str = ""


class RequestFailed(Message, frozen=True, kw_only=True):
    """A request that is not a run could not be done."""

    failure: Failure


class EngineEnded(Message, frozen=True, kw_only=True):
    """The engine's process ended before it answered: its exit code, negative for a signal.

    ``stopped`` says that the user ended it, because a call was longer than a stop may wait.
    """

    exit_code: int | None
    stopped: bool = False


Event = (
    EngineDescribed
    | RunStarted
    | RunPhaseChanged
    | SamplesMeasured
    | RunFinished
    | RunStopped
    | RunFailed
    | DeviceUsed
    | PlaceRow
    | PlaceFinished
    | MemoryRead
    | CacheEmptied
    | OomFinished
    | RequestFailed
    | EngineEnded
)

_ALWAYS_LAST = (
    EngineDescribed,
    RunFinished,
    RunStopped,
    RunFailed,
    DeviceUsed,
    PlaceFinished,
    CacheEmptied,
    OomFinished,
    RequestFailed,
    EngineEnded,
)


def is_last(event: Event, request: Request) -> bool:
    """Return whether an event ends the answer to a request."""
    if isinstance(event, MemoryRead):
        return isinstance(request, ReadMemory)
    return isinstance(event, _ALWAYS_LAST)


class RecordingHeader(Message, frozen=True, kw_only=True):
    """The first line of a recording: where its events come from."""

    title: str
    device_name: str
    driver_version: str | None
    torch_version: str
    recorded_at: str
    source: str


_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(message: Message) -> bytes:
    """Return a message as one line of JSON, newline included."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Return the request in a line; raises `msgspec.DecodeError` for anything else."""
    return _request_decoder.decode(line)


def decode_event(line: bytes) -> Event:
    """Return the event in a line; raises `msgspec.DecodeError` for anything else."""
    return _event_decoder.decode(line)


def encode_all(messages: Iterable[Message]) -> bytes:
    """Return messages as lines of JSON."""
    return b"".join(encode(message) for message in messages)
