import json


def test_finished_runs_are_kept_and_listed(engines, type_in, tmp_path):
    type_in("matmul", "--size", "64", "--transfers")
    assert len(list((tmp_path / "history").iterdir())) == 3
    type_in("matmul", "--size", "64", "--no-history")
    assert len(list((tmp_path / "history").iterdir())) == 3
    (tmp_path / "history" / "broken.json").write_text("{")
    status, output, errors = type_in("history")
    assert status == 0
    assert len(output.splitlines()) == 3
    assert output.count("with copies") == 1
    assert "GeForce GT 1030" in output
    (refused,) = errors.splitlines()
    assert refused.startswith("broken.json: ")
    _, output, _ = type_in("history", "--json")
    listed = json.loads(output)
    assert len(listed["entries"]) == 3
    assert listed["refused"][0]["file_name"] == "broken.json"


def test_results_from_another_pc_are_kept_as_recordings(type_in, tmp_path):
    path = tmp_path / "theirs.json"
    type_in("matmul", "--size", "64,128", "--device", "cpu", "--no-history", "--save", str(path))
    status, output, errors = type_in("import", str(path))
    assert (status, errors) == (0, "")
    (line,) = output.splitlines()
    assert line.startswith("2 ")
    assert "theirs.json" in line
    _, output, _ = type_in("history")
    assert output.count("theirs.json") == 2
    path.write_text("{")
    status, output, errors = type_in("import", str(path))
    assert (status, output) == (1, "")
    assert len(errors.splitlines()) == 1


def test_a_history_that_takes_nothing_is_reported_once(type_in, tmp_path):
    (tmp_path / "history").write_text("in the way")
    status, output, errors = type_in("matmul", "--size", "64,128")
    assert status == 0
    assert output.count("128 × 128  ") == 2
    assert len(errors.splitlines()) == 1
    assert "history" in errors
    assert "memory" not in errors  # which ends with the command
