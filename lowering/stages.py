"""Ahead of time: a jitted function stopped at each stage.

    f.trace(*args).lower().compile()(*args) == f(*args)

``Traced`` holds the program, ``Lowered`` its StableHLO, ``Compiled`` what runs. Arguments may be arrays, numbers, or
``ShapeDtypeStruct``: only their types count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..effects import trees
from ..effects.arrays import Array, lift
from ..effects.closing import close
from ..effects.closures import jit_info
from ..effects.control import Call as CallOp
from ..effects.errors import BadArgument, DTypeMismatch, TreeMismatch, need_function
from ..effects.programs import Program
from ..effects.stack import BASE, current
from ..effects.types import ArrayType
from ..interpreters.staging import ShapeDtypeStruct
from . import traces
from .backend import default_device
from .compile import check_donation, compile_program, fail, lower
from .dispatch import Jitted, module_name
from .entries import concrete_operand, give_away
from .lazy import runtime
from .statics import Choice, argument_names, split
from .traces import Trace, leaf_names


class ArgInfo(NamedTuple):
    """What is known of one leaf of the arguments."""

    type: ArrayType
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype


def abstract(x: Any) -> Any:
    """``x``, or its shape and dtype where that is all it has."""
    if isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex)):
        return x
    if isinstance(x, ArrayType):
        return ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak)
    if isinstance(x, ShapeDtypeStruct) or hasattr(type(x), "__array__"):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))
    return x


def described(t: ArrayType) -> ShapeDtypeStruct:
    """A type as a user meets it."""
    return ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak)


class _Stage:
    """What every stage knows of the arguments and results."""

    def __init__(
        self, jitted: Jitted, in_tree: Any, types: Sequence[ArrayType], donated: tuple[int, ...], found: Trace
    ):
        self._jitted = jitted
        self._types = tuple(types)
        self._donated = donated
        self._trace = found
        self.in_tree = in_tree
        self.out_tree = found.out_tree

    def _like(self) -> tuple[Jitted, Any, tuple[ArrayType, ...], tuple[int, ...], Trace]:
        return self._jitted, self.in_tree, self._types, self._donated, self._trace

    @property
    def fun_name(self) -> str:
        return self._jitted.name

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as ``(args, kwargs)``."""
        return self.in_tree.unflatten(list(self._types))

    @property
    def out_avals(self) -> Any:
        """The types of the results."""
        return self.out_tree.unflatten(list(self._trace.whole.out_types))

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their tree."""
        return self.out_tree.unflatten([described(t) for t in self._trace.whole.out_types])

    @property
    def args_info(self) -> Any:
        """Type and donation of every argument, as ``(args, kwargs)``."""
        return self.in_tree.unflatten([ArgInfo(t, i in self._donated) for i, t in enumerate(self._types)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The leaves of the arguments that are donated."""
        return self._donated


class Traced(_Stage):
    """A function traced on arguments of given types."""

    @property
    def program(self) -> Program:
        """The program: leaves of the arguments to leaves of the results."""
        return self._trace.whole

    @property
    def jaxpr(self) -> Program:
        return self._trace.whole

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """The program in StableHLO.

        Raises: UnhandledEffect: an effect that the device does not answer. MissingRule: an operation without a
        lowering.
        """
        marks = [i in self._donated for i in range(len(self._types))]
        closed, captured = close(self._trace.whole)
        name = module_name(self.fun_name)
        whole = [*[False] * len(captured), *marks] if self._donated else ()
        return Lowered(self, lower(closed, name, whole, self._jitted.keep_unused).module.text)


class Lowered(_Stage):
    """A function in StableHLO."""

    def __init__(self, traced: Traced, text: str):
        super().__init__(*traced._like())
        self._text = text

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module: dialect ``stablehlo`` (the default), or ``hlo`` before XLA's optimisations."""
        if dialect in (None, "stablehlo"):
            return self._text
        if dialect == "hlo":
            return str(runtime.unoptimized_hlo(self._text))
        raise BadArgument(f"as_text: the dialect must be 'stablehlo' or 'hlo', got {dialect!r}.")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as text, in the dialect asked for."""
        return self.as_text(dialect)

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate before optimisation: "flops", "bytes accessed", ..."""
        return dict(runtime.unoptimized_cost(self._text, default_device()))

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> Compiled:
        """The program, ready to run. Raises: CompileError: XLA refuses it, or an option is unknown."""
        jitted = self._jitted
        marks = [i in self._donated for i in range(len(self._types))]
        options = {**(jitted.options or {}), **(compiler_options or {})}
        binary = compile_program(
            self._trace.whole, module_name(jitted.name), marks if self._donated else (),
            keep_unused=jitted.keep_unused, device=jitted.device or default_device(), options=options,
        )  # fmt: skip
        return Compiled(self, binary)


class Compiled(_Stage):
    """A compiled function: it takes arguments of the types for which it was compiled, without the static ones."""

    def __init__(self, lowered: Lowered, binary: Any):
        super().__init__(*lowered._like())
        self._binary = binary

    def as_text(self) -> str:
        """The program as XLA left it."""
        return str(self._binary.executable.hlo_text())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate: "flops", "bytes accessed", ..."""
        return dict(self._binary.executable.cost_analysis())

    def memory_analysis(self) -> Any:
        """XLA's plan: ``argument_size_in_bytes``, ``output_size_in_bytes``, ``temp_size_in_bytes``, ..."""
        return self._binary.executable.memory_analysis()

    def runtime_executable(self) -> Any:
        return self._binary.executable

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it.

        Raises: TreeMismatch: the arguments have another structure. DTypeMismatch: an argument has another type.
        """
        leaves, tree = trees.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TreeMismatch(
                f"{self.fun_name}: the compiled function takes arguments of structure {self.in_tree}, got {tree}.",
                hint="leave out the static arguments; compile again for other structures.",
            )
        operands = [x if isinstance(x, Array) else lift(x) for x in leaves]
        self._check(operands, args, kwargs)
        if current() is not BASE:
            trace = self._trace
            results = current().answer(CallOp((trace.program,), self.fun_name), (*trace.captured, *operands))
            return trace.unflatten(results)
        given = [concrete_operand(x) for x in operands]
        device = self._binary.loaded.device
        buffers = [runtime.copy_to_device(x.buffer, device) for x in given]
        names = leaf_names(argument_names(self._jitted.fun), args, kwargs)
        count = len(self._binary.captured)
        loaded = self._binary.loaded
        donated = [n - count for n, alias in zip(loaded.kept, loaded.aliases) if alias is not None]
        check_donation(buffers, donated, self.fun_name, names)
        for i in donated:
            if given[i]._value is not None:
                buffers[i] = runtime.put(given[i]._value, device)
        try:
            made = self._binary.on(buffers)
        except Exception as error:
            fail(error, self.fun_name, given, names)
        for i in donated:
            give_away(given[i])
        return self._trace.unflatten(made)

    def _check(self, operands: Sequence[Array], args: Any, kwargs: Any) -> None:
        for i, (x, t) in enumerate(zip(operands, self._types)):
            if x.type is not t and (x.type.shape, x.type.dtype) != (t.shape, t.dtype):
                name = leaf_names(argument_names(self._jitted.fun), args, kwargs)(i)
                raise DTypeMismatch(
                    f"{self.fun_name}: argument {name} must be {t}, for which the function was compiled, got {x.type}.",
                    hint="convert it, or compile again for this type.",
                )


def trace(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    """Trace a jitted function on arguments of which only the types count."""
    if jitted.static:
        parts = split(jitted.fun, jitted.static, args, kwargs)
        fixed = dict(parts.static_args)
        args = tuple([x if i in fixed else trees.map(abstract, x) for i, x in enumerate(args)])
        named = dict(parts.static_kwargs)
        kwargs = {name: x if name in named else trees.map(abstract, x) for name, x in kwargs.items()}
    else:
        args, kwargs = trees.map(abstract, (args, kwargs))
    call, _, parts_ = jitted.take_apart(args, kwargs)
    if parts_ is not None:
        args, kwargs = parts_.args, parts_.kwargs
    donated = jitted.donated_leaves(args, kwargs, parts_) if jitted.donate else ()
    found = traces.trace(call, jitted.own)
    return Traced(jitted, trees.structure((args, kwargs)), call.types, donated, found)


def eval_shape(fun: Any, *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of ``fun(*args, **kwargs)``, computing nothing.

        eval_shape(f, x).shape == f(x).shape

    >>> eval_shape(lambda x: x + 1, ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    need_function("eval_shape", fun)
    known = jit_info(fun)
    jitted = known if known is not None else Jitted(fun, Choice(), Choice(), False, None, False, None)
    return trace(jitted, args, kwargs).out_info
