"""The project's address, which pyproject.toml has once, and what follows from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from studio_build.console import BuildError

if TYPE_CHECKING:
    from pathlib import Path

_LINE = re.compile(r'^Homepage = "(.*)"$', re.MULTILINE)
_URL = re.compile(r"https://([a-z.]+)/([\w.-]+)/([\w.-]+)")
# Belongs to no one (RFC 2606): for a try, until the project has an address.
_PLACEHOLDER = "example.org"


class Host(NamedTuple):
    """Where a host of repositories has what belongs to a version.

    Attributes:
        id_prefix: What Flathub's app ids begin with, for a project of this host.
        page: The path of a file's page; of "{tag}" and "{path}".
        file: The path of a file's content.
    """

    id_prefix: str
    page: str
    file: str


_HOSTS = {
    "github.com": Host("io.github", "blob/{tag}/{path}", "raw/{tag}/{path}"),
    "gitlab.com": Host("io.gitlab", "-/blob/{tag}/{path}", "-/raw/{tag}/{path}"),
    "codeberg.org": Host("page.codeberg", "src/tag/{tag}/{path}", "raw/tag/{tag}/{path}"),
}
_HOSTS[_PLACEHOLDER] = _HOSTS["github.com"]._replace(id_prefix="org.example")


class Address(NamedTuple):
    """The project's repository.

    Attributes:
        url: Without a slash at its end.
        host: What its host offers.
        owner: The account on the host.
        name: Of the repository.
    """

    url: str
    host: Host
    owner: str
    name: str

    @property
    def is_placeholder(self) -> bool:
        """Whether the project has no address yet."""
        return self.host is _HOSTS[_PLACEHOLDER]

    @property
    def app_id(self) -> str:
        """The id for software centers: a name below the account, which is the project's own.

        AppStream's ids have no hyphens.
        """
        return ".".join([self.host.id_prefix, _id_part(self.owner.lower()), _id_part(self.name)])

    def page(self, version: str, path: str) -> str:
        """Return the page of a file of a version."""
        return f"{self.url}/{self.host.page.format(tag=f'v{version}', path=path)}"

    def file(self, version: str, path: str) -> str:
        """Return where the content of a file of a version is, for example of a picture."""
        return f"{self.url}/{self.host.file.format(tag=f'v{version}', path=path)}"


def address_of(root: Path) -> Address:
    """Return the address of a checkout.

    Raises:
        BuildError: pyproject.toml has none, or one of a host whose links are not known.
    """
    line = _LINE.search((root / "pyproject.toml").read_text(encoding="utf-8"))
    parts = line and _URL.fullmatch(line[1])
    if not parts or parts[1] not in _HOSTS:
        hosts = ", ".join(name for name in _HOSTS if name != _PLACEHOLDER)
        raise BuildError(
            f"pyproject.toml needs the project's address as its Homepage: a repository on {hosts}."
        )
    return Address(parts[0], _HOSTS[parts[1]], parts[2], parts[3])


def _id_part(text: str) -> str:
    """Return a text as a part of an id: letters, digits and underscores, no digit first."""
    plain = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"_{plain}" if plain[0].isdigit() else plain


def absolute_links(text: str, address: Address, version: str) -> str:
    """Return a document whose links and pictures work outside the repository, as on PyPI's page."""

    def absolute(match: re.Match[str]) -> str:
        opening, path = match[1], match[2]
        is_picture = opening.startswith("!") or path.endswith(".webp")
        return f"{opening}({(address.file if is_picture else address.page)(version, path)})"

    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)", absolute, text)
