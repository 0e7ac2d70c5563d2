"""What the tests of the devices' model do first, and where they look."""

from __future__ import annotations


def start(qtbot, studio):
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state.is_idle and studio.sensors.inventory is not None)


def row(model, key):
    return next(fact for group in model.groups for fact in group.facts if fact.key == key)
