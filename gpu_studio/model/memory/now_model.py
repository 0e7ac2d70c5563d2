"""Memory now: the tank, its history, and experiments that fill a card."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QObject, QTimer

from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.memory.tank import with_programs
from gpu_studio.core.messages.memory_messages import AllocationPlan, RunMemoryExperiment
from gpu_studio.core.notice import Notice
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES
from gpu_studio.core.units import format_bytes
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.memory_model import choice_title
from gpu_studio.model.memory.oom_experiment import EXPANDABLE, OomState
from gpu_studio.model.page_model import PageModel

if TYPE_CHECKING:
    from gpu_studio.core.memory.tank import Tank
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.memory.oom_experiment import LabResult

WATCH_S = 2.5  # long enough to watch, short enough to wait for
CUSTOM = "custom"
_SIZES = (64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, None)
_FRAME_MS = 50  # an experiment reads its memory more often
_SHARES = (25, 50, 75, 100)  # of the free memory; the last one is the whole card
_USUAL_SHARE = 75  # the engine knows best what is free when an experiment begins
_DEFAULT_CONF = "PyTorch's default"


class NowChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What the page's controls show.

    Attributes:
        card: the identity of the device.
        size: the side of each square tensor.
        count: the number of tensors; None is until memory runs out.
        dtype: their type.
        budget: the most that they may take, in percent of the free memory; 100 is the whole card.
    """

    card: str = "cpu"
    size: int = 8192
    count: int | None = None
    dtype: str = "float32"
    budget: int = _SHARES[-1]


class ShownOutcome(NamedTuple):
    """A finished or running experiment in words.

    Attributes:
        notice: what happened, and what to try next.
        conf: the allocator's options.
        tank: the memory at that moment; None while it runs.
        moment: which moment that is.
    """

    notice: Notice = Notice()
    conf: str = ""
    tank: Tank | None = None
    moment: str = ""


_NOTHING = ShownOutcome()


class NowModel(PageModel):
    """Follows the tab's `MemoryModel`, and runs its experiments.

    Attributes:
        memory: the memory of the chosen device.
        experiment: its last experiment.
    """

    def __init__(self, memory: MemoryModel, parent: QObject | None = None) -> None:
        super().__init__(NowChoices(card=memory.chosen.identity), parent)
        self.memory, self.experiment = memory, memory.experiment
        self._free_bytes: int | None = None
        self._filled_cards: set[str] = set()  # the user agreed to fill these
        self._shown: list[ShownOutcome] = []
        self._frame = QTimer(self)
        self._frame.setSingleShot(True)
        self._frame.setInterval(_FRAME_MS)
        self._frame.timeout.connect(self._on_followed)
        self.follow_seen(self._on_memory, memory.memory_changed)
        memory.chosen_changed.connect(self._on_device)
        self.experiment.results_changed.connect(self._on_results)
        self.follow_seen(
            self._on_followed, memory.devices.choices_changed, memory.session_changed,
            self.experiment.state_changed, self.experiment.outcome_changed,
        )  # fmt: skip

    # ── the device ───────────────────────────────────────────────────────────────────────────

    @property
    def cards(self) -> list[tuple[str, str]]:
        """The devices to choose from, with their identities."""
        return [(choice_title(one), one.identity) for one in self.memory.devices.choices]

    @property
    def is_card(self) -> bool:
        return not self.memory.chosen.is_cpu

    def on_chosen(self) -> None:
        if self.choices.card != self.memory.chosen.identity:
            self.memory.devices.choose(self.choices.card)

    def see(self, *, is_seen: bool) -> None:
        """Read the memory while the page is visible; then leave the card to others."""
        self.experiment.keeps_engine = is_seen
        if is_seen:
            self.memory.watch()
        else:
            self.memory.unwatch()
            self.experiment.end_engine()
        super().see(is_seen=is_seen)

    def on_seen(self) -> None:
        """Take what was read meanwhile."""
        self._on_memory()

    def _on_device(self) -> None:
        self.choices = msgspec.structs.replace(self.choices, card=self.memory.chosen.identity)
        self._free_bytes = None
        self._on_memory()

    def _on_memory(self) -> None:
        sizes = self.memory.sizes_bytes
        if sizes is not None and not self.memory.is_of_experiment:
            self._free_bytes = sizes[1]
        if self.is_seen and not self._frame.isActive():
            self._frame.start()

    # ── now ──────────────────────────────────────────────────────────────────────────────────

    @property
    def free(self) -> str:
        """The free memory; empty before the first reading."""
        tank = self.memory.tank
        if tank is None:
            return ""
        return f"{format_bytes(_part(tank, 'free'))} free"

    @property
    def free_of(self) -> str:
        """What it is a part of, and what makes the numbers."""
        tank, chosen = self.memory.tank, self.memory.chosen
        if tank is None:
            return "No readings yet"
        words = f"of {format_bytes(tank.total_bytes)}, now"
        if chosen.is_modelled:
            return f"{words}, simulated"
        if chosen.is_cpu:
            return f"{words}, the PC's own memory"
        read = self.memory.latest
        is_own = read is not None and read.allocated_bytes is not None
        return words if is_own else f"{words}, by the driver"

    @property
    def tank(self) -> Tank | None:
        """The memory now, with the names of the other programs and what spilled."""
        memory = self.memory
        if memory.tank is None or not memory.chosen.is_real_card:
            return memory.tank
        return with_programs(memory.tank, memory.programs, memory.spilled_bytes)

    @property
    def spilled(self) -> Notice:
        """The sentence about what spilled into the PC's RAM, while it lasts; empty else."""
        return self.memory.spilled or Notice()

    @property
    def ceiling_bytes(self) -> int | None:
        """The most that PyTorch can get of the card; None if unknown."""
        read, tank = self.memory.latest, self.memory.tank
        if not self.is_card or read is None or tank is None or read.reserved_bytes is None:
            return None
        most = read.reserved_bytes + _part(tank, "free")
        return most if read.limit_bytes is None else min(most, read.limit_bytes)

    # ── empty_cache ──────────────────────────────────────────────────────────────────────────

    @property
    def cache(self) -> str:
        """What empty_cache will free, or has just freed."""
        read, freed_bytes = self.memory.latest, self.memory.emptied.freed_bytes
        if self.memory.is_emptying:
            return "freeing…"
        if read is not None and self.memory.can_empty_cache and read.releasable_bytes:
            return f"frees {format_bytes(read.releasable_bytes)}"
        return "" if freed_bytes is None else f"freed {format_bytes(freed_bytes)}"

    # ── the experiment ───────────────────────────────────────────────────────────────────────

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """The sides to choose from, each as the memory of its tensor."""
        item_bytes = ITEM_BYTES[self.choices.dtype]
        return [(format_bytes(item_bytes * size**2), size) for size in _SIZES]

    counts = tuple(("until it fails" if one is None else str(one), one) for one in _COUNTS)
    dtypes = DTYPES
    # The sliders begin as the post's experiment.
    presets = tuple(one for one in PRESETS if one.name not in ("gt1030", CUSTOM))

    @property
    def budgets(self) -> list[tuple[str, int]]:
        """The budgets to choose from, in percent of the free memory, and as bytes if known."""
        return [(self._budget_words(share), share) for share in _SHARES]

    def _budget_words(self, share: int) -> str:
        if share == _SHARES[-1]:
            return "whole card"
        if self._free_bytes is None:
            return f"{share}\u202f% of free"
        return format_bytes(self._free_bytes * share // 100)

    @property
    def can_run(self) -> bool:
        return not self.reason and self.experiment.state is OomState.IDLE

    @property
    def can_stop(self) -> bool:
        return self.experiment.state in (OomState.WAITING, OomState.RUNNING)

    @property
    def reason(self) -> str:
        """Why no experiment can run now; empty if one can."""
        session, chosen = self.memory.pc.session, self.memory.chosen
        if chosen.is_modelled:
            return ""
        if session.state is EngineState.FAILED:
            return "PyTorch has stopped. Start it anew from the PyTorch menu."
        if session.what_is_missing:
            return session.what_is_missing
        if not chosen.is_cpu:
            return "" if chosen.address else f"PyTorch cannot use this card. {chosen.reason}"
        return "Choose a card or a simulated one: an experiment does not fill the PC's memory."

    @property
    def needs_consent(self) -> bool:
        """Whether the next experiment fills a real card completely, for the first time."""
        chosen = self.memory.chosen
        is_whole = self.choices.budget == _SHARES[-1] and not chosen.is_modelled
        return is_whole and chosen.identity not in self._filled_cards

    def consent(self) -> None:
        """Note that the user lets the chosen card be filled."""
        self._filled_cards.add(self.memory.chosen.identity)

    def run(self, preset: str = CUSTOM) -> None:
        """Begin an experiment with the chosen budget; `CUSTOM` makes the chosen tensors."""
        address, choices = self.memory.chosen.address, self.choices
        if address is None or not self.can_run:
            return
        plan = AllocationPlan(size=choices.size, count=choices.count, dtype=choices.dtype)
        budget_bytes = None
        if choices.budget not in (_USUAL_SHARE, _SHARES[-1]) and self._free_bytes is not None:
            budget_bytes = self._free_bytes * choices.budget // 100
        self.experiment.run(
            RunMemoryExperiment(
                preset=preset,
                device=address,
                plan=plan if preset == CUSTOM else None,
                budget_bytes=budget_bytes,
                whole_card=choices.budget == _SHARES[-1],
                watch_s=WATCH_S,
            )
        )

    # ── the outcome ──────────────────────────────────────────────────────────────────────────

    @property
    def has_segments(self) -> bool:
        """Whether the segments of the failed moment can be shown."""
        results = self.experiment.results
        return bool(results) and results[-1].segments is not None

    def outcome(self, place: int) -> ShownOutcome:
        """Return what the first or the second experiment came to, or how it stands.

        Args:
            place: 0 or 1; the second one is the same with other options.
        """
        results, request = self.experiment.results, self.experiment.request
        if place < len(self._shown):
            return self._shown[place]
        notice = self.experiment.outcome
        if place > len(results) or request is None or notice is None:
            return _NOTHING
        return ShownOutcome(notice, EXPANDABLE if place else _DEFAULT_CONF)

    def _on_results(self) -> None:
        # The other users of the card are shown as of the experiment's end and stay that way.
        results, known = self.experiment.results, len(self._shown)
        self._shown = [*self._shown, *map(self._outcome_of, results[known:])] if results else []
        self.changed.emit()

    def _outcome_of(self, result: LabResult) -> ShownOutcome:
        finished, conf = result.finished, result.conf or _DEFAULT_CONF
        tank = self.memory.reached(result)
        if finished is None:
            return ShownOutcome(result.outcome, conf, tank=tank, moment="Before it ended")
        moment = "When it failed" if finished.error_text else "At its end"
        return ShownOutcome(result.outcome, conf, tank, moment)


def _part(tank: Tank, key: str) -> int:
    return sum(part.size_bytes for part in tank.parts if part.key == key)
