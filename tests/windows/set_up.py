"""Set up a Windows PC under Wine with a real Python and the program's packages.

From Debian's packages and PyPI alone. python311.dll and the standard library's .pyd files are
python.org's, out of the wheel of Panda3D for Windows, which ships them; the .py files of the
standard library are those of a Python 3.11 of this PC. What Wine 8 lacks, and the programs that
start that DLL, are compiled from the folder ``c``.
"""

import contextlib
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from packaging.markers import Marker

from gpu_studio.builds.lock_file import LOCK, read_lock
from tests.windows.wine_pc import (
    CHECKOUT,
    CPP_RUNTIME,
    ENVIRONMENT,
    FONTS,
    HOME,
    PYTHON,
    WindowsPc,
)

ROOT = Path(__file__).resolve().parent.parent.parent
_C = Path(__file__).resolve().parent / "c"
_DEBIAN = (
    "wine64", "gcc-mingw-w64-x86-64-win32", "xvfb", "xdotool", "tcl8.6", "tk8.6",
    "fonts-dejavu-core", "imagemagick",
)  # fmt: skip
# Not all that this PC has, so that a window is as wide on every PC.
_FONTS = [
    Path("/usr/share/fonts/truetype/dejavu") / f"DejaVu{name}.ttf"
    for name in ("Sans", "Sans-Bold", "SansMono", "SansMono-Bold")
]
_STANDARD_LIBRARY = ("libpython3.11-stdlib", "python3.11-venv")
_PANDA = (
    "panda3d==1.10.16 "
    "--hash=sha256:37acfb92655c4226879f95c988e2ef1449a53c54486d6c1ebc00e2772429af82"
)
_WINE_DLLS = Path("/usr/lib/x86_64-linux-gnu/wine/x86_64-windows")
_TRIPLET = "x86_64-w64-mingw32"
_FOR_WINDOWS = (
    "--platform", "win_amd64", "--python-version", "3.11", "--implementation", "cp",
    "--only-binary", ":all:", "--no-deps", "--disable-pip-version-check", "--quiet",
)  # fmt: skip
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", ".setup", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info"
)
_OF_LINUX = ("site-packages", "dist-packages", "lib-dynload", "test", "sitecustomize.py")
_NOT_FOR_CPU = re.compile(r"nvidia-(?!ml-py)|cuda-|triton$|torch$")
_STAMP = "ready"


class SkippedError(Exception):
    """This PC cannot have such a Windows; the text says why."""


def set_up(folder: Path, say: Callable[[str], None] = print) -> WindowsPc:
    """Return a Windows PC in a folder, with this checkout as it is now.

    What is there from the last time is used again if nothing that it was made from has changed.

    Raises:
        SkippedError: it cannot be made here.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise SkippedError("it is made of Debian's packages for x86-64.")
    pc = WindowsPc(folder.resolve())
    stamp, facts = folder / _STAMP, _made_from()
    try:
        pc.shut_down()  # what an earlier run left would go on showing its windows on that screen
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != facts:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            _make(pc, say)
            pc.shut_down()  # a desktop that was started without a screen shows no windows
            stamp.write_text(facts, encoding="utf-8")
        copy_checkout(pc, CHECKOUT)
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, StopIteration) as error:
        raise SkippedError(f"{_last_words(error)}.") from error
    return pc


def copy_checkout(pc: WindowsPc, windows_path: str) -> Path:
    """Copy this checkout to a folder of the PC, as a download would lie there."""
    target = pc.path(windows_path)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT, target, ignore=_NOT_COPIED)
    return target


def download_wheels(pc: WindowsPc) -> Path:
    """Return a folder with PyTorch's wheel for Windows, and those of what it needs.

    Raises:
        SkippedError: they cannot be had.
    """
    folder, wanted = pc.folder / "wheels", pc.folder / "packages.txt"
    wanted.write_text("\n".join(_locked()) + "\n", encoding="utf-8")
    try:
        _pip("download", "-d", str(folder), "--require-hashes", "-r", str(wanted))
        _pip("download", "-d", str(folder), _torch())
    except (OSError, subprocess.SubprocessError) as error:
        raise SkippedError(f"{_last_words(error)}.") from error
    return folder


def _made_from() -> str:
    """Return a text that changes with all that a PC is made from."""
    files = [Path(__file__), *sorted(_C.iterdir()), LOCK]
    text = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(text + _torch().encode()).hexdigest()


def _make(pc: WindowsPc, say: Callable[[str], None]) -> None:
    say("Wine, a compiler and a screen, from Debian")
    install_from_debian(_DEBIAN)
    say("Python's DLL and the program's packages, from PyPI")
    home = pc.folder / "home"
    _unpack_python(pc.folder, home)
    _copy_standard_library(home)
    say("what starts Python, and what Wine lacks")
    build = pc.folder / "build"
    _compile(build, home)
    say("the Windows")
    _boot(pc)
    shutil.move(home, pc.path(HOME))
    system = pc.path("C:\\windows\\system32")
    for name in ("ucrtbase.dll", "ucrtwine.dll", "icuuc.dll"):
        shutil.copy(build / name, system / name)
    shutil.copy(build / "py.exe", pc.path("C:\\windows") / "py.exe")
    for font in _FONTS:
        shutil.copy(font, pc.path(FONTS))
    say("its environment")
    _make_environment(pc)


def install_from_debian(packages: Sequence[str]) -> None:
    """Install those of Debian's packages that are not here.

    Raises:
        SkippedError: they cannot be installed here.
        OSError, subprocess.SubprocessError: the installation failed.
    """
    if all(_is_installed(package) for package in packages):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise SkippedError(f"install these packages of Debian first: {' '.join(packages)}.")
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patient = ("-q", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3")
    _run(["apt-get", *patient, "update"], environ)
    _run(["apt-get", *patient, "install", "-y", "--no-install-recommends", *packages], environ)


def _is_installed(package: str) -> bool:
    command = ["dpkg-query", "-W", "-f", "${Status}", package]
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout == "install ok installed"
    return False


def _unpack_python(folder: Path, home: Path) -> None:
    wanted = folder / "panda.txt"
    wanted.write_text(_PANDA + "\n", encoding="utf-8")
    _pip("download", "--require-hashes", "-d", str(folder), "-r", str(wanted))
    wheel = next(folder.glob("panda3d-*.whl"))
    (home / "DLLs").mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            place, _, file = name.rpartition("/")
            if place == "deploy_libs" and file and not file.startswith("api-ms-"):
                beside = file.lower() in ("python311.dll", "vcruntime140.dll")
                target = home / file.lower() if beside else home / "DLLs" / file
                target.write_bytes(archive.read(name))
    wheel.unlink()


def _copy_standard_library(home: Path) -> None:
    library = _standard_library()
    if library is None:
        install_from_debian(_STANDARD_LIBRARY)
        library = _standard_library()
    if library is None:
        raise SkippedError("there is no Python 3.11 whose standard library could be copied.")
    ignored = shutil.ignore_patterns("__pycache__", "config-3.11*", "_sysconfigdata*", *_OF_LINUX)
    shutil.copytree(library, home / "Lib", ignore=ignored)
    bundled = home / "Lib" / "ensurepip" / "_bundled"
    if not list(bundled.glob("pip-*.whl")):  # Debian keeps them elsewhere
        bundled.mkdir(exist_ok=True)
        for wheel in Path("/usr/share/python-wheels").glob("*.whl"):
            shutil.copy(wheel, bundled)
    (home / "Lib" / "site-packages").mkdir()
    for name in ("tcl8.6", "tk8.6"):
        shutil.copytree(Path("/usr/share/tcltk") / name, home / "tcl" / name)
    # The scripts insist on the very version of Debian's DLLs.
    for script in (home / "tcl/tcl8.6/init.tcl", home / "tcl/tk8.6/tk.tcl"):
        text = script.read_text(encoding="utf-8")
        script.write_text(re.sub(r"-exact (Tcl|Tk) +8\.6\.\d+", r"-exact \1 8.6.12", text), "utf-8")


def _standard_library() -> Path | None:
    """Return the folder of a Python 3.11's standard library, with what makes environments."""
    pythons = [sys.executable, shutil.which("python3.11"), "/usr/bin/python3.11"]
    pythons += [str(one) for one in Path.home().glob(".pyenv/versions/3.11.*/bin/python3.11")]
    code = "import ensurepip, sys, sysconfig; sys.version_info[:2] == (3, 11) or sys.exit(1); "
    code += "print(sysconfig.get_path('stdlib'))"
    for python in filter(None, pythons):
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [python, "-I", "-c", code], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return Path(done.stdout.strip())
    return None


def _compile(build: Path, home: Path) -> None:
    build.mkdir()
    scripts = home / "Lib" / "venv" / "scripts" / "nt"
    scripts.mkdir(parents=True, exist_ok=True)
    dll = str(home / "python311.dll")
    python_home = HOME.replace("\\", "\\\\")
    for name, flags in (("python.exe", ()), ("pythonw.exe", ("-mwindows",))):
        _gcc(home / name, "python.c", *flags, dll)
        _gcc(scripts / name, "launcher.c", *flags, f'-DPYTHON_HOME=L"{python_home}"', "-lshlwapi")
    shutil.copy(scripts / "python.exe", build / "py.exe")
    exports = _exports(Path(dll))
    _forward(build, home / "python3.dll", {name: f"python311.{name}" for name in exports})
    _compile_runtime(build)
    # Qt asks ICU for its converters; Windows 10 has it, Wine has not. Here no name has a converter.
    _forward(build, build / "icuuc.dll", dict.fromkeys(_ICU.split(), "nothing"))


_ICU = """
ucnv_open ucnv_close ucnv_reset ucnv_countAvailable ucnv_getAvailableName ucnv_getStandardName
ucnv_getName ucnv_getMaxCharSize ucnv_getToUCallBack ucnv_getFromUCallBack ucnv_setToUCallBack
ucnv_setFromUCallBack ucnv_cbToUWriteUChars ucnv_cbFromUWriteUChars ucnv_toUnicode
ucnv_fromUnicode ucnv_toUCountPending ucnv_fromUCountPending UCNV_FROM_U_CALLBACK_SUBSTITUTE
UCNV_TO_U_CALLBACK_SUBSTITUTE
"""


def _compile_runtime(build: Path) -> None:
    """Make a C runtime that forwards to Wine's, but for the complex functions that Wine lacks."""
    wines = bytearray((_WINE_DLLS / "ucrtbase.dll").read_bytes())
    wines[0x40:0x60] = bytes(0x20)  # by this mark Wine knows its own; a second name would miss it
    (build / "ucrtwine.dll").write_bytes(wines)
    library = build / "complex.o"
    _run([f"{_TRIPLET}-gcc", "-O1", "-c", "-o", str(library), str(_C / "complex.c")])
    symbols = _run([f"{_TRIPLET}-nm", "--defined-only", str(library)])
    own = set(re.findall(r" T own_(\w+)", symbols))
    forwards = {}
    for name in _exports(_WINE_DLLS / "ucrtbase.dll"):
        plain = name if name in own else name.removesuffix("l")
        forwards[name] = f"own_{plain}" if plain in own else f"ucrtwine.{name}"
    _forward(build, build / "ucrtbase.dll", forwards, str(library))


def _forward(build: Path, dll: Path, forwards: dict[str, str], *objects: str) -> None:
    """Compile a DLL whose functions are others: those of objects, or of another DLL."""
    definition = build / f"{dll.stem}.def"
    lines = [f"LIBRARY {dll.stem}", "EXPORTS", *(f" {a} = {b}" for a, b in forwards.items())]
    definition.write_text("\n".join(lines) + "\n", encoding="ascii")
    _gcc(dll, "empty.c", "-shared", "-nostartfiles", "-Wl,-e,DllMain", *objects, str(definition))


def _gcc(target: Path, source: str, *arguments: str) -> None:
    own = ("-municode",) if target.suffix == ".exe" else ()
    _run(
        [
            f"{_TRIPLET}-gcc",
            "-O1",
            "-static-libgcc",
            *own,
            "-o",
            str(target),
            str(_C / source),
            *arguments,
        ]
    )


def _exports(dll: Path) -> list[str]:
    text = _run([f"{_TRIPLET}-objdump", "-p", str(dll)])
    table = text.partition("[Ordinal/Name Pointer]")[2].partition("\n\n")[0]
    return re.findall(r"^\s+\[ *\d+\].*?(\S+)$", table, re.MULTILINE)


def _boot(pc: WindowsPc) -> None:
    for _ in range(2):
        status, _ = pc_run(pc, ["wineboot", "--init"], 240)
        if status == 0 and pc.path("C:\\windows\\system32\\kernel32.dll").exists():
            pc.shut_down()  # which writes the registry
            return
        pc.shut_down()
        shutil.rmtree(pc.prefix, ignore_errors=True)
    raise SkippedError("Wine does not start.")


def pc_run(pc: WindowsPc, command: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Run what needs no folder of the PC."""
    pc.path("").mkdir(parents=True, exist_ok=True)
    return pc.run(
        command, timeout_s, folder="C:\\", environ={"WINEDLLOVERRIDES": "mscoree,mshtml="}
    )


def _make_environment(pc: WindowsPc) -> None:
    path = f"{HOME}\\Scripts;{HOME}".replace("\\", "\\\\")
    registry = pc.folder / "environment.reg"
    registry.write_text(
        "Windows Registry Editor Version 5.00\r\n\r\n"
        f'[HKEY_CURRENT_USER\\Environment]\r\n"PATH"="{path}"\r\n',
        encoding="utf-16",
    )
    pc.run(["regedit", "/S", f"Z:{registry}".replace("/", "\\")], 120, folder="C:\\")
    make = ["python.exe", "-I", "-m", "venv", "--without-pip", ENVIRONMENT]
    status, output = pc.run(make, 240, folder="C:\\")
    if status != 0:
        raise SkippedError(f"Python does not start under this Wine: {output.strip()[-300:]}")
    packages = pc.path(ENVIRONMENT) / "Lib" / "site-packages"
    wanted = pc.folder / "packages.txt"
    wanted.write_text("\n".join(_locked()) + "\n", encoding="utf-8")
    target = ("--target", str(packages))
    _pip("install", *target, "--require-hashes", "-r", str(wanted))
    _pip("install", *target, "--upgrade", _torch())
    # With Wine 8's own C++ runtime, an error of PyTorch damages the heap.
    for name in CPP_RUNTIME:
        shutil.copy(packages / "shiboken6" / f"{name}.dll", pc.path(HOME) / f"{name}.dll")
    (packages / "gpu_studio.pth").write_text(f"{CHECKOUT}\n", encoding="utf-8")
    status, output = pc.run(
        [PYTHON, "-c", "import torch; print(torch.__version__)"], 300, folder="C:\\"
    )
    if status != 0:
        raise SkippedError(f"PyTorch cannot be imported under this Wine: {output.strip()[-300:]}")


def _locked() -> list[str]:
    """Return what a checkout on Windows has for Python 3.11 and its CPU PyTorch, with hashes."""
    python = {"python_full_version": "3.11.0"}
    return [
        " ".join([f"{one.name}=={one.version}", *(f"--hash=sha256:{sha}" for sha in one.hashes)])
        for one in read_lock()
        if not _NOT_FOR_CPU.match(one.name)
        and (not one.marker or Marker(one.marker).evaluate(python))
    ]


def _torch() -> str:
    from gpu_studio.core.wheels import choice_of_tag

    return f"torch=={choice_of_tag('cpu', system='Windows').torch_version}"


def _pip(command: str, *arguments: str) -> None:
    _run([sys.executable, "-m", "pip", command, *_FOR_WINDOWS, *arguments])


def _run(command: Sequence[str], environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
        errors="replace", check=True,
    )  # fmt: skip
    return done.stdout


def _last_words(error: Exception) -> str:
    result = getattr(error, "stderr", None) or str(error) or type(error).__name__
    return " ".join(result.strip().splitlines()[-3:])[-400:].rstrip(".")
