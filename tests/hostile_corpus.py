"""Everything that a stranger may drop on a window: files of all kinds, and what is none.

`write_small` takes a moment; `write_all` also has the large and the costly ones, among them most
pictures: each needs a process.
"""

import os
import pickle
import socket
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from PySide6.QtCore import QUrl

from tests.fakes.hostile_files import hostile_recordings, hostile_records, kept_run_of
from tests.hostile_pictures import HOSTILE, PNG_HEAD

ENDINGS = ("png", "json", "jsonl", "html")
_SPARSE_BYTES = 200 << 20
_NAMES = (
    "line\nbreak", "turned \u202egnp.", "<img src=x onerror=1>", "<b>bold</b>&amp;", "%s {0} %n",
    "x" * 240, "\u200b\u200d", "‮", "..", "a\x1b[31mred", "\U0001f4a9" * 20,
)  # fmt: skip
_ADDRESSES = (
    "http://127.0.0.1:9/a.png", "https://example.invalid/a.json", "smb://nas/share/a.png",
    "ftp://x/a.jsonl", "data:image/png;base64,AAAA", "javascript:alert(1)", "about:blank", "",
)  # fmt: skip


class Bomb:
    """A pickle that would make a file if anybody executed it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self._path, "w")


def texts(fired: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of small files that are wrong in one way each.

    Args:
        fired: a path that must not exist afterwards.
    """
    yield "nested.json", b"[" * 100_000
    yield "objects.json", b'{"a":' * 100_000
    yield "infinity.json", b'{"schema": 1, "seconds": Infinity}'
    yield "nan.json", b'{"schema": 1, "seconds": NaN}'
    yield "digits.json", b'{"schema": 1' + b"0" * 400 + b"}"
    yield "exponent.json", b'{"schema": 1e400}'
    yield "utf-16.json", '{"schema": 1}'.encode("utf-16")
    yield "nul.json", b'{"sch\0ema": 1}\0\0\0'
    yield "bom.json", b"\xef\xbb\xbf{}"
    yield "history.json", kept_run_of("<img src=x>")
    yield "nested.jsonl", b"[" * 100_000 + b"\n"
    yield "one line.jsonl", b'{"type":"' + b"x" * 1_000_000
    yield "many lines.jsonl", b"{}\n" * 100_000
    yield "utf-16.jsonl", '{"type":"x"}\n'.encode("utf-16")
    yield "nul.html", b"<html>\0</html>"
    yield "entities.html", b"&amp;" * 100_000
    yield "table.csv", b"=cmd|' /C calc'!A0,1\n"
    yield "snapshot.pickle", pickle.dumps(Bomb(str(fired)))
    yield "pickle.json", pickle.dumps(Bomb(str(fired)))
    yield "pickle.png", pickle.dumps(Bomb(str(fired)))
    yield "program.exe", b"MZ" + bytes(100)
    yield "script.sh", b"#!/bin/sh\ntouch fired\n"
    yield "no ending", b"hello"
    yield ".png", b"hidden"
    yield "twice.png.exe", PNG_HEAD
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../../evil.png", PNG_HEAD)
    for name in ("archive.zip", "archive.png", "archive.json"):
        yield name, out.getvalue()
    for ending in ENDINGS:
        yield f"empty.{ending}", b""
        yield f"noise.{ending}", os.urandom(5_000)
    for name in _NAMES:
        yield f"{name}.jsonl", b"{}"
        yield f"{name}.txt", b""


def write_small(folder: Path) -> list[Path]:
    """Write what takes a moment, and what is no file; return the paths, one for each drop."""
    return [*_written(folder, texts(folder / "fired")), *_no_files(folder)]


def write_all(folder: Path) -> list[Path]:
    pictures = ((name, make()) for name, make in HOSTILE.items())
    parts = {
        "pictures": pictures,
        "names": ((f"{name}.png", PNG_HEAD) for name in _NAMES),
        "records": hostile_records(),
        "recordings": hostile_recordings(),
    }
    found = write_small(folder)
    for name, files in parts.items():
        (folder / name).mkdir()
        found += _written(folder / name, files)
    for ending in ENDINGS:
        path = folder / f"sparse.{ending}"
        with path.open("wb") as file:
            file.truncate(_SPARSE_BYTES)
        found.append(path)
    return found


def addresses() -> list[QUrl]:
    return [QUrl(text) for text in _ADDRESSES]


def _written(folder: Path, files: Iterator[tuple[str, bytes]]) -> Iterator[Path]:
    for name, content in files:
        path = folder / name
        try:
            path.write_bytes(content)
        except (OSError, ValueError):  # this system has no such name
            continue
        yield path


def _no_files(folder: Path) -> Iterator[Path]:
    """Yield folders, pipes, devices, loops, and what vanished."""
    for ending in ENDINGS:
        (folder / f"folder.{ending}").mkdir()
        yield folder / f"folder.{ending}"
        yield folder / f"vanished.{ending}"
    if sys.platform == "win32":
        return
    for ending in ENDINGS:
        os.mkfifo(folder / f"pipe.{ending}")
        links = {"zero": "/dev/zero", "random": "/dev/urandom", "loop": f"loop.{ending}"}
        for name, target in links.items():
            (folder / f"{name}.{ending}").symlink_to(target)
        unreadable = folder / f"unreadable.{ending}"
        unreadable.write_bytes(b"{}")
        unreadable.chmod(0)
        yield from (folder / f"{name}.{ending}" for name in ("pipe", *links, "unreadable"))
    place = folder / "socket.png"
    if len(str(place)) < 100:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(place))
        yield place
