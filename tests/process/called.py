"""What a child does for the tests of `ChildCall`: its message names it."""

import ctypes
import os
import sys
from pathlib import Path


def answer(content: bytes) -> bytes:
    """Answer, or fail as the message says."""
    if content == b"refuse":
        message = "it is\x07 no message"
        raise ValueError(message)
    if content.startswith(b"hang"):
        if content != b"hang":
            Path(os.fsdecode(content[4:])).touch()
        # With Python's lock, as a decoder does.
        if sys.platform == "win32":
            ctypes.PyDLL("kernel32").Sleep(1_000_000)
        else:
            ctypes.PyDLL(None).sleep(1000)
    if content == b"die":
        os.abort()
    if content == b"eat":
        return bytes(str(len(bytearray(600 << 20))), "ascii")
    return content[::-1]
