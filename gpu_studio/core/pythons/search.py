"""Finds every PyTorch on this PC, or in some folders, by reading names and small files.

It runs in a child (`ask_for_pythons`): a folder may hang with its drive, and a million names take
Python's lock. The walk goes level by level, follows no links, and says what it left out.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.child_question import Limits, ask_child
from gpu_studio.core.pythons.environment import (
    Environment,
    PythonKind,
    closed_sites,
    environments_in,
    kind_of,
)
from gpu_studio.core.pythons.torch_files import names_in
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpu_studio.core.child_question import ChildCaller

_MODULE = "gpu_studio.core.pythons.search"
LONGEST_S = 8.0
_LIMITS = Limits(longest_s=LONGEST_S + 4.0, memory_bytes=512 << 20, answer_bytes=16 << 20)
_DEEPEST = 9  # ~/pinokio/api/NAME/app/env is the fifth
_MOST_ENTRIES = 50_000  # of one folder
_MOST_FOUND = 500
_MOST_EXAMPLES = 3
_LOOK_EVERY = 256
_WALKS = 3
_LONGEST_SILENCE_S = 2.0  # a sleeping disk starts in that time, most of them
_LAST_LOOK_S = 0.5  # into the folder that a walk is in as the time ends
_GLANCE_S = 0.02
# Never a place for a Python, and often large.
_SKIPPED = frozenset({
    ".git", ".hg", ".svn", "node_modules", "__pycache__", "$recycle.bin", "winsxs", "steamapps",
    "system volume information", ".trash", "trash", ".npm", ".cargo", ".rustup", ".gradle", ".m2",
    ".nuget", "huggingface", "pkgs", "windows", "proc", "sys", "dev", "run", "lost+found",
})  # fmt: skip
_CACHES = frozenset({"caches", ".cache", "cache"})
_OF_CACHES = frozenset({"uv", "pypoetry"})  # what has environments in there
_WHEELS = "archive-v0"  # uv's unpacked wheels, and the environments of uvx
# What has no other Python in it.
_WITHOUT_OTHERS = (PythonKind.VENV, PythonKind.USER, PythonKind.EMBEDDED, PythonKind.ENGINE)
_NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "afs", "ceph", "davfs", "fuse.sshfs",
    "fuse.rclone", "fuse.gvfsd-fuse", "autofs", "glusterfs",
})  # fmt: skip
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", 0xA0000003)


class AskPythons(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look: the folders, or all usual places if there are none, and for how long."""

    folders: tuple[str, ...] = ()
    longest_s: float = LONGEST_S


class LeftOut(msgspec.Struct, frozen=True):
    """Folders that were not looked into: why, how many, and some of them."""

    why: str
    count: int
    examples: tuple[str, ...] = ()


class FoundPythons(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        environments: the Pythons with a PyTorch, in the order of their folders.
        without: how many Pythons have none.
        folders: how many folders were looked into.
        left_out: what was not.
        is_whole: whether the time was enough.
        elapsed_s: how long it took.
    """

    environments: tuple[Environment, ...] = ()
    without: int = 0
    folders: int = 0
    left_out: tuple[LeftOut, ...] = ()
    is_whole: bool = True
    elapsed_s: float = 0.0


def ask_for_pythons(
    question: AskPythons, call: ChildCaller, is_over: Callable[[], bool] = lambda: False
) -> FoundPythons:
    """Return what a child finds.

    Args:
        question: where to look.
        call: calls the child.
        is_over: returns whether it is stopped; asked 20 times a second.

    Raises:
        StudioError: why there is no answer.
    """
    return ask_child(call, _MODULE, question, FoundPythons, limits=_LIMITS, is_over=is_over)


def answer(content: bytes) -> bytes:
    """Answer an `AskPythons` in msgpack, in the child.

    It walks in threads: one that a drive does not answer is left there, and another one goes on.
    """
    question = msgspec.msgpack.decode(content, type=AskPythons)
    search = _Search(question.longest_s)
    search.begin(question.folders)
    search.run()
    return msgspec.msgpack.encode(search.found())


class _Search:
    def __init__(self, longest_s: float) -> None:
        self._begun_s, self._longest_s = time.monotonic(), longest_s
        self._environments: list[Environment] = []
        self._sites: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self.folders = self._without = 0
        self._home = os.path.expanduser("~")
        self._network: frozenset[str] = frozenset()
        self._queue: deque[tuple[str, int]] = deque()
        self._seen: set[str] = set()
        self._at: dict[threading.Thread, str] = {}
        self._heard_s: dict[threading.Thread, float] = {}
        self._is_left_behind = False

    def begin(self, folders: tuple[str, ...]) -> None:
        """Note where to look: in the folders, or in all usual places."""
        if not folders:
            self._network = _network_drives()
            for prefix in ("/usr", "/usr/local"):
                self._take(prefix, PythonKind.PLAIN)
        roots = [*map(_named_root, folders), *_beside(folders)] or [*_usual_roots(self._home)]
        self._queue.extend((root, 0) for root in dict.fromkeys(roots))
        self._seen.update(roots)

    def run(self) -> None:
        """Look into all folders until the time is over, and leave behind those that are silent."""
        walks = [self._start() for _ in range(_WALKS)]
        while walks:
            time.sleep(_GLANCE_S)
            walks = [walk for walk in walks if walk.is_alive()]
            longest_s = _LAST_LOOK_S if self._is_over else _LONGEST_SILENCE_S
            for walk, folder in self._at.copy().items():
                is_silent = time.monotonic() - self._heard_s[walk] > longest_s
                if is_silent and self._at.pop(walk, None) is not None:
                    self.leave_out("its drive does not answer", folder)
                    self._is_left_behind = True
                    walks = [*(one for one in walks if one is not walk), self._start()]

    def _start(self) -> threading.Thread:
        walk = threading.Thread(target=self._walk, daemon=True)
        walk.start()
        return walk

    def _walk(self) -> None:
        """Look into all folders that no other walk looks into, until the time is over."""
        own = threading.current_thread()
        while (self._queue or self._at) and not self._is_over:
            try:
                folder, depth = self._queue.popleft()
            except IndexError:  # another walk may find more
                time.sleep(0.01)
                continue
            self._heard_s[own] = time.monotonic()
            self._at[own] = folder
            for inner in self._inner(folder, depth):
                if inner in self._network:
                    self.leave_out("on a network drive: name it to look there", inner)
                elif inner not in self._seen:
                    self._seen.add(inner)
                    self._queue.append((inner, depth + 1))
            if self._at.pop(own, None) is None:
                return  # left behind, and another one goes on

    @property
    def _is_over(self) -> bool:
        late = time.monotonic() - self._begun_s >= self._longest_s
        return late or len(self._environments) >= _MOST_FOUND

    def leave_out(self, why: str, *folders: str) -> None:
        """Note folders that are not looked into."""
        examples = self._examples.setdefault(why, [])
        examples += map(plain_text, folders[: _MOST_EXAMPLES - len(examples)])
        self._left_out[why] += len(folders)

    def found(self) -> FoundPythons:
        """Return what has been found."""
        left = [folder for folder, _ in self._queue.copy()]  # a walk may still go on
        if left:
            self.leave_out("the time was over", *left)
        return FoundPythons(
            environments=tuple(sorted(self._environments, key=lambda one: one.folder)),
            without=self._without,
            folders=self.folders,
            left_out=tuple(
                LeftOut(why, count, tuple(self._examples[why]))
                for why, count in self._left_out.most_common()
            ),
            is_whole=not (left or self._is_left_behind),
            elapsed_s=time.monotonic() - self._begun_s,
        )

    def _inner(self, folder: str, depth: int) -> list[str]:
        """Return the folders in a folder that are worth a look; take it if it is a Python."""
        names, folders = self._names(folder)
        kind = kind_of(folder, names)
        if kind is not None:
            self._take(folder, kind)
            if kind is PythonKind.VENV and "engines" in folders:
                return [os.path.join(folder, "engines")]  # a checkout of GPU Studio
            if kind in _WITHOUT_OTHERS:
                return []
            if depth:  # a home may have bin and lib as well
                folders = [name for name in folders if name in ("envs", "share", "opt", ".local")]
            if os.path.basename(folder) == ".local":
                folders = [name for name in names if name in ("share", "pipx", "opt")]
        elif os.path.basename(os.path.dirname(folder)) == _WHEELS:
            return []
        elif os.path.basename(folder).lower() in _CACHES:
            folders = [name for name in folders if name.lower() in _OF_CACHES]
        if depth >= _DEEPEST and folders:
            self.leave_out("deeper than ten folders", folder)
            return []
        return [os.path.join(folder, name) for name in folders]

    def _names(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the names in a folder, and those of its folders that are no links."""
        names, folders = [], []
        try:
            with os.scandir(folder) as entries:
                for count, entry in enumerate(entries):
                    if count % _LOOK_EVERY == 0:
                        self._heard_s[threading.current_thread()] = time.monotonic()
                    if count >= _MOST_ENTRIES:
                        self.leave_out("more than 50,000 files in one folder", folder)
                    if count >= _MOST_ENTRIES or (count % _LOOK_EVERY == 0 and self._is_over):
                        break
                    names.append(entry.name)
                    is_worth = entry.name.lower() not in _SKIPPED
                    if is_worth and not entry.name.endswith("-info") and _is_folder(entry):
                        folders.append(entry.name)
        except PermissionError:
            self.leave_out("this user may not read it", folder)
        except (OSError, ValueError):
            self.leave_out("it cannot be read", folder)
        self.folders += 1
        return names, folders

    def _take(self, folder: str, kind: PythonKind) -> None:
        """Note a Python's PyTorch, once for each folder of packages."""
        has_torch = False
        for one in environments_in(folder, kind):
            has_torch = True
            site = os.path.realpath(one.site)
            if site not in self._sites:
                self._sites.add(site)
                is_own = kind is PythonKind.ENGINE
                name = OWN_NAME if is_own else program_of(one.folder, self._home, sys.prefix)
                self._environments.append(_sendable(one, name))
        closed = closed_sites(folder, kind)
        for site in closed:
            self.leave_out("this user may not read it", site)
        self._without += not has_torch and not closed


def _sendable(one: Environment, name: str) -> Environment:
    """Return a Python with its name; bytes of a path that are no text become U+FFFD."""
    paths = {
        field: getattr(one, field).encode(errors="surrogateescape").decode(errors="replace")
        for field in ("folder", "site", "python", "lost")
    }
    return msgspec.structs.replace(one, program=name, **paths)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder itself, no link and no junction to one."""
    try:
        if not entry.is_dir(follow_symlinks=False):
            return False
        tag = getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0)
    except OSError:
        return False
    return tag != _JUNCTION


def _named_root(folder: str) -> str:
    """Return the folder that a named one is, or that a named file is in."""
    root = os.path.realpath(folder)
    return os.path.dirname(root) if os.path.isfile(root) else root


def _beside(folders: tuple[str, ...]) -> Iterator[str]:
    """Yield the Python beside a program's own folder, as ComfyUI's and Forge's packages have it."""
    for folder in map(_named_root, folders):
        for way in ("python_embeded", "python_embedded", os.path.join("system", "python")):
            beside = os.path.join(os.path.dirname(folder), way)
            if os.path.isdir(beside):
                yield beside


def _usual_roots(home: str) -> Iterator[str]:
    """Yield where to look without a wish: what tools make first, then everything of the user's."""
    for way in (
        ".local/share/gpu-studio", "AppData/Local/gpu-studio", ".local/share/uv",
        ".local/share/pipx", ".local/pipx", "pipx", ".cache/uv", ".pyenv",
        ".cache/pypoetry", ".virtualenvs", "AppData/Roaming/uv", "AppData/Local/uv",
        "AppData/Local/Programs", "AppData/Local/Packages", "AppData/Roaming/Python",
    ):  # fmt: skip
        folder = os.path.join(home, *way.split("/"))
        if os.path.isdir(folder):
            yield folder
    yield home
    yield from _fixed_drives()
    usual = ("/opt", "/srv", "/data", "/media", "/run/media", "/mnt", "/workspace")
    yield from filter(os.path.isdir, usual if os.name == "posix" else ())


def _fixed_drives() -> list[str]:
    """Return the roots of Windows' drives that are built in: GetDriveTypeW."""
    drives: list[str] = []
    if sys.platform == "win32":
        import ctypes

        for letter in "CDEFGHIJKLMNOPQRSTUVWXYZAB":
            if ctypes.windll.kernel32.GetDriveTypeW(f"{letter}:\\") == 3:  # DRIVE_FIXED
                drives.append(f"{letter}:\\")
    return drives


def _network_drives() -> frozenset[str]:
    """Return where Linux has network drives: proc(5), a line of /proc/self/mounts each."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return frozenset()
    return frozenset(line[1].replace("\\040", " ") for line in lines if line[2] in _NETWORK)


# ── the program that a Python belongs to, by the marks of their own repositories and installers ──

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
