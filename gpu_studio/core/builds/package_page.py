"""Reads the page of a package index, in HTML or JSON, and finds the wheel for a Python.

An index is a page of the web, so nothing in it is trusted: a link never leads from a secure
connection to one that is not, to a file, or to this PC itself, unless such an index was named.

The formats are those of PEP 503 (HTML), 691 and 700 (JSON, with sizes), and 658 and 714 (the
metadata beside a wheel).
"""

from __future__ import annotations

import html.parser
import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from gpu_studio.core.builds.record import parsed_json

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(-\d[^-]*)?-(?P<tags>[^-]+-[^-]+-[^-]+)\.whl"
)
# The oldest C library of the wheels that this program can use is older than Debian 11.
_LINUX = re.compile(r"(?:manylinux\w*|linux)_(x86_64|aarch64)")
_MACOS = re.compile(r"macosx_\d+_\d+_(?:(arm64|x86_64)|universal2)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 10**12
_SCHEMES = ("https", "http", "file")
_WHEEL_NAME = re.compile(r"[A-Za-z0-9_.+!~]+(?:-[A-Za-z0-9_.+!~]+){4,5}\.whl")
# Far above the largest wheel (0.9 GB), and no number that int() takes long for.
_MOST_DIGITS = 13
_WINDOWS = {"x86_64": "win_amd64", "aarch64": "win_arm64"}


@dataclass(frozen=True)
class WheelLink:
    """One wheel on a page.

    Attributes:
        name: Its file name.
        url: Its address, without a fragment.
        sha256: The published hash, "" if the page has none.
        size_bytes: The published size; None if the page has none.
        metadata_sha256: The hash of the metadata file beside it; "" if it has no hash, None if
            there is no such file.
    """

    name: str
    url: str
    sha256: str = ""
    size_bytes: int | None = None
    metadata_sha256: str | None = None

    @property
    def metadata_url(self) -> str:
        """The address of the metadata file, if there is one."""
        return f"{self.url}.metadata"


def links_in(text: str, page_url: str) -> tuple[WheelLink, ...]:
    """Return the wheels of an index's page, in its order.

    What has no wheel's file name, or no address, is left out.

    Raises:
        ValueError: It looks like JSON and is none, or has no list of files.
    """
    if text.lstrip().startswith("{"):
        return _links_of_json(text, page_url)
    parser = _Links(page_url)
    parser.feed(text)
    parser.close()
    return tuple(parser.found)


def wheel_for(
    links: tuple[WheelLink, ...], version: str, python: tuple[int, int], platform_key: str
) -> WheelLink | None:
    """Return the wheel of a version for a Python and a platform; None if there is none.

    Args:
        links: Of a page.
        version: The exact version, "2.13.0+cu126".
        python: (3, 11).
        platform_key: As `core.wheels.platform_key`, "windows-x86_64".
    """
    for link in links:
        match = _NAME.fullmatch(link.name)
        if match is None or match["version"] != version:
            continue
        if fits(match["tags"], python, platform_key):
            return link
    return None


def fits(tags: str, python: tuple[int, int], platform_key: str) -> bool:
    """Return whether a wheel's tags, "cp311-cp311-win_amd64", are those of a CPython."""
    interpreters, abis, platforms = (part.split(".") for part in tags.split("-"))
    own = f"cp{python[0]}{python[1]}"
    is_pure = "none" in abis and ("py3" in interpreters or own in interpreters)
    if not (is_pure or (own in interpreters and own in abis)):
        return False
    return any(one == "any" or _is_platform(one, platform_key) for one in platforms)


def _is_platform(tag: str, platform_key: str) -> bool:
    system, _, machine = platform_key.partition("-")
    if system == "windows":
        return tag == _WINDOWS.get(machine)
    if system == "darwin":
        match = _MACOS.fullmatch(tag)
        return match is not None and match[1] in (
            None,
            "arm64" if machine == "aarch64" else machine,
        )
    match = _LINUX.fullmatch(tag)
    return system == "linux" and match is not None and match[1] == machine


def version_of(name: str) -> str:
    """Return the version in a wheel's file name; "" if it is no wheel's name."""
    match = _NAME.fullmatch(name)
    return match["version"] if match else ""


def _links_of_json(text: str, page_url: str) -> tuple[WheelLink, ...]:
    content: Any = parsed_json(text)
    try:
        files = [one for one in content["files"] if is_wheel_name(one["filename"])]
        links = [_link_of_json(one, page_url) for one in files]
        return tuple(link for link in links if link is not None)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("the page has no list of files") from error


def _link_of_json(one: dict[str, Any], page_url: str) -> WheelLink | None:
    metadata = one.get("core-metadata", one.get("dist-info-metadata", False))
    size = one.get("size")
    url = _joined(page_url, one["url"])
    if url is None:
        return None
    return WheelLink(
        name=one["filename"],
        url=urldefrag(url).url,
        sha256=_hash_in(one.get("hashes", {}).get("sha256", "")),
        size_bytes=size if type(size) is int and 0 <= size <= _MOST_BYTES else None,
        metadata_sha256=_metadata_hash(metadata),
    )


def _joined(page_url: str, href: str) -> str | None:
    """Return the address of a link; None for what is none ("http://[::1")."""
    try:
        return urljoin(page_url, href)
    except ValueError:
        return None


def _hash_in(text: str) -> str:
    """Return a SHA-256 in small letters; "" for what is none."""
    return text.lower() if _SHA256.fullmatch(text.lower()) else ""


def _metadata_hash(value: Any) -> str | None:
    """Return the hash of a metadata file from either form; None if there is no file."""
    if isinstance(value, dict):
        return _hash_in(str(value.get("sha256", "")))
    if isinstance(value, str) and value not in ("", "false"):
        return _hash_in(value.removeprefix("sha256="))
    return "" if value is True else None


class _Links(html.parser.HTMLParser):
    def __init__(self, page_url: str) -> None:
        super().__init__()
        self._page_url = page_url
        self.found: list[WheelLink] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        href = attributes.get("href") if tag in ("a", "base") else None
        joined = _joined(self._page_url, href) if href else None
        if joined is None:
            return
        if tag == "base":
            self._page_url = joined
            return
        url, fragment = urldefrag(joined)
        name = unquote(url.rpartition("/")[2])
        if not is_wheel_name(name):
            return
        match = re.search(r"(?:^|&)sha256=([0-9a-fA-F]{64})", fragment)
        metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
        self.found.append(
            WheelLink(
                name=name,
                url=url,
                sha256=match[1].lower() if match else "",
                metadata_sha256=_metadata_hash(metadata),
            )
        )


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
