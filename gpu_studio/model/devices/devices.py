"""The state of the Devices tab: the selected device, and everything known about it.

The module that words the facts is imported with the first facts, after the first paint.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.devices.access import ABOUT_THE_CARD
from gpu_studio.core.devices.devices import CUDA_BUILD
from gpu_studio.core.devices.facts import (
    FactGroup,
    PcSnapshot,
    amount_text,
    bytes_text,
    celsius_text,
    facts_of,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.units import format_bytes
from gpu_studio.model.devices.device_board import DeviceList
from gpu_studio.model.devices.process_table import ProcessTable
from gpu_studio.model.devices.sensor_log import SensorLog
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.headline import (
    Headline,
    headline_from,
    lost_headline,
    why_silent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.devices.run_effect import RunMark
    from gpu_studio.core.devices.sensor_history import SensorSpan
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.model.builds import Installation
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.studio import Studio

_BESIDE_A_CARD = ("utilization", "memory")


class DevicesModel(QObject):
    """The devices, the selected one, and what sensors and engine report about it.

    `processes` and the list of each PC are item models for views; `runs` marks the runs of the
    session, `log` writes the readings to a file.

    Signals:
        selection_changed(): another device is selected.
        facts_changed(): its rows, its verdict or its trouble changed, or the banner above the tabs.
        readings_changed(): its sensors have new readings.
    """

    selection_changed = Signal()
    facts_changed = Signal()
    readings_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._selected: str | None = None
        self._is_chosen = False
        self._lists: dict[Pc, DeviceList] = {}
        self.processes = ProcessTable(self)
        self.runs = studio.runs
        self.log = SensorLog(studio.sensors, self)
        self._memories: dict[Pc, CardMemory] = {}
        self._is_watched = False
        for pc in studio.pcs.all:
            self._listen(pc)
        studio.pcs.added.connect(self._listen)
        studio.pcs.removed.connect(self._forget)
        studio.pcs.changed.connect(self._find)
        studio.headlines.headline_changed.connect(self.facts_changed)
        self._reported_installation = self._installation
        if studio.builds is not None:
            studio.builds.changed.connect(self._follow_installation)
        self._find()

    def _listen(self, pc: Pc) -> None:
        """Follow what is known of a PC."""
        self._lists[pc] = DeviceList(self)
        memory = CardMemory(pc.session, partial(self._looked_at, pc), self)
        self._memories[pc] = memory
        memory.read_taken.connect(self.facts_changed)
        pc.session.engine_described.connect(memory.forget)
        pc.session.engine_described.connect(self._find)
        pc.session.state_changed.connect(self.facts_changed)
        pc.sensors.inventory_changed.connect(self._find)
        pc.sensors.reading_taken.connect(self._read)
        pc.sensors.silence_changed.connect(self.facts_changed)
        pc.doctor.findings_changed.connect(self.facts_changed)
        pc.doctor.check_changed.connect(self.facts_changed)

    def _forget(self, pc: Pc) -> None:
        self._lists.pop(pc).deleteLater()
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
    def pc(self) -> Pc:
        """The PC of the selected device."""
        return self._studio.pcs.of(self._selected or "")

    def list_of(self, pc: Pc) -> DeviceList:
        """Return the devices of a PC."""
        return self._lists[pc]

    def answer_of(self, pc: Pc) -> Notice:
        """Return the answer about a PC as a whole, for the heading of its devices."""
        if pc.why_not:
            return pc.notice
        if pc.engine_trouble:
            return Notice(pc.engine_trouble, Tone.AMBER)
        headlines = [headline_from(one) for one in pc.doctor.findings]
        # A remark is no answer: what is wrong comes first, then what works.
        tones = (Tone.FAILURE, Tone.AMBER, Tone.GOOD)
        answers = [one for tone in tones for one in headlines if one.tone is tone]
        return answers[0] if answers else Notice()

    def select(self, identity: str) -> None:
        """Select another device."""
        self._is_chosen = True
        self._memories[self._studio.pcs.of(identity)].choose()
        self._look_at(identity)

    def watch(self, watched: bool) -> None:
        """Ask the engine for PyTorch's own memory regularly while visible."""
        self._is_watched = watched
        for pc, memory in self._memories.items():
            memory.watch(watched and pc is self.pc)

    @property
    def _memory(self) -> CardMemory:
        return self._memories[self.pc]

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

    def spans(self, longest_s: float) -> tuple[SensorSpan, ...]:
        """Return the latest readings of each of its sensors."""
        device = self.device
        return self.pc.sensors.track(device).spans(longest_s) if device else ()

    def spans_beside(self, longest_s: float) -> tuple[SensorSpan, ...]:
        """Return the CPU's load and RAM to show beside the sensors of a card."""
        inventory, device = self.pc.sensors.inventory, self.device
        if inventory is None or device is None or device.is_cpu:
            return ()
        spans = self.pc.sensors.track(inventory.cpu).spans(longest_s)
        return tuple(span for span in spans if span.kind.key in _BESIDE_A_CARD)

    def marks_since(self, time_s: float) -> list[RunMark]:
        """Return its runs that were active after a time of the sensors' clock."""
        if self.pc.name:  # the marks are of this PC's engine
            return []
        identity = self.device.identity if self.device else None
        return [
            mark
            for mark in self.runs.marks
            if mark.identity == identity and (mark.ended_s is None or mark.ended_s >= time_s)
        ]

    @property
    def trouble(self) -> str:
        """Why it has no live readings; empty if it has."""
        if self.pc.why_not:
            return f"{self.pc.why_not} You see the last readings."
        if self.pc.sensors.is_silent:
            return (
                "The sensors have stopped answering. You see their last readings. "
                f"{why_silent(self.pc.sensors.asks_driver)}"
            )
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
        return last_reading_words(track.newest, time.monotonic() - track.newest_at_s)

    @property
    def is_readable(self) -> bool:
        """Whether the device has sensors to show; silent sensors still show their last minute."""
        return not self._trouble_of(self.device)

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
    def verdict(self) -> Headline:
        """Whether PyTorch can use the device, in one sentence."""
        device, session = self.device, self.pc.session
        if device is None:
            return verdict_before_devices(self.pc.sensors.is_silent)
        if self.pc.name and session.absence:
            return verdict_of_line(self.pc)
        if session.absence:
            return verdict_without_engine(device, self._installation)
        if device.is_cpu and self.has_cards:
            return verdict_of_cpu(device, session.description, session.state)
        findings, trouble = self._findings_of(device), self._trouble_of(device)
        row = self.row
        if row is not None and row.obstacle in ABOUT_THE_CARD:
            own = [one for one in findings if one.device_uuid == device.identity]
            if not own:
                return Headline(code="unknown", sentence=row.reason, detail=row.name)
            return self._offered(headline_from(own[0]))
        verdict = verdict_of_card(device, findings, session.description, session.state, trouble)
        return self._offered(verdict)

    @property
    def also_found(self) -> list[Headline]:
        """The other findings about the device, worst first."""
        device = self.device
        if device is None or (device.is_cpu and self.has_cards):
            return []
        headlines = [self._offered(headline_from(one)) for one in self._findings_of(device)]
        return [headline for headline in headlines if headline != self.verdict]

    def _offered(self, headline: Headline) -> Headline:
        """Return a headline with what the window can do about it, which it can only here."""
        if not self.pc.name:
            return self._studio.headlines.offered(headline)
        return msgspec.structs.replace(headline, sentence=f"{self.pc.name}: {headline.sentence}")

    def is_shown_above(self, headline: Headline) -> bool:
        """Return whether the banner above the tabs already shows this headline.

        Findings are shown here instead.
        """
        is_loss = not headline.is_finding and not self.pc.name
        return is_loss and self._studio.headlines.is_same_loss(headline)

    def report(self, form: str, *, masked: bool) -> str:
        """Return everything known as ``text``, ``markdown`` or ``json``."""
        from gpu_studio.core.devices.report import report_json, report_markdown, report_text  # 4 ms

        snapshot = self.snapshot
        if snapshot is None:
            return ""
        write = {"text": report_text, "markdown": report_markdown, "json": report_json}[form]
        return write(snapshot, self.pc.doctor.findings, masked=masked)

    def _findings_of(self, device: Device) -> list[Finding]:
        return [f for f in self.pc.doctor.findings if f.device_uuid in (None, device.identity)]

    def _trouble_of(self, device: Device | None) -> str:
        snapshot = self.snapshot
        return snapshot.trouble(device) if device and snapshot else ""

    # ── events ───────────────────────────────────────────────────────────────────────────────

    def _looked_at(self, pc: Pc) -> Device | None:
        return self.device if pc is self.pc else None

    def _find(self) -> None:
        if self._studio.sensors.inventory is None:
            return
        board = self._studio.board
        is_choice = sum(row.device is not None for row in board.rows) > 1
        for pc, devices in self._lists.items():
            rows = [row for row in board.rows if row.pc == pc.name]
            devices.show(rows, pc.session.description, is_choice=is_choice)
        if not self._is_chosen or self.device is None:
            self._is_chosen = False
            cards = [row for row in board.cards if row.device is not None and not row.pc]
            numbered = [row for row in cards if row.number is not None]
            self._look_at((*numbered, *cards, board.cpu)[0].identity)
        self._show_processes()
        self.facts_changed.emit()
        self.readings_changed.emit()

    def _look_at(self, identity: str) -> None:
        if identity != self._selected:
            self._selected = identity
            self.watch(self._is_watched)
            self._show_processes()
            self.selection_changed.emit()
            self._memory.look_elsewhere()

    @property
    def _installation(self) -> Installation:
        builds = self._studio.builds
        return builds.installation if builds is not None else ""

    def _follow_installation(self) -> None:
        """Follow the begin and the end of an installation; it reports ten times a second."""
        if self._installation != self._reported_installation:
            self._reported_installation = self._installation
            self.facts_changed.emit()

    def _read(self) -> None:
        self._show_processes()
        self.facts_changed.emit()
        self.readings_changed.emit()

    def _show_processes(self) -> None:
        device, engine = self.device, self.pc.session.description
        processes = self.pc.sensors.processes(device) if device else ()
        pid = engine.pid if engine else None
        self.processes.show(processes, pid, self.memory_used, is_here=not self.pc.name)


def last_reading_words(telemetry: Telemetry, age_s: float) -> str:
    """Return a past reading with the time of this PC's clock at which it was taken."""
    taken_at = datetime.now().astimezone() - timedelta(seconds=max(age_s, 0.0))
    hot_spot, power = celsius_text(telemetry.hotspot_c), amount_text(telemetry.power_w, None, "W")
    used = bytes_text(telemetry.memory_used_bytes)
    values = (
        celsius_text(telemetry.temperature_c),
        f"hot spot {hot_spot}" if hot_spot else None,
        power,
        f"{used} in use" if used else None,
    )
    words = ", ".join(value for value in values if value)
    return f"Last read at {taken_at:%H:%M}: {words}." if words else ""


def verdict_before_devices(is_silent: bool) -> Headline:
    """Return the headline before devices are found."""
    if is_silent:
        return Headline(
            code="unknown",
            sentence="The devices of this PC could not be read.",
            detail="The sensors do not answer. Restart the PC if they do not come back.",
        )
    return Headline(code="waiting", sentence="Looking for the devices of this PC…", tone=Tone.PLAIN)


def verdict_of_line(pc: Pc) -> Headline:
    """Return the headline about another PC that is not connected, or has no engine."""
    notice = pc.notice
    return Headline(
        code="line",
        sentence=pc.engine_trouble or notice.sentence,
        detail=notice.detail,
        tone=notice.tone if pc.why_not else Tone.AMBER,
    )


def verdict_of_card(
    card: Device,
    findings: Sequence[Finding],
    engine: EngineDescribed | None,
    state: EngineState,
    trouble: str,
) -> Headline:
    """Return the verdict on a card, or on the CPU of a PC without one.

    Args:
        card: the device.
        findings: the findings about it, worst first.
        engine: the engine's description of itself, None without an engine.
        state: the engine's state.
        trouble: why the device is not readable now; empty if it is.
    """
    if card.unreadable is None and trouble:
        return lost_headline(card, trouble)
    failures = [finding for finding in findings if finding.severity == "failure"]
    usable = [finding for finding in findings if finding.code == "ok"]
    # A note about the whole PC does not answer whether PyTorch can use the card.
    is_card = not card.is_cpu
    answers = [
        finding
        for finding in findings
        if not (is_card and finding.severity == "note" and finding.device_uuid is None)
    ]
    for finding in failures or usable or answers:
        return headline_from(finding)
    return _verdict_without_findings(card, engine, state, trouble)


def verdict_without_engine(device: Device, installation: Installation) -> Headline:
    """Return the verdict while no PyTorch is installed.

    Args:
        device: the card or the CPU.
        installation: what the installation does; empty if it has not begun.
    """
    question = f"if PyTorch can use your {device.short_name}"
    if installation:
        now = "is being installed" if installation == "runs" else "is not installed completely"
        sentence = f"The engine {now}. After that, you see here {question}."
        return Headline(
            code="waiting", sentence=sentence, action=Action.SHOW_SET_UP, tone=Tone.PLAIN
        )
    sentence = f"Install the engine to see {question}."
    return Headline(code="waiting", sentence=sentence, action=Action.SET_UP, tone=Tone.PLAIN)


def verdict_of_cpu(cpu: Device, engine: EngineDescribed | None, state: EngineState) -> Headline:
    """Return the verdict on the CPU of a PC with cards; the findings are about the cards."""
    if engine is None:
        return _verdict_without_findings(cpu, engine, state, "")
    simd = f" with {engine.cpu_capability}" if engine.cpu_capability else ""
    return Headline(
        code="ok",
        sentence=f"PyTorch runs on your {cpu.short_name}.",
        detail=f"torch {engine.torch_version} uses {engine.cpu_threads} of its threads{simd}",
        tone=Tone.GOOD,
    )


def _verdict_without_findings(
    device: Device, engine: EngineDescribed | None, state: EngineState, trouble: str
) -> Headline:
    """Return the headline while PyTorch has not reported on a device."""
    if state is EngineState.FAILED:
        sentence = f"PyTorch did not start, so it is not known if it can use {device.short_name}."
        return Headline(code="unknown", sentence=sentence)
    if engine is None:
        sentence = f"Asking PyTorch whether it can use your {device.short_name}…"
        return Headline(code="waiting", sentence=sentence, tone=Tone.PLAIN)
    if engine.cards_asleep:
        sentence = f"Your {device.short_name} is asleep. PyTorch has not checked it."
        return Headline(
            code="unknown", sentence=sentence, action=Action.WAKE_CARDS, tone=Tone.PLAIN
        )
    sentence = f"PyTorch does not list your {device.short_name}."
    return Headline(code="unknown", sentence=sentence, detail=trouble)


_READ_MEMORY_EVERY_MS = 2000


class CardMemory(QObject):
    """Asks an idle engine for one card's memory every two seconds.

    If an engine fails over a card, it asks again only when the user selects that card again.

    Args:
        session: answers the questions.
        looked_at: returns the shown device; a CPU is not asked about.

    Signals:
        read_taken(): a newer reading is available.
    """

    read_taken = Signal()

    def __init__(
        self,
        session: EngineSession,
        looked_at: Callable[[], Device | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._looked_at = session, looked_at
        self._read: dict[str, MemoryRead] = {}
        self._reply: Reply | None = None
        self._unanswered: str | None = None  # the address that made an engine fail
        self._timer = QTimer(self)
        self._timer.setInterval(_READ_MEMORY_EVERY_MS)
        self._timer.timeout.connect(self.ask)
        session.state_changed.connect(self._enter)

    @property
    def by_address(self) -> Mapping[str, MemoryRead]:
        """The newest reading of each card that was shown under this engine."""
        return dict(self._read)

    def watch(self, watched: bool) -> None:
        """Ask regularly while visible."""
        if watched:
            self._timer.start()
            self.ask()
        else:
            self._timer.stop()

    def choose(self) -> None:
        """Ask about a card that the user selected, even if an engine failed over it."""
        self._unanswered = None

    def look_elsewhere(self) -> None:
        """Ask about the device that is shown now."""
        if self._timer.isActive():
            self.ask()

    def forget(self) -> None:
        """Drop all readings: a new engine holds nothing on any card."""
        self._read.clear()

    def ask(self) -> None:
        """Ask now, if the engine is idle and can use the card."""
        device, engine = self._looked_at(), self._session.description
        address = device.address if device is not None and not device.is_cpu else None
        if (
            address is not None
            and address != self._unanswered
            and self._reply is None
            and engine is not None
            and engine.cuda_available
            and self._session.state.is_idle
        ):
            self._reply = self._session.submit(ReadMemory(device=address))
            self._reply.finished.connect(self._finish)

    def _enter(self, state: EngineState) -> None:
        device = self._looked_at()
        is_unread = device is not None and device.address not in self._read
        if state.is_idle and is_unread:
            self.look_elsewhere()

    def _finish(self) -> None:
        assert self._reply is not None
        request, event, self._reply = self._reply.request, self._reply.last, None
        assert isinstance(request, ReadMemory)
        has_died = isinstance(event, EngineEnded) and not event.stopped
        if has_died or isinstance(event, RequestFailed):
            self._unanswered = request.device
        if isinstance(event, MemoryRead):
            self._read[request.device] = event
            self.read_taken.emit()
