"""A kernel of our own on a card: loaded and launched through NVIDIA's driver, beside PyTorch.

It works in PyTorch's context and on PyTorch's current stream, so its order with PyTorch's own
kernels is kept. The functions are those of the "CUDA Driver API", which every driver has.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUCCESS = 0


class DriverModule:
    """Code on one card; `close` takes it away again.

    Args:
        device: the card; it gets PyTorch's context if it has none.
        image: what `nvrtc.Nvrtc.compile` returned.

    Raises:
        RuntimeError: the driver refused, with its words.
    """

    def __init__(self, device: torch.device, image: bytes) -> None:
        self._driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        self._device = device
        self._image = image
        self._module = ctypes.c_void_p()
        with torch.cuda.device(device):
            torch.cuda.synchronize()  # makes the context
            self._do("cuModuleLoadData", ctypes.byref(self._module), image)

    def kernel(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> Kernel:
        """Return one launch of a kernel, ready to be repeated.

        Args:
            name: the kernel's name.
            blocks: in the grid.
            threads: in a block.
            arguments: ctypes values, in the kernel's order; tensors are given by address and have
                to be kept alive by the caller.
        """
        function = ctypes.c_void_p()
        with torch.cuda.device(self._device):
            self._do("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            stream = torch.cuda.current_stream().cuda_stream
        return Kernel(self._driver, self._device, function, (blocks, threads, stream), arguments)

    def close(self) -> None:
        """Unload the code; the card must be done with it."""
        with torch.cuda.device(self._device):
            torch.cuda.synchronize()
            self._do("cuModuleUnload", self._module)

    def _do(self, function: str, *arguments: Any) -> None:
        check(self._driver, getattr(self._driver, function)(*arguments))


class Kernel:
    """One launch with its arguments; called, it asks the card and returns at once.

    Args:
        driver: the driver's library.
        device: the card.
        function: the kernel's handle.
        shape: blocks, threads in a block, and the stream's handle.
        arguments: ctypes values.
    """

    def __init__(
        self,
        driver: ctypes.CDLL,
        device: torch.device,
        function: ctypes.c_void_p,
        shape: tuple[int, int, int],
        arguments: Sequence[Any],
    ) -> None:
        blocks, threads, stream = shape
        # The driver wants the addresses of the values: both lists have to live as long as this.
        self._values = list(arguments)
        addresses = (ctypes.c_void_p * len(self._values))(
            *(ctypes.addressof(value) for value in self._values)
        )
        self._device = device
        self._driver = driver
        self._launch = driver.cuLaunchKernel
        one, none = ctypes.c_uint(1), ctypes.c_uint(0)
        self._arguments = (
            function,
            *(ctypes.c_uint(blocks), one, one),
            *(ctypes.c_uint(threads), one, one),
            none,
            ctypes.c_void_p(stream),
            addresses,
            None,
        )

    def __call__(self) -> None:
        """Launch it; raises RuntimeError where the driver refuses."""
        with torch.cuda.device(self._device):
            code = self._launch(*self._arguments)
        if code != _SUCCESS:
            check(self._driver, code)


def check(driver: ctypes.CDLL, code: int) -> None:
    """Raise RuntimeError with the driver's words for a code that is no success."""
    if code == _SUCCESS:
        return
    text = ctypes.c_char_p()
    driver.cuGetErrorString(code, ctypes.byref(text))
    words = (text.value or b"unknown error").decode(errors="replace")
    raise RuntimeError(f"CUDA driver error: {words} ({code})")
