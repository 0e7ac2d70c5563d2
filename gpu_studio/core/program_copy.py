"""What is sent to another PC that has no GPU Studio: this program's own folder, as one tar.

Only an installed program that carries its packages can be sent, since its folder is what the
portable archive has. The folder there appears under its name when all of it has arrived, and
nothing that exists there is replaced.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.trouble import format_size
from gpu_studio.core.builds.words import bytes_sentence, stage_title
from gpu_studio.core.program_form import HOME, INSTALLED_MARK, ProgramForm, own_program
from gpu_studio.core.program_version import program_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.builds.progress import InstallProgress
    from gpu_studio.core.other_pc import OtherPc

FOLDER_THERE = "gpu-studio"
"""In the home folder there; one of the places where a program is looked for."""
SYSTEM_PYTHON = "/usr/bin/python3"
PYTHON_LINK, PYTHON_SETTINGS = "bin/python3", "pyvenv.cfg"
SYSTEM_SETTINGS = b"home = /usr/bin\ninclude-system-site-packages = false\n"
"""The settings of a folder that no Python has adopted yet: docs/installed-program.md."""
PYTHONS = (SYSTEM_PYTHON, "python3", *(f"python3.{minor}" for minor in range(14, 9, -1)))
_OLDEST, _NEWEST = (3, 10), (3, 14)
_STARTER = "gpu-studio"
_LEFT_OUT = ("__pycache__",)
_BLOCK = 512
_CHUNK = 256 << 10
_LOOK_BEGIN, _LOOK_END = "gpu-studio-look", "gpu-studio-looked"
_FREE = re.compile(r"df .*\s(\d{1,15})\s+\d{1,3}%")
# The commands stand in the single quotes that sh, fish and csh share: no quote, “!” or backslash.
_LOOK = (
    f'echo {_LOOK_BEGIN}; [ "$(uname -sm)" = "Linux x86_64" ] && echo linux || echo other; '
    f"for p in {' '.join(PYTHONS)}; do "
    '"$p" -I -c "import sys; print(*sys.version_info[:2], sys.maxsize > 2**32, '
    'sys.implementation.name)" 2>/dev/null || echo none; done; '
    "command -v tar >/dev/null 2>&1 && echo tar; "
    f"cd; [ -e {FOLDER_THERE} ] || [ -L {FOLDER_THERE} ] && echo taken; "
    f'echo "df $(df -Pk . | tail -n 1)"; echo {_LOOK_END}'
)
TAKEN, NOT_WRITABLE, CUT = 73, 72, 74
"""Exit statuses of the copying command: the name is taken, no folder can be made, not all came."""
_RECEIVE = (
    f"cd || exit {NOT_WRITABLE}; [ -e {FOLDER_THERE} ] || [ -L {FOLDER_THERE} ] && exit {TAKEN}; "
    f"d=.{FOLDER_THERE}-%(token)s; umask 022; mkdir $d || exit {NOT_WRITABLE}; "
    f'trap "rm -rf $d" 0; trap "exit {CUT}" 1 2 13 15; '
    f"tar -xf - -C $d || exit {CUT}; [ -f $d/{_STARTER} ] || exit {CUT}; "
    '%(python)s -I -c "import os, sys; os.rename(sys.argv[1], sys.argv[2])" '
    f"$d {FOLDER_THERE} || exit {TAKEN}"
)
INSTALL_ENGINE = f"~/{FOLDER_THERE}/{_STARTER} engine install --json"


def archive_name(version: str) -> str:
    """Return the file name of the portable folder of a version, without its ending."""
    return f"gpu-studio-{version}-linux-x86_64"


def command_to_run_there() -> str:
    """Return the one command that installs the portable folder and PyTorch on a PC with Linux.

    The archive of the download page lies in the folder in which it is typed.
    """
    archive = f"{archive_name(program_version())}.tar.xz"
    place = f"~/{FOLDER_THERE}"
    return (
        f"mkdir {place} && tar -xf {archive} -C {place} --strip-components 1 && "
        f"{place}/{_STARTER} engine install"
    )


def look_command() -> str:
    """Return the command that tells what another PC has; its answer is for `there_from`."""
    return f"sh -c '{_LOOK}'"


def receive_command(python: int, token: str) -> str:
    """Return the command that unpacks the tar at its standard input as `FOLDER_THERE`.

    Args:
        python: which one of `PYTHONS` renames the folder at the end.
        token: hexadecimal digits, for the name that the folder has until then.
    """
    return f"sh -c '{_RECEIVE % {'python': PYTHONS[python], 'token': token}}'"


class There(NamedTuple):
    """What another PC has for a copy.

    Attributes:
        is_linux: whether it is Linux on x86-64; None if its shell did not answer.
        python: which one of `PYTHONS` fits; None if none does.
        python_version: its version, (3, 11).
        has_tar: whether it can unpack.
        is_taken: whether `FOLDER_THERE` exists.
        free_bytes: what is free for the user there; None if it was not told.
    """

    is_linux: bool | None = None
    python: int | None = None
    python_version: tuple[int, int] = (0, 0)
    has_tar: bool = False
    is_taken: bool = False
    free_bytes: int | None = None

    def why_not(self, pc: str, size_bytes: int) -> str:
        """Return why nothing of that size can be copied there, as a sentence; empty if it can."""
        if self.is_linux is None:
            return f"{pc} has no shell that GPU Studio can ask. Is it Windows? Use its installer."
        if not self.is_linux:
            return f"GPU Studio's folder is for Linux on x86-64, and {pc} is another system."
        if self.is_taken:
            return f"{pc} has a folder ~/{FOLDER_THERE} already. It is not overwritten."
        if self.python is None:
            return f"{pc} has no Python from 3.10 to 3.14. Install the package python3 there."
        if not self.has_tar:
            return f"{pc} has no tar. Install the package tar there."
        if self.free_bytes is not None and self.free_bytes < size_bytes:
            return f"{pc} has too little space in the home folder."
        return ""


def there_from(answer: str) -> There:
    """Read the answer to `look_command`; what a login prints around it is skipped."""
    _, _, rest = answer.replace("\r", "").partition(f"{_LOOK_BEGIN}\n")
    told, end, _ = rest.partition(f"{_LOOK_END}\n")
    lines = told.splitlines()
    if not end or len(lines) < 1 + len(PYTHONS):
        return There()
    system, more = lines[0], lines[1 + len(PYTHONS) :]
    fitting = [
        (number, version)
        for number, line in enumerate(lines[1 : 1 + len(PYTHONS)])
        if (version := _fitting(line)) is not None
    ]
    number, version = fitting[0] if fitting else (None, (0, 0))
    free = next((found for line in more if (found := _FREE.match(line))), None)
    return There(
        is_linux=system == "linux",
        python=number,
        python_version=version,
        has_tar="tar" in more,
        is_taken="taken" in more,
        free_bytes=int(free[1]) * 1024 if free else None,
    )


def _fitting(line: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d) (\d{1,2}) True cpython", line)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    return version if _OLDEST <= version <= _NEWEST else None


class CopyStage(Enum):
    """Where a copy is: first it is sent, then PyTorch is installed there."""

    SENDING = "sending"
    INSTALLING = "installing"


class CopyStep(NamedTuple):
    """A step of a copy.

    Attributes:
        stage: where it is.
        done_bytes: what was sent.
        total_bytes: all that is sent.
        engine: what the installer there says; None while it is sent.
    """

    stage: CopyStage
    done_bytes: int = 0
    total_bytes: int = 0
    engine: InstallProgress | None = None

    @property
    def is_ready(self) -> bool:
        """Whether everything is done."""
        return self.engine is not None and self.engine.stage is InstallStage.READY

    @property
    def has_failed(self) -> bool:
        """Whether the installer there gave up."""
        return self.engine is not None and self.engine.stage is InstallStage.FAILED

    @property
    def sentence(self) -> str:
        """The step in words; of a failure, with what to do next."""
        if self.engine is None:
            done, total = format_size(self.done_bytes), format_size(self.total_bytes)
            return f"Sent {done} of {total}"
        title = f"There: {stage_title(self.engine.stage, '')}"
        trouble = self.engine.trouble
        if trouble is not None:
            return f"{title}. {trouble.sentence} {trouble.action}"
        return " ".join(filter(None, (title, bytes_sentence(self.engine), self.engine.result)))


class _Member(NamedTuple):
    name: str
    path: Path | None = None
    content: bytes = b""
    link: str = ""
    is_run: bool = False
    size: int = 0

    @property
    def header(self) -> bytes:
        """What stands before its content in a tar."""
        entry = tarfile.TarInfo(self.name)
        entry.uname = entry.gname = "root"
        entry.size, entry.mode = self.size, 0o755 if self.is_run else 0o644
        if self.link:
            entry.type, entry.linkname = tarfile.SYMTYPE, self.link
        return entry.tobuf(tarfile.GNU_FORMAT)


class ProgramCopy:
    """The tar of an installed program.

    Args:
        home: the program's folder.

    Attributes:
        trouble: why this program cannot be sent, as a sentence; empty if it can be.
        size_bytes: all bytes of the tar.
    """

    def __init__(self, home: Path = HOME) -> None:
        self._members: list[_Member] = []
        self.trouble = _why_not(home)
        if not self.trouble:
            self._collect(home)
        sizes = (len(one.header) + one.size + -one.size % _BLOCK for one in self._members)
        self.size_bytes = sum(sizes) + 2 * _BLOCK

    def _collect(self, home: Path) -> None:
        for path in sorted(home.rglob("*")):
            name = path.relative_to(home).as_posix()
            if name in (_STARTER, PYTHON_LINK, PYTHON_SETTINGS, INSTALLED_MARK):
                continue
            if any(part in _LEFT_OUT or part.startswith(".") for part in Path(name).parts):
                continue
            if path.is_symlink():
                self.trouble = (
                    "This PC's package of GPU Studio uses parts of the system, which another PC "
                    "may not have, so it is not copied."
                )
                return
            if path.is_file():
                told = path.stat()
                is_run = bool(told.st_mode & 0o100)
                self._members.append(_Member(name, path, is_run=is_run, size=told.st_size))
        mark = json.dumps({"version": program_version(), "package": "tar"}).encode() + b"\n"
        for name, content in ((PYTHON_SETTINGS, SYSTEM_SETTINGS), (INSTALLED_MARK, mark)):
            self._members.append(_Member(name, content=content, size=len(content)))
        self._members.append(_Member(PYTHON_LINK, link=SYSTEM_PYTHON))
        # The last: it is the sign that everything has come.
        content = (home / _STARTER).read_bytes()
        self._members.append(_Member(_STARTER, content=content, is_run=True, size=len(content)))

    def chunks(self) -> Iterator[bytes]:
        """Yield the tar's bytes.

        Raises:
            OSError: a file cannot be read, or changed meanwhile.
        """
        for member in self._members:
            yield member.header
            sent = 0
            with member.path.open("rb") if member.path else io.BytesIO(member.content) as file:
                while chunk := file.read(_CHUNK):
                    sent += len(chunk)
                    yield chunk
            if sent != member.size:
                raise OSError(None, "changed while it was sent", str(member.path))
            yield bytes(-sent % _BLOCK)
        yield bytes(2 * _BLOCK)


class CopyOffer(NamedTuple):
    """A copy that can be sent, or why not.

    Attributes:
        pc: where to.
        there: what it has.
        program: what would be sent.
    """

    pc: OtherPc
    there: There
    program: ProgramCopy

    @property
    def trouble(self) -> str:
        """Why nothing can be sent, as a sentence; empty if it can be."""
        return self.program.trouble or self.there.why_not(self.pc.name, self.program.size_bytes)

    @property
    def sentence(self) -> str:
        """What would be sent to a PC that can take it."""
        python = ".".join(map(str, self.there.python_version))
        free = self.there.free_bytes
        room = f" and {format_size(free)} free" if free else ""
        name = self.pc.name
        return (
            f"{format_size(self.program.size_bytes)} are sent to ~/{FOLDER_THERE} on {name}, which "
            f"has Python {python}{room}. Then {name} downloads PyTorch and installs it."
        )


def _why_not(home: Path) -> str:
    if own_program(home=home).form is not ProgramForm.INSTALLED:
        return (
            "This PC runs GPU Studio from its source, which is not copied: only the portable "
            "folder and the self-contained .deb carry all that is needed."
        )
    if not (home / _STARTER).is_file():
        return "This PC's GPU Studio is for another system, so it is not copied."
    return ""
