"""The statements of nests with bodies: control flow, transformations and handlers.

    @node
    def scan(a, scope): ...                     ``a`` writes the text, ``scope`` has the variables

All laws of nests, transformations and handlers are checked for a new higher-order operation once it has a node here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .author import Statement, Unfit
from .expressions import COUNT, NUMBER, TRUTH, examples, of_kind, start, value, values
from .writer import FUNCTION, Body, Writer, text_of

NODES: dict[str, Statement] = {}
TRACED_LENGTH = "fori_loop of a traced length"  # a variant of ``fori_loop``
CHOOSING = ("cond", "switch", "while_loop", TRACED_LENGTH)  # what is executed in them depends on values


def node(write: Statement) -> Statement:
    """Register a node under the name of its function, a word of ``CONTROL`` and ``UNROLLED``."""
    NODES[write.__name__] = write
    return write


def sliced(x: Any, axis: int = 0) -> Any:
    """An example of a slice along an axis."""
    return np.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)


def stacked(length: int, x: Any, axis: int = 0) -> Any:
    """An example of ``length`` values stacked along an axis."""
    return np.zeros((*x.shape[:axis], length, *x.shape[axis:]), x.dtype)


def has_axes(x: Any) -> bool:
    return x.ndim > 0


@node
def scan(a: Writer, scope: Body) -> None:
    carried = examples(a, scope, 0, 3)
    sizes = [scope[name].shape[0] for name in scope.names if has_axes(scope[name])]
    length = a.choice([None, *sizes])
    rows = [] if length is None else [
        a.variable(scope, lambda x: has_axes(x) and x.shape[0] == length) for _ in range(a.integer(1, 2))
    ]
    f, body = a.function(scope, [tuple(carried), tuple([sliced(scope[x]) for x in rows])])
    outs = examples(a, body, 0, 2)
    a.returns(body, f"{values(a, body, carried)}, {values(a, body, outs)}")
    size = a.integer(0, 3) if length is None else length
    operand = text_of(rows) if rows else f"None, {size}"
    options = a.choice(("", "", ", reverse=True", ", unroll=2", ", unroll=True", ", reverse=True, unroll=2"))
    a.let(scope, f"hx.scan({f}, {start(a, scope, carried)}, {operand}{options})",
          (carried, [stacked(size, y) for y in outs]))


@node
def fori_loop(a: Writer, scope: Body) -> None:
    carried = examples(a, scope, 1, 3)
    f, body = a.function(scope, [COUNT, tuple(carried)])
    a.returns(body, values(a, body, carried))
    low, high = a.choice(("0", "1", "-1")), a.choice(("0", "2", "3"))
    options = a.choice(("", ", unroll=2"))
    if a.has(TRACED_LENGTH) and not scope.around & {"reverse", "rule"} and a.chance():
        high, options = f"{value(a, scope, COUNT)} % 4", ""
    a.let(scope, f"hx.fori_loop({low}, {high}, {f}, {start(a, scope, carried)}{options})", carried)


def choosing(scope: Body) -> None:
    """Raises: Unfit: values are traced here by the reference, too, so that Python cannot choose by them."""
    if "rule" in scope.around:
        raise Unfit


@node
def while_loop(a: Writer, scope: Body) -> None:
    choosing(scope)
    carried = examples(a, scope, 1, 2)
    test, body = a.function(scope, [(COUNT, *carried)], depth=0)
    counter = body.names[len(scope.names)]
    more = a.choice(("", f" & ({value(a, body, NUMBER)} < 0.4321)", f" & {value(a, body, TRUTH)}"))
    a.returns(body, f"({counter} < {a.choice((0, 2, 3))}){more}")
    f, body = a.function(scope, [(COUNT, *carried)])
    counter = body.names[len(scope.names)]
    a.returns(body, f"({counter} + 1, {values(a, body, carried)[1:]}")
    first = a.choice(("0", f"{value(a, scope, COUNT)} % 4"))
    options = a.choice((", max_steps=4", ", max_steps=2", ", checkpoints=1", ", checkpoints=2"))
    if "reverse" not in scope.around and a.chance():
        options = ""
    a.let(scope, f"hx.while_loop({test}, {f}, ({first}, {start(a, scope, carried)[1:]}{options})", [COUNT, *carried])


def branches(a: Writer, scope: Body, count: int, **surroundings: Any) -> tuple[list[str], str, list[Any]]:
    """Write functions with results of equal kinds: their names, operands for them after commas, and the results."""
    results, parameters = examples(a, scope, 1, 3), examples(a, scope, 0, 2)
    names = []
    for _ in range(count):
        f, body = a.function(scope, parameters, **surroundings)
        a.returns(body, values(a, body, results))
        names.append(f)
    return names, "".join([f", {value(a, scope, x)}" for x in parameters]), results


def applied(a: Writer, scope: Body, text: str) -> None:
    """Write a function, and a call of what a transformation makes of it, ``{f}`` in the text."""
    (f,), operands, results = branches(a, scope, 1)
    a.let(scope, f"{text.format(f=f)}({operands[2:]})", results)


@node
def cond(a: Writer, scope: Body) -> None:
    choosing(scope)
    (f, g), operands, results = branches(a, scope, 2)
    a.let(scope, f"hx.cond({value(a, scope, a.choice((TRUTH, TRUTH, COUNT)))}, {f}, {g}{operands})", results)


@node
def switch(a: Writer, scope: Body) -> None:
    choosing(scope)
    names, operands, results = branches(a, scope, a.choice((1, 2, 3)))
    a.let(scope, f"hx.switch({value(a, scope, COUNT)} - 1, {text_of(names)}{operands})", results)


@node
def map(a: Writer, scope: Body) -> None:
    xs = a.variable(scope, has_axes)
    options = ", batch_size=2" if scope[xs].shape[0] and a.chance() else ""
    f, body = a.function(scope, [sliced(scope[xs])], without=("handler",) if options else ())
    outs = examples(a, body, 1, 2)
    a.returns(body, values(a, body, outs))
    a.let(scope, f"hx.map({f}, {xs}{options})", [stacked(scope[xs].shape[0], y) for y in outs])


@node
def jit(a: Writer, scope: Body) -> None:
    applied(a, scope, "hx.jit({f})")


@node
def checkpoint(a: Writer, scope: Body) -> None:
    policy = a.choice(("", ", policy=hx.nothing", ", policy=hx.everything", ", policy=hx.some"))
    applied(a, scope, f"hx.checkpoint({{f}}{policy})")


@node
def handled(a: Writer, scope: Body) -> None:
    """A function under a handler; effects ``tell`` in the function read and update the state of the handler."""
    (f,), operands, results = branches(a, scope, 1, within=("handler",))
    a.let(scope, f"hx.handled({f}, {value(a, scope, NUMBER)})({operands[2:]})", (NUMBER, results))


@node
def vmap(a: Writer, scope: Body) -> None:
    """The lanes of ``vmap`` perform an effect once, those of the reference one by one: so bodies perform none."""
    sizes = [n for name in scope.names for n in scope[name].shape if n]
    if not sizes:
        raise Unfit
    size = a.choice(sizes)
    mapped = [a.variable(scope, lambda x: size in x.shape) for _ in range(a.integer(1, 2))]
    axes = [a.choice([d for d, n in enumerate(scope[x].shape) if n == size]) for x in mapped]
    shared = examples(a, scope, 0, 1)
    lanes = [sliced(scope[x], axis) for x, axis in zip(mapped, axes)]
    f, body = a.function(scope, [*lanes, *shared], without=("handler",))
    results = examples(a, body, 1, 2)
    a.returns(body, values(a, body, results))
    ins = text_of([*[str(axis) for axis in axes], *["None"] * len(shared)])
    outs = [a.integer(0, min(y.ndim, 1)) for y in results]
    operands = ", ".join([*mapped, *[value(a, scope, x) for x in shared]])
    a.let(scope, f"hx.vmap({f}, {ins}, {tuple(outs)})({operands})",
          [stacked(size, y, axis) for y, axis in zip(results, outs)])


def smooth_function(a: Writer, scope: Body, **surroundings: Any) -> tuple[str, list[Any], list[Any]]:
    """Write a function of floats: its name, and examples of its arguments and of its results.

    It performs no effects: their operands would have tangents.
    """
    parameters = examples(a, scope, 1, 2, "f")
    f, body = a.function(scope, parameters, without=("handler",), **surroundings)
    results = examples(a, body, 1, 2, "f")
    a.returns(body, values(a, body, results))
    return f, parameters, results


@node
def grad(a: Writer, scope: Body) -> None:
    f, parameters, _ = smooth_function(a, scope, within=("reverse",))
    total = a.fresh("g")
    a.line(scope, f"def {total}(*xs):\n    return sum([hnp.sum(y) for y in {f}(*xs)])")
    name, results = a.choice((("grad", parameters), ("value_and_grad", (NUMBER, parameters))))
    a.let(scope, f"hx.{name}({total}, {tuple(range(len(parameters)))})(*{values(a, scope, parameters)})", results)


@node
def jvp(a: Writer, scope: Body) -> None:
    f, parameters, results = smooth_function(a, scope)
    a.let(scope, f"hx.jvp({f}, {values(a, scope, parameters)}, {values(a, scope, parameters)})", (results, results))


@node
def linearize(a: Writer, scope: Body) -> None:
    f, parameters, results = smooth_function(a, scope)
    linear(a, scope, f"hx.linearize({f}, *{values(a, scope, parameters)})", results, parameters, results, "*")


@node
def vjp(a: Writer, scope: Body) -> None:
    f, parameters, results = smooth_function(a, scope, within=("reverse",))
    linear(a, scope, f"hx.vjp({f}, *{values(a, scope, parameters)})", results, results, parameters)


def linear(a: Writer, scope: Body, text: str, y: Any, start: list[Any], end: list[Any], star: str = "") -> None:
    """Write what gives results ``y`` and a linear map from ``start`` to ``end``, which is applied once or twice."""
    _, apply = a.let(scope, text, (y, FUNCTION))
    for _ in range(a.integer(1, 2)):
        a.let(scope, f"{apply}({star}{values(a, scope, start)})", end)


def ruled(a: Writer, scope: Body, text: str) -> None:
    """Write a function ``{f}``, which gets a rule as the function ``{g}``, and a call of it.

    All floats are its arguments, and it has no control flow on traced values: the reference traces it, too.
    """
    outer = [name for name in scope.names if not of_kind("f")(scope[name])]
    f, parameters, results = smooth_function(a, scope, within=("rule", "reverse"), captured=outer)
    g = a.fresh("g")
    a.line(scope, text.format(f=f, g=g))
    a.let(scope, f"{g}(*{values(a, scope, parameters)})", results)


@node
def custom_jvp(a: Writer, scope: Body) -> None:
    ruled(a, scope, "{g} = hx.custom_jvp({f})\n{g}.defjvp(lambda xs, dxs: hx.jvp({f}, xs, dxs))")


@node
def custom_vjp(a: Writer, scope: Body) -> None:
    rule = "{g}.defvjp(lambda *xs: ({f}(*xs), xs), lambda xs, cts: hx.vjp({f}, *xs)[1](cts))"
    ruled(a, scope, "{g} = hx.custom_vjp({f})\n" + rule)
