import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gpu_studio.core.messages.memory_messages import OomFinished
from gpu_studio.core.other_pc import PLACES, OtherPc, pc_from_text
from gpu_studio.line.line_child import TooMuchError, split_lines
from gpu_studio.line.line_values import UntrustedError, event_here, sensors_here
from gpu_studio.line.ssh import ssh_command
from tests.fakes.pc import gt_1030

_ATTIC = OtherPc(name="attic", host="me@attic.local")


@pytest.mark.parametrize(
    "host",
    ["", "-oProxyCommand=xcalc", "me@-oProxyCommand=xcalc", "ssh://-x", "a b", "a\tb", "a\nb",
     "a\0b", "a;b", "a`b`", "$(b)", "a|b", '"a"', "a\u202eb", "x" * 256],
)  # fmt: skip
def test_a_host_that_ssh_or_a_shell_would_read_more_into_is_refused(host):
    with pytest.raises(ValueError, match=r"[.]$"):
        OtherPc(name="attic", host=host)


@pytest.mark.parametrize(
    "host",
    ["attic", "me@attic", "me@192.168.1.5", "ssh://me@attic:2222", "me@fe80::1%eth0",
     "HOME\\me@attic", "x" * 255],
)  # fmt: skip
def test_a_host_is_what_one_types_after_ssh(host):
    assert ssh_command(OtherPc(name="attic", host=host), "hello")[-2] == host


@pytest.mark.parametrize(
    "name",
    ["", " attic", "cpu", "CUDA", "cuda:0", "cuda1", "xpu:1", "a/b", "a,b", "a=b", "a\nb",
     "a\u200bb", "x" * 41],
)  # fmt: skip
def test_a_name_that_no_device_can_have_before_it_is_refused(name):
    with pytest.raises(ValueError, match=r"[.]$"):
        OtherPc(name=name, host="attic")


def test_ssh_takes_every_option_and_gives_up_within_10_s_of_silence():
    if shutil.which("ssh") is None:
        pytest.skip("this PC has no ssh")
    command = ssh_command(_ATTIC, "hello")
    shown = subprocess.run(
        [command[0], "-F", "none", "-G", *command[1:]], capture_output=True, text=True, check=True
    )
    options = dict(line.split(" ", 1) for line in shown.stdout.splitlines() if " " in line)
    assert options["hostname"] == "attic.local"
    every_s, most = int(options["serveraliveinterval"]), int(options["serveralivecountmax"])
    assert every_s * (most + 1) < 10
    assert options["batchmode"] == "yes"
    assert options["forwardagent"] == "no"


@pytest.mark.parametrize("program", PLACES)
def test_a_shell_there_reads_the_program_as_one_word(program):
    pc = OtherPc(name="attic", host="attic", program=program)
    assert shlex.split(ssh_command(pc, "hello")[-1])[1:] == ["serve", "hello"]


@pytest.mark.parametrize(
    ("text", "name", "host"),
    [
        ("attic=me@192.168.1.5", "attic", "me@192.168.1.5"),
        ("attic", "attic", "attic"),
        ("me@attic", "attic", "me@attic"),
        ("attic.home.arpa", "another PC", "attic.home.arpa"),
        ("192.168.1.5", "another PC", "192.168.1.5"),
        ("cuda", "another PC", "cuda"),
    ],
)
def test_a_terminals_pc_has_the_name_that_was_typed_and_never_an_address(text, name, host):
    pc = pc_from_text(text)
    assert (pc.name, pc.host) == (name, host)


@pytest.fixture
def windows(tmp_path, monkeypatch) -> Path:
    """Let this PC pass for Windows; return the place of its own ssh."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: f"of Git/{name}.exe")
    return tmp_path / "System32" / "OpenSSH" / "ssh.exe"


_SPACED = OtherPc(name="attic", host="me@attic", program=PLACES[-1])


def test_a_path_with_a_space_reaches_the_shell_there_through_windows_own_quoting(windows):
    line = subprocess.list2cmdline(ssh_command(_SPACED, "engine"))
    assert line.endswith(r'GPU Studio\gpu-studio.exe\" serve engine"')


@pytest.mark.parametrize("times", [0, 2, 200])
def test_an_inventory_that_no_pc_has_is_refused(times: int) -> None:
    found = gt_1030()
    sensors_here(found, "attic")
    for devices in (found.cards * times, (found.cpu, *found.cards * (times or 1000))):
        impossible = msgspec.structs.replace(found, devices=devices)
        with pytest.raises(UntrustedError):
            sensors_here(impossible, "attic")


def test_a_snippet_says_where_it_came_from() -> None:
    there = OomFinished(
        device="model:1996", outcome="fits", tensors=1, tensor_bytes=1,
        snippet="import torch",
    )  # fmt: skip
    here = event_here(there, "attic")
    assert isinstance(here, OomFinished)
    assert here.snippet == "# For attic, where it came from.\nimport torch"
    with pytest.raises(UntrustedError):
        event_here(msgspec.structs.replace(there, snippet="x" * 200_000), "attic")


def test_lines_are_whole_and_a_line_without_end_is_too_much() -> None:
    chunks = iter([b"x" * 8] * 4)
    with pytest.raises(TooMuchError):
        list(split_lines(lambda _most: next(chunks), 20))
    chunks = iter([b"a", b"b\r", b"\n\n  \nc", b"d\ne", b""])
    assert list(split_lines(lambda _most: next(chunks), 20)) == [b"ab\n", b"cd\n"]
