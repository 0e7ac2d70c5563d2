"""The reasons why a build of PyTorch cannot be installed, each with its next step."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from gpu_studio.core.notice import Notice, Tone

REDISTRIBUTABLE = "https://aka.ms/vs/17/release/vc_redist.x64.exe"
_FILL_FOLDER = "Download all wheels on another PC into one folder, then try again."
_DOWNLOAD_AGAIN = (
    "It was deleted and not installed. Try again on another network: a proxy or a virus scanner "
    "may change downloads."
)
_FREE_AGAIN = "then try again. The download continues where it stopped."
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


class Trouble(Notice, frozen=True, kw_only=True):
    """A failed installation, as a notice: `words` adds the button or the command to its next step.

    ``detail`` is the evidence for "Copy details": an address, a file, an error's text.

    Attributes:
        kind: The reason.
        link: The page on the web that has what is missing; "" if there is none.
    """

    kind: TroubleKind
    tone: Tone = Tone.FAILURE
    link: str = ""


class TroubleError(Exception):
    """An installation cannot continue.

    Attributes:
        trouble: The reason.
    """

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.words)
        self.trouble = trouble


class _Reason(NamedTuple):
    """Makes a `Trouble` of one reason.

    Attributes:
        kind: The reason.
        sentence: What happened; ``{about}`` is what it is about, ``{name}`` the name of that file.
        next_step: What to do next.
        shows_about: Whether the detail begins with what it is about.
        link: As `Trouble.link`.
    """

    kind: TroubleKind
    sentence: str
    next_step: str
    shows_about: bool = False
    link: str = ""

    def __call__(self, about: str, detail: str = "", **facts: object) -> Trouble:
        """Return the trouble.

        Args:
            about: A host, a path, a file's name or a build's.
            detail: The evidence, such as the system's own words.
            facts: What else the sentence and the next step name.
        """
        facts |= {"about": about, "name": _name(about)}
        evidence = f"{about}\n{detail}".strip() if self.shows_about else detail
        return Trouble(
            kind=self.kind,
            sentence=self.sentence.format(**facts),
            next_step=self.next_step.format(**facts),
            detail=evidence,
            link=self.link,
        )


no_network = _Reason(
    TroubleKind.NO_NETWORK,
    "This PC cannot reach {about}.",
    "Check your internet connection, then try again. The download continues where it stopped.",
)
proxy_refused = _Reason(
    TroubleKind.PROXY,
    "The proxy {about} does not let GPU Studio through.",
    "Check the proxy in your system's network settings, then try again. A folder of wheels that "
    "you fill on another PC needs no proxy.",
)
untrusted = _Reason(
    TroubleKind.CERTIFICATE,
    "This PC does not trust the certificate of {about}.",
    "Check the date and time of this PC. If a virus scanner or your company reads secure "
    "connections, its certificate must be in the system's list.",
)
broken_line = _Reason(
    TroubleKind.BROKEN_LINE,
    "The connection to {about} broke several times.",
    "Try again. The download continues where it stopped.",
)
_server_busy = _Reason(
    TroubleKind.SERVER,
    "{about} answered with error {status}.",
    "Try again in some minutes.",
)
_server_refuses = _server_busy._replace(
    next_step="Try again: the list of the files is asked for again. If that does not help, install "
    "the newest GPU Studio, or use a folder of wheels."
)
no_wheel = _Reason(
    TroubleKind.NO_WHEEL,
    "{about} has no {requirement} for Python {python} on {platform}.",
    "Choose another build, or install the newest GPU Studio.",
    shows_about=True,
)
changed_file = _Reason(
    TroubleKind.CHANGED_FILE,
    "{about} arrived with a different content than published, twice.",
    _DOWNLOAD_AGAIN,
    shows_about=True,
)
larger_file = _Reason(
    TroubleKind.CHANGED_FILE,
    "{about} is larger than its list of packages says.",
    _DOWNLOAD_AGAIN,
    shows_about=True,
)
other_file = _Reason(
    TroubleKind.CHANGED_FILE,
    "{about} in your folder is not the published file.",
    "It was not installed. It is damaged, or somebody changed it: download it again from "
    "pytorch.org or pypi.org, and replace it.",
    shows_about=True,
)
broken_wheel = _Reason(
    TroubleKind.CHANGED_FILE,
    "{about} is damaged.",
    "Nothing of it is used. Try again: it is downloaded again. From a folder of wheels, replace "
    "this file first.",
    shows_about=True,
)
untrusted_index = _Reason(
    TroubleKind.INDEX,
    "The list of packages at {about} is not used: {why}.",
    "Nothing was installed. Try again on another network: what is between this PC and the list "
    "may change it. A mirror of your own must have secure addresses and hashes.",
)
_disk_full = _Reason(
    TroubleKind.DISK_FULL, "The disk is full.", "Free {room} on the disk of {about}, " + _FREE_AGAIN
)
file_held = _Reason(
    TroubleKind.FILE_HELD,
    "Another program holds the file {name}.",
    "A virus scanner often does. Wait until it is done, or exclude the folder of GPU Studio from "
    "its scan, then try again.",
    shows_about=True,
)
file_removed = _Reason(
    TroubleKind.FILE_REMOVED,
    "The file {name} disappeared right after it was written.",
    "A virus scanner often does this. Look at its quarantine and allow the file, then try again.",
    shows_about=True,
)
no_write = _Reason(
    TroubleKind.NO_WRITE,
    "GPU Studio may not write to {about}.",
    "Ask the owner of this PC for write access to this folder, then try again.",
    shows_about=True,
)
long_path = _Reason(
    TroubleKind.LONG_PATH,
    "The folder's name has {length} characters, too many for the files of PyTorch.",
    "Windows allows {longest} characters here. Turn on long paths in Windows, or use a shorter "
    "name: move a checkout, or install the program for an account with a shorter name.",
    shows_about=True,
)
missing_runtime = _Reason(
    TroubleKind.NO_RUNTIME,
    "PyTorch needs the Microsoft Visual C++ Redistributable, which this Windows lacks.",
    f"Install it from {REDISTRIBUTABLE}, then try again. Nothing is downloaded twice.",
    shows_about=True,
    link=REDISTRIBUTABLE,
)
failed_check = _Reason(
    TroubleKind.CHECK,
    "The {about} build is installed, but its test failed.",
    "Repair it. If that does not help, report the details.",
)
build_in_use = _Reason(
    TroubleKind.IN_USE,
    "Another GPU Studio is installing or removing PyTorch.",
    "Wait until it is done, then try again.",
    shows_about=True,
)
engine_at_work = _Reason(
    TroubleKind.IN_USE,
    "A running GPU Studio uses the {about} build (process {process}).",
    "Close it, or wait until its command is done, then try again.",
    shows_about=True,
)
folder_without_torch = _Reason(
    TroubleKind.FOLDER,
    "The folder {name} has no {requirement} for Python {python} on {platform}.",
    _FILL_FOLDER,
    shows_about=True,
)
unusable_folder = _Reason(
    TroubleKind.FOLDER,
    "The folder {name} lacks {missing}, which PyTorch needs.",
    _FILL_FOLDER,
    shows_about=True,
)
unresolved = _Reason(
    TroubleKind.PIP,
    "The list of the packages that PyTorch needs could not be made.",
    "Try again. If that does not help, report the details.",
    shows_about=True,
)


def server_refused(host: str, status: int, detail: str = "") -> Trouble:
    """Return the trouble of a server that answers with an error."""
    reason = _server_refuses if status in _REFUSALS else _server_busy
    return reason(host, detail, status=status)


def disk_full(folder: str, missing_bytes: int | None, detail: str = "") -> Trouble:
    """Return the trouble of a disk without room for these bytes, None if unknown."""
    room = "some space" if missing_bytes is None else format_size(missing_bytes)
    return _disk_full(folder, detail or folder, room=room)


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
    return Trouble(
        kind=TroubleKind.OTHER_PC,
        sentence=sentence,
        next_step="Use another PC for measurements.",
        detail=f"{system} {machine}",
    )


def format_size(size_bytes: float) -> str:
    """Return the size of a download in decimal units, as browsers do: "122 MB", "2.7 GB"."""
    for step, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= 0.9995 * step:
            value = size_bytes / step
            return f"{value:.1f}\u202f{unit}" if value < 9.95 else f"{value:.0f}\u202f{unit}"
    return f"{size_bytes:.0f}\u202fbytes"


def hashes_text(expected: str, found: str) -> str:
    """Return the evidence of a file with another content."""
    return f"SHA-256 {found or 'none'} instead of {expected}"


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path
