"""The processes below a process, by what their command lines say."""

import contextlib

import psutil


def family_running(parent: psutil.Process, *words: str) -> list[psutil.Process]:
    """Return the processes below one whose command lines have all these words.

    Any of them may end while it is looked at.
    """
    found = []
    for one in parent.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            line = " ".join(one.cmdline())
            found += [one] if all(word in line for word in words) else []
    return found
