"""Compile CUDA C at run time with NVRTC, which PyTorch includes; no CUDA toolkit is needed.

Every CUDA build of PyTorch loads libnvrtc, so it need not be installed. NVIDIA documents its
functions in "NVRTC (Runtime Compilation)".
"""

from __future__ import annotations

import ctypes
import logging
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from gpu_studio.core.failure import FailureKind, StudioError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_log = logging.getLogger(__name__)
_SUCCESS = 0
# "kernel.cu(3): error: identifier "x" is undefined"
_ERROR_LINE = re.compile(r"\((\d+)\): error: (.*)")


class CompiledCode(msgspec.Struct, frozen=True):
    """Code that the driver can load: machine code for one architecture, or PTX for a newer one."""

    image: bytes
    architecture: str
    compiler: str


class Nvrtc:
    """The compiler's library; raises `StudioError` if this PyTorch has none."""

    def __init__(self) -> None:
        self._library = _load()

    @property
    def name(self) -> str:
        """Its name and version: ``NVRTC 13.0``."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._do("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return f"NVRTC {major.value}.{minor.value}"

    def capabilities(self) -> list[int]:
        """Return the compute capabilities it compiles for, in ascending order: 75 for 7.5."""
        count = ctypes.c_int()
        self._do("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._do("nvrtcGetSupportedArchs", found)
        return sorted(found)

    def compile(self, source: str, capability: int) -> CompiledCode:
        """Return a program's code for a card.

        Args:
            source: CUDA C; ``extern "C"`` keeps the names of its kernels unchanged.
            capability: the card's compute capability, 75 for 7.5.

        Raises:
            StudioError: the card is too old for this compiler, or the source is wrong; the log
                has the compiler's messages.
        """
        kind, architecture = target(self.capabilities(), capability, self.name)
        program = ctypes.c_void_p()
        self._do(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            source.encode(),
            b"kernel.cu",
            0,
            None,
            None,
        )
        try:
            option = f"--gpu-architecture={architecture}".encode()
            code = self._library.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(option))
            if code != _SUCCESS:
                log = self._fetch("nvrtcGetProgramLog", program).decode(errors="replace")
                _log.error("%s: %s", self.name, log.strip("\0\n"))
                raise StudioError(FailureKind.INTERNAL, explain(self.name, log, self._text(code)))
            return CompiledCode(self._fetch(f"nvrtcGet{kind}", program), architecture, self.name)
        finally:
            self._do("nvrtcDestroyProgram", ctypes.byref(program))

    def _fetch(self, function: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._do(f"{function}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._do(function, program, buffer)
        return buffer.raw

    def _do(self, function: str, *arguments: object) -> None:
        code = getattr(self._library, function)(*arguments)
        if code != _SUCCESS:
            message = f"{function} failed: {self._text(code)}."
            raise StudioError(FailureKind.INTERNAL, message)

    def _text(self, code: int) -> str:
        text = self._library.nvrtcGetErrorString
        text.restype = ctypes.c_char_p
        return str(text(code).decode())


def target(capabilities: Sequence[int], capability: int, compiler: str) -> tuple[str, str]:
    """Return the compiler's target for a card: CUBIN and sm_86, or PTX and compute_90.

    Machine code runs on cards of its major version and of its minor version or higher. PTX runs
    on every card that is not older (CUDA C++ Programming Guide, "Application Compatibility").

    Raises:
        StudioError: the card is too old for the compiler.
    """
    fitting = [known for known in capabilities if known <= capability]
    if not fitting:
        oldest = capabilities[0]
        raise StudioError(
            FailureKind.NO_KERNEL,
            f"{compiler} of this PyTorch compiles for compute capability {_dotted(oldest)} and "
            f"higher; this card has {_dotted(capability)}. A build of PyTorch for an older CUDA "
            "includes a compiler that supports it.",
        )
    nearest = max(fitting)
    if nearest // 10 == capability // 10:
        return "CUBIN", f"sm_{nearest}"
    return "PTX", f"compute_{nearest}"


def explain(compiler: str, log: str, text: str) -> str:
    """Return one sentence for a source that does not compile.

    Args:
        compiler: the compiler's name.
        log: its output.
        text: the meaning of its error code.
    """
    found = _ERROR_LINE.search(log)
    reason = f"line {found[1]}: {found[2].strip()}" if found else text
    return f"{compiler} cannot compile this kernel ({reason}); the engine's log has its whole log."


def why_no_compiler() -> str:
    """Return why there is no compiler here; empty if there is one."""
    try:
        Nvrtc()
    except StudioError as error:
        return str(error)
    return ""


def _dotted(capability: int) -> str:
    return f"{capability // 10}.{capability % 10}"


def _load() -> ctypes.CDLL:
    cuda = torch.version.cuda
    if cuda is None:
        raise StudioError(
            FailureKind.NO_CUDA,
            f"This PyTorch ({torch.__version__}) is built without CUDA and has no CUDA compiler: "
            "install a CUDA build of PyTorch.",
        )
    major = cuda.split(".")[0]
    name = f"nvrtc64_{major}0_0.dll" if sys.platform == "win32" else f"libnvrtc.so.{major}"
    # By name if PyTorch has loaded it or can load it; otherwise from its package's folder.
    packages = Path(torch.__file__).parent.parent / "nvidia"
    for place in (name, *map(str, packages.glob(f"*/lib/{name}"))):
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            _log.info("%s: %s", place, error)
    raise StudioError(
        FailureKind.NO_CUDA,
        f"The CUDA compiler ({name}) is missing. PyTorch for CUDA {cuda} normally includes it: "
        "install PyTorch again.",
    )


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

    def kernel(
        self, name: str, blocks: int, threads: int, arguments: Sequence[Any]
    ) -> Callable[[], None]:
        """Return what launches a kernel and returns at once; RuntimeError if the driver refuses.

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
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        # The driver needs the addresses of the values: both lists must live as long as the launch.
        values = list(arguments)
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        one, none = ctypes.c_uint(1), ctypes.c_uint(0)
        grid, block = (ctypes.c_uint(blocks), one, one), (ctypes.c_uint(threads), one, one)
        launch, device = self._driver.cuLaunchKernel, torch.cuda.device(self._device)

        def launched(values: object = values) -> None:
            with device:
                code = launch(function, *grid, *block, none, stream, addresses, None)
            if code != _SUCCESS:
                self._check(code)

        return launched

    def close(self) -> None:
        """Unload the code; the card must have finished with it."""
        with torch.cuda.device(self._device):
            torch.cuda.synchronize()
            self._do("cuModuleUnload", self._module)

    def _do(self, function: str, *arguments: Any) -> None:
        self._check(getattr(self._driver, function)(*arguments))

    def _check(self, code: int) -> None:
        """Raise RuntimeError with the driver's message if the code is not success."""
        if code == _SUCCESS:
            return
        text = ctypes.c_char_p()
        self._driver.cuGetErrorString(code, ctypes.byref(text))
        words = (text.value or b"unknown error").decode(errors="replace")
        raise RuntimeError(f"CUDA driver error: {words} ({code})")
