"""Primitives as a library for JAX writes them, and functions of them; ``side`` is JAX, or handlax under its names."""

import importlib
from types import SimpleNamespace

import numpy as np


def side_of(root, interpreters):
    """The modules of a package that a primitive needs; ``interpreters``: where its registries are."""
    part = lambda name: importlib.import_module(f"{root}.{name}")
    registries = {name: part(f"{interpreters}.{name}") for name in ("ad", "batching", "mlir")}
    return SimpleNamespace(
        root=importlib.import_module(root), lax=part("lax"), numpy=part("numpy"), **registries,
        ShapedArray=part("core").ShapedArray, Primitive=part("extend.core").Primitive,
        hlo=importlib.import_module("jaxlib.mlir.dialects.stablehlo"))


OURS = side_of("handlax", "extend")


def multiply_add(side):
    """x y + z, by a rule in MLIR's values."""
    np, ad, batching = side.numpy, side.ad, side.batching
    p = side.Primitive("multiply_add")
    p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    p.def_abstract_eval(lambda x, y, z: side.ShapedArray(x.shape, x.dtype))

    def derivative(primals, tangents):
        x, y, z = primals
        dx, dy, dz = [np.zeros_like(x) if type(dx) is ad.Zero else dx for x, dx in zip(primals, tangents)]
        return p.bind(x, y, z), p.bind(dx, y, p.bind(x, dy, dz))

    def transpose(ct, x, y, z):
        ct_z = ct if ad.is_undefined_primal(z) else None
        if ad.is_undefined_primal(x):
            return p.bind(ct, y, np.zeros_like(y)), None, ct_z
        return None, p.bind(x, ct, np.zeros_like(x)) if ad.is_undefined_primal(y) else None, ct_z

    def batch(xs, dims):
        size = next(x.shape[d] for x, d in zip(xs, dims) if d is not None)
        return p.bind(*[batching.bdim_at_front(x, d, size) for x, d in zip(xs, dims)]), 0

    ad.primitive_jvps[p] = derivative
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = batch
    side.mlir.register_lowering(p, lambda ctx, x, y, z: [side.hlo.AddOp(side.hlo.MulOp(x, y), z).result])
    return p


def sine_cosine(side):
    """(scale sin x, scale cos x), by a rule in functions of arrays; ``note`` may be anything."""
    np, ad = side.numpy, side.ad
    p = side.Primitive("sine_cosine")
    p.multiple_results = True

    def both(x, *, scale, note):
        return [np.sin(x) * scale, np.cos(x) * scale]

    def derivative(primals, tangents, **params):
        sine, cosine = p.bind(*primals, **params)
        dx = ad.instantiate_zeros(tangents[0])
        return [sine, cosine], [cosine * dx, -sine * dx]

    p.def_impl(both)
    p.def_abstract_eval(lambda x, **params: [side.ShapedArray(x.shape, x.dtype)] * 2)
    ad.primitive_jvps[p] = derivative
    side.batching.primitive_batchers[p] = lambda xs, dims, **params: (p.bind(*xs, **params), [dims[0]] * 2)
    side.mlir.register_lowering(p, side.mlir.lower_fun(both, multiple_results=True))
    return p


def uses(side):
    """Functions without arguments that apply the primitives under every transformation, by what they show."""
    root, lax, hnp = side.root, side.lax, side.numpy
    ma_p, sc_p = multiply_add(side), sine_cosine(side)
    x = hnp.array([1.0, 2.0, 3.0])
    f = lambda x: ma_p.bind(x, x, 2.0 * x)
    g = lambda x, **params: sc_p.bind(x, scale=2.0, **(params or {"note": None}))
    total = lambda x: f(x).sum()
    return {
        "eager": lambda: ma_p.bind(2.0, 10.0, 3.0),
        "jit": lambda: root.jit(f)(x),
        "jvp": lambda: root.jvp(f, (x,), (x,)),
        "grad": lambda: root.grad(total)(x),
        "jit of grad": lambda: root.jit(root.grad(total))(x),
        "vmap": lambda: root.vmap(lambda a, b: ma_p.bind(a, b, 1.0), in_axes=(0, None))(x, 2.0),
        "vmap of a later axis": lambda: root.vmap(f, in_axes=1, out_axes=1)(hnp.ones((2, 3)) * x),
        "jit of vmap of grad": lambda: root.jit(root.vmap(root.grad(lambda a: ma_p.bind(a, a, 3.0 * a))))(x),
        "hessian": lambda: root.hessian(total)(x),
        "linear_transpose": lambda: root.linear_transpose(lambda v: ma_p.bind(x, v, v), x)(x),
        "linearize": lambda: root.linearize(f, x)[1](x),
        "scan": lambda: lax.scan(lambda c, _: (ma_p.bind(c, c, 1.0), c), 0.5, None, length=3),
        "grad of scan": lambda: root.grad(
            lambda x: lax.scan(lambda c, _: (ma_p.bind(c, c, 1.0), None), x, None, length=3)[0])(0.5),
        "cond": lambda: root.jit(lambda p: lax.cond(p, lambda: f(x), lambda: x))(True),
        "while": lambda: lax.while_loop(lambda c: c < 9.0, lambda c: ma_p.bind(c, c, c), 1.0),
        "checkpoint": lambda: root.grad(lambda x: root.checkpoint(f)(x).sum())(x),
        "two results": lambda: g(x),
        "two results, jit": lambda: root.jit(g)(x),
        "two results, grad": lambda: root.grad(lambda x: (g(x)[0] * g(x)[1]).sum())(x),
        "two results, vmap": lambda: root.vmap(g)(x),
        "two results, all": lambda: root.jit(root.vmap(root.grad(lambda x: g(x)[0])))(x),
        "without a hash": lambda: g(x, note=["a list", {"a": np.arange(3)}]),
    }


def inverse_of(side, f):
    """The inverse of a function of one array, by an interpreter that goes through its equations backwards."""
    lax, np = side.lax, side.numpy
    inverses = {lax.exp_p: np.log, lax.tanh_p: np.arctanh, lax.log_p: np.exp, lax.neg_p: np.negative}

    def backwards(jaxpr, results):
        values = dict(zip(jaxpr.outvars, results))
        for eqn in reversed(jaxpr.eqns):
            outs = [values[v] for v in eqn.outvars]
            if "jaxpr" in eqn.params:
                inner = eqn.params["jaxpr"]
                values.update(zip(eqn.invars, backwards(getattr(inner, "jaxpr", inner), outs)))
            elif eqn.primitive in inverses:
                (x,) = eqn.invars
                values[x] = inverses[eqn.primitive](*outs)
            elif eqn.primitive in (lax.mul_p, lax.add_p) and len(constants := literals(eqn)) == 1:
                undo = np.divide if eqn.primitive is lax.mul_p else np.subtract
                (x,) = [v for v in eqn.invars if not hasattr(v, "val")]
                values[x] = undo(*outs, constants[0])
            else:
                raise LookupError(f"{eqn.primitive} has no inverse")
        return [values[v] for v in jaxpr.invars]

    def inverse(y):
        return backwards(side.root.make_jaxpr(f)(y).jaxpr, [y])[0]

    return inverse


def literals(eqn):
    return [v.val for v in eqn.invars if hasattr(v, "val")]


def inverted(side):
    """Uses of the inverse interpreter, by what they show."""
    np, root = side.numpy, side.root
    f = lambda x: np.exp(np.tanh(x))
    g = lambda x: root.jit(lambda y: -np.log(y) * 3.0)(x) + 2.0
    back = inverse_of(side, f)
    return {
        "eager": lambda: back(f(1.0)),
        "jit": lambda: root.jit(back)(f(0.5)),
        "vmap of grad": lambda: root.jit(root.vmap(root.grad(back)))((np.arange(5.0) + 1.0) / 5.0 + 0.5),
        "through jit": lambda: inverse_of(side, g)(g(0.25)),
    }
