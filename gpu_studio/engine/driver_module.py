"""A custom kernel on a card, loaded and launched through NVIDIA's driver, next to PyTorch.

It runs in PyTorch's context and on PyTorch's current stream, so it stays in order with PyTorch's
kernels. The functions are those of the "CUDA Driver API", which every driver has.
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
    """Code loaded on one card; `close` unloads it.

    Args:
        device: the card; it gets PyTorch's context if it has none.
        image: the code from `nvrtc.Nvrtc.compile`.

    Raises:
        RuntimeError: the driver refused; the message is the driver's.
    """

    def __init__(self, device: torch.device, image: bytes) -> None:
        self._driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        self._device = device
        self._image = image
        self._module = ctypes.c_void_p()
        with torch.cuda.device(device):
            torch.cuda.synchronize()  # creates the context
            self._do("cuModuleLoadData", ctypes.byref(self._module), image)

    def kernel(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> Kernel:
        """Return one launch of a kernel, ready to be repeated.

        Args:
            name: the kernel's name.
            blocks: the number of blocks in the grid.
            threads: the number of threads in a block.
            arguments: ctypes values, in the kernel's order. Tensors are passed by address; the
                caller has to keep them alive.
        """
        function = ctypes.c_void_p()
        with torch.cuda.device(self._device):
            self._do("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            stream = torch.cuda.current_stream().cuda_stream
        return Kernel(self._driver, self._device, function, (blocks, threads, stream), arguments)

    def close(self) -> None:
        """Unload the code; the card must have finished with it."""
        with torch.cuda.device(self._device):
            torch.cuda.synchronize()
            self._do("cuModuleUnload", self._module)

    def _do(self, function: str, *arguments: Any) -> None:
        check(self._driver, getattr(self._driver, function)(*arguments))


class Kernel:
    """One launch with its arguments; a call launches the kernel and returns at once.

    Args:
        driver: the driver's library.
        device: the card.
        function: the kernel's handle.
        shape: blocks, threads per block, and the stream's handle.
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
        # The driver needs the addresses of the values: both lists must live as long as this object.
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
        """Launch the kernel; raises RuntimeError if the driver refuses."""
        with torch.cuda.device(self._device):
            code = self._launch(*self._arguments)
        if code != _SUCCESS:
            check(self._driver, code)


def check(driver: ctypes.CDLL, code: int) -> None:
    """Raise RuntimeError with the driver's message if the code is not success."""
    if code == _SUCCESS:
        return
    text = ctypes.c_char_p()
    driver.cuGetErrorString(code, ctypes.byref(text))
    words = (text.value or b"unknown error").decode(errors="replace")
    raise RuntimeError(f"CUDA driver error: {words} ({code})")
