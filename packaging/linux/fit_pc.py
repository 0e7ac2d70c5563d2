"""Look whether this PC can run GPU Studio; if not, print a sentence and end with another status.

The starter runs this with "window" or "command": a window needs libraries of the system. With
"adopt", the program's folder takes this Python for its own, if it fits. With "compile", write the
bytecode of what this Python imports: the installation does that as root. Any Python, however old,
must be able to read this file.
"""

import os
import sys

NO_LIBRARIES, NO_PYTHON = 1, 2
MACHINE = "x86_64"  # that of every compiled file in the package


def unfit_machine():
    """Return why no Python can run the package on this PC; None if one can."""
    machine = os.uname().machine
    if machine == MACHINE:
        return None
    told = "This GPU Studio is for PCs with an x86-64 processor; this one is {}."
    return told.format(machine)


def unfit_python():
    """Return why this Python cannot run the program; None if it can."""
    told = None
    if not (3, 10) <= sys.version_info[:2] <= (3, 14):
        told = "GPU Studio needs Python 3.10 to 3.14; this PC's python3 is {}.{}.{}."
    elif sys.implementation.name != "cpython" or sys.maxsize < 2**32:
        told = "GPU Studio needs a 64-bit CPython; this PC's python3 {}.{}.{} is another one."
    return told and told.format(*sys.version_info[:3])


def missing_libraries(app):
    """Return what to install for the window; None if nothing is missing."""
    sys.path.insert(0, app)
    from system_libraries import apt_command, apt_names, has_apt, missing_libraries

    missing = missing_libraries(screen=True)
    if not missing:
        return None
    if has_apt():
        command = apt_command(apt_names(sorted(set(missing.values()))))
        return "The window needs libraries of the system. Type this into a terminal: " + command
    return "The window needs these libraries of the system: " + ", ".join(sorted(missing))


def adopt(app):
    """Let the folder be an environment of this Python; return why it cannot, or None."""
    own = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    link, settings = os.path.join(app, "bin", "python3"), os.path.join(app, "pyvenv.cfg")
    home = os.path.dirname(own)
    try:
        with open(settings + ".new", "wb") as file:
            file.write(b"home = " + os.fsencode(home) + b"\n")
            file.write(b"include-system-site-packages = false\n")
        os.symlink(own, link + ".new")
        os.rename(link + ".new", link)
        os.rename(settings + ".new", settings)
    except OSError as error:
        told = "GPU Studio could use {}, but cannot write that into its folder {}: {}."
        return told.format(own, app, error.strerror)
    return None


def compile_modules(app):
    """Compile the modules in those folders of the program that are on this Python's path."""
    import compileall

    own = [one for one in sys.path if one.startswith(os.path.join(app, "packages"))]
    for folder in [os.path.join(app, "gpu_studio"), *own]:
        compileall.compile_dir(folder, quiet=2, workers=0)


def main():
    """Print why the program cannot run here; return the exit status."""
    app = os.path.dirname(os.path.abspath(__file__))
    if sys.argv[1:] == ["compile"]:
        compile_modules(app)
        return 0
    status, sentence = NO_PYTHON, unfit_machine() or unfit_python()
    if sentence is None and sys.argv[1:] == ["adopt"]:
        sentence = adopt(app)
    elif sentence is None and sys.argv[1:] == ["window"]:
        status, sentence = NO_LIBRARIES, missing_libraries(app)
    if sentence is None:
        return 0
    print(sentence)
    return status


if __name__ == "__main__":
    sys.exit(main())
