"""IEEE arithmetic on random bit patterns, bit for bit: +, −, ×, ÷, √ and fused multiply-add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.engine.check.detectors import Mismatch, mismatch_at
from gpu_studio.engine.check.ieee import (
    FORMATS,
    OPERATIONS,
    FloatFormat,
    answers,
    exact,
    is_nan,
    random_operands,
    to_bits,
    to_tensor,
)
from gpu_studio.engine.check.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.engine.check.ieee import Bits
    from gpu_studio.engine.check.stage import StageBench

_COUNT, _SLOW_COUNT = 12288, 1536  # a fused float64 takes Python 10 µs a number
_SAMPLE = 48
_LARGE_TIMES, _LARGE_EVERY = 160, 4  # 2 million numbers
# √ on the CPU is MKL's, which promises under 0.55 ULP ("high accuracy"), not correct rounding: up
# to 17 % of its float32 roots are the neighbor of the nearest number.
_LARGEST_SHARE_OF_NEIGHBORS = 0.4
_SYMBOLS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "sqrt": "√", "fma": "multiply-add"}
_WORK: dict[str, Callable[..., Tensor]] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "sqrt": torch.sqrt,
    "fma": torch.addcmul,
}  # fmt: skip
_IN_PLACE: dict[str, Callable[..., Tensor]] = {
    "add": torch.Tensor.add_, "sub": torch.Tensor.sub_, "mul": torch.Tensor.mul_,
    "div": torch.Tensor.div_, "sqrt": torch.Tensor.sqrt_, "fma": torch.Tensor.addcmul_,
}  # fmt: skip


class IeeeArithmetic(Part):
    """One operation in one float dtype: plain, in place, on strided operands, and large.

    Args:
        operation: one of `ieee.OPERATIONS`.
        form: the dtype.
        turn: its place in the list: large tensors are in turns, but for float32.
    """

    def __init__(self, operation: str, form: FloatFormat, turn: int) -> None:
        self.title = f"IEEE {_SYMBOLS[operation]} in {form.name}"
        self.dtype = form.name
        self._operation, self._form, self._turn = operation, form, turn
        self._rounds = 0
        self._operands: list[Tensor] = []
        self._answers: list[Bits] = []
        self._places = np.empty(0, dtype=np.int64)
        self._is_large = self._has_neighbors = False

    def prepare(self, bench: StageBench) -> None:
        """Make new operands, their answers, and a sample of these with whole numbers alone."""
        form, operation = self._form, self._operation
        count = _SLOW_COUNT if (operation, form.name) == ("fma", "float64") else _COUNT
        operands = random_operands(form, bench.numbers, count)
        first = {"sqrt": 1, "fma": 0}.get(operation, 1)
        operands = operands[first : 2 if operation == "sqrt" else 3]
        self._answers = answers(operation, form, operands)
        self._operands = [to_tensor(bits, form).to(bench.device) for bits in operands]
        is_next = (self._turn + bench.seed + self._rounds) % _LARGE_EVERY == 0
        self._is_large, self._rounds = is_next or form.name == "float32", self._rounds + 1
        self._has_neighbors = operation == "sqrt" and not bench.is_card
        every = np.arange(count)
        pieces = [every, every[1:-1], every[: count // 3 * 3].reshape(-1, 3).T.reshape(-1)]
        if self._is_large:
            pieces.append(np.tile(every, _LARGE_TIMES))
        self._places = np.concatenate(pieces)
        self._prove_reference(bench, operands)

    def result(self, _bench: StageBench) -> Tensor:
        """Compute in each form on the device."""
        operands, operation = self._operands, self._operation
        end = len(operands[0]) // 3 * 3
        within = [operands[0].clone()[1:-1], *(one[1:-1] for one in operands[1:])]
        across = [one[:end].view(-1, 3).t() for one in operands]
        results = [
            _WORK[operation](*operands), _IN_PLACE[operation](*within), _WORK[operation](*across)
        ]  # fmt: skip
        if self._is_large:
            results.append(_WORK[operation](*(one.repeat(_LARGE_TIMES) for one in operands)))
        return torch.cat([one.cpu().reshape(-1) for one in results])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every bit with the answers; NaN has many patterns, and all are NaN."""
        bits = to_bits(seen)
        if bits.shape != self._places.shape:
            return Mismatch(len(self._places), len(self._places), 0, len(self._places) - 1)
        is_right = np.zeros(bits.shape, dtype=np.bool_)
        for answer in self._answers:
            is_right |= self._is_same(bits, answer[self._places])
        if self._has_neighbors:
            is_right |= self._are_neighbors(bits, ~is_right)
        return mismatch_at(~is_right)

    def release(self) -> None:
        """Drop operands and answers."""
        self._operands, self._answers = [], []
        self._places = np.empty(0, dtype=np.int64)

    def _is_same(self, seen: Bits, answer: Bits) -> NDArray[np.bool_]:
        are_nan = is_nan(seen, self._form) & is_nan(answer, self._form)
        result: NDArray[np.bool_] = np.equal(seen, answer) | are_nan
        return result

    def _are_neighbors(self, seen: Bits, differs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the neighbors of the nearest number; none if too many are that."""
        answer = self._answers[0][self._places]
        is_near: NDArray[np.bool_] = np.equal(seen - answer, 1) | np.equal(answer - seen, 1)
        if (differs & is_near).sum() > _LARGEST_SHARE_OF_NEIGHBORS * len(seen):
            is_near[:] = False
        return is_near

    def _prove_reference(self, bench: StageBench, operands: list[Bits]) -> None:
        """Compare a sample of the answers with whole numbers, which need no float unit."""
        form, answer = self._form, self._answers[0]
        at = bench.numbers.integers(0, len(answer), _SAMPLE)
        whole = [exact(self._operation, form, *(int(bits[one]) for bits in operands)) for one in at]
        found = mismatch_at(~self._is_same(answer[at], np.array(whole, dtype=form.bits_dtype)))
        if found is None:
            return
        sentence = (
            f"{self.title}: the CPU itself is wrong in {found.count} of {found.total} numbers, "
            "compared with whole numbers."
        )
        if bench.is_card:
            bench.report("blind", "doubt", sentence)
        else:
            bench.report(self.kind, "error", sentence, count=found.count, came_back=None)


def ieee_parts() -> list[IeeeArithmetic]:
    """Return every operation in every float dtype."""
    pairs = [(operation, form) for form in FORMATS for operation in OPERATIONS]
    return [IeeeArithmetic(*pair, turn) for turn, pair in enumerate(pairs)]
