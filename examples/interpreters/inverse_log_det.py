"""Inverses: ``inverse(f, like)(y)`` gives the x of ``f(x) == y`` and the logarithm of the determinant of f's Jacobian.

    python examples/interpreters/inverse_log_det.py

The function is recorded, and its equations go in whichever direction their values are known: one whose operands are
known is performed, one whose results are known is solved for its unknown operand. So coupling layers need no word.
Source: Dinh, Sohl-Dickstein & Bengio, Density estimation using Real NVP (2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax import operations as o
from handlax.core import DropVar, Literal
from handlax.extend import Column, as_array

# (op, results, operands, types) -> (operands, log_det): operands that are None are solved for; or None, not yet
INVERSE = Column(
    "inverse", doc="unknown operands from results, and the logarithm of the determinant; without a cell it has none",
    default=lambda op, results, operands, types: None,
)
UNARY = {o.Exp: hnp.log, o.Log: hnp.exp, o.Expm1: hnp.log1p, o.Log1p: hnp.expm1, o.Tanh: hnp.arctanh,
         o.Sinh: hnp.arcsinh, o.Asinh: hnp.sinh, o.Atan: hnp.tan, o.Neg: hnp.negative, o.Sqrt: hnp.square,
         o.Logistic: lambda y: hnp.log(y) - hnp.log1p(-y)}
BINARY = {o.Add: (lambda y, k: y - k, lambda y, k: y - k), o.Sub: (lambda y, k: y + k, lambda y, k: k - y),
          o.Mul: (lambda y, k: y / k, lambda y, k: y / k), o.Div: (lambda y, k: y * k, lambda y, k: k / y)}


def known(xs: Any) -> bool:
    return all([x is not None for x in xs])


@INVERSE.rule(*UNARY, *BINARY)
def elementwise(op, results, operands, types):
    """Of one unknown operand, in the shape of the result. Forward mode gives the derivatives, whose product it is."""
    others, at = [x for x in operands if x is not None], [x is None for x in operands].index(True)
    if types[at].shape != results[0].shape or len(others) < len(operands) - 1:
        return None
    x = BINARY[type(op)][at](results[0], *others) if others else UNARY[type(op)](results[0])
    replaced = lambda x: [*operands[:at], x, *operands[at + 1 :]]
    _, slopes = hx.jvp(lambda x: hx.perform(op, *replaced(x)), (x,), (hnp.ones_like(x),))
    return replaced(x), hnp.log(abs(slopes)).sum()


@INVERSE.rule(o.Reshape, o.Transpose, o.Rev, o.Split, o.Concatenate)
def permutation(op, results, operands, types):
    """The inverse of a permutation is its transpose."""
    like = [hx.ShapeDtypeStruct(t.shape, t.dtype) for t in types]
    return hx.linear_transpose(lambda *xs: hx.perform(op, *xs), *like)(op.from_results(results)), 0.0


@INVERSE.rule(o.DotGeneral)
def product(op, results, operands, types):
    """y = x w or y = w x, of vectors or of matrices, with a square w."""
    if operands[0] is operands[1]:
        return None
    at = [x is None for x in operands].index(True)
    contracted = [axis for axis, in op.dimension_numbers[0]]
    matrix = hnp.moveaxis(operands[1 - at], contracted[1 - at], 0)
    y = hnp.moveaxis(results[0], at - 1, 0)
    x = hnp.moveaxis(hnp.linalg.solve(matrix.T, y.reshape(len(matrix), -1)).reshape(y.shape), 0, contracted[at])
    return [x, operands[1]] if at == 0 else [operands[0], x], hnp.linalg.slogdet(matrix)[1] * (y.size // len(matrix))


def crossed(op, results, operands, types):
    """Of a call or a branch the unknown operands of the body, of a scan its carry, the only unknown one."""
    selects, shared, carry, each = op.groups(operands)
    if op.runs == "once":
        return solve(op.bodies[0], operands, results)
    if op.runs == "one" and known(selects):
        solvers = [lambda body=body: solve(body, operands[1:], results) for body in op.bodies]
        inputs, log_det = lax.switch(selects[0], solvers)
        return [*selects, *inputs], log_det
    if op.runs != "loop" or not known([*shared, *each, *results[: op.carry]]) or any([x is not None for x in carry]):
        return None

    def step(state: Any, slices: Any) -> Any:
        inputs, more = solve(op.bodies[0], [*shared, *carry, *slices], state[0])
        return (op.groups(inputs).carry, state[1] + more), None

    (before, log_det), _ = lax.scan(step, (results[: op.carry], 0.0), each, op.length, reverse=not op.backwards)
    return [*shared, *before, *each], log_det


def solve(program: Any, inputs: Any, results: Any) -> Any:
    """The inputs of a program that are None, from the others and from its results; and the sum of log-determinants."""
    given = [*zip(program.invars, inputs), *zip(program.outvars, results)]
    values = {v: x for v, x in given if x is not None and not isinstance(v, Literal)}
    read = lambda v: as_array(v.val) if isinstance(v, Literal) else values.get(v)
    waiting, log_det, progress = list(program.eqns), 0.0, True
    while progress:
        left = []
        for eqn in reversed(waiting):
            operands, ys = [*map(read, eqn.operands)], [*map(read, eqn.outvars)]
            if known(operands):
                values.update(zip(eqn.outvars, ys if known(ys) else eqn.op.as_results(hx.perform(eqn.op, *operands))))
                continue
            rule = crossed if eqn.op.bodied else INVERSE.find(type(eqn.op))
            read_and_open = [y is None and not isinstance(v, DropVar) for v, y in zip(eqn.outvars, ys)]
            found = None if any(read_and_open) else rule(eqn.op, ys, operands, [v.aval for v in eqn.operands])
            if found is None:
                left.append(eqn)
                continue
            values.update({v: x for v, x in zip(eqn.operands, found[0]) if not isinstance(v, Literal)})
            log_det = log_det + found[1]
        progress, waiting = len(left) < len(waiting), left
    if not known([*map(read, program.invars)]):
        names = ", ".join(sorted({eqn.op.name for eqn in waiting}))
        raise hx.errors.MissingRule(f"inverse: the results do not determine the operands of {names}.")
    return [*map(read, program.invars)], log_det


def inverse(f: Callable[[Any], Any], like: Any) -> Callable[[Any], Any]:
    """``inverse(f, like)(f(x)) == (x, log abs det f'(x))`` for x, an array or a tree, of the type of ``like``."""
    program = hx.make_program(f)(like)
    n, m = [sum([t.size for t in types]) for types in (program.in_types, program.out_types)]
    if n != m:
        raise hx.errors.ShapeMismatch(f"inverse: a function of {n} numbers that gives {m} is no bijection.")

    def inverted(y: Any) -> Any:
        inputs, log_det = solve(program, [None] * len(program.in_types), [*map(as_array, hx.tree.leaves(y))])
        return hx.tree.unflatten(hx.tree.structure(like), inputs), log_det

    return inverted


def flow(x: Any) -> Any:
    """A linear map and four coupling layers, each of which scales and shifts one half by the other."""
    w = hnp.eye(4) + 0.3 * hnp.sin(hnp.arange(16.0).reshape(4, 4))

    def layer(x: Any, scale: Any) -> Any:
        a, b = hnp.split(x, 2)
        return hnp.concatenate([b * hnp.exp(hnp.tanh(scale * a)) + hnp.sin(a), a]), None

    return lax.scan(layer, hnp.arcsinh(x @ w), hnp.array([0.5, -1.0, 2.0, 0.3]))[0]


def main() -> None:
    x = hnp.array([0.3, -1.2, 0.8, 2.0])
    (found, log_det), (_, expected) = hx.jit(inverse(flow, x))(flow(x)), hnp.linalg.slogdet(hx.jacfwd(flow)(x))
    print(f"{found.round(3)}, log-determinant {float(log_det):.4f}, by the Jacobian {float(expected):.4f}")
    assert hnp.allclose(found, x, atol=1e-4) and abs(log_det - expected) < 1e-4


if __name__ == "__main__":
    main()
