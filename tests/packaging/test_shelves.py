from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

import pytest
from studio_build.address import absolute_links, address_of
from studio_build.app_folder import Program
from studio_build.changes import Release
from studio_build.console import BuildError
from studio_build.linux_packages import metainfo, tar_name
from studio_build.shelves import write_manifests
from studio_build.template import filled
from studio_build.windows_setup import setup_name

if TYPE_CHECKING:
    from pathlib import Path


def _at(folder: Path, url: str) -> Path:
    (folder / "pyproject.toml").write_text(f'Homepage = "{url}"\n', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("url", "app_id"),
    [
        ("https://github.com/Anne-O/gpu-studio", "io.github.anne_o.gpu_studio"),
        ("https://gitlab.com/anne/gpu.studio", "io.gitlab.anne.gpu_studio"),
        ("https://codeberg.org/1anne/gpu-studio", "page.codeberg._1anne.gpu_studio"),
    ],
)
def test_the_id_is_below_the_projects_own_account(tmp_path: Path, url: str, app_id: str) -> None:
    address = address_of(_at(tmp_path, url))
    assert (address.app_id, address.is_placeholder) == (app_id, False)
    assert address.download("1.2.3", "x.deb").startswith(f"{url}/")


@pytest.mark.parametrize("url", ["", "http://github.com/a/b", "https://gpu-studio.com/a/b"])
def test_an_address_whose_links_nobody_knows_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(BuildError, match="as its Homepage"):
        address_of(_at(tmp_path, url))


def test_until_there_is_an_address_no_one_is_claimed(root: Path) -> None:
    address = address_of(root)
    if address.is_placeholder:
        assert address.app_id.startswith("org.example.")


def test_the_page_on_pypi_has_links_that_work_there(root: Path, tmp_path: Path) -> None:
    address = address_of(_at(tmp_path, "https://github.com/anne/gpu-studio"))
    text = absolute_links((root / "README.md").read_text(encoding="utf-8"), address, "1.2.3")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert targets
    assert all(one.startswith("https://github.com/anne/gpu-studio/") for one in targets)
    assert f"]({address.url}/raw/v1.2.3/docs/pictures/race.png)" in text
    assert f"]({address.url}/blob/v1.2.3/CONTRIBUTING.md)" in text


def test_every_shelf_has_its_manifest_with_the_hash_of_its_package(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / setup_name("1.2.3")).write_bytes(b"setup")
    (tmp_path / tar_name("1.2.3")).write_bytes(b"folder")
    manifests = write_manifests(
        Program(root, "1.2.3", 0), Release("1.2.3", "2026-12-24", ("One.",)), tmp_path, tmp_path
    )
    assert {path.parent.name for path in manifests} == {"winget", "scoop", "aur", "flathub"}
    texts = {path.name: path.read_text(encoding="utf-8") for path in manifests}
    assert not any(re.search("@[A-Z]", text) for text in texts.values())
    scoop = json.loads(texts["gpu-studio.json"])
    assert scoop["architecture"]["64bit"]["hash"] == hashlib.sha256(b"setup").hexdigest()
    folder_hash = hashlib.sha256(b"folder").hexdigest()
    assert f"sha256sums=('{folder_hash}')" in texts["PKGBUILD"]
    app_id = address_of(root).app_id
    flathub = json.loads(texts[f"{app_id}.json"])
    assert flathub["modules"][0]["sources"][0]["sha256"] == folder_hash
    assert f"<id>{app_id}</id>".encode() in metainfo(Program(root, "1.2.3", 0))


def test_a_value_that_nobody_gives_is_told() -> None:
    with pytest.raises(BuildError, match="@B@"):
        filled("@A@ @B@", {"A": "1"})
