#!/usr/bin/env python3
"""Set up this checkout with uv, then run GPU Studio or its tests.

    python3 packaging/bootstrap.py run [ARGS...]           the window, or a command of the terminal
    python3 packaging/bootstrap.py test [PYTEST ARGS...]   the whole test suite
    python3 packaging/bootstrap.py test --quick            all but its slowest tests
    python3 packaging/bootstrap.py test --soft-cards       the tests for CUDA on simulated cards
    python3 packaging/bootstrap.py test --windows          the tests in Windows under Wine

It needs a Python and nothing else: uv comes from the PATH, or with pip, whose settings uv then has
as well. `uv run gpu-studio` and `uv run pytest` work beside it. Pythons from 3.6 on can read this
file, so that one that does not fit gets a sentence instead of a syntax error.
"""

import ast
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = os.path.join(ROOT, ".venv")
_TOOLS = os.path.join(ROOT, ".setup")
_IS_WINDOWS = sys.platform == "win32"
_PYTHON = os.path.join("Scripts", "python.exe") if _IS_WINDOWS else os.path.join("bin", "python")
# pip's settings, and the variables that tell uv the same.
_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}


class SetupError(Exception):
    """The checkout cannot be set up; the text says why, and what to do."""


def install_from_debian(packages, why):
    """Install packages of Debian as root; anybody else is told what to type."""
    from system_libraries import apt_command, apt_install, apt_names, has_apt

    if not has_apt():
        raise SetupError(f"{why} Install {', '.join(packages)}, then start again.")
    if os.geteuid() != 0 or not apt_install(packages):
        told = apt_command(apt_names(packages))
        raise SetupError(f"{why} Type the following, then start again:\n    {told}")


def own_pip():
    """Return the command that is pip: this Python's, or that of an environment made for it."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    folder = os.path.join(_TOOLS, "pip")
    pip = [os.path.join(folder, _PYTHON), "-m", "pip"]
    if not os.path.exists(pip[0]) or subprocess.call([*pip, "-V"], stdout=subprocess.DEVNULL) != 0:
        if importlib.util.find_spec("ensurepip") is None:  # Debian splits it off
            name = "python{}.{}-venv".format(*sys.version_info[:2])
            install_from_debian([name], "This Python has neither uv nor pip.")
        subprocess.run([sys.executable, "-I", "-m", "venv", "--clear", folder], check=True)
    return pip


def uv_variables(listed):
    """Return the variables that tell uv what pip is told, from the output of `pip config list`."""
    rows = [line.partition("=") for line in listed.splitlines() if "=" in line]
    found = {}
    for section in ("global.", "install.", ":env:."):  # each one outdoes those before it
        of_section = [(key, text) for key, _, text in rows if key.startswith(section)]
        found.update({key[len(section) :]: ast.literal_eval(text) for key, text in of_section})
    # Of a version that several indexes have, pip takes any.
    told = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "1"}
    for name, variable in _SETTINGS.items():
        if name in found:
            told[variable] = ("," if name == "find-links" else " ").join(found[name].split())
    if found.get("no-index", "false").lower() in ("1", "true", "yes", "on"):
        told["UV_DEFAULT_INDEX"] = pathlib.Path(_TOOLS).as_uri()
    return told


def find_uv():
    """Return uv's path and the variables for it: the PATH's, or what pip installs in `.setup`."""
    own = shutil.which("uv")
    if own is not None:
        return own, {}
    pip, folder = own_pip(), os.path.join(_TOOLS, "uv")
    place = os.path.join(folder, os.path.dirname(_PYTHON))
    if shutil.which("uv", path=place) is None:
        told = ["install", "--quiet", "--disable-pip-version-check", "--target", folder, "uv"]
        subprocess.run([*pip, *told], stdout=sys.stderr, check=True)
    listed = subprocess.run([*pip, "config", "list"], stdout=subprocess.PIPE, check=True).stdout
    return shutil.which("uv", path=place), uv_variables(listed.decode("utf-8", "replace"))


def synchronize(environ):
    """Give the environment the packages of uv.lock; return the variables that uv was given."""
    uv, told = find_uv()
    environ = {**told, **environ, "UV_PROJECT_ENVIRONMENT": ENVIRONMENT, "UV": uv}

    def call(*arguments, **options):
        options = {"stdout": sys.stderr, "check": True, **options}
        return subprocess.run([uv, *arguments], env=environ, cwd=ROOT, **options).returncode == 0

    is_made = os.path.exists(os.path.join(ENVIRONMENT, _PYTHON))
    quiet = {"stderr": subprocess.DEVNULL, "check": False}
    if is_made and call("sync", "--frozen", "--check", "--quiet", **quiet):
        return environ
    if os.path.islink(ENVIRONMENT):
        raise SetupError(f"{ENVIRONMENT} is a link: another copy of GPU Studio may use it.")
    if not is_made:
        call("venv", "--quiet", "--allow-existing", "--python", sys.executable, ENVIRONMENT)
    if "UV_DEFAULT_INDEX" in environ:
        # The lock has the addresses of PyPI's files; those of a mirror are known by their hashes.
        wanted = os.path.join(ENVIRONMENT, "requirements.txt")
        call("export", "--frozen", "--quiet", "--no-emit-project", "-o", wanted)
        call("pip", "install", "--python", ENVIRONMENT, "--require-hashes", "-r", wanted)
    call("sync", "--frozen", "--compile-bytecode")
    return environ


def install_engine(python, environ):
    """Install the PyTorch that fits this PC, unless there is one; the program opens without."""
    engines = os.path.join(ENVIRONMENT, "engines")
    os.makedirs(engines, exist_ok=True)
    records = [one[:-5] for one in os.listdir(engines) if one.endswith(".json")]
    if all(one == "wanted" or one.endswith(".plan") for one in records):
        command = [python, "-m", "gpu_studio", "engine", "install", "auto"]
        if subprocess.run(command, env=environ, stdout=sys.stderr).returncode != 0:
            print("PyTorch is not installed: GPU Studio starts without it.", file=sys.stderr)


def python_arguments(command, arguments):
    """Return the arguments of the environment's Python for a command."""
    if command == "run":
        return ["-m", "gpu_studio", *arguments]
    for option, module in (("--soft-cards", "tests.softcards"), ("--windows", "tests.windows")):
        if option in arguments:
            return ["-m", module, *[one for one in arguments if one != option]]
    # One file, or one test, is over before the workers have started.
    is_one = any(one.endswith(".py") or "::" in one for one in arguments)
    together = ["-n", "auto", "--dist", "worksteal", "--max-worker-restart", "0"]
    return ["-m", "pytest", *([] if is_one else together), *arguments]


def run(command, arguments):
    """Set up what a command needs, then run it; return the exit status."""
    from system_libraries import missing_libraries

    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "PYTHONPATH")}
    has_screen = _IS_WINDOWS or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
    missing = missing_libraries(screen=has_screen and command == "run")
    if missing and (command == "test" or (has_screen and not arguments)):
        install_from_debian([*missing.values()], f"The window needs {', '.join(missing)}.")
    python, told = os.path.join(ENVIRONMENT, _PYTHON), python_arguments(command, arguments)
    uv_environ = synchronize(environ)
    if told[1] in ("tests.softcards", "tests.windows"):
        environ = uv_environ  # they make environments themselves
    elif arguments[:1] != ["engine"]:
        install_engine(python, environ)
    if command == "test":
        os.chdir(ROOT)
    if not _IS_WINDOWS:
        os.execve(python, [python, *told], environ)
    return subprocess.call([python, *told], env=environ)


def main():
    """Check the interpreter, then run the command."""
    command, arguments = sys.argv[1:2], sys.argv[2:]
    if command not in (["run"], ["test"]):
        sys.stderr.write(__doc__)
        return 0 if command in (["-h"], ["--help"]) else 2
    sys.path.insert(0, os.path.join(ROOT, "packaging", "linux"))
    try:
        from fit_pc import unfit_python

        reason = unfit_python() or run(command[0], arguments)
    except (SetupError, OSError) as error:
        reason = str(error)
    except subprocess.CalledProcessError as error:
        reason = f"The setup stopped: “{' '.join(error.cmd[:3])}” failed, for the reason above."
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. The next start continues from here.\n")
        return 130
    if isinstance(reason, int):
        return reason
    sys.stderr.write(f"{reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
