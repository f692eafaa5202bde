"""Errors about the shapes, dtypes, shardings and trees of values."""

from __future__ import annotations

from .error import HandlaxError


class ShapeMismatch(HandlaxError, TypeError, ValueError):
    """Shapes, sizes or ranks that do not fit together.

    Sizes or ranks of arrays differ where the operation needs them equal.
    Shapes are aligned at their last dimension, and only a size of 1 stretches: nothing is guessed by position or name.

    >>> table, scale = hnp.ones((2, 3)), hnp.ones(2)
    >>> table * scale
    Traceback (most recent call last):
    handlax.errors.ShapeMismatch: mul: shapes must broadcast, got (2, 3) and (2,).
      at ...
      hint: sizes 3 and 2 differ and neither is 1; shapes are aligned at their last dimension.

    Remedy: give the smaller array the dimension that it lacks, or call ``reshape``, ``transpose`` or ``hx.vmap``.

    >>> (table * scale[:, None]).shape
    (2, 3)

    Elsewhere: NumPy raises ValueError, ``jax.numpy`` ValueError and ``jax.lax`` TypeError; this class is both.
    """


class ShardingTypeError(HandlaxError, TypeError, ValueError):
    """Values cut along explicit axes of a mesh in ways that do not fit together.

    Along explicit axes of a mesh types say how values are cut, and each operation has one rule for its result.
    Here the two operands are cut along different axes, so that the rule has two answers.

    >>> mesh = hx.make_mesh((1, 1), ("data", "model"))
    >>> P = hx.sharding.PartitionSpec
    >>> x = hx.device_put(hnp.ones(4), hx.sharding.NamedSharding(mesh, P("data")))
    >>> y = hx.device_put(hnp.ones(4), hx.sharding.NamedSharding(mesh, P("model")))
    >>> with hx.set_mesh(mesh):
    ...     x + y
    Traceback (most recent call last):
    handlax.errors.ShardingTypeError: add: operands must be cut alike, got f32[4@data] and f32[4@model].
      at ...
      hint: out_sharding= says how the result is cut; or cut an operand otherwise before: hx.reshard(x, spec).

    Remedy: cut one of them as the other is, by ``hx.reshard``; where an operation takes it, ``out_sharding=`` chooses.

    >>> with hx.set_mesh(mesh):
    ...     print(hx.typeof(x + hx.reshard(y, P("data"))))
    f32[4@data]

    Elsewhere: the same as in JAX, for axes of type ``Explicit``.
    """


class RankMismatch(HandlaxError, TypeError, ValueError):
    """An array of a rank that Python's protocol does not accept: ``float`` of a vector, ``len`` of a scalar.

    Python asks a whole array for what one number or one sequence has.

    >>> float(hnp.ones(3))
    Traceback (most recent call last):
    handlax.errors.RankMismatch: float: only an array of rank 0 is a Python number, got f32[3].
      at ...
      hint: index first, x[0], or x.item() where it has one element.

    Remedy: take one element, or reduce the array.

    >>> float(hnp.ones(3).sum())
    3.0

    Elsewhere: NumPy and JAX raise TypeError.
    """


class DTypeMismatch(HandlaxError, TypeError, ValueError):
    """A dtype that an operation does not accept, or dtypes that differ where they must agree.

    The operation has no meaning for the dtype, or ``lax``, which never promotes, got two different ones.

    >>> lax.add(hnp.ones(2, "float32"), hnp.ones(2, "int32"))
    Traceback (most recent call last):
    handlax.errors.DTypeMismatch: add: operands must have one dtype, got f32[2] and i32[2].
      at ...
      hint: hx.numpy promotes; lax is strict: convert with lax.convert_element_type.

    Remedy: convert one of them, or use the function of ``hx.numpy``, which promotes.

    >>> lax.add(hnp.ones(2, "float32"), hnp.ones(2, "int32").astype("float32"))
    Array([2., 2.], dtype=float32)
    >>> hnp.add(hnp.ones(2, "float32"), hnp.ones(2, "int32")).dtype
    dtype('float32')

    Elsewhere: JAX raises TypeError; NumPy promotes, and with ``casting="no"`` raises TypeError too.
    """


class IntegerOverflow(HandlaxError, OverflowError):
    """An integer that its dtype cannot hold.

    Integers are 32 bits wide by default, and this Python integer needs more.

    >>> hnp.array([2**40])
    Traceback (most recent call last):
    handlax.errors.IntegerOverflow: an integer must fit its dtype, got 1099511627776 for i32, whose range is
      -2147483648 to 2147483647.
      at ...
      hint: use a wider dtype.

    Remedy: name a dtype that can hold it, such as a 64-bit one of NumPy's, or compute in floats.

    >>> hnp.asarray(np.array([2**40])).dtype
    dtype('int64')
    >>> hnp.array([2.0**40]).dtype
    dtype('float32')

    Elsewhere: NumPy's default is 64 bits; JAX raises OverflowError.
    """


class TreeMismatch(HandlaxError, TypeError, ValueError):
    """Pytrees whose structures must agree, and do not.

    Two pytrees must have the same containers, lengths and keys, since their leaves are paired.

    >>> hx.tree.map(lambda p, g: p - g, {"w": 1.0, "b": 2.0}, {"w": 0.5})
    Traceback (most recent call last):
    handlax.errors.TreeMismatch: tree.map, argument 2: at the root there must be a dict with keys ['b', 'w'], got a
      dict with keys ['w'].
      at ...
      hint: help(hx.errors.TreeMismatch) explains it.

    Remedy: give both trees the same structure; ``hx.tree.structure(x)`` shows it.

    >>> hx.tree.map(lambda p, g: p - g, {"w": 1.0, "b": 2.0}, {"w": 0.5, "b": 0.0})
    {'b': 2.0, 'w': 0.5}

    Elsewhere: JAX raises ValueError.
    """


class NotAnArray(HandlaxError, TypeError, ValueError):
    """A value that is neither a number nor an array.

    A function of arrays got something else: None, a string, a list with one of these inside.

    >>> hx.jit(lambda model: model["w"] * 2)({"w": 3.0, "name": "linear"})
    Traceback (most recent call last):
    handlax.errors.NotAnArray: <lambda>: arguments must be arrays or numbers, got str for model['name'].
      at ...
      hint: make it static (static_argnums, static_argnames), or keep it outside.

    Remedy: take what is no array out of the arguments, or declare it static.

    >>> f = hx.jit(lambda w, name: w * 2 if name == "linear" else w, static_argnames="name")
    >>> f(3.0, name="linear")
    Array(6., dtype=float32, weak_type=True)

    Elsewhere: JAX raises TypeError.
    """


class StateTypeError(HandlaxError, TypeError, ValueError):
    """A state of a handler, or a carry of a loop, that changes its type or structure from one step to the next.

    A loop is one program for all of its steps, so that its carry, or the state of a handler, keeps shape and dtype.

    >>> lax.fori_loop(0, 3, lambda i, xs: hnp.append(xs, i), hnp.zeros(1))
    Traceback (most recent call last):
    handlax.errors.StateTypeError: fori_loop: the carry must keep its type, got f32[1] at the start and f32[2] after
      the body.
      at ...
      hint: a loop cannot change the shape of what it carries.

    Remedy: start with the type that the loop ends with, and write into it; ``lax.scan`` stacks a value of each step.

    >>> lax.fori_loop(0, 3, lambda i, xs: xs.at[i].set(i), hnp.zeros(3))
    Array([0., 1., 2.], dtype=float32)
    >>> lax.scan(lambda i, _: (i + 1, i), 0, None, length=3)[1]
    Array([0, 1, 2], dtype=int32, weak_type=True)

    Elsewhere: JAX raises TypeError.
    """
