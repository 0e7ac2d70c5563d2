"""A wrapper of NVIDIA's management library: the only module that turns "not supported" into None.

The module pynvml comes from the package nvidia-ml-py. Old cards and odd drivers answer with far
more than the documented errors: missing functions, names that are not UTF-8, all bits set for "no
value", and libraries whose kernel module has another version.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_studio.core.devices.devices import Driver
from gpu_studio.hardware.card_reader import CardUnreadableError, DriverUnavailableError
from gpu_studio.hardware.cpu import text_of
from gpu_studio.hardware.pci import is_slot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import DriverProblem, Unreadable

# Enumerators of nvml.h.
CLOCK_SM, CLOCK_MEMORY = 1, 2
TEMPERATURE_GPU = 0
PCIE_SENT, PCIE_RECEIVED = 0, 1

_NOT_SUPPORTED, _NO_PERMISSION, _DRIVER_NOT_LOADED = 3, 4, 9
_LIBRARY_NOT_FOUND, _FUNCTION_NOT_FOUND, _GPU_IS_LOST = 12, 13, 15
_RESET_REQUIRED, _VERSION_MISMATCH, _UNKNOWN = 16, 18, 999
_ARGUMENT_VERSION_MISMATCH, _DEPRECATED = 25, 26
# An answer that does not change while the program runs.
_REFUSALS = frozenset(
    {_NOT_SUPPORTED, _NO_PERMISSION, _FUNCTION_NOT_FOUND, _ARGUMENT_VERSION_MISMATCH, _DEPRECATED}
)
_SENTINELS = frozenset({2**32 - 1, 2**64 - 1})
# No card has this much of anything: a larger number is garbage, not a reading.
_MOST = 2**50

_DRIVER_SENTENCES = {
    _DRIVER_NOT_LOADED: "The NVIDIA driver is installed, but it is not running.",
    _LIBRARY_NOT_FOUND: "No NVIDIA driver is installed.",
    _VERSION_MISMATCH: (
        "The NVIDIA driver was updated while the PC was running, and its two halves no longer fit "
        "together. Restart the PC."
    ),
    _NO_PERMISSION: "This user may not talk to the NVIDIA driver.",
    _UNKNOWN: "The NVIDIA driver gave an unknown error.",
}
_DRIVER_PROBLEMS: dict[int, DriverProblem] = {
    _DRIVER_NOT_LOADED: "not_running", _LIBRARY_NOT_FOUND: "not_installed",
    _VERSION_MISMATCH: "driver_updated", _NO_PERMISSION: "no_permission",
}  # fmt: skip
_CARD_CODES: dict[int, Unreadable] = {
    _NO_PERMISSION: "no_permission", _GPU_IS_LOST: "lost", _RESET_REQUIRED: "lost",
    _VERSION_MISMATCH: "driver_updated",
}  # fmt: skip
# The driver's library is loaded by its plain name, a link to the file with the version in its name.
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+\.\d[\d.]*)(?: \(deleted\))?$", re.MULTILINE)
# The system's mark for a file that is in use but no longer on disk.
_REPLACED = re.compile(r"libnvidia-ml\.so[\d.]* \(deleted\)$", re.MULTILINE)
_LOADED_FILES = Path("/proc/self/maps")
_CARD_SENTENCES = {
    _NO_PERMISSION: "This user may not read the card.",
    _GPU_IS_LOST: "The card no longer answers: it was lost from the bus. Restart the PC.",
    _RESET_REQUIRED: "The card stopped after an error and has to be reset. Restart the PC.",
    _VERSION_MISMATCH: _DRIVER_SENTENCES[_VERSION_MISMATCH],
    _UNKNOWN: "The driver gave an unknown error for this card.",
}


class Nvml:
    """An open session with the driver; it keeps a laptop's card awake, so `close` it when idle.

    Args:
        library: a module like pynvml; None imports it.

    Raises:
        DriverUnavailableError: no driver, or the driver does not answer.
    """

    def __init__(self, library: Any = None) -> None:
        if library is None:
            import pynvml  # 10 ms

            library = pynvml
        self._library = library
        self._cards: dict[str | int, NvmlCard] = {}
        try:
            library.nvmlInit()
        except Exception as error:  # a broken driver may raise anything
            raise DriverUnavailableError(_failed_driver(error)) from error

    def driver(self) -> Driver:
        """Return the driver's facts; None for each unanswered question."""
        cuda = self._ask("nvmlSystemGetCudaDriverVersion_v2")
        if cuda is None:
            cuda = self._ask("nvmlSystemGetCudaDriverVersion")
        return Driver(
            version=text_from(self._ask("nvmlSystemGetDriverVersion")),
            cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
            nvml_version=text_from(self._ask("nvmlSystemGetNVMLVersion")),
        )

    def count(self) -> int:
        """Return the number of cards; 0 if the driver does not report it."""
        return int(self._ask("nvmlDeviceGetCount") or 0)

    def card(self, which: int | str) -> NvmlCard:
        """Return the card with an NVML number, which may change, in a slot, or with a UUID.

        Raises:
            CardUnreadableError: the driver returns no handle.
        """
        card = self._cards.get(which)
        if card is None:
            is_number = isinstance(which, int)
            by = "Index" if is_number else "PciBusId" if is_slot(str(which)) else "UUID"
            try:
                handle = getattr(self._library, f"nvmlDeviceGetHandleBy{by}")(which)
            except Exception as error:
                raise _unreadable(error) from error
            card = self._cards[which] = NvmlCard(self._library, handle)
        return card

    def process_name(self, pid: int) -> str | None:
        """Return the driver's name of a process, for processes that the system hides."""
        return text_from(self._ask("nvmlSystemGetProcessName", pid))

    def close(self) -> None:
        """End the session."""
        self._cards.clear()
        with contextlib.suppress(Exception):
            self._library.nvmlShutdown()

    def _ask(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self._library, function)(*arguments)
        except Exception:  # an unanswered question is None, for any reason
            return None


class NvmlCard:
    """One card. A question that it once refused is not asked again."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle
        self._refused: set[tuple[Any, ...]] = set()
        self._lost: CardUnreadableError | None = None
        self._failure: Exception | None = None
        self._has_answered = False
        self._total_bytes: int | None = None

    def ask(self, function: str, *arguments: Any) -> Any:
        """Return a pynvml function's answer for this card; None if there is none.

        Raises:
            CardUnreadableError: the card is lost; it is never asked again.
        """
        if self._lost:
            raise CardUnreadableError(str(self._lost), self._lost.code)
        question = (function, *arguments)
        if question in self._refused:
            return None
        try:
            answer = getattr(self._library, function)(self._handle, *arguments)
        except Exception as error:  # the library has more errors than NVMLError
            code = _code_of(error)
            if code in (_GPU_IS_LOST, _RESET_REQUIRED):
                self._lost = _unreadable(error)
                raise self._lost from error
            if code in _REFUSALS:
                self._refused.add(question)
            else:
                self._failure = error
            return None
        self._has_answered = True
        return answer

    @contextlib.contextmanager
    def one_reading(self) -> Iterator[None]:
        """Group the questions of one reading: it fails if none is answered and some call failed.

        An unsupported question is not a failure, even if the card supports none.

        Raises:
            CardUnreadableError: at the end, if no question was answered and a call failed.
        """
        self._failure, self._has_answered = None, False
        yield
        self._require_an_answer()

    def _require_an_answer(self) -> None:
        if self._failure is not None and not self._has_answered:
            raise _unreadable(self._failure) from self._failure

    def ask_first(self, *functions: str) -> Any:
        """Return the first answer of functions that are old and new names of the same one."""
        for function in functions:
            answer = self.ask(function)
            if answer is not None:
                return answer
        return None

    def number(self, function: str, *arguments: Any, most: int = _MOST) -> int | None:
        """Return a number from the card; None for "no value" and for more than ``most``."""
        return number_from(self.ask(function, *arguments), most)

    def text(self, function: str) -> str | None:
        """Return a text from the card; None if it is empty or unreadable."""
        return text_from(self.ask(function))

    def memory(self) -> tuple[int | None, int | None, int | None, int | None]:
        """Return the card's memory in bytes: total, used, free, reserved by the driver.

        The first version of the call counts the driver's reserve as used and does not report it
        separately. If the total is not a number of bytes, or 0, the rest is not trusted either.
        """
        version = getattr(self._library, "nvmlMemory_v2", None)
        answer = None if version is None else self.ask("nvmlDeviceGetMemoryInfo", version)
        reserved_answer = getattr(answer, "reserved", None)
        if answer is None:
            answer = self.ask("nvmlDeviceGetMemoryInfo")
        total_answer: Any = getattr(answer, "total", None)
        self._total_bytes = number_from(total_answer) or None
        if total_answer is not None and self._total_bytes is None:
            return None, None, None, None
        parts = (getattr(answer, "used", None), getattr(answer, "free", None), reserved_answer)
        used, free, reserved = map(self.part_of_memory, parts)
        return self._total_bytes, used, free, reserved

    def part_of_memory(self, answer: Any) -> int | None:
        """Return bytes of this card's memory; None for "no value" and for more than it has."""
        return number_from(answer, self._total_bytes or _MOST)


def number_from(answer: Any, most: int = _MOST) -> int | None:
    """Return a whole number from 0 to ``most``; None for "no value" or garbage."""
    if not isinstance(answer, int) or answer in _SENTINELS or not 0 <= answer <= most:
        return None
    return int(answer)


def text_from(answer: Any) -> str | None:
    """Return a text that can be shown; None for garbage.

    Driver 555.85 under WSL 2 fills names with bytes that are not UTF-8. Depending on its version,
    pynvml decodes some answers and leaves others as bytes.
    """
    if isinstance(answer, bytes):
        try:
            answer = answer.decode()
        except UnicodeDecodeError:
            return None
    if not isinstance(answer, str):
        return None
    text = answer.split("\0", 1)[0].strip()
    return text if text and text.isprintable() else None


def _code_of(error: Exception) -> int:
    """Return the NVML code of an error; any error that is not an NVMLError counts as a refusal."""
    code = getattr(error, "value", None)
    # A missing function is an AttributeError in an old pynvml, and an NVMLLibraryMismatchError in
    # a new pynvml with an old driver; garbage text stays garbage.
    return code if isinstance(code, int) else _FUNCTION_NOT_FOUND


def _failed_driver(error: Exception) -> Driver:
    code = getattr(error, "value", None)
    code = code if isinstance(code, int) else _UNKNOWN
    evidence = f"NVML error {code}"
    sentence = f"The NVIDIA driver does not answer ({evidence})."
    return Driver(
        error=_DRIVER_SENTENCES.get(code, sentence),
        error_code=_DRIVER_PROBLEMS.get(code, "unknown"),
        evidence=evidence,
    )


def _unreadable(error: Exception) -> CardUnreadableError:
    code = getattr(error, "value", None) or 0
    sentence = f"The driver does not allow reading this card ({error})."
    return CardUnreadableError(
        _CARD_SENTENCES.get(code, sentence), _CARD_CODES.get(code, "unknown")
    )


def library_version(loaded_files: Path = _LOADED_FILES) -> str | None:
    """Return the version of the driver's library that this process has loaded (Linux).

    This also works if NVML does not start at all: an update changes the library at once, and a
    kernel module without a supported card is not loaded.
    """
    found = _LIBRARY.search(text_of(loaded_files))
    return found[1] if found else None


def is_library_replaced(loaded_files: Path = _LOADED_FILES) -> bool:
    """Return whether the library that this process uses is no longer on disk (Linux).

    A driver update does that. Running programs keep the old library. New programs load the new
    library, which the old kernel module refuses until the PC is restarted.
    """
    return _REPLACED.search(text_of(loaded_files)) is not None
