"""Float functions with their answers: within some ULPs of float64, in float64 of numpy's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch's own documents call it

from gpu_studio.engine.check.known_answers import FLOATS, WIDE_FLOATS, Known, Operands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[Any]

_ERF: Callable[[Array], Array] = np.vectorize(math.erf, otypes=[np.float64])
_ERFC: Callable[[Array], Array] = np.vectorize(math.erfc, otypes=[np.float64])
_SQRT_2, _2_OVER_PI = math.sqrt(2), math.sqrt(2 / math.pi)


def _between(low: float, high: float, count: int = 1) -> Callable[[Operands], Sequence[Array]]:
    return lambda make: [make.real(low, high) for _ in range(count)]


def _magnitude(x: Array, *_others: Array) -> Array:
    return np.abs(x)


def _function(
    name: str, work: Callable[..., Tensor], answer: Callable[..., Array], low: float, high: float,
    ulps: float = 4, scale: float | Callable[..., Array] = 0.0, count: int = 1,
) -> Known:  # fmt: skip
    return Known(name, work, answer, _between(low, high, count), FLOATS, ulps, scale)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^−x)."""
    result: Array = 1 / (1 + np.exp(-x))
    return result


def softmax(x: Array) -> Array:
    """Return the softmax of each row."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def log_softmax(x: Array) -> Array:
    """Return the logarithm of the softmax of each row."""
    low = x - x.max(-1, keepdims=True)
    result: Array = low - np.log(np.exp(low).sum(-1, keepdims=True))
    return result


def layer_norm(x: Array) -> Array:
    """Return each row with mean 0 and variance 1."""
    result: Array = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return result


def _gelu(x: Array) -> Array:
    result: Array = 0.5 * x * (1 + _ERF(x / _SQRT_2))
    return result


def _gelu_tanh(x: Array) -> Array:
    result: Array = 0.5 * x * (1 + np.tanh(_2_OVER_PI * (x + 0.044715 * x**3)))
    return result


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(x))


def _softplus(x: Array) -> Array:
    return np.log1p(np.exp(x))


def _rows(
    name: str, work: Callable[..., Tensor], answer: Callable[..., Array], ulps: float,
    scale: float | Callable[..., Array], low: float = -4.0, high: float = 4.0,
) -> Known:  # fmt: skip
    make = _between(low, high)
    return Known(name, work, answer, make, FLOATS, ulps, scale, is_elementwise=False)


def _whole_rows(x: Array) -> Array:
    return np.full(x.shape[0], np.abs(x).max() + 1.0)


FUNCTIONS: tuple[Known, ...] = (
    _function("exp", torch.exp, np.exp, -8, 8),
    _function("expm1", torch.expm1, np.expm1, -8, 8),
    _function("log", torch.log, np.log, 0.01, 100),
    _function("log2", torch.log2, np.log2, 0.01, 100),
    _function("log10", torch.log10, np.log10, 0.01, 100),
    _function("log1p", torch.log1p, np.log1p, -0.9, 100),
    _function("sin", torch.sin, np.sin, -30, 30, 8, 0.01),
    _function("cos", torch.cos, np.cos, -30, 30, 8, 0.01),
    _function("tan", torch.tan, np.tan, -1.5, 1.5, 10),
    _function("tanh", torch.tanh, np.tanh, -8, 8),
    _function("sinh", torch.sinh, np.sinh, -8, 8, 8),
    _function("cosh", torch.cosh, np.cosh, -8, 8, 6),
    _function("asin", torch.asin, np.arcsin, -1, 1, 8),
    _function("acos", torch.acos, np.arccos, -1, 1, 8, 0.01),
    _function("atan", torch.atan, np.arctan, -30, 30, 6),
    _function("asinh", torch.asinh, np.arcsinh, -30, 30, 8),
    _function("acosh", torch.acosh, np.arccosh, 1.1, 30, 10),
    _function("atanh", torch.atanh, np.arctanh, -0.9, 0.9, 8),
    _function("erf", torch.erf, _ERF, -4, 4, 4, 1.0),
    _function("erfc", torch.erfc, _ERFC, -4, 3, 12),
    _function("sigmoid", torch.sigmoid, sigmoid, -8, 8, 6),
    _function("logsigmoid", F.logsigmoid, lambda x: -_softplus(-x), -8, 8, 8, 0.01),
    _function("softplus", F.softplus, _softplus, -8, 8, 8, 0.01),
    _function("gelu", F.gelu, _gelu, -4, 4, 10, _magnitude),
    _function("gelu of tanh", lambda x: F.gelu(x, approximate="tanh"), _gelu_tanh, -4, 4, 8,
              _magnitude),
    _function("silu", F.silu, lambda x: x * sigmoid(x), -8, 8, 8),
    _function("mish", F.mish, lambda x: x * np.tanh(_softplus(x)), -8, 8, 12),
    _function("elu", F.elu, _elu, -8, 8, 6),
    _function("softsign", F.softsign, lambda x: x / (1 + np.abs(x)), -8, 8, 4),
    _function("hardswish", F.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, -8, 8, 6,
              _magnitude),
    _function("hardsigmoid", F.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, -8, 8, 4, 1.0),
    _function("leaky_relu", lambda x: F.leaky_relu(x, 0.25), lambda x: np.where(x > 0, x, x / 4),
              -8, 8, 1),
    _function("rsqrt", torch.rsqrt, lambda x: 1 / np.sqrt(x), 0.01, 100),
    _function("reciprocal", torch.reciprocal, lambda x: 1 / x, 0.01, 100, 1),
    _function("square", torch.square, np.square, -30, 30, 1),
    _function("logit", torch.logit, lambda x: np.log(x / (1 - x)), 0.05, 0.95, 16, 1.0),
    _function("deg2rad", torch.deg2rad, np.deg2rad, -400, 400, 4),
    _function("pow", torch.pow, np.power, 0.125, 4, 20, count=2),
    _function("power of 3", lambda x: x.pow(3), lambda x: x**3, -8, 8, 4),
    _function("atan2", torch.atan2, np.arctan2, -8, 8, 8, count=2),
    _function("hypot", torch.hypot, np.hypot, -8, 8, 4, count=2),
    _function("logaddexp", torch.logaddexp, np.logaddexp, -8, 8, 8, 1.0, count=2),
    _function("lerp", lambda a, b: a.lerp(b, 0.3), lambda a, b: a + 0.3 * (b - a), -8, 8, 4,
              lambda a, b: np.abs(a) + np.abs(b), count=2),
    _function("addcdiv", lambda a, b: a.addcdiv(b, b.abs() + 1), lambda a, b: a + b / (abs(b) + 1),
              -8, 8, 4, lambda a, b: np.abs(a) + 1.0, count=2),
    _function("xlogy", torch.xlogy, lambda a, b: a * np.log(b), 0.1, 8, 6, lambda a, b: np.abs(a),
              count=2),
    _function("bce_with_logits",
              lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid(), reduction="none"),
              lambda a, b: _softplus(a) - a * sigmoid(b), -8, 8, 12,
              lambda a, b: np.abs(a) + 1.0, count=2),
    _rows("softmax", lambda x: x.softmax(-1), softmax, 16, 0.0),
    _rows("log_softmax", lambda x: x.log_softmax(-1), log_softmax, 16, 4.0),
    _rows("logsumexp", lambda x: x.logsumexp(-1), lambda x: np.log(np.exp(x).sum(-1)), 16, 4.0),
    _rows("layer_norm", lambda x: F.layer_norm(x[:, :5].contiguous(), x[:, :5].shape[1:]),
          lambda x: layer_norm(x[:, :5]), 64, 16.0),
    _rows("norm", lambda x: x.norm(dim=-1), lambda x: np.sqrt((x * x).sum(-1)), 16, 0.0),
    _rows("var", lambda x: x.var(-1, correction=0), lambda x: x.var(-1), 96, _whole_rows),
    _rows("mean of reals", lambda x: x.mean(-1), lambda x: x.mean(-1), 16, _whole_rows),
    _rows("mse_loss", lambda x: F.mse_loss(x, x.flip(0)),
          lambda x: np.mean((x - x[::-1]) ** 2), 32, 1.0),
)  # fmt: skip


def _gradient(
    name: str, work: Callable[[Tensor], Tensor], slope: Callable[[Array], Array], low: float,
    high: float, ulps: float = 12, scale: float | Callable[..., Array] = 1.0,
) -> Known:  # fmt: skip
    """Return the gradient of an element-wise function, times a second operand."""

    def backward(x: Tensor, weight: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(work(leaf), leaf, weight)
        return gradient

    return Known(
        f"gradient of {name}", backward, lambda x, weight: slope(x) * weight,
        _between(low, high, 2), FLOATS, ulps, scale,
    )  # fmt: skip


def _slope_of_gelu(x: Array) -> Array:
    return 0.5 * (1 + _ERF(x / _SQRT_2)) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _softmax_gradient(x: Tensor, weight: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(leaf.softmax(-1), leaf, weight)
    return gradient


def _slope_of_softmax(x: Array, weight: Array) -> Array:
    shares = softmax(x)
    result: Array = shares * (weight - (shares * weight).sum(-1, keepdims=True))
    return result


def _products_gradient(a: Tensor, b: Tensor) -> Tensor:
    left, right = a.detach().requires_grad_(), b.detach().requires_grad_()
    with torch.enable_grad():
        product = left @ right.t()
        both = torch.autograd.grad(product, (left, right), torch.ones_like(product))
    return torch.cat([one.reshape(-1) for one in both])


def _slope_of_products(a: Array, b: Array) -> Array:
    left = np.broadcast_to(b.sum(0), a.shape)
    right = np.broadcast_to(a.sum(0), b.shape)
    return np.concatenate([left.reshape(-1), right.reshape(-1)])


GRADIENTS: tuple[Known, ...] = (
    _gradient("sigmoid", torch.sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x)), -4, 4),
    _gradient("tanh", torch.tanh, lambda x: 1 - np.tanh(x) ** 2, -4, 4, 16, 4.0),
    _gradient("exp", torch.exp, np.exp, -4, 4, 12, 0.0),
    _gradient("log", torch.log, lambda x: 1 / x, 0.1, 8),
    _gradient("sin", torch.sin, np.cos, -4, 4),
    _gradient("cos", torch.cos, lambda x: -np.sin(x), -4, 4),
    _gradient("sqrt", torch.sqrt, lambda x: 0.5 / np.sqrt(x), 0.1, 8),
    _gradient("square", torch.square, lambda x: 2 * x, -4, 4, 4),
    _gradient("relu", torch.relu, lambda x: np.where(x > 0, 1.0, 0.0), -4, 4, 1),
    _gradient("abs", torch.abs, np.sign, -4, 4, 1),
    _gradient("gelu", F.gelu, _slope_of_gelu, -4, 4, 24, 4.0),
    _gradient("silu", F.silu, lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), -4, 4, 24, 4.0),
    _gradient("softplus", F.softplus, sigmoid, -4, 4),
    _gradient("reciprocal", torch.reciprocal, lambda x: -1 / (x * x), 0.5, 8),
    _gradient("clamp", lambda x: x.clamp(-1, 1), lambda x: (abs(x) <= 1) * 1.0, -4, 4, 1),
    Known("gradient of softmax", _softmax_gradient, _slope_of_softmax, _between(-4, 4, 2), FLOATS,
          32, 4.0, is_elementwise=False),
    Known("gradients of a product", _products_gradient, _slope_of_products,
          lambda make: [make.whole(1), make.whole(1)], WIDE_FLOATS, is_elementwise=False),
)  # fmt: skip
