"""custom_partitioning: functions that a user partitions, in place of the compiler."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import (
    BadArgument,
    CannotCross,
    DeviceMismatch,
    EscapedBox,
    MissingUserRule,
    NotProvided,
    ShapeMismatch,
    need_function,
    shortened,
    text_of,
)
from ...effects.base.stack import BASE, Binding, current, inside, perform
from ...effects.base.tracebacks import boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.composite import Replaceable
from ...effects.control.recorded_bodies import body_of
from ...effects.core.arrays import as_array
from ...effects.core.named_axes import Axis, Bound
from ...effects.core.operation import effects_text, has_lowering, operation
from ...effects.operations.foundations.sharding_constraint import hide, reveal, states
from ...effects.programs.program import Program, derived_once
from ...effects.sharding.factor_rules import SdyShardingRule, SizedRule, parse_rule, sized
from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ...effects.sharding.sharding_rules import cut_results, one_mesh
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ..batching.divergent_devices import coherent
from ..core.static_arguments import listed_positions, merge_arguments
from ..transformations.make_program import ShapeDtypeStruct
from .custom_call import BoundArguments


# (y, ...) = body(x, ...), which over several devices is partitioned as the user's functions say
@operation
class CustomPartitioning(Replaceable):
    bodies: tuple[Program, ...]
    label: str
    partition: Any
    body_param = "call"
    param_names = {"label": "name"}

    def lower(op, emit, *values):
        return emit.partitioned(op, values)


class DevicePart(NamedTuple):
    """What each device of a mesh computes: a program of its parts of the operands, and how all arrays are cut."""

    program: Program
    mesh: Any
    operands: list[NamedSharding]
    results: list[NamedSharding]


class UserPartition:
    """How one call of a function is partitioned: the user's functions, and the arguments of the call.

    It equals itself alone: what the functions read may change.
    """

    __slots__ = ("where", "statics", "partition", "rule", "tree", "out_tree", "program")

    def __init__(
        self, where: str, statics: Sequence[Any], functions: Any, tree: Any, out_tree: Any, program: Program
    ):
        self.where = where
        self.statics = tuple(statics)
        self.partition, self.rule = functions
        self.tree = tree
        self.out_tree = out_tree
        self.program = program

    def __repr__(self) -> str:
        return f"<partition of {self.where}>"

    def sized_rule(self, mesh: Any) -> SizedRule | None:
        """The rule of factors for the shapes of the call; None: it has none.

        Raises: BadArgument: the user's function gives no rule, or one for other arrays. ShapeMismatch: it does not fit.
        """
        takes, gives = self.program.in_types, self.program.out_types
        rule = self.rule
        if callable(rule):
            structs = [[ShapeDtypeStruct(t.shape, t.dtype) for t in types] for types in (takes, gives)]
            rule = rule(*self.statics, mesh, *structs)
            text, options = rule if isinstance(rule, (tuple, list)) and len(rule) == 2 else (rule, {})
            rule = text if isinstance(text, SdyShardingRule) else parse_rule(text, **options)
        return None if rule is None else sized(self.where, rule, [t.shape for t in takes], [t.shape for t in gives])

    def __str__(self) -> str:
        """The name of the user's function and the rule, or its name, as texts of programs show them."""
        rule = name_of(self.rule) if callable(self.rule) else self.rule
        return f"{name_of(self.partition)}, sharding_rule={rule}"

    def part(self, mesh: Any, operands: Sequence[NamedSharding], results: Sequence[NamedSharding]) -> DevicePart:
        """What each device computes where the compiler would cut operands and results so.

        Raises: BadArgument, ShapeMismatch, DeviceMismatch: what the user's function gives does not fit. EscapedBox: the
        function of a part uses a traced value that is no argument.
        """
        takes, gives = self.program.in_types, self.program.out_types
        offered = [
            pytrees.unflatten(tree, [ShapeDtypeStruct(t.shape, t.dtype, sharding=_fitting(s, t)) for s, t in pairs])
            for tree, pairs in ((self.tree, zip(operands, takes)), (self.out_tree, zip(results, gives)))
        ]
        answer = self.partition(*self.statics, mesh, *offered)
        if not isinstance(answer, (tuple, list)) or len(answer) != 4:
            raise BadArgument(
                f"{self.where}: partition must return the mesh, the function of a part, the shardings of the results, "
                f"and those of the arguments, got {shortened(text_of(answer), 200)}.",
                hint="return mesh, f, result_shardings, arg_shardings.",
            )
        over, f, out_shardings, in_shardings = answer
        need_function(f"{self.where}: partition", f)
        need_same_devices(self.where, over, mesh)
        ins = self._shardings("arguments", self.tree, in_shardings, takes, mesh)
        outs = self._shardings("results", self.out_tree, out_shardings, gives, mesh)
        return DevicePart(self._recorded(f, over, ins, outs), over, ins, outs)

    def _shardings(
        self, what: str, tree: Any, shardings: Any, types: Sequence[ArrayType], mesh: Any
    ) -> list[NamedSharding]:
        """The sharding of each array. Raises: BadArgument, DeviceMismatch, ShapeMismatch: there is none that fits."""
        found, structure = pytrees.flatten(shardings, lambda leaf: isinstance(leaf, PartitionSpec))
        if structure != tree or not all([isinstance(leaf, NamedSharding) for leaf in found]):
            raise BadArgument(
                f"{self.where}: partition must return a NamedSharding for each of the {what}, {tree}, got "
                f"{shortened(text_of(shardings), 200)}.",
                hint="hx.NamedSharding(mesh, spec).",
            )
        for sharding, t in zip(found, types):
            need_same_devices(self.where, sharding.mesh, mesh)
            sharding.check_fit(self.where, lambda t=t: f"one of the {what}, {t}", t.shape)
        return list(found)

    def _recorded(
        self, f: Callable[..., Any], mesh: Any, ins: Sequence[NamedSharding], outs: Sequence[NamedSharding]
    ) -> Program:
        """The program of the function of a part, on each device of the mesh."""
        takes, gives = [
            [t.cut_by(None).update(shape=s.shard_shape(t.shape)) for t, s in zip(types, shardings)]
            for types, shardings in ((self.program.in_types, ins), (self.program.out_types, outs))
        ]
        axes = mesh.shape_tuple
        flat = lambda *xs: f(*pytrees.unflatten(self.tree, xs))
        with inside(Bound(BASE, Binding(axes, False, mesh))):
            program = body_of(self.where, flat, takes, "custom_partitioning").program
            _need_no_effects(self.where, program)
            _need_no_boxes(self.where, program)
            made = [(t.shape, t.dtype) for t in program.out_types]
            if made != [(t.shape, t.dtype) for t in gives]:
                raise ShapeMismatch(
                    f"{self.where}: the function of a part must return the parts of the results, "
                    f"{', '.join(map(str, gives))}, got {', '.join(map(str, program.out_types))}.",
                    hint="result_shardings say how large the parts are.",
                )
            return coherent(program, axes)


def _fitting(sharding: NamedSharding, t: ArrayType) -> NamedSharding:
    """A sharding with an entry for each dimension, None where the parts would not be equal."""
    entries = [*sharding.spec, *[None] * (len(t.shape) - len(sharding.spec))]
    counts = sharding.with_spec(entries).parts(len(t.shape))
    return sharding.with_spec([None if n % count else entry for n, count, entry in zip(t.shape, counts, entries)])


def need_same_devices(where: str, mesh: Any, wanted: Any) -> None:
    """Raises: DeviceMismatch: the mesh is not one of the devices of ``wanted``, in their order."""
    devices, known = [getattr(each, "_assignment", getattr(each, "size", None)) for each in (mesh, wanted)]
    if devices != known:
        raise DeviceMismatch(
            f"{where}: partition must return meshes of the devices of {wanted}, in their order, got {mesh!r}.",
            hint="return the mesh that it is called with.",
        )


def _need_no_effects(where: str, program: Program) -> None:
    """Raises: CannotCross: the program performs an effect that the handlers around it would have to answer."""
    unhandled = [effect for effect in program.effects if not isinstance(effect, Axis) and not has_lowering(effect)]
    if unhandled:
        raise CannotCross(
            f"{where}: the function of a part must handle its effects inside, got {effects_text(unhandled)}.",
            hint="partition may return hx.handle(h)(f).",
        )


def _need_no_boxes(where: str, program: Program) -> None:
    """Raises: EscapedBox: a constant of the program is a traced value."""
    for x in program.consts:
        if x.run is not None:
            raise EscapedBox(
                f"{where}: functions must use their arguments alone, got a traced {x.type} from around them.",
                hint="pass it as an argument.",
            )


class custom_partitioning:
    """A function that over several devices is partitioned as its author says.

        f(*xs) == fun(*xs)

    ``def_partition`` says how. The function itself is what is executed on one device, outside of compiled programs, in
    ``shard_map``, and in exported programs; ``vmap``, derivatives and handlers transform it, and what they make of it
    is partitioned by the compiler. ``custom_vjp`` around it keeps it whole.

    Args:
        static_argnums: the positions of arguments that are no arrays; they precede the other arguments of the
            functions of ``def_partition``.

    >>> import handlax as hx
    >>> from handlax import numpy as hnp
    >>> @custom_partitioning
    ... def spectra(x): return hnp.fft.fft(x)
    >>> def partition(mesh, args, result):                # rows are partitioned, and each is whole
    ...     rows = hx.NamedSharding(mesh, hx.P(args[0].sharding.spec[0], None))
    ...     return mesh, hnp.fft.fft, rows, (rows,)
    >>> _ = spectra.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("j",))
    >>> x = hx.device_put(hnp.ones((8, 4)), hx.NamedSharding(hx.make_mesh((4,), ("a",)), hx.P("a")))
    >>> hx.jit(spectra)(x).sharding.spec
    P('a', None)
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = ()):
        need_function("custom_partitioning", fun)
        wraps(fun)(self)
        self.fun = fun
        self._arguments = BoundArguments("custom_partitioning", fun, static_argnums, (), "static")
        self.static_argnums = listed_positions(static_argnums, "static")
        self.partition: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None

    def def_partition(
        self, partition: Callable[..., Any], infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None, decode_shardings: bool = True,
        sharding_rule: Any = None, *, reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (), permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Say how the function is partitioned; returns ``partition``.

        Args:
            partition: ``(*statics, mesh, args, results)`` to ``(mesh, f, result_shardings, arg_shardings)``. It takes
                trees of ``ShapeDtypeStruct`` with the shardings that the compiler would choose, and returns those to
                which it converts, and the function that each device executes on its parts, in which the axes of the
                mesh are bound: ``lax.psum(x, "axis")``. The compiler calls it while it compiles.
            sharding_rule: by which the compiler chooses shardings: a text with the factors of each dimension, such as
                ``"... i j, j k -> ... i k"``, an ``SdyShardingRule``, or a function ``(*statics, mesh, args, results)``
                of lists to one, or to a text and its options. Without a rule results are whole.
            reduction_factors, need_replication_factors, permutation_factors, factor_sizes: of a rule that is a text,
                as of ``SdyShardingRule``.
            infer_sharding_from_operands, propagate_user_sharding: how another partitioner of XLA chooses shardings;
                they are not called.
            decode_shardings: shardings are ``NamedSharding`` in any case.

        Raises: BadArgument: the rule is none.
        """
        need_function("def_partition", partition)
        for function in (infer_sharding_from_operands, propagate_user_sharding):
            if function is not None:
                need_function("def_partition", function)
        options = {
            "reduction_factors": reduction_factors, "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors, **factor_sizes,
        }
        if isinstance(sharding_rule, str):
            sharding_rule = parse_rule(sharding_rule, **options)
        elif any(options.values()):
            named = ", ".join([name for name, value in options.items() if value])
            raise BadArgument(
                f"def_partition: {named} belong to a sharding_rule that is a text, got {sharding_rule!r}.")
        elif not (sharding_rule is None or callable(sharding_rule) or isinstance(sharding_rule, SdyShardingRule)):
            raise BadArgument(f"def_partition: sharding_rule must be a text, a rule or a function, got "
                              f"{sharding_rule!r}.", hint="'i j -> i j'.")
        self.partition, self.sharding_rule = partition, sharding_rule
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        return partition

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments, fun, name = self._arguments, self.fun, self._arguments.name
        where = f"custom_partitioning {name!r}"
        if self.partition is None:
            raise MissingUserRule(f"{where}: it is not partitioned yet.", hint="say how with def_partition.")
        if self.sharding_rule is None and (self.infer_sharding_from_operands or self.propagate_user_sharding):
            raise NotProvided(
                f"{where}: a sharding_rule is needed, by which Shardy chooses shardings, got functions for another "
                "partitioner alone.",
                hint="def_partition(..., sharding_rule='i j -> i j').",
            )
        statics, xs, tree = arguments.split(arguments.positional(args, kwargs))
        flat = lambda *ys: fun(*merge_arguments(zip(arguments.static, statics), pytrees.unflatten(tree, ys)))
        if current() is BASE:
            return pytrees.map(as_array, flat(*xs))
        takes = [x.type for x in xs]
        ruled = self.sharding_rule is not None and states([t.cut for t in takes])
        given = [*map(hide, xs)] if ruled else xs
        body = body_of(name, flat, [x.type for x in given], "custom_partitioning")
        _need_no_boxes(where, body.program)
        ordered = [statics[arguments.static.index(n)] for n in self.static_argnums]
        functions = self.partition, self.sharding_rule
        user = UserPartition(where, ordered, functions, tree, body.structure, body.program)
        ys = perform(CustomPartitioning((body.program,), name, user), *given)
        return pytrees.unflatten(body.structure, _stated(user, takes, ys) if ruled else ys)

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., Any]:
        return self if instance is None else types.MethodType(self, instance)


def _stated(user: UserPartition, operands: Sequence[ArrayType], results: Sequence[Any]) -> list[Any]:
    """Results whose types state cuts, by the rule of factors. Raises: ShardingTypeError: operands do not fit."""
    rule: Any = user.sized_rule(one_mesh(user.where, operands))
    cuts = cut_results(user.where, rule.of_types, operands, [y.type for y in results])
    return [reveal(y, t.cut) for y, t in zip(results, cuts)]


@derived_once
def without_partitions(program: Program) -> Program:
    """The program with calls of their bodies in place of the functions that a user partitions."""
    if not any([op.bodied for op in program.ops]):
        return program
    ops = [_call_of(op) if op.bodied else op for op in program.ops]
    parts = (program.args, program.types, program.outs, program.consts, program.sites, program.name)
    return Program(program.in_types, ops, *parts)


def _call_of(op: Any) -> Any:
    called = op.map_bodies(without_partitions)
    return called.as_call() if isinstance(op, CustomPartitioning) else called
