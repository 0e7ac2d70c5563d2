import json

import pytest

from gpu_studio.cli import devices
from gpu_studio.cli.command import DONE, DOUBTFUL
from gpu_studio.cli.main import main
from gpu_studio.cli.pc import TARGET
from gpu_studio.core.devices.finding import _RANKS, Finding
from gpu_studio.core.program_form import OF_ANOTHER_PC


@pytest.fixture
def on(there, monkeypatch):
    monkeypatch.setattr(TARGET, "pc", None)
    monkeypatch.setattr(TARGET, "system", None)

    def on(*words: str) -> int:
        return main(["--on", "attic=me@attic", *words])

    return on


def test_a_run_there_is_saved_here_with_the_pcs_name(on, tmp_path, capfd):
    saved = tmp_path / "run.jsonl"
    words = ("matmul", "--size", "16", "--device", "cpu", "--time", "0.1", "--json")
    assert on("bench", *words, "--save", str(saved)) in (DONE, DOUBTFUL)
    events = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    (finished,) = (one for one in events if one["type"] == "run_finished")
    assert finished["device"] == "attic/cpu"
    assert "me@attic" not in saved.read_text(encoding="utf-8")
    assert "attic/cpu" in saved.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--on", "-oProxyCommand=x", "devices"), "--on"),
        (("--on", "a b", "devices"), "spaces"),
        (("--on", "attic", "engine"), "--on is for"),
        (
            ("--on", "attic", "memory", "fit", "--device", "cuda:0", "--weights", "x.gguf"),
            "--weights is not for another PC",
        ),
    ],
)  # fmt: skip
def test_what_is_for_this_pc_alone_is_refused_in_one_line(there, capfd, words, sentence):
    assert main(words) == 2
    error = capfd.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_a_pc_that_is_not_reached_is_a_sentence_with_what_to_do(on, monkeypatch, capfd):
    monkeypatch.setenv("STAND_IN", "fail 255 Host key verification failed.")
    assert on("devices") == 1
    assert "Type “ssh me@attic” in a terminal once" in capfd.readouterr().err


def test_the_doctor_says_what_to_type_there(on, monkeypatch, capfd):
    found = Finding(code=next(iter(_RANKS)), sentence="X.", command="gpu-studio doctor")
    asked = []
    monkeypatch.setattr(
        devices, "find", lambda *_, **words: (asked.append(words["program"]), (found,))[1]
    )
    on("doctor")
    assert "next on attic: gpu-studio doctor" in capfd.readouterr().out
    assert asked == [OF_ANOTHER_PC]
