"""``pmap`` by several processes; where one process alone has all lanes, and in several."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.many_processes import in_processes

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.base import config
from handlax.lowering.maps import device_lanes

X, Y = np.arange(12, dtype="float32").reshape(4, 3), np.arange(1, 5, dtype="float32")


@pytest.fixture
def joined(monkeypatch):
    """This process has joined another one, which has no devices."""
    monkeypatch.setattr(config.PROCESS, "joined", 2)


def f(x, y):
    return x - lax.pmean(x, "i"), {"sum": y * x.sum()}


def close(found, expected):
    for a, b in zip(hx.tree.leaves(found), hx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("in_axes", "size"), [((0, 0), 4), ((1, None), 3), ((None, 0), 4)])
@pytest.mark.parametrize("axis_size", [False, True])
def test_the_lanes_are_those_of_vmap_each_on_its_device(joined, in_axes, size, axis_size):
    y = Y if in_axes[1] == 0 else Y[0]
    expected = hx.vmap(f, in_axes, axis_name="i")(X, y)
    found = hx.pmap(f, axis_name="i", in_axes=in_axes, axis_size=size if axis_size else None)(X, y)
    close(found, expected)
    for a in hx.tree.leaves(found):
        assert a.is_fully_addressable and a.devices() == {*hx.devices()[:size]}


def test_static_arguments_and_keywords_stay_what_they_are(joined):
    power = hx.pmap(lambda x, n, *, scale: scale * x**n, static_broadcasted_argnums=1)
    assert power(Y, 2, scale=Y).tolist() == (Y**3).tolist()
    assert hx.jit(lambda y: power(y, 2, scale=y))(Y).tolist() == (Y**3).tolist()


def test_lanes_of_another_number_are_refused(joined):
    with pytest.raises(errors.HandlaxError, match="mapped argument 0"):
        hx.pmap(f, axis_name="i")(X, Y[:3])


def total(mapped, w):
    """A function of ``x`` through a map of lanes: of shared, captured and keyword values, to a shared result too."""
    lane = lambda w, x, *, y: (lax.psum(hnp.sin(w * x), "i") * y, lax.pmax(x.sum() * w, "i"))

    def of(x):
        rows, most = mapped(lane, axis_name="i", in_axes=(None, 0), out_axes=(1, None))(w, x, y=x[:, 0])
        return (rows * hnp.cos(rows)).sum() * most + mapped(lambda x: (w * x).sum())(x).sum()

    return of


@pytest.mark.parametrize("transform", [
    lambda g: g,
    hx.jit,
    hx.grad,
    hx.hessian,
    lambda g: hx.jit(hx.grad(g)),
    lambda g: hx.grad(hx.jit(g)),
    lambda g: hx.grad(hx.checkpoint(g)),
    lambda g: lambda x: hx.vmap(g)(hnp.stack([x, 2 * x])),
    lambda g: lambda x: hx.jvp(hx.grad(g), (x,), (x,))[1],
    lambda g: lambda x: hx.linearize(g, x)[1](x),
    lambda g: lambda x: lax.scan(lambda c, t: (hnp.sin(c + t) + 0 * g(c), g(c)), x, hnp.arange(3.0)),
    lambda g: lambda x: lax.cond(x.sum() > 0, g, lambda x: 0.0, x),
    lambda g: lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] / 2 + g(c[0]) * 1e-3, c[1] + 1), (x, 0)),
])
def test_under_transformations_it_is_vmap(joined, transform):
    x = X / 7
    vmapped = lambda f, in_axes=0, **options: hx.vmap(f, in_axes, **options)
    close(transform(total(hx.pmap, 0.5))(x), transform(total(vmapped, 0.5))(x))


def test_as_many_devices_of_each_process_are_taken(monkeypatch):
    every = [SimpleNamespace(process_index=number, id=i) for i, number in enumerate((1, 0, 1, 0, 0))]
    monkeypatch.setattr(device_lanes, "devices", lambda backend: every)
    assert [device.id for device in device_lanes.devices_of_all(2, None)] == [1, 3, 0, 2]
    assert [device.id for device in device_lanes.devices_of_all(1, None)] == [1, 0]


def test_effects_are_handled_inside(joined):
    noted = hx.pmap(lambda x: (hx.tell(x), 2 * x)[1])
    with pytest.raises(errors.CannotCross, match="a function must handle its effects inside, got tell") as found:
        hx.handle(hx.library.writer, ())(noted)(Y)
    assert found.value.hint.startswith("pmap(hx.handle(h, state)(f), ...)")
    log, y = hx.pmap(hx.handle(hx.library.writer, ())(lambda x: (hx.tell(x), 2 * x)[1]))(Y)
    close((log[0], y), (Y, 2 * Y))


def test_without_a_call_there_is_nothing_to_lower(joined):
    with pytest.raises(errors.CannotCross, match="it is compiled for the lanes of all"):
        hx.pmap(lambda x: x).lower(Y)
    with pytest.raises(errors.UnhandledEffect, match="axis <the processes>") as found:
        hx.jit(hx.pmap(lambda x: x)).lower(Y)
    assert found.value.hint == "call it: processes that meet compile it together."


def test_a_process_calls_its_host_from_devices_or_outside_of_programs_with_others(joined):
    seen = []

    def noted(x):
        hx.debug.callback(lambda v: seen.append(float(v)), x.sum())
        return x

    assert hx.jit(hx.pmap(noted))(Y).tolist() == Y.tolist() and noted(hx.pmap(lambda x: x)(Y)).tolist() == Y.tolist()
    hx.effects_barrier()
    assert sorted(seen) == [1.0, 2.0, 3.0, 4.0, 10.0]
    with pytest.raises(errors.CannotCross, match="in which processes meet, none can call its own host"):
        hx.jit(lambda y: noted(hx.pmap(lambda x: x)(y)))(Y)
    with pytest.raises(errors.CannotCross, match="none can call its own host"):
        lax.scan(lambda c, _: (noted(hx.pmap(lambda x: x)(c)), None), Y, None, length=2)


# Each case is a function of a map of lanes and of their values; the results of the lanes of all processes, of which
# each has its own, are those of vmap.
LANES = """
import numpy as np
from handlax import lax, numpy as hnp
me, count, local = hx.process_index(), hx.process_count(), hx.local_device_count()
n = count * local
X = (np.arange(1, 3 * n + 1, dtype="float32") / 10).reshape(n, 3)
own = slice(local * me, local * (me + 1))
mapped = {True: lambda f, in_axes=0, out_axes=0: hx.pmap(f, "i", in_axes=in_axes, out_axes=out_axes),
          False: lambda f, in_axes=0, out_axes=0: hx.vmap(f, in_axes, out_axes, axis_name="i")}
ring = [(k, (k + 1) % n) for k in range(n)]

def told(name, found, expected):
    print(name, "ok" if np.allclose(np.asarray(found), np.asarray(expected), atol=1e-4) else (found, expected))

lanes = dict(
    psum=lambda x: lax.psum(hnp.sin(x), "i") * x,
    gathered=lambda x: lax.all_gather(hnp.sin(x), "i").sum(0) * x,
    ring=lambda x: lax.ppermute(x**2, "i", ring),
    index=lambda x: x * lax.axis_index("i"),
    inner=lambda x: hx.vmap(lambda y: lax.psum(hnp.sin(y), ("i", "j")) * y, axis_name="j")(x),
    branch=lambda x: lax.cond(x[0] > 0.5, lambda x: lax.psum(x, "i"), lambda x: 2 * x, x),
)
for name, lane in lanes.items():
    of = {several: (lambda x, several=several: hnp.cos(mapped[several](lane)(x)).sum()) for several in (True, False)}
    told(name, mapped[True](lane)(X[own]), mapped[False](lane)(X)[own])
    told(f"grad_{name}", hx.grad(of[True])(X[own]), hx.grad(of[False])(X)[own])
    told(f"jit_{name}", hx.jit(hx.grad(of[True]))(X[own]), hx.grad(of[False])(X)[own])

# each process chooses around the map, in which those that choose it meet the lanes of the others
chosen = lambda f, choice, x: hnp.cos(lax.cond(choice > 0.5, f, lambda x: 2 * x, x)).sum()
choices = np.repeat(X[::local, 0], local)
told("around", hx.jit(hx.grad(lambda x: chosen(mapped[True](lanes["psum"]), x[0, 0], x)))(X[own]),
     hx.grad(lambda X: hx.vmap(lambda c, x: chosen(lanes["psum"], c, x), axis_name="i")(choices, X).sum())(X)[own])
told("hvp", *[hx.jvp(hx.grad(lambda x: mapped[several](lanes["psum"])(x).sum()), (x,), (x,))[1][rows]
              for several, x, rows in ((True, X[own], slice(None)), (False, X, own))])
scale = lambda w, x: w * lax.psum(w * x, "i").sum()
shared = mapped[True](scale, (None, 0))
sums = hnp.repeat(hnp.arange(1.0, count + 1), local)        # each process has a value of its own
expected = hx.vjp(lambda w: hx.vmap(scale, axis_name="i")(w, X), sums)[1](hnp.ones(n))[0]
told("shared", shared(me + 1.0, X[own]), hx.vmap(scale, axis_name="i")(sums, X)[own])
told("shared_grad", hx.grad(lambda w: shared(w, X[own]).sum())(me + 1.0), expected[own].sum())
told("captured", hx.grad(lambda w: mapped[True](lambda x: scale(w, x))(X[own]).sum())(me + 1.0), expected[own].sum())
whole = mapped[True](lambda x: lax.psum((x**2).sum(), "i"), out_axes=None)
told("out_none", whole(X[own]), (X**2).sum())
told("out_none_grad", hx.grad(whole)(X[own]), 2 * count * X[own])            # each process differentiates it
chained = lambda x: mapped[True](lambda v, x: v * x.sum(), (None, 0))(mapped[True](lambda x: lax.psum(x.sum(), "i"),
                                                                               out_axes=None)(x), x).sum()
told("chained", hx.grad(chained)(X[own]), 2 * X.sum())

step = lambda x: mapped[True](lanes["psum"])(x) / 4
x, lengths = X[own], me + 1 + 0 * hnp.arange(1)[0]
told("loop", lax.while_loop(lambda c: c[1] < 2, lambda c: (step(c[0]), c[1] + 1), (x, 0))[0], step(step(x)))
uneven = lax.while_loop(lambda c: c[1] < c[2], lambda c: (c[0] + 1, c[1] + 1 + 0 * step(x)[0, 0].astype(int), c[2]),
                        (x, 0, lengths))
told("uneven", uneven[0], X[own] + me + 1)
told("scan", lax.scan(lambda c, t: (step(c) * t, c.sum()), x, hnp.arange(1.0, 3))[0], 2 * step(step(x)))
told("mixed", hx.jit(lambda x, w: step(x * w) + w)(x, 2.0 + me), step(x * (2 + me)) + 2 + me)

w, every = hnp.arange(3.0) + me, hnp.repeat(hnp.arange(3.0) + hnp.arange(count)[:, None], local, axis=0)
weighted = mapped[True](lambda x: lax.fori_loop(0, 2, lambda i, c: lax.psum(w * x, "i") * x + 0 * c, x))
told("array", hx.jit(weighted)(x), ((every * X).sum(0) * X)[own])
told("array_in_scan", lax.scan(lambda c, _: (weighted(c) + w, None), x, None, length=1)[0],
     ((every * X).sum(0) * X)[own] + w)

order = np.array(hx.devices()).reshape(count, local).T.ravel().tolist()
numbered = hx.pmap(lambda x: lax.axis_index("i") * x.sum(), "i", devices=order)
rows = np.array([k for k, device in enumerate(order) if device.process_index == me])
for name, transform in dict(plain=lambda g: g, jit=hx.jit).items():
    told(f"order_{name}", transform(numbered)(x), rows * X[own].sum(1))
    told(f"order_{name}_grad", transform(hx.grad(lambda x: numbered(x).sum()))(x), rows[:, None] + 0 * X[own])
two = hx.devices()[local - 1 : local + 1]
if me < 2:
    ends = hx.pmap(lambda x: lax.psum(x, "i"), "i", devices=two)
    told("two", ends(x[:1]), X[[0]] + X[[local]])
    try:
        ends(np.ones((3, 1)))
    except hx.errors.BadArgument as error:
        print("count", "ok" if "each process must have a lane for each of its devices" in str(error) else error)

keys = hx.random.split(hx.random.key(me), local)
split = lambda k: hx.random.normal(hx.random.split(k)[0], (2,))
told("keys", hx.jit(mapped[True](split))(keys), hx.vmap(split)(keys))
noted = hx.handle(hx.library.writer, ())(lambda x: (hx.tell(lax.psum(x, "i")), x)[1])
told("log", hx.pmap(noted, "i")(x)[0][0], hnp.broadcast_to(X.sum(0), (local, 3)))
"""


@pytest.mark.parametrize(("count", "local"), [(2, 2), pytest.param(4, 1, marks=pytest.mark.sweep)])
def test_several_processes_have_the_lanes_of_vmap_under_transformations_too(count, local):
    for index, lines in enumerate(in_processes(LANES, count, local)):
        said = [line for line in lines if not line.endswith(" ok")]
        assert not said and len(lines) == 40 - 2 * (index > 1), (said, len(lines))
