"""Copies this program to another PC, and has its installer install PyTorch there."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from typing import TYPE_CHECKING

from gpu_studio.core.builds.progress import ENDS, InstallProgress, progress_from
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.line_trouble import (
    SSH_FAILED,
    LineProblem,
    LineTrouble,
    detail_of_ssh,
    problem_of_ssh,
)
from gpu_studio.core.other_pc import shell_command, ssh_program
from gpu_studio.core.plain_text import plain_text
from gpu_studio.core.program_copy import (
    CUT,
    INSTALL_ENGINE,
    NOT_WRITABLE,
    TAKEN,
    CopyOffer,
    CopyStage,
    CopyStep,
    There,
    look_command,
    receive_command,
    there_from,
)
from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.line_pipe import Budget, TooMuchError, split_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.core.program_copy import ProgramCopy

_LOOK_S = 0.1
_LONGEST_LOOK_S = 60.0
_LONGEST_END_S = 10.0  # the folder there gets its name
_STEP_BYTES = 1 << 20
_MOST_ERROR_BYTES = 16 << 10
_LONGEST_LINE, _AT_ONCE_BYTES, _EACH_S_BYTES = 64 << 10, 1 << 20, 256 << 10
_MOST_TEXT = 300
_WHY = {
    TAKEN: "{pc} has a folder ~/gpu-studio by now. It was not overwritten.",
    NOT_WRITABLE: "The home folder on {pc} cannot be written to.",
    CUT: "Not everything could be unpacked on {pc}, so nothing of it was kept.",
}


def look_there(
    pc: OtherPc, program: ProgramCopy, is_over: Callable[[], bool] = lambda: False
) -> CopyOffer:
    """Return what can be copied to another PC; blocks up to a minute.

    A program that cannot be sent anywhere asks nothing.

    Raises:
        StudioError: there is no line to it.
    """
    if program.trouble:
        return CopyOffer(pc, There(), program)
    with _conversation(pc, look_command(), is_over, _LONGEST_LOOK_S) as talk:
        talk.child.close_input()
        answer = bytearray()
        while (chunk := talk.child.read_some(4096)) and len(answer) < _MOST_ERROR_BYTES:
            answer += chunk
        told = there_from(answer.decode("utf-8", "replace"))
        if told.is_linux is None:
            exit_code = talk.end()
            if exit_code in (None, SSH_FAILED):
                raise talk.lost(exit_code)
        return CopyOffer(pc, told, program)


def copy_there(offer: CopyOffer, is_over: Callable[[], bool] = lambda: False) -> Iterator[CopyStep]:
    """Send a program, then install PyTorch there; yield each step. The last one is the installer's.

    Raises:
        StudioError: it cannot be; the text says why. Nothing that was sent is found there later.
    """
    pc, there, program = offer
    if offer.trouble or there.python is None:
        raise StudioError(FailureKind.LINE_LOST, offer.trouble)
    yield from _sent(pc, receive_command(there.python, os.urandom(8).hex()), program, is_over)
    if not is_over():
        yield from _installed(pc, is_over)


def _sent(
    pc: OtherPc, command: str, program: ProgramCopy, is_over: Callable[[], bool]
) -> Iterator[CopyStep]:
    with _conversation(pc, command, is_over) as talk:
        threading.Thread(target=_drain, args=(talk.child,), daemon=True).start()
        done = shown = 0
        yield CopyStep(CopyStage.SENDING, 0, program.size_bytes)
        try:
            for chunk in program.chunks():
                if not talk.child.send(chunk):
                    break
                done += len(chunk)
                if done - shown >= _STEP_BYTES:
                    shown = done
                    yield CopyStep(CopyStage.SENDING, done, program.size_bytes)
        except OSError as error:
            talk.child.kill()
            message = f"A file of GPU Studio here cannot be read: {error}."
            raise StudioError(FailureKind.LINE_LOST, message) from error
        exit_code = talk.end()
        if is_over():
            return
        if exit_code in _WHY:
            detail = detail_of_ssh(talk.errors)
            said = f" It said: {detail}" if detail else ""
            raise StudioError(FailureKind.LINE_LOST, _WHY[exit_code].format(pc=pc.name) + said)
        if exit_code != 0 or done != program.size_bytes:
            raise talk.lost(exit_code)
        yield CopyStep(CopyStage.SENDING, done, program.size_bytes)


def _installed(pc: OtherPc, is_over: Callable[[], bool]) -> Iterator[CopyStep]:
    with _conversation(pc, INSTALL_ENGINE, is_over) as talk:
        budget = Budget(_AT_ONCE_BYTES, _EACH_S_BYTES)
        with contextlib.suppress(TooMuchError):
            for line in split_lines(talk.child.read_some, _LONGEST_LINE, budget):
                try:
                    progress = _plain(progress_from(json.loads(line)))
                except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
                    continue  # what a login prints
                yield CopyStep(CopyStage.INSTALLING, engine=progress)
                if progress.stage in ENDS:
                    return
        if not is_over():
            exit_code = talk.end()
            if exit_code in (None, SSH_FAILED):
                raise talk.lost(exit_code)
            detail = detail_of_ssh(talk.errors) or "It did not say why."
            message = f"GPU Studio was copied to {pc.name}, but PyTorch was not installed. {detail}"
            raise StudioError(FailureKind.LINE_LOST, message)


def _plain(progress: InstallProgress) -> InstallProgress:
    """Return the progress with texts that only show: a link and a path there are not for here."""
    trouble = progress.trouble
    if trouble is not None:
        trouble = trouble._replace(
            sentence=plain_text(trouble.sentence)[:_MOST_TEXT],
            action=plain_text(trouble.action)[:_MOST_TEXT],
            detail="",
            link="",
        )
    return progress._replace(
        fraction=min(max(progress.fraction, 0.0), 1.0) if progress.fraction > 0 else 0.0,
        left_s=None,
        subject=plain_text(progress.subject)[:_MOST_TEXT],
        result=plain_text(progress.result)[:_MOST_TEXT],
        trouble=trouble,
    )


def _drain(child: ChildProcess) -> None:
    while child.read_some(4096):
        pass


class _Talk:
    """One ssh with a command there."""

    def __init__(self, pc: OtherPc, child: ChildProcess) -> None:
        self.child, self._pc = child, pc
        self._errors = bytearray()
        self._exit_code: int | None = None
        self._reading = threading.Thread(target=self._read_errors, daemon=True)
        self._reading.start()

    @property
    def errors(self) -> str:
        return bytes(self._errors).decode(errors="replace")

    def end(self) -> int | None:
        """Close the line, and return the exit code; None if ssh had to be killed."""
        if self._exit_code is None:
            self._exit_code = self.child.end(_LONGEST_END_S)
            self._reading.join(1.0)
        return self._exit_code

    def close(self) -> None:
        """End ssh now, if it still runs."""
        if self._exit_code is None:
            self.child.kill()
            self.end()

    def lost(self, exit_code: int | None) -> StudioError:
        problem = problem_of_ssh(exit_code, self.errors)
        if problem is LineProblem.NO_PROGRAM or exit_code == 0:
            problem = LineProblem.LOST
        trouble = LineTrouble(problem=problem, pc=self._pc.name)
        message = f"{trouble.sentence} {trouble.action(self._pc.host)}"
        return StudioError(FailureKind.LINE_LOST, message)

    def _read_errors(self) -> None:
        stream = self.child.errors
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while chunk := stream.read(4096):
                self._errors += chunk[: _MOST_ERROR_BYTES - len(self._errors)]


@contextlib.contextmanager
def _conversation(
    pc: OtherPc, words: str, is_over: Callable[[], bool], longest_s: float | None = None
) -> Iterator[_Talk]:
    """Run fixed words there; whoever gives up, or takes longer, ends ssh."""
    ssh = ssh_program()
    if ssh is None:
        trouble = LineTrouble(problem=LineProblem.NO_SSH, pc=pc.name)
        raise StudioError(FailureKind.LINE_LOST, f"{trouble.sentence} {trouble.action(pc.host)}")
    child = ChildProcess(shell_command(pc, words, ssh), keeps_errors=True)
    talk = _Talk(pc, child)
    has_ended = threading.Event()

    def watch() -> None:
        looks = 0
        while not has_ended.wait(_LOOK_S):
            looks += 1
            if is_over() or (longest_s is not None and looks * _LOOK_S > longest_s):
                child.kill()
                return

    threading.Thread(target=watch, name="copy", daemon=True).start()
    try:
        yield talk
    finally:
        has_ended.set()
        talk.close()
        if child.errors is not None:
            child.errors.close()
