"""A real sshd of this user on a loopback port, with keys made for it; no root is needed."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

import gpu_studio
from gpu_studio.core.other_pc import OtherPc
from tests.patience import until

_SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/client.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
SetEnv HOME={folder}
"""
_CLIENT = """
Host loopback
    HostName 127.0.0.1
    Port {port}
    IdentityFile {folder}/client
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known
"""


def why_not() -> str:
    """Return why there can be no sshd here; empty if there can be."""
    if sys.platform == "win32":
        return "the real sshd is tried on Linux"
    missing = [one for one in ("ssh", "ssh-keygen") if shutil.which(one) is None]
    if _sshd() is None:
        missing.append("sshd")
    # Where Debian's sshd keeps what it runs without rights; only root's needs it (sshd(8)).
    if os.getuid() == 0 and not Path("/run/sshd").is_dir():
        missing.append("folder /run/sshd, which root's sshd needs")
    return f"this PC has no {', no '.join(missing)}" if missing else ""


def _sshd() -> str | None:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextlib.contextmanager
def running_sshd(folder: Path) -> Iterator[tuple[OtherPc, psutil.Process, dict[str, str]]]:
    """Yield a PC, its sshd, and the variables with which ssh finds it.

    Args:
        folder: for its keys and settings; the home folder there.
    """
    program = _sshd()
    assert program is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("host", "client"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    host_key = (folder / "host.pub").read_text(encoding="utf-8")
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host_key}", encoding="utf-8")
    (folder / "sshd_config").write_text(_SERVER.format(port=port, folder=folder), encoding="utf-8")
    (folder / "config").write_text(_CLIENT.format(port=port, folder=folder), encoding="utf-8")
    program_there = folder / ".local" / "bin" / "gpu-studio"
    for path, line in {
        folder / "bin" / "ssh": f'exec "{shutil.which("ssh")}" -F "{folder}/config" "$@"',
        program_there: (
            f'PYTHONPATH="{Path(gpu_studio.__file__).parents[1]}" exec "{sys.executable}" '
            '-m gpu_studio "$@"'
        ),
    }.items():
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        path.chmod(0o755)
    server = subprocess.Popen(
        [program, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: _listens(port))
        pc = OtherPc(name="attic", host="loopback", program="~/.local/bin/gpu-studio")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        yield pc, psutil.Process(server.pid), {"PATH": path}
    finally:
        for process in psutil.Process(server.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()
        server.kill()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
