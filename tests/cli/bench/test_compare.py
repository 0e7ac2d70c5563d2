"""Standard runs of other PCs in a terminal."""

from __future__ import annotations

import json

from gpu_studio.core.benchmark.standard_folder import FOLDER_NAME, StandardFolder
from gpu_studio.core.benchmark.standard_record import encode_standard
from tests.core.benchmark.standard_runs import paced_device, standard_run


def test_files_are_compared_with_this_pc(type_in, tmp_path):
    path = tmp_path / "theirs.txt"
    cpu = paced_device("Ryzen 7 5700G", 0.1, device="cpu")
    path.write_bytes(encode_standard(standard_run(cpu, paced_device("RTX 3060", 2.0))))
    status, output, errors = type_in("compare", str(path))
    assert status == 0
    assert "This PC has no standard run yet" in errors
    assert "The RTX 3060. Add files" in output
    StandardFolder(tmp_path / FOLDER_NAME).keep(standard_run(paced_device("GTX 1660")))
    _, output, errors = type_in("compare", str(path))
    assert output.startswith("The RTX 3060 beats your GTX 1660 in all 9. ")
    assert not errors
    _, output, _ = type_in("compare", str(path), "--json", "--device", "cpu")
    found = json.loads(output)
    assert [side["is_here"] for side in found["sides"]] == [True, False]
    figures = {item["key"]: item["figures"] for item in found["items"]}
    assert figures["launch"][1]["verdict"] == "slower"
    assert figures["copy_in"][1]["per_second"] is None
    low, high = figures["bandwidth"][1]["ci95"]
    assert low < figures["bandwidth"][1]["per_second"] < high


def test_a_bad_file_ends_it_with_a_sentence(type_in, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"\x89PNG\r\n\x1a\n")
    status, output, errors = type_in("compare", str(bad))
    assert (status, output) == (1, "")
    assert "bad.png has lost its data" in errors
    status, _, errors = type_in("compare", *[str(bad)] * 7)
    assert status == 2
    assert "Up to 6 files" in errors
