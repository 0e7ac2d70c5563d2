"""The cards that the memory lab can model, and the memory of each that a program can use.

A simulated card's address is the memory that CUDA sees: ``model:1996`` has 1996 MiB.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.resources import read_resource

MIB = 1 << 20
LEAST_MIB, MOST_MIB = 256, 1 << 20
_ADDRESS = re.compile(r"model:(\d{1,9})", re.ASCII)


class ModelledCardChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A card to model.

    Attributes:
        total_bytes: the memory that CUDA sees.
        context_bytes: the assumed size of the CUDA context.
    """

    name: str
    total_bytes: int
    context_bytes: int

    @property
    def address(self) -> str:
        """Its name in a request."""
        return f"model:{self.total_bytes // MIB}"

    @property
    def free_bytes(self) -> int:
        """The memory left for PyTorch if no other program uses the card."""
        return self.total_bytes - self.context_bytes


class _Context(msgspec.Struct, frozen=True):
    up_to_mib: int
    context_mib: int


class _Card(msgspec.Struct, frozen=True):
    name: str
    total_mib: int
    source: str


class ModelledCardTable(msgspec.Struct, frozen=True):
    """The file ``resources/modelled_cards.json``."""

    read: str
    source: str
    context_source: str
    contexts: tuple[_Context, ...]
    cards: tuple[_Card, ...]


@lru_cache(maxsize=1)
def modelled_card_table() -> ModelledCardTable:
    """Return the table, with the sources of its numbers.

    Raises:
        MissingResourceError: the file is missing or cannot be read.
    """
    return read_resource("modelled_cards.json", ModelledCardTable)


def modelled_cards() -> tuple[ModelledCardChoice, ...]:
    """Return the cards to choose from, the smallest first."""
    return tuple(_choice(card.name, card.total_mib) for card in modelled_card_table().cards)


def is_modelled(address: str) -> bool:
    """Return whether an address names a simulated card, valid or not."""
    return address.startswith("model:")


def card_at(address: str) -> ModelledCardChoice:
    """Return the card of an address such as ``model:1996``.

    Raises:
        StudioError: the address is invalid, or such a card cannot exist.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        shown = address if len(address) <= 20 else address[:17] + "…"
        raise StudioError(
            FailureKind.NO_SUCH_DEVICE,
            f"“{shown}” is not a simulated card. Name its memory in MiB, for example model:1996.",
        )
    mib = int(match[1])
    if not LEAST_MIB <= mib <= MOST_MIB:
        raise StudioError(
            FailureKind.NO_SUCH_DEVICE,
            f"A simulated card can have {LEAST_MIB} to {MOST_MIB} MiB, not {mib}.",
        )
    named = next((c.name for c in modelled_card_table().cards if c.total_mib == mib), "")
    return _choice(named or f"A card with {mib} MiB", mib)


def _choice(name: str, total_mib: int) -> ModelledCardChoice:
    contexts = modelled_card_table().contexts
    context_mib = next(c.context_mib for c in contexts if total_mib <= c.up_to_mib)
    return ModelledCardChoice(
        name=name, total_bytes=total_mib * MIB, context_bytes=context_mib * MIB
    )
