"""The package for PyPI: a wheel and a source archive, whose page has working links."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from studio_build.address import absolute_links, address_of
from studio_build.console import run

if TYPE_CHECKING:
    from pathlib import Path

    from studio_build.app_folder import Program


def write_python_package(program: Program, work: Path, out: Path) -> list[Path]:
    """Build the commit's package with the tool that pyproject.toml names; return its files.

    The links of README.md are relative, for the repository; PyPI's page needs absolute ones.

    Raises:
        BuildError: the tool cannot be had, or it failed.
    """
    tree, tools = work / "python-package", work / "hatchling"
    tree.mkdir()
    archive = run(["git", "-C", str(program.root), "archive", "--format=tar", "HEAD"])
    run(["tar", "--extract", "--directory", str(tree)], given=archive)
    readme = tree / "README.md"
    text = readme.read_text(encoding="utf-8")
    links = absolute_links(text, address_of(program.root), program.version)
    readme.write_text(links, encoding="utf-8")
    run([sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), "hatchling>=1.25"])
    build = f"import sys; sys.path.insert(0, {str(tools)!r}); from hatchling.cli import hatchling"
    build += "; sys.exit(hatchling())"
    run(
        [sys.executable, "-c", build, "build", "--directory", str(out)],
        folder=tree,
        environ={"SOURCE_DATE_EPOCH": str(program.epoch)},
    )
    return sorted(out.glob(f"gpu_studio-{program.version}*"))
