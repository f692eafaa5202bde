"""Shapes with names of sizes: ``symbolic_shapes(f, "batch, 64", "64, n")`` lists the shape of every value in a program.

    python examples/interpreters/symbolic_shapes.py

The arguments have sizes that are names, and the program is recorded for all of their values at once. Its equations are
interpreted by types: an operation's ``result_type`` computes the type of its result from those of its operands, in the
bodies of loops, branches and compiled functions, in lanes and in gradients. A size is a polynomial in the names, and so
is the number of bytes; which value is the largest depends on what the names stand for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import handlax as hx
from handlax import export, lax, nn
from handlax import numpy as hnp
from handlax.core import Literal


class Value(NamedTuple):
    """The result of an operation: its type, the source line, and the operations around it, outermost first."""

    type: Any
    op: str
    file: str
    line: int
    around: tuple[str, ...]

    @property
    def bytes(self) -> Any:
        """A polynomial in the names of sizes."""
        return math.prod(self.type.shape) * self.type.dtype.itemsize

    def at(self, **sizes: int) -> tuple[int, ...]:
        """The shape in numbers, where the symbols have these values: ``at(n=3)``."""
        return tuple([evaluated(size, sizes) for size in self.type.shape])

    def __str__(self) -> str:
        place = f"{self.file.rpartition('/')[2]}:{self.line}"
        return f"{place:>22}  {' > '.join([*self.around, self.op]):<28} {self.type!s:<28} {self.bytes} bytes"


def evaluated(size: Any, sizes: dict[str, int]) -> int:
    """A polynomial in names, which prints as Python reads it, for sizes that are known."""
    functions = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}
    return eval(str(size).replace("^", "**"), functions, sizes)


def inside(op: Any, types: Sequence[Any]) -> list[Any]:
    """The types that the bodies of an operation are given: of stacks the slices."""
    _, shared, carry, each = op.groups(types)
    return [*shared, *carry, *[t.update(shape=t.shape[1:]) if op.stacks else t for t in each]]


def interpreted(program: Any, types: Sequence[Any], around: tuple[str, ...] = ()) -> Iterator[Value]:
    """The values of a program whose arguments have these types."""
    known = dict(zip(program.invars, types))
    for eqn in program.eqns:
        op, site = eqn.op, eqn.site
        operands = [v.aval if isinstance(v, Literal) else known[v] for v in eqn.operands]
        for body in op.bodies if op.bodied else ():
            yield from interpreted(body, inside(op, operands), (*around, op.name))
        results = op.as_results(op.result_type(*operands))
        yield from [Value(t, op.name, site.file, site.line, around) for t in results]
        known.update(zip(eqn.outvars, results))


def symbolic_shapes(
    f: Callable[..., Any], *shapes: str, dtype: Any = "float32", constraints: Sequence[str] = ()
) -> list[Value]:
    """The values of ``f`` of arrays with these shapes, in order; ``constraints``: what is known of the sizes.

    Raises: ShapeMismatch, and what operations raise: the shapes do not fit for all sizes.
    """
    scope = export.SymbolicScope(constraints)
    specs = [hx.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype) for shape in shapes]
    program = hx.make_program(f)(*specs)
    return [*interpreted(program, program.in_avals)]


def largest(values: Sequence[Value], **sizes: int) -> Value:
    """The value with the most bytes for sizes that are known."""
    return max(values, key=lambda value: evaluated(value.bytes, sizes))


def attention(x: Any, w: Any) -> Any:
    """Attention over a sequence, and a layer in a loop; the mean."""
    weights = nn.softmax(x @ x.T)
    y = weights @ x
    y = lax.fori_loop(0, 4, lambda i, y: hnp.tanh(y @ w @ w.T), y)
    return hnp.mean(y)


def main() -> None:
    shapes = ("time, width", "width, hidden")
    values = symbolic_shapes(hx.grad(hx.jit(attention), argnums=1), *shapes)
    print("\n".join(map(str, values)))
    long, wide = largest(values, time=4096, width=64, hidden=64), largest(values, time=16, width=64, hidden=64)
    print(f"largest for long sequences: {long.type}, for short ones: {wide.type}")
    assert long.at(time=4096, width=64, hidden=64) == (4096, 4096)
    try:
        symbolic_shapes(lambda x, w: x @ w.T, *shapes)
    except hx.errors.ShapeMismatch as error:
        print(error.what)


if __name__ == "__main__":
    main()
