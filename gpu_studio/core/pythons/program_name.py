"""The name of the program that a Python belongs to, by the files beside it.

The marks are those of the programs' own repositories and installers.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpu_studio.core.pythons.torch_files import names_in
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_NAME = "GPU Studio"
# Files that a program's folder has together, and its name; the first that fits is taken.
_MARKS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("comfy", "main.py"), "ComfyUI"),
    (("fooocus_version.py",), "Fooocus"),
    (("modules_forge", "webui.py"), "Stable Diffusion WebUI Forge"),
    (("webui.py", "installer.py", "html"), "SD.Next"),
    (("webui.py", "modules"), "Stable Diffusion WebUI (A1111)"),
    (("kohya_gui.py",), "kohya_ss"),
    (("train_network.py", "library"), "sd-scripts"),
    (("one_click.py", "server.py"), "text-generation-webui"),
    (("invokeai.yaml",), "InvokeAI"),
    (("demo_gradio.py", "diffusers_helper"), "FramePack"),
    (("infer-web.py",), "RVC WebUI"),
    (("GPT_SoVITS",), "GPT-SoVITS"),
    (("swarmui.sln",), "SwarmUI"),
)  # fmt: skip
# What programs call the folder of their Python, so that the folder above has the better name.
_PLAIN_NAMES = frozenset({
    "venv", ".venv", "env", ".env", "virtualenv", ".virtualenv", "python", "python3", "conda",
    "conda_env", "python_embeded", "python_embedded", "installer_files", "system",
    "pyenv", ".local", "runtime", "site-packages", "dist-packages", "lib",
})  # fmt: skip
# Folders of tools that make environments, and what the folder above them is called.
_TOOLS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("pipx", "venvs"), "pipx"),
    (("uv", "tools"), "uv tool"),
    (("uv", "python"), "uv Python"),
    (("uv", "environments-v2"), "uv script"),
    (("uv", "archive-v0"), "uv cache"),
    (("pypoetry", "virtualenvs"), "Poetry"),
    (("pypoetry", "cache", "virtualenvs"), "Poetry"),
    ((".pyenv", "versions"), "pyenv"),
    (("pyenv-win", "versions"), "pyenv"),
    (("virtualenvs",), "Pipenv"),
    ((".virtualenvs",), "virtualenvwrapper"),
    (("envs",), "conda"),
)  # fmt: skip


def program_of(folder: str, home: str, own_prefix: str) -> str:
    """Return the name of the program that a Python belongs to.

    Args:
        folder: the Python's own folder.
        home: the user's folder, which no program is named after.
        own_prefix: the folder of GPU Studio's own Python.
    """
    if os.path.realpath(folder) == os.path.realpath(own_prefix):
        return OWN_NAME
    parts = folder.replace("\\", "/").rstrip("/").split("/")
    for way, tool in _TOOLS:
        if tuple(part.lower() for part in parts[-1 - len(way) : -1]) == way:
            return plain_text(f"{parts[-1]} ({tool})")
    if _is_systems(parts, folder):
        return "This PC's Python"
    name = _marked(folder, home)
    own = next((part for part in reversed(parts) if part.lower() not in _PLAIN_NAMES), parts[-1])
    if own == parts[-1] and own.lower().lstrip(".").startswith("venv") and len(parts) > 1:
        own = f"{parts[-2]} ({own})"
    return plain_text(_within(parts, name, own))


def _marked(folder: str, home: str) -> str:
    """Return the name of the program whose files are in one of the folders around a Python."""
    at = folder
    for _ in range(4):
        names = names_in(at)
        beside = [at, *(os.path.join(at, name) for name in names if name in _INNER)]
        for place in beside:
            name = _name_of_marks(names if place == at else names_in(place))
            if name:
                is_portable = "python_embeded" in names or "python_embedded" in names
                return f"{name} portable" if is_portable and name == "ComfyUI" else name
        at, last = os.path.dirname(at), at
        if at in (home, last):
            break
    return ""


_INNER = ("ComfyUI", "webui", "Fooocus", "stable-diffusion-webui", "app")


def _name_of_marks(names: Sequence[str]) -> str:
    has = set(names)
    return next((name for marks, name in _MARKS if has.issuperset(marks)), "")


def _within(parts: list[str], name: str, own: str) -> str:
    """Return a program's name with that of the launcher that installed it."""
    lower = [part.lower() for part in parts]
    if "packages" in lower[:-1] and {"stabilitymatrix", "data"} & set(lower):
        return f"{parts[lower.index('packages') + 1]} (Stability Matrix)"
    if "api" in lower[:-1] and "pinokio" in "".join(lower):
        return f"{name or parts[lower.index('api') + 1].removesuffix('.git')} (Pinokio)"
    return name or own


def _is_systems(parts: list[str], folder: str) -> bool:
    is_python = parts[-1].lower().startswith("python3") and "programs" in map(str.lower, parts)
    return folder in ("/usr", "/usr/local") or parts[-1] == ".local" or is_python
