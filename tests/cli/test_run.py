"""``run``: a real child on the CPU and on Mesa's lavapipe, as a shell would start it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_studio.core.switcher.program_start import CHOOSING
from gpu_studio.hardware.vulkan import vulkan_devices
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).resolve().parent.parent.parent
HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
if sys.platform == "linux":
    HIDDEN["ROCR_VISIBLE_DEVICES"] = "-1"
SCRIPT = (
    "import os, sys; print(sorted((n, v) for n, v in os.environ.items() if n in {names!r})); "
    "print(sys.argv[1:]); print('PYTHONPATH' in os.environ); sys.exit(7)"
)
WORDS = ["a b", 'say "hi"', "50%", "ümläut", "--json", "-q", "--"]


@pytest.fixture
def start(environment):
    # Of this process: the program's own tests may run with a build's packages in it.
    clean = {name: value for name, value in environment.items() if name != "PYTHONPATH"}

    def start(*arguments, **options):
        return subprocess.Popen(
            [sys.executable, "-m", "gpu_studio", "run", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd=ROOT,
            env={**clean, "DRI_PRIME": "1", "PYTHONUTF8": "1"}, **options,
        )  # fmt: skip

    return start


def said(child) -> tuple[int, list[str], str]:
    output, errors = child.communicate(timeout=PATIENCE_S)
    return child.returncode, output.splitlines(), errors


def has_lavapipe() -> bool:
    return sys.platform == "linux" and any(one.is_software for one in vulkan_devices())


ON_CPU = HIDDEN | {"ONEAPI_DEVICE_SELECTOR": "*:cpu", "GGML_VK_VISIBLE_DEVICES": "none"}


def test_a_child_on_the_cpu_has_exactly_these_variables_and_its_words(start):
    script = SCRIPT.format(names={*CHOOSING})
    status, lines, errors = said(
        start("--on-card", "cpu", "--", sys.executable, "-c", script, *WORDS)
    )
    assert (status, lines[0]) == (7, repr(sorted(ON_CPU.items())))
    assert lines[1:] == [repr(WORDS), "False"]
    assert errors.startswith("Starting on the CPU: CUDA_VISIBLE_DEVICES=-1 ")


@pytest.mark.skipif("not has_lavapipe()", reason="no Mesa with lavapipe here")
def test_a_child_on_lavapipe_has_exactly_these_variables(start):
    script = SCRIPT.format(names={*CHOOSING})
    (software,) = (one for one in vulkan_devices() if one.is_software)
    word = software.uuid
    status, lines, _ = said(start("--on-card", word, "-q", "--", sys.executable, "-c", script))
    ids = software.vendor_id, software.device_id
    expected = ON_CPU | {
        "GGML_VK_VISIBLE_DEVICES": "0",
        "VK_LOADER_DEVICE_SELECT": "0x{:04x}:0x{:04x}".format(*ids),
        "MESA_VK_DEVICE_SELECT": "{:04x}:{:04x}!".format(*ids),
    }
    assert (status, lines[0]) == (7, repr(sorted(expected.items())))


@pytest.mark.skipif(os.name != "posix", reason="Windows ends a process at once")
@pytest.mark.parametrize("is_ignored", [False, True])
def test_ctrl_c_reaches_the_program_and_its_answer_comes_back(start, tmp_path, is_ignored):
    began = tmp_path / "began"
    handle = "signal.signal(2, lambda *_: sys.exit(5)); " if is_ignored else ""
    script = f"import signal, sys, time; {handle}open({str(began)!r}, 'w').close(); time.sleep(99)"
    child = start("--on-card", "cpu", "--", sys.executable, "-c", script, start_new_session=True)
    until(began.exists)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all that it runs
    status, _, _ = said(child)
    assert status == (5 if is_ignored else 128 + signal.SIGINT)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signal")
def test_ending_the_command_ends_the_program(start, tmp_path):
    began = tmp_path / "began"
    script = f"import os, time; open({str(began)!r}, 'w').write(str(os.getpid())); time.sleep(99)"
    child = start("--on-card", "cpu", "--", sys.executable, "-c", script)
    until(lambda: began.exists() and began.read_text())
    child.terminate()
    assert said(child)[0] == 128 + signal.SIGTERM


def test_print_only_shows_the_lines(start):
    status, lines, _ = said(start("--on-card", "cpu", "--print", "--", "ollama", "serve"))
    assert status == 0
    assert [line for line in lines if not line.startswith(" ")] == ["cmd:", "PowerShell:", "sh:"]
    assert any(line.endswith("GGML_VK_VISIBLE_DEVICES=none ollama serve") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--on-card", "77", "--", "x"), 2, "There is no card “77” here. Choose "),
        (("--on-card", "cpu"), 2, "Name the program to start"),
        (("--on-card", "cpu", "--", "/not/there"), 1, "/not/there cannot be started"),
        (("--", "x"), 2, "--on-card"),
    ],
)
def test_a_mistake_is_one_line(start, arguments, status, words):
    found, lines, errors = said(start(*arguments))
    assert (found, lines) == (status, [])
    assert words in errors.splitlines()[-1]
