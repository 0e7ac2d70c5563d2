"""The wheels of a build, from indexes on this PC and from a folder; pip itself answers."""

from __future__ import annotations

import random
import sys

import pytest

from gpu_studio.builds import plan as plans
from gpu_studio.builds import wheel_folder
from gpu_studio.builds.download import Downloader, StoppedError
from gpu_studio.builds.lock_file import LOCK, read_lock
from gpu_studio.builds.plan import Planner
from gpu_studio.builds.wheel_folder import builds_in
from gpu_studio.core.builds.trouble import TroubleError, TroubleKind
from gpu_studio.core.wheel_table import load_table
from tests.builds.indexes import KEY, NEEDS, OWN, TAGS, TORCH, page, put_needed, put_torch
from tests.builds.wheel_server import Served
from tests.builds.wheels import PYTHON, wheel_bytes, write_wheel


@pytest.fixture
def planner(tmp_path, wheel_table):
    downloader = Downloader(tmp_path / "Übung eins", wait=lambda _seconds: None)
    downloader.begin()
    return Planner(downloader, wheel_table, KEY, tmp_path / "setup.log")


def test_a_build_is_planned_without_its_download(server, planner):
    torch = put_torch(server)
    put_needed(server)
    plan = planner.from_index("cpu")
    assert (plan.torch_version, plan.python) == ("9.1.0+cpu", OWN)
    assert sorted(file.name.split("-")[0] for file in plan.files) == ["deeper", "needed", "torch"]
    first = plan.files[0]
    assert (first.sha256, first.size_bytes) == (torch.sha256, len(torch.content))
    needed = server.files["/files/needed-1.5-py3-none-any.whl"]
    by_name = {file.name.split("-")[0]: file for file in plan.files}
    assert by_name["needed"].sha256 == needed.sha256
    assert by_name["needed"].size_bytes == len(needed.content)
    assert plan.total_bytes == sum(file.size_bytes for file in plan.files)
    assert server.ranges_of(f"/whl/cpu/{TORCH}") == []


def test_of_an_index_without_metadata_only_the_end_of_the_wheel_is_read(server, planner):
    torch = put_torch(server, has_metadata=False, ballast=random.Random(1).randbytes(300_000))
    put_needed(server)
    assert len(planner.from_index("cpu").files) == 3
    first = min(int(one[6:].partition("-")[0]) for one in server.ranges_of(f"/whl/cpu/{TORCH}"))
    assert first > len(torch.content) - 30_000


def test_pytorchs_index_is_asked_without_those_of_pips_configuration(server, planner, monkeypatch):
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{server.url}/extra")
    put_torch(server)
    put_needed(server)
    planner.from_index("cpu")
    asked = {path for _, path, _ in server.asked}
    assert ("/extra/torch/" in asked, "/extra/needed/" in asked) == (False, True)


def test_a_folder_of_pips_configuration_comes_before_every_index(
    server, planner, tmp_path, monkeypatch
):
    torch = write_wheel(tmp_path / "w", "torch", "9.1.0+cpu", {}, NEEDS, TAGS)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "w"))
    put_needed(server)
    plan = planner.from_index("cpu")
    assert plan.files[0].local_path == torch
    assert sorted(file.name.split("-")[0] for file in plan.files) == ["deeper", "needed", "torch"]
    assert not any(path.startswith("/whl/") for _, path, _ in server.asked)


@pytest.mark.parametrize("version", ["9.1.0+cpu", "9.1.0"])
def test_a_pc_that_reaches_only_a_mirror_gets_pytorch_from_there(
    server, planner, monkeypatch, version
):
    monkeypatch.setitem(wheel_folder._PLAIN_BUILDS, KEY.partition("-")[0], "cpu")
    wheel = Served(wheel_bytes("torch", version, {"torch/__init__.py": ""}, NEEDS, TAGS))
    name = f"torch-{version}-{TAGS}.whl"
    server.files[f"/files/{name}"] = wheel
    href = name.replace("+", "%2B")
    server.files["/simple/torch/"] = page(f'<a href="/files/{href}#sha256={wheel.sha256}">x</a>')
    put_needed(server)
    plan = planner.from_index("cpu")
    assert plan.torch_version == version
    assert (plan.files[0].sha256, plan.unproven) == (wheel.sha256, ())
    assert server.ranges_of(f"/files/{name}") != [""]


@pytest.fixture
def locked(server, planner, tmp_path):
    """A planner with a lock; the function writes the lock's line for the package ``needed``."""
    put_torch(server)
    put_needed(server)
    older = Served(wheel_bytes("needed", "1.2", {"needed.py": ""}))
    server.files["/files/needed-1.2-py3-none-any.whl"] = older
    newer = server.files["/simple/needed/"].content.decode()
    link = f'<a href="/files/needed-1.2-py3-none-any.whl#sha256={older.sha256}">1.2</a>'
    server.files["/simple/needed/"] = page(newer, link)

    def write(version, sha256=older.sha256):
        lock = tmp_path / "uv.lock"
        lock.write_text(LOCKED.format(version=version, sha256=sha256), encoding="utf-8")
        return Planner(planner._downloader, planner._table, KEY, tmp_path / "log", lock=lock)

    return write


LOCKED = """version = 1

[[package]]
name = "needed"
version = "{version}"
source = {{ registry = "https://pypi.org/simple" }}
resolution-markers = [
    "python_full_version < '3.11'",
    "python_full_version >= '3.11'",
]
wheels = [
    {{ url = "https://x.org/needed.whl", hash = "sha256:{sha256}", size = 1 }},
]
"""


def version_needed(plan):
    return next(file.name.split("-")[1] for file in plan.files if file.name.startswith("needed"))


def test_the_tested_versions_are_planned(locked):
    assert version_needed(locked("1.2").from_index("cpu")) == "1.2"


def test_a_version_that_the_index_no_longer_has_is_replaced(locked):
    assert version_needed(locked("1.3").from_index("cpu")) == "1.5"


@pytest.mark.parametrize("is_pypi", [True, False])
def test_a_file_of_pypi_has_the_hash_of_the_lock(locked, monkeypatch, is_pypi):
    monkeypatch.setattr(plans, "_PYPI_FILES", "127.0.0.1" if is_pypi else "x.org")
    planner = locked("1.2", "0" * 64)
    if not is_pypi:
        assert version_needed(planner.from_index("cpu")) == "1.2"
        return
    with pytest.raises(TroubleError) as raised:
        planner.from_index("cpu")
    assert raised.value.trouble.kind is TroubleKind.CHANGED_FILE
    assert "needed-1.2" in raised.value.trouble.sentence


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no tomllib")
def test_the_lock_is_read_as_toml_reads_it():
    import tomllib

    packages = tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]
    wanted = [
        (one["name"], one["version"], {file["hash"] for file in one["wheels"]})
        for one in packages
        if "wheels" in one
    ]
    read = [(one.name, one.version, {f"sha256:{sha}" for sha in one.hashes}) for one in read_lock()]
    assert [one[:2] for one in read] == [one[:2] for one in wanted]
    assert all(hashes >= files for (*_, hashes), (*_, files) in zip(read, wanted, strict=True))
    numpy = [one.requirement for one in read_lock() if one.name == "numpy"]
    assert numpy[0] == "numpy==2.2.6 ; python_full_version < '3.11'"
    urls = [file["url"] for one in packages for file in one.get("wheels", ())]
    assert {url.split("/")[2] for url in urls} == {"files.pythonhosted.org"}


def test_the_lock_has_the_pytorch_that_the_program_installs():
    versions = {one.version for one in read_lock() if one.name == "torch"}
    assert versions == {load_table().torch_version}


def refused(planner):
    with pytest.raises(TroubleError) as raised:
        planner.from_index("cpu")
    assert raised.value.trouble.kind is TroubleKind.INDEX
    return raised.value.trouble.sentence


def replaced(server, path, old, new):
    served = server.files[path]
    text = served.content.decode()
    assert old in text
    server.files[path] = page(text.replace(old, new))


def test_a_wheel_without_a_hash_is_refused(server, planner):
    torch = put_torch(server)
    put_needed(server)
    replaced(server, "/whl/cpu/torch/", f"#sha256={torch.sha256}", "")
    assert "hash" in refused(planner)
    assert server.ranges_of(f"/whl/cpu/{TORCH}") == []


@pytest.mark.parametrize("address", ["file:///etc/", "ftp://127.0.0.1/"])
def test_a_link_to_a_weaker_place_is_refused(server, planner, address):
    put_torch(server)
    replaced(server, "/whl/cpu/torch/", "../torch", f"{address}torch")
    with pytest.raises(TroubleError):
        planner.from_index("cpu")


@pytest.mark.parametrize("is_named", [True, False])
def test_only_an_index_that_was_named_may_lead_to_this_pc(server, planner, monkeypatch, is_named):
    put_torch(server)
    put_needed(server)
    places = [server.url] if is_named else ["http://mirror.example/"]
    monkeypatch.setattr(Planner, "_configured_indexes", lambda _self: places)
    if is_named:
        assert planner.from_index("cpu")
    else:
        refused(planner)


@pytest.mark.parametrize("has_metadata", [True, False])
@pytest.mark.parametrize(
    "asked",
    ["evil @ {url}/evil-1-py3-none-any.whl", "{url}/evil-1-py3-none-any.whl", "-i={url}/evil"],
)
def test_a_package_from_anywhere_is_refused_before_pip_sees_it(
    server, planner, has_metadata, asked
):
    put_torch(server, has_metadata=has_metadata, needs=[asked.format(url=server.url)])
    with pytest.raises(TroubleError):
        planner.from_index("cpu")
    assert not any("evil" in path for _, path, _ in server.asked)


def test_a_source_package_is_not_even_fetched(server, planner):
    """Its setup would run on this PC before anyone had agreed to anything."""
    put_torch(server)
    put_needed(server)
    source = Served(b"no archive")
    server.files["/files/deeper-2.0.tar.gz"] = source
    link = f'<a href="/files/deeper-2.0.tar.gz#sha256={source.sha256}">deeper-2.0.tar.gz</a>'
    server.files["/simple/deeper/"] = page(link)
    with pytest.raises(TroubleError):
        planner.from_index("cpu")
    assert not any("tar.gz" in path for _, path, _ in server.asked)


NEEDED = "needed-1.5-py3-none-any.whl"


def test_a_mirrors_files_are_proven_by_the_lock_alone(server, locked, monkeypatch, tmp_path):
    monkeypatch.setattr(plans, "_PYPI_FILES", "x.org")
    plan = locked("1.2").from_index("cpu")
    assert plan.unproven == ("deeper-2.0-py3-none-any.whl",) or plan.unproven == ()
    assert locked("1.3").from_index("cpu").unproven[0] == NEEDED


@pytest.mark.parametrize("is_known", [True, False])
def test_pytorch_in_a_folder_has_the_published_hash_where_one_is_known(
    planner, tmp_path, wheel_table, is_known
):
    path = write_wheel(tmp_path / "w", "torch", "9.1.0+cpu", {"torch/__init__.py": ""}, (), TAGS)
    planner._table = wheel_table._replace(torch_sha256={path.name: "0" * 64} if is_known else {})
    plan = planner.from_folder("cpu", tmp_path / "w")
    if not is_known:
        assert planner._downloader.fetch(plan.files[0]) == path
        return
    with pytest.raises(TroubleError) as raised:
        planner._downloader.fetch(plan.files[0])
    assert raised.value.trouble.kind is TroubleKind.CHANGED_FILE
    assert path.exists()


def test_an_index_without_this_build_says_so(server, planner):
    put_torch(server)
    server.files["/whl/cu126/torch/"] = server.files["/whl/cpu/torch/"]
    with pytest.raises(TroubleError) as raised:
        planner.from_index("cu126")
    assert raised.value.trouble.kind is TroubleKind.NO_WHEEL
    assert "9.1.0+cu126" in raised.value.trouble.sentence
    assert OWN in raised.value.trouble.sentence


def test_an_index_that_cannot_be_reached_is_named(planner):
    gone = planner._table.build("cpu")._replace(index_url="http://127.0.0.1:9/whl/cpu")
    planner._table = planner._table._replace(builds=(gone,))
    with pytest.raises(TroubleError) as raised:
        planner.from_index("cpu")
    assert raised.value.trouble.kind is TroubleKind.NO_NETWORK
    assert "127.0.0.1" in raised.value.trouble.sentence


def test_a_folder_of_wheels_needs_no_network(server, planner, tmp_path):
    folder = tmp_path / "my wheels äö"
    torch = write_wheel(folder, "torch", "9.1.0+cpu", {"torch/__init__.py": ""}, NEEDS, TAGS)
    write_wheel(folder, "needed", "1.5", {"needed.py": ""})
    write_wheel(folder, "unrelated", "1.0", {"unrelated.py": ""})
    plan = planner.from_folder("cpu", folder)
    assert [file.name.split("-")[0] for file in plan.files] == ["torch", "needed"]
    assert plan.files[0].local_path == torch
    assert plan.files[1].local_path == folder / "needed-1.5-py3-none-any.whl"
    assert server.asked == []


def test_a_folder_that_lacks_something_names_it_and_asks_no_network(server, planner, tmp_path):
    write_wheel(tmp_path / "w", "torch", "9.1.0+cpu", {"torch/__init__.py": ""}, NEEDS, TAGS)
    put_needed(server)  # which nobody has allowed it to ask
    with pytest.raises(TroubleError) as raised:
        planner.from_folder("cpu", tmp_path / "w")
    assert server.asked == []
    assert raised.value.trouble.kind is TroubleKind.FOLDER
    assert "lacks needed>=1.0" in raised.value.trouble.sentence
    assert "needed" in raised.value.trouble.detail


@pytest.mark.parametrize(("tags", "is_fit"), [
    (f"{PYTHON}-{PYTHON}-manylinux2014_x86_64.manylinux_2_17_x86_64", True),
    (f"{PYTHON}-none-linux_x86_64", True), ("py2.py3-none-any", True),
    (f"{PYTHON}-{PYTHON}-musllinux_1_2_x86_64", False), ("cp39-cp39-linux_x86_64", False),
    (f"{PYTHON}-{PYTHON}-manylinux_2_28_aarch64", False), ("cp313-cp313t-linux_x86_64", False),
])  # fmt: skip
def test_a_folder_has_a_build_for_this_pc_and_python_alone(tmp_path, tags, is_fit):
    write_wheel(tmp_path, "torch", f"{load_table().torch_version}+cu126", {}, (), tags)
    assert builds_in(tmp_path, platform_key="linux-x86_64") == (("cu126",) if is_fit else ())


def test_a_stop_ends_pip(tmp_path, wheel_table):
    over = []
    downloader = Downloader(tmp_path / "d")
    downloader.begin()
    write_wheel(tmp_path / "w", "torch", "9.1.0+cpu", {}, NEEDS, TAGS)
    stopped = Planner(downloader, wheel_table, KEY, tmp_path / "log", lambda: not over.append(1))
    with pytest.raises(StoppedError):
        stopped.from_folder("cpu", tmp_path / "w")


def test_a_mirror_without_a_hash_is_refused(server, planner, monkeypatch):
    monkeypatch.setattr(plans, "_PYPI_FILES", "x.org")
    put_torch(server)
    put_needed(server)
    replaced(server, "/simple/needed/", f"#sha256={server.files[f'/files/{NEEDED}'].sha256}", "")
    assert f"no hash for {NEEDED}" in refused(planner)
