"""Where a recording that a test makes up says it is from."""

from gpu_studio.core.messages.engine_messages import RecordingHeader


def recording_header(**changes: str) -> RecordingHeader:
    """Return the header of a recording of a GT 1030, with other facts if they are given."""
    facts = {
        "title": "NVIDIA GeForce GT 1030, 2026-01-02",
        "device_name": "NVIDIA GeForce GT 1030",
        "driver_version": "580.95",
        "torch_version": "2.13.0",
        "recorded_at": "2026-01-02T03:04:05+00:00",
        "source": "this test",
    }
    return RecordingHeader(**facts | changes)
