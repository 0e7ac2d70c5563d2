"""A relay before the real sshd of the tests: it counts bytes, and can be a network that is gone."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tests.line.real_sshd import running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psutil

    from gpu_studio.core.other_pc import OtherPc


class Relay:
    """Forwards a loopback port until it is told to go silent; it closes nothing then.

    Attributes:
        port: where ssh connects.
        is_silent: forwards nothing more while set.
        to_there_bytes: of TCP, with what ssh itself adds; to the server.
        to_here_bytes: from the server.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.is_silent = threading.Event()
        self.to_there_bytes = self.to_here_bytes = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.create_connection(("127.0.0.1", self._target))
                for one in (here, there):
                    # The relay must not hold back small packets, which ssh sends at once.
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pair in ((here, there, "to_there_bytes"), (there, here, "to_here_bytes")):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, count: str) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                if self.is_silent.is_set():
                    return  # both sockets stay open
                setattr(self, count, getattr(self, count) + len(chunk))
                sink.sendall(chunk)
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relayed_sshd() -> Iterator[tuple[OtherPc, psutil.Process, Relay]]:
    """Yield a PC behind a real sshd, the sshd, and the relay between; ssh finds it in the PATH."""
    with tempfile.TemporaryDirectory() as folder, running_sshd(Path(folder)) as (pc, server, more):
        os.environ |= more
        config = Path(folder, "config")
        words = config.read_text(encoding="utf-8")
        port = int(words.split("Port ")[1].split()[0])
        relay = Relay(port)
        # The known key is the server's, whatever port leads to it.
        alias = f"    HostKeyAlias [127.0.0.1]:{port}\n"
        config.write_text(words.replace(f"Port {port}", f"Port {relay.port}") + alias, "utf-8")
        yield pc, server, relay
