"""The other side of the probe: a child for the kernels, left behind where a driver holds it.

No torch here. A card that ends the child, or never lets it go, costs that card its verdict alone:
another child goes on with the next.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.child_process import ChildProcess
from gpu_studio.core.devices.torch_facts import CardProbed, Outcome, PcProbed, ProbeStep, TorchCard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MODULE = "gpu_studio.engine.devices.probe"
# Importing torch and starting CUDA on an old PC; then one kernel, with its first context.
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
    """Return what comes last of `probing`."""
    patience = (start_patience_s, card_patience_s)
    last = PcProbed()
    for told in probing(log_path, load_s=load_s, patience_s=patience, is_over=is_over):
        if isinstance(told, PcProbed):
            last = told
    return last


def probing(
    log_path: Path | None = None,
    *,
    load_s: float = 0.0,
    patience_s: tuple[float, float] = (_START_PATIENCE_S, _CARD_PATIENCE_S),
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[TorchCard | PcProbed]:
    """Run one real kernel on every card that a script of the user's would see.

    Yields each card when its turn comes, and last what came of all. Takes some seconds before the
    first, since PyTorch is imported. Makes a CUDA context on every card, which is gone at the end.

    Args:
        log_path: where the child's standard error goes; None is this process's own.
        load_s: for how long to copy on each card, so that its link can be read at work.
        patience_s: how long PyTorch and CUDA may take to start, and how long one card may take.
        is_over: whether to give up; asked several times a second.

    Raises:
        OSError: the child could not be started.
    """
    found: PcProbed | None = None
    cards: tuple[TorchCard, ...] = ()
    probed: list[CardProbed] = []
    while True:
        attempt = _Attempt(log_path, len(probed), load_s)
        try:
            yield from attempt.follow(*patience_s, is_over)
        finally:
            attempt.end()
        found, cards = attempt.pc or found, attempt.cards or cards
        if found is None:
            yield PcProbed(error=f"PyTorch could not start CUDA: {attempt.why}.")
            return
        told = attempt.told()
        probed += told
        if not told or len(probed) >= len(cards) or is_over():
            yield msgspec.structs.replace(found, cards=tuple(probed))
            return


class _Attempt:
    """One child, from its start to its end."""

    def __init__(self, log_path: Path | None, first: int, load_s: float) -> None:
        self.pc: PcProbed | None = None
        self.cards: tuple[TorchCard, ...] = ()
        self.begun: TorchCard | None = None
        self.probed: list[CardProbed] = []
        self.outcome: Outcome | None = None  # how it failed; None where it did not
        self.why = ""
        self._load_s = load_s
        self._child = ChildProcess(
            _MODULE, ["--first", str(first), "--load-s", str(load_s)], log_path=log_path
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._pump, daemon=True).start()

    def follow(
        self, start_patience_s: float, card_patience_s: float, is_over: Callable[[], bool]
    ) -> Iterator[TorchCard]:
        """Take steps until the child ends; yield each card that it begins with."""
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
            self._take(_decoder.decode(line))
            if self.begun is not None:
                yield self.begun
            patience_s = card_patience_s + self._load_s
            deadline_s = time.monotonic() + patience_s

    def told(self) -> list[CardProbed]:
        """Return what came of the cards, of the one that ended or held the child as well."""
        if self.outcome is None or self.begun is None:
            return self.probed
        held = CardProbed(card=self.begun, outcome=self.outcome, message=self.why)
        return [*self.probed, held]

    def end(self) -> None:
        """End the child, also in the middle of a call."""
        self._child.end()

    def _take(self, step: ProbeStep) -> None:
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
