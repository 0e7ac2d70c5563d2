import json
import re

import pytest

from tests.cli.bench.terminal import CROSSING, asked


def test_a_sweep_takes_powers_of_two_with_both_ends_and_then_refines(engines, type_in):
    status, output, errors = type_in("matmul", "--sweep", "100:3000", "--json")
    assert status == 0
    sizes = [run.size for run in asked(engines) if run.device == "cuda:0"]
    assert sizes[:7] == [100, 128, 256, 512, 1024, 2048, 3000]
    finer = sizes[7:]
    assert finer
    assert all(256 < size < 1024 for size in finer)
    events = [json.loads(line) for line in output.splitlines()]
    ends = [event for event in events if event["type"] == "run_finished"]
    assert [(end["size"], end["device"]) for end in ends] == [
        (run.size, run.device) for run in asked(engines)
    ]
    assert len({event["run_id"] for event in ends}) == len(ends)
    assert events[-1]["type"] == "run_finished"
    (crossover,) = (line for line in errors.splitlines() if "overtakes" in line)
    assert "GT 1030" in crossover
    about = re.search(r"about (\d+) × \1\b", crossover)
    assert about
    assert int(about[1]) == pytest.approx(CROSSING, rel=0.03)


def test_a_sweep_in_words_ends_with_verdict_and_crossover(type_in):
    status, output, errors = type_in("matmul", "--sweep", "64:1024")
    assert (status, errors) == (0, "")
    *_, blank, verdict = output.splitlines()
    assert blank == ""
    assert "3.4 × faster at 1024 × 1024" in verdict
    assert "It overtakes the CPU at about" in verdict


def test_transfers_are_timed_beside_and_have_a_verdict(engines, type_in):
    _, output, _ = type_in("matmul", "--size", "64,2048", "--transfers")
    modes = [(run.device, run.transfers) for run in asked(engines)]
    assert modes == [("cpu", False), ("cuda:0", False), ("cuda:0", True)] * 2
    assert "cuda:0+copies" in output
    verdict = output.splitlines()[-1].replace("\u202f", " ")
    assert verdict.startswith("The GeForce GT 1030 against the CPU (matmul, float32): 6.8 ×")
    assert "The GeForce GT 1030 with copies against the CPU: " in verdict


def test_each_dtype_is_finished_before_the_next(engines, type_in):
    _, output, _ = type_in("matmul", "--size", "64", "--dtype", "float32,float16")
    assert [(run.dtype, run.device) for run in asked(engines)] == [
        ("float32", "cpu"), ("float32", "cuda:0"), ("float16", "cpu"), ("float16", "cuda:0"),
    ]  # fmt: skip
    assert output.count("against the CPU") == 2
    assert sum(line.startswith("matmul, ") for line in output.splitlines()) == 1
