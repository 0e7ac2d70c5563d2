"""Memory now: the tank, allocated and reserved over time, and experiments that fill a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMessageBox

from gpu_studio.model.memory.now_model import CUSTOM, NowModel
from gpu_studio.ui.memory.memory_plot import MemoryPlot
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.page import Box, Columns, Flow, Own, Page, Stack
from gpu_studio.ui.page_controls import Pick, Slide
from gpu_studio.ui.page_parts import Heading, Press, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.memory.presets import Preset
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

WHOLE_CARD_WARNING = (
    "This leaves no memory for the desktop. While the card is full, windows may freeze or turn "
    "black, and videos may stop. The system may restart the display driver. Other programs that "
    "need memory on the card may end. On Windows, the driver continues in the PC's memory, slowly. "
    "The card stays full until you press “Empty cache” or leave this page. Save your work first."
)
# The parts of a card's memory while an experiment runs: the plot below them does not move.
_IN_AN_EXPERIMENT = ("Other programs", "CUDA itself", "Allocated", "Reserved, empty", "Free")
_EXPANDABLE = (
    "Run the same in a new process with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, to "
    "compare. Linux only: PyTorch ignores it on Windows"
)


class NowPage(Page):
    """The choices at the left, and beside them what happens.

    Args:
        memory: the memory of the chosen device.
        theme: for the tanks, the plot and the icons.
        parent: owns it.

    Signals:
        segments_wanted(): the user wants to see the segments of the failed moment.
    """

    segments_wanted = Signal()
    model: NowModel

    def __init__(self, memory: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        model = NowModel(memory)
        super().__init__("memory", model, theme, parent)
        model.setParent(self)

    def parts(self) -> Sequence[Part]:
        return (Columns(self._choices(), self._happening(), stretch=1),)

    # ── the choices ──────────────────────────────────────────────────────────────────────────

    def _choices(self) -> Part:
        m = self.model
        return Box(
            Words("Fill the card", "title"),
            Slide(
                of="size", title="Tensor size", name="oom.size", items=lambda: m.sizes,
                tip="The memory of each tensor, which is square", enabled=self._can_run,
            ),
            Slide(
                of="count", title="Count", name="oom.count", items=m.counts,
                tip="How many tensors are made", enabled=self._can_run,
            ),
            Pick(
                of="dtype", title="dtype", name="oom.dtype", items=m.dtypes, is_titled=True,
                enabled=self._can_run,
            ),
            Slide(
                of="budget", title="Budget", name="oom.budget", items=lambda: m.budgets,
                tip="The most that PyTorch may take; more is refused as on a full card",
                enabled=self._can_run,
            ),
            Flow(
                Press(
                    "Run", self._runs(CUSTOM), name="oom.run", primary=True, key="run",
                    enabled=self._can_run, tip="Make these tensors, and keep them",
                ),
                Press(
                    "Stop", m.experiment.stop, name="oom.stop", key="stop",
                    enabled=lambda: m.can_stop,
                ),
            ),
            Words(lambda: m.reason, "muted", name="oom.reason"),
            Heading("Try also"),
            *map(self._link, m.presets),
            # Not below the outcome, where the one that it asks for would push it away.
            Press(
                "Expandable segments", m.experiment.compare, name="oom.compare",
                link=True, enabled=lambda: m.experiment.can_compare, tip=_EXPANDABLE,
            ),
            name="oom",
            stretch=2,
        )  # fmt: skip

    def _link(self, preset: Preset) -> Part:
        return Press(
            preset.title, self._runs(preset.name), name=f"oom.preset.{preset.name}", link=True,
            tip=preset.sentence, enabled=self._can_run,
        )  # fmt: skip

    def _can_run(self) -> bool:
        return self.model.can_run

    def _runs(self, preset: str) -> Callable[[], None]:
        def run() -> None:
            if self._may_fill():
                self.model.run(preset)

        return run

    def _may_fill(self) -> bool:
        """Ask before a real card is filled completely for the first time."""
        if not self.model.needs_consent:
            return True
        box = QMessageBox(
            QMessageBox.Icon.Warning, "Fill the whole card?", "Fill the whole card?",
            QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.Cancel, self,
        )  # fmt: skip
        box.setObjectName("memory.oom.confirm")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setInformativeText(WHOLE_CARD_WARNING)
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.button(QMessageBox.StandardButton.Yes).setText("Fill card")
        if box.exec() != QMessageBox.StandardButton.Yes:
            return False
        self.model.consent()
        return True

    # ── what happens ─────────────────────────────────────────────────────────────────────────

    def _happening(self) -> Part:
        m = self.model
        return Stack(
            Box(
                Flow(
                    Words(lambda: m.free, "headline", name="free", wraps=False, presented=True),
                    Words(
                        lambda: m.free_of, "muted", name="free_of", wraps=False, stretch=1,
                        presented=True,
                    ),
                    Pick(
                        of="card", title="Device whose memory is shown", name="card",
                        items=lambda: m.cards, least_letters=20,
                    ),
                ),
                Own(
                    lambda: TankBar(self.theme, name="memory.tank", reserves=_IN_AN_EXPERIMENT),
                    lambda bar: bar.show_tank(m.tank), name="tank", presented=True,
                ),
            ),
            Box(
                Flow(
                    Words(
                        lambda: "Allocated and reserved" if m.is_card else "Memory of GPU Studio",
                        "title", name="plot.title", stretch=1, wraps=False,
                    ),
                    Words(lambda: m.cache, "muted", name="cache", wraps=False),
                    Press(
                        "Empty cache", m.memory.empty_cache, name="empty_cache", icon="trash",
                        enabled=lambda: m.memory.can_empty_cache, shown=lambda: m.is_card,
                        tip="Give PyTorch's empty segments back to the driver; one with a tensor "
                        "in it stays",
                    ),
                ),
                Own(
                    lambda: MemoryPlot(self.theme, m), lambda plot: plot.show_history(),
                    name="plot", stretch=1, presented=True,
                ),
                Words(lambda: m.memory.emptied.trouble, "amber", name="cache.trouble"),
                Words(lambda: m.spilled, name="spilled"),
                stretch=1,
            ),
            self._outcome(0, "oom"),
            self._outcome(1, "oom.other"),
            Flow(
                Press(
                    "Show segments", self.segments_wanted.emit, name="oom.segments",
                    shown=lambda: m.has_segments, tip="The segment map of that moment",
                ),
            ),
            stretch=9,
        )  # fmt: skip

    def _outcome(self, place: int, name: str) -> Part:
        m = self.model
        return Box(
            Columns(
                Stack(
                    Words(
                        lambda: m.outcome(place).conf.upper(), "section", name=f"{name}.conf",
                        shown=lambda: bool(m.outcome(1).conf),
                    ),
                    Words(lambda: m.outcome(place).notice.sentence, "title",
                          name=f"{name}.headline"),
                    Words(lambda: m.outcome(place).notice.detail, name=f"{name}.outcome"),
                    Words(lambda: m.outcome(place).notice.next_step, "muted", name=f"{name}.next"),
                ),
                Stack(
                    Words(lambda: m.outcome(place).moment, "muted", name=f"{name}.moment"),
                    Own(
                        lambda: TankBar(self.theme, name=f"memory.{name}.tank", is_small=True),
                        lambda bar: bar.show_tank(m.outcome(place).tank),
                        name=f"{name}.tank", shown=lambda: m.outcome(place).tank is not None,
                    ),
                ),
            ),
            name=f"{name}.result",
            tone=lambda: m.outcome(place).notice.tone,
            shown=lambda: bool(m.outcome(place).notice.sentence),
        )  # fmt: skip
