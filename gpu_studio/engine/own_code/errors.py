"""What is wrong with a user's code, in a sentence that begins with its line."""

from __future__ import annotations

import linecache
import re
import sys
from traceback import walk_tb
from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.program_form import install_command
from gpu_studio.core.switcher.pitfalls import MIXED_DEVICES
from gpu_studio.engine.faults import failure_of
from gpu_studio.engine.own_code.limits import NAME

if TYPE_CHECKING:
    from types import TracebackType

_COMMAND = re.compile(
    r"[$!%]|(pip3?|conda|python3?|nvidia-smi|source|sudo|apt|git|cd|ls|export|uv|torchrun)\b(?!\s*[=.(])"
)
_ERROR = re.compile(r"(Traceback \(most recent call last\)|[\w.]*(Error|Exception|Warning)\b:?)")
_OUTPUT = re.compile(r"\s*[+|][-=+| ]|.*\bNVIDIA-SMI\b")
_MIXED = "Expected all tensors to be on the same device"
_LONGEST = 300
# The packages of well-known modules that are called otherwise.
_PACKAGES = {
    "cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image",
    "yaml": "pyyaml",
}  # fmt: skip
_COMPILERS = {
    "win32": "install Microsoft's C++ Build Tools",
    "darwin": "type xcode-select --install",
}
_NO_COMPILER = ("InvalidCxxCompiler", "Compiler: cl is not found", "Failed to find C compiler")
_NO_WORKERS = ("DataLoader worker", "Can't pickle", "Can't get attribute", "not the same object as")
_NO_ARGUMENTS = (
    "it wants words from a command line (sys.argv), and there are none here. Write the values "
    "into it, or give its arguments defaults."
)


def no_python(error: SyntaxError, text: str) -> StudioError:
    """Return why a text cannot be read as Python."""
    lines = text.splitlines()
    number = error.lineno or 1
    line = lines[number - 1] if number <= len(lines) else ""
    first = next(filter(str.strip, lines), "")
    if _ERROR.match(first):
        return _refused("This is an error message, not code. Paste the code that raised it.")
    if _OUTPUT.match(first) or _OUTPUT.match(line):
        return _refused(f"Line {number} is what a program printed, not code.")
    if _COMMAND.match(line.strip()) or _COMMAND.match(first.strip()):
        return _refused(f"Line {number} is a command for a terminal, not Python. Leave it out.")
    if isinstance(error, IndentationError):
        return _refused(
            f"Line {number}: {error.msg}. Python needs the spaces at the beginning of lines, which "
            "some pages lose when you copy from them. Put them back."
        )
    return _refused(f"Line {number} is not Python: {error.msg}.")


def explained(error: BaseException) -> BaseException:
    """Return an error of a user's code as a sentence with its line.

    One after which a card answers no more stays as it is: PyTorch has to restart then.
    """
    if isinstance(error, StudioError):
        return error
    line = _line_in(error.__traceback__)
    where = f"Line {line}: " if line else ""
    if isinstance(error, Exception):
        failure = failure_of(error)
        if failure.fatal:
            return error
        if failure.kind is not FailureKind.INTERNAL:
            return StudioError(failure.kind, f"{where}{failure.message}")
    return _refused(f"{where}{_sentence(error)}")


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())[:_LONGEST]
    name = getattr(error, "name", "") or ""
    if _wants_arguments(error):
        return _NO_ARGUMENTS
    if isinstance(error, SystemExit):
        return f"it ends itself{f' with “{text}”' if text and text != '0' else ''} (sys.exit)."
    if isinstance(error, EOFError):
        return "it asks a question (input), and nobody can answer here. Write the answer into it."
    if isinstance(error, ModuleNotFoundError):
        module = name.partition(".")[0]
        command = install_command(_PACKAGES.get(module, module))
        return (
            f"it imports “{module}”, which this PyTorch's Python does not have. A file of yours "
            f"has to be in the script's folder; a package is installed by: {command}"
        )
    if any(words in text for words in _NO_COMPILER):
        return (
            "torch.compile needs a C++ compiler, and this PC has none that PyTorch finds. Leave "
            f"torch.compile out, or {_COMPILERS.get(sys.platform, 'install the package g++')}."
        )
    if any(words in text for words in _NO_WORKERS):
        return (
            "it starts worker processes, which cannot find the functions and classes of this code. "
            "Write num_workers=0 here, or move them to a module of their own beside the script."
        )
    if isinstance(error, NameError) and name:
        return f"nothing is called “{name}”. Paste the lines that make it as well."
    if _MIXED in text:
        return (
            "it mixes tensors of the CPU and of the card. Move both with .to(device): see the "
            f"lesson “{MIXED_DEVICES.title}”."
        )
    return f"{type(error).__name__}{f': {text}' if text else ''}".rstrip(".") + "."


def _wants_arguments(error: BaseException) -> bool:
    """Return whether code misses what is typed after a script's name."""
    if isinstance(error, SystemExit):
        frames = (frame for frame, _ in walk_tb(error.__traceback__))
        return any(frame.f_globals.get("__name__") == "argparse" for frame in frames)
    line = linecache.getline(NAME, _line_in(error.__traceback__))
    return isinstance(error, IndexError) and "argv" in line


def _line_in(trace: TracebackType | None) -> int:
    """Return the innermost line of the user's code in a trace; 0 if it has none."""
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.OWN_CODE, sentence)
