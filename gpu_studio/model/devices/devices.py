"""The state of the Devices page: the selected device, and everything known about it.

The module that words the facts is imported with the first facts, after the first paint.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.devices.access import ABOUT_THE_CARD, Obstacle
from gpu_studio.core.devices.card_programs import CardState, program_notices
from gpu_studio.core.devices.devices import CUDA_BUILD
from gpu_studio.core.devices.facts import FactGroup, PcSnapshot, facts_of, summary_line
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.devices.sensor_kinds import CARD_SENSORS, CPU_SENSORS
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_bytes
from gpu_studio.model.devices import programs, verdicts
from gpu_studio.model.devices.card_memory import CardMemory, card_state
from gpu_studio.model.devices.sensor_log import SensorLog
from gpu_studio.model.headline import why_silent
from gpu_studio.model.page_model import PageModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject

    from gpu_studio.core.devices.devices import Device, GpuProcess
    from gpu_studio.core.devices.sensor_history import SensorSpan
    from gpu_studio.core.devices.sensor_kinds import SensorKind
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.run_marks import RunMark
    from gpu_studio.model.studio import Studio

_MAIN = ("utilization", "memory", "temperature", "clock")  # of a card, in the first view
_BESIDE_A_CARD = ("utilization", "memory")
_MOST_PROGRAMS = 3
# The verdicts that say why the card cannot be read.
_EXPLAIN_TROUBLE = frozenset(
    {"card_asleep", "card_lost", "card_unreadable", "driver_library_mismatch"}
)


class DevicesChoices(msgspec.Struct, frozen=True):
    """What is shown: the facts, all sensors and how much of them, and the process to end."""

    shows_facts: bool = False
    shows_sensors: bool = False
    span_s: float = 60.0
    pid: int = 0


class SensorLine(NamedTuple):
    """A sensor in the list.

    Attributes:
        key: its name in the list; that of the CPU's beside a card begins with ``pc_``.
        kind: what it measures.
        device: the color of its device: a number or an identity.
        span: its readings; None before its device is known.
    """

    key: str
    kind: SensorKind
    device: str
    span: SensorSpan | None = None


class DevicesModel(PageModel):
    """The devices, the selected one, and what sensors and engine report about it.

    `runs` marks the runs of the session, `log` writes the readings to a file.
    """

    choices: DevicesChoices

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(DevicesChoices(), parent)
        self._studio = studio
        self._selected: str | None = None
        self._is_chosen = self._shows_cpu = False
        self._memories: dict[Pc, CardMemory] = {}
        self.runs = studio.runs
        self.log = SensorLog(studio.sensors, self)
        self.outcome = ""  # of ending a process
        for pc in studio.pcs.all:
            self._listen(pc)
        studio.pcs.added.connect(self._listen)
        studio.pcs.removed.connect(self._forget)
        studio.pcs.changed.connect(self._find)
        self.follow(
            studio.headlines.headline_changed, studio.settings.choices_changed,
            self.log.state_changed, self.runs.marks_changed,
        )  # fmt: skip
        if studio.builds is not None:
            self.follow(studio.builds.changed)
        self._find()

    def _listen(self, pc: Pc) -> None:
        """Follow what is known of a PC."""
        memory = CardMemory(pc.session, partial(self._looked_at, pc), self)
        self._memories[pc] = memory
        pc.session.engine_described.connect(memory.forget)
        pc.session.engine_described.connect(self._find)
        pc.sensors.inventory_changed.connect(self._find)
        self.follow(
            memory.read_taken, pc.session.state_changed, pc.sensors.reading_taken,
            pc.sensors.silence_changed, pc.doctor.findings_changed,
        )  # fmt: skip

    def _forget(self, pc: Pc) -> None:
        memory = self._memories.pop(pc)
        memory.watch(False)
        memory.deleteLater()

    # ── the selection ────────────────────────────────────────────────────────────────────────

    @property
    def device(self) -> Device | None:
        """The selected device; None until devices are found."""
        return self.row.device if self.row is not None else None

    @property
    def row(self) -> DeviceRow | None:
        """The row of the selected device; None until devices are found."""
        return self._studio.board.row(self._selected or "")

    @property
    def short_name(self) -> str:
        """Its name in a sentence."""
        return self.device.short_name if self.device is not None else "card"

    @property
    def pc(self) -> Pc:
        """The PC of the selected device."""
        return self._studio.pcs.of(self._selected or "")

    @property
    def color(self) -> str:
        """What its color follows: its number in the engine, or its identity."""
        return (self.row.number or self.row.identity) if self.row is not None else ""

    def devices_of(self, pc: Pc) -> list[DeviceRow]:
        """Return the listed devices of a PC: those whose facts are known."""
        board = self._studio.board
        hidden = board.cpu if self.hides_cpu else None
        known = [row for row in board.rows if row.pc == pc.name and row.device is not None]
        return [row for row in known if row is not hidden]

    @property
    def is_choice(self) -> bool:
        """Whether there is more than one device to look at, here or on another PC."""
        return sum(len(self.devices_of(pc)) for pc in self._studio.pcs.all) > 1

    def summary_of(self, row: DeviceRow) -> str:
        """Return the line under a device's name."""
        if row.device is None:
            return ""
        summary = summary_line(row.device, self._studio.pcs.of(row.identity).session.description)
        beside = "" if row.pc else self._beside
        return f"{summary}\u00a0· {beside}" if beside else summary

    def answer_of(self, pc: Pc) -> Notice:
        """Return the answer about a PC as a whole, for the heading of its devices."""
        if pc.name and pc.session.absence:
            return pc.notice
        # A remark is no answer: what is wrong comes first, then what works.
        tones = (Tone.FAILURE, Tone.AMBER, Tone.GOOD)
        answers = [one for tone in tones for one in pc.doctor.findings if one.tone is tone]
        return answers[0] if answers else Notice()

    def select(self, identity: str) -> None:
        """Select another device."""
        self._is_chosen = True
        self._memories[self._studio.pcs.of(identity)].choose()
        self._look_at(identity)

    def select_cpu(self) -> None:
        """Select this PC's CPU, which is listed beside the cards from now on."""
        self._shows_cpu = True
        self.select(self._studio.board.cpu.identity)
        self._find()

    @property
    def hides_cpu(self) -> bool:
        """Whether this PC's CPU is not in its list, because a card is."""
        return bool(self._cards_here) and not self._shows_cpu

    @property
    def _beside(self) -> str:
        """What a card's line says of the CPU that is not in the list."""
        cpu = self._studio.board.cpu.device
        is_only = self.hides_cpu and len(self._cards_here) == 1
        return f"with a {cpu.short_name}" if is_only and cpu is not None else ""

    @property
    def _cards_here(self) -> list[DeviceRow]:
        cards = self._studio.board.cards
        return [row for row in cards if row.device is not None and not row.pc]

    def see(self, *, is_seen: bool) -> None:
        """Ask the engine for PyTorch's own memory regularly while visible."""
        super().see(is_seen=is_seen)
        self._watch()

    def _watch(self) -> None:
        for pc, memory in self._memories.items():
            memory.watch(self.is_seen and pc is self.pc)
            pc.sensors.want_programs("devices", self.is_seen and pc is self.pc)

    @property
    def _memory(self) -> CardMemory:
        return self._memories[self.pc]

    # ── what one click does ──────────────────────────────────────────────────────────────────

    @property
    def check_label(self) -> str:
        """What a check of the selected device is called."""
        is_cpu = self.row.is_cpu if self.row is not None else not self._may_have_card
        return "Check CPU and RAM" if is_cpu else "Check this card"

    @property
    def why_no_check(self) -> str:
        """Why the selected device cannot be checked now; empty if it can."""
        if self.row is None:
            return "The devices of this PC are not known yet."
        return self.pc.session.absence or self.row.reason

    @property
    def can_be_measured(self) -> bool:
        """Whether the selected card is measured only without PyTorch, which may always work."""
        row, device = self.row, self.device
        if row is None or device is None or row.is_cpu or self.pc.name:
            return False
        if device.is_apart:
            return False
        if row.obstacle is Obstacle.NO_ENGINE:
            return bool(self.pc.session.absence)
        return row.obstacle not in (None, Obstacle.ASLEEP)

    @property
    def _may_have_card(self) -> bool:
        """Whether a card is selected; before devices are found, whether this PC had one."""
        if self.device is not None:
            return not self.device.is_cpu
        return bool(self._studio.settings.choices.cards)

    @property
    def is_without_card(self) -> bool:
        """Whether this PC has no card for PyTorch; before it is examined, whether it had none."""
        inventory, session = self.pc.sensors.inventory, self.pc.session
        if inventory is None:
            return not self._may_have_card
        # An engine tells whether it is built for a card of another maker.
        is_settled = not inventory.cards or session.description is not None or session.absence
        return self.has_cards is False and bool(is_settled) and not self.pc.name

    # ── the facts about it ───────────────────────────────────────────────────────────────────

    @property
    def snapshot(self) -> PcSnapshot | None:
        """Everything known about the PC now; None until devices are found."""
        sensors, session = self.pc.sensors, self.pc.session
        if sensors.inventory is None:
            return None
        return PcSnapshot(
            inventory=sensors.inventory,
            reading=sensors.newest,
            engine=session.description,
            why_no_engine=session.what_is_missing,
            current_device=session.current_device,
            memory=self._memory.by_address,
            links=sensors.links,
        )

    @property
    def groups(self) -> tuple[FactGroup, ...]:
        """The facts about the device; if it is not readable, the known ones."""
        device, snapshot = self.device, self.snapshot
        if device is None or snapshot is None:
            return ()
        groups = facts_of(device, snapshot)
        if self.is_readable:
            return groups
        known = [(g.title, tuple(fact for fact in g.facts if fact.is_known)) for g in groups]
        return tuple(FactGroup(title=title, facts=facts) for title, facts in known if facts)

    @property
    def memory_used(self) -> str:
        """The memory used on the whole device of all there is, in words; empty if unknown."""
        device, snapshot = self.device, self.snapshot
        used = snapshot.telemetry(device).memory_used_bytes if device and snapshot else None
        if device is None or used is None or device.memory_total_bytes is None:
            return ""
        return f"{format_bytes(used)} of {format_bytes(device.memory_total_bytes)}"

    def report(self, form: str, *, masked: bool) -> str:
        """Return everything known as ``text`` or ``markdown``."""
        from gpu_studio.core.devices.report import report_markdown, report_text  # 4 ms

        snapshot = self.snapshot
        if snapshot is None:
            return ""
        write = {"text": report_text, "markdown": report_markdown}[form]
        return write(snapshot, self.pc.doctor.findings, masked=masked)

    # ── its sensors ──────────────────────────────────────────────────────────────────────────

    @property
    def spans(self) -> tuple[SensorSpan, ...]:
        """The latest readings of each of its sensors."""
        device = self.device
        return self.pc.sensors.track(device).spans(self.choices.span_s) if device else ()

    @property
    def sensor_lines(self) -> list[SensorLine]:
        """The sensors in the list: its own, then those of a card's PC.

        A sensor that the device does not report has none. Before devices are found, those that
        this PC will most likely have, so that nothing moves later.
        """
        inventory, device = self.pc.sensors.inventory, self.device
        if inventory is None or device is None:
            return self._expected_lines
        usual = _BESIDE_A_CARD if device.is_cpu else _MAIN
        shows_all = self.choices.shows_sensors or device.is_cpu
        lines = [
            SensorLine(span.kind.key, span.kind, self.color, span)
            for span in (self.spans if self.is_readable else ())
            if not span.is_refused and (span.kind.key in usual or (shows_all and span.has_values))
        ]
        if not device.is_cpu:
            beside = self.pc.sensors.track(inventory.cpu).spans(self.choices.span_s)
            lines += [
                SensorLine(f"pc_{span.kind.key}", span.kind, "cpu", span)
                for span in beside
                if span.kind.key in _BESIDE_A_CARD and not span.is_refused
            ]
        return lines

    @property
    def _expected_lines(self) -> list[SensorLine]:
        has_card = self._may_have_card
        own = [SensorLine(kind.key, kind, "cuda:0") for kind in CARD_SENSORS if kind.key in _MAIN]
        beside = [
            SensorLine(f"pc_{kind.key}" if has_card else kind.key, kind, "cpu")
            for kind in CPU_SENSORS
            if kind.key in _BESIDE_A_CARD
        ]
        return [*(own if has_card else ()), *beside]

    @property
    def marks(self) -> list[RunMark]:
        """Its runs in the shown time."""
        if self.pc.name:  # the marks are of this PC's engine
            return []
        identity = self.device.identity if self.device else None
        return [mark for mark in self.runs.marks if mark.identity == identity]

    @property
    def trouble(self) -> str:
        """Why it has no live readings; empty if it has, or if that is said elsewhere."""
        if self.pc.why_not:
            return f"{self.pc.why_not} You see the last readings."
        if self.pc.sensors.is_silent:
            if self._studio.headlines.is_about_sensors and not self.pc.name:
                return ""
            return (
                "The sensors have stopped answering. You see their last readings. "
                f"{why_silent(self.pc.sensors.asks_driver)}"
            )
        if self.verdict.code in _EXPLAIN_TROUBLE:
            return self._last_read
        trouble = self._trouble_of(self.device)
        return " ".join(part for part in (trouble, self._last_read if trouble else "") if part)

    @property
    def _last_read(self) -> str:
        """When a card that sleeps was read last, and what it reported then; empty if never."""
        device, sensors = self.device, self.pc.sensors
        if device is None or not device.is_asleep:
            return ""
        track = sensors.track(device)
        if track.newest is None or track.newest_at_s is None:
            return ""
        return verdicts.last_reading_words(track.newest, time.monotonic() - track.newest_at_s)

    @property
    def is_readable(self) -> bool:
        """Whether the device has sensors to show; silent sensors still show their last minute."""
        return not self._trouble_of(self.device)

    def _trouble_of(self, device: Device | None) -> str:
        snapshot = self.snapshot
        return snapshot.trouble(device) if device and snapshot else ""

    # ── the programs on it ───────────────────────────────────────────────────────────────────

    @property
    def has_programs(self) -> bool:
        """Whether it can have programs: it is a card that can be read, or one is expected."""
        return self._may_have_card and self.is_readable

    @property
    def processes(self) -> Sequence[GpuProcess]:
        """Those on the card, the one with the most memory first."""
        found = self.pc.sensors.processes(self.device) if self.device else ()
        return sorted(found, key=lambda one: -(one.memory_bytes or 0))

    @property
    def programs(self) -> list[Notice]:
        """One sentence for each of the programs that matter most on the card."""
        if self.device is None or not self.pc.sensors.has_programs(self.device):
            return [Notice("\u00a0")]  # the room of a line
        sentences = program_notices(self.processes, self._own_pids, self._state, _MOST_PROGRAMS)
        return sentences or [Notice(programs.note(self.processes, self.memory_used), Tone.QUIET)]

    @property
    def _own_pids(self) -> dict[int, str]:
        return programs.own_pids(self.pc.session.description)

    @property
    def _state(self) -> CardState:
        return card_state(self.device, self.pc.sensors)

    @property
    def process_rows(self) -> list[tuple[str, ...]]:
        """All processes on the card, for a table."""
        return [programs.process_row(one, self._own_pids) for one in self.processes]

    @property
    def process_note(self) -> str:
        """A sentence about the table of processes; empty if there is nothing to say."""
        return programs.note(self.processes, self.memory_used)

    @property
    def to_end(self) -> list[GpuProcess]:
        """The processes that you may end: your own, on this PC, if the setting allows it."""
        if self.pc.name or not self._studio.settings.choices.may_end_processes:
            return []
        return [one for one in self.processes if programs.may_end(one, self._own_pids)]

    @property
    def process(self) -> GpuProcess | None:
        """The process that was chosen to be ended, or the first one."""
        found = [one for one in self.to_end if one.pid == self.choices.pid]
        return next(iter((*found, *self.to_end)), None)

    def end(self, process: GpuProcess) -> None:
        """Ask a process to end."""
        self.outcome = programs.end_process(process, self._own_pids)
        self.changed.emit()

    # ── the verdict ──────────────────────────────────────────────────────────────────────────

    @property
    def has_cards(self) -> bool | None:
        """Whether there is a card for this build of PyTorch, or NVIDIA's, for which there is one.

        None until the PC is examined.
        """
        inventory, engine = self.pc.sensors.inventory, self.pc.session.description
        if inventory is None:
            return None
        builds = (CUDA_BUILD, engine.build_kind if engine is not None else CUDA_BUILD)
        return any(card.build_kind in builds for card in inventory.cards)

    @property
    def verdict(self) -> Finding:
        """Whether PyTorch can use the device, in one sentence."""
        device, session = self.device, self.pc.session
        if device is None:
            return verdicts.before_devices(self.pc.sensors.is_silent)
        if self.pc.name and session.absence:
            return verdicts.of_line(self.pc)
        if session.absence:
            builds = self._studio.builds
            return verdicts.without_engine(device, builds.installation if builds else "")
        if device.is_cpu and self.has_cards:
            return verdicts.of_cpu(device, session.description, session.state)
        findings, row = self._findings_of(device), self.row
        if row is not None and row.obstacle in ABOUT_THE_CARD:
            own = [one for one in findings if one.device_uuid == device.identity]
            if not own:
                return Finding(code="unknown", sentence=row.reason, detail=row.name)
            return self._offered(own[0])
        trouble = self._trouble_of(device)
        verdict = verdicts.of_card(device, findings, session.description, session.state, trouble)
        return self._offered(verdict)

    @property
    def also_found(self) -> list[Finding]:
        """The other findings about the device, worst first."""
        device = self.device
        if device is None or (device.is_cpu and self.has_cards):
            return []
        offered, verdict = map(self._offered, self._findings_of(device)), self.verdict
        return [finding for finding in offered if finding != verdict]

    def _offered(self, finding: Finding) -> Finding:
        """Return a finding with what the window can do about it, which it can only here."""
        if not self.pc.name:
            return self._studio.headlines.offered(finding)
        return msgspec.structs.replace(finding, sentence=f"{self.pc.name}: {finding.sentence}")

    def _findings_of(self, device: Device) -> list[Finding]:
        return [f for f in self.pc.doctor.findings if f.device_uuid in (None, device.identity)]

    # ── events ───────────────────────────────────────────────────────────────────────────────

    def _looked_at(self, pc: Pc) -> Device | None:
        return self.device if pc is self.pc else None

    def _find(self) -> None:
        if self._studio.sensors.inventory is None:
            return
        if not self._is_chosen or self.device is None:
            self._is_chosen = False
            cards = self._cards_here
            numbered = [row for row in cards if row.number is not None]
            self._look_at((*numbered, *cards, self._studio.board.cpu)[0].identity)
        self.changed.emit()

    def _look_at(self, identity: str) -> None:
        if identity != self._selected:
            self._selected = identity
            self.see(is_seen=self.is_seen)
            self.changed.emit()
            self._memory.ask()
