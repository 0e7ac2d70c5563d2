from __future__ import annotations

import errno
import hashlib
import http.client
import itertools
import json
import socket
import ssl
import urllib.error
from email.message import Message
from pathlib import Path

import pytest

from gpu_studio.builds.download import (
    Downloader,
    StoppedError,
    WheelFile,
    disk_trouble,
    network_trouble,
)
from gpu_studio.core.builds.trouble import TroubleError, TroubleKind
from tests.builds.wheel_server import Served

CONTENT = bytes(range(256)) * 4096  # 1 MiB
SHA = hashlib.sha256(CONTENT).hexdigest()
URL_PATH = "/a-1.0-py3-none-any.whl"


class Waits(list):
    """Records each wait instead of waiting."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits():
    return Waits()


@pytest.fixture
def downloader(tmp_path, waits):
    created = Downloader(tmp_path / "Übung eins" / "downloads", wait=waits)
    created.begin()
    return created


def wheel(server, sha256=SHA):
    return WheelFile(URL_PATH[1:], server.url + URL_PATH, sha256, len(CONTENT))


def kind_of(raised):
    return raised.value.trouble.kind


def test_a_file_arrives_whole_and_leaves_no_part(server, downloader, waits):
    server.files[URL_PATH] = Served(CONTENT)
    collected = []
    path = downloader.fetch(wheel(server), collected.append)
    assert path.read_bytes() == CONTENT
    assert [one.name for one in downloader.folder.iterdir()] == [path.name]
    assert collected[0] == 0
    assert collected[-1] == len(CONTENT)
    assert collected == sorted(collected)
    assert waits == []


def test_a_broken_line_continues_where_it_broke(server, downloader, waits):
    server.files[URL_PATH] = Served(CONTENT, breaks_after=[300_000, 400_000])
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT
    assert server.ranges_of(URL_PATH) == ["", "bytes=300000-", "bytes=700000-"]
    assert waits == [1.0, 1.0]  # each attempt brought bytes, so the waits stay short


def test_another_start_of_the_program_continues(server, downloader, waits):
    over = []

    def received(done):
        if done > 500_000:
            over.append(True)

    stopping = Downloader(downloader.folder, is_over=lambda: bool(over), wait=waits)
    server.files[URL_PATH] = Served(CONTENT)
    with pytest.raises(StoppedError):
        stopping.fetch(wheel(server), received)
    saved = downloader.kept_bytes(wheel(server))
    assert 500_000 < saved < len(CONTENT)
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT
    assert server.ranges_of(URL_PATH) == ["", f"bytes={saved}-"]


def test_a_server_that_ignores_range_sends_everything_again(server, downloader):
    served = Served(CONTENT, breaks_after=[300_000], ignores_range=True)
    server.files[URL_PATH] = served
    collected = []
    assert downloader.fetch(wheel(server), collected.append).read_bytes() == CONTENT
    assert collected.count(0) == 2


def test_a_file_that_changed_between_two_parts_starts_again(server, downloader):
    server.files[URL_PATH] = Served(b"x" * len(CONTENT), breaks_after=[300_000], etag='"old"')
    wanted = wheel(server)

    def wait(_seconds):
        server.files[URL_PATH] = Served(CONTENT, etag='"new"')

    changing = Downloader(downloader.folder, wait=wait)
    assert changing.fetch(wanted).read_bytes() == CONTENT
    assert len(server.ranges_of(URL_PATH)) == 2  # its ETag said so, before any byte came


def test_a_part_of_another_address_is_not_continued(server, downloader):
    server.files[URL_PATH] = Served(CONTENT)
    part = downloader.folder / f"{URL_PATH[1:]}.part"
    part.write_bytes(b"x" * 1000)
    part.with_name(part.name + ".json").write_text(json.dumps({"url": "http://x/", "etag": ""}))
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT
    assert server.ranges_of(URL_PATH) == [""]


def test_wrong_bytes_twice_are_refused_and_deleted(server, downloader):
    server.files[URL_PATH] = Served(b"y" * len(CONTENT))
    with pytest.raises(TroubleError) as raised:
        downloader.fetch(wheel(server))
    assert kind_of(raised) is TroubleKind.CHANGED_FILE
    assert SHA in raised.value.trouble.detail
    assert len(server.ranges_of(URL_PATH)) == 2
    assert list(downloader.folder.iterdir()) == []


def test_a_whole_file_is_not_downloaded_again_but_checked(server, downloader):
    server.files[URL_PATH] = Served(CONTENT)
    path = downloader.fetch(wheel(server))
    assert downloader.fetch(wheel(server)) == path
    assert len(server.asked) == 1
    path.write_bytes(b"damaged")
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT


def test_a_line_that_stays_broken_is_given_up_in_words(server, downloader, waits):
    server.files[URL_PATH] = Served(CONTENT, breaks_after=[100] + [0] * 20)
    with pytest.raises(TroubleError) as raised:
        downloader.fetch(wheel(server))
    assert kind_of(raised) is TroubleKind.BROKEN_LINE
    assert waits == [1.0, 2.0, 4.0, 8.0, 15.0]
    assert downloader.kept_bytes(wheel(server)) == 100  # for the next time


def test_a_server_in_trouble_gets_time(server, downloader, waits):
    server.files[URL_PATH] = Served(CONTENT, statuses=[503, 429, 0])
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_final_refusal_is_reported_at_once(server, downloader, waits, status):
    server.files[URL_PATH] = Served(CONTENT, statuses=[status])
    with pytest.raises(TroubleError) as raised:
        downloader.fetch(wheel(server))
    assert kind_of(raised) is TroubleKind.SERVER
    assert str(status) in raised.value.trouble.sentence
    assert waits == []


def test_no_server_is_no_network(downloader, waits):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but it does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}{URL_PATH}"
        with pytest.raises(TroubleError) as raised:
            downloader.fetch(WheelFile(URL_PATH[1:], url, SHA))
    assert kind_of(raised) is TroubleKind.NO_NETWORK
    assert waits == [1.0, 2.0, 4.0, 8.0, 15.0]


class FullDisk:
    """A file whose disk is full after some bytes."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def write(self, chunk):
        self._room -= len(chunk)
        if self._room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(chunk)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)


def test_a_disk_that_fills_up_says_how_much_to_free_and_keeps_the_part(
    server, downloader, monkeypatch
):
    server.files[URL_PATH] = Served(CONTENT)
    whole = Downloader._opened_part
    with monkeypatch.context() as patch:
        patch.setattr(
            Downloader,
            "_opened_part",
            lambda self, *arguments: FullDisk(whole(self, *arguments), 600_000),
        )
        with pytest.raises(TroubleError) as raised:
            downloader.fetch(wheel(server))
    assert kind_of(raised) is TroubleKind.DISK_FULL
    saved = downloader.kept_bytes(wheel(server))
    assert 0 < saved <= 600_000
    assert f"{(len(CONTENT) - saved) / 1000:.0f}\u202fkB" in raised.value.trouble.next_step
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT
    assert server.ranges_of(URL_PATH)[1] == f"bytes={saved}-"


def held(times, real):
    """Return a method of `Path` that fails some times, as for a file that a scanner has open."""
    left = [times]

    def replace(self, target):
        if left[0]:
            left[0] -= 1
            raise PermissionError(errno.EACCES, "used by another process")
        return real(self, target)

    return replace


def test_a_file_that_a_virus_scanner_holds_is_tried_again(server, downloader, waits, monkeypatch):
    server.files[URL_PATH] = Served(CONTENT)
    monkeypatch.setattr(Path, "replace", held(3, Path.replace))
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT
    assert waits == [0.2, 0.5, 1.0]


def test_a_file_of_this_pc_is_checked_where_it_lies(downloader, tmp_path):
    path = tmp_path / "my wheels äö %2B" / "a-1.0-py3-none-any.whl"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert downloader.fetch(WheelFile(path.name, path.as_uri(), SHA)) == path
    assert list(downloader.folder.iterdir()) == []
    path.write_bytes(b"other")
    with pytest.raises(TroubleError) as raised:
        downloader.fetch(WheelFile(path.name, path.as_uri(), SHA))
    assert kind_of(raised) is TroubleKind.CHANGED_FILE
    assert path.exists()  # it is the user's own


@pytest.mark.parametrize(
    "leads_to",
    ["file:///etc/passwd", "ftp://127.0.0.1/a", "http://[::1", "https:///x", "//x:99999"],
)
def test_a_redirect_to_a_weaker_place_is_refused(server, downloader, waits, leads_to):
    server.files[URL_PATH] = Served(CONTENT, leads_to=leads_to)
    for ask in (
        lambda: downloader.fetch(wheel(server)),
        lambda: downloader.content(wheel(server).url),
    ):
        with pytest.raises(TroubleError) as raised:
            ask()
        assert kind_of(raised) in (TroubleKind.INDEX, TroubleKind.SERVER)
    assert waits == []


def test_no_more_is_written_than_the_list_says(server, downloader):
    server.files[URL_PATH] = Served(b"x" * (1 << 18), pours=True, length="")
    most = []
    with pytest.raises(TroubleError) as raised:
        downloader.fetch(wheel(server), most.append)
    assert kind_of(raised) is TroubleKind.CHANGED_FILE
    assert max(most) <= len(CONTENT)
    assert not downloader.kept_bytes(wheel(server))


@pytest.mark.parametrize("dripping", [{"drips": True}, {"head_drips": True}])
def test_a_line_that_drips_is_a_broken_one(server, tmp_path, dripping):
    server.files[URL_PATH] = Served(CONTENT, **dripping)

    def wait(_seconds):
        server.files[URL_PATH] = Served(CONTENT)

    downloader = Downloader(tmp_path, wait=wait, timeout_s=0.1)
    assert downloader.fetch(wheel(server)).read_bytes() == CONTENT


def test_you_can_stop_while_no_answer_comes(server, tmp_path):
    server.files[URL_PATH] = Served(CONTENT, head_drips=True)
    looks = itertools.count()
    downloader = Downloader(tmp_path, is_over=lambda: next(looks) > 5, timeout_s=3600.0)
    with pytest.raises(StoppedError):
        downloader.fetch(wheel(server))


def _http_error(code):
    return urllib.error.HTTPError("http://pypi.org", code, "", Message(), None)


PROXIES = {"https": "http://me:secret@proxy.home:8080"}


@pytest.mark.parametrize(
    ("error", "proxies", "kind", "fact"),
    [
        (urllib.error.URLError(socket.gaierror(-2, "x")), {}, TroubleKind.NO_NETWORK, "pypi.org"),
        (urllib.error.URLError(socket.gaierror(-2, "x")), PROXIES, TroubleKind.PROXY, "proxy.home"),
        (urllib.error.URLError(ConnectionRefusedError()), PROXIES, TroubleKind.PROXY, "8080"),
        (_http_error(407), PROXIES, TroubleKind.PROXY, "proxy.home:8080"),
        (OSError("Tunnel connection failed: 403"), PROXIES, TroubleKind.PROXY, "proxy.home"),
        (_http_error(502), {}, TroubleKind.SERVER, "502"),
        (
            urllib.error.URLError(ssl.SSLCertVerificationError("self-signed")),
            {}, TroubleKind.CERTIFICATE, "pypi.org",
        ),
        (TimeoutError(), {}, TroubleKind.NO_NETWORK, "pypi.org"),
        (http.client.IncompleteRead(b""), {}, TroubleKind.BROKEN_LINE, "pypi.org"),
        (ConnectionResetError(), {}, TroubleKind.BROKEN_LINE, "pypi.org"),
    ],
)  # fmt: skip
def test_errors_of_the_network_have_words(error, proxies, kind, fact):
    trouble = network_trouble(error, "https://pypi.org/simple/", proxies)
    assert trouble.kind is kind
    assert fact in trouble.sentence
    assert "secret" not in f"{trouble.sentence}{trouble.next_step}{trouble.detail}"


def _windows_error(number):
    error = OSError(errno.EACCES, "as Windows says it")
    error.winerror = number
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "full"), TroubleKind.DISK_FULL),
        (OSError(errno.EDQUOT, "quota"), TroubleKind.DISK_FULL),
        (_windows_error(112), TroubleKind.DISK_FULL),
        (_windows_error(32), TroubleKind.FILE_HELD),
        (FileNotFoundError(errno.ENOENT, "gone"), TroubleKind.FILE_REMOVED),
        (PermissionError(errno.EACCES, "no"), TroubleKind.NO_WRITE),
        (OSError(errno.EROFS, "read-only"), TroubleKind.NO_WRITE),
    ],
)
def test_errors_of_the_disk_have_words(error, kind, tmp_path):
    assert disk_trouble(error, str(tmp_path / "a.dll"), None).kind is kind
