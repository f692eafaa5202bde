"""The control flow, transformations and handlers of nests, by the operations of this library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ... import lax
from ...effects.control.checkpoint_policies import everything_saveable, nothing_saveable
from ...effects.core.arrays import perform
from ...effects.core.operation import effect
from ...effects.operations.elementwise.arithmetic import Mul
from ...effects.operations.elementwise.transcendental import Tanh
from ...interpreters.custom.custom_jvp import custom_jvp
from ...interpreters.custom.custom_vjp import custom_vjp
from ...interpreters.handlers.handle import handle
from ...interpreters.handlers.handler import handler
from ...interpreters.transformations.checkpoint import checkpoint
from ...interpreters.transformations.derivatives import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from ...interpreters.transformations.vmap import vmap
from ...lowering.jit.jit import jit
from .unrolled import next_state


@effect(vmap="per_lane")
class NestTell:
    """Returns the state of its handler, and updates it by ``next_state``."""

    def result_type(op, x):
        return x


def some_saveable(op: Any, *types: Any, **fields: Any) -> bool:
    """A checkpoint policy that saves some values and recomputes others."""
    return isinstance(op, (Tanh, Mul))


HANDLER = handler({NestTell: lambda state, op, x: (next_state(state, x), state)})

# the words of texts
CONTROL = SimpleNamespace(
    scan=lax.scan, fori_loop=lax.fori_loop, while_loop=lax.while_loop, cond=lax.cond, switch=lax.switch, map=lax.map,
    jit=jit, vmap=vmap, grad=grad, value_and_grad=value_and_grad, jvp=jvp, linearize=linearize, vjp=vjp,
    linear_transpose=linear_transpose,
    checkpoint=checkpoint, nothing=nothing_saveable, everything=everything_saveable, some=some_saveable,
    custom_jvp=custom_jvp, custom_vjp=custom_vjp,
    handled=lambda f, state: handle(HANDLER, state)(f), tell=lambda x: perform(NestTell(), x),
)
"""Loops, branches and transformations by which a drawn nest of control flow is executed."""
