"""What each shelf wants to know of a release: winget, scoop, the AUR and Flathub."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from studio_build.address import address_of
from studio_build.linux_packages import maintainer, tar_name
from studio_build.template import filled
from studio_build.windows_setup import setup_name

if TYPE_CHECKING:
    from pathlib import Path

    from studio_build.app_folder import Program
    from studio_build.changes import Release

_SUMMARY = re.compile(r'^description = "(.*)"$', re.MULTILINE)


def write_manifests(program: Program, release: Release, packages: Path, folder: Path) -> list[Path]:
    """Write the manifests of a release; return them.

    Args:
        program: What was built.
        release: Its version and date.
        packages: The folder with the setup and the portable folder, whose hashes go in.
        folder: Where the manifests go.

    Raises:
        BuildError: a template wants what nobody knows.
    """
    values = _values(program, release, packages)
    written = []
    for template in sorted((program.root / "packaging" / "shelves").iterdir()):
        path = folder / _place(template.name, values)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            filled(template.read_text(encoding="utf-8"), values), encoding="utf-8", newline="\n"
        )
        written.append(path)
    return written


def _values(program: Program, release: Release, packages: Path) -> dict[str, str]:
    version, address = program.version, address_of(program.root)
    setup, archive = setup_name(version), tar_name(version)
    project = (program.root / "pyproject.toml").read_text(encoding="utf-8")
    summary = _SUMMARY.search(project)
    setup_url = address.download(version, setup)
    return {
        "VERSION": version,
        "DATE": release.date,
        "SUMMARY": summary[1] if summary else "",
        "URL": address.url,
        "LICENSE_URL": address.page(version, "LICENSE"),
        "APP_ID": address.app_id,
        "WINGET_ID": f"{address.owner}.GPUStudio",
        "MAINTAINER": maintainer(),
        "SETUP_URL": setup_url,
        "SETUP_SHA256": _sha256(packages / setup),
        "AUTOUPDATE_URL": setup_url.replace(version, "$version"),
        "TAR_URL": address.download(version, archive),
        "TAR_SHA256": _sha256(packages / archive),
    }


def _place(name: str, values: dict[str, str]) -> str:
    """Return where a shelf wants a manifest."""
    if name.startswith("winget."):
        kind = name.removeprefix("winget.").removesuffix(".yaml").removeprefix("version")
        parts = [values["WINGET_ID"], *([kind] if kind else []), "yaml"]
        return f"winget/{'.'.join(parts)}"
    places = {
        "scoop.json": "scoop/gpu-studio.json",
        "PKGBUILD": "aur/PKGBUILD",
        "flathub.json": f"flathub/{values['APP_ID']}.json",
    }
    return places[name]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
