"""Compiles the stand-ins into a cache folder, once per version of their sources.

Nothing compiled and no header of NVIDIA is kept in the project: gcc must be there, and the headers
come from packages that the CUDA build of PyTorch brings (nvidia-cuda-runtime, and triton, which has
the ``crt`` folder that nvidia-cuda-runtime lacks).
"""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "c"
MACHINE = (
    "config.c",
    "copies.c",
    "devices.c",
    "faults.c",
    "graphs.c",
    "launch.c",
    "mapping.c",
    "memory.c",
    "streams.c",
    "usage.c",
)
RUNTIME = (
    "runtime_devices.c",
    "runtime_errors.c",
    "runtime_graphs.c",
    "runtime_launch.c",
    "runtime_memory.c",
    "runtime_streams.c",
)
DRIVER = ("driver.c", "driver_launch.c", "driver_memory.c", "driver_refused.c")
NVML = ("nvml.c", "nvml_memory.c", "nvml_sensors.c")
NVAPI = ("nvapi.c",)
BLAS = ("blas.c", "cudnn.c")


class CannotBuildError(Exception):
    """The stand-ins cannot be built here; the text says why, for a skip."""


@dataclass(frozen=True)
class Library:
    """A shared library: its file and SONAME, its sources, the names it exports."""

    soname: str
    sources: tuple[str, ...]
    exported: tuple[str, ...]
    version_node: str | None = None


@dataclass(frozen=True)
class Built:
    """The compiled stand-ins of one CUDA major version."""

    folder: Path
    cuda_major: int

    @property
    def preload(self) -> tuple[Path, ...]:
        """Libraries that must be loaded before PyTorch's own."""
        runtime = self.folder / f"libcudart.so.{self.cuda_major}"
        return (runtime, self.folder / "libsoftblas.so")


def libraries(cuda_major: int) -> tuple[Library, ...]:
    """The shared libraries of one CUDA major version, in the order they are linked."""
    runtime = f"libcudart.so.{cuda_major}"
    return (
        Library("libsoftcards.so", MACHINE, ("soft_*",)),
        Library(runtime, RUNTIME, ("cuda*", "__cuda*"), version_node=runtime),
        Library("libcuda.so.1", DRIVER, ("cu*", "soft_unsupported")),
        Library("libsoftblas.so", BLAS, ("cublas*", "_ZNK2at7Context16userEnabledCuDNNEv")),
        Library("libnvidia-ml.so.1", NVML, ("nvml*",)),
        Library("libnvidia-api.so.1", NVAPI, ("nvapi_QueryInterface",)),
    )


def torch_cuda() -> str | None:
    """CUDA version of the PyTorch installed here ("13.0"), read without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    version = Path(spec.origin).with_name("version.py")
    found = re.search(r"^cuda.*=\s*'([\d.]+)'", version.read_text(), re.MULTILINE)
    return found.group(1) if found else None


def header_folders(cuda_major: int) -> list[Path]:
    """Folders of installed packages with the headers of one CUDA major version.

    Raises:
        CannotBuildError: the packages are not installed here.
    """
    folders: list[Path] = []
    for place in map(Path, sys.path):
        names = ("cu13",) if cuda_major >= 13 else ("cuda_runtime",)
        folders += [place / "nvidia" / name / "include" for name in names]
        folders.append(place / "triton" / "backends" / "nvidia" / "include")
    folders = [folder for folder in folders if folder.is_dir()]
    if not any((folder / "cuda_runtime_api.h").is_file() for folder in folders):
        msg = f"no headers of CUDA {cuda_major}: the package nvidia-cuda-runtime is not installed"
        raise CannotBuildError(msg)
    if not any((folder / "crt" / "host_config.h").is_file() for folder in folders):
        msg = "no crt headers: the package triton (or nvidia-cuda-crt) is not installed"
        raise CannotBuildError(msg)
    return folders


def why_not(cuda_major: int) -> str | None:
    """Why the stand-ins cannot be built here, or None if they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "soft cards need Linux on x86-64"
    if shutil.which("gcc") is None:
        return "soft cards need gcc, which is not installed"
    try:
        header_folders(cuda_major)
    except CannotBuildError as error:
        return str(error)
    return None


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "gpu-studio" / "soft-cards"


def _digest(cuda_major: int, folders: list[Path]) -> str:
    digest = hashlib.sha256(f"{cuda_major} {folders}".encode())
    for path in [Path(__file__), *sorted(SOURCES.iterdir())]:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _version_script(library: Library, folder: Path) -> Path:
    names = " ".join(f"{name};" for name in library.exported)
    script = folder / f"{library.soname}.map"
    script.write_text(f"{library.version_node or ''} {{ global: {names} local: *; }};\n")
    return script


def _link(library: Library, folder: Path, folders: list[Path]) -> None:
    command = ["gcc", "-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-pthread"]
    command += ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fno-strict-aliasing"]
    command += [f"-isystem{path}" for path in folders]
    command += [str(SOURCES / source) for source in library.sources]
    command += ["-o", str(folder / library.soname), f"-Wl,-soname,{library.soname}"]
    command += [f"-Wl,--version-script={_version_script(library, folder)}"]
    if library.soname != "libsoftcards.so":
        command += [f"-L{folder}", "-lsoftcards", "-Wl,-rpath,$ORIGIN"]
    done = subprocess.run([*command, "-ldl"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f"gcc could not build {library.soname}:\n{done.stderr}"
        raise RuntimeError(msg)


def build(cuda_major: int) -> Built:
    """The stand-ins of one CUDA major version, compiled now or before.

    Raises:
        CannotBuildError: gcc, the headers or the right system are missing.
        RuntimeError: gcc refuses the sources.
    """
    reason = why_not(cuda_major)
    if reason is not None:
        raise CannotBuildError(reason)
    folders = header_folders(cuda_major)
    target = _cache() / f"{cuda_major}-{_digest(cuda_major, folders)}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            created = Path(scratch) / "made"
            created.mkdir()
            for library in libraries(cuda_major):
                _link(library, created, folders)
            try:
                created.rename(target)
            except OSError:
                # Another process built the same at the same time; its result is as good.
                if not target.is_dir():
                    raise
    return Built(target, cuda_major)
