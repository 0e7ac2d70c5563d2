"""The packages for Linux, each in a bare Debian that it is for: install, use, remove.

The screen is an Xvfb of this PC.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from studio_build.linux_packages import ON_DEBIAN, SELF_CONTAINED, Kind, deb_name

from tests.installed.first_use import (
    close,
    first_result,
    measure_at_once,
    open_and_close,
    settle,
    use_engine,
    use_older,
    use_terminal,
    use_updated,
    wait_for_engine,
)
from tests.installed.wheel_index import WheelIndex
from tests.windows.set_up import ROOT, SkippedError, install_from_debian
from tests.windows.window import FailedError, Person, WatchedWindow
from tests.windows.wine_pc import screen

_CLONE_NEWNS = 0x00020000  # of sched.h
_USER = "Änne Öhm"  # a person's name; the account's is below, which Debian wants in ASCII
_ACCOUNT = "anne"
_HOME = "home/anne öhm"
_APP = "usr/lib/gpu-studio"
_APP_ID = "gpu-studio"
_MENU_ENTRIES = "*[Gg][Pp][Uu]*[Ss]tudio.desktop"  # an older version's is called otherwise
_UNPACKED = f"{_HOME}/Unpacked here"
_TOOLS = (  # the last three validate packages
    "debootstrap", "xvfb", "xdotool", "imagemagick", "lintian", "appstream", "desktop-file-utils",
)  # fmt: skip
_OLDER, _NEWER = "bookworm", "trixie"  # Debian 12 and 13
_MOUNTED = ("proc", "dev")
_WATCH = (
    "import sys, runpy; sys.path.append('/proof'); sys.argv[0] = 'gpu_studio'; "
    "runpy.run_module('tests.windows.watched_window', run_name='__main__')"
)


class InstalledDebian:
    """The program in a Debian root.

    Args:
        root: the root folder.
        display: the X display for its windows.
        app: the program's folder in the root, without a slash in front.
    """

    def __init__(self, root: Path, display: str, app: str = _APP) -> None:
        self.root = root.resolve()
        self.app = app
        self.table = self.root / app / "resources" / "wheels.json"
        self._display = display

    def double_click(self) -> None:
        """Run the command of the menu entry, as a desktop does; of a folder, its program."""
        command = [f"/{self.app}/gpu-studio"]
        if self.app == _APP:
            (entry,) = (self.root / "usr/share/applications").glob(_MENU_ENTRIES)
            lines = entry.read_text(encoding="utf-8").splitlines()
            (line,) = [line.removeprefix("Exec=") for line in lines if line.startswith("Exec=")]
            command = ["sh", "-c", f"exec {line}"]
        self._start(command)

    def type(self, *command: str) -> tuple[int, str]:
        """Run a command as the user; return its exit status and what it prints."""
        process = self._start(command)
        printed = process.communicate()[0].decode("utf-8", "replace")
        return process.returncode, printed

    def watch(self, environ: Mapping[str, str] = MappingProxyType({})) -> subprocess.Popen[bytes]:
        """Open the window with the installed program and its Python."""
        return self._start([f"/{self.app}/bin/python3", "-c", _WATCH], environ)

    def close(self, person: Person) -> None:
        """Close the window: without a window manager, nothing else gives it the keyboard."""
        person.focus("GPU Studio")
        person.press("ctrl+q")

    def running(self) -> dict[int, str]:
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "root").readlink() == self.root:
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    if self.app.encode() in line:
                        found[int(folder.name)] = line.decode("utf-8", "replace").strip()
        return found

    def end(self) -> None:
        for process in self.running():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)

    def _start(
        self, command: Sequence[str], environ: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        variables = {
            "HOME": f"/{_HOME}", "USER": _ACCOUNT, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
            "DISPLAY": self._display, **environ,
        }  # fmt: skip
        chroot = shutil.which("chroot") or "/usr/sbin/chroot"  # not in the user's PATH
        return subprocess.Popen(
            [chroot, f"--userspec={_ACCOUNT}:{_ACCOUNT}", str(self.root), *command],
            env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip


def prove_linux(
    out: Path, pictures: Path, wheels: Path | None = None, older: Path | None = None
) -> None:
    """Install the .deb of a folder, use and remove it, then use the portable folder.

    All of it is in a bare Debian. Prints what was seen. With the folder of an older version's
    packages, these are installed first, and updated.

    Raises:
        FailedError: something that a person would expect did not come.
        SkippedError: this PC cannot have such a root.
    """
    (archive,) = out.glob("gpu-studio-*.tar.xz")
    packages = {kind: _package(out, kind) for kind in (SELF_CONTAINED, ON_DEBIAN)}
    olders = {kind: _older(older, kind) if older else None for kind in packages}
    if os.geteuid() != 0:
        raise SkippedError("a Debian root needs root here.")
    try:
        install_from_debian(_TOOLS)
    except (OSError, subprocess.SubprocessError) as error:
        raise SkippedError(f"Debian's packages for the proof: {error}.") from error
    for package in packages.values():
        validate(package)
    _keep_mounts_private()
    try:
        root = _make_root(ROOT / ".setup" / "debian")
    except FailedError as error:
        raise SkippedError(f"a bare Debian cannot be made: {error}") from error
    kind = ON_DEBIAN if _codename() != _OLDER else SELF_CONTAINED
    with _mounted(root), screen(for_all_users=True) as display:
        installed = InstalledDebian(root, display)
        portable = InstalledDebian(root, display, f"{_UNPACKED}/{_folder_of(archive)}")
        try:
            _copy_proof(root, wheels)
            _prove(installed, Person(display), (olders[kind], packages[kind]), pictures)
            _prove_portable(portable, Person(display), archive, pictures)
        finally:
            installed.end()
            portable.end()
    if _codename() == _OLDER:
        _prove_newer((olders[ON_DEBIAN], packages[ON_DEBIAN]), pictures)


def _package(out: Path, kind: Kind) -> Path:
    """Return the package of a kind in a folder.

    Raises:
        FailedError: there is none, or not one alone.
    """
    name = deb_name("*", kind)
    found = [one for one in out.glob(name) if kind.suffix or "+" not in one.name]
    if len(found) != 1:
        raise FailedError(f"{out} has {len(found)} packages {name}")
    return found[0]


def _older(out: Path, kind: Kind) -> Path:
    """Return what an older version's user has: before the package of its kind, the other one."""
    try:
        return _package(out, kind)
    except FailedError:
        return _package(out, SELF_CONTAINED)


def _codename() -> str:
    return _run(["sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"]).strip()


def _prove_newer(packages: tuple[Path | None, Path], pictures: Path) -> None:
    """Install the package of newer Debians in one, open its window, use its command, remove it."""
    older, package = packages
    try:
        root = _make_root(ROOT / ".setup" / "debian-newer", _NEWER)
    except FailedError as error:
        print(f"Not proven: {package.name}, as {_NEWER} cannot be made here: {error}", flush=True)
        return
    with _mounted(root), screen(for_all_users=True) as display:
        installed = InstalledDebian(root, display)
        try:
            before = _files(root)
            for one in filter(None, (older, package)):
                _install(root, one)
                person = Person(display)
                window_s = open_and_close(installed, person, pictures / "window-newer.png")
                status, printed = installed.type("gpu-studio", "devices", "--json")
                if status != 0 or '"cpu' not in printed:
                    raise FailedError(f"gpu-studio devices ended with {status}: {printed}")
            _remove(root, before)
        finally:
            installed.end()
    print(f"Linux ({_NEWER}): double-click to window {window_s:.1f} s.", flush=True)


def validate(package: Path) -> None:
    """Run the validators of Debian, freedesktop.org and AppStream on a package.

    Raises:
        FailedError: one of them found an error.
    """
    folder = package.parent / "validated"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run(["dpkg-deb", "-x", str(package), str(folder)])
        _run(["desktop-file-validate", f"{folder}/usr/share/applications/{_APP_ID}.desktop"])
        (metainfo,) = map(str, (folder / "usr/share/metainfo").iterdir())
        _run(["appstreamcli", "validate", "--no-net", metainfo])
        output = _run(["lintian", "--fail-on", "error", str(package)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"desktop-file-validate, appstreamcli, lintian: no errors.\n{output}".strip(), flush=True)


def _prove(
    installed: InstalledDebian,
    person: Person,
    packages: tuple[Path | None, Path],
    pictures: Path,
) -> None:
    root = installed.root
    older, package = packages
    before = _files(root)
    if older is not None:
        _install(root, older)
        results = use_older(installed, "/wheels")
        _install(root, package)
        use_updated(installed, person, pictures, results)
        _remove(root, before)
        _forget_user(root)
    _install(root, package)
    window_s = open_and_close(installed, person, pictures / "window.png")
    index = WheelIndex(root / "wheels")
    times = first_result(installed, person, pictures, index)._replace(window_s=window_s)
    print(f"Linux (Debian in a chroot): {times}.", flush=True)
    use_terminal(installed, "/wheels")
    _remove(root, before)


def _install(root: Path, package: Path) -> None:
    target = root / "tmp" / "package.deb"
    shutil.copy(package, target)
    began_s = time.monotonic()
    _in(root, ["apt-get", "install", "-y", "--no-install-recommends", "/tmp/package.deb"])
    target.unlink()
    print(
        f"{package.name} with its dependencies in {time.monotonic() - began_s:.0f} s.", flush=True
    )


def _remove(root: Path, before: set[str]) -> None:
    """Remove the package: what is left is in the user's folder.

    Raises:
        FailedError: something is left elsewhere.
    """
    _in(root, ["apt-get", "purge", "-y", "gpu-studio"])
    left = _files(root) - before
    strange = sorted(name for name in left if "gpu-studio" in name and not name.startswith(_HOME))
    if strange:
        raise FailedError(f"left after the removal: {strange}")


def _prove_portable(
    portable: InstalledDebian, person: Person, archive: Path, pictures: Path
) -> None:
    """Unpack the folder as the user, and make its engine from a folder of wheels."""
    root = portable.root
    _forget_user(root)
    target = root / _UNPACKED
    target.mkdir()
    _run(["tar", "--extract", "--file", str(archive), "--directory", str(target)])
    _in(root, ["chown", "--recursive", f"{_ACCOUNT}:", f"/{_UNPACKED}"])
    window_s = open_and_close(portable, person, pictures / "portable.png")
    _prove_quick(portable, person, pictures)
    began_s = time.monotonic()
    window = WatchedWindow(portable.watch({"GPU_STUDIO_WHEELS": "/wheels"}))
    wait_for_engine(window)
    engine_s = time.monotonic() - began_s
    result_s = use_engine(window, person)
    settle(pictures / "portable-result.png", person)
    close(portable, window, person)
    print(
        f"Linux (unpacked in the user's folder): double-click to window {window_s:.1f} s, from a "
        f"folder of wheels to CPU engine {engine_s:.0f} s, Run to first result {result_s:.0f} s.",
        flush=True,
    )
    shutil.rmtree(target)


def _prove_quick(portable: InstalledDebian, person: Person, pictures: Path) -> None:
    """Measure without PyTorch where no driver offers Vulkan, and with Mesa's own.

    Raises:
        FailedError: there was no verdict, or nothing about what is missing.
    """
    for name in ("", "mesa-vulkan-drivers"):
        if name:
            install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", name]
            _in(portable.root, install)
        picture = pictures / f"portable-quick{'-vulkan' * bool(name)}.png"
        took_s, pressed_s, said = measure_at_once(portable, person, picture)
        print(
            f"A first verdict with {name or 'no Vulkan'}: {took_s:.1f} s after the double-click, "
            f"{pressed_s:.1f} s after the press: {said}",
            flush=True,
        )
        if any("llvmpipe (software) by Vulkan" in one for one in said) is not bool(name):
            raise FailedError(f"the first measurement with {name or 'no Vulkan'} says {said}")
    _in(portable.root, ["apt-get", "purge", "-y", "-q", "mesa-vulkan-drivers"])


def _folder_of(archive: Path) -> str:
    return archive.name.removesuffix(".tar.xz")


def _make_root(folder: Path, release: str = "") -> Path:
    """Return a bare Debian, by default of the release that runs here, with a user.

    It is kept for next time.
    """
    root = folder / "root"
    if not (root / "usr" / "bin" / "python3").exists():
        shutil.rmtree(root, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        print("A bare Debian…", flush=True)
        command = ["debootstrap", "--variant=minbase", "--include=python3,ca-certificates"]
        try:
            _run([*command, release or _codename(), str(root)])
        except FailedError:
            shutil.rmtree(root, ignore_errors=True)
            raise
        # Another release keeps the sources that it was made from.
        for name in ("etc/apt/apt.conf.d", *([] if release else ["etc/apt/sources.list.d"])):
            shutil.copytree(Path("/") / name, root / name, dirs_exist_ok=True)
        for name in ("etc/hosts", "etc/resolv.conf"):
            shutil.copyfile(Path("/") / name, root / name)
    if not (root / _HOME).exists():
        _in(root, ["useradd", "--comment", _USER, "--home-dir", f"/{_HOME}", "--create-home",
                   "--shell", "/bin/sh", _ACCOUNT])  # fmt: skip
    _forget_user(root)
    with _mounted(root):
        _in(root, ["apt-get", "update", "-q"])
        _in(root, ["apt-get", "purge", "-y", "-q", "gpu-studio"], allowed=(0, 100))
    return root


def _forget_user(root: Path) -> None:
    """Make the user one who never had the program."""
    for name in (".local", ".config", _UNPACKED.rpartition("/")[2]):
        shutil.rmtree(root / _HOME / name, ignore_errors=True)


def _copy_proof(root: Path, wheels: Path | None) -> None:
    """Put the wheels of PyTorch and the module that watches the window into the root."""
    shutil.rmtree(root / "proof", ignore_errors=True)
    for name in ("tests/__init__.py", "tests/windows/watched_window.py"):
        target = root / "proof" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    shutil.rmtree(root / "wheels", ignore_errors=True)
    shutil.copytree(wheels or _download_wheels(root.parent / "wheels"), root / "wheels")


def _download_wheels(folder: Path) -> Path:
    """Return a folder with the wheels of PyTorch for the CPU, downloaded once.

    Raises:
        SkippedError: they cannot be had.
    """
    import sys

    from gpu_studio.core.wheels import choice_of_tag

    version = choice_of_tag("cpu", system="Linux").torch_version
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "-d",
        str(folder),
        f"torch=={version}",
    ]
    try:
        _run([*command, "--python-version", "3.11", "--only-binary", ":all:",
              "--platform", "manylinux_2_28_x86_64", "--platform", "linux_x86_64"])  # fmt: skip
    except FailedError as error:
        raise SkippedError(f"PyTorch's wheels: {error}") from error
    return folder


def _keep_mounts_private() -> None:
    """Let nobody else meet what is mounted from now on, however this process ends.

    A folder with the PC's own /dev in it must not be there for whoever cleans up.

    Raises:
        SkippedError: that is not allowed here.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise SkippedError(f"mounts of its own are not allowed here: {reason}.")
    try:
        _run(["mount", "--make-rprivate", "/"])
    except FailedError as error:
        raise SkippedError(f"mounts of its own are not allowed here: {error}.") from error


@contextlib.contextmanager
def _mounted(root: Path) -> Iterator[None]:
    """Mount what a running system has besides files, and take it away again."""
    mounted = []
    try:
        for name in _MOUNTED:
            (root / name).mkdir(exist_ok=True)
            _run(["mount", "--bind", f"/{name}", str(root / name)])
            mounted.append(root / name)
        yield
    finally:
        for place in reversed(mounted):
            _run(["umount", "-l", str(place)])


def _files(root: Path) -> set[str]:
    """Return the files in a root, without those of the system that runs there."""
    command = ["find", str(root), "-xdev", "-type", "f", "-printf", "%P\\n"]
    return set(_run(command).splitlines())


def _in(root: Path, command: Sequence[str], allowed: Sequence[int] = (0,)) -> str:
    environ = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
        **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
    }  # fmt: skip
    return _run(["chroot", str(root), *command], environ, allowed)


def _run(
    command: Sequence[str], environ: dict[str, str] | None = None, allowed: Sequence[int] = (0,)
) -> str:
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode not in allowed:
        values = (done.stdout + done.stderr).strip()[-1500:]
        raise FailedError(f"{command[0]} ended with {done.returncode}\n{values}")
    return done.stdout
