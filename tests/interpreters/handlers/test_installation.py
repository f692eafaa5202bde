"""How installed handlers cross the devices of a mesh: as the lanes of ``vmap``."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect(vmap="per_lane")
class Step:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Note:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane")
class Draw:
    def result_type(op):
        return hx.ShapeDtypeStruct((), "float32").type


def draw():
    return hx.perform(Draw())


counter = hx.handler({Step: lambda n, op: (n + 1, None)})
log = hx.handler({Note: lambda entries, op, x: ((*entries, x), None)}, moves=hx.append)
keyed = hx.handler(
    {Draw: lambda key, op: (hx.random.split(key)[0], hx.random.uniform(hx.random.split(key)[1]))},
    moves=hx.split(hx.random.split),
)
summed = hx.handler({Note: lambda s, op, x: (s + x.sum(), None)}, moves=hx.merge(lambda a, b: a + b, 0.0))


def notes(x):
    hx.perform(Note(), x)
    hx.perform(Note(), hnp.float32(2.0))  # the same value on every device
    return lax.scan(lambda c, y: (c * y, hx.perform(Note(), c)), 2.0, x)[0]


ON_DEVICES = {
    "without a state": (hx.handler({Draw: lambda op: hnp.float32(3.0)}), (), lambda x: x * draw()),
    "append": (log, ((),), notes),
    "merge": (summed, (1.0,), notes),
    "split": (keyed, (hx.random.key(0),), lambda x: x + draw()),
}


def on_devices(f, tracks):
    mesh = hx.make_mesh((2, 2), ("a", "b"))
    return hx.shard_map(lambda x: f(x[0])[None], mesh=mesh, in_specs=hx.P(("a", "b")), out_specs=hx.P(("a", "b")),
                        check_vma=tracks)


@pytest.mark.parametrize("tracks", [True, False])
@pytest.mark.parametrize("compiled", [lambda f: f, hx.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("handler", "state", "f"), ON_DEVICES.values(), ids=ON_DEVICES)
def test_a_state_crosses_the_devices_of_a_mesh_as_lanes(handler, state, f, compiled, tracks):
    x = hnp.arange(12.0).reshape(4, 3)
    found = compiled(lambda x: hx.handle(handler, *state)(on_devices(f, tracks))(x))(x)
    expected = hx.handle(handler, *state)(hx.vmap(f))(x)
    for y, z in zip(hx.tree.leaves(found), hx.tree.leaves(expected), strict=True):
        if handler is keyed and not y.shape:
            y, z = hx.random.key_data(y), hx.random.key_data(z)
        np.testing.assert_allclose(y, z, rtol=1e-6)


@pytest.mark.parametrize(("handler", "state", "f", "message"), [
    (counter, (0,), lambda x: hx.perform(Step()) or x, "devices have no order in which to hand it on"),
    (hx.handler({Note: hx.final(lambda op, x: hnp.zeros(4))}), (), lambda x: hx.perform(Note(), x) or x,
     "its lanes are in no order"),
    (hx.handler({Draw: hx.ctl(lambda resume, op: resume(1.0))}), (), lambda x: x + draw(), "takes resume"),
], ids=["carry", "final", "ctl"])
def test_what_takes_an_order_does_not_cross_the_devices_of_a_mesh(handler, state, f, message):
    with pytest.raises(hx.errors.CannotCross, match=message):
        hx.handle(handler, *state)(on_devices(f, True))(hnp.arange(4.0))
