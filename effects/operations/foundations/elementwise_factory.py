"""The class of an elementwise operation and its public function, from its formula and rules.

    Sin = elementwise("sin", FLOATING, np.sin, jvp=lambda x, dx: dx * cos(x), lower="sine")

Operands have one dtype and one shape, except that an operand of rank 0 is broadcast to the shape of the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from types import FunctionType
from typing import Any, ClassVar

from ...base.errors import BadCall, DTypeMismatch, RegistrationError, ShapeMismatch, text_of
from ...base.stack import current, perform
from ...base.wrapping import renamed
from ...core import columns
from ...core.arrays import Array, as_array, as_arrays
from ...core.operation import Memo, Operation, register_operation_name
from ...sharding.sharding_rules import alike
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import FOUR_BITS, INTEGER, SIGNED, UNSIGNED, int4, uint4
from .accuracy import check_accuracy
from .half_precision import in_bytes, narrow
from .shapes import broadcast, broadcast_in_dim, move_axis, sum_all

Function = Callable[..., Array]


def batch(op: Operation, dims: tuple[int | None, ...], *operands: Any) -> tuple[Any, int]:
    """The batch rule: the operation itself, with mapped dimensions at one position and lower ranks broadcast."""
    first = dims[0]
    if len(operands) == 1:
        return perform(op, *operands), first  # type: ignore[return-value]
    shape = operands[0].type.shape
    if all(d == first and x.type.shape == shape for d, x in zip(dims, operands)):
        return perform(op, *operands), first  # type: ignore[return-value]
    rank = max(len(x.type.shape) - (d is not None) for d, x in zip(dims, operands))
    if rank == 0:  # unmapped operands are scalars, which need no broadcast
        return perform(op, *operands), 0
    aligned = []
    full: tuple[int, ...] = ()
    for d, x in zip(dims, operands):
        if d is not None:
            x = move_axis(x, d, 0) if d else x
            size = x.type.shape[0]
            if len(x.type.shape) == rank + 1:
                full = x.type.shape
        elif len(x.type.shape) == rank:
            full = full or (0, *x.type.shape)
        aligned.append(x)
    full = (size, *full[1:])
    for i, (d, x) in enumerate(zip(dims, aligned)):
        if d is not None and len(x.type.shape) == 1:
            aligned[i] = broadcast_in_dim(x, full, (0,))
        elif d is None and x.type.shape:
            aligned[i] = broadcast_in_dim(x, full, tuple(range(1, rank + 1)))
    return perform(op, *aligned), 0


class Elementwise(Operation):
    """z[i] = f(x[i], y[i], ...)."""

    __slots__ = ()
    arity: ClassVar[int] = 1
    dtypes: ClassVar[frozenset[Any]]
    computed_in_bytes: ClassVar[bool] = False  # whether ``evaluate`` gets 4-bit integers as bytes
    batch = batch
    sharding_rule = alike
    result_dtype: ClassVar[Any] = None  # operand dtype -> result dtype; None: the same

    def result_type(self, *types: ArrayType) -> ArrayType:
        if len(types) != self.arity:
            raise BadCall(f"{self.name}: it takes {self.arity} operand{'s' * (self.arity != 1)}, got {len(types)}.")
        first = types[0]
        dtype = first.dtype
        shape = first.shape
        weak = first.weak
        if dtype not in self.dtypes:
            raise DTypeMismatch(f"{self.name}: does not take {dtype}.", hint=_takes(self))
        for other in types[1:]:
            if other.dtype != dtype:
                raise DTypeMismatch(
                    f"{self.name}: operands must have one dtype, got {' and '.join(map(str, types))}.",
                    hint="hx.numpy promotes; lax is strict: convert with lax.convert_element_type.",
                )
            if other.shape != shape and other.shape:
                if shape:
                    raise ShapeMismatch(
                        f"{self.name}: shapes must be equal, got {' and '.join(map(str, types))}.",
                        hint="hx.numpy broadcasts; lax repeats sizes 1 of equal ranks: use lax.broadcast_in_dim.",
                    )
                shape = other.shape
            weak = weak and other.weak
        if self.result_dtype is not None:
            dtype = self.result_dtype(dtype)
            weak = weak and dtype.kind != "b"
        return array_type(shape, dtype, weak)

    def numpy_function(self, types: Sequence[ArrayType]) -> Callable[..., Any] | None:
        if types[0].dtype in FOUR_BITS:
            return None
        cell = columns.EVALUATE.cell(type(self))
        return None if _takes_op(cell) else narrow(cell, types)

    @classmethod
    def adapt(cls, column: str, cell: Any) -> Callable[..., Any]:
        """The rule of a cell; a cell without the parameter ``op`` is called with the operands only."""
        if column == "jvp":
            return cell if _takes_op(cell) else derivative(cls, cell)
        if column not in ("evaluate", "decompose"):
            return cell
        rule = cell if _takes_op(cell) else lambda op, *operands: cell(*operands)
        return in_bytes(rule) if column == "evaluate" and cls.computed_in_bytes else rule


def _takes_op(cell: Any) -> bool:
    code = getattr(cell, "__code__", None)
    return code is not None and code.co_varnames[:1] == ("op",)


def _takes(op: Operation) -> str:
    return f"{op.name} takes {', '.join(sorted(str(d) for d in op.dtypes or ()))}."


def elementwise(
    name: str,
    dtypes: Iterable[Any],
    evaluate: Callable[..., Any],
    *,
    arity: int = 1,
    result: Callable[[Any], Any] | None = None,
    jvp: Any = columns.zero,
    transpose: Callable[..., Any] | None = None,
    decompose: Callable[..., Any] | None = None,
    lower: Any = None,
    flops: Any = None,
    jet: Callable[..., Any] | None = None,
    rounding: str = "loose",
    costly: bool = False,
    linear_in: slice | None = None,
    exempt: dict[str, str] | None = None,
    doc: str | None = None,
) -> type[Operation]:
    """The class of an elementwise operation, with its rules.

    Args:
        dtypes: the dtypes that operands may have; all operands have the same one. All integers are those of 4 bits
            too, for which ``evaluate`` gets bytes, unless one of them is named.
        evaluate: a NumPy function; its result is converted to the operation's result type.
        result: operand dtype -> result dtype; the same one by default.
        jvp: a rule of ``columns`` such as ``linear``, or for each operand a function ``(*operands, dx)`` or
            ``(*operands, dx, out)`` that gives its term in the tangent sum; None for an operand without a derivative.
        decompose: the same as a function of arrays that performs other operations.
        lower: the name of a StableHLO or CHLO operation, or a function ``(op, emit, *values)``; by ``decompose`` if it
            is left out.
        flops: a cost rule of ``columns``; one operation per element of the result by default.
        jet: the Taylor series of the result from those of the operands, where it is cheaper than by the derivative.
        rounding: "correct" where the result is the float nearest to the exact one, whoever computes it; "sum" or
            "product" of one that is too, but that XLA may fuse to a multiply-add.
        costly: whether XLA computes the result once where several kernels read it, rather than in each of them.
    """
    class_name = "".join(part.capitalize() for part in name.split("_"))
    module = sys._getframe(1).f_globals["__name__"]
    namespace = {
        "__slots__": (), "__module__": module, "__doc__": doc or f"{name}, elementwise.", "name": name, "arity": arity,
        "dtypes": frozenset(dtypes), "memo": Memo(), "rounding": rounding, "costly": costly,
        "linear_in": linear_in, "exempt": exempt or {},
    }
    named = frozenset(dtypes)
    if not named & FOUR_BITS and named & INTEGER:
        four_bits = [narrow for narrow, family in ((int4, SIGNED), (uint4, UNSIGNED)) if family <= named]
        namespace |= {"dtypes": named.union(four_bits), "computed_in_bytes": True}
    kind = type(class_name, (Elementwise,), namespace)
    kind.result_dtype = staticmethod(result) if result is not None else None  # type: ignore[attr-defined]
    kind.__dataclass_fields__ = {}  # type: ignore[attr-defined]
    cells = {
        "evaluate": evaluate, "jvp": jvp, "transpose": transpose, "decompose": decompose, "lower": lower,
        "flops": flops, "jet": jet,
    }
    for column, cell in cells.items():
        if cell is not None:
            columns.COLUMNS[column].rule(kind)(cell)
    register_operation_name(kind)
    return kind


def _takes_result(kind: type[Elementwise], term: Callable[..., Any]) -> bool:
    """Whether a term of the derivative takes the result too, by its parameters without defaults.

    Raises: RegistrationError: it takes neither operands and tangent nor these and the result.
    """
    if type(term) is FunctionType:
        needed = term.__code__.co_argcount - len(term.__defaults__ or ())
    else:
        needed = sum([p.default is p.empty and p.kind < p.VAR_POSITIONAL for p in signature(term).parameters.values()])
    more = needed - kind.arity
    if more not in (1, 2):
        raise RegistrationError(
            f"{kind.name}: a term of the derivative takes {kind.arity} operands, a tangent and at will the result, "
            f"got {needed} parameters without defaults."
        )
    return more == 2


def derivative(kind: type[Elementwise], cells: Any) -> Callable[..., Any]:
    """The jvp rule: the sum of one tangent term per operand; ``cells`` are those of ``elementwise``.

    Raises: RegistrationError: there are not as many terms as operands, or one takes something else.
    """
    terms, arity = cells if isinstance(cells, tuple) else (cells,), kind.arity
    if len(terms) != arity:
        raise RegistrationError(f"{kind.name}: a term of the derivative is needed for each operand, got {len(terms)}.")
    for term in terms:
        if term is not None and not callable(term):
            raise RegistrationError(f"{kind.name}: a term of the derivative must be callable, got {text_of(term)}.")
    wants_out = tuple([term is not None and _takes_result(kind, term) for term in terms])

    if arity == 1 and terms[0] is not None:
        term = terms[0]

        def unary(op: Operation, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            (x,) = primals
            y = perform(op, x)
            return y, term(x, tangents[0], y) if wants_out[0] else term(x, tangents[0])

        return unary

    def rule(op: Operation, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        y = perform(op, *primals)
        dy = None
        for term, out, dx in zip(terms, wants_out, tangents):
            if dx is None or term is None:
                continue
            part = term(*primals, dx, y) if out else term(*primals, dx)
            if part.type.shape != y.type.shape:
                part = broadcast(part, y.type.shape)
            dy = part if dy is None else columns.add_tangents(dy, part)
        return y, dy

    return rule


def unbroadcast(ct: Any, type: ArrayType) -> Any:
    """The cotangent of an operand of this type: the sum of ``ct`` where an operand of rank 0 was broadcast."""
    return sum_all(ct) if not type.shape and ct.type.shape else ct


def repeated(*xs: Any) -> Sequence[Array]:
    """All as arrays, in which dimensions of size 1 are repeated to the size that others of the same rank have there.

    Arrays whose shapes still differ are returned as they are: the operation refuses them.
    """
    return _repeated(as_arrays(*xs))


def _repeated(arrays: Sequence[Array]) -> Sequence[Array]:
    shapes = {x.type.shape for x in arrays if x.type.shape}
    if len(shapes) < 2 or len(set(map(len, shapes))) > 1:
        return arrays
    sizes = [set(column) - {1} or {1} for column in zip(*shapes)]
    if any(len(size) > 1 for size in sizes):
        return arrays
    shape = tuple([size.pop() for size in sizes])
    return [broadcast(x, shape) if x.type.shape else x for x in arrays]


def surface(kind: type[Operation], name: str | None = None, *, accuracy: int = 0) -> Function:
    """The public function of an operation without fields: it performs the operation on ``as_array`` of its arguments.

    Args:
        accuracy: how far its results may be from the exact ones, in units in the last place, where the function has
            JAX's parameter ``accuracy``, by which callers ask for as much.
    """
    op = kind()
    arity = kind.arity  # type: ignore[attr-defined]
    bound = accuracy
    if bound:
        kind.fixed_params = {"accuracy": None}  # that which is asked for is checked, and not in programs
    if arity == 1 and bound:

        def function(x: Any, *, accuracy: Any = None) -> Array:
            if accuracy is not None:
                check_accuracy(op.name, accuracy, bound, as_array(x).type)
            return current().answer(op, (x if isinstance(x, Array) else as_array(x),))

    elif arity == 1:

        def function(x: Any) -> Array:  # type: ignore[misc]
            return current().answer(op, (x if isinstance(x, Array) else as_array(x),))

    elif arity == 2:

        def function(x: Any, y: Any) -> Array:  # type: ignore[misc]
            if not (isinstance(x, Array) and isinstance(y, Array)):
                x, y = as_arrays(x, y)
            s, t = x.type.shape, y.type.shape
            if s != t and s and t:
                x, y = _repeated((x, y))
            return current().answer(op, (x, y))

    else:

        def function(*operands: Any) -> Array:  # type: ignore[misc]
            return perform(op, *repeated(*operands))

    renamed(function, name or kind.name)
    function.__doc__ = kind.__doc__
    function.__module__ = kind.__module__
    return function
