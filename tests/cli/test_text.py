import io

import pytest

from gpu_studio.cli.output import Progress, TerminalTable, plain, print_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [("1.5\u202fms", "1.5 ms"), ("evil\x1b[2Jname", "evil [2Jname"), ("two\nlines", "two lines")],
)
def test_what_is_written_is_one_plain_line(text, shown):
    assert plain(text) == shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Return a terminal in place of standard output, of a width, with or without colors."""

    def terminal(columns=60, **environment):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm-256color")
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        stream = Terminal()
        monkeypatch.setattr("sys.stdout", stream)
        return stream

    return terminal


LONG = "    in doubt: only five samples, so the interval is their whole range: give it more time"


def test_a_terminal_gets_whole_words_in_its_width_below_their_first(terminal):
    stream = terminal(NO_COLOR="1")
    print_line(LONG, style="yellow")
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert {len(line) - len(line.lstrip()) for line in lines} == {4}
    assert " ".join(stream.getvalue().split()) == LONG.strip()


def test_a_file_gets_each_line_whole_and_plain(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("sys.stdout", file)
    print_line(LONG, style="yellow")
    assert file.getvalue() == f"{LONG}\n"


@pytest.mark.parametrize(("environment", "has_color"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_colors_unless_the_user_wants_none(terminal, environment, has_color):
    stream = terminal(**environment)
    print_line("in doubt", style="yellow")
    assert ("\x1b[33m" in stream.getvalue()) is has_color


@pytest.mark.parametrize(
    ("columns", "heading"),
    [
        (80, "size  device        time  note"),
        (30, "size  device        time"),
        (20, "size  device"),
    ],
)
def test_a_narrow_terminal_does_without_the_least_important_columns(terminal, columns, heading):
    terminal(columns)
    table = TerminalTable(
        [("size", 4), ("device", 8), ("time", -8), ("note", 20)], ("note", "time")
    )
    assert table.heading == heading
    assert ("busy" in table.row(["64", "cuda:0", "1 ms", "busy"])) is ("note" in heading)


def test_progress_is_written_over_on_a_terminal_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(stream)
        progress.show("a text that no line of this terminal can hold")
        progress.show("short")
        progress.clear()
    shown, short, *_ = terminal.getvalue().strip("\r").split("\r")
    assert (len(shown), shown[-1], short) == (19, "…", f"{'short':<19}")
    assert file.getvalue() == ""
