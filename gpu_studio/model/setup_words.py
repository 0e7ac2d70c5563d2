"""What the page says that installs PyTorch, and the sentences of its line and its list."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.trouble import format_size
from gpu_studio.core.builds.words import (
    build_title,
    bytes_sentence,
    stage_title,
    whose_python,
    window_action,
)
from gpu_studio.core.devices.devices import without_maker
from gpu_studio.core.units import format_bytes
from gpu_studio.core.wheel_table import CPU_TAG, disk_size, download_size
from gpu_studio.model.page_model import PageModel

if TYPE_CHECKING:
    from gpu_studio.core.builds.progress import InstallProgress
    from gpu_studio.core.builds.record import BuildRecord
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.model.builds import Builds
    from gpu_studio.model.sensors import Sensors

_HALTED = (InstallStage.PAUSED, InstallStage.FAILED)


class SetupChoices(msgspec.Struct, frozen=True):
    """The build that is chosen under “Why this one?”; empty for the recommended one."""

    family: str = ""


class SetupModel(PageModel):
    """The installation in work, or the offer of the first one, and the card it is for."""

    choices: SetupChoices

    def __init__(self, builds: Builds, sensors: Sensors) -> None:
        super().__init__(SetupChoices())
        self.builds, self._sensors = builds, sensors
        self.copied = ""  # an address that no browser opened
        self.follow(builds.changed, sensors.inventory_changed)

    @property
    def device(self) -> Device | None:
        """The first card, or the CPU; None until devices are found."""
        inventory = self._sensors.inventory
        return next(iter((*inventory.cards, inventory.cpu))) if inventory is not None else None

    @property
    def device_name(self) -> str:
        """What this PC has, before anything is installed."""
        device = self.device
        return without_maker(device.name) if device is not None else "Looking for your card…"

    @property
    def device_line(self) -> str:
        """The facts that are known without PyTorch."""
        device, inventory = self.device, self._sensors.inventory
        if device is None or inventory is None or device.is_cpu:
            return "No graphics card that PyTorch can use was found." if device else ""
        memory, version = device.memory_total_bytes, inventory.driver.version
        facts = (
            f"{format_bytes(memory)} VRAM" if memory else "",
            f"driver {version}" if version else "",
            f"beside a {inventory.cpu.short_name}",
        )
        return " · ".join(filter(None, facts))

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is installed or removed now."""
        return not self.builds.is_at_work and not self.builds.is_discarding

    @property
    def is_offer(self) -> bool:
        """Whether the first installation is offered."""
        return self.builds.progress.stage is InstallStage.WAITING and self.is_at_rest

    @property
    def is_done(self) -> bool:
        """Whether the last installation has ended well."""
        return self.builds.progress.stage is InstallStage.READY and not self.builds.is_at_work

    @property
    def is_failed(self) -> bool:
        return self.builds.progress.stage is InstallStage.FAILED

    @property
    def is_paused(self) -> bool:
        return self.builds.progress.stage is InstallStage.PAUSED

    @property
    def goes_well(self) -> bool:
        """Whether there is a PyTorch to use, and nothing else is the next step."""
        is_ready = self.builds.progress.stage is InstallStage.READY
        return self.builds.has_engine and (self.builds.is_at_work or is_ready)

    @property
    def bytes(self) -> str:
        """The done bytes and the time that is left, or what is kept."""
        if self.is_offer or self.builds.progress.stage is InstallStage.READY:
            return ""
        return bytes_sentence(self.builds.progress) or kept_sentence(self.builds)

    @property
    def offer(self) -> str:
        """What one press downloads; empty where nothing is offered."""
        is_offered = self.is_offer or is_update_offered(self.builds)
        return offer_sentence(self.builds) if is_offered else ""

    @property
    def action(self) -> str:
        """What to do about a failure, how an installation ended, or where its files come from."""
        builds = self.builds
        if self.copied and builds.trouble is not None:
            return f"No browser opened. The address is copied: {self.copied}"
        if builds.trouble is not None:
            return window_action(builds.trouble)
        if builds.progress.stage is InstallStage.READY:
            return builds.progress.result
        return f"From the folder {builds.wheels}" if builds.wheels is not None else ""

    @property
    def family(self) -> str:
        """The chosen build."""
        return self.choices.family or self.builds.recommended.family

    @property
    def is_chosen_there(self) -> bool:
        """Whether the chosen build is installed, so that it is not downloaded again."""
        return self.builds.installed.has(self.family)

    @property
    def can_take(self) -> bool:
        """Whether the chosen build can be installed, or used, now."""
        is_used = self.is_chosen_there and self.family == self.builds.engine.in_use
        return not self.builds.is_at_work and not is_used

    def take(self) -> None:
        """Use the chosen build, or install it."""
        if self.is_chosen_there:
            self.builds.use(self.family)
        else:
            self.builds.begin(self.family)

    @property
    def records(self) -> dict[str, BuildRecord]:
        """The installed builds, by their names."""
        return {one.family: one for one in self.builds.installed.records}

    @property
    def disk(self) -> str:
        """How much of the disk is taken; of a download that still grows, nothing."""
        growing = self.builds.is_at_work
        return disk_sentence(self.builds, 0 if growing else self.builds.installed.unfinished_bytes)


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
    """Return whether the present offer is to renew installed builds."""
    at_rest = builds.progress.stage in (InstallStage.WAITING, InstallStage.READY)
    return bool(builds.updates) and at_rest and not builds.is_at_work


def update_title(builds: Builds) -> str:
    """Return which builds are older than the program, and why they cannot be used if so."""
    first, is_one = builds.updates[0], len(builds.updates) == 1
    if builds.has_engine:
        title = build_title(first.family) if is_one else "builds"
        return f"An update of the {title} is available"
    subject = "Your PyTorch" if is_one else "Your builds of PyTorch"
    change = f"{whose_python()} Python changed from {first.python} to {builds.installed.python}"
    return f"{subject} must be installed again: {change}"


def _update_sentence(builds: Builds) -> str:
    """Return why to renew builds, and what that downloads."""
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
    """Return what happens now for the line above the tabs, where no title names the build."""
    if builds.trouble is not None:
        return f"{build_title(builds.family)}: {builds.trouble.sentence}"
    size = bytes_sentence(builds.progress) if builds.progress.stage.is_at_work else ""
    if is_update_offered(builds) and builds.has_engine:
        size = " and ".join(f"about {download_size(one.family)}" for one in builds.updates)
    return ": ".join(filter(None, (stage_sentence(builds), size)))


def figure(builds: Builds) -> str:
    """Return the one large figure: the done share."""
    return f"{100 * builds.progress.fraction:.0f}\u202f%" if has_share(builds.progress) else ""


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
    free = format_size(builds.installed.free_bytes)
    if builds.planned == (CPU_TAG,):
        return f"It takes {disk_size(CPU_TAG)} of {free} free disk space."
    if CPU_TAG in builds.planned:
        card = next(one for one in builds.planned if one != CPU_TAG)
        return (
            f"You can start on the CPU within minutes. The {build_title(card)} for your card "
            f"follows while you use it. They take {disk_size(CPU_TAG)} and {disk_size(card)} of "
            f"{free} free disk space."
        )
    return ""


def begin_label(builds: Builds) -> str:
    """Return the text of the button that starts the installation."""
    if builds.updates:
        verb = "Update" if builds.has_engine else "Make"
        again = "" if builds.has_engine else " again"
        is_one = len(builds.updates) == 1
        title = build_title(builds.updates[0].family) if is_one else "builds"
        return f"{verb} the {title}{again}"
    if len(builds.planned) > 1:
        return f"Install PyTorch ({', then '.join(map(download_size, builds.planned))})"
    if not builds.planned:
        return ""
    return f"Install the {build_title(builds.planned[0])} ({download_size(builds.planned[0])})"


def record_sentence(record: BuildRecord, builds: Builds) -> str:
    """Return the state of an installed build, or what is done to it now."""
    if record.family == builds.removing:
        return "Removing its files…"
    if record.family == builds.repairing:
        return "Ending its PyTorch before the repair…"
    parts = [f"PyTorch {record.torch_version}", format_size(record.size_bytes)]
    if record.family == builds.engine.in_use:
        parts.append("in use")
    older = builds.installed.outdated(record)
    parts += [one for one in (older, record.note) if one]
    return " · ".join(parts)


def disk_sentence(builds: Builds, unfinished_bytes: int) -> str:
    """Return how much disk PyTorch takes and how much is free."""
    used = sum(one.size_bytes for one in builds.installed.records)
    taken = f"PyTorch takes {format_size(used)}." if used else "No PyTorch is installed."
    if unfinished_bytes:
        taken += f" Unfinished installations take {format_size(unfinished_bytes)}."
    return f"{taken} {format_size(builds.installed.free_bytes)} of the disk are free."


def details_text(builds: Builds) -> str:
    """Return the facts of a failure to paste into a report."""
    trouble = builds.trouble
    if trouble is None:
        return ""
    from gpu_studio.core.wheels import choice_of_tag, own_platform_key  # 10 ms

    recommended, choice = builds.recommended, choice_of_tag(builds.family or CPU_TAG)
    lines = [
        f"GPU Studio: {trouble.sentence}", window_action(trouble), f"Kind: {trouble.kind.value}",
        f"Build: {builds.family}", f"Recommended: {recommended.family} ({recommended.why})",
        f"Stage: {100 * builds.progress.fraction:.0f} %, "
        f"{builds.progress.done_bytes} of {builds.progress.total_bytes} bytes, "
        f"{builds.progress.subject}",
        f"Free disk space: {builds.installed.free_bytes} bytes", trouble.detail,
        "To fill a folder on another PC:",
        choice.download_command(sys.version_info[:2], own_platform_key()),
    ]  # fmt: skip
    return "\n".join(line for line in lines if line)
