"""A PyTorch and the packages that it needs, on the indexes of a server on this PC."""

from __future__ import annotations

import platform
import sys

from gpu_studio.core.wheels import platform_key
from tests.builds.wheel_server import Served
from tests.builds.wheels import PYTHON, metadata, wheel_bytes

KEY = platform_key(platform.system(), platform.machine())
MACHINE = {"windows-x86_64": "win_amd64"}.get(KEY, f"manylinux_2_17_{KEY.partition('-')[2]}")
TAGS = f"{PYTHON}-{PYTHON}-{MACHINE}"
TORCH = f"torch-9.1.0+cpu-{TAGS}.whl"
NEEDS = ["needed>=1.0", "never; extra == 'more'", "elsewhere; sys_platform == 'amiga'"]
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


def page(*links):
    return Served("".join(links).encode(), kind="text/html")


def put_torch(server, *, has_metadata=True, ballast=b"", needs=NEEDS):
    """Serve PyTorch's page, its metadata and its wheel."""
    files = {"torch/__init__.py": "", "torch/ballast": ballast}
    wheel = wheel_bytes("torch", "9.1.0+cpu", files, needs, TAGS)
    served = Served(wheel)
    result = ' data-core-metadata="true"' if has_metadata else ""
    href = TORCH.replace("+", "%2B")
    server.files["/whl/cpu/torch/"] = page(
        f'<a href="../{href}#sha256={served.sha256}"{result}>torch</a>'
    )
    server.files[f"/whl/cpu/{TORCH}"] = served
    if has_metadata:
        text = metadata("torch", "9.1.0+cpu", needs)
        server.files[f"/whl/cpu/{TORCH}.metadata"] = Served(text.encode())
    return served


def put_needed(server):
    """Serve the packages that it needs: two levels, each with a hash."""
    for name, needs in (("needed", ["deeper==2.0"]), ("deeper", [])):
        version = "2.0" if name == "deeper" else "1.5"
        wheel = Served(wheel_bytes(name, version, {f"{name}.py": ""}, needs))
        file = f"{name}-{version}-py3-none-any.whl"
        server.files[f"/files/{file}"] = wheel
        link = f'<a href="/files/{file}#sha256={wheel.sha256}">{file}</a>'
        server.files[f"/simple/{name}/"] = page(link)
