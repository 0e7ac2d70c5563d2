"""What an index of packages may name: no weaker address, and no file but a wheel.

An index is a page of the web, so nothing in it is trusted: a link never leads from a secure
connection to one that is not, to a file, or to this PC itself, unless such an index was named.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCHEMES = ("https", "http", "file")
_WHEEL_NAME = re.compile(r"[A-Za-z0-9_.+!~]+(?:-[A-Za-z0-9_.+!~]+){4,5}\.whl")
# Far above the largest wheel (0.9 GB), and no number that int() takes long for.
_MOST_DIGITS = 13


def why_refused(url: str, named: Iterable[str]) -> str:
    """Return why a link or redirect is not followed; "" if it may be.

    Args:
        url: Where it leads.
        named: The addresses that were named: the page with the link, or every configured index.
    """
    try:
        scheme, is_own = _kind_of(url)
    except ValueError:
        return "it is not an address"
    bases = [_kind_of(base) for base in named]
    if scheme != "https" and scheme not in [base for base, _ in bases]:
        return "it leads to a less secure place"
    if is_own and not any(base_is_own for _, base_is_own in bases):
        return "it leads to this PC itself"
    return ""


def _kind_of(url: str) -> tuple[str, bool]:
    """Return the scheme of an address, and whether it is a server of this PC.

    Raises:
        ValueError: It is no address, or of a kind that is never followed.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in _SCHEMES or parts.port == 0 or not (host or parts.scheme == "file"):
        raise ValueError(url)
    if parts.scheme == "file":
        return parts.scheme, False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # Systems read short forms as well: "127.1" and "2130706433" are this PC.
        is_number = re.fullmatch(r"(?:0x[0-9a-f]+|[0-9]+)(?:\.(?:0x[0-9a-f]+|[0-9]+))*", host)
        is_own = host == "localhost" or host.endswith(".localhost") or is_number is not None
        return parts.scheme, is_own
    plain = getattr(address, "ipv4_mapped", None) or address
    return parts.scheme, plain.is_loopback or plain.is_unspecified


def is_wheel_name(name: str) -> bool:
    """Return whether a text is the file name of a wheel, and nothing that leads elsewhere."""
    return len(name) <= 255 and _WHEEL_NAME.fullmatch(name) is not None


def whole_number(text: str | None) -> int | None:
    """Return a number in a header; None for everything but a few ASCII digits."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return None
    return int(text)
