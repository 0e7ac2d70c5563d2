"""The protocol between window and engine: one JSON object per line.

Recordings have the same format, and ``gpu-studio bench --json`` prints it. The answer to a request
is any number of events; exactly the last one is a `LAST_EVENTS`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.torch_facts import TorchCard  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.failure import Failure  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.check_messages import (
    CheckFindingMade,
    CheckFinished,
    CheckProgressed,
    CheckRoundFinished,
    CheckStageBegan,
    CheckStageFinished,
    CheckStarted,
    CheckVitalsRead,
    RunCheck,
)
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    CacheEmptied,
    EmptyCache,
    MemoryRead,
    OomFinished,
    ReadMemory,
    ReadSegments,
    RunMemoryExperiment,
    SegmentsRead,
    StageBegan,
    StageResult,
)
from gpu_studio.core.messages.message import CardCount, Count, Message
from gpu_studio.core.messages.pitfall_messages import (
    PitfallDescription,
    PitfallFailed,
    PitfallFinished,
    PitfallStarted,
    RunPitfall,
)
from gpu_studio.core.messages.placement_messages import (
    DeviceUsed,
    FileInspected,
    InspectFile,
    ModelDescription,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
    PlaceTensors,
    TensorsPlaced,
    UseDevice,
)
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceFinished
from gpu_studio.core.messages.run_messages import (
    NaiveTime,
    RunAtOnce,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunsEnded,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
    WorkloadDescription,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AllocationPlan",
    "CacheEmptied",
    "CheckFindingMade",
    "CheckFinished",
    "CheckProgressed",
    "CheckRoundFinished",
    "CheckStageBegan",
    "CheckStageFinished",
    "CheckStarted",
    "CheckVitalsRead",
    "DescribeEngine",
    "DeviceUsed",
    "EmptyCache",
    "EngineDescribed",
    "EngineEnded",
    "Event",
    "FileInspected",
    "FrameReady",
    "FramesOpened",
    "Heartbeat",
    "InspectFile",
    "MemoryRead",
    "Message",
    "ModelDescription",
    "NaiveTime",
    "OomFinished",
    "PitfallDescription",
    "PitfallFailed",
    "PitfallFinished",
    "PitfallStarted",
    "PlaceFinished",
    "PlaceModel",
    "PlaceRow",
    "PlaceTensors",
    "RaceFinished",
    "ReadMemory",
    "ReadSegments",
    "RecordingHeader",
    "Request",
    "RequestFailed",
    "RunAtOnce",
    "RunCheck",
    "RunFailed",
    "RunFinished",
    "RunMemoryExperiment",
    "RunPhaseChanged",
    "RunPitfall",
    "RunStarted",
    "RunStopped",
    "RunWorkload",
    "RunsEnded",
    "SamplesMeasured",
    "SegmentsRead",
    "StageBegan",
    "StageResult",
    "Stop",
    "TensorsPlaced",
    "UseDevice",
    "WorkloadDescription",
    "decode_event",
    "decode_request",
    "decode_said",
    "encode",
    "encode_all",
    "is_end",
    "is_last",
]


class DescribeEngine(Message, frozen=True, kw_only=True):
    """Ask for the engine's properties and workloads. Makes no CUDA context.

    Asking CUDA wakes cards that the system has switched off to save power. With ``wakes_cards``
    False, CUDA is not asked if all cards are asleep, and the answer says so.
    """

    wakes_cards: bool = True


class Stop(Message, frozen=True, kw_only=True):
    """End the running request between two calls. Has no answer of its own."""


Request = (
    DescribeEngine
    | RunWorkload
    | RunAtOnce
    | UseDevice
    | InspectFile
    | PlaceTensors
    | PlaceModel
    | RunPitfall
    | ReadMemory
    | ReadSegments
    | EmptyCache
    | RunMemoryExperiment
    | RunCheck
    | Stop
)


class EngineDescribed(Message, frozen=True, kw_only=True):
    """The engine's description of itself.

    ``own_table`` is PyTorch's own table of the architectures in its builds for this platform
    (``{"12.6": ("5.0", …)}``), empty if it has none. With ``cards_asleep``, CUDA was not asked, so
    that the cards stay asleep; ``cuda_available`` then means nothing. ``pictures`` are the
    workloads of races.
    """

    pid: int
    torch_version: str
    cuda_build: str | None = None
    cuda_available: bool = False
    cuda_reason: str | None = None
    device_count: CardCount = 0
    arch_list: tuple[str, ...] = ()
    cpu_capability: str | None = None
    cpu_threads: Count = 0
    visible_devices: str | None = None
    allocator_configuration: str | None = None
    python_version: str = ""
    workloads: tuple[WorkloadDescription, ...] = ()
    pictures: tuple[WorkloadDescription, ...] = ()
    models: tuple[ModelDescription, ...] = ()
    pitfalls: tuple[PitfallDescription, ...] = ()
    snippet: str = ""
    recording: str | None = None
    cards: tuple[TorchCard, ...] = ()
    own_table: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    cards_asleep: bool = False


class RequestFailed(Message, frozen=True, kw_only=True):
    """A request other than a run failed."""

    failure: Failure


class EngineEnded(Message, frozen=True, kw_only=True):
    """The engine's process ended before it answered, with an exit code, negative for a signal.

    ``stopped``: the user ended it, because a call took longer than a stop may wait.
    """

    exit_code: int | None
    stopped: bool = False


class Heartbeat(Message, frozen=True, kw_only=True):
    """A sign of life: a child process sends it after a second without any other message.

    It answers nothing and is not part of a recording.
    """


Event = (
    EngineDescribed
    | RunStarted
    | RunPhaseChanged
    | SamplesMeasured
    | FramesOpened
    | FrameReady
    | RunFinished
    | RunStopped
    | RunFailed
    | RunsEnded
    | DeviceUsed
    | FileInspected
    | PlaceRow
    | PlaceFinished
    | TensorsPlaced
    | PitfallStarted
    | PitfallFinished
    | PitfallFailed
    | MemoryRead
    | SegmentsRead
    | StageBegan
    | CacheEmptied
    | OomFinished
    | CheckStarted
    | CheckStageBegan
    | CheckProgressed
    | CheckVitalsRead
    | CheckFindingMade
    | CheckStageFinished
    | CheckRoundFinished
    | RequestFailed
    | EngineEnded
)

_ALWAYS_LAST = (
    EngineDescribed,
    RunFinished,
    RunStopped,
    RunFailed,
    RunsEnded,
    DeviceUsed,
    FileInspected,
    PlaceFinished,
    TensorsPlaced,
    PitfallFinished,
    PitfallFailed,
    CacheEmptied,
    OomFinished,
    CheckRoundFinished,
    RequestFailed,
    EngineEnded,
)


def is_last(event: Event, request: Request) -> bool:
    """Return whether an event ends the answer to a request."""
    if isinstance(event, MemoryRead):
        return isinstance(request, ReadMemory)
    if isinstance(event, SegmentsRead):
        return isinstance(request, ReadSegments)
    if isinstance(request, RunAtOnce) and isinstance(event, (RunFinished, RunStopped, RunFailed)):
        return is_end(event)
    return isinstance(event, _ALWAYS_LAST)


def is_end(event: Event | Heartbeat) -> bool:
    """Return whether this event ends the engine: it crashed, or it cannot continue."""
    if isinstance(event, (RunFailed, RequestFailed)):
        return event.failure.fatal
    return isinstance(event, EngineEnded)


class RecordingHeader(Message, frozen=True, kw_only=True):
    """The first line of a recording: the source of its events.

    ``device_name`` has the cards, ``pc`` their processor and system, ``recorded_at`` is ISO 8601,
    ``source`` is the program. ``is_simulated`` means that the cards were simulated, as in this
    program's own tests.
    """

    schema: int = 1
    title: str
    device_name: str
    driver_version: str | None
    torch_version: str
    recorded_at: str
    source: str
    pc: str = ""
    is_simulated: bool = False


_encoder = msgspec.json.Encoder()


# The window reads nothing before its first paint, and each decoder takes milliseconds to make.
@cache
def _request_decoder() -> msgspec.json.Decoder[Request]:
    return msgspec.json.Decoder(Request)


@cache
def _event_decoder() -> msgspec.json.Decoder[Event]:
    return msgspec.json.Decoder(Event)


@cache
def _said_decoder() -> msgspec.json.Decoder[Event | Heartbeat]:
    return msgspec.json.Decoder(Event | Heartbeat)


def encode(message: Message) -> bytes:
    """Return a message as one line of JSON, including the newline."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Return the request in a line; raise `msgspec.DecodeError` for anything else."""
    return _request_decoder().decode(line)


def decode_event(line: bytes) -> Event:
    """Return the event in a line; raise `msgspec.DecodeError` for anything else."""
    return _event_decoder().decode(line)


def decode_said(line: bytes) -> Event | Heartbeat:
    """Return the event or heartbeat in a line; raise as `decode_event`."""
    return _said_decoder().decode(line)


def encode_all(messages: Iterable[Message]) -> bytes:
    """Return messages as lines of JSON."""
    return b"".join(encode(message) for message in messages)
