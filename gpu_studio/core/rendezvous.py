"""The address of this PC at which several PCs meet, if the user chose one instead of a tunnel."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from gpu_studio.core.messages.together_messages import LONGEST_RENDEZVOUS, ExchangeBackend
from gpu_studio.core.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WHAT_IT_MEANS = (
    "This PC listens at the address during the run. Every PC in that network can reach it, and "
    "nothing is encrypted. Choose it only in a network that you trust. The tunnel of ssh is safer."
)
_HOW_TO_SEE = "“ip address” lists this PC's addresses, on Windows “ipconfig”."


def address_trouble(address: str) -> str:
    """Return why several PCs cannot meet at an address, as a sentence; empty if they may."""
    shown = plain_text(address)[:LONGEST_RENDEZVOUS]
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return f"“{shown}” is not a numeric address, such as 192.168.1.5. {_HOW_TO_SEE}"
    if parsed.is_unspecified:
        return f"{shown} stands for every network of this PC. Choose the address of one network."
    if parsed.is_loopback:
        return f"Only this PC reaches {shown}. Leave out the address to use the tunnel of ssh."
    if parsed.is_multicast or (parsed.version == 6 and parsed.is_link_local):
        return f"{shown} cannot be reached without more words. Choose another address of this PC."
    return ""


def trouble_here(address: str, own: Iterable[str]) -> str:
    """Return why several PCs cannot meet at an address of this PC; empty if they may.

    Args:
        address: as the user gave it.
        own: all addresses of this PC; an interface may stand after “%”.
    """
    reason = address_trouble(address)
    if reason:
        return reason
    known = {ipaddress.ip_address(one.partition("%")[0]) for one in own}
    if ipaddress.ip_address(address) not in known:
        return f"{plain_text(address)} is not an address of this PC. {_HOW_TO_SEE}"
    return ""


def exchange_backends(
    kinds: Iterable[str], own: Sequence[str], *, is_tunneled: bool
) -> tuple[ExchangeBackend, ...]:
    """Return what devices of several PCs can exchange their gradients with, best first.

    NCCL chooses a new port for each connection, so it passes no tunnel, and it has nothing for a
    CPU. Whether the other PCs have it shows when they try.

    Args:
        kinds: of all devices: ``cuda``, ``cpu``.
        own: the backends that this PC's PyTorch has for its first device.
        is_tunneled: whether the PCs meet through ssh.
    """
    if not is_tunneled and set(kinds) == {"cuda"} and ExchangeBackend.NCCL.value in own:
        return ExchangeBackend.NCCL, ExchangeBackend.GLOO
    return (ExchangeBackend.GLOO,)
