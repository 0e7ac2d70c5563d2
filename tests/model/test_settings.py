from __future__ import annotations

import json

import pytest

from gpu_studio.model.settings import Choices, Settings


def test_a_change_is_kept_and_told(tmp_path, qtbot):
    path = tmp_path / "settings.json"
    settings = Settings(path)
    with qtbot.waitSignal(settings.choices_changed) as told:
        settings.change(theme="dark", budget_s=5.0)
    assert told.args[0].theme == "dark"
    assert Settings(path).choices == settings.choices


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\x00\xff", "[" * 50000, '{"theme": 1e999999}']
)
def test_a_broken_file_is_the_defaults(tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text, encoding="latin-1")
    assert Settings(path).choices == Choices()


@pytest.mark.parametrize(
    ("field", "bad"),
    [("theme", "pink"), ("theme", 3), ("budget_s", -1), ("budget_s", "x"), ("first_tab", 9)],
)
def test_one_bad_value_loses_only_itself(tmp_path, field, bad):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"engine": "window", field: bad}), encoding="utf-8")
    choices = Settings(path).choices
    assert getattr(choices, field) == getattr(Choices(), field)
    assert choices.engine == "window"


def test_a_folder_that_cannot_be_written_loses_only_the_keeping(tmp_path, caplog):
    settings = Settings(tmp_path / "absent" / "settings.json")
    settings.change(theme="dark")
    assert settings.choices.theme == "dark"
    assert "could not be kept" in caplog.text


@pytest.mark.parametrize("bad", ['"64"', '"1:2:3"', "7", f'"{"9" * 1001}:4"'])
def test_a_range_that_is_none_is_the_default(qapp, tmp_path, bad):
    path = tmp_path / "settings.json"
    path.write_text(f'{{"sweep_range": {bad}, "modes": ["naive"], "sweep": true}}')
    choices = Settings(path).choices
    assert choices.sweep_range == "64:4096"
    assert (choices.modes, choices.sweep) == (("naive",), True)
