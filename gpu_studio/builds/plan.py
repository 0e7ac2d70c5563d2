"""Finds the wheels of a build by pip's own report: ``pip install --dry-run --report``.

pip names the address and the hash of every wheel, and reads at most their metadata: beside the
wheel, or by a few ranges of it. PyTorch comes from its index, or from where pip is configured to
look; a folder of wheels takes the place of both, and then nothing is asked of the network. What an
index says is not trusted: every wheel needs a hash, and no link leads to a less secure place.

Builds for other makers' cards need packages that only their own index has. PyPI has packages of the
same names that are something else, so those names are asked for there alone. AMD's index has no
metadata and leads each file elsewhere, where pip would read all of it: its page is read here.

The versions are those of ``uv.lock``, and a file that PyPI sends has its hash.
Versions that an index no longer has are replaced by others. A mirror's file is proven by the lock
or by PyTorch's published hashes; the end of the installation names every file that nothing proves.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from gpu_studio.builds.download import Downloader, StoppedError, WheelFile, require_followed
from gpu_studio.builds.lock_file import LOCK, read_lock
from gpu_studio.builds.made_wheels import wheel_name, wheel_of_source
from gpu_studio.builds.wheel_folder import packages_of, versions_of, wheel_name_of
from gpu_studio.core import limits
from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.addresses import why_refused
from gpu_studio.core.builds.record import LARGEST_FILE_BYTES, parsed_json
from gpu_studio.core.builds.trouble import Trouble, TroubleError, TroubleKind, hashes_text
from gpu_studio.core.user_file import (
    UnusableFileError,
    open_user_file,
    read_own_text,
    write_atomically,
)
from gpu_studio.core.wheel_table import IndexPackage, TorchBuild, WheelTable
from gpu_studio.process.child_process import ChildProcess

_PYPI_FILES = "files.pythonhosted.org"
_POLL_S = 0.1
_LAST_LINES, _MOST_LOG_BYTES = 12, 4 << 20
_LARGEST_REPORT_BYTES = 64 << 20  # pip's, with the description of each package
_NETWORK = re.compile(
    r"getaddrinfo|Name or service|Temporary failure|Max retries|timed out|NewConnectionError|"
    r"NameResolutionError|Connection (?:refused|reset)|RemoteDisconnected|ProtocolError"
)
_PROXY = re.compile(r"ProxyError|Tunnel connection failed|407 Proxy")
_CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED|SSLError")
_NOT_FOUND = re.compile(r"ERROR: (?:No matching|Could not find).*")
_MISSING = re.compile(r"No matching distribution found for (\S+)")
# A package, its extras, its versions and its marker. No address ("name @ https:…"), which pip would
# follow anywhere, and no option of pip's.
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][\w.-]*)\s*(?:\[[\w., -]*\])?\s*\(?[\w.,<>=!~*+ -]*\)?\s*(?:;[^@]*)?"
)
_INDEX_SETTING = re.compile(r"^\S*\b(?:index-url|find-links)='(.*)'$")
_PYPI = "https://pypi.org/simple"
_FOLDER = "file:///"
# pip as if it had no configuration: another index may have packages of the same names.
_ALONE = "--isolated"
# Of an index without metadata, read the end of each wheel and not all of it.
_LAZY = ("--use-feature", "fast-deps")
PIP_OPTIONS = (
    "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "15",
)  # fmt: skip


class WheelPlan(msgspec.Struct, frozen=True):
    """The wheels of a build.

    Attributes:
        torch_version: "2.13.0+cu126".
        python: The Python that they are for, "3.11".
        files: All wheels, PyTorch's first.
        unproven: The names of those whose hash nobody published whom this program knows.
    """

    torch_version: str
    python: str
    files: tuple[WheelFile, ...]
    unproven: tuple[str, ...] = ()

    @property
    def total_bytes(self) -> int:
        """The known size of all downloads."""
        return sum(file.size_bytes or 0 for file in self.files)


def kept_plan(path: Path) -> WheelPlan | None:
    """Return the plan that was written to a file; None if there is none."""
    try:
        return msgspec.json.decode(read_own_text(path, LARGEST_FILE_BYTES), type=WheelPlan)
    except (UnusableFileError, msgspec.MsgspecError, RecursionError):
        return None


class _Found(NamedTuple):
    """A wheel of pip's report.

    Attributes:
        file: The wheel, of unknown size.
        requires: What it needs, as its metadata says.
    """

    file: WheelFile
    requires: tuple[str, ...]


class Planner:
    """Plans the wheels of builds for this Python.

    Args:
        downloader: Asks for sizes, and has the folder for pip's answer.
        table: The builds.
        platform_key: As `core.wheels.platform_key`.
        log_path: The file for pip's words.
        is_over: Returns whether to stop.
        lock: The file with the tested packages.
    """

    def __init__(
        self,
        downloader: Downloader,
        table: WheelTable,
        platform_key: str,
        log_path: Path,
        is_over: Callable[[], bool] = lambda: False,
        lock: Path = LOCK,
    ) -> None:
        self._downloader, self._table, self._platform = downloader, table, platform_key
        self._log_path, self._is_over = log_path, is_over
        self._lock = tuple(one for one in read_lock(lock) if one.name != "torch")
        self._unproven: list[str] = []

    def from_index(self, tag: str) -> WheelPlan:
        """Plan a build from PyTorch's index, or from where pip is configured to look.

        A folder of wheels in pip's configuration comes first: whoever names one wants its files,
        and may have no network. The indexes of the configuration come last, for a PC that reaches
        only a mirror.

        Raises:
            TroubleError: The indexes cannot be reached, or have no such build.
            StoppedError: The user stopped.
        """
        build, versions = self._table.build(tag), versions_of(tag, self._table, self._platform)
        self._unproven = []
        found = self._torch(build, versions[:1], ("--no-index",))
        if found is None and build.needs:
            found = self._listed(build)
        if found is None:
            found = self._from_indexes(build, versions)
        needed = self._needed(build, found[0])
        local = found[0].file.local_path
        return self._plan(build, found, needed, local.parent if local is not None else None)

    def _from_indexes(self, build: TorchBuild, versions: Sequence[str]) -> list[_Found]:
        log = ChildLog(self._log_path)
        # PyTorch's index has the plain version for macOS alone.
        own = versions if self._platform.startswith("darwin") else versions[:1]
        found = self._torch(build, own, (_ALONE, *_LAZY, "--index-url", build.index_url))
        if found is not None:
            return found
        trouble = self._trouble_of_index(build, log.text())
        if not packages_of(build, self._platform):
            found = self._torch(build, versions, _LAZY) or self._torch(build, versions, ())
        if found is None:
            raise TroubleError(trouble)
        return found

    def _listed(self, build: TorchBuild) -> list[_Found]:
        """Return PyTorch and its own packages from an index that only lists its files."""
        packages = packages_of(build, self._platform)
        own = [(one.name, one.version) for one in packages if not one.source_sha256]
        found = []
        for name, version in (("torch", build.version), *own):
            page_url = f"{build.index_url}/{name}/"
            wheel = wheel_name_of(name, version, self._platform)
            page = self._downloader.content(page_url).decode("utf-8", errors="replace")
            urls = [_joined(page_url, one) for one in re.findall(r"""href=["']([^"'#]+)""", page)]
            urls = [url for url in urls if wheel.fullmatch(unquote(url.rpartition("/")[2]))]
            if not urls:
                raise TroubleError(self._no_wheel(build, name, version))
            require_followed(urls[0], (page_url,))
            file = self._proven(_wheel_at(urls[0], ""), build, is_own=True)
            found.append(_Found(file, ()))
        return found

    def from_folder(self, tag: str, folder: Path) -> WheelPlan:
        """Plan a build from a folder of wheels alone.

        Raises:
            TroubleError: The folder lacks something.
            StoppedError: The user stopped.
        """
        build, versions = self._table.build(tag), versions_of(tag, self._table, self._platform)
        self._unproven, log = [], ChildLog(self._log_path)
        found = self._torch(build, versions, _only(folder))
        missing = _MISSING.search(log.text())
        if found is None and missing and not missing[1].startswith("torch="):
            raise TroubleError(_lacks(folder, log.text()))
        if found is None:
            wanted = f"PyTorch {versions[0]}"
            facts = {"python": _OWN_PYTHON, "platform": self._platform}
            reason = troubles.folder_without_torch
            raise TroubleError(reason(str(folder), requirement=wanted, **facts))
        for one in packages_of(build, self._platform):
            if one.source_sha256 and not (folder / _source_name(one)).is_file():
                raise TroubleError(troubles.unusable_folder(str(folder), missing=_source_name(one)))
        return self._plan(build, found, self._needed(build, found[0], folder), folder)

    def _torch(
        self, build: TorchBuild, versions: Sequence[str], options: tuple[str, ...]
    ) -> list[_Found] | None:
        """Return PyTorch and what only the build's index has; None if something is missing."""
        packages = packages_of(build, self._platform)
        own = [f"{one.name}=={one.version}" for one in packages if not one.source_sha256]
        for version in versions:
            wanted = (f"torch==={version}", *own)
            found = self._report((*options, "--no-deps", *wanted), build)
            if found is not None:
                return sorted(found, key=lambda one: not one.file.name.startswith("torch-"))
        return None

    def _needed(self, build: TorchBuild, torch: _Found, folder: Path | None = None) -> list[_Found]:
        """Return the wheels that PyTorch needs, without those that only its index has.

        Args:
            build: The build.
            torch: Its PyTorch.
            folder: A folder of wheels in place of the network.

        Raises:
            TroubleError: They cannot be had.
        """
        own = {one.name for one in packages_of(build, self._platform)}
        wanted = []
        for one in build.needs or torch.requires:
            match = _REQUIREMENT.fullmatch(one)
            if match is None:
                raise TroubleError(_from_elsewhere(torch.file.url))
            if _normal(match[1]) not in own:
                wanted.append(one)
        if not wanted:
            return []
        log, found = ChildLog(self._log_path), None
        if folder is not None:
            found = self._report((*_only(folder), *wanted))
        elif self._lock:
            pins = self._downloader.folder / "plan" / "pins.txt"
            pins.write_text("\n".join(one.requirement for one in self._lock), encoding="utf-8")
            found = self._report((*_LAZY, "--constraint", str(pins), *wanted))
        if found is None and folder is None:
            found = self._report(tuple(wanted))
        if found is None:
            said = log.text()
            where = "the package index"
            raise TroubleError(_lacks(folder, said) if folder else pip_trouble(said, where))
        return found

    def _plan(
        self, build: TorchBuild, found: list[_Found], needed: list[_Found], folder: Path | None
    ) -> WheelPlan:
        made = [
            self._made_wheel(build, one, folder)
            for one in packages_of(build, self._platform)
            if one.source_sha256
        ]
        files = (*(self._sized(one.file) for one in (*found, *needed)), *made)
        version = found[0].file.name.split("-")[1]
        return WheelPlan(version, _OWN_PYTHON, files, tuple(self._unproven))

    def _made_wheel(
        self, build: TorchBuild, package: IndexPackage, folder: Path | None
    ) -> WheelFile:
        """Return a wheel that is made of a package's source, from a folder or the index."""
        name = _source_name(package)
        path = folder / name if folder is not None else None
        if path is not None and path.is_file():
            archive = path.read_bytes()
            found = hashlib.sha256(archive).hexdigest()
            if found != package.source_sha256:
                detail = hashes_text(package.source_sha256, found)
                raise TroubleError(troubles.other_file(path.name, detail))
        else:
            url = f"{build.index_url}/{package.name}/{name}"
            archive = self._downloader.content(url, sha256=package.source_sha256)
        wheel = wheel_of_source(archive, package.name, package.version)
        made = self._downloader.folder / wheel_name(package.name, package.version)
        write_atomically(made, wheel)
        sha256 = hashlib.sha256(wheel).hexdigest()
        return WheelFile(made.name, made.resolve().as_uri(), sha256, len(wheel))

    def _report(
        self, arguments: tuple[str, ...], build: TorchBuild | None = None
    ) -> list[_Found] | None:
        """Return the wheels that pip would install; None if it fails.

        Args:
            arguments: For pip.
            build: The build whose own packages these are.

        Raises:
            TroubleError: An index names a file that must not be taken.
            StoppedError: The user stopped.
        """
        report = self._downloader.folder / "plan" / "report.json"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        words = (
            "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--quiet",
            "--report", str(report), *arguments,
        )  # fmt: skip
        run_pip(words, self._log_path, self._is_over)
        try:
            content: Any = parsed_json(read_own_text(report, _LARGEST_REPORT_BYTES))
            rows = [_row_of(one) for one in content["install"]]
        except (UnusableFileError, ValueError, KeyError, TypeError, AttributeError):
            return None
        urls = [url for url, *_ in rows]
        named = [build.index_url if build and _ALONE in arguments else _PYPI]
        named += [_FOLDER] * ("--find-links" in arguments)
        if any(why_refused(url, named) for url in urls) and _ALONE not in arguments:
            named += self._configured_indexes()
        for url, _, _, is_direct in rows:
            if is_direct:
                raise TroubleError(_from_elsewhere(url))
            require_followed(url, tuple(named))
        is_own = _ALONE in arguments
        return [
            _Found(self._proven(_wheel_at(url, sha256), build, is_own=is_own), requires)
            for url, sha256, requires, _ in rows
        ]

    def _proven(self, file: WheelFile, build: TorchBuild | None, *, is_own: bool) -> WheelFile:
        """Return a file with the hash that is known of it; note one that nothing proves.

        Args:
            file: As pip reports it: the index's hash, or that of what has arrived.
            build: The build whose own package it is; None for what everybody has.
            is_own: Whether it is from the build's own index.

        Raises:
            TroubleError: It has no hash, or PyPI sends another one than the tested file.
        """
        published = dict(build.sha256) | dict(self._table.torch_sha256) if build else {}
        known, host = published.get(file.name, ""), _host(file.url)
        has_hashes = build is None or build.has_hashes or not is_own
        if file.local_path is not None or not has_hashes:
            if not has_hashes and not known:
                self._unproven.append(file.name)
            return msgspec.structs.replace(file, sha256=known or file.sha256)
        if not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
            why = f"it has no hash for {file.name}"
            raise TroubleError(troubles.untrusted_index(host, file.url, why=why))
        if host == _PYPI_FILES:
            self._require_tested(file)
        elif not is_own and file.sha256 != known and not self._is_locked(file):
            self._unproven.append(file.name)
        return file

    def _is_locked(self, file: WheelFile) -> bool:
        return any(file.sha256 in one.hashes for one in self._lock)

    def _require_tested(self, file: WheelFile) -> None:
        """Refuse a file of PyPI that is not the tested one; a mirror's files are user's choice."""
        name, version = file.name.split("-")[:2]
        pin = (_normal(name), version)
        hashes = {sha256 for one in self._lock if one[:2] == pin for sha256 in one.hashes}
        if hashes and not self._is_locked(file):
            detail = hashes_text(", ".join(sorted(hashes)), file.sha256)
            raise TroubleError(troubles.changed_file(file.name, detail))

    def _trouble_of_index(self, build: TorchBuild, said: str) -> Trouble:
        trouble = pip_trouble(said, _host(build.index_url))
        missing = _MISSING.findall(said)
        if trouble.kind is not TroubleKind.PIP or not missing:
            return trouble
        name, _, version = missing[-1].replace("===", "==").partition("==")
        return self._no_wheel(build, name, version)

    def _no_wheel(self, build: TorchBuild, name: str, version: str) -> Trouble:
        wanted = f"{'PyTorch' if name == 'torch' else name} {version}"
        facts = {"python": _OWN_PYTHON, "platform": self._platform}
        return troubles.no_wheel(_host(build.index_url), requirement=wanted, **facts)

    def _configured_indexes(self) -> list[str]:
        """Return the addresses of indexes and folders in pip's configuration."""
        lines = run_pip(("config", "list"), self._log_path, self._is_over)
        found = [match[1] for line in lines if (match := _INDEX_SETTING.match(line))]
        places = [place for one in found for place in one.replace("\\n", " ").split()]
        return [place if "://" in place else _FOLDER for place in places]

    def _sized(self, file: WheelFile) -> WheelFile:
        local = file.local_path
        size = local.stat().st_size if local is not None else self._downloader.size(file.url)
        return msgspec.structs.replace(file, size_bytes=size)


_OWN_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def _only(folder: Path) -> tuple[str, ...]:
    """Return the options with which pip asks a folder of wheels, and no network."""
    return ("--no-index", "--find-links", str(folder))


def _source_name(package: IndexPackage) -> str:
    return f"{package.name}-{package.version}.tar.gz"


class ChildLog:
    """What a child writes to a log from now on: the words of its failure.

    Args:
        path: The log file, which may be missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._start = path.stat().st_size
        except OSError:
            self._start = 0

    def text(self) -> str:
        """Return what was written; empty if it cannot be read."""
        try:
            with open_user_file(self._path) as file:
                file.seek(self._start)
                return file.read(_MOST_LOG_BYTES).decode("utf-8", errors="replace")
        except (UnusableFileError, OSError):
            return ""


def last_words(text: str) -> str:
    """Return the last lines of a log that are not blank."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])


def run_pip(arguments: Sequence[str], log_path: Path, is_over: Callable[[], bool]) -> list[str]:
    """Run pip, which may end with an error; return the lines of its answer.

    Args:
        arguments: For pip. With ``--isolated``, it reads no file of settings either.
        log_path: The file for its words.
        is_over: Returns whether to stop.

    Raises:
        StoppedError: The user stopped.
    """
    words = [*PIP_OPTIONS, *arguments]
    child = ChildProcess(
        pip_module(), words, environment=environment_for(arguments), log_path=log_path
    )
    try:
        while child.wait(_POLL_S) is None:
            if is_over():
                raise StoppedError
        return [line.decode("utf-8", errors="replace").strip() for line in child.lines()]
    finally:
        child.kill()
        child.end(limits.current.child_end_s)


def environment_for(arguments: Sequence[str]) -> dict[str, str]:
    """Return the variables that pip gets besides this process's."""
    return {"PIP_CONFIG_FILE": os.devnull} if _ALONE in arguments else {}


def pip_module() -> Path | str:
    """Return pip: the wheel beside this program, which can be run as it is, or this Python's."""
    home = Path(__file__).resolve().parent.parent.parent
    wheels = sorted(home.glob("pip-*.whl"))
    return wheels[-1] / "pip" if wheels else "pip"


def pip_trouble(log_text: str, place: str) -> Trouble:
    """Return pip's last words as a trouble of a place: an index's host."""
    detail = last_words(log_text)
    if _PROXY.search(log_text):
        return troubles.proxy_refused("of this PC", detail)
    if _CERTIFICATE.search(log_text):
        return troubles.untrusted(place, detail)
    if _NETWORK.search(log_text):
        return troubles.no_network(place, detail)
    missing = _NOT_FOUND.findall(log_text)
    return troubles.unresolved("\n".join(missing) or detail)


def _lacks(folder: Path, said: str) -> Trouble:
    missing = _MISSING.search(said)
    detail = "\n".join(_NOT_FOUND.findall(said)) or last_words(said)
    name = missing[1] if missing else "a package"
    return troubles.unusable_folder(str(folder), detail, missing=name)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _from_elsewhere(url: str) -> Trouble:
    why = "a package in it asks for one from elsewhere"
    return troubles.untrusted_index(_host(url), url, why=why)


def _host(url: str) -> str:
    return urlsplit(url).hostname or url


def _joined(page_url: str, href: str) -> str:
    """Return the address of a link; "" for what is none ("http://[::1")."""
    try:
        return urljoin(page_url, href)
    except ValueError:
        return ""


def _row_of(item: dict[str, Any]) -> tuple[str, str, tuple[str, ...], bool]:
    """Return a wheel's address, hash, needs, and whether something named it by its address."""
    link = item["download_info"]
    hashes = link.get("archive_info", {}).get("hashes", {})
    needs = tuple(map(str, item["metadata"].get("requires_dist", ())))
    return str(link["url"]), str(hashes.get("sha256", "")), needs, bool(item.get("is_direct"))


def _wheel_at(url: str, sha256: str) -> WheelFile:
    parts = urlsplit(url)
    try:
        return WheelFile(unquote(parts.path.rpartition("/")[2]), url, sha256)
    except ValueError as error:
        why = "a file in it has no name that a wheel may have"
        host = parts.hostname or url
        raise TroubleError(troubles.untrusted_index(host, str(error), why=why)) from error
