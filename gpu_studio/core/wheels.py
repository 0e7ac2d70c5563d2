"""Chooses the PyTorch build for the cards of this PC, also among those that we do not install.

The window uses it if the installed PyTorch has no code for a card. The table is
`resources/wheels.json`, which names its sources.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.maker_builds import ARCH, best_first, judge, serves, version_numbers
from gpu_studio.core.wheel_table import CPU_TAG, TorchBuild, WheelTable, load_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.maker_builds import MakerCard
    from gpu_studio.core.wheel_table import PublishedBuild

_DOWNLOAD = "python -m pip download --dest wheels"
_NO_CARD = "No graphics card that PyTorch can use was found, so its CPU build is used."
_CPU_USED = "So the CPU build is used."
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# The wheels of PyTorch 2.13.0 and of what it needs have these tags, besides "any".
_LINUX_TAGS = ("manylinux_2_28", "manylinux_2_27", "manylinux2014")


@dataclass(frozen=True, slots=True)
class CudaCard:
    """The properties of an NVIDIA card that decide its build.

    Attributes:
        name: The driver's name of the card.
        compute_capability: (major, minor).
    """

    name: str
    compute_capability: tuple[int, int]

    @property
    def label(self) -> str:
        """The name and compute capability, for example "GeForce GT 1030 (6.1)"."""
        major, minor = self.compute_capability
        return f"{self.name.removeprefix('NVIDIA ')} ({major}.{minor})"


@dataclass(frozen=True, slots=True)
class WheelChoice:
    """The build to install, and the reason.

    Attributes:
        tag: "cu130", "rocm-gfx1032" or "cpu".
        torch_version: For example "2.13.0".
        requirement: Exact, so that pip fails instead of choosing another build.
        index_url: Its package index, or None for the default index (macOS).
        sentence: The reason, and what to do about a card without support.
        offered: The builds with code for a card of this PC, of whichever maker, beside the
            CPU's.
        build: The table's row; None on macOS.
    """

    tag: str
    torch_version: str
    requirement: str
    index_url: str | None
    sentence: str
    offered: tuple[str, ...] = ()
    build: TorchBuild | None = None

    @property
    def install_command(self) -> str:
        """The command that installs this build, before `program_form` gives it its form."""
        return f"gpu-studio engine install {self.tag}"

    @property
    def pip_command(self) -> str:
        """The command that installs this build in an environment of the user's."""
        index = f" --index-url {self.index_url}" if self.index_url else ""
        requirement = f'"{self.requirement}"' if "[" in self.requirement else self.requirement
        return f"python -m pip install {requirement}{index}"

    def download_command(self, python: tuple[int, int], platform_key: str) -> str:
        """Return the command that fills a folder of wheels on another PC, or one in each line.

        What an index has only as source is an address to open, in a line of its own.

        Args:
            python: The Python that the wheels are for, (3, 11).
            platform_key: Of the PC that they are for, as `platform_key`.
        """
        system, _, machine = platform_key.partition("-")
        tags = [f"{tag}_{machine}" for tag in _LINUX_TAGS] if system == "linux" else ["win_amd64"]
        if self.build is not None and self.build.needs:
            return "\n".join(self._commands_for_own_index(self.build, python, system, tags))
        # PyTorch's own index may lack a package that PyTorch needs.
        index = f"--index-url {self.index_url} --extra-index-url https://pypi.org/simple "
        return (
            f"{_DOWNLOAD} --only-binary :all: {_wheels_for(python, tags)} "
            f"{index if self.index_url else ''}{self.requirement}"
        )

    def _commands_for_own_index(
        self, build: TorchBuild, python: tuple[int, int], system: str, tags: list[str]
    ) -> Iterator[str]:
        """Yield a command for each index: beside the other, PyPI's packages would be taken."""
        packages = build.packages[system]
        own = [f"{one.name}=={one.version}" for one in packages if not one.source_sha256]
        plain = [*tags, "linux_x86_64"] if system == "linux" else tags
        yield (
            f"{_DOWNLOAD} --no-deps {_wheels_for(python, plain)} --index-url {build.index_url} "
            f"torch=={build.version} {' '.join(own)}"
        )
        needs = " ".join(f'"{one}"' for one in build.needs)
        yield f"{_DOWNLOAD} --only-binary :all: {_wheels_for(python, tags)} {needs}"
        for one in packages:
            if one.source_sha256:
                yield f"{build.index_url}/{one.name}/{one.name}-{one.version}.tar.gz"


def _wheels_for(python: tuple[int, int], tags: Sequence[str]) -> str:
    platforms = " ".join(f"--platform {tag}" for tag in tags)
    return f"--python-version {python[0]}.{python[1]} {platforms}"


def platform_key(system: str, machine: str) -> str:
    """Return the table's name of a platform: ("Windows", "AMD64") → "windows-x86_64"."""
    machine = machine.lower()
    return f"{system.lower()}-{_MACHINES.get(machine, machine)}"


def own_platform_key() -> str:
    """Return the table's name of this PC's platform."""
    return platform_key(operating_system.system(), operating_system.machine())


def choose_wheel(
    cards: Sequence[CudaCard],
    driver_version: str | None,
    *,
    others: Sequence[MakerCard] = (),
    kernel: str | None = None,
    python: tuple[int, int] = sys.version_info[:2],
    system: str | None = None,
    machine: str | None = None,
    driver_system: str | None = None,
    installed_tag: str | None = None,
    table: WheelTable | None = None,
) -> WheelChoice:
    """Choose the PyTorch build for a PC.

    The build must have code for the card, and the driver must be new enough for the build. With
    several cards, support for the most capable card that any build supports comes first, then the
    number of supported cards. If builds are equal, the installed build wins, then the newest.
    An AMD or Intel card decides where no NVIDIA card can be used: one of its own board before one
    in a processor.

    Args:
        cards: The NVIDIA cards; empty if there are none.
        driver_version: For example "580.65.06"; None if unknown.
        others: The AMD and Intel cards.
        kernel: The release of Linux; this PC's if None.
        python: The Python that the build is for.
        system: "Linux", "Windows" or "Darwin"; this PC's if None.
        machine: "x86_64", "aarch64" or their other names; this PC's if None.
        driver_system: The system that the driver is for, "Windows" in WSL 2; ``system`` if None.
        installed_tag: The installed build, which needs no download.
        table: The table of builds; the program's own if None.

    Raises:
        MissingResourceError: The program's own table is missing or broken.
    """
    table = table or load_table()
    system = (system or operating_system.system()).lower()
    key = platform_key(system, machine or operating_system.machine())
    if system == "darwin":
        why = "PyTorch has no CUDA build for macOS, so the standard build is used."
        return WheelChoice(CPU_TAG, table.torch_version, f"torch=={table.torch_version}", None, why)
    kernel = operating_system.release() if kernel is None else kernel
    judged = [judge(card, table, key, kernel, python) for card in others]
    tag, sentence = CPU_TAG, ""
    if cards:
        driver_system = (driver_system or system).lower()
        match = _Match(table, tuple(cards), driver_version, driver_system, key)
        tag = match.best_tag(installed_tag)
        sentence = match.why(tag) if tag != CPU_TAG else ""
    best = best_first(judged)
    if tag == CPU_TAG and best:
        tag = best[0].tag
    if cards and not sentence:
        sentence = match.why_none("CPU" if tag == CPU_TAG else tag)
    parts = [sentence, *(f"{one.sentence}." for one in judged)]
    if tag == CPU_TAG and not cards:
        parts.append(_CPU_USED if judged else _NO_CARD)
    offered = dict.fromkeys((tag, *(one.tag for one in judged)))
    offered_tags = tuple(one for one in offered if one not in ("", CPU_TAG))
    return _choice(table, tag, " ".join(filter(None, parts)), offered_tags)


def choice_of_tag(tag: str, *, system: str | None = None) -> WheelChoice:
    """Return the choice of a build that the user requested by name.

    Raises:
        KeyError: The table has no such build.
        MissingResourceError: The program's own table is missing or broken.
    """
    table = load_table()
    if (system or operating_system.system()).lower() == "darwin":
        return choose_wheel((), None, system="Darwin", table=table)
    return _choice(table, table.build(tag).tag, f"The {tag} build is used, as requested.")


def _choice(
    table: WheelTable, tag: str, sentence: str, offered: tuple[str, ...] = ()
) -> WheelChoice:
    build = table.build(tag)
    return WheelChoice(
        tag=tag,
        torch_version=table.torch_version,
        requirement=f"torch{f'[{build.extra}]' if build.extra else ''}=={table.version_of(tag)}",
        index_url=build.index_url,
        sentence=sentence,
        offered=offered,
        build=build,
    )


@dataclass(frozen=True, slots=True)
class _Match:
    """The cards and the driver of one PC, compared with the table."""

    table: WheelTable
    cards: tuple[CudaCard, ...]
    driver_version: str | None
    driver_system: str
    platform_key: str

    def served(self, build: TorchBuild) -> list[CudaCard]:
        arch_list = build.arch_list.get(self.platform_key, ())
        return [card for card in self.cards if serves(arch_list, card.compute_capability)]

    def driver_runs(self, build: TorchBuild) -> bool:
        floor = version_numbers(build.driver_floor.get(self.driver_system))
        return bool(floor) and version_numbers(self.driver_version) >= floor

    def best_tag(self, installed_tag: str | None) -> str:
        best, best_rank = CPU_TAG, None
        for build in self.table.builds:
            served = self.served(build)
            if not served or not self.driver_runs(build):
                continue
            capability = max(card.compute_capability for card in served)
            rank = (capability, len(served), build.tag == installed_tag)
            if best_rank is None or rank > best_rank:
                best, best_rank = build.tag, rank
        return best

    def why(self, tag: str) -> str:
        build = self.table.build(tag)
        served = self.served(build)
        labels = ", ".join(dict.fromkeys(card.label for card in served))
        sentence = f"{labels} with driver {self.driver_version}: the {tag} build"
        left_out = [self._left_out(card) for card in self.cards if card not in served]
        return "; ".join([sentence, *dict.fromkeys(left_out)]) + "."

    def why_none(self, used: str) -> str:
        """Return why no card has a build, and which build is used instead: "CPU"."""
        best = max(
            self.cards, key=lambda card: (self._serving(card) != [], card.compute_capability)
        )
        if not any(self.platform_key in build.arch_list for build in self.table.builds):
            return (
                f"PyTorch {self.table.torch_version} has no CUDA build for this platform "
                f"({self.platform_key}), so the {used} build is used."
            )
        if not self._serving(best):
            return f"{self._no_code(best)}, so the {used} build is used."
        if not version_numbers(self.driver_version):
            return f"The driver of {best.label} does not answer, so the {used} build is used."
        return (
            f"{best.label} needs driver {self._floor(best)} or newer, but this driver is "
            f"{self.driver_version}, so the {used} build is used until you update the driver."
        )

    def _serving(self, card: CudaCard) -> list[TorchBuild]:
        return [build for build in self.table.builds if card in self.served(build)]

    def _floor(self, card: CudaCard) -> str:
        floors = [build.driver_floor[self.driver_system] for build in self._serving(card)]
        return min(floors, key=version_numbers)

    def _left_out(self, card: CudaCard) -> str:
        serving = self._serving(card)
        if not serving:
            return self._no_code(card)
        if not any(self.driver_runs(build) for build in serving):
            return f"{card.label} needs driver {self._floor(card)} or newer"
        return f"{card.label} is not supported: only the {serving[0].tag} build has code for it"

    def _no_code(self, card: CudaCard) -> str:
        codes = [
            (int(match[2]), int(match[3]))
            for build in self.table.builds
            for arch in build.arch_list.get(self.platform_key, ())
            if (match := ARCH.fullmatch(arch))
        ]
        version = self.table.torch_version
        if card.compute_capability < min(codes):
            major, minor = min(codes)
            oldest = f"{major}.{minor}, the oldest with code in PyTorch {version}"
            return f"{card.label} is older than {oldest}"
        return f"PyTorch {version} has no code for {card.label}"


def published_build(
    table: WheelTable, torch_version: str, cuda_build: str | None
) -> PublishedBuild | None:
    """Return the row of an installed PyTorch; None if the table has none.

    Args:
        table: the table of builds.
        torch_version: ``2.8.0+cu128``.
        cuda_build: ``12.8``.
    """
    series = version_numbers(torch_version)[:2]
    tag = "cu" + "".join(map(str, version_numbers(cuda_build)[:2]))
    for build in table.published:
        oldest, newest = map(version_numbers, build.torch)
        if build.tag == tag and oldest <= series <= newest:
            return build
    return None


def last_build(table: WheelTable, compute_capability: tuple[int, int]) -> PublishedBuild | None:
    """Return the newest published build with code for a card; None if there is none."""
    serving = [b for b in table.published if serves(b.arch_list, compute_capability)]
    return max(serving, key=lambda b: (version_numbers(b.torch[1]), b.tag), default=None)


def advice_for(
    compute_capability: tuple[int, int],
    *,
    system: str | None = None,
    machine: str | None = None,
) -> str:
    """Return the build to install for a card that the installed PyTorch has no code for.

    Args:
        compute_capability: (major, minor).
        system: "Linux" or "Windows"; this PC's if None.
        machine: "x86_64" or "aarch64"; this PC's if None.

    Raises:
        MissingResourceError: the program's own table is missing or broken.
    """
    table = load_table()
    key = platform_key(system or operating_system.system(), machine or operating_system.machine())
    for build in table.builds:  # newest first
        if serves(build.arch_list.get(key, ()), compute_capability):
            return f"Install the {build.tag} build: the Devices tab has the command."
    last = last_build(table, compute_capability)
    if last is None:
        return "No PyTorch since 2.0 has code for it: use the CPU."
    return f"The last PyTorch with code for it is {last.torch[1]}, in the {last.tag} build."


def driver_floor(table: WheelTable, cuda_build: str | None, system: str) -> str | None:
    """Return the oldest driver for a CUDA generation; None if the table does not have it.

    A whole generation shares it: CUDA minor version compatibility.
    """
    major = "".join(map(str, version_numbers(cuda_build)[:1]))
    return table.driver_floor.get(major, {}).get(system.lower())
