"""Reads the page of a package index, in HTML or JSON, and finds the wheel for a Python.

The formats are those of PEP 503 (HTML), 691 and 700 (JSON, with sizes), and 658 and 714 (the
metadata beside a wheel).
"""

from __future__ import annotations

import html.parser
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from gpu_studio.core.builds.addresses import is_wheel_name
from gpu_studio.core.builds.record import parsed_json

_NAME = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(-\d[^-]*)?-(?P<tags>[^-]+-[^-]+-[^-]+)\.whl"
)
# The oldest C library of the wheels that this program can use is older than Debian 11.
_LINUX = re.compile(r"(?:manylinux\w*|linux)_(x86_64|aarch64)")
_MACOS = re.compile(r"macosx_\d+_\d+_(?:(arm64|x86_64)|universal2)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 10**12
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
