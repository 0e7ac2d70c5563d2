"""The one comparison that needs no choice: a matrix product on the CPU and the cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.plan import Plan
    from gpu_studio.model.studio import Studio

WORKLOAD = "matmul"
# Small, medium and large: usually the CPU wins the first and the card the last.
SIZES = (64, 256, 1024)
BUDGET_S = 2.0
_MOST_CARDS = 2
# Set-up, verification and warm-up come to each budget.
_DEVICE_S = 12


class QuickComparison:
    """What one click compares on this PC."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    @property
    def devices(self) -> tuple[str, ...]:
        """The addresses: the CPU and the first usable cards; empty without an engine."""
        engine = self._studio.session.description
        if engine is None or all(one.name != WORKLOAD for one in engine.workloads):
            return ()
        usable = self._studio.board.usable_here[: 1 + _MOST_CARDS]
        return tuple(row.address for row in usable if row.address is not None)

    @property
    def title(self) -> str:
        """The question that it answers, on its button."""
        board, settings = self._studio.board, self._studio.settings
        may_have_card = any(not row.pc for row in board.cards) or bool(settings.choices.cards)
        has_card = len(self.devices) > 1 if self.devices else may_have_card
        return f"How fast is my {'GPU' if has_card else 'CPU'}?"

    @property
    def sentence(self) -> str:
        """How long it takes, and what it compares; empty without an engine."""
        count = len(self.devices)
        against = ", against your CPU" if count > 1 else ""
        return f"About {_DEVICE_S * count} s{against}" if count else ""

    @property
    def why_not(self) -> str:
        """Why nothing can be compared now; empty if something can."""
        if self.devices:
            return ""
        return self._studio.session.absence or "PyTorch has not started yet."

    @property
    def plan(self) -> Plan:
        """The runs."""
        from gpu_studio.core.benchmark.plan import Plan  # 16 ms

        return Plan(
            workload=WORKLOAD,
            sizes=SIZES,
            dtypes=("float32",),
            devices=self.devices,
            settings={"budget_s": BUDGET_S},
        )
