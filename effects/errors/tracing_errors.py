"""Errors about traced values, and about tracing where it is refused."""

from __future__ import annotations

from .error import HandlaxError


class ConcretizationError(HandlaxError, TypeError):
    """A conversion of a box, of which only the type is known, to a Python or NumPy value.

    While a function is traced, its values have types and no numbers: the same program serves every number.
    Python asked such a value for its number.

    >>> hx.jit(lambda x: float(x) * 2)(3.0)
    Traceback (most recent call last):
    handlax.errors.ConcretizationError: float: a Python number needs a known value, got f32[]~ under jit, which
      depends on x, made at ....
      at ..., under jit
      hint: keep it an array: astype, numpy.stack, a.at[i].set(x); or move float() outside of the function.

    Remedy: stay with functions of ``hx.numpy``, which are recorded; or declare the argument static.

    >>> hx.jit(lambda x: x.astype(float) * 2)(3.0)
    Array(6., dtype=float32)
    >>> hx.jit(lambda x: float(x) * 2, static_argnums=0)(3.0)
    Array(6., dtype=float32, weak_type=True)

    Elsewhere: the same as JAX's ``ConcretizationTypeError``, which is another name of it.
    """


class TracerBoolConversionError(ConcretizationError):
    """A Python ``if``, ``while``, ``and`` or ``assert`` on a box.

    Python's ``if`` takes one branch, and which one depends on a number that is not known while the function is traced.

    >>> @hx.jit
    ... def relu(x):
    ...     return x if x > 0 else 0.0
    >>> relu(-1.0)
    Traceback (most recent call last):
    handlax.errors.TracerBoolConversionError: bool: a Python condition needs a known value, got bool[] under jit,
      which depends on x, made at ....
      at ..., under jit
      hint: if: hx.lax.cond, hx.numpy.where; while: hx.lax.while_loop; or make the argument static (static_argnums).

    Remedy: compute both and choose by ``hnp.where``, or let the program branch by ``lax.cond`` and ``lax.while_loop``.

    >>> hx.jit(lambda x: hnp.where(x > 0, x, 0.0))(-1.0)
    Array(0., dtype=float32, weak_type=True)
    >>> hx.jit(lambda x: lax.cond(x > 0, lambda x: x, lambda x: 0.0, x))(-1.0)
    Array(0., dtype=float32, weak_type=True)

    Elsewhere: the same in JAX.
    """


class TracerIntegerConversionError(ConcretizationError):
    """A box where Python needs an integer, such as a list index or a shape.

    A shape, a ``range`` or an index of a list needs an integer now, and the value is traced.

    >>> hx.jit(lambda n: hnp.zeros(n))(3)
    Traceback (most recent call last):
    handlax.errors.TracerIntegerConversionError: zeros: the sizes of a shape must be known, got (i32[]~,), which
      depends on n.
      at ..., under jit
      hint: make the argument that it comes from static (static_argnums), or use x.shape, which is always known.

    Remedy: make the integer static; a loop with a traced bound is ``lax.fori_loop``.

    >>> hx.jit(lambda n: hnp.zeros(n), static_argnums=0)(3)
    Array([0., 0., 0.], dtype=float32)
    >>> hx.jit(lambda n: lax.fori_loop(0, n, lambda i, total: total + i, 0))(4)
    Array(6, dtype=int32, weak_type=True)

    Elsewhere: the same in JAX.
    """


class TracerArrayConversionError(ConcretizationError):
    """A box passed to a function of NumPy.

    A function of NumPy needs the numbers of its argument, and got a traced value.

    >>> hx.jit(lambda x: np.sin(x))(0.0)
    Traceback (most recent call last):
    handlax.errors.TracerArrayConversionError: numpy: only arrays with known values can be passed to NumPy, got f32[]~
      under jit, which depends on x, made at ....
      at ..., under jit
      hint: use the function of the same name in hx.numpy.

    Remedy: use the function of the same name in ``hx.numpy``; ``hx.pure_callback`` calls NumPy when the program runs.

    >>> hx.jit(lambda x: hnp.sin(x))(0.0)
    Array(0., dtype=float32, weak_type=True)

    Elsewhere: the same in JAX.
    """


class NonConcreteBooleanIndexError(ConcretizationError, IndexError):
    """A boolean mask as an index, the values of which are unknown while tracing.

    As many elements are selected as the mask has true values, and a traced mask has no values to count.

    >>> x = hnp.array([1.0, -2.0, 3.0])
    >>> hx.jit(lambda x: x[x > 0].sum())(x)
    Traceback (most recent call last):
    handlax.errors.NonConcreteBooleanIndexError: index: the values of a mask must be known, got bool[3] under jit,
      which depends on x.
      at ..., under jit
      hint: use where(mask, x, y), or nonzero(mask, size=n) for a known number of elements.

    Remedy: keep the shape and replace the others, or bound their number by ``size=``.

    >>> hx.jit(lambda x: hnp.where(x > 0, x, 0.0).sum())(x)
    Array(4., dtype=float32)
    >>> hx.jit(lambda x: x[hnp.nonzero(x > 0, size=2)[0]])(x)
    Array([1., 3.], dtype=float32)

    Elsewhere: the same in JAX.
    """


class EscapedBox(HandlaxError, RuntimeError):
    """A box was used after its transformation ended, or in another thread's stack.

    A value of a trace was kept in a variable outside of the function, and used when the trace was over.
    JAX calls it a leaked tracer.

    >>> kept = []
    >>> @hx.jit
    ... def f(x):
    ...     kept.append(x * 2)
    ...     return x
    >>> y = f(1.0)
    >>> kept[0] + 1
    Traceback (most recent call last):
    handlax.errors.EscapedBox: escaped box: a value f32[]~ of jit, installed at ..., which has ended, was used again;
      it was made at ....
      at ...
      hint: return values from the transformed function instead of storing them in variables outside it.

    Remedy: return the value.

    >>> y, kept = hx.jit(lambda x: (x, x * 2))(1.0)
    >>> kept + 1
    Array(3., dtype=float32, weak_type=True)

    Elsewhere: JAX's ``UnexpectedTracerError``, which is another name of it.
    """


class TracingRefused(HandlaxError, RuntimeError):
    """``no_tracing``: a call that has to be traced.

    Under ``hx.no_tracing`` a function is called with a type, structure or static argument that is new to it.

    >>> f = hx.jit(lambda x: 2 * x)
    >>> with hx.no_tracing():
    ...     f(1.0)
    Traceback (most recent call last):
    handlax.errors.TracingRefused: <lambda>: no function may be traced under no_tracing, and this one was not for such
      arguments.
      at ...
      hint: call it once before; hx.explain(f) says for which arguments it was traced.

    Remedy: call it once before, or find out by ``hx.explain(f)`` why the arguments differ from those of earlier calls.

    >>> y = f(1.0)
    >>> with hx.no_tracing():
    ...     print(f(3.0))
    6.0

    Elsewhere: JAX raises RuntimeError.
    """


class Leak(HandlaxError, RuntimeError):
    """``checking_leaks``: a box outlived its transformation.

    Under ``hx.checking_leaks`` a value of a trace that is still referenced when the trace ends is an error at once.
    Without it the mistake is found later, as ``EscapedBox``, or never.

    >>> kept = []
    >>> with hx.checking_leaks():
    ...     hx.jit(lambda x: kept.append(x * 2))(1.0)
    Traceback (most recent call last):
    handlax.errors.Leak: jit: no value of a trace may outlive it, got f32[]~, made at ..., still referenced.
      at ...
      hint: return it, instead of keeping it in a variable outside the function.

    Remedy: return the value.

    >>> with hx.checking_leaks():
    ...     kept = hx.jit(lambda x: x * 2)(1.0)
    >>> kept
    Array(2., dtype=float32, weak_type=True)

    Elsewhere: JAX raises Exception.
    """
