import io
import os
import threading

import pytest

from gpu_studio.cli.serve import LineServer
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.message import LineOpening
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.line import line_child
from gpu_studio.process.child_process import ChildProcess
from tests.patience import until


@pytest.mark.parametrize(
    ("module", "said"),
    [("gpu_studio.hardware.reader", []), ("this", [EngineEnded(exit_code=0)])],
    ids=["ended for silence", "ends by itself"],
)
def test_an_end_is_the_child_s_own_only_if_nobody_else_ended_it(module, said, monkeypatch):
    # A PC that slept sends the rest when it wakes: its silence must not look like a crash.
    monkeypatch.setattr(line_child, "ALIVE_EVERY_S", 0.1)
    there, here = os.pipe()
    out, children = io.BytesIO(), []

    def start(_):
        children.append(ChildProcess(module))
        return children[0]

    threads = set(threading.enumerate())
    os.write(here, encode(LineOpening()))
    try:
        LineServer(start, says_end=True).serve(lambda most: os.read(there, most), out)
    finally:
        os.close(here)
        until(lambda: set(threading.enumerate()) <= threads)
        os.close(there)
    assert not children[0].is_running
    lines = [line for line in out.getvalue().splitlines() if b"engine_ended" in line]
    assert list(map(decode_event, lines)) == said
