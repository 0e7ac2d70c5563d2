"""A child's own pipes, and what may arrive on a line from another PC."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from gpu_studio.process.line_child import TooMuchError, split_lines
from tests.patience import PATIENCE_S

# Looks at the moment at which the child's first thread starts, which is the one that reads: what
# descriptor 0 has, and which of the heavy libraries are still to come.
_LOOK = """
import json, os, runpy, sys, threading
start = threading.Thread.start
def look(thread):
    seen = {"input": os.read(0, 99).decode(),
            "to_come": [name for name in ("numpy", "torch") if name not in sys.modules]}
    os.write(2, b"LOOKED " + json.dumps(seen).encode() + b"\\n")
    os._exit(0)
threading.Thread.start = look
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
# {pid} is filled in late: a name of a test that differs by process stops a parallel run.
_REPLICA = "--engine {pid} --size 8 --backend gloo --devices cpu --store nowhere"


@pytest.mark.parametrize(
    ("module", "arguments", "to_come"),
    [
        ("gpu_studio.engine.serve", "", ["numpy", "torch"]),
        ("gpu_studio.hardware.reader", "", ["numpy", "torch"]),
        # These have nothing to do before PyTorch is there, and read after it.
        ("gpu_studio.engine.devices.probe", "", []),
        ("gpu_studio.engine.replica", _REPLICA, []),
    ],
)
def test_descriptor_0_is_empty_before_a_child_reads_its_pipe(module, arguments, to_come):
    child = subprocess.Popen(
        [sys.executable, "-c", _LOOK, module, *arguments.format(pid=os.getpid()).split()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LOCAL_RANK": "0"},
    )
    try:
        child.stdin.write(b"a line that waits\n")
        child.stdin.flush()
        result = child.stderr.read().splitlines()
    finally:
        child.kill()
        child.communicate(timeout=PATIENCE_S)
    looked = next((line for line in result if line.startswith(b"LOOKED ")), None)
    assert looked is not None, result
    assert json.loads(looked.removeprefix(b"LOOKED ")) == {"input": "", "to_come": to_come}


_ECHO = """
import os, sys
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout
requests, answers = take_over_stdin(), take_over_stdout()
print("printed")
os.write(1, b"by a library\\n")
assert sys.stdin.read() == "" and os.read(0, 9) == b""
# A child of the child must not keep the pipes open.
assert not any(os.get_inheritable(one.fileno()) for one in (requests, answers))
answers.write(requests.readline().upper())
answers.flush()
"""


def test_the_pipes_are_kept_and_nothing_else_reaches_them():
    done = subprocess.run(
        [sys.executable, "-c", _ECHO],
        input=b"asked\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == b"ASKED\n"
    assert sorted(done.stderr.replace(b"\r", b"").split(b"\n")) == [
        b"",
        b"by a library",
        b"printed",
    ]


def test_lines_are_whole_and_a_line_without_end_is_too_much() -> None:
    chunks = iter([b"x" * 8] * 4)
    with pytest.raises(TooMuchError):
        list(split_lines(lambda _most: next(chunks), 20))
    chunks = iter([b"a", b"b\r", b"\n\n  \nc", b"d\ne", b""])
    assert list(split_lines(lambda _most: next(chunks), 20)) == [b"ab\n", b"cd\n"]
