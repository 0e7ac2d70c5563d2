"""Look whether this PC can run GPU Studio; if not, print a sentence and end with status 1.

The starter runs this with the number of its arguments: without any, a window opens, which needs
libraries of the system. With "compile", write the bytecode of what this Python imports: the
installation does that as root. Any Python, however old, must be able to read this file.
"""

import os
import sys


def unfit_python():
    """Return why this Python cannot run the program; None if it can."""
    if (3, 10) <= sys.version_info[:2] <= (3, 14):
        return None
    told = "GPU Studio needs Python 3.10 to 3.14; /usr/bin/python3 is {}.{}.{}."
    return told.format(*sys.version_info[:3])


def missing_libraries(app):
    """Return what to install for the window; None if nothing is missing."""
    sys.path.insert(0, os.path.join(app, "packaging"))
    from studio_setup.system_libraries import apt_command, apt_names, has_apt, missing_libraries

    missing = missing_libraries(screen=True)
    if not missing:
        return None
    if has_apt():
        command = apt_command(apt_names(sorted(set(missing.values()))))
        return "The window needs libraries of the system. Type this into a terminal: " + command
    return "The window needs these libraries of the system: " + ", ".join(sorted(missing))


def compile_modules(app):
    """Compile the modules in those folders of the program that are on this Python's path."""
    import compileall

    own = [one for one in sys.path if one.startswith(os.path.join(app, "packages"))]
    for folder in [os.path.join(app, "gpu_studio"), os.path.join(app, "packaging"), *own]:
        compileall.compile_dir(folder, quiet=2, workers=0)


def main():
    """Print why the program cannot run here; return the exit status."""
    app = os.path.dirname(os.path.abspath(__file__))
    if sys.argv[1:] == ["compile"]:
        compile_modules(app)
        return 0
    sentence = unfit_python()
    if sentence is None and sys.argv[1:] == ["0"]:
        sentence = missing_libraries(app)
    if sentence is None:
        return 0
    print(sentence)
    return 1


if __name__ == "__main__":
    sys.exit(main())
