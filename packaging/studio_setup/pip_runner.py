"""Run pip in an environment: its output goes to the log, its progress to the console."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING
from urllib.parse import unquote

from studio_setup.console import SetupError
from studio_setup.launch import NO_WINDOW, clean_environ
from studio_setup.stamp import python_in

if TYPE_CHECKING:
    from pathlib import Path

    from studio_setup.console import Console, Log

_ACTIVITY = re.compile(r"\s*(Downloading|Installing collected packages|Collecting)\b:?\s*(.*)")
# "https://host/numpy-2.4.6-cp311-….whl.metadata (6.6 kB)": name and version are enough.
_WHEEL_NAME = re.compile(r"(?:\S*/)?([A-Za-z0-9_.]+)-([^-\s]+)-\S+")
_RAW_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_RAW_PROGRESS_SINCE = (24, 1)
_LOG_LINES_SHOWN = 4
_LAST_WORDS = 40
_PYPI = "https://pypi.org/simple"
# A line of `pip config list`: ":env:.find-links='/srv/wheels'".
_PLACE = re.compile(r"\S*\.(index-url|extra-index-url|find-links)='(.*)'")
_HINTS = (
    (
        r"DO NOT MATCH THE HASHES",
        "A file from the package index is not the one that GPU Studio was tested with, so it was "
        "not installed. Start GPU Studio again on another network. If that does not help, please "
        "report it; --packages newest installs without this check.",
    ),
    (
        r"WinError 206|Windows Long Path",
        "The folder's name is too long for Windows: move GPU Studio to a folder such as "
        r"C:\GPU Studio, then start it there.",
    ),
    (
        r"No space left|not enough space",
        "The disk is full: free some space, then start GPU Studio again.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "This PC does not trust the connection's certificate: put the right one in PIP_CERT.",
    ),
    (
        r"getaddrinfo|Name or service|Temporary failure|Max retries|timed out|NewConnectionError",
        "The package index cannot be reached: check your internet connection, then start GPU "
        "Studio again.",
    ),
    (
        r"Access is denied|WinError (5|32)|Permission denied",
        "A file is in use or protected: close GPU Studio, then start it again.",
    ),
    (
        r"No matching distribution|Could not find a version",
        "The package index has no file for this Python and system: try another Python version, or "
        "check pip's configuration.",
    ),
)


def what_to_do(log_text: str) -> str:
    """Return one sentence of advice for an error in pip's output."""
    for pattern, sentence in _HINTS:
        if re.search(pattern, log_text):
            return sentence
    return "Start GPU Studio again. If that does not help, read the log."


class Pip:
    """pip of one environment."""

    def __init__(
        self, environment: Path, console: Console, log: Log, pass_fds: tuple[int, ...] = ()
    ) -> None:
        self.environment = environment
        self.console = console
        self._log = log
        self.pass_fds = pass_fds
        self._has_raw_progress: bool | None = None

    def install(self, *arguments: str) -> bool:
        """Run `pip install`; return whether it succeeded."""
        if self._has_raw_progress is None:
            self._has_raw_progress = self._version() >= _RAW_PROGRESS_SINCE
        progress = "raw" if self._has_raw_progress else "off"
        return self.run("install", "--progress-bar", progress, *arguments)

    def last_words_contain(self, text: str) -> bool:
        """Return whether the last lines of the log contain the text."""
        return text in "\n".join(self._log.last_lines(_LAST_WORDS))

    def has_places_of_its_own(self) -> bool:
        """Return whether pip is configured to use other sources than PyPI."""
        command = [python_in(str(self.environment)), "-I", "-m", "pip", "config", "list"]
        done = subprocess.run(
            command,
            env=clean_environ(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            creationflags=NO_WINDOW,
        )
        found = (_PLACE.fullmatch(line.strip()) for line in done.stdout.splitlines())
        return any(match[2].rstrip("/") != _PYPI for match in found if match)

    def failure(self, what: str) -> SetupError:
        """Return the error to raise after a failed installation."""
        lines = self._log.last_lines(_LOG_LINES_SHOWN)
        shown = "\n".join(f"    {line[:160]}" for line in lines)
        hint = what_to_do("\n".join(self._log.last_lines(_LAST_WORDS)))
        return SetupError(f"{what} failed. {hint}\n{shown}\nThe whole log: {self._log.path}")

    def _version(self) -> tuple[int, ...]:
        code = "import pip; print(pip.__version__)"
        done = subprocess.run(
            [python_in(str(self.environment)), "-I", "-c", code],
            capture_output=True,
            text=True,
            check=False,
            creationflags=NO_WINDOW,
        )
        return tuple(int(part) for part in re.findall(r"\d+", done.stdout)[:2])

    def run(self, *arguments: str) -> bool:
        """Run pip with a command and its arguments; return whether it succeeded."""
        python = python_in(str(self.environment))
        pip = ["-m", "pip", "--disable-pip-version-check", "--no-input"]
        command = [python, "-I", "-X", "utf8", *pip, *arguments]
        self._log.write(f"$ {' '.join(command)}")
        # Not the system's temporary folder: /tmp is often a RAM disk, too small for a CUDA build.
        temporary = self.environment / "tmp"
        temporary.mkdir(exist_ok=True)
        environ = clean_environ() | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
        child = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            creationflags=NO_WINDOW,
            pass_fds=self.pass_fds,
        )
        self.console.stops_with(child.kill)
        with child:
            try:
                self._follow(child)
            except BaseException:
                child.kill()
                raise
        return child.returncode == 0

    def _follow(self, child: subprocess.Popen[str]) -> None:
        activity = ""
        for line in child.stdout or ():
            if match := _RAW_PROGRESS.match(line):
                done, total = int(match[1]), int(match[2])
                self.console.detail(activity, done / total if total else None)
                continue
            self._log.write(line)
            if match := _ACTIVITY.match(line):
                activity = _in_short(match)
                self.console.detail(activity, None)


def _in_short(match: re.Match[str]) -> str:
    verb = match[1].removesuffix(" collected packages").lower()
    subject = match[2]
    if verb == "downloading":
        subject = _WHEEL_NAME.sub(r"\1 \2", unquote(subject))
    return f"{verb} {subject}".rstrip()
