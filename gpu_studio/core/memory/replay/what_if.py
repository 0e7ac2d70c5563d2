"""Plays the calls of a recorded history on another card, with the allocator's model.

The calls are the recorded ones; the allocator's answers are the model's. What the program would
have done otherwise on such a card (a smaller workspace of cuDNN, a second try after an error) is
not in a history.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.memory.allocator.blocks import IN_USE, ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.allocator.options import parse_configuration

if TYPE_CHECKING:
    from gpu_studio.core.memory.allocator.blocks import Block
    from gpu_studio.core.memory.replay.history import MemoryCall, RecordedCalls

_ENDLESS_BYTES = 1 << 45
_US = 1e-6


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """A history on a card, according to the model.

    Attributes:
        card_bytes: the card's memory; None for a card of any size.
        other_bytes: what other programs and CUDA's context hold of it.
        conf: the allocator's options.
        peak_allocated_bytes: the most that tensors held at a time.
        peak_reserved_bytes: the most that the allocator held.
        unused_at_peak_bytes: reserved and held by no tensor when the allocator held the most.
        failed_at: the index of the history's entry that did not fit; None if all did.
        failed_s: its time since the first entry, in seconds; None without times.
        failed_line: its line of code; empty if that was not recorded.
        failure: PyTorch's error at that moment; empty if all fit.
        tried_bytes: what that call asked the driver for; None if the driver was not asked.
        free_bytes: what the card had free then.
        enough_bytes: a card of this size is enough with these options; None if no card was asked
            about.
    """

    card_bytes: int | None
    other_bytes: int
    conf: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    unused_at_peak_bytes: int
    failed_at: int | None = None
    failed_s: float | None = None
    failed_line: str = ""
    failure: str = ""
    tried_bytes: int | None = None
    free_bytes: int | None = None
    enough_bytes: int | None = None

    @property
    def fits(self) -> bool:
        """Whether every tensor of the history found room."""
        return self.failed_at is None


def what_if(
    history: RecordedCalls, *, card_bytes: int | None = None, other_bytes: int = 0, conf: str = ""
) -> WhatIf:
    """Return what a history would do on another card.

    Tensors from before the history are there from the beginning on: where they were if the options
    are the recorded ones, otherwise put there one after another in the order of their addresses.

    Args:
        history: the calls.
        card_bytes: the card's memory; None for a card on which everything fits.
        other_bytes: what other programs and CUDA's context hold of it.
        conf: the allocator's options.

    Raises:
        ValueError: ``conf`` is wrong.
    """
    found = _played(history, card_bytes, other_bytes, conf)
    if card_bytes is None:
        return found
    options = parse_configuration(conf)
    collects = options.garbage_collection_threshold
    # A card of what was reserved refuses nothing, so all of it happens there as it did here.
    whole = found if found.fits and not collects else _played(history, None, 0, conf)
    # Up to this share of a card, the options limit nothing.
    share = options.per_process_memory_fraction * (collects or 1.0)
    enough_bytes = whole.peak_reserved_bytes + other_bytes
    if share:
        enough_bytes = max(enough_bytes, math.ceil(whole.peak_reserved_bytes / share))
    return msgspec.structs.replace(found, enough_bytes=enough_bytes)


def _played(history: RecordedCalls, card_bytes: int | None, other_bytes: int, conf: str) -> WhatIf:
    player = _Player(AllocatorModel(card_bytes or _ENDLESS_BYTES, other_bytes, conf=conf))
    failure, failed = None, None
    try:
        player.begin(history, conf)
        for call in history.calls:
            failed = call
            player.make(call)
        failed = None
    except ModelledOutOfMemory as error:
        failure = error.with_traceback(None)
    stats = player.model.stats()
    found = WhatIf(
        card_bytes=card_bytes,
        other_bytes=other_bytes,
        conf=conf,
        peak_allocated_bytes=stats["allocated_bytes.all.peak"],
        peak_reserved_bytes=stats["reserved_bytes.all.peak"],
        unused_at_peak_bytes=player.unused_at_peak_bytes,
    )
    if failure is None:
        return found
    time_us = history.begun_us if failed is None else failed.time_us
    return msgspec.structs.replace(
        found,
        failed_at=0 if failed is None else failed.entry,
        failed_s=(time_us - history.begun_us) * _US if history.begun_us and time_us else None,
        failed_line="" if failed is None else history.lines[failed.line],
        failure=str(failure),
        tried_bytes=failure.tried_bytes,
        free_bytes=failure.free_bytes,
    )


class _Player:
    """The tensors of a history in a model.

    Attributes:
        model: without a tensor yet.
        unused_at_peak_bytes: reserved and held by no tensor when the most was reserved.
    """

    def __init__(self, model: AllocatorModel) -> None:
        self.model = model
        self.unused_at_peak_bytes = 0
        self._held: dict[int, Block] = {}
        self._allocated_bytes = self._reserved_bytes = self._peak_bytes = 0
        model.card.watch = self._on_segment

    def begin(self, history: RecordedCalls, conf: str) -> None:
        """Put the tensors there that the history began with."""
        blocks = [block for segment in history.start for block in segment.blocks]
        there_bytes = sum(block.size_bytes for block in blocks)
        is_known = conf == history.facts.conf and not self.model.is_expandable
        if is_known and there_bytes <= self.model.card.free_bytes:
            self._reserved_bytes = there_bytes
            for address, block in self.model.restore(history.start).items():
                self._hold(address, block)
            return
        for segment in history.start:
            for found in segment.blocks:
                if found.state == IN_USE:
                    block = self.model.allocate(found.requested_bytes, segment.stream)
                    self._hold(found.address, block)

    def make(self, call: MemoryCall) -> None:
        """Make a call of the program; raise `ModelledOutOfMemory`."""
        if call.action == "alloc":
            self._hold(call.address, self.model.allocate(call.size_bytes, call.stream))
        elif call.action == "free":
            block = self._held.pop(call.address)
            self._allocated_bytes -= block.size_bytes
            self.model.free(block)
        elif call.action == "empty_cache":
            self.model.empty_cache()
        else:  # it failed when it was recorded, so nobody knows how long it would have lived
            self.model.free(self.model.allocate(call.size_bytes, call.stream))

    def _hold(self, address: int, block: Block) -> None:
        self._held[address] = block
        self._allocated_bytes += block.size_bytes
        if self._reserved_bytes > self._peak_bytes:
            self._peak_bytes = self._reserved_bytes
            self.unused_at_peak_bytes = self._reserved_bytes - self._allocated_bytes

    def _on_segment(self, action: str, _address: int, size_bytes: int) -> None:
        self._reserved_bytes += (
            size_bytes if action in ("segment_alloc", "segment_map") else -size_bytes
        )
