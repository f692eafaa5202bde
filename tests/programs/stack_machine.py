"""A stack machine: ``switch`` on the instruction inside a ``while_loop``, programs in lanes."""

import handlax.numpy as jnp
from handlax import jit, lax, vmap

PUSH, ADD, MUL, DUP, LOOP, HALT = range(6)


def push(arg, pc, top, stack):
    return pc + 1, top + 1, stack.at[top].set(arg)


def add(arg, pc, top, stack):
    return pc + 1, top - 1, stack.at[top - 2].add(stack[top - 1])


def mul(arg, pc, top, stack):
    return pc + 1, top - 1, stack.at[top - 2].multiply(stack[top - 1])


def dup(arg, pc, top, stack):
    return pc + 1, top + 1, stack.at[top].set(stack[top - 1])


def loop(arg, pc, top, stack):
    """Back to ``arg`` as long as the last value is small."""
    return jnp.where(stack[top - 1] < 50.0, arg.astype(jnp.int32), pc + 1), top, stack


def halt(arg, pc, top, stack):
    return pc, top, stack


@jit
def run(code, args):
    def more(state):
        pc, _, _, steps = state
        return (code[pc] != HALT) & (steps < 60)

    def step(state):
        pc, top, stack, steps = state
        moved = lax.switch(code[pc], [push, add, mul, dup, loop, halt], args[pc], pc, top, stack)
        return (*moved, steps + 1)

    _, top, stack, steps = lax.while_loop(more, step, (jnp.int32(0), jnp.int32(0), jnp.zeros(8), 0))
    return stack[top - 1], steps, stack


def main():
    codes = jnp.array([
        [PUSH, PUSH, ADD, DUP, MUL, HALT],
        [PUSH, DUP, ADD, LOOP, HALT, HALT],
        [PUSH, PUSH, MUL, PUSH, ADD, HALT],
    ])
    args = jnp.array([[2.0, 3.0, 0, 0, 0, 0], [1.5, 0, 0, 1, 0, 0], [4.0, 2.5, 0, 1.0, 0, 0]])
    values, steps, stacks = vmap(run)(codes, args)
    return {"values": values, "steps": steps, "stacks": stacks, "one": run(codes[1], args[1])[0]}
