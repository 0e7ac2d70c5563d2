"""What is wrong with a user's code, in a sentence that begins with its line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
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
    if isinstance(error, SystemExit):
        return f"it ends itself{f' with “{text}”' if text and text != '0' else ''} (sys.exit)."
    if isinstance(error, EOFError):
        return "it asks a question (input), and nobody can answer here. Write the answer into it."
    if isinstance(error, ModuleNotFoundError):
        return f"it imports “{name}”, which this PyTorch's Python does not have."
    if isinstance(error, NameError) and name:
        return f"nothing is called “{name}”. Paste the lines that make it as well."
    if _MIXED in text:
        return (
            "it mixes tensors of the CPU and of the card. Move both with .to(device): see the "
            "lesson “Mixing CPU and GPU tensors”."
        )
    return f"{type(error).__name__}{f': {text}' if text else ''}".rstrip(".") + "."


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
