"""Operations with answers that numpy knows, with NaN, infinities, ties and extremes.

An answer is exact, or it has a tolerance in ULPs of the dtype. The largest errors of CUDA's
functions are in NVIDIA's CUDA programming guide ("Mathematical functions", table of maximum ULP
errors: 1 to 4 for most of them in float32, 9 for a power), those of the CPU's in the papers of
SLEEF (1.0 and 3.5 ULP) and in Intel's notes on MKL's vector functions (under 1 ULP). Tolerances
are at least twice that, and the ULPs are those of a scale where an operation subtracts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch's own documents call it

from gpu_studio.engine.check.detectors import Mismatch, mismatch_at
from gpu_studio.engine.check.formats import (
    differing,
    fitted,
    laid_out,
    tensor_of,
    ulp_of,
    values_of,
    wide,
)
from gpu_studio.engine.check.parts import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.core.messages.check_messages import FindingKind
    from gpu_studio.engine.check.stage import StageBench

    Array = NDArray[Any]
    Make = Callable[["Operands"], Sequence[Array]]

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int32", "int64")
_ORDERED = (*FLOATS, "int32", "int64")
# (shape, layout): small, odd and unaligned ones reach the ends of a kernel's loops.
_CASES = (((64, 96), "contiguous"), ((7, 5), "transposed"), ((19, 33), "strided"))
_LARGE = (330, 320)
_LARGE_DTYPES = ("float32", "int64")
_TIMES = _LARGE[0] * _LARGE[1] // (64 * 96) + 1
_EDGES = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -2.5)


class Operands:
    """Makes operands of one shape and dtype, each representable in the dtype."""

    def __init__(self, numbers: np.random.Generator, shape: tuple[int, int], dtype: str) -> None:
        self.numbers, self.shape, self.dtype = numbers, shape, dtype

    def real(self, low: float, high: float, edges: Sequence[float] = ()) -> Array:
        """Return real numbers in a range, a quarter of them small; an eighth are edges."""
        values = self.numbers.uniform(low, high, self.shape)
        shrink = np.ldexp(1.0, -self.numbers.integers(0, 8, self.shape))
        is_small = self.numbers.integers(0, 4, self.shape) == 0
        values = np.clip(values * np.where(is_small, shrink, 1.0), low, high)
        if edges:
            chosen = np.asarray(edges)[self.numbers.integers(0, len(edges), self.shape)]
            values = np.where(self.numbers.integers(0, 8, self.shape) == 0, chosen, values)
        return fitted(values, self.dtype)

    def whole(self, largest: int | None = None) -> Array:
        """Return whole numbers whose sums over a row stay exact in the dtype; many are equal."""
        limit = largest or {"bfloat16": 1, "float16": 3}.get(self.dtype, 8)
        low = 0 if self.dtype == "uint8" else -limit
        return fitted(self.numbers.integers(low, limit + 1, self.shape), self.dtype)

    def any(self) -> Array:
        """Return all numbers of an integer dtype; of a float, real ones and edges."""
        if self.dtype in FLOATS:
            return self.real(-1000.0, 1000.0, _EDGES)
        limits = np.iinfo(self.dtype)
        return self.numbers.integers(
            limits.min, limits.max, self.shape, dtype=self.dtype, endpoint=True
        )

    def different(self) -> Array:
        """Return numbers that are all different in each row, as far as the dtype has them."""
        return fitted(np.argsort(self.numbers.random(self.shape), axis=1), self.dtype)

    def places(self, axis: int = 1) -> Array:
        """Return indices along an axis, int64; many occur several times."""
        return self.numbers.integers(0, self.shape[axis], self.shape)


@dataclass(frozen=True, slots=True)
class Known:
    """An operation and its answer.

    Attributes:
        name: PyTorch's name.
        work: from tensors to a tensor.
        answer: the same from numpy's arrays; floats are float64 in it.
        make: makes the operands.
        dtypes: those of the operands.
        ulps: the tolerance; None is exact.
        scale: the tolerance is in ULPs of this at least: a number, or made of the operands.
        is_elementwise: whether each element has its own answer.
    """

    name: str
    work: Callable[..., Tensor]
    answer: Callable[..., Array]
    make: Make
    dtypes: tuple[str, ...] = FLOATS
    ulps: float | None = None
    scale: float | Callable[..., Array] = 0.0
    is_elementwise: bool = True


class KnownAnswer(Part):
    """One operation in one dtype."""

    kind: FindingKind = "disagreement"

    def __init__(self, known: Known, dtype: str) -> None:
        self.title = f"{known.name} in {dtype}"
        self.dtype = dtype
        self._known = known
        self._operands: list[list[Tensor]] = []
        self._exact: Array = np.empty(0)
        self._slack: Array | None = None

    def prepare(self, bench: StageBench) -> None:
        """Make new operands in each shape and layout, and their answers."""
        known = self._known
        answers: list[Array] = []
        slacks: list[Array] = []
        self._operands.clear()
        cases: tuple[tuple[tuple[int, int], str], ...] = _CASES
        if not known.is_elementwise and self.dtype in _LARGE_DTYPES:
            cases = (*cases, (_LARGE, "contiguous"))
        for shape, layout in cases:
            operands = list(known.make(Operands(bench.numbers, shape, self.dtype)))
            self._operands.append([self._placed(one, layout, bench) for one in operands])
            answer, slack = self._answer([wide(one) for one in operands])
            answers.append(answer)
            slacks.append(slack)
        if known.is_elementwise:  # the first case again and again
            self._operands.append([one.repeat(_TIMES, 1) for one in self._operands[0]])
            answers.append(np.tile(answers[0], _TIMES))
            slacks.append(np.tile(slacks[0], _TIMES))
        self._exact = np.concatenate(answers)
        self._slack = None if known.ulps is None else np.concatenate(slacks)

    def result(self, _bench: StageBench) -> Tensor:
        """Do the work on the device, on all operands."""
        results = [self._known.work(*operands) for operands in self._operands]
        return torch.cat([one.detach().cpu().reshape(-1) for one in results])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with its answer."""
        return mismatch_at(differing(values_of(seen), self._exact, self._slack))

    def _placed(self, values: Array, layout: str, bench: StageBench) -> Tensor:
        dtype = self.dtype if values.dtype.kind == "f" else str(values.dtype)
        return laid_out(tensor_of(values, dtype), layout, bench.device)

    def _answer(self, operands: list[Array]) -> tuple[Array, Array]:
        """Return the answer and how far a result may be from it."""
        known = self._known
        with np.errstate(all="ignore"):
            answer = wide(np.asarray(known.answer(*operands)).reshape(-1))
            if known.ulps is None:
                return answer, np.empty(0)
            scale = known.scale(*operands) if callable(known.scale) else known.scale
            size = np.broadcast_to(np.abs(np.asarray(scale)).reshape(-1), answer.shape)
            reach = np.maximum(np.abs(answer), size)
        # Over the largest number, an answer is infinite.
        is_over = np.abs(answer) > float(torch.finfo(getattr(torch, self.dtype)).max)
        answer = np.where(is_over, np.copysign(np.inf, answer), answer)
        return answer, known.ulps * ulp_of(np.where(np.isfinite(reach), reach, 0.0), self.dtype)


def known_parts() -> list[Part]:
    """Return every operation in every dtype that has it."""
    return [KnownAnswer(known, dtype) for known in KNOWN for dtype in known.dtypes]


# --- how rows of the table are made -------------------------------------------------------------


_ERF: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])
_ERFC: Callable[[Array], Array] = np.vectorize(math.erfc, otypes=[np.float64])
_ENDS = (np.inf, -np.inf, np.nan, 0.0, -0.0)


def _function(
    name: str, work: Callable[..., Tensor], answer: Callable[..., Array], low: float, high: float,
    ulps: float = 4, scale: float | Callable[..., Array] = 0.0, edges: Sequence[float] = _ENDS,
    count: int = 1,
) -> Known:  # fmt: skip
    """Return a function of real numbers and of edges."""

    def make(operands: Operands) -> list[Array]:
        return [operands.real(low, high, edges) for _ in range(count)]

    return Known(name, work, answer, make, FLOATS, ulps, scale)


def _row(
    name: str, work: Callable[..., Tensor], answer: Callable[..., Array], make: Make,
    dtypes: tuple[str, ...] = _ORDERED, ulps: float | None = None,
    scale: float | Callable[..., Array] = 0.0,
) -> Known:  # fmt: skip
    """Return an operation on whole rows, columns or places."""
    return Known(name, work, answer, make, dtypes, ulps, scale, is_elementwise=False)


def _gradient(work: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the gradient of a function, times a second operand."""

    def backward(x: Tensor, weight: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(work(leaf), leaf, weight)
        return gradient

    return backward


def _any(make: Operands) -> list[Array]:
    return [make.any()]


def _larger(a: Array, b: Array) -> Array:
    result: Array = np.where(a > b, a, b)
    return result


def _two(make: Operands) -> list[Array]:
    return [make.any(), make.any()]


def _whole(make: Operands) -> list[Array]:
    return [make.whole()]


def _different(make: Operands) -> list[Array]:
    return [make.different()]


def _reals(make: Operands) -> list[Array]:
    return [make.real(-4, 4)]


def _two_reals(make: Operands) -> list[Array]:
    return [make.real(-4, 4), make.real(-4, 4)]


def _divided(make: Operands) -> list[Array]:
    sign = 1 if make.dtype == "uint8" else 2 * make.numbers.integers(0, 2, make.shape) - 1
    return [make.whole(8), fitted(sign * make.numbers.integers(1, 9, make.shape), make.dtype)]


def _ties(make: Operands) -> list[Array]:
    return [fitted(make.numbers.integers(-20, 21, make.shape) / 2, make.dtype)]


def _with_places(make: Operands) -> list[Array]:
    return [make.whole(), make.places()]


def _with_rows(make: Operands) -> list[Array]:
    return [make.whole(1), make.places(0)]


def _sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def _slope_of_softmax(x: Array, weight: Array) -> Array:
    shares = _softmax(x)
    result: Array = shares * (weight - (shares * weight).sum(-1, keepdims=True))
    return result


def _layer_norm(x: Array) -> Array:
    result: Array = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return result


def _added_rows(values: Array, rows: Array) -> Array:
    result = np.zeros_like(values)
    np.add.at(result, rows[:, 0], values)
    return result


def _scattered(values: Array, places: Array) -> Array:
    result = np.zeros_like(values)
    np.add.at(result, (np.arange(len(values))[:, None], places), values)
    return result


def _windows(x: Array, size: int, step: int) -> Array:
    every = np.lib.stride_tricks.sliding_window_view(x, (size, size))
    return every[::step, ::step]


def _cumulative(x: Array) -> Array:
    return np.cumsum(x, axis=1, dtype=np.int64 if x.dtype.kind in "iu" else None)


def _cast(source: str, target: str, make: Make) -> Known:
    return Known(
        f"to {target}", lambda x: x.to(getattr(torch, target)), lambda x: fitted(x, target),
        make, (source,),
    )  # fmt: skip


KNOWN: tuple[Known, ...] = (
    _function("exp", torch.exp, np.exp, -8, 8),
    _function("expm1", torch.expm1, np.expm1, -8, 8),
    _function("log", torch.log, np.log, 0.01, 100),
    _function("log2", torch.log2, np.log2, 0.01, 100),
    _function("log1p", torch.log1p, np.log1p, -0.9, 100),
    _function("sin", torch.sin, np.sin, -30, 30, 8, 0.01),
    _function("cos", torch.cos, np.cos, -30, 30, 8, 0.01),
    _function("tan", torch.tan, np.tan, -1.5, 1.5, 10),
    _function("tanh", torch.tanh, np.tanh, -8, 8),
    _function("asin", torch.asin, np.arcsin, -1, 1, 8),
    _function("atan", torch.atan, np.arctan, -30, 30, 6),
    _function("erf", torch.erf, _ERF, -4, 4, 4, 1.0),
    _function("erfc", torch.erfc, _ERFC, -4, 3, 12),
    _function("sigmoid", torch.sigmoid, _sigmoid, -8, 8, 6),
    _function("gelu", F.gelu, lambda x: 0.5 * x * (1 + _ERF(x / math.sqrt(2))), -4, 4, 10,
              lambda x: x, (0.0, -0.0)),
    _function("silu", F.silu, lambda x: x * _sigmoid(x), -8, 8, 8, edges=(np.inf, np.nan, 0.0)),
    _function("rsqrt", torch.rsqrt, lambda x: 1 / np.sqrt(x), 0.01, 100),
    _function("reciprocal", torch.reciprocal, lambda x: 1 / x, 0.01, 100, 1),
    _function("pow", torch.pow, np.power, 0.125, 4, 20, count=2),
    _function("atan2", torch.atan2, np.arctan2, -8, 8, 8, count=2),
    _function("lerp", lambda a, b: a.lerp(b, 0.3), lambda a, b: a + 0.3 * (b - a), -8, 8, 4,
              lambda a, b: np.abs(a) + np.abs(b), (0.0,), 2),
    _row("softmax", lambda x: x.softmax(-1), _softmax, _reals, FLOATS, 16),
    _row("log_softmax", lambda x: x.log_softmax(-1), lambda x: np.log(_softmax(x)), _reals, FLOATS,
         16, 4.0),
    _row("layer_norm", lambda x: F.layer_norm(x, x.shape[1:]), _layer_norm, _reals, FLOATS, 64, 16),
    _row("norm", lambda x: x.norm(dim=-1), lambda x: np.sqrt((x * x).sum(-1)), _reals, FLOATS, 16),
    _row("var", lambda x: x.var(-1, correction=0), lambda x: x.var(-1), _reals, FLOATS, 96, 5.0),
    _row("mean", lambda x: x.mean(-1), lambda x: x.mean(-1), _reals, FLOATS, 16, 5.0),
    Known("gradient of sigmoid", _gradient(torch.sigmoid),
          lambda x, weight: _sigmoid(x) * (1 - _sigmoid(x)) * weight, _two_reals, FLOATS, 12, 1.0),
    _row("gradient of softmax", _gradient(lambda x: x.softmax(-1)), _slope_of_softmax, _two_reals,
         FLOATS, 32, 4.0),
    Known("eq", torch.eq, np.equal, lambda make: [make.whole(2), make.whole(2)],
          (*FLOATS, *INTEGERS)),
    Known("lt", torch.lt, np.less, _two, (*FLOATS, *INTEGERS)),
    Known("ge", torch.ge, np.greater_equal, _two, (*FLOATS, *INTEGERS)),
    Known("maximum", torch.maximum, np.maximum, _two, (*FLOATS, *INTEGERS)),
    Known("fmin", torch.fmin, np.fmin, _two),
    Known("clamp", lambda x: x.clamp(-1, 5), lambda x: np.clip(x, -1, 5), _any, _ORDERED),
    Known("sign", torch.sign, lambda x: np.nan_to_num(np.sign(x)), _any),
    Known("floor", torch.floor, np.floor, _any),
    Known("round", torch.round, np.round, _ties),
    Known("nan_to_num", lambda x: x.nan_to_num(1, 2, 3), lambda x: np.nan_to_num(x, True, 1, 2, 3),
          _any),
    Known("where", lambda a, b: torch.where(a > b, a, b), _larger, _two,
          (*FLOATS, *INTEGERS)),
    Known("remainder", torch.remainder, np.remainder, _divided, (*FLOATS, *INTEGERS)),
    Known("floor_divide", torch.floor_divide, np.floor_divide, _divided, (*FLOATS, *INTEGERS)),
    Known("left shift", torch.bitwise_left_shift, np.left_shift,
          lambda make: [make.any(), fitted(make.numbers.integers(0, 8, make.shape), make.dtype)],
          INTEGERS),
    _cast("float64", "float32", lambda make: [make.real(-1e6, 1e6, (1 + 2.0**-24, 1e39, np.nan))]),
    _cast("float32", "float16", lambda make: [make.real(-900, 900, (1 + 2.0**-11, 7e4, 2.0**-25))]),
    _cast("float32", "bfloat16", lambda make: [make.real(-900, 900, (1 + 2.0**-8, 3.4e38))]),
    _cast("float32", "int32", lambda make: [make.real(-900, 900, (-0.5, 2.0**30))]),
    _cast("int64", "float32", lambda make: [make.any() >> 32]),
    _cast("int64", "int32", _any),
    _row("sum", lambda x: x.sum(0), lambda x: x.sum(0), _whole),
    _row("cumsum", lambda x: x.cumsum(1), _cumulative, _whole),
    _row("amax", lambda x: x.amax(1), lambda x: x.max(1), _any),
    _row("max with place", lambda x: x.max(1).indices, lambda x: x.argmax(1), _different,
         ("float32", "float64", "int32", "int64")),
    _row("sort", lambda x: x.sort(1).values, lambda x: np.sort(x, 1), _any),
    _row("topk", lambda x: x.topk(3, dim=1).values, lambda x: -np.sort(-x, 1)[:, :3], _different),
    _row("gather", lambda x, at: x.gather(1, at), lambda x, at: np.take_along_axis(x, at, 1),
         _with_places),
    _row("scatter_add", lambda x, at: torch.zeros_like(x).scatter_add_(1, at, x), _scattered,
         _with_places, ("float32", "float64", "int32")),
    _row("index_add", lambda x, at: torch.zeros_like(x).index_add_(0, at[:, 0].contiguous(), x),
         _added_rows, _with_rows, ("float32", "float64", "int32")),
    _row("max_pool2d", lambda x: F.max_pool2d(x[None, None], 3, 2)[0, 0],
         lambda x: _windows(x, 3, 2).max((2, 3)), _reals, FLOATS),
    _row("cat", lambda a, b: torch.cat([a, b], 1), lambda a, b: np.concatenate([a, b], 1), _two),
)  # fmt: skip
