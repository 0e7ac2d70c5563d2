"""A server of wheels with the builds that PyTorch and AMD really published, and no others."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests.builds.wheels import write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

# pytorch.org/get-started/previous-versions: torch, torchvision, torchaudio, and the builds.
_PUBLISHED = (
    ("2.5.1", "0.20.1", "2.5.1", "cpu cu118 cu121 cu124 rocm6.1 rocm6.2"),
    ("2.7.1", "0.22.1", "2.7.1", "cpu cu118 cu126 cu128 rocm6.3 xpu"),
    ("2.8.0", "0.23.0", "2.8.0", "cpu cu126 cu128 cu129 rocm6.4 xpu"),
    ("2.9.1", "0.24.1", "2.9.1", "cpu cu126 cu128 cu130 rocm6.4 xpu"),
    ("2.13.0", "0.28.0", "2.11.0", "cpu cu126 cu130 rocm7.2 xpu"),
)
_AMD = (
    ("torch", "2.13.0+rocm10.0.0"), ("torchvision", "0.28.0+rocm10.0.0"),
    ("torchaudio", "2.11.0.2+rocm10.0.0"), ("amd_torch_device_gfx1151", "2.13.0+rocm10.0.0"),
    ("amd_torch_device_gfx1032", "2.13.0+rocm10.0.0"),
)  # fmt: skip
_LAYERS = ("cuda", "hip", "xpu")


class TorchIndex:
    """Serves the wheels on the loopback address; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._make()

    def __enter__(self) -> Self:
        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

        serve = partial(Handler, directory=str(self._folder))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), serve)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def here(self, line: str) -> str:
        """Return a line that asks this server instead of the real ones."""
        base = f"http://127.0.0.1:{self._server.server_port}"
        line = line.replace("https://download.pytorch.org", base)
        return line.replace("https://stable.repo.amd.com", f"{base}/amd")

    def has(self, wanted: str) -> bool:
        """Return whether it has what a line names, such as ``torch==2.7.1+cu128``."""
        name, _, version = wanted.partition("==")
        name = name.partition("[")[0].replace("-", "_")
        return any(self._folder.rglob(f"{name}-{version}-*.whl"))

    def _make(self) -> None:
        for torch, vision, audio, tags in _PUBLISHED:
            for tag in tags.split():
                index = self._folder / "whl" / tag
                self._torch(index, f"{torch}+{tag}", tag)
                own = {"torchvision": vision, "torchaudio": audio}
                for name, version in own.items():
                    requires = [f"torch=={torch}", "numpy"] if name == "torchvision" else []
                    said = {f"{name}/version.py": f"__version__ = '{version}+{tag}'\n"}
                    write_wheel(index / name, name, f"{version}+{tag}", said, requires)
                write_wheel(index / "numpy", "numpy", "2.3.0", {"numpy/__init__.py": ""})
        amd = self._folder / "amd" / "rocm" / "whl-next"
        for name, version in _AMD:
            if name == "torch":
                self._torch(amd, version, "rocm10.0.0")
            else:
                said = {f"{name}/version.py": f"__version__ = '{version}'\n"}
                write_wheel(amd / name.replace("_", "-"), name, version, said)

    def _torch(self, index: Path, version: str, tag: str) -> None:
        cuda = f"'{tag[2:-1]}.{tag[-1]}'" if tag.startswith("cu") else "None"
        hip = "'7.0'" if tag.startswith("rocm") else "None"
        xpu = "'2025'" if tag == "xpu" else "None"
        said = f"__version__ = '{version}'\ncuda = {cuda}\nhip = {hip}\nxpu = {xpu}\n"
        layer = {"cu": "cuda", "ro": "hip", "xp": "xpu"}.get(tag[:2])
        names = ["libtorch_cpu.so", *([f"libtorch_{layer}.so"] if layer else [])]
        files = {f"torch/lib/{name}": "ELF" for name in names} | {
            "torch/version.py": said, "torch/__init__.py": "",
        }  # fmt: skip
        requires = []
        if tag == "rocm10.0.0":
            requires = [
                f'amd-torch-device-{chip}=={version}; extra == "device-{chip}"\n'
                f"Provides-Extra: device-{chip}"
                for chip in ("gfx1151", "gfx1032")
            ]
        write_wheel(index / "torch", "torch", version, files, requires)
