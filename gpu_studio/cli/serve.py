"""``gpu-studio serve``: what another PC's GPU Studio starts here over ssh. Lines, nothing else.

The first line is a greeting. ``engine`` and ``sensors`` then speak the lines of an engine's or a
sensor reader's child, and end within seconds of the line's end.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from gpu_studio.builds.shelf import own_shelf
from gpu_studio.cli.command import DONE, Command
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.line_trouble import PART_ENDED
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.line_messages import (
    EngineReadiness,
    Greeting,
    LineOpening,
    PcSystem,
)
from gpu_studio.core.messages.race_messages import FrameReady
from gpu_studio.core.other_pc import ALIVE_EVERY_S, SILENCE_S
from gpu_studio.core.program_version import program_version
from gpu_studio.core.protocol import decode_event, encode, protocol_version
from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout
from gpu_studio.process.line_server import reader_of, serve_line

_ENGINE, _READER = "gpu_studio.engine.serve", "gpu_studio.hardware.reader"
# A shell there may have printed a prompt, without the end of its line.
_OPENING = b"\n"
_SYSTEMS = {"win32": PcSystem.WINDOWS, "darwin": PcSystem.MACOS}


def greeting() -> Greeting:
    """Return what this program says first."""
    return Greeting(
        protocol=protocol_version(),
        version=program_version()[:64],
        system=_SYSTEMS.get(sys.platform, PcSystem.LINUX),
        engine=_readiness(),
    )


def _readiness() -> EngineReadiness:
    shelf = own_shelf(data_folder)
    if shelf is None or shelf.used():
        return EngineReadiness.READY
    is_made = any(record.is_ready for record in shelf.records())
    return EngineReadiness.OUTDATED if is_made else EngineReadiness.MISSING


def _is_old_reading(line: bytes) -> bool:
    """Return whether a line is a reading: one that waited is old, and the one behind it is not."""
    return line.startswith(b'{"type":"reading"')


def _is_passing_frame(line: bytes) -> bool:
    """Return whether a line is a frame of a race, but not its last one."""
    if not line.startswith(b'{"type":"frame_ready"'):
        return False
    ready = decode_event(line)
    return isinstance(ready, FrameReady) and ready.progress < 1.0


def _hello(_: argparse.Namespace, log_path: Path) -> int:
    """Print the greeting; return the exit status."""
    out = take_over_stdout()
    out.write(_OPENING + encode(greeting()))
    out.flush()
    return DONE


def _engine(_: argparse.Namespace, log_path: Path) -> int:
    """Serve an engine until the line ends; return the exit status."""
    from gpu_studio.engine.client import child_variables

    def start(line: bytes) -> ChildProcess:
        opening = _opening(line)
        environment = EngineEnvironment(
            visible_devices=opening.visible_devices,
            allocator_configuration=opening.allocator_configuration,
        )
        return ChildProcess(_ENGINE, environment=child_variables(environment), log_path=log_path)

    # So that an engine's end is not taken for the line's.
    return _serve(start, _is_passing_frame, lambda code: encode(EngineEnded(exit_code=code)))


def _sensors(_: argparse.Namespace, log_path: Path) -> int:
    """Serve this PC's sensors until the line ends; return the exit status."""

    def start(line: bytes) -> ChildProcess:
        period_s = _opening(line).period_s
        return ChildProcess(_READER, ["--period-s", str(period_s)], log_path=log_path)

    return _serve(start, _is_old_reading, lambda _code: b"")


def _opening(line: bytes) -> LineOpening:
    try:
        return msgspec.json.decode(line, type=LineOpening)
    except (msgspec.MsgspecError, RecursionError) as error:
        message = f"not an opening: {error}"
        raise ValueError(message) from error


def _serve(
    start: Callable[[bytes], ChildProcess],
    is_droppable: Callable[[bytes], bool],
    farewell: Callable[[int | None], bytes],
) -> int:
    requests, out = take_over_stdin(buffering=0), take_over_stdout()
    out.write(_OPENING + encode(greeting()))
    out.flush()
    is_child_s_end = serve_line(
        start,
        reader_of(requests.fileno()),
        out,
        is_droppable,
        farewell,
        alive_every_s=ALIVE_EVERY_S,
        silence_s=SILENCE_S,
    )
    return PART_ENDED if is_child_s_end else DONE


def _leaving(run: Callable[[argparse.Namespace, Path], int]) -> Callable[..., int]:
    """Return a command that ends its process itself: a thread may still wait for a pipe."""

    def run_and_leave(options: argparse.Namespace, log_path: Path) -> int:
        code = run(options, log_path)
        os._exit(code)

    return run_and_leave


COMMAND = Command(
    about="Answer another PC's GPU Studio, which starts this over ssh. Not for typing.",
    parts={
        "hello": Command(
            about="Print this program's version as a line of JSON.", run=_leaving(_hello), json="",
            help="the version, and whether an engine is installed",
        ),
        "engine": Command(
            about="Work for another PC until its line ends.", run=_leaving(_engine), json="",
            help="the lines of an engine",
        ),
        "sensors": Command(
            about="Read the sensors for another PC until its line ends.", run=_leaving(_sensors),
            json="", help="the lines of the sensor reader",
        ),
    },
)  # fmt: skip
