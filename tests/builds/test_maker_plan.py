"""The wheels for AMD's and Intel's cards: an index without hashes, and PyPI's other packages."""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest

from gpu_studio.builds.download import Downloader
from gpu_studio.builds.install import BuildInstaller, CheckedBuild
from gpu_studio.builds.plan import Planner
from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.trouble import TroubleError, TroubleKind
from gpu_studio.core.wheel_table import IndexPackage, TorchBuild, WheelTable
from tests.builds.indexes import KEY, TAGS, page
from tests.builds.wheel_server import Served
from tests.builds.wheels import metadata, wheel_bytes, write_wheel

SYSTEM = KEY.partition("-")[0]
PLATFORM = f"py3-none-{TAGS.rpartition('-')[2]}"
VERSION = "9.1.0+rocm10.0.0"
CHIP = "gfx1032"
FAMILY = f"rocm-{CHIP}"
OWN = {  # AMD's wheels, with their tags
    "torch": (VERSION, TAGS),
    f"amd-torch-device-{CHIP}": (VERSION, TAGS),
    "rocm-sdk-core": ("10.0.0", PLATFORM),
    f"rocm-sdk-device-{CHIP}": ("10.0.0", PLATFORM),
}


def source_of_rocm(path="rocm-10.0.0/src/rocm_sdk/__init__.py", content=b"LIBRARIES = 1\n"):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in (("rocm-10.0.0/setup.py", b"raise SystemExit"), (path, content)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


SOURCE = source_of_rocm()


def file_name(name, version, tags):
    return f"{name.replace('-', '_')}-{version}-{tags}.whl"


def put_amd(server, ballast=b""):
    """Serve AMD's index as it is: relative links that lead elsewhere, no hash, rocm as source."""
    for name, (version, tags) in OWN.items():
        module = name.replace("-", "_")
        files = {f"{module}/__init__.py": "", f"{module}/ballast": ballast}
        file = file_name(name, version, tags)
        server.files[f"/rocm/{name}/"] = page(f'<a href="{file.replace("+", "%2B")}">{file}</a>')
        target = f"/rocm/core/{file}"
        server.files[f"/rocm/{name}/{file}"] = Served(b"", leads_to=target.replace("+", "%2B"))
        server.files[target] = Served(wheel_bytes(module, version, files, tags=tags))
    server.files["/rocm/rocm/rocm-10.0.0.tar.gz"] = Served(SOURCE)


def put_pypi(server, *names):
    for name in names:
        wheel = Served(wheel_bytes(name.replace("-", "_"), "1.5", {f"{name}.py": ""}))
        file = file_name(name, "1.5", "py3-none-any")
        server.files[f"/files/{file}"] = wheel
        server.files[f"/simple/{name}/"] = page(
            f'<a href="/files/{file}#sha256={wheel.sha256}">{file}</a>'
        )


def put_placeholders(server):
    """Serve what PyPI has under AMD's names: newer versions of nothing."""
    for name in (*OWN, "rocm"):
        version = "99.0"
        wheel = Served(wheel_bytes(name.replace("-", "_"), version, {"placeholder.py": ""}))
        file = file_name(name, version, "py3-none-any")
        server.files[f"/files/{file}"] = wheel
        link = f'<a href="/files/{file}#sha256={wheel.sha256}">{file}</a>'
        server.files[f"/simple/{name}/"] = page(link)


@pytest.fixture
def table(server):
    packages = [
        *(IndexPackage(name, version) for name, (version, _) in OWN.items() if name != "torch"),
        IndexPackage("rocm", "10.0.0", hashlib.sha256(SOURCE).hexdigest()),
    ]
    rocm = TorchBuild(
        FAMILY, f"{server.url}/rocm", {}, {}, "AMD", VERSION, f"device-{CHIP}", {KEY: [CHIP]},
        {SYSTEM: packages}, ["needed>=1.0"], has_hashes=False,
    )  # fmt: skip
    xpu = TorchBuild(
        "xpu", f"{server.url}/whl/xpu", {}, {}, "Intel", "9.1.0+xpu", chips={KEY: ["bmg"]},
        packages={SYSTEM: [IndexPackage("triton-xpu", "3.7.2")]},
    )  # fmt: skip
    return WheelTable("9.1.0", (rocm, xpu))


@pytest.fixture
def planner(tmp_path, table):
    downloader = Downloader(tmp_path / "downloads", wait=lambda _seconds: None)
    downloader.begin()
    return Planner(downloader, table, KEY, tmp_path / "setup.log")


def names_of(plan):
    return {file.name.split("-")[0] for file in plan.files}


def test_amds_packages_come_from_amds_index_and_never_from_pypi(server, planner):
    put_amd(server)
    put_placeholders(server)
    put_pypi(server, "needed")
    plan = planner.from_index(FAMILY)
    assert plan.torch_version == VERSION
    own = {name.replace("-", "_") for name in OWN}
    assert names_of(plan) == {*own, "rocm", "needed"}
    for file in plan.files:
        if file.name.split("-")[0] in own:
            assert file.url.startswith(f"{server.url}/rocm/")
            assert file.size_bytes
    asked = [path for _, path, _ in server.asked if path.startswith("/simple/")]
    assert asked
    assert all("needed" in path for path in asked)
    # Nothing was downloaded, and nothing proves what will arrive.
    assert {one.split("-")[0] for one in plan.unproven} == own


def test_intels_packages_come_from_pypi_and_triton_from_pytorchs_index(server, planner):
    needs = ["triton-xpu==3.7.2", "intel-sycl-rt", "dpcpp-cpp-rt"]
    torch = f"torch-9.1.0+xpu-{TAGS}.whl"
    wheel = Served(wheel_bytes("torch", "9.1.0+xpu", {}, needs, TAGS))
    href = torch.replace("+", "%2B")
    server.files["/whl/xpu/torch/"] = page(
        f'<a href="../{href}#sha256={wheel.sha256}" data-core-metadata="true">x</a>'
    )
    server.files[f"/whl/xpu/{torch}"] = wheel
    text = metadata("torch", "9.1.0+xpu", needs)
    server.files[f"/whl/xpu/{torch}.metadata"] = Served(text.encode())
    triton = Served(wheel_bytes("triton_xpu", "3.7.2", {}, (), TAGS))
    file = file_name("triton-xpu", "3.7.2", TAGS)
    server.files[f"/whl/xpu/triton-xpu/{file}"] = triton
    server.files["/whl/xpu/triton-xpu/"] = page(f'<a href="{file}#sha256={triton.sha256}">x</a>')
    put_pypi(server, "intel-sycl-rt", "dpcpp-cpp-rt", "triton-xpu")
    plan = planner.from_index("xpu")
    assert names_of(plan) == {"torch", "triton_xpu", "intel_sycl_rt", "dpcpp_cpp_rt"}
    found = next(one for one in plan.files if one.name.startswith("triton"))
    assert (found.name, found.sha256) == (file, triton.sha256)
    assert "/simple/triton-xpu/" not in {path for _, path, _ in server.asked}
    assert plan.unproven == ()


def test_a_source_that_is_not_the_known_one_is_refused(server, planner):
    put_amd(server)
    put_pypi(server, "needed")
    server.files["/rocm/rocm/rocm-10.0.0.tar.gz"] = Served(source_of_rocm(content=b"bad = 1\n"))
    with pytest.raises(TroubleError) as raised:
        planner.from_index(FAMILY)
    assert raised.value.trouble.kind is TroubleKind.INDEX


def test_a_folder_of_wheels_takes_the_place_of_both(server, planner, tmp_path):
    folder = tmp_path / "wheels"
    for name, (version, tags) in OWN.items():
        write_wheel(folder, name.replace("-", "_"), version, {}, tags=tags)
    write_wheel(folder, "needed", "1.5", {})
    (folder / "rocm-10.0.0.tar.gz").write_bytes(SOURCE)
    plan = planner.from_folder(FAMILY, folder)
    own = {name.replace("-", "_") for name in OWN}
    assert names_of(plan) == {*own, "rocm", "needed"}
    assert all(file.local_path is not None for file in plan.files)
    (folder / "rocm-10.0.0.tar.gz").unlink()
    put_amd(server)  # which nobody has allowed it to ask
    with pytest.raises(TroubleError) as raised:
        planner.from_folder(FAMILY, folder)
    assert "lacks rocm-10.0.0" in raised.value.trouble.sentence
    assert server.asked == []


def test_a_paused_build_continues_and_says_what_nothing_proves(server, tmp_path, table):
    put_amd(server, ballast=bytes(range(256)) * 6000)
    put_pypi(server, "needed")
    stages, is_over = [], False

    def report(progress):
        nonlocal is_over
        stages.append(progress.stage)
        is_over = progress.stage is InstallStage.DOWNLOADING and progress.done_bytes > 0

    def installer():
        return BuildInstaller(
            BuildShelf(tmp_path / "engines"), report, lambda: is_over and pauses,
            wait=lambda _seconds: None, table=table,
            check=lambda *_: CheckedBuild(VERSION, True, "It ran."),
        )  # fmt: skip

    pauses = True
    assert not installer().install(FAMILY)
    assert stages[-1] is InstallStage.PAUSED
    planned = len(server.asked)
    pauses = False
    assert installer().install(FAMILY)
    assert not any(path.startswith("/simple/") for _, path, _ in server.asked[planned:])
    shelf = BuildShelf(tmp_path / "engines", "9.1.0")
    record = shelf.record(FAMILY)
    assert (record.torch_version, record.runs_on_card) == (VERSION, True)
    assert "published hash: torch 9.1.0+rocm10.0.0" in record.note
    assert shelf.used() == FAMILY
    assert (shelf.folder(FAMILY) / "rocm_sdk" / "__init__.py").read_text() == "LIBRARIES = 1\n"
    assert shelf.downloads_bytes() == 0
