"""The reasons why a build of PyTorch cannot be installed, each with the next step for the reader.

Standard library only: the setup imports this before anything is installed.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

REDISTRIBUTABLE = "https://aka.ms/vs/17/release/vc_redist.x64.exe"
_FILL_FOLDER = "Download all wheels on another PC into one folder, then try again."
_DOWNLOAD_AGAIN = (
    "It was deleted and not installed. Try again on another network: a proxy or a virus scanner "
    "may change downloads."
)

# Unauthorized, forbidden, not found, gone: time alone does not help.
_REFUSALS = (401, 403, 404, 410)


class TroubleKind(str, Enum):
    """What went wrong; a program can act on it, a reader gets the sentence."""

    NO_NETWORK = "no_network"
    PROXY = "proxy"
    CERTIFICATE = "certificate"
    BROKEN_LINE = "broken_line"
    SERVER = "server"
    NO_WHEEL = "no_wheel"
    CHANGED_FILE = "changed_file"
    INDEX = "index"
    DISK_FULL = "disk_full"
    FILE_HELD = "file_held"
    FILE_REMOVED = "file_removed"
    NO_WRITE = "no_write"
    LONG_PATH = "long_path"
    NO_RUNTIME = "no_runtime"
    OTHER_PC = "other_pc"
    IN_USE = "in_use"
    FOLDER = "folder"
    CHECK = "check"
    PIP = "pip"
    INTERNAL = "internal"


class Trouble(NamedTuple):
    """A failed installation, in words.

    Attributes:
        kind: The reason.
        sentence: What happened.
        action: What to do next, wherever it is read; `words` adds the button or the command.
        detail: The evidence for "Copy details": an address, a file, an error's text.
        link: The page on the web that has what is missing; "" if there is none.
    """

    kind: TroubleKind
    sentence: str
    action: str
    detail: str = ""
    link: str = ""


class TroubleError(Exception):
    """An installation cannot continue.

    Attributes:
        trouble: The reason.
    """

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(f"{trouble.sentence} {trouble.action}")
        self.trouble = trouble


def no_network(host: str, detail: str = "") -> Trouble:
    """Return the trouble of a PC that reaches no server."""
    return Trouble(
        TroubleKind.NO_NETWORK,
        f"This PC cannot reach {host}.",
        "Check your internet connection, then try again. The download continues where it stopped.",
        detail,
    )


def proxy_refused(proxy: str, detail: str = "") -> Trouble:
    """Return the trouble of a proxy that does not answer or asks for a password."""
    return Trouble(
        TroubleKind.PROXY,
        f"The proxy {proxy} does not let GPU Studio through.",
        "Check the proxy in your system's network settings, then try again. A folder of wheels "
        "that you fill on another PC needs no proxy.",
        detail,
    )


def untrusted(host: str, detail: str = "") -> Trouble:
    """Return the trouble of a connection whose certificate this PC does not trust."""
    return Trouble(
        TroubleKind.CERTIFICATE,
        f"This PC does not trust the certificate of {host}.",
        "Check the date and time of this PC. If a virus scanner or your company reads secure "
        "connections, its certificate must be in the system's list.",
        detail,
    )


def broken_line(host: str, detail: str = "") -> Trouble:
    """Return the trouble of a connection that breaks again and again."""
    return Trouble(
        TroubleKind.BROKEN_LINE,
        f"The connection to {host} broke several times.",
        "Try again. The download continues where it stopped.",
        detail,
    )


def server_refused(host: str, status: int, detail: str = "") -> Trouble:
    """Return the trouble of a server that answers with an error."""
    action = "Try again in some minutes."
    if status in _REFUSALS:
        action = (
            "Try again: the list of the files is asked for again. If that does not help, install "
            "the newest GPU Studio, or use a folder of wheels."
        )
    return Trouble(
        TroubleKind.SERVER,
        f"{host} answered with error {status}.",
        action,
        detail,
    )


def no_wheel(requirement: str, python: str, platform: str, place: str) -> Trouble:
    """Return the trouble of an index or a folder without the wanted file."""
    return Trouble(
        TroubleKind.NO_WHEEL,
        f"{place} has no {requirement} for Python {python} on {platform}.",
        "Choose another build, or install the newest GPU Studio.",
        f"{requirement}, Python {python}, {platform}, {place}",
    )


def changed_file(name: str, expected: str, found: str) -> Trouble:
    """Return the trouble of a file whose content is not the published one."""
    return Trouble(
        TroubleKind.CHANGED_FILE,
        f"{name} arrived with a different content than published, twice.",
        _DOWNLOAD_AGAIN,
        f"{name}: SHA-256 {found} instead of {expected}",
    )


def untrusted_index(host: str, why: str, detail: str = "") -> Trouble:
    """Return the trouble of an index that sends what no honest one sends.

    Args:
        host: Its name.
        why: What it does, to follow "it": "has no hash for torch-2.13.0.whl".
        detail: The address.
    """
    return Trouble(
        TroubleKind.INDEX,
        f"The list of packages at {host} is not used: {why}.",
        "Nothing was installed. Try again on another network: what is between this PC and the list "
        "may change it. A mirror of your own must have secure addresses and hashes.",
        detail,
    )


def larger_file(name: str, size_bytes: int) -> Trouble:
    """Return the trouble of a file that does not end where its list says."""
    return Trouble(
        TroubleKind.CHANGED_FILE,
        f"{name} is larger than its list of packages says.",
        _DOWNLOAD_AGAIN,
        f"{name}: over {size_bytes} bytes",
    )


def other_file(name: str, expected: str, found: str) -> Trouble:
    """Return the trouble of a file on this PC whose content is not the published one."""
    return Trouble(
        TroubleKind.CHANGED_FILE,
        f"{name} in your folder is not the published file.",
        "It was not installed. It is damaged, or somebody changed it: download it again from "
        "pytorch.org or pypi.org, and replace it.",
        f"{name}: SHA-256 {found} instead of {expected}",
    )


def broken_wheel(name: str, why: str) -> Trouble:
    """Return the trouble of a file that is no wheel, or not a whole one."""
    return Trouble(
        TroubleKind.CHANGED_FILE,
        f"{name} is damaged.",
        "Nothing of it is used. Try again: it is downloaded again. From a folder of wheels, "
        "replace this file first.",
        f"{name}: {why}",
    )


def disk_full(folder: str, missing_bytes: int | None, detail: str = "") -> Trouble:
    """Return the trouble of a disk without room.

    Args:
        folder: The folder that cannot grow.
        missing_bytes: The bytes to free; None if unknown.
        detail: The system's own words.
    """
    room = "some space" if missing_bytes is None else format_size(missing_bytes)
    return Trouble(
        TroubleKind.DISK_FULL,
        "The disk is full.",
        f"Free {room} on the disk of {folder}, then try again. The download continues where it "
        "stopped.",
        detail or folder,
    )


def file_held(path: str, detail: str = "") -> Trouble:
    """Return the trouble of a file that another program keeps open."""
    return Trouble(
        TroubleKind.FILE_HELD,
        f"Another program holds the file {_name(path)}.",
        "A virus scanner often does. Wait until it is done, or exclude the folder of GPU Studio "
        "from its scan, then try again.",
        f"{path}\n{detail}".strip(),
    )


def file_removed(path: str) -> Trouble:
    """Return the trouble of a file that disappeared after it was written."""
    return Trouble(
        TroubleKind.FILE_REMOVED,
        f"The file {_name(path)} disappeared right after it was written.",
        "A virus scanner often does this. Look at its quarantine and allow the file, then try "
        "again.",
        path,
    )


def no_write(folder: str, detail: str = "") -> Trouble:
    """Return the trouble of a folder that this user may not write to."""
    return Trouble(
        TroubleKind.NO_WRITE,
        f"GPU Studio may not write to {folder}.",
        "Ask the owner of this PC for write access to this folder, then try again.",
        f"{folder}\n{detail}".strip(),
    )


def long_path(folder: str, longest: int) -> Trouble:
    """Return the trouble of a folder whose files would get too long a name.

    Args:
        folder: The folder.
        longest: The longest name that the folder may have.
    """
    return Trouble(
        TroubleKind.LONG_PATH,
        f"The folder's name has {len(folder)} characters, too many for the files of PyTorch.",
        f"Windows allows {longest} characters here. Turn on long paths in Windows, or use a "
        "shorter name: move a checkout, or install the program for an account with a shorter name.",
        folder,
    )


def missing_runtime(detail: str) -> Trouble:
    """Return the trouble of a Windows without the Visual C++ runtime."""
    return Trouble(
        TroubleKind.NO_RUNTIME,
        "PyTorch needs the Microsoft Visual C++ Redistributable, which this Windows lacks.",
        f"Install it from {REDISTRIBUTABLE}, then try again. Nothing is downloaded twice.",
        detail,
        REDISTRIBUTABLE,
    )


def failed_check(tag: str, detail: str) -> Trouble:
    """Return the trouble of a build that was installed but does not run."""
    return Trouble(
        TroubleKind.CHECK,
        f"The {tag} build is installed, but its test failed.",
        "Repair it. If that does not help, report the details.",
        detail,
    )


def build_in_use(tag: str) -> Trouble:
    """Return the trouble of a build that another window installs or uses; "" is any build."""
    build = f"the {tag} build" if tag else "the engines"
    return Trouble(
        TroubleKind.IN_USE,
        f"Another GPU Studio is working on {build}.",
        "Wait until it is done, then try again.",
        tag,
    )


def engine_at_work(tag: str, process: str) -> Trouble:
    """Return the trouble of a build that a running engine has loaded.

    Args:
        tag: The build.
        process: The number of the engine's process.
    """
    return Trouble(
        TroubleKind.IN_USE,
        f"A running GPU Studio uses the {tag} build (process {process}).",
        "Close it, or wait until its command is done, then try again.",
        f"{tag}, process {process}",
    )


def folder_without_torch(folder: str, requirement: str, python: str, platform: str) -> Trouble:
    """Return the trouble of a folder of wheels without PyTorch's own."""
    return Trouble(
        TroubleKind.FOLDER,
        f"The folder {_name(folder)} has no {requirement} for Python {python} on {platform}.",
        _FILL_FOLDER,
        folder,
    )


def unusable_folder(folder: str, missing: str, detail: str) -> Trouble:
    """Return the trouble of a folder of wheels in which something is missing.

    Args:
        folder: The folder.
        missing: The missing package, "sympy>=1.13.3"; "" if unknown.
        detail: pip's words.
    """
    return Trouble(
        TroubleKind.FOLDER,
        f"The folder {_name(folder)} lacks {missing or 'a package'}, which PyTorch needs.",
        _FILL_FOLDER,
        f"{folder}\n{detail}".strip(),
    )


def unresolved(detail: str) -> Trouble:
    """Return the trouble of packages that cannot be found on the package index."""
    return Trouble(
        TroubleKind.PIP,
        "The list of the packages that PyTorch needs could not be made.",
        "Try again. If that does not help, report the details.",
        detail,
    )


def unfit_pc(system: str, machine: str, *, is_64_bit: bool = True) -> Trouble | None:
    """Return why no PyTorch exists for a PC; None if there is one.

    Args:
        system: As `core.operating_system.system`.
        machine: As `core.operating_system.machine`, of the PC and not of an emulated program.
        is_64_bit: Whether this Python is a 64-bit program.
    """
    kind = machine.lower()
    sentence = ""
    if system == "Windows" and kind in ("arm64", "aarch64"):
        sentence = "This is a Windows PC with an ARM processor. GPU Studio needs an x64 processor."
    elif kind in ("x86", "i386", "i586", "i686") or not is_64_bit:
        sentence = "This is a 32-bit system. PyTorch exists only for 64-bit systems."
    elif kind not in ("amd64", "x86_64", "arm64", "aarch64"):
        sentence = f"PyTorch has no build for this processor ({machine})."
    if not sentence:
        return None
    action = "Use another PC for measurements."
    return Trouble(TroubleKind.OTHER_PC, sentence, action, f"{system} {machine}")


def format_size(size_bytes: float) -> str:
    """Return the size of a download in decimal units, as browsers do: "122 MB", "2.7 GB"."""
    for step, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= 0.9995 * step:
            value = size_bytes / step
            return f"{value:.1f}\u202f{unit}" if value < 9.95 else f"{value:.0f}\u202f{unit}"
    return f"{size_bytes:.0f}\u202fbytes"


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path
