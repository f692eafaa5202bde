"""The primitives and parameters in programs of handlax, beside those in JAX's programs of the same functions."""

import importlib

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.extend.core import primitives

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

X = np.ones((3, 4), "float32")
I = np.ones((3, 4), "int32")
UNARY = (
    "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 "
    "expm1 floor is_finite lgamma log log1p logistic neg rsqrt sign sin sinh sqrt square tan tanh stop_gradient")
BINARY = "add atan2 div eq ge gt igamma igammac le lt max min mul ne nextafter pow rem sub zeta polygamma"
BITWISE = "bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical shift_right_arithmetic"
# What programs have otherwise, and why: name of a primitive, or of a parameter of one.
DIFFERENT = {
    "mul.out_dtype": "a product has the dtype of its operands",
    "jit.ctx_mesh": "the mesh is part of shardings", "jit.compiler_options_kvs": "options are those of the outer jit",
    "jit.in_layouts": "layouts are XLA's choice", "jit.out_layouts": "layouts are XLA's choice",
    "jit.in_shardings": "a sharding is an operation", "jit.out_shardings": "a sharding is an operation",
    "scan.ft_in": "its counts are num_consts and num_carry", "scan.ft_out": "its counts are num_consts and num_carry",
    "custom_vjp_call.fwd_jaxpr_thunk": "both rules are one value, rule",
    "custom_vjp_call.bwd": "both rules are one value, rule", "custom_vjp_call.out_trees": "results are flat",
    "remat2": "its name is checkpoint", "squeeze": "a reshape", "conj.input_dtype": "known from the type of the result",
    "reduce.computation": "its function is jaxpr, as of other operations with bodies", "reduce.carry": "the same",
    "scan.num_consts": "names of earlier versions", "scan.num_carry": "names of earlier versions",
    "scan.linear": "a name of earlier versions", "scan._split_transpose": "a name of earlier versions",
    "cond.shared": "how many operands are constants", "custom_vjp_call.rule": "both rules are one value",
    "eigh.vectors": "whether they are computed", "eigh.hermitian": "whether the other triangle is read",
}


def functions(jax, jnp, lax):
    """Functions of one array, by what they perform."""
    linear = lambda x: lax.dot_general(x, x, (((1,), (1,)), ((), ())))
    square = lambda x: linear(x) + jnp.eye(3, dtype="float32")
    custom_jvp, custom_vjp = jax.custom_jvp(jnp.sin), jax.custom_vjp(jnp.sin)
    custom_jvp.defjvp(lambda xs, dxs: (custom_jvp(*xs), dxs[0]))
    custom_vjp.defvjp(lambda x: (custom_vjp(x), x), lambda x, ct: (ct,))
    rows = I[0] - 1
    return {
        "unary": lambda x: [getattr(lax, name)(x) for name in UNARY.split()],
        "binary": lambda x: [getattr(lax, name)(x, x) for name in BINARY.split()],
        "bitwise": lambda x: [getattr(lax, name)(x.astype("int32"), I) for name in BITWISE.split()],
        "counts": lambda x: [f(x.astype("int32")) for f in (lax.bitwise_not, lax.clz, lax.population_count)],
        "complex": lambda x: [f(lax.complex(x, x)) for f in (lax.real, lax.imag, lax.conj)],
        "with parameters": lambda x: [
            lax.integer_pow(x, 3), lax.round(x), lax.reduce_precision(x, 5, 5), lax.clamp(0.0, x, 1.0),
            lax.select_n(x > 0, x, x), lax.bitcast_convert_type(x, np.int32), lax.betainc(x, x, x)],
        "reductions": lambda x: [
            x.sum(), x.max(0), x.min(), x.prod(1), (x > 0).any(), (x > 0).all(), x.argmax(0), x.argmin(1)],
        "cumulative": lambda x: [f(x) for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)],
        "products": lambda x: [linear(x), lax.conv(x[None, None], x[None, None], (1, 1), "SAME")],
        "shapes": lambda x: [
            lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)), lax.reshape(x, (12,)), lax.transpose(x, (1, 0)),
            lax.rev(x, (0,)), lax.squeeze(x[None], (0,)), lax.iota(np.int32, 3), lax.concatenate([x, x], 0)],
        "slices": lambda x: [
            lax.slice(x, (0, 0), (2, 2)), lax.dynamic_slice(x, (0, 0), (2, 2)), lax.split(x, (1, 2)),
            lax.dynamic_update_slice(x, x[:1], (0, 0)), lax.pad(x, 0.0, ((1, 1, 0), (1, 1, 0)))],
        "indices": lambda x: [
            x[rows], x.at[rows].set(0.0), x.at[rows].add(1.0), x.at[rows].multiply(2.0), x.at[rows].min(0.0),
            x.at[rows].max(0.0)],
        "orders": lambda x: [lax.sort(x), lax.top_k(x, 2)],
        "windows": lambda x: [
            lax.reduce_window(x, unit, f, (2, 2), (1, 1), "VALID")
            for unit, f in ((0.0, lax.add), (-np.inf, lax.max), (np.inf, lax.min))],
        "fold": lambda x: lax.reduce((x, x), (0.0, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[0]), (0,)),
        "branches": lambda x: lax.switch(x[0, 0].astype("int32"), [lambda: x, lambda: x * 2.0, lambda: x]),
        "scan": lambda x: lax.scan(lambda c, y: (c + y.sum(), c * x[0]), 0.0, x),
        "while": lambda x: lax.while_loop(lambda c: c.sum() < x.sum() * 9.0, lambda c: c + x, x),
        "calls": lambda x: [jax.jit(lambda y: jnp.sin(y) * x)(x), jax.checkpoint(jnp.sin)(x)],
        "rules": lambda x: [custom_jvp(x), custom_vjp(x)],
        "fft": lambda x: jnp.fft.fft(lax.complex(x, x)),
        "linear algebra": lambda x: [
            jnp.linalg.cholesky(square(x)), jnp.linalg.qr(square(x)), jnp.linalg.svd(square(x)),
            jnp.linalg.eigh(square(x)), lax.linalg.eig(square(x)), lax.linalg.lu(square(x)),
            lax.linalg.triangular_solve(square(x), square(x)), lax.linalg.schur(square(x)),
            lax.linalg.tridiagonal(square(x)), lax.linalg.hessenberg(square(x))],
        "barrier": lax.optimization_barrier,
    }


def primitives_in(root, name):
    """For each primitive in the program of a function, bodies included, the names of its parameters."""
    part = lambda module: importlib.import_module(f"{root}.{module}")
    jax = importlib.import_module(root)
    found = {}

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            found.setdefault(eqn.primitive.name, set()).update(eqn.params)
            for value in eqn.params.values():
                for body in value if isinstance(value, tuple | list) else (value,):
                    if hasattr(body, "eqns") or hasattr(body, "jaxpr"):
                        walk(getattr(body, "jaxpr", body))

    walk(jax.make_jaxpr(functions(jax, part("numpy"), part("lax"))[name])(X).jaxpr)
    return found


@pytest.mark.parametrize("name", functions(hx, hnp, lax))
def test_primitives_have_the_names_and_parameters_of_jax(name):
    ours, theirs = primitives_in("handlax", name), primitives_in("jax", name)
    known = {getattr(primitives, attribute).name for attribute in dir(primitives)}
    different = {primitive for primitive in theirs if primitive not in known}
    for primitive in {*ours} & {*theirs}:
        different |= {f"{primitive}.{param}" for param in ours[primitive] ^ theirs[primitive]}
    assert different <= {*DIFFERENT}
