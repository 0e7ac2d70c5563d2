"""The child of a `ChildCall`: ``python -m gpu_studio.process.child_call_main MODULE SECONDS``.

It calls ``answer(content)`` of the module with its standard input and writes what that returns. A
`ValueError` is a reason in words: it becomes the answer, with the exit code 1.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

from gpu_studio.process.child_call import READY
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

_MOST_THREADS = 2  # of a library, at work at once
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Answer the message on standard input, and end the process."""
    module, longest_s = sys.argv[1], float(sys.argv[2])
    incoming, out = take_over_stdin(), take_over_stdout()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal: the parent decides
    if sys.platform == "win32":
        import msvcrt

        # A decoder that crashes must not open a window.
        msvcrt.SetErrorMode(msvcrt.SEM_FAILCRITICALERRORS | msvcrt.SEM_NOGPFAULTERRORBOX)
    answer = importlib.import_module(module).answer
    out.write(READY)
    out.flush()
    _end_with_parent(longest_s)
    status = 0
    try:
        content = answer(incoming.read())
    except ValueError as error:
        status, content = 1, str(error).encode()
    out.write(content)
    out.flush()
    os._exit(status)  # no library's own end delays the answer, or crashes after it


def _end_with_parent(longest_s: float) -> None:
    """End this process if its parent is killed, even inside a library that keeps Python's lock.

    On Windows, the job object does. On Linux, the system sends a signal when the parent's thread is
    gone, which waits for this process: prctl(2). Elsewhere, a limit of processor time has to do.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    elif sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, _MOST_THREADS * longest_s)


if __name__ == "__main__":
    main()
