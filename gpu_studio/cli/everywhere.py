"""``gpu-studio doctor --everywhere``: every PyTorch on this PC, and the line that mends each."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from gpu_studio.cli.answers import Interrupt
from gpu_studio.cli.command import DONE, DOUBTFUL, FAILED, WrongUseError
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import Progress, Typed, print_json, print_line
from gpu_studio.cli.sensors import read_inventory
from gpu_studio.core.pythons.coverage import this_pc
from gpu_studio.core.pythons.kernel import after_kernel, kernel_command, run_kernel
from gpu_studio.core.pythons.search import AskPythons, ask_for_pythons
from gpu_studio.core.pythons.verdict import (
    Judged,
    PythonVerdict,
    cover_words,
    headline,
    judged,
    judged_value,
    left_out_lines,
    looked_line,
)
from gpu_studio.process.child_call import call_child
from gpu_studio.process.command_call import call_command

_MARKS = {
    PythonVerdict.WRONG: ("[problem]", "bold red"),
    PythonVerdict.UNSURE: ("[unsure] ", "yellow"),
    PythonVerdict.RIGHT: ("[ok]     ", "green"),
}


def look_everywhere(options: argparse.Namespace, log_path: Path) -> int:
    """Print each PyTorch; return 0 if none is wrong, 1 if one is, 3 if the files do not tell."""
    if TARGET.pc is not None:
        raise WrongUseError("--everywhere looks at this PC; type it on the other one.")
    folders = tuple(os.path.abspath(folder) for folder in options.everywhere)
    for folder in folders:
        if not os.path.exists(folder):
            raise WrongUseError(f"There is no folder {folder}.")
    with Progress() as progress, Interrupt().recorded() as interrupt:
        progress.show("Looking for PyTorch …")
        pc = this_pc(read_inventory(log_path))
        question = AskPythons(folders=folders)
        found = ask_for_pythons(question, call_child, lambda: interrupt.is_asked)
        verdicts = judged(found.environments, pc)
        for place, one in enumerate(verdicts if options.run_kernel else ()):
            progress.show(f"Running a small kernel in {one.environment.program} …")
            verdicts[place] = _tried(one, interrupt)
        if interrupt.is_asked:
            raise KeyboardInterrupt
    if options.json:
        print_json("pythons", judged_value(found, verdicts))
    else:
        print_line(f"{headline(verdicts, pc)}.")
        for one in verdicts:
            mark, style = _MARKS[one.verdict]
            for line in python_lines(one, mark):
                print_line(line, style=style if line.startswith(mark) else "")
        for line in (*left_out_lines(found), looked_line(found)):
            print_line(line)
    states = {one.verdict for one in verdicts}
    if PythonVerdict.WRONG in states:
        return FAILED
    return DOUBTFUL if PythonVerdict.UNSURE in states or not found.is_whole else DONE


def python_lines(one: Judged, mark: str) -> Iterator[str]:
    """Yield a Python's verdict as terminal lines, with the line to copy."""
    place, torch, line = one.environment, one.environment.torch, one.line
    version = torch.version.partition("+")[0] or "of an unknown version"
    yield f"{mark} {place.program}: PyTorch {version}, {one.build}. {one.reason}".rstrip()
    yield f"          {place.folder}"
    if one.covers:
        yield f"          {cover_words(one)}"
    if line.text:
        yield Typed(f"          next: {line.text}")
    if line.cmd:
        yield Typed(f"          in cmd: {line.cmd}")
    for words in filter(None, (line.why_none, line.note)):
        yield f"          {words}"


def _tried(one: Judged, interrupt: Interrupt) -> Judged:
    if not kernel_command(one.environment) or interrupt.is_asked:
        return one
    ended = run_kernel(one.environment, call_command, lambda: interrupt.is_asked)
    return one if interrupt.is_asked else after_kernel(one, ended)
