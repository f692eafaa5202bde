"""Errors about calls, and arguments that are no arrays."""

from __future__ import annotations

import dataclasses

from .error import HandlaxError


class NotAFunction(HandlaxError, TypeError):
    """An argument that must be a function and is not callable.

    A transformation got the result of a call instead of the function that it is to transform.

    >>> f = lambda x: x * x
    >>> hx.grad(f(3.0))
    Traceback (most recent call last):
    handlax.errors.NotAFunction: grad: a function is needed, got float.
      at ...
      hint: pass the function itself, f, not what a call returns, f(x).

    Remedy: pass the function, and call what the transformation returns.

    >>> hx.grad(f)(3.0)
    Array(6., dtype=float32, weak_type=True)

    Elsewhere: JAX raises TypeError.
    """


class BadArgument(HandlaxError, ValueError):
    """A static argument (axis, name, mode, ...) outside the range of its values.

    An argument that is no array (a name, a mode, a position, a count) has a value that the function does not know.
    The message says what it must be, and lists the names that there are.

    >>> hnp.pad(hnp.ones(2), 1, mode="zeros")
    Traceback (most recent call last):
    handlax.errors.BadArgument: pad: mode must be one of constant, empty, edge, wrap, linear_ramp, reflect, symmetric,
      mean, median, maximum, minimum, got 'zeros'.
      at ...
      hint: help(hx.errors.BadArgument) explains it.

    Remedy: give it a value as the message says, here one of the names.

    >>> hnp.pad(hnp.ones(2), 1, mode="constant")
    Array([0., 1., 1., 0.], dtype=float32)

    Elsewhere: NumPy and JAX raise ValueError or NotImplementedError.
    """


class NotProvided(BadArgument, TypeError, NotImplementedError):
    """A parameter of NumPy's that has no meaning here, as ``out``. NumPy's own functions then take the data.

    The parameter exists in NumPy, and has no meaning for arrays that never change, or in compiled programs.

    >>> hnp.take(hnp.arange(3), 5, mode="raise")
    Traceback (most recent call last):
    handlax.errors.NotProvided: take: there is no mode 'raise', indices may be unknown.
      at ...
      hint: use fill, clip or wrap.

    Remedy: choose what is there; NumPy itself computes with the data where the parameter is needed.

    >>> hnp.take(hnp.arange(3), 5, mode="clip")
    Array(2, dtype=int32)
    >>> hnp.sum(np.take(np.arange(3), [0, 2], mode="raise"))
    Array(2, dtype=int64)

    Elsewhere: JAX raises NotImplementedError.
    """


class BadAxis(BadArgument, TypeError, IndexError):
    """An axis that an array does not have, or that is no integer.

    An array of rank r has the axes -r to r - 1.

    >>> hnp.sum(hnp.ones((2, 3)), axis=2)
    Traceback (most recent call last):
    handlax.errors.BadAxis: sum: axis 2 is out of range for an array of rank 2.
      at ...
      hint: axes are counted from 0: its last one is 1, or -1.

    Remedy: count the axes from 0, or from the end by negative numbers.

    >>> hnp.sum(hnp.ones((2, 3)), axis=-1)
    Array([3., 3.], dtype=float32)

    Elsewhere: NumPy raises AxisError, JAX ValueError.
    """


class BadShape(BadArgument, TypeError):
    """A shape that is no sequence of integers.

    A shape is one integer or a sequence of integers.
    A quotient in Python is a float, even where it is whole.

    >>> hnp.zeros(6 / 2)
    Traceback (most recent call last):
    handlax.errors.BadShape: zeros: a shape is a sequence of integers, got 3.0.
      at ...
      hint: help(hx.errors.BadShape) explains it.

    Remedy: divide integers by ``//``.

    >>> hnp.zeros(6 // 2).shape
    (3,)

    Elsewhere: NumPy and JAX raise TypeError.
    """


class NotAnInteger(BadArgument, TypeError):
    """A number that counts, or a place along an axis, that is no integer.

    A count, an order or a position was given as a float or a string.

    >>> hnp.linspace(0.0, 1.0, 5 / 2)
    Traceback (most recent call last):
    handlax.errors.NotAnInteger: linspace: num must be an integer, got 2.5.
      at ...
      hint: help(hx.errors.NotAnInteger) explains it.

    Remedy: round it as you mean it.

    >>> hnp.linspace(0.0, 1.0, 5 // 2)
    Array([0., 1.], dtype=float32)

    Elsewhere: NumPy and JAX raise TypeError.
    """


class UnknownSharding(BadArgument, TypeError):
    """An argument that comes without a spec, and does not lie on the mesh in a known way.

    Without ``in_specs``, ``shard_map`` divides an argument as it lies on the mesh.
    Along ``Auto`` axes the type of a traced value does not tell how it lies.

    >>> mesh = hx.make_mesh((1,), ("data",), axis_types=(hx.sharding.AxisType.Auto,))
    >>> P = hx.sharding.PartitionSpec
    >>> hx.jit(hx.shard_map(lambda x: 2 * x, mesh=mesh, out_specs=P("data")))(hnp.ones(2))
    Traceback (most recent call last):
    handlax.errors.UnknownSharding: shard_map: without in_specs an argument must lie on the mesh, got f32[2] while it
      is traced.
      at ..., under jit
      hint: name in_specs, or device_put(x, NamedSharding(mesh, spec)).

    Remedy: say how it is divided.

    >>> hx.jit(hx.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("data"), out_specs=P("data")))(hnp.ones(2))
    Array([2., 2.], dtype=float32)

    Elsewhere: JAX raises TypeError or ValueError.
    """


class BadCall(HandlaxError, TypeError):
    """Too many arguments, too few, or ``perform`` of what is no operation.

    A function was called with other arguments than it takes.

    >>> square, pull = hx.vjp(lambda x: (x, x * x), 3.0)
    >>> pull(1.0, 1.0)
    Traceback (most recent call last):
    handlax.errors.BadCall: vjp: the pullback takes one cotangent, with the structure of the result, got 2 arguments.
      at ...
      hint: pull((ct, ct)) for a result that is a tuple.

    Remedy: call it as the message says; here the cotangent is one tuple, as the result is.

    >>> pull((1.0, 1.0))
    (Array(7., dtype=float32, weak_type=True),)

    Elsewhere: Python, NumPy and JAX raise TypeError.
    """


class DonatedTwice(BadArgument, RuntimeError):
    """One array as two arguments of a call that donates one of them.

    A donated argument gives its memory to the results, so that no other argument may be the same array.

    >>> add = hx.jit(lambda x, y: x + y, donate_argnums=0)
    >>> x = hnp.ones(3) + 1
    >>> add(x, x)
    Traceback (most recent call last):
    handlax.errors.DonatedTwice: <lambda>: a donated array must be a single argument, got it as x and y.
      at ...
      hint: donate a copy, or do not donate it.

    Remedy: donate a copy.

    >>> add(x.copy(), x)
    Array([4., 4., 4.], dtype=float32)

    Elsewhere: JAX raises an error of XLA's, or ValueError.
    """


class MissingUserRule(BadCall, AttributeError):
    """A call of a function with a custom rule before that rule is defined.

    The decorator makes a function that waits for its rule, and the function was called before that.

    >>> @hx.custom_jvp
    ... def f(x):
    ...     return hnp.abs(x)
    >>> f(-2.0)
    Traceback (most recent call last):
    handlax.errors.MissingUserRule: custom_jvp: f has no rule yet.
      at ...
      hint: define it with defjvp or defjvps.

    Remedy: define the rule below the function.

    >>> @f.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return f(x), hnp.sign(x) * dx
    >>> hx.grad(f)(-2.0)
    Array(-1., dtype=float32, weak_type=True)

    Elsewhere: JAX raises AttributeError.
    """


class BadIndex(HandlaxError, IndexError):
    """An index with too many entries, or out of bounds.

    An index has more entries than the array has axes, or a slice is bounded by a value that is not known while tracing.

    >>> x = hnp.ones((2, 3))
    >>> x[0, 1, 2]
    Traceback (most recent call last):
    handlax.errors.BadIndex: index: an array of shape (2, 3) takes at most 2 indices, got 3.
      at ...
      hint: help(hx.errors.BadIndex) explains it.

    Remedy: give one entry for each axis; ``lax.dynamic_slice`` starts at a traced value, and has a size that is known.

    >>> x[0, 1]
    Array(1., dtype=float32)
    >>> hx.jit(lambda x, i: lax.dynamic_slice(x, (0, i), (2, 1)))(x, 1).shape
    (2, 1)

    Elsewhere: NumPy and JAX raise IndexError.
    An index out of bounds is clamped or dropped, as in JAX, where NumPy raises.
    JAX's ``JAXIndexError`` is another name of this class.
    """


class Immutable(HandlaxError, TypeError, dataclasses.FrozenInstanceError):
    """An attempt to change an array, a program, a type or another immutable value in place.

    Arrays, programs, types and handlers never change: others may hold the same one.

    >>> x = hnp.zeros(3)
    >>> x[0] = 1.0
    Traceback (most recent call last):
    handlax.errors.Immutable: index: arrays are immutable, so x[index] = y is not there.
      at ...
      hint: use x = x.at[index].set(y).

    Remedy: make a new one; in a compiled function this writes in place.

    >>> x = x.at[0].set(1.0)
    >>> x
    Array([1., 0., 0.], dtype=float32)

    Elsewhere: NumPy writes in place; JAX raises TypeError.
    """

    @classmethod
    def of(cls, what: str, name: str, change: str, hint: str) -> Immutable:
        """The error of an attempt to change an attribute; ``change`` is ``set`` or ``deleted``."""
        return cls(f"{what} are immutable, {name!r} cannot be {change}.", hint=hint)


class BadStaticArgument(HandlaxError, TypeError, ValueError):
    """A static argument that cannot be hashed, or a field that cannot be compared.

    A program is kept for each value of its static arguments, found by its hash, and lists have none.

    >>> f = hx.jit(lambda x, shape: x.reshape(shape), static_argnames="shape")
    >>> f(hnp.ones(6), shape=[2, 3])
    Traceback (most recent call last):
    handlax.errors.BadStaticArgument: jit: static argument 'shape' of <lambda> must be hashable, got list (unhashable
      type: 'list').
      at ...
      hint: pass a tuple or a frozen value, or leave it dynamic.

    Remedy: pass a tuple, or another value that cannot change.

    >>> f(hnp.ones(6), shape=(2, 3)).shape
    (2, 3)

    Elsewhere: JAX raises ValueError.
    """


class ConfigurationError(HandlaxError, AttributeError):
    """A setting that does not exist, or a value that it cannot have.

    The name of a setting is misspelt, or its value is none of those that it can have; the message says which may be
    meant.

    >>> hx.config.update("jax_enable_x46", True)
    Traceback (most recent call last):
    handlax.errors.ConfigurationError: config: there is no setting 'jax_enable_x46'.
      at ...
      hint: did you mean 'enable_x64'?

    Remedy: correct it. In a scope ``hx.configure`` sets settings.

    >>> with hx.configure(enable_x64=True):
    ...     print(hnp.ones(2).dtype)
    float64

    Elsewhere: JAX raises AttributeError, or ValueError for a value.
    """


class PlatformUnavailable(ConfigurationError, RuntimeError):
    """A platform that is unknown, not allowed here, or without a plug-in or a device.

    The machine has no such device, the plug-in for it is not installed, or the setting ``platforms`` leaves it out.

    >>> hx.devices("tpu")
    Traceback (most recent call last):
    handlax.errors.PlatformUnavailable: the platform must be 'cpu' or 'cuda', got 'tpu'
      at ...
      hint: choose one of them

    Remedy: ask for what there is.

    >>> hx.devices()[0].platform
    'cpu'

    Elsewhere: JAX raises RuntimeError.
    """


class ProfilerMisuse(HandlaxError, RuntimeError, ValueError):
    """A profile or a server that is started twice, or ended without being started.

    One profile is recorded at a time, and it ends once.

    >>> hx.profiler.stop_trace()
    Traceback (most recent call last):
    handlax.errors.ProfilerMisuse: stop_trace: no profile is recorded.
      at ...
      hint: start_trace begins one.

    Remedy: let ``with`` begin and end it.

    >>> with hx.profiler.trace("profile"):
    ...     y = hnp.sin(1.0)

    Elsewhere: JAX raises RuntimeError.
    """


class NotRegistered(BadArgument, AssertionError):
    """A listener of events that was never registered, or not for events of this kind.

    A listener is taken away by the same function object by which it was registered; a lambda is a new one each time.

    >>> hx.monitoring.unregister_event_listener(lambda event: print(event))
    Traceback (most recent call last):
    handlax.errors.NotRegistered: unregister_event_listener: the function must be registered, got <function <lambda>
      at 0x...>.
      at ...
      hint: help(hx.errors.NotRegistered) explains it.

    Remedy: keep the function in a variable.

    >>> def listen(event, **kwargs):
    ...     print(event)
    >>> hx.monitoring.register_event_listener(listen)
    >>> hx.monitoring.unregister_event_listener(listen)

    Elsewhere: JAX raises AssertionError.
    """
