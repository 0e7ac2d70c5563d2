"""The commands as a person types them, in a process of their own, on the PC's CPU."""

import argparse
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gpu_studio.cli import devices
from gpu_studio.cli import main as cli
from gpu_studio.cli.command import DONE, DOUBTFUL
from gpu_studio.cli.main import COMMANDS, _prepare_output, build_parser, command_named, main
from gpu_studio.cli.manual import manual
from gpu_studio.core import resources
from gpu_studio.core.check.check_run import CheckPlan
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.parameter import parameters_of
from gpu_studio.core.program_form import own_program
from gpu_studio.core.wheel_table import load_table

MEASURED = (DONE, DOUBTFUL)  # a busy PC makes any time doubtful
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def type_in(environment):
    def type_in(*arguments, **changes):
        return subprocess.run(
            [sys.executable, "-m", "gpu_studio", *arguments],
            capture_output=True, encoding="utf-8", timeout=240, cwd=ROOT,
            env=environment | changes,
        )  # fmt: skip

    return type_in


def lines_of(text):
    return text.rstrip("\n").splitlines()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench"], "WORKLOAD"),
        (["bench", "matmul", "--size", "many"], "many"),
        (["bench", "matmul", "--size", "9" * 5000], "range"),
        (["bench", "matmul", "--dtype", "int8"], "int8"),
        (["bench", "matmul", "--device", ","], "cpu"),
        (["bench", "matmul", "--time", "2h"], "3600"),
        (["bench", "matmul", "--bud", "1"], "--bud"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(capsys, arguments, words):
    assert main(arguments) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    (line,) = lines_of(errors)
    assert line.startswith("gpu-studio: ")
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["devcies"], "devices"),
        (["bench", "matmul", "--devise", "cpu"], "--device"),
        (["check", "--plant", "bits"], "bit"),
        (["memory", "repaly", "x"], "replay"),
    ],
)
def test_a_word_that_is_almost_right_is_named(capsys, arguments, near):
    assert main(arguments) == 2
    assert f"Did you mean “{near}”?" in capsys.readouterr().err


def options_of(parser):
    """Yield the long options of a parser and of all its parts."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                yield from options_of(part)
        yield from (option for option in action.option_strings if option.startswith("--"))


def test_the_document_has_the_options_that_there_are():
    document = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", document))
    assert named == set(options_of(build_parser([*COMMANDS])))


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_STARTS = re.compile(
    rf"(?:(?:gpu-studio|(?:python3 packaging/|py packaging\\)bootstrap\.py run) )?"
    rf"((?:{'|'.join(COMMANDS)})(?: [^`\n|#&;>]+)?)"
)
# What a document writes in place of a word of the reader's.
_STANDING_FOR = {
    "D": "cpu", "N": "8", "A,B": "cpu", "SHELL": "bash", "BUILD": "cpu", "TEXT": "", "SIZES": "64",
    "NAME": "gt1030", "WORKLOAD": "matmul", "WHEELS": ".", "FOLDER": ".", "FILE": "out.json",
}  # fmt: skip


def commands_in(path):
    """Yield the whole commands in a document: with more words than the names of its parts.

    The options in a table's row belong to the command at its beginning.
    """
    text = path.read_text("utf-8")
    quoted = [re.findall(r"`([^`\n]+)`", line) for line in text.splitlines()]
    for first, *rest in (*filter(None, quoted), *re.findall(r"(?m)^ {4}(.+)$()", text)):
        for option in ("", *(one for one in rest if re.match("--.* ", one))):
            typed = _STARTS.fullmatch(f"{first.split('  ')[0].strip()} {option}".strip())
            words = [_STANDING_FOR.get(word, word) for word in typed[1].split()] if typed else []
            if len(words) > 2 and not {"…", "["}.intersection(typed[1]):
                yield words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_is_understood(path):
    for words in commands_in(path):
        assert read(words).run, words


@pytest.mark.parametrize(
    "parameter", [*parameters_of(RunWorkload), *parameters_of(CheckPlan)], ids=lambda one: one.name
)
def test_the_document_says_what_a_setting_does_in_the_words_of_its_declaration(parameter):
    document = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    value = {"s": " S", "min": " T"}.get(parameter.unit, "")
    assert f"| `{parameter.flag}{value}` | {parameter.sentence} |\n" in document


def test_with_json_a_mistake_is_an_object_as_well(capsys):
    assert main(["bench", "matmul", "--size", "0", "--json"]) == 2
    output, errors = capsys.readouterr()
    failure = json.loads(output)
    assert (failure["type"], failure["schema"], failure["kind"]) == ("failure", 1, "wrong_use")
    assert failure["message"] in errors


def test_the_manual_has_every_command_and_every_option():
    page = manual().replace("\\-", "-")
    assert all(f".SS {name}\n" in page for name in (*COMMANDS, "bench run", "memory fit"))
    options = options_of(build_parser([*COMMANDS]))
    assert all(option in page for option in options if option != "--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_shell_can_complete_every_command(capsys, shell):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in (*COMMANDS, "--sweep", "experiments"))


def test_a_missing_file_of_the_program_is_named_in_a_sentence(typed, monkeypatch, tmp_path):
    monkeypatch.setattr(resources, "_PACKAGE_DIR", tmp_path / "gpu_studio")
    load_table.cache_clear()
    status, _, errors = typed("engine", "list")
    assert status == 1
    assert "resources/wheels.json is missing" in errors


def test_an_unknown_workload_is_wrong_use_that_names_the_known_ones(type_here):
    done = type_here("bench", "crunch")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = lines_of(done.stderr)
    assert "crunch" in line
    assert "elementwise, matmul" in line


@pytest.mark.parametrize("device", ["cuda:0", "tpu", "cpu,cuda:1"])
def test_a_device_that_is_not_there_is_a_failure_that_names_those_that_are(type_here, device):
    done = type_here("bench", "matmul", "--size", "64", "--device", device)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = lines_of(done.stderr)
    assert device.rsplit(",", maxsplit=1)[-1] in line
    assert "cpu" in line.replace(device, "")


def test_bench_prints_the_events_and_the_result(type_here):
    done = type_here(
        "bench", "elementwise", "--size", "64,32", "--dtype", "float32,float64", "--device", "cpu",
        "--time", "0.05", "--json",
    )  # fmt: skip
    assert done.returncode in MEASURED
    assert done.stderr == ""
    header, described, *events = [json.loads(line) for line in lines_of(done.stdout)]
    # Where the events are from goes before them: what is printed is a recording.
    assert (header["type"], described["type"]) == ("recording_header", "engine_described")
    assert header["device_name"] == events[-1]["device_name"]
    assert events[0]["type"] == "run_started"
    assert events[-1]["type"] == "run_finished"
    results = [event for event in events if event["type"] == "run_finished"]
    assert [(result["dtype"], result["size"]) for result in results] == [
        ("float32", 64), ("float32", 32), ("float64", 64), ("float64", 32),
    ]  # fmt: skip
    for result in results:
        assert (result["workload"], result["device"]) == ("elementwise", "cpu")
        low, high = result["ci95_s"]
        assert 0 < low <= result["median_s"] <= high
        assert result["samples"] > 0
        assert result["verified"] is True
        assert "throttled" not in result["conditions"], "a CPU does not report it"
        if "reached" in result:  # on a busy PC, there is no undisturbed one
            assert result["reached"]["share"] > 0
            assert result["reached"]["ceiling"].startswith("memory bandwidth")
    ids = {event["run_id"] for event in events}
    assert len(ids) == 4


def test_bench_prints_a_table_and_the_verdict(type_in):
    done = type_in(
        "bench", "matmul", "--size", "64", "--device", "cpu", "--time", "0.05",
        PYTHONIOENCODING="ascii",  # a console that has no × and no µ
    )  # fmt: skip
    assert done.returncode in MEASURED
    assert done.stderr == ""
    title, heading, row, *_, sentence = lines_of(done.stdout)
    assert title.startswith("matmul")
    assert heading.split()[:4] == ["size", "dtype", "device", "median"]
    assert row.split()[0] == "64"
    assert "FLOP/s" in row
    assert "matmul" in sentence
    assert "64 x 64" in done.stdout
    assert "?" not in done.stdout


def test_a_run_that_cannot_fit_fails_and_the_others_go_on(type_here):
    done = type_here(
        "bench", "matmul", "--size", "1000000,32", "--device", "cpu", "--time", "0.05", "--json"
    )
    assert done.returncode == 1
    kinds = [json.loads(line)["type"] for line in lines_of(done.stdout)]
    assert kinds.count("run_failed") == 1
    assert kinds[-1] == "run_finished"
    (line,) = lines_of(done.stderr)
    assert "1,000,000" in line
    assert "TiB" in line


def test_devices_as_json(type_in):
    done = type_in("devices", "--json")
    assert done.returncode in MEASURED
    assert done.stderr == ""
    found = json.loads(done.stdout)
    cpu = found["devices"][0]
    assert cpu["kind"] == "cpu"
    assert cpu["name"]
    assert cpu["threads"] == psutil.cpu_count()
    assert cpu["memory_total_bytes"] == psutil.virtual_memory().total
    assert cpu["uuid"] is None
    assert 0 <= cpu["telemetry"]["utilization_percent"] <= 100
    assert cpu["telemetry"]["power_w"] is None
    assert found["torch"]["version"].startswith("2.")
    assert found["torch"]["cpu_threads"] > 0
    # PyTorch's allocator does not count what the CPU's memory holds.
    assert (cpu["allocated_bytes"], cpu["reserved_bytes"]) == (None, None)
    assert set(found["driver"]) >= {"version", "error", "error_code"}


@pytest.mark.skipif(sys.platform == "win32", reason="a Ctrl-C for another process")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_devices_can_be_watched_until_ctrl_c(environment, options):
    watching = subprocess.Popen(
        [sys.executable, "-m", "gpu_studio", "devices", "--watch", *options],
        stdout=subprocess.PIPE, encoding="utf-8", cwd=ROOT, env=environment,
    )  # fmt: skip
    try:
        lines = [watching.stdout.readline() for _ in range(2 if options else 8)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    finally:
        watching.kill()
        watching.wait()
    assert watching.returncode == 130
    if options:
        assert all(json.loads(line)["devices"][0]["kind"] == "cpu" for line in lines)
    else:
        assert sum("of" in line and "used" in line for line in lines) == 2


_ON_A_FULL_DISK = (1, f"gpu-studio: {os.strerror(errno.ENOSPC)}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream as a Unix shell does")
@pytest.mark.parametrize(
    ("arguments", "redirection", "status", "errors"),
    [
        # With a stream closed, the next file that is opened has its number.
        ("devices", ">&-", 0, ""),
        pytest.param(
            "memory fit --parameters 7000000 --device model:4096 --json", "> /dev/full",
            *_ON_A_FULL_DISK,
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's own file"),
        ),
    ],
)  # fmt: skip
def test_an_output_that_takes_nothing(environment, arguments, redirection, status, errors):
    command = f'"{sys.executable}" -m gpu_studio {arguments} {redirection}'
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=240, cwd=ROOT, env=environment
    )
    assert (done.returncode, done.stderr) == (status, errors)


def test_a_pytorch_that_does_not_start_is_a_failure_in_json_too(monkeypatch, capsysbinary):
    failure = StudioError(FailureKind.INTERNAL, "No torch here.")

    def fail(*_arguments, wakes_cards):
        assert not wakes_cards  # a list of devices is no use of one
        raise failure

    monkeypatch.setattr(devices, "describe_beside", fail)
    monkeypatch.setattr(cli, "_start_log", lambda: Path(os.devnull))
    assert main(["devices", "--json"]) == 1
    found = json.loads(capsysbinary.readouterr().out)
    assert found["torch"]["error"] == str(failure)
    assert found["devices"][0]["kind"] == "cpu"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", "Radoslaw Smigielski, Jorg & Sohne: 64 x 64 -> 1 024 us, -5 - 7 ?"),
        ("cp437", "Radoslaw Smigielski, Jörg & Söhne: 64 x 64 -> 1 024 µs, -5 - 7 ?"),
        ("cp1252", "Radoslaw Smigielski, Jörg & Söhne: 64 × 64 -> 1 024 µs, -5 – 7 ?"),
    ],
)
def test_names_stay_legible_where_their_signs_are_missing(monkeypatch, encoding, shown):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding=encoding))
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    _prepare_output()
    sys.stdout.write(
        "Radosław Śmigielski, Jörg & Söhne: 64 × 64 → 1\u202f024 µs, \u22125 – 7 \U0001f600"
    )
    sys.stdout.flush()
    assert raw.getvalue().decode(encoding) == shown


def test_help_and_version(type_in):
    done = type_in("--help")
    assert done.returncode == 0
    assert "bench" in done.stdout
    assert type_in("-V").stdout == type_in("--version").stdout == "GPU Studio 0.1.0\n"
    assert type_in("help", "bench").stdout == type_in("bench", "--help").stdout != ""


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_and_each_part_has_its_help(capsys, name):
    command = command_named(name)
    for words in ([name], *([name, part] for part in command.parts)):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
        assert ended.value.code == 0
        usage = " ".join(capsys.readouterr().out.split())
        assert f"usage: {own_program().start} {' '.join(words)} " in usage
    assert all(part.help and part.run for part in command.parts.values())
    assert bool(command.parts) != bool(command.run)
    assert command.usual_part in ("", *command.parts)


def read(arguments):
    return build_parser(arguments).parse_args(arguments)


@pytest.mark.parametrize(
    ("typed", "heavy"),
    [
        ("--help", {"numpy", "torch", "PySide6", "pynvml", "psutil"}),
        ("bench list", {"numpy", "torch", "PySide6"}),
        ("pitfall list", {"numpy", "torch", "PySide6"}),
        ("place list", {"numpy", "torch", "PySide6"}),
    ],
)
def test_what_only_lists_imports_nothing_heavy_and_starts_nothing(environment, typed, heavy):
    script = f"""
import subprocess, sys
def started(*_, **__): sys.exit("a process was started")
subprocess.Popen.__init__ = started
from gpu_studio.cli.main import main
try:
    status = main({typed.split()})
except SystemExit as ended:
    status = ended.code
imported = {heavy} & set(sys.modules)
sys.exit(f"imported: {{imported}}" if imported else status)
"""
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=ROOT)
