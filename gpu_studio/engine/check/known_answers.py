"""Operations with answers that numpy knows, with NaN, infinities, ties and extremes.

An answer is exact, or it has a tolerance in ULPs of the dtype. The largest errors of CUDA's
functions are in NVIDIA's CUDA programming guide ("Mathematical functions", table of maximum ULP
errors: 1 to 4 for most of them in float32, 9 for a power), those of the CPU's in the papers of
SLEEF (1.0 and 3.5 ULP) and in Intel's notes on MKL's vector functions (under 1 ULP). Tolerances
are at least twice that, and the ULPs are those of a scale where an operation subtracts.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch's own documents call it

from gpu_studio.engine.check.known_work import (
    KnownWork,
    Prepared,
    exactly,
    fitted,
    laid_out,
    tensor_of,
    ulp_of,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.engine.check.stage_run import StageRun

    Array = NDArray[Any]
    Make = Callable[["Operands"], Sequence[Array]]

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int32", "int64")
_EVERY, _ORDERED = (*FLOATS, *INTEGERS), (*FLOATS, "int32", "int64")
# (shape, layout): small, odd and unaligned ones reach the ends of a kernel's loops.
_CASES = (((64, 96), "contiguous"), ((7, 5), "transposed"), ((19, 33), "strided"))
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


class Known(NamedTuple):
    """An operation and its answer.

    Attributes:
        name: PyTorch's name.
        work: from tensors to a tensor.
        answer: the same from numpy's arrays; floats are float64 in it.
        make: makes the operands.
        ulps: the tolerance; None is exact.
        scale: the tolerance is in ULPs of this at least.
        dtypes: those of the operands.
    """

    name: str
    work: Callable[..., Tensor]
    answer: Callable[..., Array]
    make: Make
    ulps: float | None = None
    scale: float = 0.0
    dtypes: tuple[str, ...] = FLOATS


def answer_works() -> list[KnownWork]:
    """Return every operation in every dtype that has it."""
    return [
        KnownWork(
            f"{known.name} in {dtype}", dtype, partial(_prepared, known, dtype), "disagreement"
        )
        for known in KNOWN
        for dtype in known.dtypes
    ]


def _prepared(known: Known, dtype: str, run: StageRun) -> Prepared:
    """Prepare an operation in each shape and layout."""
    there: list[list[Tensor]] = []
    answers: list[tuple[Array, Array]] = []
    for shape, layout in _CASES:
        operands = known.make(Operands(run.numbers, shape, dtype))
        there.append([laid_out(tensor_of(one, dtype), layout, run.device) for one in operands])
        answers.append(_answer(known, dtype, [wide(one) for one in operands]))

    def work() -> Tensor:
        results = [known.work(*operands) for operands in there]
        return torch.cat([one.detach().cpu().reshape(-1) for one in results])

    exact, slack = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    return exactly(work, exact, slack if known.ulps is not None else None)


def _answer(known: Known, dtype: str, operands: list[Array]) -> tuple[Array, Array]:
    """Return the answer and how far a result may be from it."""
    with np.errstate(all="ignore"):
        answer = wide(np.asarray(known.answer(*operands)).reshape(-1))
        if known.ulps is None:
            return answer, np.empty(0)
        reach = np.maximum(np.abs(answer), known.scale)
    # Over the largest number, an answer is infinite.
    is_over = np.abs(answer) > float(torch.finfo(getattr(torch, dtype)).max)
    answer = np.where(is_over, np.copysign(np.inf, answer), answer)
    return answer, known.ulps * ulp_of(np.where(np.isfinite(reach), reach, 0.0), dtype)


_ERF: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])
_ENDS = (np.inf, -np.inf, np.nan, 0.0, -0.0)


def _real(low: float, high: float, edges: Sequence[float] = _ENDS, count: int = 1) -> Make:
    """Return what makes real numbers and edges."""
    return lambda make: [make.real(low, high, edges) for _ in range(count)]


def _any(count: int = 1) -> Make:
    return lambda make: [make.any() for _ in range(count)]


def _divided(make: Operands) -> list[Array]:
    sign = 1 if make.dtype == "uint8" else 2 * make.numbers.integers(0, 2, make.shape) - 1
    return [make.whole(8), fitted(sign * make.numbers.integers(1, 9, make.shape), make.dtype)]


def _gradient_of_sigmoid(x: Tensor, weight: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(torch.sigmoid(leaf), leaf, weight)[0]


def _sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Array) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _layer_norm(x: Array) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def _scattered(values: Array, places: Array) -> Array:
    result = np.zeros_like(values)
    np.add.at(result, (np.arange(len(values))[:, None], places), values)
    return result


def _max_pooled(x: Array) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3))[::2, ::2].max((2, 3))


def _cast(source: str, target: str, make: Make) -> Known:
    return Known(
        f"to {target}", lambda x: x.to(getattr(torch, target)), lambda x: fitted(x, target),
        make, dtypes=(source,),
    )  # fmt: skip


KNOWN: tuple[Known, ...] = (
    Known("exp", torch.exp, np.exp, _real(-8, 8), 4),
    Known("log", torch.log, np.log, _real(0.01, 100), 4),
    Known("sin", torch.sin, np.sin, _real(-30, 30), 8, 0.01),
    Known("cos", torch.cos, np.cos, _real(-30, 30), 8, 0.01),
    Known("tan", torch.tan, np.tan, _real(-1.5, 1.5), 10),
    Known("tanh", torch.tanh, np.tanh, _real(-8, 8), 4),
    Known("erf", torch.erf, _ERF, _real(-4, 4), 4, 1.0),
    Known("sigmoid", torch.sigmoid, _sigmoid, _real(-8, 8), 6),
    Known("gelu", F.gelu, lambda x: 0.5 * x * (1 + _ERF(x / math.sqrt(2))),
          _real(-4, 4, (0.0, -0.0)), 10, 4.0),
    Known("silu", F.silu, lambda x: x * _sigmoid(x), _real(-8, 8, (np.inf, np.nan, 0.0)), 8),
    Known("rsqrt", torch.rsqrt, lambda x: 1 / np.sqrt(x), _real(0.01, 100), 4),
    Known("pow", torch.pow, np.power, _real(0.125, 4, count=2), 20),
    Known("gradient of sigmoid", _gradient_of_sigmoid,
          lambda x, weight: _sigmoid(x) * (1 - _sigmoid(x)) * weight, _real(-4, 4, (), 2), 12, 1.0),
    Known("eq", torch.eq, np.equal, lambda make: [make.whole(2), make.whole(2)], dtypes=_EVERY),
    Known("lt", torch.lt, np.less, _any(2), dtypes=_EVERY),
    Known("ge", torch.ge, np.greater_equal, _any(2), dtypes=_EVERY),
    Known("fmin", torch.fmin, np.fmin, _any(2)),
    Known("sign", torch.sign, lambda x: np.nan_to_num(np.sign(x)), _any()),
    Known("floor", torch.floor, np.floor, _any()),
    Known("round", torch.round, np.round,
          lambda make: [fitted(make.numbers.integers(-20, 21, make.shape) / 2, make.dtype)]),
    Known("nan_to_num", lambda x: x.nan_to_num(1, 2, 3), lambda x: np.nan_to_num(x, True, 1, 2, 3),
          _any()),
    Known("where", lambda a, b: torch.where(a > b, a, b),
          lambda a, b: np.asarray(np.where(a > b, a, b)), _any(2), dtypes=_EVERY),
    Known("remainder", torch.remainder, np.remainder, _divided, dtypes=_EVERY),
    Known("left shift", torch.bitwise_left_shift, np.left_shift,
          lambda make: [make.any(), fitted(make.numbers.integers(0, 8, make.shape), make.dtype)],
          dtypes=INTEGERS),
    _cast("float64", "float32", _real(-1e6, 1e6, (1 + 2.0**-24, 1e39, np.nan))),
    _cast("float32", "float16", _real(-900, 900, (1 + 2.0**-11, 7e4, 2.0**-25))),
    _cast("float32", "bfloat16", _real(-900, 900, (1 + 2.0**-8, 3.4e38))),
    _cast("float32", "int32", _real(-900, 900, (-0.5, 2.0**30))),
    _cast("int64", "float32", lambda make: [make.any() >> 32]),
    _cast("int64", "int32", _any()),
    Known("softmax", lambda x: x.softmax(-1), _softmax, _real(-4, 4, ()), 16),
    Known("layer_norm", lambda x: F.layer_norm(x, x.shape[1:]), _layer_norm, _real(-4, 4, ()), 64,
          16),
    Known("var", lambda x: x.var(-1, correction=0), lambda x: x.var(-1), _real(-4, 4, ()), 96, 5.0),
    Known("mean", lambda x: x.mean(-1), lambda x: x.mean(-1), _real(-4, 4, ()), 16, 5.0),
    Known("max with place", lambda x: x.max(1).indices, lambda x: x.argmax(1),
          lambda make: [fitted(np.argsort(make.numbers.random(make.shape), 1), make.dtype)],
          dtypes=("float32", "float64", "int32", "int64")),
    Known("cumsum", lambda x: x.cumsum(1), lambda x: np.cumsum(x, 1), lambda make: [make.whole()]),
    Known("sort", lambda x: x.sort(1).values, lambda x: np.sort(x, 1), _any(), dtypes=_ORDERED),
    Known("scatter_add", lambda x, at: torch.zeros_like(x).scatter_add_(1, at, x), _scattered,
          lambda make: [make.whole(), make.numbers.integers(0, make.shape[1], make.shape)],
          dtypes=("float32", "float64", "int32")),
    Known("max_pool2d", lambda x: F.max_pool2d(x[None, None], 3, 2)[0, 0], _max_pooled,
          _real(-4, 4, ())),
)  # fmt: skip
