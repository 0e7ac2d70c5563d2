"""Operations with one exact answer, in every dtype that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch's own documents call it

from gpu_studio.engine.check.known_answers import (
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    WIDE_FLOATS,
    Known,
    Operands,
    fitted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[Any]
    Make = Callable[[Operands], Sequence[Array]]

_ALL = (*NUMBERS, *BOOL)
_SUMS = (*NUMBERS, *COMPLEX)


def _two_of_any(make: Operands) -> list[Array]:
    return [make.any(), make.any()]


def _any(make: Operands) -> list[Array]:
    return [make.any()]


def _two_whole(make: Operands) -> list[Array]:
    return [make.whole(), make.whole()]


def _whole(make: Operands) -> list[Array]:
    return [make.whole()]


def _few_values(make: Operands) -> list[Array]:
    """Return whole numbers that are often equal, and a few of any kind."""
    return [make.whole(2), make.whole(2)]


def _by_above_zero(make: Operands) -> list[Array]:
    return [make.whole(8), make.above_zero(8)]


def _with_shift(make: Operands) -> list[Array]:
    return [make.any(), fitted(make.numbers.integers(0, 7, make.shape), make.dtype)]


def _edges(make: Operands) -> list[Array]:
    """Return two floats with infinities, NaN and both zeros among them."""
    both = []
    for _ in range(2):
        values = make.real(-3, 3)
        edges = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, 0.5, 1.5, 2.5, -0.5])
        chosen = edges[make.numbers.integers(0, len(edges), make.shape)]
        both.append(np.where(make.mask(), values, chosen).astype(values.dtype))
    return both


def _different(make: Operands) -> list[Array]:
    """Return whole numbers that are all different in each row, as far as the dtype has them."""
    rows, columns = make.shape
    order = np.argsort(make.numbers.random((rows, columns)), axis=1)
    return [fitted(order, make.dtype)]


def _with_row(make: Operands) -> list[Array]:
    rows, columns = make.shape
    order = make.numbers.permutation(rows).astype(np.int64)
    return [make.whole(), np.repeat(order[:, None], columns, axis=1)]


def _with_places(make: Operands) -> list[Array]:
    return [make.whole(), make.places(make.shape[1])]


def _same(
    name: str, work: Callable[..., Tensor], answer: Callable[..., Array], operands: Make,
    dtypes: tuple[str, ...], *, is_elementwise: bool = True,
) -> Known:  # fmt: skip
    return Known(name, work, answer, operands, dtypes, is_elementwise=is_elementwise)


def _whole_rows(
    name: str, work: Callable[..., Tensor], answer: Callable[..., Array], operands: Make = _whole,
    dtypes: tuple[str, ...] = NUMBERS,
) -> Known:  # fmt: skip
    return _same(name, work, answer, operands, dtypes, is_elementwise=False)


def _cumulative(values: Array) -> Array:
    return np.cumsum(values, axis=1, dtype=np.int64 if values.dtype.kind in "iu" else None)


def _signs(make: Operands) -> list[Array]:
    """Return factors of 1 and −1, of 1 and 2 where there are no signs."""
    if make.dtype == "uint8":
        return [np.ones(make.shape, dtype=np.uint8)]
    return [fitted(1 - 2 * make.numbers.integers(0, 2, make.shape), make.dtype)]


def _summed(values: Array, axis: int) -> Array:
    result: Array = values.sum(axis, dtype=np.int64 if values.dtype.kind in "iub" else None)
    return result


def _scattered(values: Array, places: Array) -> Array:
    result = np.zeros_like(values)
    np.add.at(result, (np.arange(len(values))[:, None], places), values)
    return result


def _scatter_add(values: Tensor, places: Tensor) -> Tensor:
    return torch.zeros_like(values).scatter_add_(1, places, values)


def _index_added(values: Array, rows: Array) -> Array:
    result = np.zeros_like(values)
    np.add.at(result, rows[:, 0], values)
    return result


def _index_add(values: Tensor, rows: Tensor) -> Tensor:
    return torch.zeros_like(values).index_add_(0, rows[:, 0].contiguous(), values)


def _put(values: Tensor, rows: Tensor) -> Tensor:
    result = torch.zeros_like(values)
    result[rows[:, 0]] = values
    return result


def _put_in_numpy(values: Array, rows: Array) -> Array:
    result = np.zeros_like(values)
    result[rows[:, 0]] = values
    return result


def _copied(values: Tensor, rows: Tensor) -> Tensor:
    return torch.zeros_like(values).index_copy_(0, rows[:, 0].contiguous(), values)


def _top(values: Tensor) -> Tensor:
    return values.topk(values.shape[1] // 2 + 1, dim=1).values


def _top_in_numpy(values: Array) -> Array:
    return -np.sort(-values.astype(np.float64), axis=1)[:, : values.shape[1] // 2 + 1]


_COMPARISONS: tuple[Known, ...] = tuple(
    _same(name, getattr(torch, name), getattr(np, numpy_name), operands, dtypes)
    for name, numpy_name in (
        ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"),
        ("gt", "greater"), ("ge", "greater_equal"),
    )
    for operands, dtypes in ((_edges, FLOATS), (_few_values, (*INTEGERS, *BOOL)))
)  # fmt: skip

_ROUNDING: tuple[Known, ...] = tuple(
    _same(name, getattr(torch, name), getattr(np, name), operands, FLOATS)
    for name in ("floor", "ceil", "trunc", "round")
    for operands in (lambda make: [make.real(-200, 200)], lambda make: _edges(make)[:1])
)

_CASTS: tuple[Known, ...] = tuple(
    _same(
        f"to {target}", lambda x, target=target: x.to(getattr(torch, target)),
        lambda x, target=target: fitted(x, target), operands, dtypes,
    )
    for target in (*NUMBERS, *COMPLEX, *BOOL)
    for operands, dtypes in (
        (lambda make: [np.abs(make.whole())], tuple(one for one in _ALL if one != target)),
    )
)  # fmt: skip

# Rounding of a number that the smaller dtype lacks.
_ROUNDED_CASTS: tuple[Known, ...] = tuple(
    _same(
        f"to {target}, rounded", lambda x, target=target: x.to(getattr(torch, target)),
        lambda x, target=target: fitted(x, target), operands, (source,),
    )
    for source, target, operands in (
        ("float64", "float32", lambda make: [make.real(-1e6, 1e6)]),
        ("float64", "float16", lambda make: [fitted(make.real(-900, 900), "float32").astype("f8")]),
        ("float32", "float16", lambda make: [make.real(-900, 900)]),
        ("float32", "bfloat16", lambda make: [make.real(-900, 900)]),
        ("float32", "int16", lambda make: [make.real(-900, 900)]),
        ("float64", "int64", lambda make: [make.real(-1e15, 1e15)]),
        ("int32", "float32", _any), ("int64", "float64", _any), ("int64", "int32", _any),
        ("int32", "int8", _any), ("int16", "uint8", _any),
    )
)  # fmt: skip

NUMBERS_KNOWN: tuple[Known, ...] = (
    _same("add", torch.add, np.add, _two_of_any, INTEGERS),
    _same("sub", torch.sub, np.subtract, _two_of_any, INTEGERS),
    _same("mul", torch.mul, np.multiply, _two_of_any, INTEGERS),
    _same("add of a number", lambda x: x + 3, lambda x: x + x.dtype.type(3), _whole,
          (*INTEGERS, *COMPLEX, *FLOATS)),
    _same("mul by a number", lambda x: x * 3, lambda x: x * x.dtype.type(3), _whole,
          (*INTEGERS, *COMPLEX, *FLOATS)),
    _same("addcmul", lambda a, b: a.addcmul(b, b, value=1), lambda a, b: a + b * b, _two_whole,
          (*INTEGERS, *FLOATS)),
    _same("add, complex", torch.add, np.add, _two_whole, COMPLEX),
    _same("sub, complex", torch.sub, np.subtract, _two_whole, COMPLEX),
    _same("mul, complex", torch.mul, np.multiply, _two_whole, COMPLEX),
    Known("div, complex", lambda a, b: a / (b + 20), lambda a, b: a / (b + 20), _two_whole,
          COMPLEX, 16, 0.5),
    _same("square of the magnitude", lambda x: (x * x.conj()).real, lambda x: (x * x.conj()).real,
          _whole, COMPLEX),
    _same("real part", lambda x: x.real, lambda x: x.real, _whole, COMPLEX),
    _same("conjugate", lambda x: x.conj().resolve_conj(), np.conj, _whole, COMPLEX),
    _same("neg", torch.neg, np.negative, _whole, (*_SUMS,)),
    _same("abs", torch.abs, np.abs, _whole, NUMBERS),
    _same("sign", torch.sign, np.sign, _whole, NUMBERS),
    _same("square", torch.square, np.square, _whole, NUMBERS),
    _same("relu", torch.relu, lambda x: np.maximum(x, 0), _whole, NUMBERS),
    _same("clamp", lambda x: x.clamp(1, 5), lambda x: np.clip(x, 1, 5), _whole, NUMBERS),
    _same("maximum", torch.maximum, np.maximum, _two_of_any, _ALL),
    _same("minimum", torch.minimum, np.minimum, _two_of_any, _ALL),
    _same("fmax", torch.fmax, np.fmax, _edges, FLOATS),
    _same("fmin", torch.fmin, np.fmin, _edges, FLOATS),
    _same("isnan", torch.isnan, np.isnan, _edges_of_one := lambda make: _edges(make)[:1], FLOATS),
    _same("isinf", torch.isinf, np.isinf, _edges_of_one, FLOATS),
    _same("isfinite", torch.isfinite, np.isfinite, _edges_of_one, FLOATS),
    _same("signbit", torch.signbit, np.signbit, _edges_of_one, FLOATS),
    _same("nan_to_num", lambda x: x.nan_to_num(1, 2, 3), lambda x: np.nan_to_num(x, True, 1, 2, 3),
          _edges_of_one, FLOATS),
    _same("copysign", torch.copysign, np.copysign, lambda make: [make.real(-8, 8) for _ in "ab"],
          FLOATS),
    _same("frac", torch.frac, lambda x: x - np.trunc(x), lambda make: [make.real(-200, 200)],
          FLOATS),
    _same("fmod", torch.fmod, np.fmod, _by_above_zero, NUMBERS),
    _same("remainder", torch.remainder, np.remainder, _by_above_zero, NUMBERS),
    _same("floor_divide", torch.floor_divide, np.floor_divide, _by_above_zero, NUMBERS),
    _same("bitwise_and", torch.bitwise_and, np.bitwise_and, _two_of_any, (*INTEGERS, *BOOL)),
    _same("bitwise_or", torch.bitwise_or, np.bitwise_or, _two_of_any, (*INTEGERS, *BOOL)),
    _same("bitwise_xor", torch.bitwise_xor, np.bitwise_xor, _two_of_any, (*INTEGERS, *BOOL)),
    _same("bitwise_not", torch.bitwise_not, np.bitwise_not, _any, (*INTEGERS, *BOOL)),
    _same("left shift", torch.bitwise_left_shift, np.left_shift, _with_shift, INTEGERS),
    _same("right shift", torch.bitwise_right_shift, np.right_shift, _with_shift, INTEGERS),
    _same("logical_and", torch.logical_and, np.logical_and, _few_values, _ALL),
    _same("logical_or", torch.logical_or, np.logical_or, _few_values, _ALL),
    _same("logical_xor", torch.logical_xor, np.logical_xor, _few_values, _ALL),
    _same("logical_not", torch.logical_not, np.logical_not, _few_of_one := lambda make: [
          make.whole(1)], _ALL),
    *_COMPARISONS,
    *_ROUNDING,
    *_CASTS,
    *_ROUNDED_CASTS,
    _same("where", torch.where, np.where, lambda make: [make.mask(), make.any(), make.any()], _ALL),
    _same("masked_fill", lambda x, mask: x.masked_fill(mask, 1), lambda x, mask: np.where(
          mask, x.dtype.type(1), x), lambda make: [make.any(), make.mask()], _ALL),
    _same("clone", torch.clone, np.copy, _any, _ALL),
    _whole_rows("sum", lambda x: x.sum(0), lambda x: _summed(x, 0), dtypes=_SUMS),
    _whole_rows("sum of rows", lambda x: x.sum(1), lambda x: _summed(x, 1), dtypes=(*_SUMS, *BOOL)),
    _whole_rows("prod", lambda x: x.prod(1), lambda x: x.prod(1), _signs),
    _whole_rows("cumsum", lambda x: x.cumsum(1), _cumulative),
    _whole_rows("cumprod", lambda x: x.cumprod(1), lambda x: np.cumprod(x, 1), _signs),
    _whole_rows("amax", lambda x: x.amax(1), lambda x: x.max(1), _any),
    _whole_rows("amin", lambda x: x.amin(0), lambda x: x.min(0), _any),
    _whole_rows("max with place", lambda x: x.max(1).indices, lambda x: x.argmax(1), _different,
                (*WIDE_FLOATS, "int32", "int64")),
    _whole_rows("argmin", lambda x: x.argmin(1), lambda x: x.argmin(1), _different,
                (*WIDE_FLOATS, "int32", "int64")),
    _whole_rows("sort", lambda x: x.sort(1).values, lambda x: np.sort(x, 1), _any),
    _whole_rows("argsort", lambda x: x.argsort(1), lambda x: x.argsort(1), _different,
                (*WIDE_FLOATS, "int32", "int64")),
    _whole_rows("topk", _top, _top_in_numpy, _different, ("float32", "float64", "int32")),
    _whole_rows("any", lambda x: (x > 1).any(1), lambda x: (x > 1).any(1)),
    _whole_rows("all", lambda x: (x < 8).all(1), lambda x: (x < 8).all(1)),
    _whole_rows("count_nonzero", lambda x: x.count_nonzero(1), lambda x: np.count_nonzero(x, 1),
                dtypes=_ALL),
    _whole_rows("gather", lambda x, at: x.gather(1, at), lambda x, at: np.take_along_axis(x, at, 1),
                _with_places),
    _whole_rows("scatter_add", _scatter_add, _scattered, lambda make: [
                make.whole(1), make.places(make.shape[1])], ("float32", "float64", "int32")),
    _whole_rows("index_select", lambda x, rows: x.index_select(0, rows[:, 0].contiguous()),
                lambda x, rows: x[rows[:, 0]], _with_row, (*_ALL, *COMPLEX)),
    _whole_rows("index_add", _index_add, _index_added, _with_row, ("float32", "float64", "int32")),
    _whole_rows("index_copy", _copied, _put_in_numpy, _with_row),
    _whole_rows("index_put", _put, _put_in_numpy, _with_row, (*_ALL, *COMPLEX)),
    _whole_rows("take", lambda x, at: x.take(at), lambda x, at: x.reshape(-1)[at], _with_places),
    _whole_rows("embedding", lambda x, rows: F.embedding(rows[:, 0], x),
                lambda x, rows: x[rows[:, 0]], _with_row, FLOATS),
    _whole_rows("flip", lambda x: x.flip(1), lambda x: x[:, ::-1], _any, _ALL),
    _whole_rows("roll", lambda x: x.roll(2, 1), lambda x: np.roll(x, 2, 1), _any, _ALL),
    _whole_rows("transpose", lambda x: x.t().contiguous(), lambda x: x.T, _any, _ALL),
    _whole_rows("cat", lambda a, b: torch.cat([a, b], 1), lambda a, b: np.concatenate([a, b], 1),
                _two_of_any, _ALL),
    _whole_rows("stack", lambda a, b: torch.stack([a, b]), lambda a, b: np.stack([a, b]),
                _two_of_any, _ALL),
    _whole_rows("tril", torch.tril, np.tril, _any),
    _whole_rows("triu", torch.triu, np.triu, _any),
    _whole_rows("pad", lambda x: F.pad(x, (1, 2), value=0), lambda x: np.pad(x, ((0, 0), (1, 2))),
                _any),
    _whole_rows("diff", lambda x: x.diff(dim=1), lambda x: np.diff(x, axis=1), _whole,
                (*FLOATS, "int32", "int64")),
    _whole_rows("repeat_interleave", lambda x: x.repeat_interleave(2, 1),
                lambda x: np.repeat(x, 2, 1), _any, _ALL),
    _whole_rows("outer", lambda x: torch.outer(x[0].contiguous(), x[:, 0].contiguous()),
                lambda x: np.outer(x[0], x[:, 0])),
    _whole_rows("arange", lambda x: torch.arange(
                x.shape[1], dtype=x.dtype, device=x.device), lambda x: np.arange(x.shape[1]),
                _whole, (*WIDE_FLOATS, "int32", "int64")),
    _whole_rows("full", lambda x: torch.full_like(x, 7), lambda x: np.full_like(x, 7), _any),
    _whole_rows("mean", lambda x: x[:, :1].expand(-1, 16).mean(1), lambda x: x[:, 0], _whole,
                FLOATS),
    _whole_rows("max_pool2d", lambda x: F.max_pool2d(x[None, None], 1, 1)[0, 0], lambda x: x, _any,
                FLOATS),
)  # fmt: skip
