import io

import pytest

from gpu_studio.cli.bench_runs import verdicts
from gpu_studio.cli.screen import Progress, TerminalTable, plain
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.run_answers import run_events


@pytest.mark.parametrize(
    ("text", "shown"),
    [("1.5\u202fms", "1.5 ms"), ("evil\x1b[2Jname", "evil [2Jname"), ("two\nlines", "two lines")],
)
def test_what_is_written_is_one_plain_line(text, shown):
    assert plain(text) == shown


def test_a_table_aligns_numbers_to_the_right():
    table = TerminalTable([("size", -6), ("device", 8), ("time", -8)])
    assert table.heading == "  size  device        time"
    assert table.row(["64", "cuda:0", "1.5\u202fms"]) == "    64  cuda:0      1.5 ms"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_written_over_on_a_terminal_alone():
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(stream)
        progress.show("a long text")
        progress.show("short")
        progress.clear()
    assert terminal.getvalue() == "\ra long text\rshort      \r     \r"
    assert file.getvalue() == ""


def finished_run(device, size, dtype="float32"):
    request = RunWorkload(run_id="1", workload="matmul", device=device, size=size, dtype=dtype)
    run = Run(request)
    for event in run_events(request):
        run.apply(event)
    return run


def test_there_is_a_verdict_for_each_dtype():
    results = [
        finished_run(device, size, dtype).result
        for dtype in ("float32", "float16")
        for size in (64, 4096)
        for device in ("cpu", "cuda:0")
    ]
    first, second = verdicts(results)
    assert "float32" in first
    assert "float16" in second
    assert "GT 1030" in first
    assert list(verdicts([])) == []
