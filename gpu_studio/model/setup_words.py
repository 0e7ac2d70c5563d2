"""The sentences about an installation of the engine: for its page, its line, and its list."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.trouble import format_size
from gpu_studio.core.builds.words import (
    build_title,
    bytes_sentence,
    stage_title,
    whose_python,
    window_action,
)
from gpu_studio.core.wheel_table import CPU_TAG, disk_size, download_size

if TYPE_CHECKING:
    from gpu_studio.core.builds.progress import InstallProgress
    from gpu_studio.core.builds.record import BuildRecord
    from gpu_studio.model.builds import Builds

_HALTED = (InstallStage.PAUSED, InstallStage.FAILED)


def stage_sentence(builds: Builds) -> str:
    """Return what happens now, in a few words."""
    if builds.is_pausing:
        return "Pausing…"
    if builds.is_discarding:
        return "Removing the download…"
    stage = builds.progress.stage
    if builds.trouble is not None:
        return builds.trouble.sentence
    if is_update_offered(builds):
        return update_title(builds)
    if not builds.family or (stage is InstallStage.WAITING and not builds.is_at_work):
        return "PyTorch is ready" if builds.has_engine else "PyTorch is not installed yet"
    return stage_title(stage, builds.family)


def is_update_offered(builds: Builds) -> bool:
    """Return whether the present offer is to renew installed engines."""
    at_rest = builds.progress.stage in (InstallStage.WAITING, InstallStage.READY)
    return bool(builds.updates) and at_rest and not builds.is_at_work


def update_title(builds: Builds) -> str:
    """Return which engines are older than the program, and why they cannot be used if so."""
    first, is_one = builds.updates[0], len(builds.updates) == 1
    if builds.has_engine:
        title = build_title(first.family) if is_one else "engines"
        return f"An update of the {title} is available"
    subject = "Your engine" if is_one else "Your engines"
    change = f"{whose_python()} Python changed from {first.python} to {builds.installed.python}"
    return f"{subject} must be installed again: {change}"


def _update_sentence(builds: Builds) -> str:
    """Return why to renew engines, and what that downloads."""
    installed, parts = builds.installed, []
    for record in builds.updates:
        title, version = build_title(record.family), record.torch_version.partition("+")[0]
        has = f"has PyTorch {version}"
        if not installed.is_loadable(record):
            has = f"was made for Python {record.python}"
        parts.append(
            f"The {title} {has}; a new one downloads about {download_size(record.family)}."
        )
    if builds.has_engine:
        parts.append(
            f"This GPU Studio was tested with PyTorch {installed.torch_version} and Python "
            f"{installed.python}. The {build_title(builds.engine.best)} stays in use until then."
        )
    else:
        parts.append("Your results stay, and nothing is downloaded before you press the button.")
    return " ".join(parts)


def has_share(progress: InstallProgress) -> bool:
    """Return whether the done share of an installation is known.

    A failure may come before the sizes are known; a pause may be of an earlier start.
    """
    return progress.stage.is_at_work or (progress.stage in _HALTED and progress.total_bytes > 0)


def line_sentence(builds: Builds) -> str:
    """Return what happens now for the line above the tabs, where no title names the engine."""
    if builds.trouble is not None:
        return f"{build_title(builds.family)}: {builds.trouble.sentence}"
    size = bytes_sentence(builds.progress) if builds.progress.stage.is_at_work else ""
    if is_update_offered(builds) and builds.has_engine:
        size = " and ".join(f"about {download_size(one.family)}" for one in builds.updates)
    return ": ".join(filter(None, (stage_sentence(builds), size)))


def figure(builds: Builds) -> str:
    """Return the one large figure: the done share, or the size of the download before it."""
    if has_share(builds.progress):
        return f"{100 * builds.progress.fraction:.0f}\u202f%"
    is_halted = builds.progress.stage in _HALTED or builds.is_discarding
    is_offer = not builds.has_engine and not is_halted
    if builds.updates:  # one of several sizes would be wrong
        family = builds.updates[0].family if len(builds.updates) == 1 and not is_halted else ""
        return f"About {download_size(family)}" if family and not builds.has_engine else ""
    return f"About {download_size(CPU_TAG)}" if is_offer else ""


def kept_sentence(builds: Builds) -> str:
    """Return what a pause of an earlier start has downloaded; empty if that is nothing."""
    is_earlier = builds.progress.stage is InstallStage.PAUSED and not has_share(builds.progress)
    downloaded = builds.installed.downloads_bytes() if is_earlier else 0
    return f"{format_size(downloaded)} are downloaded already." if downloaded else ""


def next_sentence(builds: Builds) -> str:
    """Return what happens after this: the next builds, or a take-over; empty if nothing does."""
    if builds.engine.taking_over:
        title = build_title(builds.engine.taking_over)
        return f"The {title} takes over as soon as the present run ends."
    names = [
        f"{build_title(one)} ({download_size(one)})"
        for one in builds.next_builds
        if one != builds.family
    ]
    if names and builds.is_at_work:
        works = " Meanwhile everything works on the CPU." if builds.has_engine else ""
        return f"Next: {', then '.join(names)}.{works}"
    if builds.is_at_work and builds.engine.in_use:
        return f"The {build_title(builds.engine.in_use)} works meanwhile."
    return ""


def offer_sentence(builds: Builds) -> str:
    """Return what one press downloads, before the first."""
    if builds.updates:
        return _update_sentence(builds)
    if builds.planned == (CPU_TAG,):
        return (
            "GPU Studio computes with PyTorch. The CPU engine is a small download. It takes "
            f"{disk_size(CPU_TAG)} of {format_size(builds.installed.free_bytes)} free disk space."
        )
    if CPU_TAG in builds.planned:
        card = next(one for one in builds.planned if one != CPU_TAG)
        return (
            "GPU Studio computes with PyTorch. The CPU engine comes first, so that you can start "
            f"within minutes. The {build_title(card)} for your graphics card "
            f"({download_size(card)}) follows while you use the first. They take "
            f"{disk_size(CPU_TAG)} and {disk_size(card)} of "
            f"{format_size(builds.installed.free_bytes)} free disk space."
        )
    return ""


def begin_label(builds: Builds) -> str:
    """Return the text of the button that starts the installation."""
    if builds.updates:
        verb = "Update" if builds.has_engine else "Make"
        again = "" if builds.has_engine else " again"
        is_one = len(builds.updates) == 1
        title = build_title(builds.updates[0].family) if is_one else "engines"
        return f"{verb} the {title}{again}"
    if len(builds.planned) > 1:
        return "Install both engines"
    return f"Install the {build_title(builds.planned[0])}" if builds.planned else ""


def record_sentence(record: BuildRecord, builds: Builds) -> str:
    """Return the state of an installed build, or what is done to it now."""
    if record.family == builds.removing:
        return "Removing its files…"
    if record.family == builds.repairing:
        return "Ending its engine before the repair…"
    parts = [f"PyTorch {record.torch_version}", format_size(record.size_bytes)]
    if record.family == builds.engine.in_use:
        parts.append("in use")
    older = builds.installed.outdated(record)
    parts += [one for one in (older, record.note) if one]
    return " · ".join(parts)


def disk_sentence(builds: Builds, unfinished_bytes: int) -> str:
    """Return how much disk the engines take and how much is free."""
    used = sum(one.size_bytes for one in builds.installed.records)
    taken = f"The engines take {format_size(used)}." if used else "No engine is installed."
    if unfinished_bytes:
        taken += f" Unfinished installations take {format_size(unfinished_bytes)}."
    return f"{taken} {format_size(builds.installed.free_bytes)} of the disk are free."


def _download_command(family: str) -> str:
    from gpu_studio.core.wheels import choice_of_tag, own_platform_key  # 10 ms

    return choice_of_tag(family).download_command(sys.version_info[:2], own_platform_key())


def details_text(builds: Builds) -> str:
    """Return the facts of a failure to paste into a report."""
    trouble = builds.trouble
    if trouble is None:
        return ""
    recommended = builds.recommended
    lines = [
        f"GPU Studio: {trouble.sentence}", window_action(trouble), f"Kind: {trouble.kind.value}",
        f"Build: {builds.family}", f"Recommended: {recommended.family} ({recommended.why})",
        f"Stage: {100 * builds.progress.fraction:.0f} %, "
        f"{builds.progress.done_bytes} of {builds.progress.total_bytes} bytes, "
        f"{builds.progress.subject}",
        f"Free disk space: {builds.installed.free_bytes} bytes", trouble.detail,
        "To fill a folder of wheels on another PC:", _download_command(builds.family or CPU_TAG),
    ]  # fmt: skip
    return "\n".join(line for line in lines if line)
