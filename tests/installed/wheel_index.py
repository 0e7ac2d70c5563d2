"""PyTorch's index and the package index, served on this PC from a folder of wheels.

The installed program downloads from it as it does from the internet. Until it is let go, the second
half of PyTorch's wheel is held back, so that a download can be paused in its middle.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from gpu_studio.core.wheel_table import load_table
from tests.builds.wheel_server import Served, WheelServer
from tests.builds.wheels import metadata_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TAG = "cpu"
_SERVER = "https://download.pytorch.org"


class WheelIndex:
    """An index of the wheels in a folder; a context manager that is reachable inside it.

    Args:
        wheels: The folder, with PyTorch's CPU build and all that it needs.
    """

    def __init__(self, wheels: Path) -> None:
        self._server = WheelServer()
        version = f"{load_table().torch_version}+{_TAG}"
        for path in sorted(wheels.glob("*.whl")):
            if path.name.startswith("torch-"):
                self._torch = self._put_torch(path, version)
            else:
                self._put(path)

    @property
    def pip_index(self) -> str:
        """The address for pip, in place of PyPI's."""
        return f"{self._server.url}/simple"

    @property
    def holds_back(self) -> bool:
        """Whether half of PyTorch's wheel was asked for, which the other half will not follow."""
        return bool(self._ranges()) and self._server.files[self._torch].stalls

    @property
    def continued_at(self) -> int:
        """The byte at which the last download of PyTorch's wheel went on; 0 if it began again."""
        return int(self._ranges()[-1].removeprefix("bytes=").rstrip("-") or "0")

    def let_go(self) -> None:
        """Send the second half, too, from the next request on."""
        self._server.files[self._torch].stalls = False

    def __enter__(self) -> WheelIndex:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__(None, None, None)

    @contextlib.contextmanager
    def in_table(self, table: Path) -> Iterator[None]:
        """Write this index's address into a program's table of builds, and take it out again.

        Args:
            table: The program's resources/wheels.json.
        """
        before = table.read_bytes()
        table.write_bytes(before.replace(_SERVER.encode(), self._server.url.encode()))
        try:
            yield
        finally:
            table.write_bytes(before)

    def _ranges(self) -> list[str]:
        return self._server.ranges_of(self._torch)

    def _put(self, path: Path) -> None:
        served = Served(path.read_bytes())
        self._server.files[f"/files/{path.name}"] = served
        project = re.sub("[-_.]+", "-", path.name.partition("-")[0]).lower()
        link = f'<a href="/files/{quote(path.name)}#sha256={served.sha256}">{path.name}</a>'
        self._server.files[f"/simple/{project}/"] = Served(link.encode(), kind="text/html")

    def _put_torch(self, path: Path, version: str) -> str:
        """Serve PyTorch's wheel as its index does; return its path on the server.

        The wheel on PyPI for Windows has no build in its version; the one on PyTorch's index has.
        """
        name = "-".join(["torch", version, *path.name.split("-")[2:]])
        result = metadata_in(path).splitlines()
        lines = [f"Version: {version}" if one.startswith("Version: ") else one for one in result]
        served = Served(path.read_bytes(), stalls=True)
        link = f'<a href="../{quote(name)}#sha256={served.sha256}" data-core-metadata="true">x</a>'
        files = self._server.files
        files[f"/whl/{_TAG}/torch/"] = Served(link.encode(), kind="text/html")
        files[f"/whl/{_TAG}/{name}.metadata"] = Served("\n".join(lines).encode())
        files[f"/whl/{_TAG}/{name}"] = served
        return f"/whl/{_TAG}/{name}"
