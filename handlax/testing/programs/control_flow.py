"""The nodes of nests: statements with bodies, each written by a function.

    @node
    def scan(a, scope): ...           ``a`` writes the text, ``scope`` has the variables

All laws are checked for a new higher-order operation once it has a node here, and a reference in ``unrolled``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .author import COUNT, NUMBER, TRUTH, Author, Node, Scope, ValueKind, listed, parenthesized

NODES: dict[str, Node] = {}


def node(write: Node) -> Node:
    """Register a node under the name of its function."""
    NODES[write.__name__] = write
    return write


def sliced(kind: ValueKind) -> ValueKind:
    """The kind of a slice along the first axis."""
    return ValueKind(kind.letter, kind.shape[1:])


def stacked(length: int, kind: ValueKind, axis: int = 0) -> ValueKind:
    """The kind of ``length`` values stacked along an axis."""
    return ValueKind(kind.letter, (*kind.shape[:axis], length, *kind.shape[axis:]))


@node
def scan(a: Author, scope: Scope) -> None:
    carried = a.kinds(scope, 0, 3)
    vectors = [(name, kind) for name, kind in scope.values if kind.shape]
    length = a.pick([None, *[kind.shape[0] for _, kind in vectors]])
    rows = [(name, kind) for name, kind in vectors if kind.shape[0] == length]
    xs = [a.recent(rows) for _ in range(a.random.randint(1, 2))] if rows else []
    length = a.random.randint(0, 3) if length is None else length
    f, inner = a.function(scope, [a.parameters(carried), a.parameters([sliced(kind) for _, kind in xs])])
    out_kinds = a.kinds(inner, 0, 2)
    a.write_return(inner, carried, out_kinds)
    operand = parenthesized([name for name, _ in xs]) if xs else f"None, {length}"
    options = a.pick(("", "", ", reverse=True", ", unroll=2", ", unroll=True", ", reverse=True, unroll=2"))
    text = f"hx.scan({f}, {a.start(scope, carried)}, {operand}{options})"
    a.let(scope, text, carried, [stacked(length, kind) for kind in out_kinds])


@node
def fori_loop(a: Author, scope: Scope) -> None:
    carried = a.kinds(scope, 1, 3)
    f, inner = a.function(scope, [(a.name("i"), COUNT), a.parameters(carried)])
    a.write_return(inner, carried)
    low, high = a.pick(("0", "1", "-1")), a.pick(("0", "2", "3"))
    options = a.pick(("", ", unroll=2"))
    if not (scope.reverse or scope.flat) and a.chance():
        high, options = f"{a.value(scope, COUNT)} % 4", ""
    a.let(scope, f"hx.fori_loop({low}, {high}, {f}, {a.start(scope, carried)}{options})", carried)


@node
def while_loop(a: Author, scope: Scope) -> None:
    if scope.flat:
        return
    carried = a.kinds(scope, 1, 2)
    carry = a.parameters([COUNT, *carried])
    test, inner = a.function(scope, [carry], depth=0)
    condition = a.pick(("", f" & ({a.value(inner, NUMBER)} < 0.4321)", f" & {a.value(inner, TRUTH)}"))
    a.line(inner, f"return ({carry[0][0]} < {a.pick((0, 2, 3))}){condition}")
    carry = a.parameters([COUNT, *carried])
    f, inner = a.function(scope, [carry])
    a.line(inner, f"return ({carry[0][0]} + 1, {a.tuple_of(inner, carried)[1:]}")
    first = a.pick(("0", f"{a.value(scope, COUNT)} % 4"))
    options = a.pick((", max_steps=4", ", max_steps=2", ", checkpoints=1", ", checkpoints=2"))
    if not scope.reverse and a.chance():
        options = ""
    start = f"({first}, {a.start(scope, carried)[1:]}"
    a.let(scope, f"hx.while_loop({test}, {f}, {start}{options})", [COUNT, *carried])


def branches(a: Author, scope: Scope, count: int, **changes: Any) -> tuple[list[ValueKind], list[str], list[str]]:
    """Write functions with equal kinds of results: these kinds, the names of the functions, and operands for them."""
    kinds = a.kinds(scope, 1, 3)
    operands = a.kinds(scope, 0, 2)
    names = []
    for _ in range(count):
        f, inner = a.function(scope, a.parameters(operands), **changes)
        a.write_return(inner, kinds)
        names.append(f)
    return kinds, names, [a.value(scope, kind) for kind in operands]


@node
def cond(a: Author, scope: Scope) -> None:
    if scope.flat:
        return
    kinds, (f, g), operands = branches(a, scope, 2)
    p = a.value(scope, a.pick((TRUTH, TRUTH, COUNT)))
    a.let(scope, f"hx.cond({', '.join([p, f, g, *operands])})", kinds)


@node
def switch(a: Author, scope: Scope) -> None:
    if scope.flat:
        return
    kinds, names, operands = branches(a, scope, a.pick((1, 2, 3)))
    index = f"{a.value(scope, COUNT)} - 1"
    a.let(scope, f"hx.switch({', '.join([index, parenthesized(names), *operands])})", kinds)


@node
def map(a: Author, scope: Scope) -> None:
    stacks = [(name, kind) for name, kind in scope.values if kind.shape]
    if not stacks:
        return
    xs, kind = a.recent(stacks)
    options = ", batch_size=2" if kind.shape[0] and a.chance() else ""
    f, inner = a.function(scope, a.parameters([sliced(kind)]), tells=scope.tells and not options)
    out_kinds = a.kinds(inner, 1, 2)
    a.write_return(inner, out_kinds)
    a.let(scope, f"hx.map({f}, {xs}{options})", [stacked(kind.shape[0], k) for k in out_kinds])


@node
def jit(a: Author, scope: Scope) -> None:
    kinds, (f,), operands = branches(a, scope, 1)
    a.let(scope, f"hx.jit({f})({', '.join(operands)})", kinds)


@node
def checkpoint(a: Author, scope: Scope) -> None:
    kinds, (f,), operands = branches(a, scope, 1)
    policy = a.pick(("", ", policy=hx.nothing", ", policy=hx.everything", ", policy=hx.some"))
    a.let(scope, f"hx.checkpoint({f}{policy})({', '.join(operands)})", kinds)


@node
def handle(a: Author, scope: Scope) -> None:
    """Write a function under a handler; effects ``tell`` in the function read and update the state of the handler."""
    kinds, (f,), operands = branches(a, scope, 1, tells=True)
    a.let(scope, f"hx.handled({f}, {a.value(scope, NUMBER)})({', '.join(operands)})", NUMBER, kinds)


@node
def vmap(a: Author, scope: Scope) -> None:
    """The lanes of ``vmap`` perform an effect once, those of the reference one by one: so bodies perform none."""
    sizes = [n for _, kind in scope.values for n in kind.shape if n]
    if not sizes:
        return
    size = a.pick(sizes)
    candidates = [(name, kind, axis) for name, kind in scope.values for axis, n in enumerate(kind.shape) if n == size]
    mapped = [a.recent(candidates) for _ in range(a.random.randint(1, 2))]
    shared = a.kinds(scope, 0, 1)
    lanes = [ValueKind(kind.letter, kind.shape[:axis] + kind.shape[axis + 1 :]) for _, kind, axis in mapped]
    f, inner = a.function(scope, a.parameters([*lanes, *shared]), tells=False)
    out_kinds = a.kinds(inner, 1, 2)
    a.write_return(inner, out_kinds)
    outs = [a.random.randint(0, min(len(kind.shape), 1)) for kind in out_kinds]
    axes = parenthesized([*[str(axis) for *_, axis in mapped], *["None"] * len(shared)])
    operands = ", ".join([*[name for name, *_ in mapped], *[a.value(scope, kind) for kind in shared]])
    text = f"hx.vmap({f}, {axes}, {parenthesized([str(axis) for axis in outs])})({operands})"
    a.let(scope, text, [stacked(size, kind, axis) for kind, axis in zip(out_kinds, outs)])


def smooth_function(a: Author, scope: Scope, **changes: Any) -> tuple[list[ValueKind], str, list[ValueKind]]:
    """Write a function of floats: the kinds of its arguments, its name, and the kinds of its results.

    It performs no effects: their operands would have tangents.
    """
    kinds = a.kinds(scope, 1, 2, "f")
    f, inner = a.function(scope, a.parameters(kinds), tells=False, **changes)
    out_kinds = a.kinds(inner, 1, 2, "f")
    a.write_return(inner, out_kinds)
    return kinds, f, out_kinds


@node
def grad(a: Author, scope: Scope) -> None:
    kinds, f, _ = smooth_function(a, scope, reverse=True)
    total, xs = a.name("g"), a.name("xs")
    a.line(scope, f"def {total}(*{xs}):")
    a.line(scope, f"    return sum([hnp.sum(y) for y in {f}(*{xs})])")
    argnums, operands = tuple(range(len(kinds))), a.tuple_of(scope, kinds)
    if a.chance():
        a.let(scope, f"hx.grad({total}, {argnums})(*{operands})", kinds)
    else:
        a.let(scope, f"hx.value_and_grad({total}, {argnums})(*{operands})", NUMBER, kinds)


@node
def jvp(a: Author, scope: Scope) -> None:
    kinds, f, out_kinds = smooth_function(a, scope)
    a.let(scope, f"hx.jvp({f}, {a.tuple_of(scope, kinds)}, {a.tuple_of(scope, kinds)})", out_kinds, out_kinds)


@node
def linearize(a: Author, scope: Scope) -> None:
    linear(a, scope, "linearize", lambda kinds, out_kinds: (kinds, out_kinds))


@node
def vjp(a: Author, scope: Scope) -> None:
    linear(a, scope, "vjp", lambda kinds, out_kinds: (out_kinds, kinds), reverse=True)


def linear(a: Author, scope: Scope, name: str, ends: Callable[..., Any], **changes: Any) -> None:
    """Write ``linearize`` or ``vjp``: results, and a linear map that is applied once or twice."""
    kinds, f, out_kinds = smooth_function(a, scope, **changes)
    operands = a.tuple_of(scope, kinds)
    results, apply = a.parameters(out_kinds), a.name("linear")
    a.line(scope, f"({listed(results)}), {apply} = hx.{name}({f}, *{operands})")
    scope.values.extend(results)
    start, end = ends(kinds, out_kinds)
    for _ in range(a.random.randint(1, 2)):
        directions = a.tuple_of(scope, start)
        a.let(scope, f"{apply}({'*' * (name == 'linearize')}{directions})", end)


def ruled_function(a: Author, scope: Scope) -> tuple[list[ValueKind], str, list[ValueKind]]:
    """Write a function for a custom rule: all floats are arguments, and it has no control flow on traced values.

    The reference traces it too, so it has no branches.
    """
    outer = [(name, kind) for name, kind in scope.values if kind.letter != "f"]
    return smooth_function(a, scope, values=outer, flat=True, reverse=True)


@node
def custom_jvp(a: Author, scope: Scope) -> None:
    kinds, f, out_kinds = ruled_function(a, scope)
    ruled, rule = a.name("g"), a.name("rule")
    a.line(scope, f"{ruled} = hx.custom_jvp({f})")
    a.line(scope, f"def {rule}(xs, dxs):")
    a.line(scope, f"    return hx.jvp({f}, xs, dxs)")
    a.line(scope, f"{ruled}.defjvp({rule})")
    a.let(scope, f"{ruled}(*{a.tuple_of(scope, kinds)})", out_kinds)


@node
def custom_vjp(a: Author, scope: Scope) -> None:
    kinds, f, out_kinds = ruled_function(a, scope)
    ruled, forth, back = a.name("g"), a.name("forth"), a.name("back")
    a.line(scope, f"{ruled} = hx.custom_vjp({f})")
    a.line(scope, f"def {forth}(*xs):")
    a.line(scope, f"    return {f}(*xs), xs")
    a.line(scope, f"def {back}(xs, cts):")
    a.line(scope, f"    return hx.vjp({f}, *xs)[1](cts)")
    a.line(scope, f"{ruled}.defvjp({forth}, {back})")
    a.let(scope, f"{ruled}(*{a.tuple_of(scope, kinds)})", out_kinds)
