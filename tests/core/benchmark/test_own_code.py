import os
import stat
import sys

import pytest

from gpu_studio.core.benchmark.own_code import (
    AllowedCode,
    own_code,
    question,
    read_own_code,
    whole_text,
)
from gpu_studio.core.failure import StudioError


def test_lines_keep_their_numbers_without_the_marks_of_a_page():
    pasted = "Words\n```python\nx = 1\n```\nmore\n~~~\ny = 2\n~~~\n"
    assert whole_text(pasted).split("\n")[2:7] == ["x = 1", "", "", "", "y = 2"]
    assert whole_text(">>> x = 1\n>>> for i in y:\n...     z\n1\n").split("\n") == [
        "x = 1", "for i in y:", "    z", "", "",
    ]  # fmt: skip
    assert whole_text("%matplotlib inline\nx\u00a0= 1\r\n") == "\nx = 1\n"


def test_code_is_asked_for_once_per_content_also_by_another_program(tmp_path):
    code, changed = own_code("x = 1", "a.py", "/home/a.py"), own_code("x = 2", "a.py")
    allowed = AllowedCode(tmp_path / "data")
    assert not allowed.has(code)
    allowed.add(code)
    assert allowed.has(code)
    assert AllowedCode(tmp_path / "data").has(own_code("x = 1", "b.py"))
    assert not allowed.has(changed)
    if sys.platform != "win32":
        (kept,) = (tmp_path / "data").iterdir()
        assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    assert "/home/a.py" in question(code)
    nowhere = AllowedCode(None)
    nowhere.add(code)
    assert nowhere.has(code)
    assert not AllowedCode(None).has(code)


def test_a_file_is_read_within_limits(tmp_path):
    path = tmp_path / "größe.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\n")
    code = read_own_code(path)
    assert (code.name, code.text, code.path) == ("größe.py", "x = 1\n", str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StudioError, match=r"größe\.py cannot be opened: it is not UTF-8 text"):
        read_own_code(path)
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(StudioError, match="larger than 1 MiB"):
        read_own_code(path)
    with pytest.raises(StudioError, match="it does not exist"):
        read_own_code(tmp_path / "none.py")
