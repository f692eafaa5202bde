"""Targets that read the arguments of public functions from bytes: meaningful ones above all, and any others."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from fuzz_targets.odd_values import array, mostly, odd, several_of, shape, small
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.sharding.mesh import AbstractMesh, AxisType
from handlax.effects.sharding.named_sharding import NamedSharding
from handlax.effects.sharding.partition_spec import PartitionSpec
from handlax.interpreters.transformations.vmap import vmap
from handlax.lowering.jit.jit import jit
from handlax.testing.fuzzing import ByteChoices, Target

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    lambda *xs, **named: xs,
    lambda *xs, **named: xs[0] if xs else 1.0,
    lambda *xs, **named: {"sum": sum([hnp.sum(x) for x in xs]), "named": named},
    lambda x=1.0, y=2, *xs, **named: hnp.multiply(x, y),
    lambda *xs, **named: None,
)


def _called(choices: ByteChoices) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call: arrays, and now and then anything; ``y``, the second, is named where it is not given."""
    args = choices.several(lambda: mostly(choices, array(choices)), 3)
    return args, {"y": mostly(choices, array(choices))} if choices.boolean() and len(args) < 2 else {}


def _axes(choices: ByteChoices) -> Any:
    axis = lambda: choices.one_of(0, None, 1, -1, 2, -4)
    return mostly(choices, choices.made_by(
        axis, lambda: tuple(choices.several(axis, 3)), lambda: {"sum": axis(), "named": axis()},
        lambda: (axis(), {"y": axis()}),
    ))


def vmap_arguments(data: bytes) -> object:
    """``vmap(f, in_axes, out_axes, axis_name=, axis_size=, spmd_axis_name=)(*args)``."""
    choices = ByteChoices(data)
    args, named = _called(choices)
    f, in_axes, out_axes = choices.one_of(*FUNCTIONS), _axes(choices), _axes(choices)
    options = {
        name: mostly(choices, value)
        for name, value in (("axis_name", "i"), ("axis_size", small(choices)), ("spmd_axis_name", None))
        if choices.boolean()
    }
    return vmap(f, in_axes, out_axes, **options)(*args, **named)


def jit_arguments(data: bytes) -> object:
    """``jit(f, static_argnums=, donate_argnames=, ...)(*args)``."""
    choices = ByteChoices(data)
    args, named = _called(choices)
    number, name = lambda: choices.one_of(0, 1, 2, -1, 5), lambda: choices.one_of("y", "x", "xs", "named", "")
    options = {
        option: several_of(choices, item, 3)
        for option, item in (("static_argnums", number), ("donate_argnums", number), ("static_argnames", name),
                             ("donate_argnames", name), ("keep_unused", choices.boolean), ("inline", choices.boolean))
        if choices.boolean()
    }
    return jit(choices.one_of(*FUNCTIONS), **options)(*args, **named)


def _index(choices: ByteChoices) -> Any:
    bound = lambda: choices.one_of(None, 1, -1, 0, 5, -7, 2**70)
    item = lambda: choices.made_by(
        lambda: small(choices), lambda: slice(bound(), bound(), bound()), lambda: choices.one_of(None, ..., True),
        lambda: choices.several(lambda: small(choices), 3), lambda: array(choices, 2), lambda: odd(choices),
    )
    return choices.made_by(item, lambda: tuple(choices.several(item, 4)))


def indices(data: bytes) -> object:
    """``x[index]``, and ``x.at[index]`` with its methods and options."""
    choices = ByteChoices(data)
    x, index = array(choices), _index(choices)
    if choices.boolean():
        return x[index]
    options = {
        name: mostly(choices, value)
        for name, value in (("mode", choices.one_of("clip", "drop", "fill", "wrap", "promise_in_bounds")),
                            ("indices_are_sorted", choices.boolean()), ("unique_indices", choices.boolean()))
        if choices.boolean()
    }
    update = x.at[index]
    if choices.boolean():
        return update.get(**options)
    method = choices.one_of("set", "add", "multiply", "min", "max", "power", "divide")
    return getattr(update, method)(mostly(choices, array(choices)), **options)


def _entries(choices: ByteChoices) -> Any:
    name = lambda: choices.one_of("i", "j", None, "k", PartitionSpec.UNCONSTRAINED)
    return choices.several(lambda: mostly(choices, choices.made_by(name, lambda: tuple(choices.several(name, 2)))), 3)


def shardings(data: bytes) -> object:
    """``NamedSharding(AbstractMesh(sizes, names), PartitionSpec(...))``, the shapes of its parts, and its text."""
    choices = ByteChoices(data)
    sizes = mostly(choices, tuple(choices.several(lambda: mostly(choices, choices.one_of(2, 1, 4, 0)), 2)))
    rank = len(sizes) if isinstance(sizes, tuple) else 1
    names = mostly(choices, ("i", "j")[:rank])
    types = mostly(choices, choices.one_of(None, (AxisType.Explicit,) * rank))
    mesh = AbstractMesh(sizes, names, types)
    said = {name: mostly(choices, {"i"}) for name in ("unreduced", "reduced") if choices.integer(0, 3) == 3}
    spec = PartitionSpec(*_entries(choices), **said)
    cut = NamedSharding(mesh, spec)
    return repr(cut), hash(cut), cut.shard_shape(mostly(choices, shape(choices)))


def _window(choices: ByteChoices) -> Any:
    """Sizes, strides or dilations of two axes, or fewer."""
    return mostly(choices, tuple(choices.several(lambda: choices.one_of(1, 2, 3, 0, -1), 2)))


def _padding(choices: ByteChoices) -> Any:
    return mostly(choices, choices.made_by(
        lambda: choices.one_of("SAME", "VALID", "SAME_LOWER", "same"),
        lambda: choices.several(lambda: (small(choices), small(choices)), 2),
    ))


def reductions(data: bytes) -> object:
    """``reduce_window`` with windows, strides, padding and dilations of all kinds."""
    choices = ByteChoices(data)
    f = choices.one_of(lax.add, lax.max, lax.min, lax.mul)
    window, strides, padding = _window(choices), _window(choices), _padding(choices)
    dilations = [_window(choices) if choices.boolean() else None for _ in range(2)]
    return lax.reduce_window(hnp.ones(shape(choices)), 0.0, f, window, strides, padding, *dilations)


def convolutions(data: bytes) -> object:
    """``conv_general_dilated`` with strides, padding, dilations, dimension numbers and groups of all kinds."""
    choices = ByteChoices(data)
    strides, padding = _window(choices), _padding(choices)
    dilations = {name: _window(choices) for name in ("lhs_dilation", "rhs_dilation") if choices.boolean()}
    words = lambda: choices.one_of("NC", "OI", "NCH", "OIH", "NCHW", "OIHW", "NHWC", "HWIO", "NH0C", "C")
    numbers = mostly(choices, choices.one_of(None, (words(), words(), words())))
    groups = {name: mostly(choices, choices.one_of(1, 2, 0, 3, -1))
              for name in ("feature_group_count", "batch_group_count") if choices.boolean()}
    x, kernel = hnp.ones(shape(choices, 4)), hnp.ones(shape(choices, 4))
    return lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=numbers, **dilations, **groups)


_SUBSCRIPTS = ("i", "j", ",", "->", "k", ".", "...", " ", "A", "0", "é", "-", ">", "\0", *string.punctuation[:4])


def einsums(data: bytes) -> object:
    """``einsum(subscripts, *operands)``, with texts, lists of numbers, and options."""
    choices = ByteChoices(data)
    operands = choices.several(lambda: mostly(choices, array(choices)), 3)
    if operands and choices.boolean():
        lists = [choices.several(lambda: small(choices), 3) for _ in operands]
        mixed = [part for pair in zip(operands, lists) for part in pair]
        return hnp.einsum(*mixed, *choices.several(lambda: odd(choices), 1))
    optimize = {"optimize": mostly(choices, choices.one_of("optimal", "greedy", "auto"))} if choices.boolean() else {}
    return hnp.einsum(mostly(choices, choices.text(_SUBSCRIPTS, 12)), *operands, **optimize)


# of which all inputs mean something, so that they have no seeds
ARGUMENTS = (
    Target("vmap", vmap_arguments), Target("jit", jit_arguments), Target("index", indices),
    Target("sharding", shardings), Target("reduce_window", reductions), Target("convolution", convolutions),
    Target("einsum", einsums),
)
