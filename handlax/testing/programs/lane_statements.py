"""The kinds of statements of a function of a lane, each written as Python text of values of the probe.

A writer of statements (``ragged_programs.Writer``) gives names of values that fit, and says their shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from handlax import numpy as hnp

SMALL = 50  # the bound of sizes that all lanes share


def fits_type(x: Any, wanted: Any) -> bool:
    if wanted is None:
        return is_float(x)
    return (x.shape, x.dtype, x.weak_type) == (wanted.shape, wanted.dtype, wanted.weak_type)


def ragged(shape: Sequence[int]) -> bool:
    return any(n >= SMALL for n in shape)


def is_float(x: Any) -> bool:
    return hnp.issubdtype(x.dtype, hnp.floating)


def is_inexact(x: Any) -> bool:
    return hnp.issubdtype(x.dtype, hnp.inexact)


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


def formats(kinds: Sequence[str], fits: Callable[[Any], bool], letter: str) -> Callable[[Any], Any]:
    """The writer of one of these texts, of a value that fits, and of an axis of it."""

    def write(w: Any) -> Any:
        x = w.pick(fits)
        if x is None:
            return None
        given = {letter: x, "k": w.rng.random() < 0.4}
        if w.shape(x):
            given |= {"a": w.axes(x), "d": w.axis(x)}
        text = w.rng.choice(kinds)
        return text.format(**given) if w.shape(x) or not re.search(r"\{[ad]\}", text) else None

    return write


def by_rank(w: Any) -> Any:
    x = w.pick(lambda x: has_axes(x) and x.ndim in RANKED)
    return x and w.rng.choice(RANKED[len(w.shape(x))]).format(x=x)


def pair(w: Any) -> Any:
    """Two values that broadcast, if need be with an axis more."""
    x = w.pick(is_float)
    y = w.pick(lambda y: is_float(y) and broadcasts(y.shape, w.shape(x)))
    return y and w.rng.choice(PAIRS).format(x=x, y=y)


def broadcasts(s: Sequence[int], t: Sequence[int]) -> bool:
    return all(a == b or a == 1 or b == 1 for a, b in zip(s[::-1], t[::-1]))


def crossed(w: Any) -> Any:
    """Two values against one another: an axis of its own for each."""
    x, y = w.pick(has_axes), w.pick(has_axes)
    if x is None or len(w.shape(x)) + len(w.shape(y)) > 3:
        return None
    return f"{x}[(..., {', '.join(['None'] * len(w.shape(y)))})] {w.rng.choice('+*-')} {y}"


def product(w: Any) -> Any:
    """An einsum of two values, axes of one size shared or not, kept or not."""
    x, y = w.pick(has_axes), w.pick(has_axes)
    if x is None:
        return None
    letters = iter("abcdefgh")
    first = [next(letters) for _ in w.shape(x)]
    second = []
    for n in w.shape(y):
        same = [c for c, m in zip(first, w.shape(x)) if m == n and c not in second]
        second.append(w.rng.choice(same) if same and w.rng.random() < 0.75 else next(letters))
    every = sorted({*first, *second})
    kept = [c for c in every if w.rng.random() < 0.6]
    w.rng.shuffle(kept)
    return f"hnp.einsum('{''.join(first)},{''.join(second)}->{''.join(kept[:3])}', {x}, {y})"


def weighted(w: Any) -> Any:
    x = w.pick(lambda x: has_axes(x) and x.shape[-1] == 3)
    y = w.pick(lambda y: is_float(y) and y.shape in ((3, 3), (3, 2), (3,)))
    return x and y and f"{x} @ {y}"


def joined(w: Any) -> Any:
    """Two values joined along an axis in which they may differ."""
    x = w.pick(has_axes)
    if x is None:
        return None
    s, d = w.shape(x), w.axis(x)
    others = [*s[:d], *s[d + 1 :]]
    y = w.pick(lambda y: is_float(y) and y.ndim == len(s) and [*y.shape[:d], *y.shape[d + 1 :]] == others)
    return f"hnp.concatenate([{x}, {y}], axis={d})"


def read(w: Any) -> Any:
    """Elements at integer places, which lie in the axis."""
    x, i = w.pick(has_axes), w.pick(is_integer)
    if x is None or i is None:
        return None
    d = w.axis(x)
    size = w.shape(x)[d]
    bound = f"hnp.maximum({x}.shape[{d}], 1)" if size >= SMALL else str(size)
    at = f"hnp.abs({i}) % {bound}"
    mode = w.rng.choice(["", "", ", mode='clip'", ", mode='fill', fill_value=7.0"])
    texts = [f"hnp.take({x}, {at}, axis={d}{mode})", f"hnp.take({x}, {i}, axis={d}, mode='clip')"]
    if d == 0:
        texts += [f"{x}[{at}]", f"{x}.at[{at}].get(mode='fill', fill_value=0.0)"]
        texts += [f"lax.dynamic_index_in_dim({x}, {at}, 0, False)", f"lax.dynamic_slice_in_dim({x}, {at}, 1)"]
    return w.rng.choice(texts)


def written(w: Any) -> Any:
    """Rows added to places of an array that all lanes size alike, or columns replaced."""
    x, i = w.pick(has_axes), w.pick(lambda i: is_integer(i) and i.ndim == 1)
    if x is None or i is None or w.shape(x)[0] != w.shape(i)[0]:
        return None
    way = w.rng.choice(["add", "max", "multiply", "set"])
    zeros = f"hnp.zeros((5, *{x}.shape[1:]), {x}.dtype)"
    return w.rng.choice([f"{zeros}.at[{i} % 5].{way}({x})", f"hx.ops.segment_sum({x}, {i} % 4, 4)"])


# statements with functions in them


def called(w: Any) -> Any:
    """A function that is compiled, rematerialised, or has a rule of its own."""
    x = w.pick(is_float)
    if x is None:
        return None
    f = w.function([w.value(x)])
    if f is None:
        return None
    name, text = f
    ways = [f"hx.jit({name})({x})", f"hx.checkpoint({name})({x})", f"hx.named_call({name})({x})"]
    ways += [f"hx.jit(hx.checkpoint({name}))({x})", f"hx.handle(answering)({name})({x})"]
    return w.rng.choice(ways), text


def own_rule(w: Any) -> Any:
    """A function with a derivative of its own, which is not the function's."""
    x = w.pick(is_float)
    f = x and w.function([w.value(x)], w.value(x))
    if not f:
        return None
    name, text = f
    g = w.fresh("g")
    if w.rng.random() < 0.5:
        rule = f"{g}.defjvp(lambda xs, ts: ({name}(xs[0]), 0.5 * hnp.cos(xs[0]) * ts[0]))"
        return f"{g}({x})", f"{text}{g} = hx.custom_jvp({name})\n{rule}\n"
    rule = f"{g}.defvjp(lambda x: ({name}(x), hnp.cos(x)), lambda c, ct: (0.5 * c * ct,))"
    return f"{g}({x})", f"{text}{g} = hx.custom_vjp({name})\n{rule}\n"


def derivative(w: Any) -> Any:
    """A derivative within the lane."""
    x = w.pick(is_float)
    f = x and w.function([w.value(x)])
    if not f:
        return None
    name, text = f
    ways = [
        f"hx.grad(lambda x: {name}(x).sum())({x})", f"hx.value_and_grad(lambda x: ({name}(x) ** 2).sum())({x})[1]",
        f"hx.jvp({name}, ({x},), (hnp.cos({x}),))[1]", f"hx.vjp({name}, {x})[1]({name}({x}))[0]",
        f"hx.linearize({name}, {x})[1](hnp.ones_like({x}))",
        f"hx.jit(hx.grad(lambda x: hnp.sin({name}(x)).sum()))({x})",
    ]
    return w.rng.choice(ways), text


def mapped(w: Any) -> Any:
    """``vmap`` within the lane, over a ragged axis or another one."""
    x = w.pick(has_axes)
    if x is None:
        return None
    d = w.axis(x)
    f = w.function([w.value(x)[(slice(None),) * d + (0,)]])
    if f is None:
        return None
    name, text = f
    ways = [f"hx.vmap({name}, in_axes={d})({x})"]
    if d == 0:
        ways += [f"lax.map({name}, {x})", f"hx.vmap(hx.jit({name}))({x})"]
    return w.rng.choice(ways), text


def loop(w: Any) -> Any:
    """A scan along the first axis, with a carry of any type; or a loop of few iterations."""
    c, x = w.pick(is_float), w.pick(has_axes)
    if x is None:
        return None
    along = w.rng.random() < 0.7
    f = w.function([w.value(c), w.value(x)[0]] if along else [w.value(c)], w.value(c))
    if f is None:
        return None
    name, text = f
    if along:
        back = w.rng.choice(["", ", reverse=True", ", unroll=2"])
        each = w.rng.choice(["c", "c.sum()", "hnp.cos(x)", "x.sum() * c"])
        ways = [f"lax.scan(lambda c, x: ({name}(c, x), {each}), {c}, {x}{back})[{w.rng.randint(0, 1)}]"]
    else:
        ways = [
            f"lax.fori_loop(0, 3, lambda i, c: {name}(c) + 0.1 * i, {c})",
            f"lax.scan(lambda c, _: ({name}(c), None), {c}, None, length=3)[0]",
            f"lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, {name}(s[1])), (0, {c}))[1]",
        ]
        if not ragged(w.shape(c)):
            step = f"lambda s: (s[0] + 1, {name}(s[1]))"
            ways.append(f"lax.while_loop(lambda s: s[0] < {x}.shape[0], {step}, (0, {c}))[1]")
    return w.rng.choice(ways), text


def branch(w: Any) -> Any:
    """A choice of each lane between functions of one type."""
    x, p = w.pick(is_float), w.pick(lambda p: is_float(p) and p.ndim == 0)
    if x is None:
        return None
    f, g = [w.function([w.value(x)], w.value(x)) for _ in range(2)]
    if f is None or g is None:
        return None
    test = f"{p} > 0.1" if p else f"{w.pick(has_axes)}.sum() > 0"
    ways = [f"lax.cond({test}, {f[0]}, {g[0]}, {x})"]
    ways.append(f"lax.switch(({test}).astype('int32') * 2, [{f[0]}, hnp.sin, {g[0]}], {x})")
    return w.rng.choice(ways), f[1] + g[1]


def effectful(w: Any) -> Any:
    """Effects with a handler within the lane."""
    x = w.pick(is_float)
    if x is None:
        return None
    f, g = w.fresh("f"), w.fresh("g")
    if w.rng.random() < 0.5:
        return f"hx.handle(answering)({f})({x})", f"def {f}(a):\n    return hx.perform(Ask(), hnp.cos(a)) * a\n"
    text = f"def {g}(c, x):\n    return c + hx.perform(Count()) * x.sum(), c.sum()\n"
    y = w.pick(has_axes)
    if y is None:
        return None
    return f"hx.handle(counting, 0)(lambda a: lax.scan({g}, a, {y})[0])({x})[{w.rng.randint(0, 1)}]", text


BLOCKS = {called: 3, own_rule: 2, derivative: 3, mapped: 3, loop: 4, branch: 3, effectful: 1}
WRITERS = {
    formats(UNARY, is_float, "x"): 5, formats(SINGULAR, is_float, "x"): 0.3, formats(FOLDS, has_axes, "x"): 7,
    formats(ALONG, has_axes, "x"): 7, by_rank: 9, formats(LENGTHS, has_axes, "x"): 4, formats(INTS, is_integer, "i"): 2,
    formats(BOOLS, lambda x: x.dtype == bool, "b"): 2, formats(CASTS, is_float, "x"): 1,
    formats(COMPLEX, lambda x: hnp.iscomplexobj(x), "c"): 3, pair: 6, crossed: 2, product: 5, weighted: 3, joined: 2,
    read: 4, written: 2, **BLOCKS,
}
