"""A copy of this program to a PC that the user may add, and has none: offered, then sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.program_copy import CopyOffer, CopyStep
from gpu_studio.model.pc_errand import PcErrand

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.other_pc import OtherPc


class PcCopy(PcErrand):
    """Asks what a copy needs, then sends it. Nothing is sent before `send`.

    Attributes:
        notice: what was found, what is under way, or how it ended; None before.
        offer: what can be sent now; None if nothing can.
        is_ready: whether GPU Studio is there by now, with PyTorch.
    """

    def look(self, address: OtherPc) -> None:
        """Ask a PC what it has for a copy."""
        self._start(lambda is_over: [self._port.copy_offer(address, is_over.is_set)])
        self._say(Notice("Checking whether it can be copied…", Tone.QUIET))

    def send(self) -> None:
        """Send what is offered."""
        offer = self.offer
        if offer is not None:
            self._start(lambda is_over: self._port.copying(offer, is_over.is_set))
            self.changed.emit()

    def _forget(self) -> None:
        self.notice: Notice | None = None
        self.offer: CopyOffer | None = None
        self.is_ready = False

    def _on_answer(self, answer: CopyOffer | CopyStep) -> None:
        if isinstance(answer, CopyStep):
            self.is_ready = answer.is_ready
            tone = Tone.FAILURE if answer.has_failed else Tone.QUIET
            self._say(Notice(answer.sentence, tone))
            return
        trouble = answer.trouble
        self.offer = None if trouble else answer
        self._say(Notice(trouble or answer.sentence, Tone.AMBER if trouble else Tone.PLAIN))

    def _on_failure(self, failure: Failure) -> None:
        self._say(Notice(failure.message, Tone.FAILURE))

    def _say(self, notice: Notice) -> None:
        self.notice = notice
        self.changed.emit()
