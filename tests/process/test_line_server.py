"""The end of a line on the PC there: what it says of the child's end."""

from __future__ import annotations

import io
import os
import threading

import pytest

from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.line_server import reader_of, serve_line
from tests.patience import until


@pytest.mark.parametrize(
    ("module", "codes"),
    [("gpu_studio.hardware.reader", []), ("this", [0])],
    ids=["ended for silence", "ends by itself"],
)
def test_an_end_is_the_child_s_own_only_if_nobody_else_ended_it(module, codes):
    # A PC that slept hears the rest when it wakes: its silence must not look like a crash.
    there, here = os.pipe()
    heard, children = [], []

    def start(_):
        children.append(ChildProcess(module))
        return children[0]

    def farewell(exit_code):
        heard.append(exit_code)
        return b"ended\n"

    os.write(here, b"begin\n")
    try:
        serve_line(
            start, reader_of(there), io.BytesIO(), lambda _line: False, farewell,
            alive_every_s=0.1, silence_s=0.5,
        )  # fmt: skip
        until(lambda: not _runs("pass_answers"))
    finally:
        os.close(here)
        until(lambda: not _runs("pass_requests"))
        os.close(there)
    assert children
    assert heard == codes


def _runs(name):
    return any(one.name == name for one in threading.enumerate())
