"""Which build of PyTorch has code for a maker's card, and what stands in its way.

A compute capability of NVIDIA is a pair of whole numbers, (8, 6), never a float: 8.6 - 8 is not
0.6.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpu_studio.core.wheel_table import TorchBuild, WheelTable


ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")
# Jetson and Drive chips run only code that was built for exactly these chips: DEVICE_REQUIREMENT in
# torch/cuda/__init__.py, 2.13.0.
_EMBEDDED = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)})


def serves(arch_list: Iterable[str], compute_capability: tuple[int, int]) -> bool:
    """Return whether code that was built for these architectures runs on a card.

    The rules are in the CUDA C++ programming guide, "Binary Compatibility" and "PTX Compatibility":
    a cubin (sm_XY) runs on cards of the same major number and the same or a higher minor number;
    PTX (compute_XY) on every card from X.Y on; code with the suffix "a" only on exactly that card.

    Args:
        arch_list: The value of `torch.cuda.get_arch_list()`. Unknown entries are ignored.
        compute_capability: (major, minor).
    """
    return any(_runs_on(arch, compute_capability) for arch in arch_list)


@functools.lru_cache(maxsize=4096)  # comparing two tables of builds asks 400 times the same
def _runs_on(arch: str, card: tuple[int, int]) -> bool:
    match = ARCH.fullmatch(arch)
    if match is None:
        return False
    code = (int(match[2]), int(match[3]))
    if match[1] == "compute" and not match[4]:
        return card >= code
    if match[4] == "a" or code in _EMBEDDED or card in _EMBEDDED:
        return card == code
    return card[0] == code[0] and card[1] >= code[1]


def version_numbers(text: str | None) -> tuple[int, ...]:
    """Return the numbers of a version, "580.65.06" → (580, 65, 6); empty if there are none."""
    match = re.match(r"\s*(\d+(?:\.\d+)*)", text or "")
    return tuple(int(part) for part in match[1].split(".")) if match else ()


class BuildVerdict(str, Enum):
    """Whether a card has a build here."""

    BUILD = "build"
    WRONG_RESULTS = "wrong_results"
    OLD_KERNEL = "old_kernel"
    OTHER_SYSTEM = "other_system"
    OTHER_PYTHON = "other_python"
    NO_BUILD = "no_build"
    UNKNOWN_CHIP = "unknown_chip"


# An old kernel can be updated, and wrong results may be of one driver.
_INSTALLABLE = (BuildVerdict.BUILD, BuildVerdict.WRONG_RESULTS, BuildVerdict.OLD_KERNEL)


# PYTORCH_ROCM_ARCH of PyTorch's .ci/docker/manywheel/build.sh, for ROCm 7: AMD's own builds leave
# these two out.
IN_PYTORCHS_OWN = frozenset({"gfx900", "gfx906"})


@dataclass(frozen=True, slots=True)
class MakerCard:
    """The properties of an AMD or Intel card that decide its build.

    Attributes:
        name: Its name: "Radeon RX 6600".
        maker: "AMD" or "Intel".
        chip: What code for it is compiled for, "gfx1032"; "" if unknown.
        is_integrated: Whether it is part of a processor.
    """

    name: str
    maker: str
    chip: str
    is_integrated: bool = False

    @property
    def label(self) -> str:
        """The name and the chip: "Radeon RX 6600 (gfx1032)"."""
        is_gfx = self.chip.startswith("gfx")
        return f"{self.name} ({self.chip})" if is_gfx else self.name


@dataclass(frozen=True, slots=True)
class JudgedCard:
    """A card and its build.

    Attributes:
        card: The card.
        verdict: Whether it has a build here.
        build: The build with code for its chip, for any system; None if there is none.
        is_tested: Whether the maker has tested that build on this chip and system.
        sentence: The verdict in words.
    """

    card: MakerCard
    verdict: BuildVerdict
    build: TorchBuild | None
    is_tested: bool
    sentence: str

    @property
    def may_have_build(self) -> bool:
        """Whether some build may have code for it: a known chip without any has none."""
        return self.verdict is not BuildVerdict.NO_BUILD or self.card.chip in IN_PYTORCHS_OWN

    @property
    def tag(self) -> str:
        """The build that can be installed for it here, recommended or not; "" if there is none."""
        is_here = self.verdict in _INSTALLABLE
        return self.build.tag if self.build is not None and is_here else ""


def judge(
    card: MakerCard, table: WheelTable, platform_key: str, kernel: str, python: tuple[int, int]
) -> JudgedCard:
    """Return whether a card has a build.

    Args:
        card: The card.
        table: The table of builds.
        platform_key: As `core.wheels.platform_key`.
        kernel: The release of this Linux, "6.8.0-45-generic"; "" elsewhere or if unknown.
        python: The Python that the build is for.
    """
    build = next((one for one in table.builds if _has(one, card)), None)
    floor = build.kernel_floor.get(card.chip, "") if build is not None else ""
    verdict = _verdict(card, build, table, platform_key, python)
    own = version_numbers(kernel)
    if verdict is BuildVerdict.BUILD and platform_key.startswith("linux") and floor and own:
        is_old = own[:2] < version_numbers(floor)[:2]
        verdict = BuildVerdict.OLD_KERNEL if is_old else verdict
    is_tested = build is not None and card.chip not in build.untested.get(platform_key, ())
    sentence = _sentence(card, verdict, build, table, python, (floor, kernel))
    if verdict is BuildVerdict.BUILD and not is_tested:
        sentence += f", but {card.maker} has not tested it on this chip"
    return JudgedCard(card, verdict, build, is_tested, sentence)


def best_first(judged: Sequence[JudgedCard]) -> list[JudgedCard]:
    """Return the cards with a build that can be recommended: those of their own board first."""
    usable = [one for one in judged if one.verdict is BuildVerdict.BUILD]
    return sorted(usable, key=lambda one: one.card.is_integrated)


def _has(build: TorchBuild, card: MakerCard) -> bool:
    return build.maker == card.maker and any(card.chip in one for one in build.chips.values())


def _verdict(
    card: MakerCard,
    build: TorchBuild | None,
    table: WheelTable,
    platform_key: str,
    python: tuple[int, int],
) -> BuildVerdict:
    if not card.chip:
        return BuildVerdict.UNKNOWN_CHIP
    if build is None:
        return BuildVerdict.NO_BUILD
    if card.chip not in build.chips.get(platform_key, ()):
        return BuildVerdict.OTHER_SYSTEM
    oldest, newest = table.python
    if not oldest <= python <= newest:
        return BuildVerdict.OTHER_PYTHON
    return BuildVerdict.WRONG_RESULTS if card.chip in build.wrong_results else BuildVerdict.BUILD


def _sentence(
    card: MakerCard,
    verdict: BuildVerdict,
    build: TorchBuild | None,
    table: WheelTable,
    python: tuple[int, int],
    kernels: tuple[str, str],
) -> str:
    """Return the verdict in words, without a full stop; ``kernels`` are the oldest and this one."""
    tag = build.tag if build is not None else ""
    host = urlsplit(build.index_url).hostname if build is not None else ""
    chips = build.chips if build is not None else {}
    systems = [key.partition("-")[0].capitalize() for key, some in chips.items() if some]
    where = " and ".join(systems)
    floor, kernel = kernels
    words = {
        BuildVerdict.BUILD: f"the {tag} build from {host} has code for it",
        BuildVerdict.WRONG_RESULTS: f"the {tag} build was seen to compute wrong results on it",
        BuildVerdict.OLD_KERNEL: f"the {tag} build needs Linux {floor} for it, but this is Linux "
        f"{kernel.partition('-')[0]}",
        BuildVerdict.OTHER_SYSTEM: f"the {tag} build exists only for {where} on x86-64",
        BuildVerdict.OTHER_PYTHON: f"the {tag} build does not exist for Python "
        f"{python[0]}.{python[1]}",
        BuildVerdict.NO_BUILD: f"no build of PyTorch {table.torch_version} has code for it",
        BuildVerdict.UNKNOWN_CHIP: "its chip is not in this program's table of builds",
    }
    return f"{card.label}: {words[verdict]}"
