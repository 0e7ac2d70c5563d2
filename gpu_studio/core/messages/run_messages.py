"""What window and engine say to each other about runs of workloads."""

from __future__ import annotations

from typing import Any

import msgspec

from gpu_studio.core.failure import Failure  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.message import Message

# How a size is written unless a workload says otherwise: `WorkloadDescription.size_text`.
SQUARE = "{size} × {size}"


class RunParameters(msgspec.Struct, frozen=True, kw_only=True):
    """What a run times and how: the part that its request, its start and its result share.

    ``options`` are the workload's own (`WorkloadOption`); in a request, a missing one has its
    default. ``cache`` is ``hot`` or ``cold`` (the device's cache is overwritten before each call,
    which is not timed but counts for the budget). ``transfers`` puts the copies to and from the
    device into each call. ``sustained`` asks for the speed that lasts: a long load before the first
    sample, no rests, and a budget of at least as long.
    """

    workload: str
    device: str
    size: int
    dtype: str
    options: dict[str, str] = msgspec.field(default_factory=dict)
    cache: str = "hot"
    transfers: bool = False
    sustained: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters alone, by name: for another message of the same run, or to compare."""
        return {name: getattr(self, name) for name in RunParameters.__struct_fields__}


class RunWorkload(RunParameters, Message, frozen=True, kw_only=True):
    """Time one workload on one device. ``budget_s`` counts the timed part alone.

    ``naive`` asks for what a script without warm-up and synchronize would have printed, beside the
    result. ``calls`` asks for exactly so many timed calls, however long they take; ``budget_s``
    then says how long that is expected to be. ``rest_s`` is how long to rest after each line of
    samples, so that a window draws them while nothing is timed.
    """

    run_id: str
    budget_s: float = 2.0
    calls: int | None = None
    stop_at_relative_interval: float | None = None
    naive: bool = False
    rest_s: float = 0.0


class WorkloadOption(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a workload; the first of ``values`` is the default."""

    name: str
    title: str
    sentence: str
    values: tuple[str, ...]


class WorkloadDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload is, told by the file that implements it.

    ``size_title`` says what a size is, ``size_text`` how one is written (``{size}`` is replaced).
    ``skipped`` is the reason why it cannot run here and what would make it run; empty where it can.
    ``refuses`` has the modes (``cold``, ``transfers``, ``naive``) in which the workload makes no
    sense, each with a sentence why.
    """

    name: str
    title: str
    sentence: str
    dtypes: tuple[str, ...]
    sizes: tuple[int, ...]
    throughput_unit: str
    source: str = ""
    options: tuple[WorkloadOption, ...] = ()
    size_title: str = "Side of the square matrices"
    size_text: str = SQUARE
    device_kinds: tuple[str, ...] = ("cpu", "cuda")
    skipped: str = ""
    refuses: dict[str, str] = msgspec.field(default_factory=dict)


class RunStarted(RunParameters, Message, frozen=True, kw_only=True):
    """A run was accepted; ``expected_call_s`` is known after the first call (`RunPhaseChanged`).

    ``options`` has the defaults, too. ``device_name`` is told by recordings: who watches one cannot
    look it up. A start of an older version does not tell ``sustained``.
    """

    run_id: str
    budget_s: float
    size_text: str = SQUARE
    snippet: str = ""
    device_name: str = ""
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


class NaiveTime(msgspec.Struct, frozen=True, kw_only=True):
    """What a script without warm-up and synchronize prints for one call, and what it missed.

    ``printed_s`` is the clock when the first call had returned, ``finished_s`` when the device had
    done it, both with the operands made inside, as such a script does.
    """

    printed_s: float
    finished_s: float
    sentence: str


class RunFinished(RunParameters, Message, frozen=True, kw_only=True):
    """The end of a run and its result.

    ``verified`` is true, false, or null where it could not be checked. ``throttled`` means heat, a
    brake, or a clock far below the base clock; ``power_capped`` that the power limit set the clock,
    which is normal under load. These two, ``other_processes`` and ``share_of_ceiling`` are null
    where they are not known.
    ``throughput`` is in ``throughput_unit`` (``B/s``, ``FLOP/s``), from the median.
    ``options`` has the defaults, too. ``parts_s`` splits one
    call by name (``copy in``, ``launch``, ``compute``, ``copy out``; ``loading``, …), ``curves``
    has what the work itself produced (``loss``), ``findings`` what it showed, in sentences.
    ``doubts`` are the work's own against that: sentences, by a word or two each.
    ``computed_in`` is what the arithmetic was done in: a dtype's name, or ``tf32``; empty in a
    result of a version that did not tell it. ``tf32`` is whether it was TF32; null on the CPU.
    ``loaded_s`` is how long the device had worked without a pause when the first sample was taken,
    earlier runs included; null in a result of a version that did not tell it.
    ``timed_s`` is all timed calls together; null in a result of a version that did not tell it.
    """

    run_id: str
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
    timed_s: float | None = None
    verified: bool | None = None
    verification: str = ""
    throttled: bool | None = None
    power_capped: bool | None = None
    other_processes: bool | None = None
    share_of_ceiling: float | None = None
    ceiling: str = ""
    parts_s: dict[str, float] = msgspec.field(default_factory=dict)
    curves: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    findings: tuple[str, ...] = ()
    doubts: dict[str, str] = msgspec.field(default_factory=dict)
    peak_allocated_bytes: int | None = None
    naive: NaiveTime | None = None
    size_text: str = SQUARE
    tf32: bool | None = None
    computed_in: str = ""
    loaded_s: float | None = None
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
