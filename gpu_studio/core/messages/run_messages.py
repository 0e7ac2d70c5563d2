"""The messages between window and engine about runs of workloads."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gpu_studio.core.device_name import CPU, DeviceName
from gpu_studio.core.failure import Failure  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.message import (
    Amount,
    Bytes,
    CallSeconds,
    Count,
    Event,
    LastEvent,
    Ordinate,
    PositiveCount,
    Request,
    Seconds,
)
from gpu_studio.core.messages.race_messages import (  # noqa: TC001  # msgspec reads the annotations
    RaceOutcome,
    RaceParameters,
    RaceTraits,
    Showing,
)
from gpu_studio.core.parameter import Parameter
from gpu_studio.core.texts import listed

MOST_IN_TURNS = 64
MOST_ROUNDS = 1000
LONGEST_PROGRAM = 100
# Twice as long as an old card keeps its boost clock.
SUSTAINED_LOAD_S = 15.0
# How to write a size unless a workload says otherwise: `WorkloadDescription.size_text`.
SQUARE = "{size} × {size}"
_KINDS = {CPU: "the CPU", "cuda": "NVIDIA cards"}


class Limit(str, Enum):
    """The limit of a call under ideal conditions."""

    ARITHMETIC = "arithmetic"
    MEMORY = "memory"
    LINK = "link"


class RunParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run, shared by its request, its start and its result.

    ``options`` are the workload's own (`WorkloadOption`); in a request, a missing option has its
    default. The cache is overwritten before each call, untimed, but within the budget. ``race`` is
    set if the run draws a picture (`EngineDescribed.pictures`) up to its finish line.
    """

    workload: str
    device: str
    size: int
    dtype: str
    options: dict[str, str] = msgspec.field(default_factory=dict)
    cache: Annotated[
        str,
        Parameter(
            name="cold",
            title="Cold cache",
            sentence="Overwrites the device's cache before each call, as if the data were new.",
            offered=("hot", "cold"),
            words="cold cache",
            is_expert=True,
        ),
    ] = "hot"
    transfers: Annotated[
        bool,
        Parameter(
            name="transfers",
            title="Also with copies",
            sentence="Each card runs a second time, with the copies to and from it timed in each "
            "call.",
            words="with copies",
        ),
    ] = False
    sustained: Annotated[
        bool,
        Parameter(
            name="sustained",
            title="Sustained speed",
            sentence="Loads the device for 15 s, then times it for 15 s or more without rests. "
            "Without this, a run warms up for 0.3 s and until the clock is steady: an old card may "
            "hold a higher clock for its first 7 s.",
            words="sustained",
        ),
    ] = False
    race: RaceParameters | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name: for another message of the same run, or to compare."""
        return {name: getattr(self, name) for name in RunParameters.__struct_fields__}

    @property
    def kind(self) -> tuple[object, ...]:
        """What the runs of one curve have alike: all but the device, the size and the copies."""
        options = tuple(sorted(self.options.items()))
        return self.workload, self.dtype, options, self.cache, self.sustained, self.race

    @property
    def with_copies(self) -> str:
        """The words “with copies” if each call has them; else nothing."""
        return "with copies" * self.transfers


class RunSettings(RunParameters, frozen=True, kw_only=True):
    """What can be chosen for a run and is no part of its result."""

    budget_s: Annotated[
        float,
        Parameter(
            name="time",
            title="Time per run",
            sentence="How long each run is timed, after setup, check and warm-up.",
            offered=(0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
            unit="s",
            high=3600.0,
            work=("bench", "race"),
        ),
    ] = 2.0
    naive: Annotated[
        bool,
        Parameter(
            name="naive",
            title="Also time it naively",
            sentence="Adds the time that a script without warm-up and synchronize would print.",
        ),
    ] = False
    stop_at_relative_interval: Annotated[
        float | None,
        Parameter(
            name="stop_early",
            title="Stop early at ± 2 %",
            sentence="Ends a run early when its median is known to within 2 %.",
            offered=(None, 0.02),
            is_expert=True,
        ),
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        """Return all that can be chosen by name, for another message of the same run."""
        return {name: getattr(self, name) for name in RunSettings.__struct_fields__}

    @property
    def timed_s(self) -> float:
        """The seconds that are timed; of a sustained run, at least as long as its load."""
        return max(self.budget_s, self.load_s)

    @property
    def load_s(self) -> float:
        """The seconds of the load before the first sample."""
        return SUSTAINED_LOAD_S if self.sustained else 0.0


class OwnCode(msgspec.Struct, frozen=True, kw_only=True):
    """A user's own code: a file's, or pasted.

    ``version`` is the beginning of its checksum, so that results of changed code are not mixed.
    """

    name: str
    text: str
    version: str
    path: str = ""


class RunWorkload(RunSettings, Request, frozen=True, kw_only=True):
    """Time one workload on one device.

    ``calls`` asks for exactly this many timed calls, however long they take; the time is then
    the expected one. ``rest_s`` is the pause after each line of samples, so that the window draws
    them while nothing is timed. ``showing`` asks a run of a race for frames.

    ``load`` keeps the device at full load in one piece, without rests, and reads its sensors
    (`RunConditions.heat`). A run whose call takes longer than ``longest_call_s`` is refused.
    ``with_findings`` False leaves out what is measured after the timing: parts, curves, findings.
    ``code`` is a user's own, which is the workload then; None for the engine's workload.

    A race has a number of steps that takes its fastest contestant about so long, or ``calls``
    steps. When one has done them, all end. ``longest_s`` is the race's clock at which it ends at
    the latest; None for a few times the budget. A run in rounds ends with the round in which its
    turns have taken that long, with set-up, check and warm-ups; it has six rounds at least.
    """

    run_id: str
    calls: int | None = None
    rest_s: float = 0.0
    longest_s: float | None = None
    showing: Showing | None = None
    load: bool = False
    longest_call_s: float | None = None
    with_findings: bool = True
    code: OwnCode | None = None


class RunInTurns(Request, frozen=True, kw_only=True):
    """Make runs in turns, so that they can be compared: each is alone while it is timed.

    The answer mixes the events of all runs. Each run ends by itself, and `RunsEnded` comes last.
    """

    runs: tuple[RunWorkload, ...]


class RunsEnded(LastEvent, frozen=True, kw_only=True):
    """The end of `RunInTurns`, after the end of each run."""


class WorkloadOption(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that a workload offers; the first of ``values`` is the default.

    ``meanings`` explains values whose names do not, each after the value and a colon.
    """

    name: str
    title: str
    sentence: str
    values: tuple[str, ...]
    meanings: dict[str, str] = msgspec.field(default_factory=dict)


class WorkloadDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A workload, described by the file that implements it.

    ``size_title`` names the size, ``size_text`` is its format (``{size}`` is replaced). ``skipped``
    says why the workload cannot run here and how to fix that; empty if it can. ``refuses`` lists
    the names of the `parameter.Parameter` that make no sense for the workload, each with a sentence
    that says why. ``takes_turns``: several runs of it may be prepared at a time; not if
    each holds processes of its own.
    ``race`` is set for a picture.
    ``device_kinds`` are the kinds of devices that it is written for; empty for all.
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
    device_kinds: tuple[str, ...] = ()
    skipped: str = ""
    takes_turns: bool = True
    refuses: dict[str, str] = msgspec.field(default_factory=dict)
    race: RaceTraits | None = None

    @property
    def kinds_text(self) -> str:
        """The kinds of devices in words; empty for all."""
        return listed([_KINDS[kind] for kind in self.device_kinds])

    def runs_on(self, address: str) -> bool:
        """Return whether the workload supports this kind of device."""
        return not self.device_kinds or DeviceName.parse(address).kind in self.device_kinds


class RunStarted(RunSettings, Event, frozen=True, kw_only=True):
    """A run was accepted; ``expected_call_s`` is known after the first call (`RunPhaseChanged`).

    ``options`` includes the defaults. ``device_name`` is set in recordings, because a viewer
    cannot look it up. Runs with the same ``turns`` have their rounds in turns (`RunInTurns`); it is
    empty for a run alone. Older versions do not set ``sustained``.
    """

    run_id: str
    size_text: str = SQUARE
    snippet: str = ""
    device_name: str = ""
    recording: str | None = None
    turns: str = ""


class RunPhaseChanged(Event, frozen=True, kw_only=True):
    """The phase of a run: ``set-up``, ``verification``, ``warm-up`` or ``timing``.

    ``finish_steps`` is the finish line of a race, from ``timing`` on.
    """

    run_id: str
    phase: str
    expected_call_s: Seconds | None = None
    finish_steps: PositiveCount | None = None


class SamplesMeasured(Event, frozen=True, kw_only=True):
    """A batch of samples: seconds per call, each the mean of ``calls_per_sample`` calls.

    They followed each other without a pause, in the round ``round_number``. The last one ended
    ``ended_s`` seconds after the first sample of the runs in turns began. ``other_processes`` says
    whether other programs worked on its device so far, as in `RunConditions`. Races and older
    versions do not say these three.
    """

    run_id: str
    samples_s: tuple[CallSeconds, ...]
    calls_per_sample: PositiveCount
    spent_s: Seconds
    ended_s: Seconds | None = None
    round_number: Count = 0
    other_processes: bool | None = None


class RunEnd(Event, frozen=True, kw_only=True):
    """The base of what ends a run; runs in turns have one each, before `RunsEnded`."""

    def ends(self, request: Request) -> bool:
        """Return whether the request was this run alone."""
        return self.ends_engine or not isinstance(request, RunInTurns)


class NaiveTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one call that a script without warm-up and synchronize prints.

    ``printed_s`` is the time when the first call returned, ``finished_s`` when the device had
    finished it. Both include making the operands, as in such a script.
    """

    printed_s: Seconds
    finished_s: Seconds
    sentence: str


class OtherLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What other programs did on a card right before a load of this engine.

    ``percent`` is the card's utilization, ``program`` the one that works on it; empty if unknown.
    """

    percent: Annotated[float, Meta(ge=0, le=100)]
    program: Annotated[str, Meta(max_length=LONGEST_PROGRAM)] = ""


class RunHeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a device's sensors read during a load; None means "not reported".

    The clocks are medians: of the first seconds, and of the second half (`core.benchmark.sustained`
    says which seconds). ``was_throttled`` is whether heat or a hardware brake slowed it down.
    """

    first_clock_mhz: Amount | None = None
    steady_clock_mhz: Amount | None = None
    highest_temperature_c: Amount | None = None
    highest_hotspot_c: Amount | None = None
    highest_power_w: Amount | None = None
    was_throttled: bool | None = None


class RunTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long a run took; ``timed_s`` is the sum of all timed calls, null in older versions."""

    first_call_s: Seconds
    warm_up_s: Seconds
    elapsed_s: Seconds
    timed_s: Seconds | None = None


class RunConditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The conditions of a run: what its device did besides, and what computed.

    ``throttled`` means heat, a hardware slowdown, or a clock far below the base clock.
    ``power_capped`` means that the power limit set the clock, which is normal under load. These two
    and ``other_processes`` are null if unknown. ``other_load`` is set if other programs kept the
    card busy before the load; ``other_processes`` is true then. ``loaded_s`` is the time that the
    device had worked without a pause before the first sample, including earlier runs. ``heat`` is a
    load's. ``computed_in`` is the type of the arithmetic: a dtype's name, or ``tf32``; empty in
    older versions.
    """

    throttled: bool | None = None
    power_capped: bool | None = None
    other_processes: bool | None = None
    other_load: OtherLoad | None = None
    loaded_s: Seconds | None = None
    heat: RunHeat | None = None
    computed_in: str = ""
    cpu_threads: Count | None = None
    torch_version: str = ""


class CeilingShare(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How close a call came to its device's ceiling.

    ``share`` is the shortest time that the ceilings allow, divided by the actual time. ``limit`` is
    the ceiling that sets this shortest time, ``ceiling`` its name: ``memory bandwidth, 48.1 GB/s``.
    """

    share: Amount
    ceiling: str = ""
    limit: Limit | None = None


class RunDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What else a run found out about its work.

    ``parts_s`` splits one call by name (``copy in``, ``launch``, ``compute``, ``copy out``;
    ``loading``, …), ``curves`` has values that the work itself produced (``loss``), ``findings``
    its results in sentences, ``lessons`` the names of the pitfalls in them. ``bytes_per_call`` is
    what a call reads and writes in memory.
    """

    parts_s: dict[str, Seconds] = msgspec.field(default_factory=dict)
    curves: dict[str, tuple[Ordinate, ...]] = msgspec.field(default_factory=dict)
    findings: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    naive: NaiveTime | None = None
    bytes_per_call: Amount = 0.0
    peak_allocated_bytes: Bytes | None = None


class RunFinished(RunParameters, RunEnd, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a run and its result.

    ``options`` includes the defaults. ``throughput`` is in ``throughput_unit`` (``B/s``,
    ``FLOP/s``), from the median. ``rounds_s`` has the median of each round, which ``ci95_s`` comes
    from; empty if the run was one piece. In a race, they are the mean step of each slice. ``turns``
    is as in `RunStarted`.

    ``verified`` is true or false, or null if it could not be checked. ``doubts`` are the work's own
    reasons against the result: sentences, each with a short name. ``reached`` is null if a ceiling
    is unknown. ``outcome`` says how far a run of a race came; null for every other run.

    What is as its default is left out of the JSON. `in_parts` reads the results of versions that
    had the fields of the parts here.
    """

    run_id: str
    device_name: str
    median_s: CallSeconds
    iqr_s: Seconds
    ci95_s: tuple[CallSeconds, CallSeconds]
    rounds_s: Annotated[tuple[CallSeconds, ...], Meta(max_length=MOST_ROUNDS)] = ()
    samples: Count
    calls_per_sample: PositiveCount
    throughput: Amount
    throughput_unit: str
    times: RunTimes
    conditions: RunConditions = RunConditions()
    details: RunDetails = RunDetails()
    reached: CeilingShare | None = None
    verified: bool | None = None
    verification: str = ""
    doubts: dict[str, str] = msgspec.field(default_factory=dict)
    outcome: RaceOutcome | None = None
    size_text: str = SQUARE
    recording: str | None = None
    turns: str = ""


_PARTS = {"times": RunTimes, "conditions": RunConditions, "details": RunDetails}


def in_parts(value: Any) -> Any:
    """Return decoded JSON with the results of older versions in it in their present form.

    Those had the fields of `RunTimes`, `RunConditions`, `CeilingShare` and `RunDetails` side by
    side in the result.
    """
    if isinstance(value, list):
        return [in_parts(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    whole = {name: in_parts(entry) for name, entry in value.items()}
    if whole.get("type") == "run_finished" and "times" not in whole:
        for name, part in _PARTS.items():
            fields = part.__struct_fields__
            whole[name] = {field: whole.pop(field) for field in fields if field in whole}
        share = whole.pop("share_of_ceiling", None)
        ceiling = {name: whole.pop(name) for name in ("ceiling", "limit") if name in whole}
        whole["reached"] = {"share": share, **ceiling} if share is not None else None
    return whole


class RunStopped(RunEnd, frozen=True, kw_only=True):
    """The user stopped a run; its samples up to then stay valid."""

    run_id: str
    samples: int = 0


class RunFailed(RunEnd, frozen=True, kw_only=True):
    """A run ended with an error."""

    run_id: str
    failure: Failure

    @property
    def ends_engine(self) -> bool:
        """Whether the engine cannot work any more."""
        return self.failure.fatal


_ROUNDS, _LONGEST_S = 12, 60.0


class OpenOwnCode(Request, frozen=True, kw_only=True):
    """Run a user's code once on the CPU, to know what can be chosen for it.

    It runs with the user's rights, so an engine that gets this serves nothing else.
    """

    code: OwnCode


class OwnCodeOpened(LastEvent, frozen=True, kw_only=True):
    """What there is to choose for a user's code.

    ``call_s`` is the time of the call, ``remarks`` are sentences on what was taken as something
    else than it says.
    """

    workload: WorkloadDescription
    call_s: Seconds
    remarks: tuple[str, ...] = ()

    @property
    def least_s(self) -> float:
        """The time of a run that has the rounds for a verdict, up to a minute."""
        return min(_ROUNDS * self.call_s, _LONGEST_S)


class OwnCodePrinted(Event, frozen=True, kw_only=True):
    """What a user's code printed since the last such event, up to a limit."""

    text: str
