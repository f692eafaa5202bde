"""Programs with calls that a user divides over devices: what XLA is answered while it compiles one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from itertools import count
from typing import Any

from ...effects.sharding.named_sharding import NamedSharding
from ...effects.sharding.partition_spec import PartitionSpec
from ..clients.divided_calls import ANSWERS, DIVIDED_CALL, answer_xla
from ..clients.jaxlib_modules import RuntimeFailure, xc
from ..clients.runtime_access import empty_in_children
from .buffer_types import hlo_sharding, spec_over
from .stablehlo_types import storage

_NUMBERS = count()
empty_in_children(ANSWERS)


class _Answer:
    """What answers XLA for one call, in any thread, and the errors that it raised: XLA passes on texts alone."""

    __slots__ = ("call", "context", "errors")

    def __init__(self, call: Any, context: Context, errors: list[BaseException]):
        self.call = call
        self.context = context
        self.errors = errors

    def __call__(self, operands: Sequence[Any], type: Any, result: Any) -> tuple[bytes, list[Any], Any]:
        try:
            return self.context.copy().run(self.part, operands, type, result)
        except BaseException as error:
            self.errors.append(error)
            raise

    def part(self, operands: Sequence[Any], type: Any, result: Any) -> tuple[bytes, list[Any], Any]:
        """The module of a part, and the shardings of operands and results."""
        body = self.call.op.bodies[0]
        results = result.tuple_elements() if type.is_tuple() else [result]
        takes, gives = [
            [self.named(s, len(storage(t)[0])) for s, t in zip(shardings, types)]
            for shardings, types in ((operands, body.in_types), (results, body.out_types))
        ]
        text, ins, outs = self.call(takes, gives)
        into, out = [
            [hlo_sharding(s, len(storage(t)[0])) for s, t in zip(shardings, types)]
            for shardings, types in ((ins, body.in_types), (outs, body.out_types))
        ]
        return text.encode(), into, xc.HloSharding.tuple_sharding(type, out) if type.is_tuple() else out[0]

    def named(self, tiles: Any, rank: int) -> NamedSharding:
        """XLA's sharding over the mesh; where it cuts along parts of axes, that of whole arrays."""
        mesh = self.call.mesh
        return NamedSharding(mesh, spec_over(mesh, tiles, rank) or PartitionSpec())


@contextmanager
def divided(text: str, calls: Sequence[Any]) -> Iterator[str]:
    """The text of a program that is compiled in this block, in which XLA finds who answers for its divided calls.

    Raises: what an answer raised, in place of XLA's error.
    """
    errors: list[BaseException] = []
    context = copy_context()
    keys = []
    for i, call in enumerate(calls):
        if hasattr(call, "lower_part"):
            answer_xla()
            key = f"{DIVIDED_CALL}#{next(_NUMBERS)}"
            text = text.replace(f'"{DIVIDED_CALL}{i}"', f'"{key}"')
            keys.append(key.encode())
            ANSWERS[keys[-1]] = _Answer(call, context, errors)
    try:
        yield text
    except RuntimeFailure:
        if not errors:
            raise
        raise errors[0] from errors[0].__cause__
    finally:
        for name in keys:
            ANSWERS.pop(name, None)
