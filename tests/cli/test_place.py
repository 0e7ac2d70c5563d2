import json
import subprocess

import pytest

from gpu_studio.cli.main import build_parser


def events(done: subprocess.CompletedProcess[str]) -> list[dict]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_model_is_placed_with_a_row_a_tensor(type_here):
    done = type_here("place", "convnet", "--device", "cpu", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    *rows, finished = events(done)
    assert {row["type"] for row in rows} == {"place_row"}
    assert {"name", "shape", "dtype", "bytes", "device_before", "device_after"} <= set(rows[0])
    assert next(row["name"] for row in rows if row["kind"] == "buffer") == "1.running_mean"
    assert finished["type"] == "place_finished"
    assert (finished["moved_bytes"], finished["same_output"]) == (0, True)
    assert finished["tensors"] == len(rows) == 16


def test_a_model_is_moved_on_and_back(type_here):
    done = type_here(
        "place", "convnet", "--device", "cpu", "--then", "cpu", "--then", "cpu", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = events(done)
    finished = [event for event in lines if event["type"] == "place_finished"]
    assert [event["same_output"] for event in finished] == [True, True, True]
    assert lines[-1] == finished[-1]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("gpt", "--device", "cpu"), 2, "linear_10, linear_1000, convnet, mlp"),
        (("mlp", "--device", "cuda:7"), 1, "cuda:7"),
        (("mlp", "--device", "cpu", "--dtype", "int3"), 2, "float16"),
        (("mlp",), 2, "--device"),
        ((), 2, "MODEL"),
        (("mlp", "--device", "cuda"), 1, "cuda:0"),
    ],
)
def test_what_cannot_be_placed_is_one_line(type_here, arguments, status, words):
    done = type_here("place", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "command",
    [
        ["place", "mlp"], ["pitfall", "tiny_model"], ["memory", "oom", "--preset", "gt1030"],
        ["memory", "fit", "--parameters", "1e6"],
    ],
)  # fmt: skip
def test_cuda_alone_is_pytorchs_current_card(command: list[str]):
    arguments = [*command, "--device", "cuda"]
    assert build_parser(arguments).parse_args(arguments).device == "cuda:0"


def test_a_pitfall_ends_with_its_result(type_here):
    done = type_here("pitfall", "mixed_devices", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    *started, finished = events(done)
    assert [event["part"] for event in started] == ["broken", "fixed"]
    assert finished["type"] == "pitfall_finished"
    assert finished["broken"]["error"].startswith("RuntimeError")
    assert finished["fixed"]["error"] == ""


def test_a_pitfall_in_words(type_here):
    done = type_here("pitfall", "old_amp_import", "--device", "cpu")
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    order = ("Broken:", "FutureWarning", "Why:", "The fix:", "Fixed:", "warnings 0")
    places = [text.index(word) for word in order]
    assert places == sorted(places)
