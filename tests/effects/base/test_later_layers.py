"""What earlier layers ask of later ones is there once the package is imported."""

from handlax.effects.base.later_layers import LaterLayers


def test_every_slot_is_set_by_importing_the_package():
    assert [name for name in LaterLayers.__annotations__ if not hasattr(LaterLayers, name)] == []
    assert len(LaterLayers.__annotations__) > 10
