"""Bad input: three lines, the fitting class, and nothing left behind."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax, random
from handlax import numpy as hnp
from handlax.effects.programs.program import Program
from handlax.testing import faults

x = hnp.ones(3)
A = hnp.ones((2, 3))
KEY = random.key(0)


@hx.operation
class Unruled:
    """An operation with nothing but its specification."""

    def result_type(op, x):
        return x

    def evaluate(op, x):
        return x


@hx.effect
class Unanswered:
    """An effect that refuses every transformation."""

    def result_type(op):
        return None


def _same(x):
    return x


def _endless():
    items = [1.0]
    items.append(items)
    return items


def _deleted():
    y = hnp.arange(10.0) + 1
    y.delete()
    return y


def _donated():
    y = hnp.arange(10.0) + 1
    hx.jit(lambda a: a + 1, donate_argnums=0)(y)
    return y


def _jit(f):
    return lambda: hx.jit(f)(3)


# name: (the mistake, its class, the builtin that it also is, what the message must say)
SHAPES = {
    "add": (lambda: A + hnp.ones(4), errors.ShapeMismatch, ValueError, "(2, 3) and (4,)"),
    "add in jit": (lambda: hx.jit(lambda a, b: a + b)(A, hnp.ones(4)), errors.ShapeMismatch, ValueError, "under jit"),
    "lax.add": (lambda: lax.add(A, A.T), errors.ShapeMismatch, ValueError, "f32[2,3] and f32[3,2]"),
    "matmul": (lambda: A @ A, errors.ShapeMismatch, ValueError, "3 and 2"),
    "dot_general": (
        lambda: lax.dot_general(A, A, (((1,), (0,)), ((), ()))),
        errors.ShapeMismatch, ValueError, "hint: rhs would fit",
    ),
    "reshape": (lambda: A.reshape(4), errors.ShapeMismatch, ValueError, "6 elements"),
    "two rests": (lambda: A.reshape(-1, -1), errors.BadArgument, ValueError, "one size at most"),
    "broadcast_to": (lambda: hnp.broadcast_to(A, (3, 2)), errors.ShapeMismatch, ValueError, "does not broadcast"),
    "concatenate": (lambda: hnp.concatenate([A, x]), errors.ShapeMismatch, ValueError, "f32[2,3], f32[3]"),
    "nothing to join": (lambda: hnp.concatenate([]), errors.BadArgument, ValueError, "at least one"),
    "stack": (lambda: hnp.stack([A, x]), errors.ShapeMismatch, ValueError, "one shape"),
    "where": (lambda: hnp.where(A, x, hnp.ones(4)), errors.ShapeMismatch, ValueError, "(4,)"),
    "clamp": (lambda: lax.clamp(0.0, x, hnp.ones(4)), errors.ShapeMismatch, ValueError, "f32[4]"),
    "slice": (lambda: lax.slice(x, (0,), (9,)), errors.ShapeMismatch, ValueError, "(9,)"),
    "dynamic_slice": (lambda: lax.dynamic_slice(x, (0,), (9,)), errors.ShapeMismatch, ValueError, "(9,)"),
    "update": (
        lambda: lax.dynamic_update_slice(x, hnp.ones(4), (0,)), errors.ShapeMismatch, ValueError, "f32[4] for f32[3]",
    ),
    "top_k": (lambda: lax.top_k(x, 7), errors.BadArgument, ValueError, "7"),
    "einsum": (lambda: hnp.einsum("ij,jk->ik", A, A), errors.ShapeMismatch, ValueError, "'j'"),
    "split": (lambda: hnp.split(x, 2), errors.ShapeMismatch, ValueError, "array_split"),
    **{
        f"a list that contains itself, {f.__name__}": (
            lambda f=f: f(_endless()), errors.NotAnArray, TypeError, "list",
        )
        for f in (hnp.asarray, hnp.sum, hnp.concatenate, hnp.stack)
    },
    "ragged list": (lambda: hnp.array([[1, 2], [3]]), errors.ShapeMismatch, ValueError, "equal lengths"),
    "negative size": (lambda: hnp.zeros((-1,)), errors.BadArgument, ValueError, "negative"),
    "float size": (lambda: hnp.zeros((1.5,)), errors.BadShape, TypeError, "integers"),
    **{
        f"{name} of more bytes than a machine addresses": (call, errors.ShapeMismatch, ValueError, "2**63 bytes")
        for name, call in {
            "zeros": lambda: hnp.zeros(10**25), "a product of sizes": lambda: hnp.zeros((2**62, 2**62)),
            "arange": lambda: hnp.arange(10**25), "eye": lambda: hnp.eye(10**25), "tile": lambda: hnp.tile(x, 10**25),
            "broadcast_to": lambda: hnp.broadcast_to(x, (10**25, 3)), "pad": lambda: hnp.pad(x, 10**25),
            "linspace": lambda: hnp.linspace(0, 1, 10**25), "repeat": lambda: hnp.repeat(x, 10**25),
        }.items()
    },
    **{
        f"an array of {2**45} elements, {name}": (call, errors.OutOfMemory, MemoryError, "must suffice, got")
        for name, call in {
            "one operation": lambda: hnp.broadcast_to(1.0, 2**45) + 1,
            "a program": lambda: hnp.logaddexp(hnp.broadcast_to(1.0, 2**45), 1.0),
        }.items()
    },
    **{
        f"rank of {name}": (lambda n=n: lax.broadcast_to_rank(x, n), errors.ShapeMismatch, ValueError, f"got {n}")
        for name, n in {"2**70": 2**70, "10**12": 10**12}.items()
    },
    "shape in eval_shape": (lambda: hx.eval_shape(lambda a: a @ a, A), errors.ShapeMismatch, ValueError, "matmul"),
}

POSITIONS = {
    f"{name}={given!r}, {i}": (call, kind, ValueError, said)
    for i, (name, given, kind, said, call) in enumerate([
        ("static_argnums", ..., errors.BadArgument, "integers, got Ellipsis", lambda: hx.jit(abs, static_argnums=...)),
        ("donate_argnums", ..., errors.BadArgument, "integers, got Ellipsis", lambda: hx.jit(abs, donate_argnums=...)),
        ("donate_argnums", 1.0, errors.BadArgument, "integers, got 1.0", lambda: hx.jit(abs, donate_argnums=1.0)),
        ("static_argnames", 1, errors.BadArgument, "strings, got 1", lambda: hx.jit(abs, static_argnames=1)),
        ("device", {}, errors.BadArgument, "a device, got {}", lambda: hx.jit(abs, device={})),
        ("nondiff_argnums", len, errors.BadArgument, "integers, got <built-in", lambda: hx.custom_jvp(_same, len)),
        ("nondiff_argnames", 1, errors.BadArgument, "strings, got 1", lambda: hx.custom_vjp(_same, (), 1)),
        ("backend", object, errors.BadArgument, "such as 'cpu', got <class", lambda: hx.device_count(object)),
        ("backend", [1], errors.BadArgument, "such as 'cpu', got [1]", lambda: hx.devices([1])),
        ("name", len, errors.BadArgument, "words with dots", lambda: lax.composite(_same, len)),
        ("message", 3, errors.BadArgument, "must be a string, got 3", lambda: hx.check(x, 3)),
        ("dimension_numbers", "x", errors.BadArgument, "three words, got 'x'",
         lambda: lax.conv_general_permutations("x")),
        *[
            ("compiler_options", options, errors.BadArgument, said, call)
            for options, said in [
                ([1], "must be a mapping from names to values, got [1]"),
                ({3: 4}, "must be a mapping from names to values, got {3: 4}"),
                ({"xla_dump_to": [1]}, "a number or a string, got xla_dump_to=[1]"),
                ({"xla_dump_to": None}, "a number or a string, got xla_dump_to=None"),
            ]
            for call in (
                lambda options=options: hx.jit(_same, compiler_options=options),
                lambda options=options: hx.jit(_same).lower(x).compile(options),
            )
        ],
        ("total", abs, errors.BadArgument, "progress(total)(f)", lambda: hx.debug.progress(abs)),
        ("ops", "b", errors.BadArgument, "operations, got str", lambda: Program((), "b", (), (), ())),
    ])
}

AXES = {
    "sum": (lambda: hnp.sum(A, axis=2), errors.BadAxis, ValueError, "axis 2"),
    "sum twice": (lambda: hnp.sum(A, axis=(0, 0)), errors.BadArgument, ValueError, "distinct"),
    "argmax": (lambda: hnp.argmax(A, axis=5), errors.BadAxis, ValueError, "rank 2"),
    "transpose": (lambda: hnp.transpose(A, (0, 0)), errors.BadArgument, ValueError, "no permutation"),
    "squeeze": (lambda: hnp.squeeze(A, 0), errors.ShapeMismatch, ValueError, "size 1"),
    "take": (lambda: hnp.take(A, 0, axis=4), errors.BadAxis, ValueError, "axis 4"),
    "index of text": (lambda: x["a"], errors.NotAnArray, TypeError, "'a'"),
    "float index": (lambda: x[1.0], errors.DTypeMismatch, TypeError, "integers"),
    "too many indices": (lambda: x[0, 0], errors.BadIndex, IndexError, "at most 1"),
    "mode": (lambda: x.at[0].get(mode="nope"), errors.BadArgument, ValueError, "promise_in_bounds"),
    "unbound axis": (lambda: lax.psum(x, "i"), errors.UnboundAxis, NameError, "psum: nothing binds the axis 'i'"),
    "unbound axis index": (lambda: lax.axis_index("i"), errors.UnboundAxis, NameError, "axis_index"),
}

DTYPES = {
    "lax.add": (lambda: lax.add(x, hnp.ones(3, int)), errors.DTypeMismatch, TypeError, "f32[3] and i32[3]"),
    "sin of integers": (lambda: lax.sin(hnp.ones(3, int)), errors.DTypeMismatch, TypeError, "sin takes"),
    "not of floats": (lambda: ~x, errors.DTypeMismatch, TypeError, "float32"),
    "shift of floats": (lambda: x << 1, errors.DTypeMismatch, TypeError, "float32"),
    "unknown name": (lambda: hnp.zeros(3, "nope"), errors.DTypeMismatch, TypeError, "'nope'"),
    "text": (lambda: hnp.zeros(3, np.dtype("U3")), errors.DTypeMismatch, TypeError, "<U3"),
    "objects": (lambda: hnp.asarray(np.array([None, 1], object)), errors.DTypeMismatch, TypeError, "object"),
    "convert": (lambda: lax.convert_element_type(x, "nope"), errors.DTypeMismatch, TypeError, "'nope'"),
    "integer beyond 32 bits": (lambda: hnp.asarray(2**70), errors.IntegerOverflow, OverflowError, "i32"),
    "integer beyond the array's": (
        lambda: hnp.ones(3, "int32") + 2**40, errors.IntegerOverflow, OverflowError, str(2**40),
    ),
    "integer beyond a named dtype": (lambda: hnp.array(-1, "uint8"), errors.IntegerOverflow, OverflowError, "u8"),
    "bits of keys": (
        lambda: lax.bitcast_convert_type(x, KEY), errors.DTypeMismatch, TypeError, "one of numbers, got key<fry>",
    ),
    "arithmetic on keys": (lambda: KEY + 1, errors.DTypeMismatch, TypeError, "key<fry>"),
    "an integer as key": (lambda: random.normal(3), errors.DTypeMismatch, TypeError, "random.key(seed)"),
    "integer normal": (lambda: random.normal(KEY, (2,), int), errors.DTypeMismatch, TypeError, "int32"),
}

ARRAYS = {
    "text": (lambda: hnp.sin("a"), errors.NotAnArray, TypeError, "str 'a'"),
    "None": (lambda: hnp.sin(None), errors.NotAnArray, TypeError, "NoneType"),
    "a list": (lambda: hnp.sin([1.0]), errors.NotAnArray, TypeError, "hx.numpy.array"),
    "an object": (lambda: lax.sin(object()), errors.NotAnArray, TypeError, "object"),
    "jit argument": (lambda: hx.jit(lambda t: t)({"a": "b"}), errors.NotAnArray, TypeError, "t['a']"),
    "jit result": (lambda: hx.jit(lambda x: object())(1.0), errors.NotAnArray, TypeError, "results must be"),
    "grad argument": (lambda: hx.grad(lambda x: x)("a"), errors.NotDifferentiable, TypeError, "str"),
    "vmap argument": (lambda: hx.vmap(lambda x: x)("abc"), errors.NotAnArray, TypeError, "'abc'"),
    "make_program argument": (lambda: hx.make_program(lambda x: x)("a"), errors.NotAnArray, TypeError, "'a'"),
    "no function for jit": (lambda: hx.jit(3), errors.NotAFunction, TypeError, "int"),
    "None for jit": (lambda: hx.jit(None), errors.NotAFunction, TypeError, "None"),
    "None for custom_gradient": (lambda: hx.custom_gradient(None), errors.NotAFunction, TypeError, "None"),
    "no function for grad": (lambda: hx.grad(3), errors.NotAFunction, TypeError, "grad"),
    "no function for vmap": (lambda: hx.vmap(3), errors.NotAFunction, TypeError, "vmap"),
    "no function for jvp": (lambda: hx.jvp(3, (1.0,), (1.0,)), errors.NotAFunction, TypeError, "jvp"),
    "no function for jacrev": (lambda: hx.jacrev(3), errors.NotAFunction, TypeError, "jacrev"),
    "no operation": (lambda: hx.perform(3, x), errors.BadCall, TypeError, "int"),
    "an operation's class": (lambda: hx.perform(Unruled, x), errors.BadCall, TypeError, "the class Unruled"),
    "too many operands": (lambda: hx.perform(Unruled(), x, x), errors.BadCall, TypeError, "(x), got 2"),
    "assignment": (lambda: x.__setitem__(0, 1), errors.Immutable, TypeError, ".at[index].set"),
    "attribute": (lambda: setattr(x, "foo", 1), errors.Immutable, AttributeError, "'foo'"),
    "deleted": (lambda: _deleted() + 1, errors.DeletedArray, RuntimeError, "deleted or donated"),
    "donated": (lambda: _donated() + 1, errors.DeletedArray, RuntimeError, "deleted or donated"),
}

PYTHON = {
    "bool": (lambda: bool(x), errors.RankMismatch, ValueError, "any()"),
    "bool of nothing": (lambda: bool(hnp.ones(0)), errors.RankMismatch, ValueError, "f32[0]"),
    "float": (lambda: float(x), errors.RankMismatch, TypeError, "f32[3]"),
    "int": (lambda: int(x), errors.RankMismatch, TypeError, "f32[3]"),
    "complex": (lambda: complex(x), errors.RankMismatch, TypeError, "f32[3]"),
    "index of a float": (lambda: range(hnp.float32(3)), errors.DTypeMismatch, TypeError, "f32[]"),
    "index of a vector": (lambda: range(hnp.ones(1, int)), errors.RankMismatch, TypeError, "i32[1]"),
    "len": (lambda: len(hnp.float32(3)), errors.RankMismatch, TypeError, "rank 0"),
    "iter": (lambda: list(hnp.float32(3)), errors.RankMismatch, TypeError, "rank 0"),
    "format": (lambda: f"{x:.2f}", errors.RankMismatch, TypeError, "'.2f'"),
    "format of a box": (_jit(lambda n: f"{n:.2f}"), errors.ConcretizationError, TypeError, 'debug.print("{:.2f}", x)'),
    "if": (_jit(lambda n: 1 if n else 2), errors.TracerBoolConversionError, TypeError, "hx.numpy.where"),
    "and": (lambda: hx.vmap(lambda n: n and n)(x), errors.TracerBoolConversionError, TypeError, "under vmap"),
    "range": (_jit(lambda n: list(range(n))), errors.TracerIntegerConversionError, TypeError, "static_argnums"),
    "list index": (_jit(lambda n: [1, 2][n]), errors.TracerIntegerConversionError, TypeError, "lax.dynamic_slice"),
    "float of a box": (_jit(float), errors.ConcretizationError, TypeError, "float"),
    "numpy": (_jit(np.sin), errors.TracerArrayConversionError, TypeError, "hx.numpy"),
    "mask": (lambda: hx.jit(lambda x: x[x > 0])(x), errors.NonConcreteBooleanIndexError, IndexError, "where(mask"),
    "nonzero": (lambda: hx.jit(hnp.nonzero)(x), errors.ConcretizationError, TypeError, "size=n"),
    "unknown size": (_jit(lambda n: hnp.zeros(n)), errors.TracerIntegerConversionError, TypeError, "zeros"),
    "unknown shape": (_jit(lambda n: hnp.zeros((n, 2))), errors.TracerIntegerConversionError, TypeError, "(i32[]~, 2)"),
    "unknown reshape": (
        _jit(lambda n: hnp.ones(6).reshape(n, 2)), errors.TracerIntegerConversionError, TypeError, "reshape",
    ),
    "unknown axis": (
        _jit(lambda n: hnp.sum(A, axis=n)), errors.TracerIntegerConversionError, TypeError, "sum: an axis",
    ),
    "if of arguments": (
        lambda: hx.jit(lambda p, x, n: x if p["w"] * x > 0 else n)({"b": 1.0, "w": 2.0}, 3.0, 4.0),
        errors.TracerBoolConversionError, TypeError, "bool[] under jit, which depends on p['w'], x, made at",
    ),
    "if of many arguments": (
        lambda: hx.jit(lambda *xs: 1 if sum(xs) else 2)(*range(9)),
        errors.TracerBoolConversionError, TypeError, "which depends on xs[0], xs[1], xs[2], 6 more,",
    ),
    "if within grad": (
        lambda: hx.jit(hx.grad(lambda x, y: x if x * y > 0 else y))(1.0, 2.0),
        errors.TracerBoolConversionError, TypeError, "under jit, which depends on x, y, made at",
    ),
    "range of an argument": (
        lambda: hx.jit(lambda x, n: x + len(range(n)))(1.0, 3),
        errors.TracerIntegerConversionError, TypeError, "which depends on n,",
    ),
    "size of an argument": (
        lambda: hx.jit(lambda x, n: hnp.zeros((n, 2)) + x)(1.0, 3),
        errors.TracerIntegerConversionError, TypeError, "got (i32[]~, 2), which depends on n.",
    ),
    "slice of an argument": (
        lambda: hx.jit(lambda x, n: x[: n + 1])(x, 3), errors.BadIndex, IndexError, "which depends on n.",
    ),
    "unknown stop": (_jit(lambda n: hnp.arange(n)), errors.ConcretizationError, TypeError, "arange"),
}

STATIC = {
    **{
        f"level {level}": (
            lambda level=level: hx.jit(_same, compiler_options={"optimization_level": level})(x),
            errors.CompileError, RuntimeError, "optimization_level must be an integer of 32 bits, got",
        )
        for level in ("high", float("nan"), 2**70)
    },
    "unhashable": (
        lambda: hx.jit(lambda x, n: x, static_argnums=1)(1.0, [1]), errors.BadStaticArgument, TypeError, "'n'",
    ),
    "position": (lambda: hx.jit(lambda x: x, static_argnums=3), errors.BadArgument, ValueError, "got 3"),
    "name": (lambda: hx.jit(lambda x: x, static_argnames="y"), errors.BadArgument, ValueError, "'y'"),
    "text as position": (lambda: hx.jit(lambda x: x, static_argnums="a"), errors.BadArgument, ValueError, "'a'"),
    "donated position": (lambda: hx.jit(lambda x: x, donate_argnums=3), errors.BadArgument, ValueError, "got 3"),
    "donated name": (lambda: hx.jit(lambda x: x, donate_argnames="z"), errors.BadArgument, ValueError, "'z'"),
    "static and donated": (
        lambda: hx.jit(lambda x: x, static_argnums=0, donate_argnums=0), errors.BadArgument, ValueError, "both",
    ),
    "donated twice": (
        lambda: (lambda y: hx.jit(lambda a, b: a + b, donate_argnums=0)(y, y))(x + 1), errors.DonatedTwice,
        RuntimeError, "single argument",
    ),
    "unhashable field": (lambda: hash(lax_reduce_over([0])), errors.BadStaticArgument, TypeError, "hashable"),
    "update": (lambda: hx.config.update("nope", 1), errors.ConfigurationError, AttributeError, "'nope'"),
    "configure": (lambda: hx.configure(nope=1).__enter__(), errors.ConfigurationError, AttributeError, "settings are"),
    "value of a setting": (
        lambda: hx.configure(default_float="int32").__enter__(), errors.ConfigurationError, AttributeError, "float64",
    ),
    "column": (lambda: hx.rules(nope={}).__enter__(), errors.BadStaticArgument, TypeError, "columns are"),
    "choice": (lambda: random.choice(KEY, x, (7,), replace=False), errors.BadArgument, ValueError, "7"),
    "split": (lambda: random.split(KEY, -1), errors.BadArgument, ValueError, "negative"),
    "registered twice": (
        lambda: hx.tree_util.register_pytree_node(dict, None, None), errors.BadArgument, ValueError, "dict",
    ),
}

TREES = {
    "too few in_axes": (lambda: hx.vmap(lambda x, y: x, in_axes=(0,))(x, x), errors.TreeMismatch, ValueError, "2 pos"),
    "keys of in_axes": (
        lambda: hx.vmap(lambda x: x, in_axes=({"a": 0},))({"b": x}), errors.TreeMismatch, ValueError, "['a']",
    ),
    "in_axes too large": (lambda: hx.vmap(lambda x: x, in_axes=1)(x), errors.BadArgument, ValueError, "f32[3]"),
    "in_axes of text": (lambda: hx.vmap(lambda x: x, in_axes="a"), errors.BadCall, TypeError, "'a'"),
    "a float axis": (lambda: hx.vmap(lambda x: x, in_axes=(1.0,))(x), errors.BadCall, TypeError, "1.0"),
    "different sizes": (lambda: hx.vmap(lambda x, y: x)(x, hnp.ones(4)), errors.ShapeMismatch, ValueError, "f32[4]"),
    "wrong axis_size": (lambda: hx.vmap(lambda x: x, axis_size=4)(x), errors.ShapeMismatch, ValueError, "axis_size=4"),
    "nothing mapped": (lambda: hx.vmap(lambda x: x, in_axes=None)(x), errors.BadArgument, ValueError, "axis_size"),
    "a scalar": (lambda: hx.vmap(lambda x: x)(1.0), errors.BadArgument, ValueError, "None"),
    "out_axes too large": (lambda: hx.vmap(lambda x: x, out_axes=3)(x), errors.BadArgument, ValueError, "out_axes"),
    "out_axes None": (lambda: hx.vmap(lambda x: x, out_axes=None)(x), errors.ShapeMismatch, ValueError, "lanes share"),
    "tree of out_axes": (
        lambda: hx.vmap(lambda x: x, out_axes=(0, 0))(x), errors.TreeMismatch, ValueError, "tuple of 2",
    ),
    "tangents": (lambda: hx.jvp(lambda x: x, (1.0,), (1.0, 2.0)), errors.TreeMismatch, ValueError, "structure"),
    "tuple of tangents": (
        lambda: hx.jvp(lambda x: x, (1.0,), (1.0, 2.0)), errors.TreeMismatch, ValueError,
        "tuple of tangents must have the structure of the tuple of primals, got a tuple of 2 for a tuple of 1.",
    ),
    "linear tangents": (
        lambda: hx.linearize(lambda x: x["a"], {"a": 1.0})[1]({"b": 1.0}), errors.TreeMismatch, ValueError,
        "must have the structure of the tuple of primals, got a dict with keys ['b'] for a dict with keys ['a']",
    ),
    "cotangent of a leaf": (
        lambda: hx.vjp(lambda x: {"a": [x]}, 1.0)[1]({"a": [[1.0]]}), errors.TreeMismatch, ValueError,
        "vjp: the cotangent must have the structure of the result, got a list of 1 for a leaf at ['a'][0].",
    ),
    "cotangent of a linear function": (
        lambda: hx.linear_transpose(lambda x: (x, x), 1.0)(1.0), errors.TreeMismatch, ValueError,
        "linear_transpose: the cotangent must have the structure of the result, got a leaf for a tuple of 2.",
    ),
    "results of associative_scan": (
        lambda: lax.associative_scan(lambda a, b: (a, b), x), errors.TreeMismatch, ValueError,
        "associative_scan: the function must give a tree of the structure of elems, got a tuple of 2 for a leaf.",
    ),
    "a tree in associative_scan": (
        lambda: lax.associative_scan(lambda a, b: {"p": (a["p"],)}, {"p": x}), errors.TreeMismatch, ValueError,
        "got a tuple of 1 for a leaf at ['p'].",
    ),
    "test in a tuple": (
        lambda: lax.while_loop(lambda c: (c < 3,), lambda c: c + 1, 0), errors.TreeMismatch, ValueError,
        "while_loop: the test must give one bool, got a tuple of 1",
    ),
    "no test": (
        lambda: lax.while_loop(lambda c: None, lambda c: c + 1, 0), errors.TreeMismatch, ValueError,
        "while_loop: the test must give one bool, got None",
    ),
    "tangent keys": (lambda: hx.jvp(lambda t: t, ({"a": 1.0},), ({"b": 1.0},)), errors.TreeMismatch, ValueError, "'b'"),
    "no tuple": (lambda: hx.jvp(lambda x: x, 1.0, 1.0), errors.BadCall, TypeError, "jvp(f, (x,), (dx,))"),
    "tangent shape": (lambda: hx.jvp(lambda x: x, (x,), (hnp.ones(4),)), errors.ShapeMismatch, ValueError, "(4,)"),
    "tangent dtype": (lambda: hx.jvp(lambda x: x, (x,), (hnp.ones(3, int),)), errors.DTypeMismatch, TypeError, "int32"),
    "tangent of an integer": (lambda: hx.jvp(lambda x: x, (1,), (1.0,)), errors.DTypeMismatch, TypeError, "float0"),
    "cotangents": (lambda: hx.vjp(lambda x: (x, x), x)[1](x), errors.TreeMismatch, ValueError, "structure"),
    "cotangent shape": (lambda: hx.vjp(lambda x: x, x)[1](hnp.ones(4)), errors.ShapeMismatch, ValueError, "(4,)"),
    "cotangent dtype": (lambda: hx.vjp(lambda x: x, x)[1](hnp.ones(3, int)), errors.DTypeMismatch, TypeError, "int32"),
    "two cotangents": (lambda: hx.vjp(lambda x: (x, x), x)[1](x, x), errors.BadCall, TypeError, "pull((ct, ct))"),
    "linear tangent": (lambda: hx.linearize(lambda x: x, x)[1](hnp.ones(4)), errors.ShapeMismatch, ValueError, "(4,)"),
    "tree.map": (lambda: hx.tree.map(lambda a, b: a, (1, 2), (1,)), errors.TreeMismatch, ValueError, "tuple of 1"),
    "unflatten": (lambda: hx.tree.unflatten(hx.tree.structure((1, 2)), [1]), errors.TreeMismatch, ValueError, "got 1"),
}

DERIVATIVES = {
    "of an integer leaf": (
        lambda: hx.grad(lambda t, p: p["b"], argnums=1)(1.0, {"a": 1, "b": 2.0}), errors.NotDifferentiable, TypeError,
        "grad: the derivative by p['a'], of dtype int32, is not defined.",
    ),
    "of an integer": (lambda: hx.grad(lambda x: x * 1.0)(1), errors.NotDifferentiable, TypeError, "allow_int"),
    "of a vector": (lambda: hx.grad(lambda x: x)(x), errors.NotDifferentiable, TypeError, "jacrev"),
    "integer value": (lambda: hx.grad(lambda x: x.astype(int))(1.0), errors.NotDifferentiable, TypeError, "int32"),
    "complex value": (lambda: hx.grad(lambda x: x * 1j)(1.0), errors.NotDifferentiable, TypeError, "holomorphic"),
    "a tuple": (lambda: hx.grad(lambda x: (x, x))(1.0), errors.NotDifferentiable, TypeError, "has_aux"),
    "None": (lambda: hx.grad(lambda x: None)(1.0), errors.NotDifferentiable, TypeError, "return statement is missing"),
    "no aux": (lambda: hx.grad(lambda x: x, has_aux=True)(1.0), errors.TreeMismatch, ValueError, "(result, aux)"),
    "argnums": (lambda: hx.grad(lambda x: x, argnums=2)(1.0), errors.BadArgument, ValueError, "got 2"),
    "no argnums": (lambda: hx.grad(lambda x: x, argnums=...)(1.0), errors.BadCall, TypeError, "got Ellipsis"),
    "argnums of text": (lambda: hx.grad(lambda x: x, argnums="a")(1.0), errors.BadCall, TypeError, "'a'"),
    "jacfwd of an integer": (lambda: hx.jacfwd(lambda x: x)(1), errors.NotDifferentiable, TypeError, "int32"),
    "transpose of a square": (
        lambda: hx.linear_transpose(lambda x: x * x, 1.0)(1.0), errors.NotDifferentiable, TypeError, "must be linear",
    ),
    "transpose of 1 / x": (
        lambda: hx.linear_transpose(lambda x: 1 / x, 1.0)(1.0), errors.NotDifferentiable, TypeError, "must be linear",
    ),
    "transpose of a chosen branch": (
        lambda: hx.linear_transpose(lambda x: lax.cond(x > 0, lambda x: x, lambda x: -x, x), 1.0)(1.0),
        errors.NotDifferentiable, TypeError, "the branch depends on its argument",
    ),
    "transpose of sin": (lambda: hx.linear_transpose(lax.sin, 1.0)(1.0), errors.NotDifferentiable, TypeError, "sin"),
}

RULES = {
    "a block that is built in": (lambda: hx.effect(type), errors.BadArgument, ValueError, "type: a block must be"),
    "an effect without a type": (
        lambda: hx.effect(type("Silent", (), {})), errors.RegistrationError, ValueError, "Silent must declare the type",
    ),
    "batch": (
        lambda: hx.vmap(lambda x: hx.perform(Unruled(), x))(x),
        errors.MissingRule, LookupError, "@hx.columns.batch.rule(Unruled)",
    ),
    "jvp": (
        lambda: hx.grad(lambda x: hx.perform(Unruled(), x))(1.0),
        errors.MissingRule, LookupError, "@hx.columns.jvp.rule(Unruled)",
    ),
    "lower": (
        lambda: hx.jit(lambda x: hx.perform(Unruled(), x))(x),
        errors.MissingRule, LookupError, "@hx.columns.lower.rule(Unruled)",
    ),
    "unhandled": (lambda: hx.perform(Unanswered()), errors.UnhandledEffect, LookupError, "hx.handle"),
    "unhandled in jit": (
        lambda: hx.jit(lambda: hx.perform(Unanswered()))(), errors.UnhandledEffect, LookupError,
        "nobody handles Unanswered()",
    ),
    "refused by vmap": (
        lambda: hx.handle(hx.handler({Unanswered: lambda op: None}))(
            hx.vmap(lambda x: (hx.perform(Unanswered()), x)[1])
        )(x),
        errors.CannotCross, RuntimeError, "vmap='once'",
    ),
    "two rules": (lambda: hx.columns.batch.rule(lax_sin_kind())(None), errors.RegistrationError, ValueError, "batch"),
}


def lax_sin_kind():
    return hx.make_program(lax.sin)(1.0).ops[0].__class__


def lax_reduce_over(axes):
    kind = hx.make_program(lambda x: hnp.sum(x, 0))(x).ops[0].__class__
    return kind(axes)


TABLES = {
    "shape": SHAPES, "axis": AXES, "dtype": DTYPES, "array": ARRAYS, "python": PYTHON, "static": STATIC,
    "position": POSITIONS, "tree": TREES,
    "derivative": DERIVATIVES, "rule": RULES,
}
CASES = [pytest.param(*case, id=f"{table}: {name}") for table, cases in TABLES.items() for name, case in cases.items()]


@pytest.mark.parametrize(("mistake", "kind", "builtin", "said"), CASES)
def test_a_mistake_has_its_three_lines_and_harms_nothing(mistake, kind, builtin, said):
    with faults.whole(), pytest.raises(errors.HandlaxError) as caught:
        mistake()
    error = caught.value
    assert type(error) is kind or kind is errors.HandlaxError
    assert isinstance(error, builtin)
    lines = str(error).split("\n")
    assert 2 <= len(lines) <= 3
    assert lines[1].startswith("  at test_any_mistake.py:")
    assert len(lines) == 2 or lines[2].startswith("  hint: ")
    assert said in str(error)


@pytest.mark.parametrize("outer", [hx.jit, hx.vmap, hx.grad, lambda f: hx.jvp(f, (1.0,), (1.0,))])
@pytest.mark.parametrize("inner", [lambda f: f, hx.jit, hx.grad])
def test_an_exception_in_a_traced_function_comes_out_as_it_is(outer, inner):
    class Mine(Exception):
        pass

    mine = Mine("mine")

    def f(x):
        lax.sin(x)
        raise mine

    argument = x if outer is hx.vmap else 1.0
    with faults.whole(), pytest.raises(Mine) as caught:
        outer(inner(f))(argument)
    assert caught.value is mine


def test_a_failing_trace_leaves_no_entry_in_a_cache():
    fail = [True]

    @hx.jit
    def f(x):
        if fail:
            raise ZeroDivisionError
        return x + 1

    with pytest.raises(ZeroDivisionError):
        f(1.0)
    fail.clear()
    assert float(f(1.0)) == 2.0


@pytest.mark.parametrize("size", [3, 1000, 1_000_000])
def test_an_argument_changed_right_after_the_call_has_no_effect(size):
    f = hx.jit(lambda x: hnp.cumsum(hnp.sin(x) * 0 + x))
    argument = np.ones(size, np.float32)
    for _ in range(3):
        argument[:] = 1.0
        y = f(argument)
        argument[:] = 7.0
        assert float(y[-1]) == size


def test_an_argument_changed_while_an_eager_array_holds_it_has_no_effect():
    argument = np.ones(3)
    y, z = hnp.asarray(argument), hnp.sin(argument) * 0 + argument
    argument[:] = 7.0
    np.testing.assert_array_equal(y, np.ones(3))
    np.testing.assert_array_equal(z, np.ones(3))


def test_the_remedy_for_a_missing_rule_is_one():
    @hx.operation
    class Unbatched:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return 3 * x

    with pytest.raises(errors.MissingRule, match=r"@hx.columns.batch.rule\(Unbatched\)"):
        hx.vmap(lambda x: hx.perform(Unbatched(), x))(x)
    hx.columns.batch.rule(Unbatched)(lambda op, dims, x: (hx.perform(op, x), dims[0]))
    np.testing.assert_array_equal(hx.vmap(lambda x: hx.perform(Unbatched(), x))(x), [3, 3, 3])


def test_errors_pickle_and_copy_with_their_place():
    with pytest.raises(errors.ShapeMismatch) as caught:
        A + hnp.ones(4)
    for other in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert type(other) is errors.ShapeMismatch
        assert (str(other), other.what, other.hint) == (str(caught.value), caught.value.what, caught.value.hint)


def test_every_error_class_is_of_the_one_tree_and_of_a_builtin():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)}
    for kind in kinds - {errors.HandlaxError}:
        assert issubclass(kind, errors.HandlaxError)
        builtin = {base for base in kind.__mro__ if base.__module__ == "builtins"}
        assert builtin - {Exception, BaseException, object}


UNKNOWN_SIZES = {
    "where": (lambda a: hnp.where(a), "condition", "f32[3]"),
    "nonzero": (hnp.nonzero, "a", "f32[3]"),
    "argwhere": (hnp.argwhere, "a", "f32[3]"),
    "flatnonzero": (hnp.flatnonzero, "a", "f32[3]"),
    "compress": (lambda a: hnp.compress(a > 0, a), "condition", "bool[3]"),
    "extract": (lambda a: hnp.extract(a > 0, a), "condition", "bool[3]"),
    "unique": (hnp.unique, "ar", "f32[3]"),
    "unique_all": (hnp.unique_all, "x", "f32[3]"),
    "unique_counts": (hnp.unique_counts, "x", "f32[3]"),
    "unique_inverse": (hnp.unique_inverse, "x", "f32[3]"),
    "unique_values": (hnp.unique_values, "x", "f32[3]"),
    "union1d": (lambda a: hnp.union1d(a, x), "ar1 and ar2", "f32[6]"),
    "intersect1d": (lambda a: hnp.intersect1d(x, a), "ar2", "f32[3]"),
    "setdiff1d": (lambda a: hnp.setdiff1d(a, x), "ar1", "f32[3]"),
    "setxor1d": (lambda a: hnp.setxor1d(a, x, assume_unique=True), "ar1", "f32[3]"),
}


@pytest.mark.parametrize("name", UNKNOWN_SIZES)
def test_a_result_of_unknown_size_is_refused_by_the_name_of_the_function_and_its_argument(name):
    f, argument, shown = UNKNOWN_SIZES[name]
    with pytest.raises(errors.ConcretizationError) as caught:
        hx.jit(f)(x)
    what, _, hint = str(caught.value).split("\n")
    assert what.startswith(f"{name}: the values of {argument} tell the size of the result") and f"got {shown}" in what
    assert "size=n" in hint
