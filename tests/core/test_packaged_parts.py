from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.packaged_parts import PackagedPart, licenses_text, packaged_parts

if TYPE_CHECKING:
    from pathlib import Path


def test_an_installed_program_names_its_parts(tmp_path: Path) -> None:
    row = {"name": "numpy", "version": "2.4.6", "license": "BSD-3-Clause", "files": ["numpy/L"]}
    (tmp_path / "index.json").write_text(json.dumps([row]), encoding="utf-8")
    (part,) = packaged_parts(tmp_path)
    assert part == PackagedPart("numpy", "2.4.6", "BSD-3-Clause", ("numpy/L",))
    text = licenses_text((part,), tmp_path)
    assert text.startswith("numpy 2.4.6: BSD-3-Clause\n")
    assert str(tmp_path) in text


@pytest.mark.parametrize("content", [None, b"", b"{}", b'[{"name": "numpy"}]', b"\xff"])
def test_a_list_that_is_missing_or_broken_is_no_failure(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "index.json").write_bytes(content)
    assert packaged_parts(tmp_path) == ()
    assert licenses_text(()) == ""


def test_a_checkout_has_no_list() -> None:
    assert packaged_parts() == ()
