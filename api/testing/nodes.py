"""The nodes of nests: what has bodies, each a function that writes one as a statement.

    @node
    def scan(a, scope): ...           ``a`` writes, ``scope`` is what the statement sees

A new higher-order operation is held against all laws by one node here, and one line in ``unrolled``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .author import COUNT, NUMBER, TRUTH, Author, Kind, Node, Scope, listed, parenthesized

NODES: dict[str, Node] = {}


def node(write: Node) -> Node:
    NODES[write.__name__] = write
    return write


def sliced(kind: Kind) -> Kind:
    return Kind(kind.letter, kind.shape[1:])


def stacked(length: int, kind: Kind, axis: int = 0) -> Kind:
    return Kind(kind.letter, (*kind.shape[:axis], length, *kind.shape[axis:]))


@node
def scan(a: Author, scope: Scope) -> None:
    carried = a.kinds(scope, 0, 3)
    vectors = [(name, kind) for name, kind in scope.values if kind.shape]
    length = a.pick([None, *[kind.shape[0] for _, kind in vectors]])
    rows = [(name, kind) for name, kind in vectors if kind.shape[0] == length]
    xs = [a.late(rows) for _ in range(a.random.randint(1, 2))] if rows else []
    length = a.random.randint(0, 3) if length is None else length
    f, inner = a.function(scope, [a.parameters(carried), a.parameters([sliced(kind) for _, kind in xs])])
    made = a.kinds(inner, 0, 2)
    a.give(inner, carried, made)
    given = parenthesized([name for name, _ in xs]) if xs else f"None, {length}"
    options = a.pick(("", "", ", reverse=True", ", unroll=2", ", unroll=True", ", reverse=True, unroll=2"))
    text = f"hx.scan({f}, {a.start(scope, carried)}, {given}{options})"
    a.bind_two(scope, carried, [stacked(length, kind) for kind in made], text)


@node
def fori_loop(a: Author, scope: Scope) -> None:
    carried = a.kinds(scope, 1, 3)
    f, inner = a.function(scope, [(a.name("i"), COUNT), a.parameters(carried)])
    a.give(inner, carried)
    low, high = a.pick(("0", "1", "-1")), a.pick(("0", "2", "3"))
    options = a.pick(("", ", unroll=2"))
    if not (scope.reverse or scope.flat) and a.chance():
        high, options = f"{a.value(scope, COUNT)} % 4", ""
    a.bind(scope, carried, f"hx.fori_loop({low}, {high}, {f}, {a.start(scope, carried)}{options})")


@node
def while_loop(a: Author, scope: Scope) -> None:
    if scope.flat:
        return
    carried = a.kinds(scope, 1, 2)
    carry = a.parameters([COUNT, *carried])
    test, inner = a.function(scope, [carry], depth=0)
    asked = a.pick(("", f" & ({a.value(inner, NUMBER)} < 0.4321)", f" & {a.value(inner, TRUTH)}"))
    a.line(inner, f"return ({carry[0][0]} < {a.pick((0, 2, 3))}){asked}")
    again = a.parameters([COUNT, *carried])
    f, inner = a.function(scope, [again])
    a.line(inner, f"return ({again[0][0]} + 1, {a.given(inner, carried)[1:]}")
    first = a.pick(("0", f"{a.value(scope, COUNT)} % 4"))
    options = a.pick((", max_steps=4", ", max_steps=2", ", checkpoints=1", ", checkpoints=2"))
    if not scope.reverse and a.chance():
        options = ""
    start = f"({first}, {a.start(scope, carried)[1:]}"
    a.bind(scope, [COUNT, *carried], f"hx.while_loop({test}, {f}, {start}{options})")


def branches(a: Author, scope: Scope, count: int, **changes: Any) -> tuple[list[Kind], list[str], list[str]]:
    """Functions that give the same kinds: the kinds, the functions, and their operands."""
    kinds = a.kinds(scope, 1, 3)
    operands = a.kinds(scope, 0, 2)
    names = []
    for _ in range(count):
        f, inner = a.function(scope, a.parameters(operands), **changes)
        a.give(inner, kinds)
        names.append(f)
    return kinds, names, [a.value(scope, kind) for kind in operands]


@node
def cond(a: Author, scope: Scope) -> None:
    if scope.flat:
        return
    kinds, (f, g), operands = branches(a, scope, 2)
    p = a.value(scope, a.pick((TRUTH, TRUTH, COUNT)))
    a.bind(scope, kinds, f"hx.cond({', '.join([p, f, g, *operands])})")


@node
def switch(a: Author, scope: Scope) -> None:
    if scope.flat:
        return
    kinds, names, operands = branches(a, scope, a.pick((1, 2, 3)))
    index = f"{a.value(scope, COUNT)} - 1"
    a.bind(scope, kinds, f"hx.switch({', '.join([index, parenthesized(names), *operands])})")


@node
def map(a: Author, scope: Scope) -> None:
    stacks = [(name, kind) for name, kind in scope.values if kind.shape]
    if not stacks:
        return
    xs, kind = a.late(stacks)
    options = ", batch_size=2" if kind.shape[0] and a.chance() else ""
    f, inner = a.function(scope, a.parameters([sliced(kind)]), tells=scope.tells and not options)
    made = a.kinds(inner, 1, 2)
    a.give(inner, made)
    a.bind(scope, [stacked(kind.shape[0], k) for k in made], f"hx.map({f}, {xs}{options})")


@node
def jit(a: Author, scope: Scope) -> None:
    kinds, (f,), operands = branches(a, scope, 1)
    a.bind(scope, kinds, f"hx.jit({f})({', '.join(operands)})")


@node
def checkpoint(a: Author, scope: Scope) -> None:
    kinds, (f,), operands = branches(a, scope, 1)
    policy = a.pick(("", ", policy=hx.nothing", ", policy=hx.everything", ", policy=hx.some"))
    a.bind(scope, kinds, f"hx.checkpoint({f}{policy})({', '.join(operands)})")


@node
def handle(a: Author, scope: Scope) -> None:
    """A state that ``tell`` reads and changes."""
    kinds, (f,), operands = branches(a, scope, 1, tells=True)
    a.bind_beside(scope, NUMBER, kinds, f"hx.handled({f}, {a.value(scope, NUMBER)})({', '.join(operands)})")


@node
def vmap(a: Author, scope: Scope) -> None:
    """Lanes perform each effect together, the reference lane by lane: they tell nothing to a handler outside."""
    sizes = [n for _, kind in scope.values for n in kind.shape if n]
    if not sizes:
        return
    size = a.pick(sizes)
    places = [(name, kind, axis) for name, kind in scope.values for axis, n in enumerate(kind.shape) if n == size]
    mapped = [a.late(places) for _ in range(a.random.randint(1, 2))]
    whole = a.kinds(scope, 0, 1)
    lanes = [Kind(kind.letter, kind.shape[:axis] + kind.shape[axis + 1 :]) for _, kind, axis in mapped]
    f, inner = a.function(scope, a.parameters([*lanes, *whole]), tells=False)
    made = a.kinds(inner, 1, 2)
    a.give(inner, made)
    outs = [a.random.randint(0, min(len(kind.shape), 1)) for kind in made]
    axes = parenthesized([*[str(axis) for *_, axis in mapped], *["None"] * len(whole)])
    given = ", ".join([*[name for name, *_ in mapped], *[a.value(scope, kind) for kind in whole]])
    text = f"hx.vmap({f}, {axes}, {parenthesized([str(axis) for axis in outs])})({given})"
    a.bind(scope, [stacked(size, kind, axis) for kind, axis in zip(made, outs)], text)


def smooth_function(a: Author, scope: Scope, **changes: Any) -> tuple[list[Kind], str, list[Kind]]:
    """A function of floats: the kinds of its arguments, its name, and the kinds of its results.

    It performs nothing for a handler outside: a derivative's operands must not reach one.
    """
    kinds = a.kinds(scope, 1, 2, "f")
    f, inner = a.function(scope, a.parameters(kinds), tells=False, **changes)
    made = a.kinds(inner, 1, 2, "f")
    a.give(inner, made)
    return kinds, f, made


@node
def grad(a: Author, scope: Scope) -> None:
    kinds, f, _ = smooth_function(a, scope, reverse=True)
    total, xs = a.name("g"), a.name("xs")
    a.line(scope, f"def {total}(*{xs}):")
    a.line(scope, f"    return sum([hnp.sum(y) for y in {f}(*{xs})])")
    numbers, given = tuple(range(len(kinds))), a.given(scope, kinds)
    if a.chance():
        a.bind(scope, kinds, f"hx.grad({total}, {numbers})(*{given})")
    else:
        a.bind_beside(scope, NUMBER, kinds, f"hx.value_and_grad({total}, {numbers})(*{given})")


@node
def jvp(a: Author, scope: Scope) -> None:
    kinds, f, made = smooth_function(a, scope)
    a.bind_two(scope, made, made, f"hx.jvp({f}, {a.given(scope, kinds)}, {a.given(scope, kinds)})")


@node
def linearize(a: Author, scope: Scope) -> None:
    linear(a, scope, "linearize", lambda kinds, made: (kinds, made))


@node
def vjp(a: Author, scope: Scope) -> None:
    linear(a, scope, "vjp", lambda kinds, made: (made, kinds), reverse=True)


def linear(a: Author, scope: Scope, name: str, ends: Callable[..., Any], **changes: Any) -> None:
    """A transformation that gives the results and a linear map, which is used once or twice."""
    kinds, f, made = smooth_function(a, scope, **changes)
    given = a.given(scope, kinds)
    results, apply = a.parameters(made), a.name("linear")
    a.line(scope, f"({listed(results)}), {apply} = hx.{name}({f}, *{given})")
    scope.values.extend(results)
    start, end = ends(kinds, made)
    for _ in range(a.random.randint(1, 2)):
        directions = a.given(scope, start)
        a.bind(scope, end, f"{apply}({'*' * (name == 'linearize')}{directions})")


def ruled_function(a: Author, scope: Scope) -> tuple[list[Kind], str, list[Kind]]:
    """A function for a rule: floats come as arguments, and it can be traced without values.

    The reference records it too, so that it has no branches.
    """
    outer = [(name, kind) for name, kind in scope.values if kind.letter != "f"]
    return smooth_function(a, scope, values=outer, flat=True, reverse=True)


@node
def custom_jvp(a: Author, scope: Scope) -> None:
    kinds, f, made = ruled_function(a, scope)
    ruled, rule = a.name("g"), a.name("rule")
    a.line(scope, f"{ruled} = hx.custom_jvp({f})")
    a.line(scope, f"def {rule}(xs, dxs):")
    a.line(scope, f"    return hx.jvp({f}, xs, dxs)")
    a.line(scope, f"{ruled}.defjvp({rule})")
    a.bind(scope, made, f"{ruled}(*{a.given(scope, kinds)})")


@node
def custom_vjp(a: Author, scope: Scope) -> None:
    kinds, f, made = ruled_function(a, scope)
    ruled, forth, back = a.name("g"), a.name("forth"), a.name("back")
    a.line(scope, f"{ruled} = hx.custom_vjp({f})")
    a.line(scope, f"def {forth}(*xs):")
    a.line(scope, f"    return {f}(*xs), xs")
    a.line(scope, f"def {back}(xs, cts):")
    a.line(scope, f"    return hx.vjp({f}, *xs)[1](cts)")
    a.line(scope, f"{ruled}.defvjp({forth}, {back})")
    a.bind(scope, made, f"{ruled}(*{a.given(scope, kinds)})")
