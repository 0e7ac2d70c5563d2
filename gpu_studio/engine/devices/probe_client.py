"""The client of the probe: starts a child for the kernels, and abandons it if a driver hangs.

No torch here. If a card crashes the child or blocks it forever, only that card fails: another child
continues with the next card.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.access import CardProbed, Outcome, PcProbed, ProbeStep
from gpu_studio.core.packages_folder import variables_for
from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.messages.engine_messages import TorchCard

_MODULE = "gpu_studio.engine.devices.probe"
# The time to import torch and start CUDA on an old PC; then for one kernel with its first context.
_START_PATIENCE_S = 90.0
_CARD_PATIENCE_S = 30.0
_LOOK_S = 0.1

_decoder = msgspec.json.Decoder(ProbeStep)


def probe_pc(
    log_path: Path | None = None,
    *,
    load_s: float = 0.0,
    start_patience_s: float = _START_PATIENCE_S,
    card_patience_s: float = _CARD_PATIENCE_S,
    is_over: Callable[[], bool] = lambda: False,
) -> PcProbed:
    """Run one real kernel on every card that the user's scripts would see; return the outcomes.

    The first card takes some seconds, because PyTorch is imported. Creates a CUDA context on every
    card; it is gone at the end.

    Args:
        log_path: the file for the child's standard error; None shares this process's.
        load_s: seconds of copies on each card, so that its link can be read under load.
        start_patience_s: the most seconds for the start of PyTorch and CUDA.
        card_patience_s: the most seconds for each card.
        is_over: returns whether to give up; called several times a second.
    """
    found: PcProbed | None = None
    cards: tuple[TorchCard, ...] = ()
    probed: list[CardProbed] = []
    while True:
        attempt = _Attempt(log_path, len(probed), load_s)
        try:
            attempt.follow(start_patience_s, card_patience_s, is_over)
        finally:
            attempt.end()
        found, cards = attempt.pc or found, attempt.cards or cards
        if found is None:
            return PcProbed(error=f"PyTorch could not start CUDA: {attempt.why}.")
        outcomes = attempt.outcomes()
        probed += outcomes
        if not outcomes or len(probed) >= len(cards) or is_over():
            return msgspec.structs.replace(found, cards=tuple(probed))


class _Attempt:
    """One child process, from its start to its end."""

    def __init__(self, log_path: Path | None, first: int, load_s: float) -> None:
        self.pc: PcProbed | None = None
        self.cards: tuple[TorchCard, ...] = ()
        self.begun: TorchCard | None = None
        self.probed: list[CardProbed] = []
        self.outcome: Outcome | None = None  # the failure; None if it did not fail
        self.why = ""
        self._load_s = load_s
        self._child = ChildProcess(
            _MODULE,
            ["--first", str(first), "--load-s", str(load_s)],
            environment=variables_for(None),
            log_path=log_path,
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._pump, daemon=True).start()

    def follow(
        self, start_patience_s: float, card_patience_s: float, is_over: Callable[[], bool]
    ) -> None:
        """Read steps until the child ends."""
        patience_s = start_patience_s
        deadline_s = time.monotonic() + patience_s
        while not is_over():
            try:
                line = self._lines.get(timeout=_LOOK_S)
            except queue.Empty:
                if time.monotonic() > deadline_s:
                    self.outcome, self.why = "silent", f"no answer within {patience_s:.0f} s"
                    return
                continue
            if line is None:
                self._note_end()
                return
            self._add(_decoder.decode(line))
            patience_s = card_patience_s + self._load_s
            deadline_s = time.monotonic() + patience_s

    def outcomes(self) -> list[CardProbed]:
        """Return the outcome of each card, including a card that crashed or blocked the child."""
        if self.outcome is None or self.begun is None:
            return self.probed
        held = CardProbed(card=self.begun, outcome=self.outcome, message=self.why)
        return [*self.probed, held]

    def end(self) -> None:
        """End the child, even in the middle of a call: it has nothing to save."""
        self._child.kill()
        self._child.end()

    def _add(self, step: ProbeStep) -> None:
        if step.pc is not None:
            self.pc, self.cards = step.pc, step.cards
        self.begun = step.begun
        if step.probed is not None:
            self.probed.append(step.probed)

    def _note_end(self) -> None:
        exit_code = self._child.end()
        if exit_code != 0:
            self.outcome, self.why = "died", f"its process ended with exit code {exit_code}"

    def _pump(self) -> None:
        try:
            for line in self._child.lines():
                self._lines.put(line)
        finally:
            self._lines.put(None)
