"""Scoped effects: effects that take functions, and whose handler decides how these are executed.

    perform(op, f, *xs)        records f as a body; what f captures becomes operands before xs
    clause(op, body, *xs)      calls body(*xs): never, once or several times, under handlers of its own

The row of a scoped effect has the effect itself and the effects of its bodies: those that no clause answers go on to
handlers further out. Handlers cross it by the law for all higher-order operations: they perform the same effect over
transformed bodies. So a state is handed into each execution and out of it, and the state after the effect is that of
the execution whose results are the answer.

Source: Wu, Schrijvers & Hinze, "Effect Handlers in Scope" (2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from ..base.errors import BadCall, CannotCross, RegistrationError
from ..base.later_layers import LaterLayers
from ..base.stack import perform
from ..base.wrapping import name_of
from ..core.arrays import as_array
from ..core.columns import JVP, RESERVED
from ..core.parameters import annotations_of
from ..programs.closure_conversion import close_all
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from ..trees import pytrees
from ..types.array_type import ArrayType
from ..types.declared_types import leaf_types
from .recorded_bodies import body_of, same_results

_FIELDS: dict[str, Any] = {"bodies": (), "tree": None, "shared": 0, "batched": False}


class ComputedWithParts(CannotCross, TypeError, AttributeError):
    """The error of a clause that computes with what a function returns, where its effect declares that none does."""


class ResultParts(tuple[Any, ...]):
    """What a transformed function of the scoped effect ``name`` returns: its results with what was added to them.

    Values with derivatives, the state of a handler inside, whether a clause inside ended the program: a clause passes
    it on as a whole. It is a node of trees; everything else raises ComputedWithParts.
    """

    name: str

    def __new__(cls, name: str, values: Iterable[Any]) -> ResultParts:
        parts = super().__new__(cls, values)
        parts.name = name
        return parts

    def _computed_with(self, *_: Any) -> Any:
        raise ComputedWithParts(
            f"{self.name}: a clause must pass on what a function returns, as its effect declares by bodies, and "
            "computes with it.",
            hint="handle it inside: hx.grad(hx.handle(h)(f)); an effect whose clauses compute with what its functions "
            "return declares no bodies.",
        )

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":  # protocols that it has not
            raise AttributeError(name)
        return self._computed_with()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _computed_with
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _computed_with
    __neg__ = __pos__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __handlax_array__ = _computed_with


pytrees.register_pytree_node(ResultParts, lambda parts: (tuple(parts), parts.name), ResultParts)


class Scoped(HigherOrder):
    """The family of effects that take functions. Without bodies it is the effect as a user writes it, ``Attempt()``.

    ``bodies``: the functions, whose first ``shared`` operands are what they captured. ``tree``: the structure of what
    each of them returns; None: a transformed body returns ``ResultParts``. ``batched``: the bodies compute all lanes of
    a ``vmap``.
    """

    __slots__ = ()
    runs: ClassVar[str] = "scope"  # as often as a clause says
    prunes: ClassVar[bool] = False
    declares: ClassVar[Callable[..., Any] | None] = None  # the block's ``result_type``
    tree: Any
    batched: bool
    result_type = leaf_types

    @classmethod
    def adapt(cls, column: str, cell: Any) -> Any:
        """As of all operations. Raises RegistrationError for a jvp rule."""
        if column == JVP.name:
            raise RegistrationError(
                f"{cls.__name__}: a block with scopes has no jvp rule: it would get operands without the functions.",
                hint="declare diff='bodies': it is performed over the derivatives of its functions; or handle it "
                "inside: hx.grad(hx.handle(h)(f)).",
            )
        return super().adapt(column, cell)

    @property
    def transparent(self) -> bool:
        return self.diff == "bodies" and not self.own_results

    def result_tree(self, *types: ArrayType) -> Any:
        """The tree of types that a body returns, or what ``result_type(op, body, *types)`` of the block makes of it."""
        if not self.bodies:
            raise self._without_functions()
        results = self.bodies[0].out_types
        tree = self.in_structure(results)
        return tree if self.declares is None else self.declares(*[tree] * self.scopes, *types[self.shared :])

    @property
    def effects(self) -> frozenset[Any]:
        return super().effects | {self.with_bodies(()) if self.bodies else self}

    def with_bodies(self, bodies: Sequence[Program], **counts: Any) -> Any:
        """The same effect over other bodies.

        Raises: CannotCross: these return something else, and the block declares its own results.
        """
        if not bodies:
            return super().with_bodies(**_FIELDS)
        before, after = ([body.out_types for body in each] for each in (self.bodies or bodies, bodies))
        if self.own_results and before != after:
            raise self.computed_with("a transformation")
        tree = counts.pop("tree", self.tree)
        kept = tree is not None and tree.num_leaves == len(after[0])
        return super().with_bodies(bodies, tree=tree if kept else None, **counts)

    @property
    def passes_on(self) -> bool:
        """Whether the block declares that clauses answer with what one execution returned, not computing with it."""
        return "bodies" in (self.vmap, self.diff) and not self.own_results

    def computed_with(self, whose: str) -> CannotCross:
        """The error where ``whose`` values are parts of what the functions return, which clauses may compute with."""
        if self.own_results:
            return CannotCross(
                f"{self.name}: its results are not those of its function, as its block declares; what a transformation "
                "or a state adds to the function's results has no place among them.",
                hint="handle it inside: hx.grad(hx.handle(h)(f)), hx.vmap(hx.handle(h)(f)).",
            )
        return CannotCross(
            f"{self.name}: {whose} adds to what its functions return, and its clause may compute with that.",
            hint="handle it inside, as in hx.jvp(hx.handle(h)(f), ...); or, where clauses pass on what a function "
            "returns and do not compute with it, declare @hx.effect(scopes=1, diff='bodies').",
        )

    def in_structure(self, results: Sequence[Any]) -> Any:
        """What a body returns, from its flat results: the user's tree, or parts."""
        return ResultParts(self.name, results) if self.tree is None else pytrees.unflatten(self.tree, results)

    def forwards(self, result: int) -> None:
        """None: a clause decides what the results are."""

    def clause_arguments(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """The functions, and the operands after what they captured."""
        captured = operands[: self.shared]
        functions = [_function(self, body, captured) for body in self.bodies]
        return (*functions, *operands[self.shared :])

    def _without_functions(self) -> BadCall:
        functions = "a function" if self.scopes == 1 else f"{self.scopes} functions"
        return BadCall(
            f"{self.name}: it takes {functions} before its operands, got something else.",
            hint="hx.perform(op, f, *operands).",
        )

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self._names if name not in _FIELDS]
        return f"{type(self).__name__}({', '.join(shown)})"


def _function(op: Scoped, body: Program, captured: Sequence[Any]) -> Callable[..., Any]:
    """A body as the function that was performed with, of the operands alone."""
    types = body.in_types[len(captured) :]

    def function(*xs: Any) -> Any:
        operands = [as_array(x) for x in xs]
        if [(x.type.shape, x.type.dtype) for x in operands] != [(t.shape, t.dtype) for t in types]:
            raise BadCall(
                f"{op.name}: {body.name} takes ({', '.join(map(str, types))}), as it was performed with, got "
                f"({', '.join([str(x.type) for x in operands])}).",
                hint="a clause calls body(*xs); under hx.handle(h, state) body(state, *xs), which gives (state, y).",
            )
        return op.in_structure(body(*captured, *operands))

    function.__name__ = function.__qualname__ = body.name
    return function


def scoped_block(block: type) -> type:
    """The block of a scoped effect, of the family, with the fields for its bodies after its own."""
    if block.__bases__ != (object,):
        raise RegistrationError(
            f"{block.__name__}: a block with scopes has no base class, got {block.__bases__[0].__name__}.",
            hint="write its fields and result_type into the block.",
        )
    of_class = ("__dict__", "__weakref__", "__annotate_func__", "__annotations_cache__")
    namespace = {name: value for name, value in vars(block).items() if name not in of_class}
    annotations = annotations_of(block)
    defined = [name for name in namespace if name not in RESERVED and name[:2] != "__"]
    for name in (*annotations, *defined):
        if (hasattr(Scoped, name) and name != "label") or name in _FIELDS:  # a label may be what an operation is called
            what = "a field must not be called" if name in annotations else "a block must not define"
            raise RegistrationError(
                f"{block.__name__}: {what} {name!r}, which every operation with bodies has.",
                hint="choose another name.",
            )
    if "result_type" in namespace:
        namespace.update(declares=namespace.pop("result_type"), own_results=True)
    own = {"bodies": tuple[Program, ...], "tree": "Any", "shared": "int", "batched": "bool"}
    namespace["__annotations__"] = {**annotations, **own}
    return type(block.__name__, (Scoped,), {**namespace, **_FIELDS})


def perform_scoped(op: Any, *arguments: Any) -> Any:
    """Perform a scoped effect: record its functions, and make what they capture operands.

    Raises: BadCall: the first arguments are no functions. TreeMismatch, StateTypeError: the functions give different
    trees or types.
    """
    functions = arguments[: op.scopes]
    if len(functions) < op.scopes or not all(map(callable, functions)):
        raise op._without_functions()
    operands = [as_array(x) for x in arguments[op.scopes :]]
    types = [x.type for x in operands]
    recorded = [body_of(name_of(f), f, types, op.name) for f in functions]
    bodies, captured = close_all(same_results(op.name, recorded, range(len(recorded))))
    scoped = op.with_bodies(bodies, tree=recorded[0].structure, shared=len(captured))
    results = perform(scoped, *captured, *operands)
    return pytrees.unflatten(pytrees.structure(scoped.result_tree(*[x.type for x in captured], *types)), results)


LaterLayers.scoped_block, LaterLayers.perform_scoped = staticmethod(scoped_block), staticmethod(perform_scoped)
