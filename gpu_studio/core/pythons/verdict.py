"""The verdict on each Python's PyTorch, with its reason and the line that mends it.

Window and terminal show the same words.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_studio.core.devices.devices import MAKERS
from gpu_studio.core.maker_builds import version_numbers
from gpu_studio.core.pythons.coverage import (
    Choice,
    choices,
    covers,
    cuda_version,
    driver_runs,
    torch_releases,
)
from gpu_studio.core.pythons.environment import PythonKind
from gpu_studio.core.pythons.mend import MendLine, line_for
from gpu_studio.core.pythons.torch_files import CPU, CUDA, ROCM
from gpu_studio.core.texts import listed, plain_values
from gpu_studio.core.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.pythons.coverage import PcCard, ThisPc
    from gpu_studio.core.pythons.environment import Environment
    from gpu_studio.core.pythons.search import FoundPythons

_SPARE = "GPU Studio has another build for this PC."
_STABLE_AUDIO = (2, 11)  # from here on, torchaudio asks for no exact PyTorch


class PythonVerdict(str, Enum):
    """Whether a Python's PyTorch can use this PC's card."""

    WRONG = "wrong"
    UNSURE = "unsure"
    RIGHT = "right"


class Judged(NamedTuple):
    """A Python with its verdict.

    Attributes:
        environment: the Python and its PyTorch.
        verdict: whether it can use the card that counts.
        reason: why, in a sentence; "" if nothing is to be said.
        covers: for each card of this PC, whether the build has code for it; None if unknown.
        line: what mends it.
    """

    environment: Environment
    verdict: PythonVerdict
    reason: str
    covers: tuple[tuple[str, bool | None], ...]
    line: MendLine

    @property
    def build(self) -> str:
        """The build in a word or two."""
        tag = self.environment.torch.tag
        return "CPU only" if tag == CPU else tag or "unknown"


def judged(environments: Sequence[Environment], pc: ThisPc) -> list[Judged]:
    """Return the verdicts, those that need something first.

    Of GPU Studio's own builds, the program takes one that is right.
    """
    order = [*PythonVerdict]
    found = [_judge(one, pc) for one in environments]
    own = [one for one in found if one.environment.kind is PythonKind.ENGINE]
    if any(one.verdict is PythonVerdict.RIGHT for one in own):
        found = [
            one._replace(verdict=PythonVerdict.RIGHT, reason=_SPARE, line=MendLine())
            if one in own and one.verdict is PythonVerdict.WRONG
            else one
            for one in found
        ]
    return sorted(found, key=lambda one: order.index(one.verdict))


def _judge(one: Environment, pc: ThisPc) -> Judged:
    covered = tuple((card.label, covers(one.torch, card, pc)) for card in pc.cards)
    verdict, reason, line = _verdict(one, pc)
    return Judged(one, verdict, reason, covered, line)


def _verdict(one: Environment, pc: ThisPc) -> tuple[PythonVerdict, str, MendLine]:
    torch = one.torch
    if one.lost:
        return (
            PythonVerdict.WRONG,
            f"Its Python is not there: {one.lost}",
            line_for(one, _NOTHING, ""),
        )
    if torch.trouble == "incomplete":
        return _mended(one, pc, "Parts of this PyTorch are missing.", _target(one, pc))
    if torch.trouble == "closed":
        return PythonVerdict.UNSURE, "This user may not read its files.", MendLine()
    if not pc.cards:
        return PythonVerdict.RIGHT, "This PC has no card that PyTorch could use.", MendLine()
    target = _target(one, pc)
    if target is None:
        return _without_choice(one, pc)
    has_code = covers(torch, target, pc)
    if has_code is None:
        return PythonVerdict.UNSURE, "Its files do not tell. Run a kernel to know.", MendLine()
    if not has_code:
        return _mended(one, pc, _why_not(one, target), target)
    if torch.kind == CUDA and not driver_runs(torch.tag, pc):
        reason = f"{torch.tag} needs a newer driver than {pc.driver}."
        return _mended(one, pc, reason, target)
    wrong = [*_misfits(one)]
    if wrong:
        names = listed(f"{name} {version}" for name, version in wrong)
        verb = "is" if len(wrong) == 1 else "are"
        own, only = _own_choice(one), tuple(name for name, _ in wrong)
        reason = f"{names} {verb} not made for PyTorch {torch.version}."
        return PythonVerdict.WRONG, reason, line_for(one, own, pc.system, only=only)
    if len(torch.records) > 1:
        reason = f"There are records of {listed(torch.records)}; {torch.version} counts."
        return PythonVerdict.RIGHT, reason, MendLine()
    return PythonVerdict.RIGHT, "", MendLine()


_NOTHING = Choice("", "", "")


def _target(one: Environment, pc: ThisPc) -> PcCard | None:
    """Return the card that a build is for: one of its own maker's, or the first with a build."""
    maker = MAKERS.get(one.torch.kind)
    own = [card for card in pc.cards if card.maker == maker and not card.is_integrated]
    for card in (*own, *pc.cards):
        if _choice(one, card, pc) is not None or (own and covers(one.torch, card, pc)):
            return card
    return None


def _choice(one: Environment, card: PcCard, pc: ThisPc) -> Choice | None:
    """Return the build for a card that changes least, with all that belongs to it."""
    fitting = [
        choice
        for choice in choices(card, pc, one.torch.version, one.minor)
        if (choice.vision or not one.torch.vision)
        and (choice.audio or not one.torch.audio)
        and (choice.version != one.torch.version or one.torch.trouble or one.torch.devices)
        and (choice.tag != one.torch.tag or not one.torch.chips)
        and (choice.extra or not one.torch.devices)
        and (one.minor is not None or _series(choice.version) == _series(one.torch.version))
    ]
    same = (choice for choice in fitting if choice.version == one.torch.version)
    return next(same, None) or next(iter(fitting), None)


def _series(version: str) -> tuple[int, ...]:
    return version_numbers(version)[:2]


def _mended(
    one: Environment, pc: ThisPc, reason: str, target: PcCard | None
) -> tuple[PythonVerdict, str, MendLine]:
    if target is not None:
        choice = _choice(one, target, pc)
    else:  # without a card, what is there is put there again
        choice = _own_choice(one) if one.torch.tag else None
    if choice is None:
        return PythonVerdict.WRONG, reason, MendLine(why_none=_why_no_choice(one, pc))
    return PythonVerdict.WRONG, reason, line_for(one, choice, pc.system)


def _without_choice(one: Environment, pc: ThisPc) -> tuple[PythonVerdict, str, MendLine]:
    labels = listed(card.label for card in pc.cards)
    if one.torch.kind == CPU:
        return PythonVerdict.RIGHT, f"No build that it could have is for {labels}.", MendLine()
    if any(covers(one.torch, card, pc) for card in pc.cards):
        return PythonVerdict.RIGHT, "", MendLine()
    reason = f"{one.torch.tag or 'This build'} has no code for {labels}."
    return PythonVerdict.WRONG, reason, MendLine(why_none=_why_no_choice(one, pc))


def _why_no_choice(one: Environment, pc: ThisPc) -> str:
    if one.minor is None:
        return "Its Python's version is not known, so no line is sure."
    for card in pc.cards:
        if next(choices(card, pc._replace(driver=""), one.torch.version, one.minor), None):
            return f"Update the driver: {pc.driver} runs no build with code for {card.label}."
        if next(choices(card, pc, one.torch.version, None), None):
            return f"No build with code for {card.label} is for Python 3.{one.minor}."
    return "No PyTorch since 2.0 has code for it, so it works on the processor."


def _why_not(one: Environment, card: PcCard) -> str:
    torch = one.torch
    if torch.kind == CPU:
        return "This build is for the processor only."
    maker = MAKERS.get(torch.kind, "")
    if maker and maker != card.maker:
        return f"{torch.tag} is for {maker} cards."
    chip = card.other.chip if card.other is not None else ".".join(map(str, card.capability))
    if torch.devices:
        held = ", ".join(f"{name} {version}" for name, version in sorted(torch.devices.items()))
        return f"Its packages have no code for {chip} ({held})."
    return f"{torch.tag} has no code for {chip}."


def _misfits(one: Environment) -> Iterator[tuple[str, str]]:
    """Yield torchvision and torchaudio where they fail with this PyTorch.

    torchvision compares the first number of CUDA, torchaudio before 2.11 all of it
    (``_check_cuda_version`` in both); their code fails with another series of PyTorch.
    """
    torch = one.torch
    release = torch_releases().release(torch.version)
    if release is None:
        return
    if torch.vision and release.vision:
        is_other = _series(torch.vision) != _series(release.vision)
        if is_other or _local_differs(torch.vision, one, is_vision=True):
            yield "torchvision", torch.vision
    if torch.audio:
        is_other = _series(torch.audio) != _series(release.audio)
        if _series(torch.version) >= _STABLE_AUDIO:
            is_other = _series(torch.audio) < _STABLE_AUDIO
        elif _local_differs(torch.audio, one, is_vision=False):
            is_other = True
        if is_other:
            yield "torchaudio", torch.audio


def _local_differs(version: str, one: Environment, *, is_vision: bool) -> bool:
    local, torch = version.partition("+")[2], one.torch
    if not local or torch.by_conda or torch.kind == CPU:
        return False
    if local == CPU:
        return is_vision
    if torch.kind != CUDA or not local.startswith("cu"):
        return torch.kind == CUDA or local.startswith("cu")
    ours, theirs = cuda_version(torch.tag), cuda_version(local)
    return ours[0] != theirs[0] if is_vision else ours != theirs


def _own_choice(one: Environment) -> Choice:
    """Return the build that is there, with what belongs to it."""
    torch, table = one.torch, torch_releases()
    release = table.release(torch.version)
    if torch.kind == ROCM and version_numbers(torch.tag.removeprefix("rocm")) >= (7, 10):
        index, local = "https://stable.repo.amd.com/rocm/whl-next", ""
        return Choice(torch.version, torch.tag, index, local, table.amd.vision, table.amd.audio)
    index, local = f"https://download.pytorch.org/whl/{torch.tag}", f"+{torch.tag}"
    vision = release.vision + local if release and release.vision else ""
    audio = release.audio + local if release else ""
    plain = torch.version.partition("+")[0]
    return Choice(plain + local, torch.tag, index, "", vision, audio)


# ── words for the window and the terminal ────────────────────────────────────────────────────


def headline(found: Sequence[Judged], pc: ThisPc) -> str:
    """Return the answer in a sentence: ``2 of 4 PyTorch installations can use your GT 1030``."""
    if not found:
        return "No PyTorch was found"
    if not pc.cards:
        return f"{counted(len(found), 'program')} with PyTorch, and no card that one could use"
    able = sum(one.verdict is PythonVerdict.RIGHT for one in found)
    return f"{able} of {counted(len(found), 'program')} can use your {pc.cards[0].name}"


def cover_words(one: Judged) -> str:
    """Return which cards it covers: ``Has code for RTX 5090, not for GT 1030.``."""
    starts = (("", True), ("not ", False), ("perhaps ", None))
    cards = [(start, [card for card, has in one.covers if has is it]) for start, it in starts]
    words = ", ".join(f"{start}for {listed(its)}" for start, its in cards if its)
    return f"Has code {words}." if words else ""


def left_out_lines(found: FoundPythons) -> list[str]:
    """Return what was not looked into, a sentence each."""
    lines = []
    for one in found.left_out:
        more = (
            "" if one.count <= len(one.examples) else f" and {one.count - len(one.examples)} more"
        )
        lines.append(f"Left out, {one.why}: {', '.join(one.examples)}{more}")
    return lines


def looked_line(found: FoundPythons) -> str:
    """Return how much was looked into."""
    return (
        f"{found.folders:,} folders in {found.elapsed_s:.1f} s; {counted(found.without, 'Python')} "
        "without PyTorch. The folders are only read: nothing in them is started or changed."
    )


def judged_value(found: FoundPythons, verdicts: Sequence[Judged]) -> dict[str, Any]:
    """Return the value that ``gpu-studio doctor --everywhere --json`` prints."""
    value: dict[str, Any] = {
        "pythons": [
            {
                "program": one.environment.program,
                "folder": one.environment.folder,
                "kind": one.environment.kind.value,
                "python": one.environment.python,
                "torch_version": one.environment.torch.version,
                "build": one.environment.torch.tag,
                "verdict": one.verdict.value,
                "reason": one.reason,
                "covers": dict(one.covers),
                "command": one.line.text,
                "command_cmd": one.line.cmd,
                "note": one.line.note,
                "why_no_command": one.line.why_none,
            }
            for one in verdicts
        ],
        "without_torch": found.without,
        "folders": found.folders,
        "is_whole": found.is_whole,
        "left_out": [
            {"why": one.why, "count": one.count, "examples": one.examples} for one in found.left_out
        ],
    }
    plain: dict[str, Any] = plain_values(value)
    return plain
