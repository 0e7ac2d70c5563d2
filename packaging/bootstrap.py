#!/usr/bin/env python3
"""GPU Studio's setup: creates .venv, installs the right PyTorch, and starts the program.

    python3 packaging/bootstrap.py run [ARGS...]
    python3 packaging/bootstrap.py test [PYTEST ARGS...]
    python3 packaging/bootstrap.py shortcut

Standard library only. The work is in the folder studio_setup. Any Python, however old, must be able
to read this file: an unsupported Python then gets a sentence instead of a syntax error.
"""

# ruff: noqa: UP020, UP032

import io
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def unfit_python(root):
    """Return why this Python cannot be used; None if it can."""
    with io.open(os.path.join(root, "resources", "wheels.json"), encoding="utf-8") as file:
        allowed = json.load(file)["python"]
    oldest, newest = tuple(allowed["oldest"]), tuple(allowed["newest"])
    reason = None
    if not oldest <= sys.version_info[:2] <= newest:
        reason = "{}.{}.{}".format(*sys.version_info[:3])
    elif sys.implementation.name != "cpython":
        reason = sys.implementation.name
    elif sys.maxsize < 2**32:
        reason = "a 32-bit one"
    elif hasattr(sys, "_is_gil_enabled") and _is_free_threaded():
        reason = "a free-threaded one"
    if reason is None:
        return None
    wanted = "GPU Studio needs a 64-bit CPython from {}.{} to {}.{}".format(*(oldest + newest))
    return "{}; this is {} ({}).".format(wanted, reason, sys.executable)


def _is_free_threaded():
    import sysconfig

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def main():
    """Check the interpreter, then run the command."""
    try:
        sentence = unfit_python(ROOT)
    except (OSError, KeyError, ValueError):
        sentence = "The file resources/wheels.json is missing or broken: download GPU Studio again."
    if sentence is not None:
        sys.stderr.write(sentence + "\n")
        return 1
    # Python has put this file's folder first on the path; the program's folder goes next.
    sys.path.insert(1, ROOT)
    import pathlib

    from studio_setup.commands import run_command

    return run_command(pathlib.Path(ROOT), sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
