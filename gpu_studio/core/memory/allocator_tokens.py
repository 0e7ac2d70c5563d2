"""The words of an allocator configuration, and PyTorch's errors where one is missing.

A text such as ``max_split_size_mb:128,expandable_segments:True`` is cut at ``,``, ``:``, ``[`` and
``]``, which are words too; blanks count for nothing (ConfigTokenizer in PyTorch 2.13's
c10/core/AllocatorConfig.h). PyTorch looks at no separator: any word stands for any of them.
"""

from __future__ import annotations

import math
import re

_LARGEST = (1 << 64) - 1
_WORD = re.compile(r"[,:\[\]]|[^,:\[\]]+")
_BLANKS = re.compile(r"[ \t\n\v\f\r]+")
_INTEGER = re.compile(r"([+-]?)(\d+)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_HEXADECIMAL = re.compile(
    r"[+-]?0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)(?:p[+-]?\d+)?", re.ASCII | re.IGNORECASE
)
_NAMED = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)
_SMALLEST_NORMAL = 2.0**-1022
_TOO_SHORT = "Index out of bounds in ConfigTokenizer"
NO_BRACKET = "Expected closing bracket ']' in ConfigTokenizer but reached end of config"


def internal_assert(condition: str, file: str, line: int, explanation: str) -> RuntimeError:
    """Return what PyTorch 2.13's own wheels raise where a condition of their code fails.

    Args:
        condition: the C++ expression.
        file: the C++ file, from c10 on.
        line: its line.
        explanation: the sentence after it.
    """
    return RuntimeError(
        f'{condition} INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/c10/{file}":{line}, '
        f"please report a bug to PyTorch. {explanation}"
    )


class Tokens:
    """The words by their index, each read as what it should be.

    Numbers are read as C++ reads them (``std::stoull`` and ``std::stod``): as much of the word as
    is a number counts, ``-1`` is the largest one, and an error says only the function's name.
    """

    def __init__(self, text: str) -> None:
        self._words: list[str] = _WORD.findall(_BLANKS.sub("", text))

    def __len__(self) -> int:
        return len(self._words)

    def word(self, i: int) -> str:
        """Return a word as it is (ConfigTokenizer::operator[])."""
        if i >= len(self._words):
            raise self._bounds(55)
        return self._words[i]

    def skip(self, i: int) -> int:
        """Pass over a separator; returns the index after it (ConfigTokenizer::checkToken)."""
        if i >= len(self._words):
            raise self._bounds(124)
        return i + 1

    def integer(self, i: int) -> int:
        """Return a size_t (ConfigTokenizer::toSizeT)."""
        self.skip(i)
        match = _INTEGER.match(self._words[i])
        if match is None:
            raise ValueError("stoull")
        value = int(match[2])
        if value > _LARGEST:
            raise IndexError("stoull")
        return -value & _LARGEST if match[1] == "-" else value

    def number(self, i: int) -> float:
        """Return a double (ConfigTokenizer::toDouble)."""
        self.skip(i)
        word = self._words[i]
        match = _HEXADECIMAL.match(word)
        if match is not None:
            return float.fromhex(match[0])
        match = _NAMED.match(word)
        if match is not None:
            return float(match[0])
        match = _DECIMAL.match(word)
        if match is None:
            raise ValueError("stod")
        value = float(match[0])
        is_zero = not re.search("[1-9]", re.split("[eE]", match[0])[0])
        if math.isinf(value) or (abs(value) < _SMALLEST_NORMAL and not is_zero):
            raise IndexError("stod")
        return value

    def boolean(self, i: int) -> bool:
        """Return True or False, which are case-sensitive (ConfigTokenizer::toBool)."""
        self.skip(i)
        word = self._words[i]
        if word not in ("True", "False"):
            raise ValueError(
                f"Expected 'True' or 'False' at index {i} in ConfigTokenizer but got '{word}'"
            )
        return word == "True"

    def skip_value(self, i: int) -> int:
        """Return the last index of the value from i on, a list or not (skipKey)."""
        self.skip(i)
        if self._words[i] != "[":
            return i
        while i < len(self._words):
            if self._words[i] == "]":
                return i
            i += 1
        raise internal_assert("i < config_.size()", "core/AllocatorConfig.h", 115, NO_BRACKET)

    def _bounds(self, line: int) -> RuntimeError:
        return internal_assert("i < config_.size()", "core/AllocatorConfig.h", line, _TOO_SHORT)
