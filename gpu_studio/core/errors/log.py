"""Takes the lines of a huge log that may be an error, and the lines around them.

A log of 50 MB is mostly progress. Only lines with one of the `_ROOTS` may begin an error's form,
and of lines that differ in their numbers alone, one is enough.
"""

from __future__ import annotations

import re

MOST_READ_BYTES = 64 << 20
"""The most bytes of a file that are read."""
MOST_LETTERS = 1 << 20
"""The most letters that are looked at closely."""
_ROOTS = re.compile(
    r"rror|emory|MEMORY|ailed|FAILED|CUDA|cuda|HIP|hip|XPU|sm_|xception|arning|WARN|Xid|amdgpu|fault"
    r"|illed|not |NVRM|NVML|nvidia|GPU|gpu|Triton|triton|llama|VBAR|alloc|ALLOC|symbol|\.dll|STATUS"
    r"|RESULT|DEVICE|module|magic|AUTOTUNE|space left|torch",
    re.ASCII,
)
_BEFORE, _AFTER = 2, 12
_DIGITS = re.compile(r"\d+")
# The lines of a traceback quote the program's code, which may name errors that did not happen.
_QUOTED_CODE = re.compile(
    r"(?m)^([^\n]{0,80}? File \"[^\"\n]{1,300}\", line \d{1,7}(?:, in [^\n]{0,120})?)\r?\n"
    r"(?![^\n]{0,80}? File \")[^\n]{0,80}?[ ]{4,}(?!\w+(?:\.\w+)*(?:Error|Exception)\b)[^\n]*$"
)


def decoded_text(content: bytes) -> str:
    """Decode UTF-8, or the UTF-16 that a Windows shell writes to files."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if content[1:2048:2].count(0) > len(content[1:2048:2]) // 2:  # without its first two bytes
        return content.decode("utf-16-le", "replace")
    return content.decode("utf-8", "replace")


def told_lines(text: str, most_letters: int = MOST_LETTERS) -> str:
    """Return a text without a traceback's code; of a huge one, the lines that may be errors."""
    if len(text) > most_letters:
        text = _condensed(text, most_letters)
    return _QUOTED_CODE.sub(r"\1", text)


def _condensed(text: str, most_letters: int) -> str:
    kept: list[str] = []
    seen: set[str] = set()
    length, end = 0, 0
    for match in _ROOTS.finditer(text):
        if match.start() < end:
            continue
        line_start = text.rfind("\n", 0, match.start()) + 1
        line_end = text.find("\n", match.end())
        line_end = len(text) if line_end < 0 else line_end
        line = _DIGITS.sub("0", text[line_start : min(line_end, line_start + 400)])
        if line in seen:
            end = line_end
            continue
        seen.add(line)
        start = max(end, _back(text, line_start, _BEFORE))
        end = min(_forth(text, line_end, _AFTER), start + 20_000)
        kept.append(text[start:end])
        length += end - start
        if length >= most_letters:
            break
    return "\n".join(kept)[:most_letters]


def _back(text: str, at: int, lines: int) -> int:
    for _ in range(lines):
        at = text.rfind("\n", 0, max(0, at - 1)) + 1
    return at


def _forth(text: str, at: int, lines: int) -> int:
    for _ in range(lines):
        after = text.find("\n", at + 1)
        if after < 0:
            return len(text)
        at = after
    return at
