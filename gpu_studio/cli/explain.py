"""``gpu-studio explain``: what an error of any program means, and what to try."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from gpu_studio.cli.command import DONE, DOUBTFUL, JSON_OBJECT, Command, Option, WrongUseError
from gpu_studio.cli.memory_answer import print_answer
from gpu_studio.cli.screen import print_json
from gpu_studio.core.errors.log import MOST_READ_BYTES, decoded_text
from gpu_studio.core.errors.reader import ErrorReading, read_error
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.user_file import UnusableFileError, open_user_file


def _explain(options: argparse.Namespace, _log_path: Path) -> int:
    text = decoded_text(_content(options.file))
    if not text.strip():
        raise StudioError(FailureKind.BAD_REQUEST, "This text is empty.")
    reading = read_error(text)
    if options.json:
        print_json("error_explained", _values(reading))
    else:
        print_answer(reading.answer)
    return DONE if reading.is_known else DOUBTFUL


def _values(reading: ErrorReading) -> dict[str, object]:
    answer = reading.answer
    return {
        "kind": reading.kind,
        "program": reading.program,
        "headline": answer.verdicts[0].notice.sentence,
        "sentence": answer.sentence,
        "facts": {fact.what: fact.value for fact in reading.facts},
        "numbers": msgspec.to_builtins(reading.numbers),
        "steps": [{"what": step.what, "how": step.how} for step in answer.steps],
        "errors": reading.errors,
        "source": reading.source,
    }


def _content(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(MOST_READ_BYTES)
    try:
        with open_user_file(Path(name)) as file:
            return file.read(MOST_READ_BYTES)
    except UnusableFileError as error:
        raise WrongUseError(f"Cannot open “{name[:80]}”: {error}.") from error
    except OSError as error:
        raise WrongUseError(f"Cannot read “{name[:80]}”: {error.strerror or error}.") from error


_FILE = Option(
    "file", "a file with the error or a whole log (default: standard input)",
    metavar="FILE", nargs="?", default="-",
)  # fmt: skip
COMMAND = Command(
    about="Explain an error of ComfyUI, vLLM, llama.cpp, whisper, PyTorch and others: what kind it "
    "is, what it says of card and build, and what to try in that program. The status is 3 if the "
    "error is not known.",
    run=_explain,
    options=(_FILE,),
    json=JSON_OBJECT,
)
