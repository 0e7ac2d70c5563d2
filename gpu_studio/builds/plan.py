"""Finds the wheels of a build: PyTorch's own on its index, the packages that it needs on PyPI.

PyTorch's page names the wheel, its hash, and a small file with its metadata. A wheel with nothing
but this metadata is given to pip, which answers with the addresses and hashes of everything that
PyTorch needs, and downloads nothing. A folder of wheels takes the place of both. What an index says
is not trusted: every wheel needs a hash, and no link leads to a less secure place.

Builds for other makers' cards need packages that only their own index has. PyPI has packages of the
same names that are something else, so those names are never given to pip.

The versions are those of the lock in ``packaging/locks``, and a file that PyPI sends has its hash.
Versions that an index no longer has are replaced by others. pip tells the hash of what it received,
also where its index has none, so a mirror's file needs a hash in the lock or on the mirror's page.
A page that only pip can read, with its passwords, leaves a file unproven, and the end says so.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gpu_studio.builds.child_log import ChildLog, last_words
from gpu_studio.builds.download import Downloader, StoppedError, WheelFile, require_followed
from gpu_studio.builds.lock_file import LOCKS, lines_of, read_lock
from gpu_studio.builds.made_wheels import (
    required_package,
    wheel_name,
    wheel_of_source,
    write_stub,
)
from gpu_studio.builds.unpack import metadata_of
from gpu_studio.builds.wheel_folder import (
    PLAIN_BUILDS,
    package_in,
    packages_of,
    torch_wheel_in,
)
from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.package_page import (
    WheelLink,
    links_in,
    version_of,
    wheel_for,
    why_refused,
)
from gpu_studio.core.builds.record import LARGEST_FILE_BYTES, parsed_json
from gpu_studio.core.builds.trouble import Trouble, TroubleError, hashes_text
from gpu_studio.core.user_file import UnusableFileError, read_own_text, write_atomically
from gpu_studio.core.wheel_table import IndexPackage, TorchBuild, WheelTable
from gpu_studio.process.child_process import ChildProcess

_PYPI_FILES = "files.pythonhosted.org"
_POLL_S = 0.1
_LARGEST_REPORT_BYTES = 64 << 20  # pip's, with the description of each package
_LONGEST_END_S = 1.0
_ACCEPT = "application/vnd.pypi.simple.v1+json;q=0.9, text/html"
_NETWORK = re.compile(
    r"getaddrinfo|Name or service|Temporary failure|Max retries|timed out|NewConnectionError|"
    r"Connection (?:refused|reset)|RemoteDisconnected|ProtocolError"
)
_PROXY = re.compile(r"ProxyError|Tunnel connection failed|407 Proxy")
_CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED|SSLError")
_NOT_FOUND = re.compile(r"ERROR: (?:No matching|Could not find).*")
_MISSING = re.compile(r"No matching distribution found for (\S+)")
# "Requires-Dist: name @ address": a package from anywhere, which no index of PyTorch asks for.
_DIRECT = re.compile(r"^Requires-Dist:[^;\n]*@", re.IGNORECASE | re.MULTILINE)
_INDEX_SETTING = re.compile(r"^\S*\b(?:index-url|find-links)='(.*)'$")
_PYPI = "https://pypi.org/simple"
_FOLDER = "file:///"


@dataclass(frozen=True)
class WheelPlan:
    """The wheels of a build.

    Attributes:
        torch_version: "2.13.0+cu126".
        python: The Python that they are for, "3.11".
        files: All wheels, PyTorch's first.
        unproven: The names of those whose hash is only that of what arrived.
        source: The mark of the indexes that were asked, as `Planner.source`.
    """

    torch_version: str
    python: str
    files: tuple[WheelFile, ...]
    unproven: tuple[str, ...] = ()
    source: str = ""

    @property
    def total_bytes(self) -> int:
        """The known size of all downloads."""
        return sum(file.size_bytes or 0 for file in self.files)

    def text(self) -> str:
        """Return it for a file."""
        return json.dumps(asdict(self))


def kept_plan(path: Path) -> WheelPlan | None:
    """Return the plan that was written to a file; None if there is none."""
    try:
        return plan_from(read_own_text(path, LARGEST_FILE_BYTES))
    except UnusableFileError:
        return None


def plan_from(text: str) -> WheelPlan | None:
    """Read what `WheelPlan.text` returned; None if it is something else."""
    try:
        content: Any = parsed_json(text)
        files = tuple(WheelFile(**one) for one in content["files"])
        unproven = tuple(map(str, content.get("unproven", ())))
        return WheelPlan(
            str(content["torch_version"]), str(content["python"]), files, unproven,
            str(content.get("source", "")),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class Planner:
    """Plans the wheels of builds for this Python.

    Args:
        downloader: Reads pages, and has the folder for pip's answer.
        table: The builds.
        platform_key: As `core.wheels.platform_key`.
        log_path: The file for pip's words.
        is_over: Returns whether to stop.
        python: The Python that the builds are for.
        locks: The folder with a lock for each platform.
    """

    def __init__(
        self,
        downloader: Downloader,
        table: WheelTable,
        platform_key: str,
        log_path: Path,
        is_over: Callable[[], bool] = lambda: False,
        python: tuple[int, int] = sys.version_info[:2],
        locks: Path = LOCKS,
    ) -> None:
        self._locks = locks
        self._downloader, self._table, self._platform = downloader, table, platform_key
        self._log_path, self._is_over, self._python = log_path, is_over, python
        self._unproven: list[str] = []

    def from_index(self, tag: str) -> WheelPlan:
        """Plan a build from PyTorch's index, or from where pip is configured to look.

        A folder of wheels in pip's configuration comes first: whoever names one wants its files,
        and may have no network. The indexes of the configuration come last, for a PC that reaches
        only a mirror. pip downloads from them itself: it has its own certificates and passwords.

        Raises:
            TroubleError: The indexes cannot be reached, or have no such build.
            StoppedError: The user stopped.
        """
        local = self._configured_folder(tag)
        if local is not None:
            return self.from_folder(tag, local)
        try:
            return self._from_own_index(tag)
        except TroubleError as error:
            mirrored = self._downloaded_by_pip(tag)
            if mirrored is None:
                raise
            try:
                return self.from_folder(tag, mirrored)
            except TroubleError as second:
                if second.trouble.kind is troubles.TroubleKind.FOLDER:
                    raise error from second  # it is pip's folder, and not one of the user's
                raise

    def source(self, tag: str) -> str:
        """Return a mark of the indexes to ask for a build: another one is another plan.

        It is a hash: an address may have a password in it.
        """
        places = (self._table.build(tag).index_url, *self._configured_indexes())
        return hashlib.sha256("\n".join(places).encode()).hexdigest()

    def _configured_folder(self, tag: str) -> Path | None:
        """Return the folder in pip's configuration that has the build; None if none has it."""
        found = self._report(("--no-index", "--no-deps", f"torch=={self._version(tag)}"))
        path = found[0].local_path if found else None
        return path.parent if path is not None else None

    def _downloaded_by_pip(self, tag: str) -> Path | None:
        """Let pip download PyTorch from the indexes of its configuration; None if none has it."""
        folder = self._downloader.folder / "pip"
        versions = [self._version(tag)]
        if self._is_plain(tag):
            versions.append(self._table.torch_version)
        for version in versions:
            self._run_pip("download", "--no-deps", "--only-binary", ":all:", "--quiet",
                          "--dest", str(folder), f"torch==={version}")  # fmt: skip
            if any(folder.glob("torch-*.whl")):
                return folder
        return None

    def _version(self, tag: str) -> str:
        return self._table.version_of(tag)

    def _is_plain(self, tag: str) -> bool:
        """Return whether PyPI's PyTorch for this system is this build."""
        return PLAIN_BUILDS.get(self._platform.partition("-")[0]) == tag

    def _from_own_index(self, tag: str) -> WheelPlan:
        build = self._table.build(tag)
        link = self._link(build, "torch", self._version(tag))
        file = self._indexed_file(build, link)
        own = self._own_files(build)
        if build.needs:
            metadata = _stub_metadata(build)
        elif link.metadata_sha256 is None:
            # An index without metadata files: the wheel itself has it.
            metadata = metadata_of(self._downloader.fetch(file))
            _require_named(metadata, link.url)
        else:
            metadata = self._downloader.text(link.metadata_url, sha256=link.metadata_sha256)
            _require_named(metadata, link.metadata_url)
        requirement = self._written_stub(build, link.name, metadata)
        needed = self._resolved(requirement, ())
        return self._plan(link.name, (file, *own, *needed))

    def from_folder(self, tag: str, folder: Path) -> WheelPlan:
        """Plan a build from a folder of wheels; what PyTorch needs may come from an index as well.

        Raises:
            TroubleError: The folder lacks something, and no index has it.
            StoppedError: The user stopped.
        """
        build = self._table.build(tag)
        torch = torch_wheel_in(folder, tag, self._table, self._platform, self._python)
        if torch is None:
            wanted = f"PyTorch {self._version(tag)}"
            facts = {"python": self._python_text, "platform": self._platform}
            reason = troubles.folder_without_torch
            raise TroubleError(reason(str(folder), requirement=wanted, **facts))
        metadata = metadata_of(torch)
        _require_named(metadata, torch.as_uri())
        own = self._own_files(build, folder)
        requirement = torch
        if own:
            metadata = _stub_metadata(build) if build.needs else metadata
            requirement = self._written_stub(build, torch.name, metadata)
        local = ("--find-links", str(folder))
        try:
            needed = self._resolved(requirement, ("--no-index", *local))
        except TroubleError as error:
            try:
                needed = self._resolved(requirement, local)
            except TroubleError:
                detail = error.trouble.detail
                missing = _MISSING.search(detail)
                name = missing[1] if missing else "a package"
                trouble = troubles.unusable_folder(str(folder), detail, missing=name)
                raise TroubleError(trouble) from error
        known = self._table.torch_sha256.get(torch.name, "") or build.sha256.get(torch.name, "")
        file = WheelFile(torch.name, torch.as_uri(), known, torch.stat().st_size)
        return self._plan(torch.name, (file, *own, *needed))

    def _own_files(self, build: TorchBuild, folder: Path | None = None) -> tuple[WheelFile, ...]:
        """Return the wheels that only the build's index has, besides PyTorch's.

        Args:
            build: The build.
            folder: A folder of wheels, which comes before the index.

        Raises:
            TroubleError: Neither has one of them.
        """
        return tuple(
            self._own_file(build, one, folder) for one in packages_of(build, self._platform)
        )

    def _own_file(self, build: TorchBuild, package: IndexPackage, folder: Path | None) -> WheelFile:
        path = package_in(folder, package, self._platform, self._python) if folder else None
        if path is not None and path.suffix == ".whl":
            known = build.sha256.get(path.name, "")
            return WheelFile(path.name, path.as_uri(), known, path.stat().st_size)
        if package.source_sha256:
            return self._made_wheel(build, package, path)
        return self._indexed_file(build, self._link(build, package.name, package.version))

    def _made_wheel(self, build: TorchBuild, package: IndexPackage, path: Path | None) -> WheelFile:
        """Return a wheel that is made of a package's source, from a folder or the index."""
        if path is not None:
            archive = path.read_bytes()
            found = hashlib.sha256(archive).hexdigest()
            if found != package.source_sha256:
                detail = hashes_text(package.source_sha256, found)
                raise TroubleError(troubles.other_file(path.name, detail))
        else:
            url = f"{build.index_url}/{package.name}/{package.name}-{package.version}.tar.gz"
            archive = self._downloader.content(url, sha256=package.source_sha256)
        wheel = wheel_of_source(archive, package.name, package.version)
        made = self._downloader.folder / wheel_name(package.name, package.version)
        write_atomically(made, wheel)
        return WheelFile(
            made.name, made.resolve().as_uri(), hashlib.sha256(wheel).hexdigest(), len(wheel)
        )

    def _link(self, build: TorchBuild, name: str, version: str) -> WheelLink:
        """Return the wheel of a version of a package on a build's index."""
        page_url = f"{build.index_url}/{name}/"
        host = urlsplit(page_url).hostname or page_url
        page = self._downloader.text(page_url, _ACCEPT)
        try:
            links = links_in(page, page_url)
        except ValueError as error:
            # A hotel's or a company's page instead of the index's.
            raise TroubleError(troubles.no_network(host, str(error))) from error
        link = wheel_for(links, version, self._python, self._platform)
        if link is None and self._platform.startswith("darwin"):  # without a build in its version
            version = self._table.torch_version
            link = wheel_for(links, version, self._python, self._platform)
        if link is None:
            package = f"{'PyTorch' if name == 'torch' else name} {version}"
            facts = {"python": self._python_text, "platform": self._platform}
            raise TroubleError(troubles.no_wheel(host, requirement=package, **facts))
        require_followed(link.url, (page_url,))
        if build.has_hashes:
            _require_hash(link.url, link.sha256)
        return link

    def _indexed_file(self, build: TorchBuild, link: WheelLink) -> WheelFile:
        sha256 = link.sha256 or build.sha256.get(link.name, "")
        if not sha256:
            self._unproven.append(link.name)
        size = link.size_bytes or self._downloader.size(link.url)
        return WheelFile(link.name, link.url, sha256, size)

    def _written_stub(self, build: TorchBuild, name: str, metadata: str) -> Path:
        """Write the wheel for pip, whose metadata asks for nothing that only the index has."""
        own = {one.name for one in packages_of(build, self._platform)}
        requirement = self._downloader.folder / "plan" / name
        lines = metadata.splitlines(keepends=True)
        kept = "".join(line for line in lines if required_package(line) not in own)
        write_stub(requirement, kept)
        return requirement

    def _plan(self, torch_name: str, files: tuple[WheelFile, ...]) -> WheelPlan:
        unproven = tuple(name for name in self._unproven if name in {one.name for one in files})
        return WheelPlan(version_of(torch_name), self._python_text, files, unproven)

    @property
    def _python_text(self) -> str:
        return f"{self._python[0]}.{self._python[1]}"

    def _resolved(self, requirement: Path, options: tuple[str, ...]) -> tuple[WheelFile, ...]:
        """Return the wheels that a wheel needs, without itself."""
        own = requirement.resolve()
        arguments = (*options, str(requirement))
        lock = _hashes_of(read_lock(self._platform, self._locks))
        found = None
        if lock and "--no-index" not in options:
            pins = self._downloader.folder / "plan" / "pins.txt"
            pins.parent.mkdir(parents=True, exist_ok=True)
            pins.write_text("\n".join(line for line, _ in lock), encoding="utf-8")
            found = self._report(("--constraint", str(pins), *arguments), own)
        log = ChildLog(self._log_path)
        if found is None:
            found = self._report(arguments, own)
        if found is None:
            raise TroubleError(pip_trouble(log.text()))
        for file in found:
            _require_tested(file, lock)
            self._prove(file, lock)
        return tuple(self._sized(one) for one in found if one.name != requirement.name)

    def _prove(self, file: WheelFile, lock: tuple[tuple[str, frozenset[str]], ...]) -> None:
        """Compare a mirror's file with the lock or the mirror's page: somebody published its hash.

        Raises:
            TroubleError: The mirror's page has no hash for it.
        """
        is_known = any(file.sha256 in hashes for _, hashes in lock)
        host = urlsplit(file.url).hostname
        if file.local_path is not None or is_known or host == _PYPI_FILES:
            return
        package = re.sub(r"[-_.]+", "-", file.name.split("-")[0]).lower()
        for index in self._configured_indexes():
            page_url = f"{index.rstrip('/')}/{package}/"
            try:
                links = links_in(self._downloader.text(page_url, _ACCEPT), page_url)
            except (TroubleError, ValueError):
                continue  # perhaps only pip has its password
            for link in links:
                if link.name == file.name:
                    _require_hash(link.url, link.sha256)
                    return  # pip has compared it
        self._unproven.append(file.name)

    def _report(
        self, arguments: tuple[str, ...], own: Path | None = None
    ) -> list[WheelFile] | None:
        """Return the wheels that pip would install; None if it fails.

        Args:
            arguments: For pip.
            own: A wheel among them that this program names itself.

        Raises:
            TroubleError: An index names a file that must not be taken.
            StoppedError: The user stopped.
        """
        report = self._downloader.folder / "plan" / "report.json"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        self._run_pip(
            "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:",
            "--quiet", "--report", str(report), *arguments,
        )  # fmt: skip
        try:
            content: Any = parsed_json(read_own_text(report, _LARGEST_REPORT_BYTES))
            found = [_address_and_hash(one) for one in content["install"]]
            direct = [one for one in content["install"] if one.get("is_direct")]
        except (UnusableFileError, ValueError, KeyError, TypeError, AttributeError):
            return None
        for url, _ in map(_address_and_hash, direct):
            if own is None or url != own.as_uri():
                raise TroubleError(_from_elsewhere(url))
        named = (_PYPI, *((_FOLDER,) if "--find-links" in arguments else ()))
        urls = [url for url, _ in found if own is None or url != own.as_uri()]
        if any(why_refused(url, named) for url in urls):
            named = (*named, *self._configured_indexes())
        for url in urls:
            require_followed(url, named)
        return [_file_of(url, sha256 or self._hash_of_arrived(url)) for url, sha256 in found]

    def _hash_of_arrived(self, url: str) -> str:
        """Return the hash of what an index without hashes gives: pip 23.0 does not report it."""
        if urlsplit(url).scheme == "file":
            return ""
        path = self._downloader.fetch(_wheel_at(url, ""))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def _configured_indexes(self) -> tuple[str, ...]:
        """Return the addresses of indexes and folders in pip's configuration."""
        lines = self._run_pip("config", "list")
        found = [match[1] for line in lines if (match := _INDEX_SETTING.match(line))]
        places = [place for one in found for place in one.replace("\\n", " ").split()]
        return tuple(place if "://" in place else _FOLDER for place in places)

    def _sized(self, file: WheelFile) -> WheelFile:
        local = file.local_path
        size = local.stat().st_size if local is not None else self._downloader.size(file.url)
        return WheelFile(file.name, file.url, file.sha256, size)

    def _run_pip(self, *arguments: str) -> list[str]:
        """Run pip, which may end with an error; return its answer. Its words are in the log."""
        child = ChildProcess(
            pip_module(),
            ["--disable-pip-version-check", "--no-input", *arguments],
            environment={"PIP_RETRIES": "1", "PIP_DEFAULT_TIMEOUT": "15"},
            log_path=self._log_path,
        )
        try:
            while child.wait(_POLL_S) is None:
                if self._is_over():
                    raise StoppedError
            return [line.decode("utf-8", errors="replace").strip() for line in child.lines()]
        finally:
            child.kill()
            child.end(_LONGEST_END_S)


def _hashes_of(lock: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return each requirement of a lock ("numpy==2.4.6 ; MARKER") with the SHA-256 of its files."""
    rows = [line.split(" --hash=sha256:") for line in lines_of(lock)]
    return tuple((requirement, frozenset(hashes)) for requirement, *hashes in rows)


def _require_tested(file: WheelFile, lock: tuple[tuple[str, frozenset[str]], ...]) -> None:
    """Refuse a file of PyPI that is not the tested one; a mirror's files are the user's choice."""
    if urlsplit(file.url).hostname != _PYPI_FILES:
        return
    name, version = file.name.split("-")[:2]
    pin = f"{name.replace('_', '-').lower()}=={version}"
    hashes = [found for requirement, found in lock if requirement.split(" ;")[0] == pin]
    if hashes and not any(file.sha256 in one for one in hashes):
        expected = ", ".join(sorted(hashes[0]))
        detail = hashes_text(expected, file.sha256)
        raise TroubleError(troubles.changed_file(file.name, detail))


def pip_module() -> Path | str:
    """Return pip: the wheel beside this program, which can be run as it is, or this Python's."""
    home = Path(__file__).resolve().parent.parent.parent
    wheels = sorted(home.glob("pip-*.whl"))
    return wheels[-1] / "pip" if wheels else "pip"


def pip_trouble(log_text: str) -> Trouble:
    """Return pip's last words as a trouble."""
    detail = last_words(log_text)
    if _PROXY.search(log_text):
        return troubles.proxy_refused("of this PC", detail)
    if _CERTIFICATE.search(log_text):
        return troubles.untrusted("the package index", detail)
    if _NETWORK.search(log_text):
        return troubles.no_network("the package index", detail)
    missing = _NOT_FOUND.findall(log_text)
    return troubles.unresolved("\n".join(missing) or detail)


def _stub_metadata(build: TorchBuild) -> str:
    """Return the metadata of a PyTorch with what the table says that it needs."""
    needs = "".join(f"Requires-Dist: {one}\n" for one in build.needs)
    return f"Metadata-Version: 2.1\nName: torch\nVersion: {build.version}\n{needs}"


def _require_named(metadata: str, url: str) -> None:
    """Refuse a package that asks for one at an address, which pip would fetch, and perhaps run."""
    if _DIRECT.search(metadata):
        raise TroubleError(_from_elsewhere(url))


def _from_elsewhere(url: str) -> Trouble:
    why = "a package in it asks for one from elsewhere"
    return troubles.untrusted_index(urlsplit(url).hostname or url, url, why=why)


def _address_and_hash(item: dict[str, Any]) -> tuple[str, str]:
    link = item["download_info"]
    hashes = link.get("archive_info", {}).get("hashes", {})
    return str(link["url"]), str(hashes.get("sha256", ""))


def _file_of(url: str, sha256: str) -> WheelFile:
    if urlsplit(url).scheme != "file":
        _require_hash(url, sha256)
    return _wheel_at(url, sha256)


def _wheel_at(url: str, sha256: str) -> WheelFile:
    parts = urlsplit(url)
    try:
        return WheelFile(unquote(parts.path.rpartition("/")[2]), url, sha256)
    except ValueError as error:
        why = "a file in it has no name that a wheel may have"
        raise TroubleError(
            troubles.untrusted_index(parts.hostname or url, str(error), why=why)
        ) from error


def _require_hash(url: str, sha256: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        parts = urlsplit(url)
        why = f"it has no hash for {parts.path.rpartition('/')[2]}"
        raise TroubleError(troubles.untrusted_index(parts.hostname or url, url, why=why))
