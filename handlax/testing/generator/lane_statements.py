"""The vocabulary of functions of a lane, over all of the package: most kinds of statements are lists of expressions.

Sizes on the probe that are smaller than ``SMALL`` all lanes share, larger ones are ragged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import HandlaxError
from ...effects.core.arrays import Array
from .author import Statement, Unfit, Vocabulary
from .writer import Body, Writer

SMALL = 50  # the bound of sizes that all lanes share
LARGEST = 40_000  # elements of a value


def ragged(shape: Sequence[int]) -> bool:
    return any(n >= SMALL for n in shape)


def is_float(x: Any) -> bool:
    return hnp.issubdtype(x.dtype, hnp.floating)


def is_integer(x: Any) -> bool:
    return hnp.issubdtype(x.dtype, hnp.integer)


def has_axes(x: Any) -> bool:
    return is_float(x) and x.ndim > 0


SAME_TYPE = [
    "{x} + 0.1 * hnp.sin({last}).sum()", "{x} * hnp.cos({last}).sum()", "hnp.sin({x})", "{x} * 0.5",
    "hnp.tanh({x}) + 0.25", "{x} * {x} * 0.1", "hnp.cos({x} + 1)",
]
UNARY = [
    "hnp.sin({x})", "hnp.cos({x})", "hnp.tanh({x})", "-{x}", "hnp.exp(-{x} * {x})", "hnp.abs({x})", "hnp.sign({x})",
    "hnp.log1p({x} * {x})", "hnp.sqrt({x} * {x} + 0.5)", "{x} * 2", "3 - {x}", "{x} ** 2", "{x} / 3", "1.5 * {x} + 1",
    "hnp.maximum({x}, 0.1)", "hx.nn.relu({x})", "hx.nn.sigmoid({x})", "hx.nn.gelu({x})", "lax.stop_gradient({x})",
    "hnp.clip({x}, -1, 1)", "hnp.floor({x} * 2)", "hnp.where({x} > 0, {x}, 0.5)", "hnp.zeros_like({x}) + 1",
    "lax.square({x})", "hnp.round({x}, 1)", "lax.logistic({x})", "hnp.full_like({x}, 2)", "hx.nn.softplus({x})",
]
SINGULAR = [
    "hnp.log({x})", "hnp.sqrt({x})", "1 / {x}", "hnp.arcsin({x})", "{x} ** 0.5", "hnp.sqrt({x} * {x})",
]
FOLDS = [
    "hnp.sum({x}, axis={a}, keepdims={k})", "hnp.mean({x}, axis={a}, keepdims={k})", "{x}.sum({a}, keepdims={k})",
    "hnp.max({x}, axis={a}, keepdims={k}, initial=-2.0)", "hnp.min({x}, axis={a}, keepdims={k}, initial=2.0)",
    "hnp.max({x}, axis={a}, keepdims={k})", "hnp.min({x}, axis={a}, keepdims={k})", "{x}.mean({a}, keepdims={k})",
    "hnp.prod(0.5 * {x}, axis={a}, keepdims={k})", "hnp.var({x}, axis={a}, keepdims={k})",
    "hnp.std({x}, axis={a}, keepdims={k}, ddof=1)", "hx.nn.logsumexp({x}, axis={a}, keepdims={k})",
    "hnp.any({x} > 0.5, axis={a}, keepdims={k})", "hnp.all({x} > -1, axis={a}, keepdims={k})",
    "hnp.count_nonzero({x} > 0, axis={a}, keepdims={k})", "hnp.linalg.norm({x} + 1j, axis={d}, keepdims={k})",
    "hnp.argmax({x}, axis={d}, keepdims={k})", "hnp.argmin({x}, axis={d}, keepdims={k})",
    "hnp.nansum({x}, axis={a}, keepdims={k})", "hnp.nanmean({x}, axis={a}, keepdims={k})",
    "hnp.average({x}, axis={d}, keepdims={k})", "hnp.ptp({x}, axis={d}, keepdims={k})",
    "hnp.sum({x}, axis={a}, keepdims={k}, where={x} > 0)", "hnp.linalg.vector_norm({x}, axis={d}, keepdims={k})",
]
ALONG = [
    "hnp.cumsum({x}, axis={d})", "lax.cumsum({x}, axis={d}, reverse={k})", "lax.cumprod({x}, axis={d}, reverse={k})",
    "lax.cummax({x}, axis={d}, reverse={k})", "lax.cummin({x}, axis={d}, reverse={k})",
    "lax.cumlogsumexp({x}, axis={d}, reverse={k})", "hnp.sort({x}, axis={d})", "hnp.argsort({x}, axis={d})",
    "hnp.flip({x}, axis={d})", "hx.nn.softmax({x}, axis={d})", "hx.nn.log_softmax({x}, axis={d})",
    "hx.nn.standardize({x}, axis={d})", "hnp.expand_dims({x}, {d})", "hnp.concatenate([{x}, {x} * 2], axis={d})",
    "hnp.moveaxis({x}, {d}, 0)", "hnp.moveaxis({x}, 0, {d})", "hnp.stack([{x}, -{x}], axis={d})",
    "hnp.take_along_axis({x}, hnp.argsort({x}, axis={d}), axis={d})", "hnp.sort({x}, axis={d}, descending=True)",
    "lax.associative_scan(hnp.add, {x}, axis={d})", "hnp.take({x}, hnp.argsort({x}, axis={d}), axis={d}).sum({d})",
    "lax.sort(({x}, hnp.cos({x})), dimension={d}, num_keys=1)[1]", "hnp.cumulative_sum({x}, axis={d})",
    "hnp.apply_along_axis(lambda c: c * c.sum(), {d}, {x})", "hnp.trapezoid({x}, axis={d})", "lax.rev({x}, ({d},))",
    "hnp.repeat({x}, 2, axis={d})",
]
RANKED = {
    1: [
        "{x}[1:]", "{x}[:-1]", "{x}[::2]", "{x}[1::-1]", "hnp.diff({x})", "hnp.roll({x}, -1)", "{x}[1:] - {x}[:-1]",
        "hnp.outer({x}, {x})", "{x}[:, None]", "{x}[None]", "{x}[0]", "{x}[-1]", "{x}[::-1]", "hnp.diag({x})",
        "hnp.broadcast_to({x}, (2, {x}.shape[0]))", "hnp.tile({x}, 2)", "{x}.reshape(-1, 1)", "{x} @ {x}",
        "hnp.dot({x}, {x})", "hnp.searchsorted(hnp.sort({x}), 0.0)", "hnp.convolve({x}, hnp.ones(1))",
        "{x}[hnp.argsort({x})]", "hnp.interp({x}, hnp.array([0.0, 1.0]), hnp.array([0.5, 2.0]))",
        "lax.dynamic_index_in_dim({x}, 0, 0, False)", "hnp.vander({x}, 3)", "lax.top_k({x}, 1)[0]",
    ],
    2: [
        "{x}[1:]", "{x}[:-1]", "{x}[::2]", "{x}[:2]", "{x}[-2:]", "hnp.diff({x}, axis=0)", "hnp.roll({x}, 1, axis=0)",
        "{x}.T", "{x} @ {x}.T", "{x}.T @ {x}", "{x}[:, 0]", "{x}[0]", "{x}[-1]", "{x}[:, None]", "{x}[..., None]",
        "{x}.reshape({x}.shape[0], -1)", "{x}.reshape(-1)", "{x}.ravel()", "hnp.swapaxes({x}, 0, 1)", "{x}[:, ::-1]",
        "{x}.reshape({x}.shape[0], 1, {x}.shape[1])", "hnp.einsum('ij,kj->ik', {x}, {x})", "hnp.tril({x})",
        "hnp.einsum('ij->j', {x})", "hnp.einsum('ij,ij->i', {x}, {x})", "{x}.at[:, 0].set(1.0)", "{x}.at[0].add(2.0)",
        "{x}[:, 1:]", "{x}[:, :2]", "hnp.diagonal({x} @ {x}.T)", "hnp.trace({x} @ {x}.T)", "{x}.at[:, 0].multiply(2)",
        "hnp.pad({x}, ((0, 0), (1, 2)))", "hnp.pad({x}, ((1, 2), (0, 0)), constant_values=0.5)",
        "hnp.roll({x}, 1, 1)", "hnp.where(hnp.arange({x}.shape[0])[:, None] >= hnp.arange({x}.shape[1]), {x}, 0.0)",
        "hnp.vstack([{x}, {x}])", "hnp.hstack([{x}, {x}])", "hnp.cov({x}.T)", "hnp.split({x}, [1], axis=1)[0]",
        "{x}[hnp.array([0, 0])]", "{x}[:, hnp.array([0, -1])]", "lax.dynamic_slice_in_dim({x}, 0, 1, 0)",
        "hnp.linalg.cholesky({x}.T @ {x} + 5 * hnp.eye({x}.shape[1]))", "hx.nn.softmax({x} @ {x}.T, axis=-1) @ {x}",
        "hnp.linalg.matrix_norm({x})", "hx.vmap(hnp.outer)({x}, {x})", "hnp.tensordot({x}, {x}, axes=(0, 0))",
        "hnp.kron({x}[:, 0], hnp.ones(2))",
    ],
    3: [
        "hnp.transpose({x}, (2, 0, 1))", "hnp.transpose({x}, (1, 0, 2))", "{x}.reshape({x}.shape[0], -1)",
        "{x}[:, 0]", "hnp.einsum('ijk,ijl->ikl', {x}, {x})", "hnp.einsum('ijk->ik', {x})", "{x}[..., 0]",
        "{x}.sum((0, 2))", "hnp.einsum('ijk,ljk->il', {x}, {x})", "hnp.matmul({x}, hnp.swapaxes({x}, 1, 2))",
        "{x}[0]", "{x}[:, :, ::-1]", "hnp.concatenate([{x}, {x}], axis=2)", "{x} @ {x}.mT",
        "hnp.einsum('ijk,lmk->ijlm', {x}, {x}).sum((1, 3))", "hnp.diagonal({x}, axis1=1, axis2=2)",
    ],
}
LENGTHS = [
    "{x} * {x}.shape[{d}]", "{x} / ({x}.shape[{d}] + 1)", "hnp.arange({x}.shape[{d}])",
    "hnp.ones(({x}.shape[{d}], 3))", "hnp.sqrt({x}.shape[{d}]) * {x}", "hnp.linspace(0.0, 1.0, 3) * {x}.shape[{d}]",
    "{x}.sum() / {x}.shape[{d}]", "lax.iota('float64', {x}.shape[{d}])", "hnp.zeros({x}.shape) + {x}.mean()",
    "hnp.asarray({x}.shape[{d}]) % 3", "hnp.where({x}.shape[{d}] > 2, {x}, 0.5)", "({x}.shape[{d}] ** 2 - 1) * {x}",
    "hnp.arange({x}.shape[{d}]) % 2 == 0", "lax.cond({x}.shape[{d}] > 1, lambda: {x} * 2, lambda: hnp.sin({x}))",
    "hnp.full({x}.shape, 0.5) * {x}", "hnp.ones(({x}.shape[{d}], {x}.shape[{d}])).sum(0)", "-{x}.shape[{d}] + {x}",
    "hnp.eye({x}.shape[{d}])", "hnp.arange({x}.shape[{d}], dtype='float32') / {x}.shape[{d}]",
    "lax.fori_loop(0, {x}.shape[{d}], lambda i, c: c * 0.9 + i, 1.0)",
    "lax.broadcasted_iota('int32', {x}.shape, {d})", "hnp.indices(({x}.shape[{d}], 2))[1]", "{x}[{x}.shape[0] - 1]",
    "hnp.arange(2 * {x}.shape[{d}])", "hnp.arange({x}.shape[{d}] + 1).sum()", "hnp.cos({x}.size)",
    "hnp.float32({x}.ndim)",
]
INTS = [
    "hx.nn.one_hot({i} % 4, 4)", "{i} + 1", "{i} * 2 - 3", "{i} % 3", "{i} // 2", "{i} == 2", "{i}.sum()",
    "hnp.cumsum({i})", "{i}.astype('float64') * 0.5", "hnp.sin({i})", "hnp.zeros(5, 'int32').at[{i} % 5].add(1)",
    "hnp.sort({i}, -1)", "{i} & 1", "hnp.array([0.5, 1.5, -1.0])[{i} % 3]", "hnp.bincount({i} % 4, length=4)",
    "hnp.max({i}, initial=0)", "{i} > 1", "-{i}", "hnp.bitwise_xor({i}, 5)", "{i}.prod()",
    "lax.reduce_xor({i}, (0,))", "lax.population_count({i})", "{i}.mean()", "hnp.left_shift({i}, 1)",
]
BOOLS = [
    "{b}.sum()", "~{b}", "{b}.any()", "{b}.all(0)", "hnp.where({b}, 1.5, -0.5)", "{b} & True", "hnp.cumsum({b})",
    "{b} * 2.0", "hnp.argmax({b})",
]
CASTS = [
    "{x}.astype('float32')", "{x}.astype('bfloat16')", "(3 * {x}).astype('int32')", "{x}.astype(bool)",
    "({x} + 2j * {x}).astype('complex64')",
]
COMPLEX = [
    "{c}.real", "hnp.abs({c} * {c})", "hnp.conj({c}) * {c}", "({c} * 1j).imag", "{c}.sum()", "hnp.exp({c}).real",
    "hnp.cumsum({c}, 0)",
]
PAIRS = [
    "{x} + {y}", "{x} * {y}", "{x} - {y}", "hnp.maximum({x}, {y})", "hnp.where({x} > {y}, {x}, {y})",
    "hnp.where({x} > 0, {y}, {x})", "hnp.arctan2({x}, {y} + 3)", "hnp.hypot({x}, {y})", "{x} / ({y} * {y} + 1)",
    "hnp.minimum({y}, {x})", "hnp.logaddexp({x}, {y})", "{x} < {y}",
]


def axis_of(a: Writer, scope: Body, x: str) -> int:
    """An axis of a value, a ragged one rather."""
    shape = scope[x].shape
    return a.random.choices(range(len(shape)), [2 if n >= SMALL else 1 for n in shape])[0]


def axes_of(a: Writer, scope: Body, x: str) -> str:
    """The text of one axis of a value, counted from either end, of two, or of all."""
    rank = scope[x].ndim
    if a.chance(0.15):
        return "None"
    if rank > 1 and a.chance(0.25):
        return str(tuple(sorted(a.random.sample(range(rank), 2))))
    axis = axis_of(a, scope, x)
    return str(axis if a.chance(0.7) else axis - rank)


def formats(texts: Sequence[str], fits: Callable[[Any], bool], letter: str) -> Statement:
    """One of these expressions of a value that fits, and of an axis of it."""

    def write(a: Writer, scope: Body) -> None:
        x = a.variable(scope, fits)
        given = {letter: x, "k": a.chance(0.4)}
        text = a.choice(texts)
        if scope[x].ndim:
            given |= {"a": axes_of(a, scope, x), "d": axis_of(a, scope, x)}
        elif re.search(r"\{[ad]\}", text):
            raise Unfit
        a.let(scope, text.format(**given))

    return write


def by_rank(a: Writer, scope: Body) -> None:
    x = a.variable(scope, lambda x: has_axes(x) and x.ndim in RANKED)
    a.let(scope, a.choice(RANKED[scope[x].ndim]).format(x=x))


def pair(a: Writer, scope: Body) -> None:
    """Two values that broadcast, if need be with an axis more."""
    x = a.variable(scope, is_float)
    y = a.variable(scope, lambda y: is_float(y) and broadcasts(y.shape, scope[x].shape))
    a.let(scope, a.choice(PAIRS).format(x=x, y=y))


def broadcasts(s: Sequence[int], t: Sequence[int]) -> bool:
    return all(m == n or m == 1 or n == 1 for m, n in zip(s[::-1], t[::-1]))


def crossed(a: Writer, scope: Body) -> None:
    """Two values against one another: an axis of its own for each."""
    x, y = a.variable(scope, has_axes), a.variable(scope, has_axes)
    if scope[x].ndim + scope[y].ndim > 3:
        raise Unfit
    a.let(scope, f"{x}[(..., {', '.join(['None'] * scope[y].ndim)})] {a.choice('+*-')} {y}")


def product(a: Writer, scope: Body) -> None:
    """An einsum of two values, axes of one size shared or not, kept or not."""
    x, y = a.variable(scope, has_axes), a.variable(scope, has_axes)
    letters = iter("abcdefgh")
    first = [next(letters) for _ in scope[x].shape]
    second: list[str] = []
    for n in scope[y].shape:
        same = [c for c, m in zip(first, scope[x].shape) if m == n and c not in second]
        second.append(a.choice(same) if same and a.chance(0.75) else next(letters))
    kept = [c for c in sorted({*first, *second}) if a.chance(0.6)]
    a.random.shuffle(kept)
    a.let(scope, f"hnp.einsum('{''.join(first)},{''.join(second)}->{''.join(kept[:3])}', {x}, {y})")


def weighted(a: Writer, scope: Body) -> None:
    x = a.variable(scope, lambda x: has_axes(x) and x.shape[-1] == 3)
    y = a.variable(scope, lambda y: is_float(y) and y.shape in ((3, 3), (3, 2), (3,)))
    a.let(scope, f"{x} @ {y}")


def joined(a: Writer, scope: Body) -> None:
    """Two values joined along an axis in which they may differ."""
    x = a.variable(scope, has_axes)
    d, rank = axis_of(a, scope, x), scope[x].ndim
    others = lambda shape: [*shape[:d], *shape[d + 1 :]]
    alike = lambda y: is_float(y) and y.ndim == rank and others(y.shape) == others(scope[x].shape)
    a.let(scope, f"hnp.concatenate([{x}, {a.variable(scope, alike)}], axis={d})")


def read(a: Writer, scope: Body) -> None:
    """Elements at integer places, which lie in the axis."""
    x, i = a.variable(scope, has_axes), a.variable(scope, is_integer)
    d = axis_of(a, scope, x)
    size = scope[x].shape[d]
    bound = f"hnp.maximum({x}.shape[{d}], 1)" if size >= SMALL else str(size)
    at = f"hnp.abs({i}) % {bound}"
    mode = a.choice(["", "", ", mode='clip'", ", mode='fill', fill_value=7.0"])
    texts = [f"hnp.take({x}, {at}, axis={d}{mode})", f"hnp.take({x}, {i}, axis={d}, mode='clip')"]
    if d == 0:
        texts += [f"{x}[{at}]", f"{x}.at[{at}].get(mode='fill', fill_value=0.0)"]
        texts += [f"lax.dynamic_index_in_dim({x}, {at}, 0, False)", f"lax.dynamic_slice_in_dim({x}, {at}, 1)"]
    a.let(scope, a.choice(texts))


def written(a: Writer, scope: Body) -> None:
    """Rows added to places of an array that all lanes size alike, or columns replaced."""
    i = a.variable(scope, lambda i: is_integer(i) and i.ndim == 1)
    x = a.variable(scope, lambda x: has_axes(x) and x.shape[0] == scope[i].shape[0])
    zeros = f"hnp.zeros((5, *{x}.shape[1:]), {x}.dtype)"
    way = a.choice(["add", "max", "multiply", "set"])
    a.let(scope, a.choice([f"{zeros}.at[{i} % 5].{way}({x})", f"hx.ops.segment_sum({x}, {i} % 4, 4)"]))


# statements with functions in them


def same_type(example: Any) -> Callable[[Any], bool]:
    """Whether a value has the type of an example; of any float if there is none."""
    if example is None:
        return is_float
    return lambda x: (x.shape, x.dtype, x.weak_type) == (example.shape, example.dtype, example.weak_type)


def function(a: Writer, scope: Body, parameters: Sequence[str], of: str | None = None) -> str:
    """The name of a new function of values like these, whose result has the type of ``of``, or is a float."""
    return function_of(a, scope, [scope[x] for x in parameters], None if of is None else scope[of])


def function_of(a: Writer, scope: Body, parameters: Sequence[Any], result: Any = None) -> str:
    """The name of a new function of values like these; it reads others. ``result``: an example of its result."""
    captured = scope.names[-3:]
    f, body = a.function(scope, parameters, captured=captured)
    own, made = body.names[len(captured) :], body.names[len(captured) + len(parameters) :]
    fitting = [x for x in own if same_type(result)(body[x])]
    if not fitting:
        raise Unfit
    last = ([x for x in made if is_float(body[x])] or fitting)[-1]
    y = a.let(body, a.choice(SAME_TYPE[:2] * 2 + SAME_TYPE[2:]).format(x=fitting[-1], last=last))
    if not same_type(result)(body[y]):
        raise Unfit
    a.returns(body, y)
    return f


def called(a: Writer, scope: Body) -> None:
    """A function that is compiled, rematerialised, or has a handler around it."""
    x = a.variable(scope, is_float)
    f = function(a, scope, [x])
    a.let(scope, a.choice([
        f"hx.jit({f})({x})", f"hx.checkpoint({f})({x})", f"hx.named_call({f})({x})", f"hx.jit(hx.checkpoint({f}))({x})",
        f"hx.handle(answering)({f})({x})",
    ]))


def own_rule(a: Writer, scope: Body) -> None:
    """A function with a derivative of its own, which is not the function's."""
    x = a.variable(scope, is_float)
    f, g = function(a, scope, [x], of=x), a.fresh("g")
    rules = {
        "jvp": f"lambda xs, ts: ({f}(xs[0]), 0.5 * hnp.cos(xs[0]) * ts[0])",
        "vjp": f"lambda x: ({f}(x), hnp.cos(x)), lambda c, ct: (0.5 * c * ct,)",
    }
    mode = a.choice([*rules])
    a.line(scope, f"{g} = hx.custom_{mode}({f})\n{g}.def{mode}({rules[mode]})")
    a.let(scope, f"{g}({x})")


def derivative(a: Writer, scope: Body) -> None:
    """A derivative within the lane."""
    x = a.variable(scope, is_float)
    f = function(a, scope, [x])
    a.let(scope, a.choice([
        f"hx.grad(lambda x: {f}(x).sum())({x})", f"hx.value_and_grad(lambda x: ({f}(x) ** 2).sum())({x})[1]",
        f"hx.jvp({f}, ({x},), (hnp.cos({x}),))[1]", f"hx.vjp({f}, {x})[1]({f}({x}))[0]",
        f"hx.linearize({f}, {x})[1](hnp.ones_like({x}))", f"hx.jit(hx.grad(lambda x: hnp.sin({f}(x)).sum()))({x})",
    ]))


def mapped(a: Writer, scope: Body) -> None:
    """``vmap`` within the lane, over a ragged axis or another one."""
    x = a.variable(scope, has_axes)
    d = axis_of(a, scope, x)
    f = function_of(a, scope, [scope[x][(slice(None),) * d + (0,)]])
    ways = [f"hx.vmap({f}, in_axes={d})({x})"]
    if d == 0:
        ways += [f"lax.map({f}, {x})", f"hx.vmap(hx.jit({f}))({x})"]
    a.let(scope, a.choice(ways))


def loop(a: Writer, scope: Body) -> None:
    """A scan along the first axis, with a carry of any type; or a loop of few iterations."""
    c, x = a.variable(scope, is_float), a.variable(scope, has_axes)
    if a.chance(0.7):
        f = function_of(a, scope, [scope[c], scope[x][0]], scope[c])
        back = a.choice(["", ", reverse=True", ", unroll=2"])
        each = a.choice(["c", "c.sum()", "hnp.cos(x)", "x.sum() * c"])
        a.let(scope, f"lax.scan(lambda c, x: ({f}(c, x), {each}), {c}, {x}{back})[{a.integer(0, 1)}]")
        return
    f = function(a, scope, [c], of=c)
    bounds = ["3"] if ragged(scope[c].shape) else ["3", f"{x}.shape[0]"]
    a.let(scope, a.choice([
        f"lax.fori_loop(0, 3, lambda i, c: {f}(c) + 0.1 * i, {c})",
        f"lax.scan(lambda c, _: ({f}(c), None), {c}, None, length=3)[0]",
        *[f"lax.while_loop(lambda s: s[0] < {n}, lambda s: (s[0] + 1, {f}(s[1])), (0, {c}))[1]" for n in bounds],
    ]))


def branch(a: Writer, scope: Body) -> None:
    """A choice of each lane between functions of one type."""
    x = a.variable(scope, is_float)
    p = a.variable(scope, is_float)
    test = f"{p} > 0.1" if not scope[p].ndim else f"{p}.sum() > 0"
    f, g = [function(a, scope, [x], of=x) for _ in range(2)]
    a.let(scope, a.choice([
        f"lax.cond({test}, {f}, {g}, {x})", f"lax.switch(({test}).astype('int32') * 2, [{f}, hnp.sin, {g}], {x})",
    ]))


def effectful(a: Writer, scope: Body) -> None:
    """Effects with a handler within the lane."""
    x = a.variable(scope, is_float)
    if a.chance():
        a.let(scope, f"hx.handle(answering)(lambda x: ask(hnp.cos(x)) * x)({x})")
        return
    y = a.variable(scope, has_axes)
    step = "lambda c, x: (c + count() * x.sum(), c.sum())"
    a.let(scope, f"hx.handle(counting, 0)(lambda c: lax.scan({step}, c, {y})[0])({x})[{a.integer(0, 1)}]")


def fits(x: Any) -> bool:
    return isinstance(x, Array) and x.size <= LARGEST and all(n < 14 or n >= SMALL for n in x.shape)


PLAIN: Mapping[Statement, float] = {
    formats(UNARY, is_float, "x"): 5, formats(SINGULAR, is_float, "x"): 0.3, formats(FOLDS, has_axes, "x"): 7,
    formats(ALONG, has_axes, "x"): 7, by_rank: 9, formats(LENGTHS, has_axes, "x"): 4, formats(INTS, is_integer, "i"): 2,
    formats(BOOLS, lambda x: x.dtype == bool, "b"): 2, formats(CASTS, is_float, "x"): 1,
    formats(COMPLEX, lambda x: hnp.iscomplexobj(x), "c"): 3, pair: 6, crossed: 2, product: 5, weighted: 3, joined: 2,
    read: 4, written: 2,
}
BODIED: Mapping[Statement, float] = {
    called: 3, own_rule: 2, derivative: 3, mapped: 3, loop: 4, branch: 3, effectful: 1,
}
LANE_VOCABULARY = Vocabulary(
    PLAIN, BODIED, fits, interest=lambda x: 3.0 if ragged(x.shape) else 1.0,
    executed=True, refused=(HandlaxError, TypeError, ValueError, IndexError, OverflowError),
)
