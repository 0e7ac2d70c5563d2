"""Whether an installed PyTorch has code for a card, and which published build would have.

All three tables are the program's own: NVIDIA's builds in `resources/wheels.json`, AMD's and
Intel's there as well, and PyTorch's own builds for ROCm in `resources/torch_releases.json`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core import operating_system
from gpu_studio.core.devices.access import capability_of, label_of
from gpu_studio.core.devices.devices import CUDA_BUILD, MAKERS
from gpu_studio.core.devices.maker_cards import maker_cards
from gpu_studio.core.maker_builds import BuildVerdict, judge, serves, version_numbers
from gpu_studio.core.pythons.torch_files import CPU, CUDA, ROCM, XPU
from gpu_studio.core.resources import read_resource
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import driver_floor, platform_key, published_build

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.maker_builds import MakerCard
    from gpu_studio.core.pythons.torch_files import TorchFiles

_NVIDIA = "NVIDIA"
_PYTORCH = "https://download.pytorch.org/whl"
# Builds beside the usual one of their time, with the same code: torchaudio has none for some.
_SIDE_TAGS = ("cu129", "cu132", "cu134")
_OLDEST_XPU = (2, 7)  # of PyTorch: from here on for all chips of its table but the newest
_NEWEST_CHIPS = ("ptl",)
# The newest and the oldest compute capability that a CUDA can compile for: NVIDIA's release notes.
_NEWEST_CODE = (((12, 8), (12, 99)), ((11, 8), (9, 0)), ((11, 1), (8, 6)), ((11, 0), (8, 0)))
_OLDEST_CODE = (((13, 0), (7, 5)), ((12, 0), (5, 0)), ((11, 0), (3, 5)))
_OWN_SERIES = re.compile(r"\d+\.\d+\.\d+(?:\.dev\d+)?(?:\+[a-z]+[\d.]*(?:\.with\.pypi\.cudnn)?)?")


class PcCard(NamedTuple):
    """A card of this PC, as far as it decides a build.

    Attributes:
        name: ``GT 1030``.
        label: ``GT 1030 (6.1)``.
        maker: whose card it is.
        capability: an NVIDIA card's compute capability.
        other: an AMD or Intel card.
    """

    name: str
    label: str
    maker: str
    capability: tuple[int, int] = (0, 0)
    other: MakerCard | None = None

    @property
    def is_integrated(self) -> bool:
        """Whether it is a part of the processor."""
        return self.other is not None and self.other.is_integrated


class ThisPc(NamedTuple):
    """What decides which PyTorch is right here: its cards, their driver, and its system.

    Attributes:
        cards: the cards that some build might use, the one that comes first first.
        driver: the version of NVIDIA's driver; "" if unknown.
        driver_system: the system that it is for: "Windows" in WSL 2.
        system: "Linux" or "Windows".
        machine: "x86_64".
        kernel: the release of Linux.
    """

    cards: tuple[PcCard, ...] = ()
    driver: str = ""
    driver_system: str = "Linux"
    system: str = "Linux"
    machine: str = "x86_64"
    kernel: str = ""

    @property
    def key(self) -> str:
        """The tables' name of this platform."""
        return platform_key(self.system, self.machine)


class Choice(NamedTuple):
    """A build to install: ``2.7.1``, ``cu126``, its index, and what belongs to it."""

    version: str
    tag: str
    index_url: str
    extra: str = ""
    vision: str = ""
    audio: str = ""


def this_pc(inventory: Inventory) -> ThisPc:
    """Return what the sensor reader found, for the choice of a build."""
    system = operating_system.system()
    nvidia = [
        PcCard(card.short_name, label_of(card), _NVIDIA, capability)
        for card in inventory.cards
        if card.build_kind == CUDA_BUILD and (capability := capability_of(card)) is not None
    ]
    nvidia.sort(key=lambda card: card.capability, reverse=True)
    others = [
        PcCard(known.name, known.label, known.maker, other=known)
        for _, known in maker_cards(inventory)
    ]
    others.sort(key=lambda card: card.is_integrated)
    is_alone = not nvidia and all(card.is_integrated for card in others)
    return ThisPc(
        cards=(*nvidia, *(card for card in others if is_alone or not card.is_integrated)),
        driver=inventory.driver.version or "",
        driver_system="Windows" if inventory.is_wsl else system,
        system=system,
        machine=operating_system.machine(),
        kernel=operating_system.release() if system == "Linux" else "",
    )


def covers(torch: TorchFiles, card: PcCard, pc: ThisPc) -> bool | None:
    """Return whether a PyTorch has code for a card; None if its files do not tell."""
    maker = MAKERS.get(torch.kind)
    if torch.kind == CPU or (maker is not None and maker != card.maker):
        return False
    if torch.kind == CUDA:
        return _cuda_covers(torch, card.capability, pc)
    if card.other is None:
        return None
    chip = card.other.chip
    if torch.kind == ROCM:
        return _rocm_covers(torch, chip)
    known = load_table().build("xpu").chips.get(pc.key, ())
    is_old = version_numbers(torch.version)[:2] < _OLDEST_XPU or chip in _NEWEST_CHIPS
    return None if is_old and chip in known else chip in known


def _cuda_covers(torch: TorchFiles, card: tuple[int, int], pc: ThisPc) -> bool | None:
    table = load_table()
    cuda = cuda_version(torch.tag)
    newest = next((code for since, code in _NEWEST_CODE if cuda >= since), (7, 5))
    oldest = next((code for since, code in _OLDEST_CODE if cuda >= since), (3, 0))
    if card < oldest:
        return False
    has_ptx = bool(torch.by_conda) and "pytorch" not in torch.by_conda
    if card > newest:
        return None if has_ptx else False
    own = next((one for one in table.builds if one.tag == torch.tag), None)
    is_same = own is not None and version_numbers(torch.version) == version_numbers(
        table.torch_version
    )
    if own is not None and is_same and pc.key in own.arch_list:
        return serves(own.arch_list[pc.key], card)
    is_published = _OWN_SERIES.fullmatch(torch.version) and not has_ptx
    row = published_build(table, torch.version, ".".join(map(str, cuda)))
    if row is None or not is_published or not pc.key.endswith("x86_64"):
        return None
    return serves(row.arch_list, card)


def _rocm_covers(torch: TorchFiles, chip: str) -> bool | None:
    """AMD's own builds keep a chip's code in packages; PyTorch's have it in all libraries."""
    if not chip:
        return None
    if torch.devices:
        names = (chip, re.sub(r"(gfx\d+)\d$", r"\1x", chip))
        has = [torch.devices[name] for name in names if name in torch.devices]
        return any(version_numbers(one) == version_numbers(torch.version) for one in has)
    if torch.chips:
        return chip in torch.chips
    rocm = version_numbers(torch.tag.removeprefix("rocm"))
    if rocm >= (7, 10) or "rocmsdk" in torch.version:  # AMD's, whose chip its packages name
        return None
    return torch_releases().rocm_covers(rocm, chip)


def cuda_version(tag: str) -> tuple[int, int]:
    """Return the CUDA of a build: "cu126" → (12, 6)."""
    digits = tag.removeprefix("cu")
    return (int(digits[:-1]), int(digits[-1])) if len(digits) > 1 and digits.isdigit() else (0, 0)


def driver_runs(tag: str, pc: ThisPc) -> bool:
    """Return whether the driver is new enough for a build; also if either is unknown."""
    major, minor = cuda_version(tag)
    floor = driver_floor(load_table(), f"{major}.{minor}", pc.driver_system)
    have = version_numbers(pc.driver)
    return not have or not floor or have >= version_numbers(floor)


def choices(card: PcCard, pc: ThisPc, installed: str, minor: int | None) -> Iterator[Choice]:
    """Yield the builds with code for a card, the one that changes least first.

    That is another build of the same PyTorch: others in that Python may be made for just this
    version. Then follow the same series, the newer ones, and the older ones.

    Args:
        card: the card.
        pc: this PC.
        installed: the version that is there now.
        minor: the 11 of Python 3.11.
    """
    python = None if minor is None else (3, minor)
    releases = torch_releases()
    for version in _nearest_first(installed, [*releases.releases]):
        if not releases.suits(version, python, pc.system):
            continue
        release = releases.releases[version]
        for tag in _tags(card, pc, version):
            audio = "" if tag in _SIDE_TAGS[1:] else release.audio
            label = f"+{tag}"
            yield Choice(
                version + label, tag, f"{_PYTORCH}/{tag}", "",
                release.vision and release.vision + label, audio and audio + label,
            )  # fmt: skip
    table = load_table()
    if card.other is not None and card.maker == "AMD" and table.python[0] <= (python or (3, 11)):
        judged = judge(card.other, table, pc.key, pc.kernel, python or (3, 11))
        if judged.verdict is BuildVerdict.BUILD and judged.build is not None:
            build, amd = judged.build, releases.amd
            yield Choice(build.version, "rocm", build.index_url, build.extra, amd.vision, amd.audio)


def _nearest_first(installed: str, versions: Sequence[str]) -> list[str]:
    plain = installed.partition("+")[0]
    mine = version_numbers(plain)
    newer = [one for one in versions if version_numbers(one)[:2] > mine[:2]]
    newer.sort(key=lambda one: (version_numbers(one)[:2], [-part for part in version_numbers(one)]))
    same = [one for one in versions if version_numbers(one)[:2] == mine[:2]]
    older = [one for one in versions if version_numbers(one)[:2] < mine[:2]]
    ways = (*([plain] if plain in versions else ()), *reversed(same), *newer, *reversed(older))
    return [*dict.fromkeys(ways)]


def _tags(card: PcCard, pc: ThisPc, version: str) -> Iterator[str]:
    """Yield the tags of one release with code for a card, the usual ones first."""
    series, table = version_numbers(version)[:2], load_table()
    if card.maker == _NVIDIA:
        rows = [
            row.tag
            for row in table.published
            if version_numbers(row.torch[0]) <= series <= version_numbers(row.torch[1])
            and serves(row.arch_list, card.capability)
        ]
        if not pc.key.endswith("x86_64"):
            rows = [
                one.tag
                for one in table.builds
                if version == table.torch_version
                and serves(one.arch_list.get(pc.key, ()), card.capability)
            ]
        rows.sort(key=lambda tag: (tag not in _SIDE_TAGS, cuda_version(tag)), reverse=True)
        yield from (tag for tag in rows if driver_runs(tag, pc))
    elif card.other is not None and pc.key.endswith("x86_64"):
        chip, rocm = card.other.chip, torch_releases().releases[version].rocm
        if card.maker == "AMD" and pc.system == "Linux" and rocm:
            if torch_releases().rocm_covers(version_numbers(rocm), chip):
                yield f"rocm{rocm}"
        elif card.maker == "Intel" and chip in table.build("xpu").chips.get(pc.key, ()):
            floor = version_numbers(table.torch_version)[:2] if chip in _NEWEST_CHIPS else ()
            if series >= (floor or _OLDEST_XPU):
                yield XPU


class Release(msgspec.Struct, frozen=True):
    """What belongs to one PyTorch; "" for what is not known.

    Attributes:
        vision: the version of torchvision.
        audio: that of torchaudio.
        rocm: the ROCm of PyTorch's own build for AMD cards on Linux, "6.4".
    """

    vision: str
    audio: str
    rocm: str


class PythonRange(msgspec.Struct, frozen=True):
    """The oldest and newest Python for some PyTorch series, both ends included, by system."""

    torch: tuple[str, str]
    linux: tuple[str, str]
    windows: tuple[str, str]


class RocmChip(msgspec.Struct, frozen=True):
    """From which ROCm on PyTorch's own builds have code for a chip, and before which none had."""

    sure_from: str
    not_before: str


class AmdCompanions(msgspec.Struct, frozen=True):
    """What belongs to the PyTorch of AMD's own index."""

    vision: str
    audio: str


class TorchReleases(msgspec.Struct, frozen=True):
    """The table: PyTorch's releases since 2.0, oldest first."""

    releases: dict[str, Release]
    pythons: tuple[PythonRange, ...]
    rocm_chips: dict[str, RocmChip]
    amd: AmdCompanions

    def release(self, torch_version: str) -> Release | None:
        """Return what belongs to a PyTorch, whatever its label; None if it is not known."""
        return self.releases.get(torch_version.partition("+")[0])

    def suits(self, torch_version: str, python: tuple[int, int] | None, system: str) -> bool:
        """Return whether a release exists for a Python; also if that is unknown."""
        series = version_numbers(torch_version)[:2]
        for row in self.pythons:
            oldest, newest = map(version_numbers, row.torch)
            if oldest <= series <= newest:
                first, last = row.windows if system == "Windows" else row.linux
                return python is None or version_numbers(first) <= python <= version_numbers(last)
        return False

    def rocm_covers(self, rocm: tuple[int, ...], chip: str) -> bool | None:
        """Return whether PyTorch's own build for a ROCm has code for a chip; None if unknown."""
        row = self.rocm_chips.get(chip)
        if row is None or rocm[:2] < version_numbers(row.not_before):
            return False
        return True if rocm[:2] >= version_numbers(row.sure_from) else None


@cache
def torch_releases() -> TorchReleases:
    """Return the table.

    Raises:
        MissingResourceError: the file is missing or broken.
    """
    return read_resource("torch_releases.json", TorchReleases)
