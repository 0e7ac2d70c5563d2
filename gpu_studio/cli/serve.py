"""``gpu-studio serve``: what another PC's GPU Studio starts here over ssh. Lines, nothing else.

The first line is a greeting. ``engine`` and ``sensors`` then speak the lines of an engine's or a
sensor reader's child, and end within seconds of the line's end.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gpu_studio.builds.shelf import own_shelf
from gpu_studio.cli.command import DONE, command, group
from gpu_studio.cli.pc import data_folder
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.message import (
    EngineReadiness,
    Greeting,
    LineOpening,
    PcSystem,
)
from gpu_studio.core.program_version import program_version
from gpu_studio.core.protocol import encode, protocol_version
from gpu_studio.line.server import LineServer
from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

_ENGINE, _READER = "gpu_studio.engine.serve", "gpu_studio.hardware.reader"
_SYSTEMS: dict[str, PcSystem] = {"win32": "windows", "darwin": "macos"}


def greeting() -> Greeting:
    """Return what this program says first."""
    shelf = own_shelf(data_folder)
    readiness: EngineReadiness = "ready"
    if shelf is not None and not shelf.used():
        has_one = any(record.is_ready for record in shelf.records())
        readiness = "outdated" if has_one else "missing"
    return Greeting(
        protocol=protocol_version(),
        version=program_version()[:64],
        system=_SYSTEMS.get(sys.platform, "linux"),
        engine=readiness,
    )


def _engine_server(log_path: Path) -> LineServer:
    from gpu_studio.engine.client import child_variables

    def start(opening: LineOpening) -> ChildProcess:
        environment = EngineEnvironment(
            visible_devices=opening.visible_devices,
            allocator_configuration=opening.allocator_configuration,
        )
        return ChildProcess(_ENGINE, environment=child_variables(environment), log_path=log_path)

    return LineServer(start, says_end=True)


def _sensor_server(log_path: Path) -> LineServer:
    return LineServer(
        lambda opening: ChildProcess(
            _READER, ["--period-s", str(opening.period_s)], log_path=log_path
        )
    )


def _serve(server: LineServer | None) -> int:
    """Greet, serve until the line ends, and end this process.

    A thread may still wait for a pipe then.
    """
    requests, out = take_over_stdin(buffering=0), take_over_stdout()
    # A shell there may have printed a prompt, without the end of its line.
    out.write(b"\n" + encode(greeting()))
    out.flush()
    if server is not None:
        descriptor = requests.fileno()
        server.serve(lambda most: os.read(descriptor, most), out)
    os._exit(DONE)


@command(json="")
def _hello(_options: argparse.Namespace, _log_path: Path) -> int:
    """Print this program's version as a line of JSON, and whether an engine is installed."""
    return _serve(None)


@command(json="")
def _engine(_options: argparse.Namespace, log_path: Path) -> int:
    """Work for another PC until its line ends: the lines of an engine."""
    return _serve(_engine_server(log_path))


@command(json="")
def _sensors(_options: argparse.Namespace, log_path: Path) -> int:
    """Read the sensors for another PC until its line ends."""
    return _serve(_sensor_server(log_path))


COMMANDS = {
    "serve": group(
        "Answer another PC's GPU Studio, which starts this over ssh. Not for typing.",
        {"hello": _hello, "engine": _engine, "sensors": _sensors},
    )
}
