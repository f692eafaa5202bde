"""Errors about rules, effects and handlers, derivatives and the texts of programs."""

from __future__ import annotations

from .error import HandlaxError


class MissingRule(HandlaxError, LookupError):
    """An operation for which the column of a handler has no rule.

    A transformation needs the meaning of an operation, and the operation does not say it.

    >>> @hx.operation
    ... class Triple:
    ...     def result_type(op, x):
    ...         return x
    ...     def evaluate(op, x):
    ...         return 3 * x
    >>> def triple(x):
    ...     return hx.perform(Triple(), x)
    >>> hx.vmap(triple)(hnp.ones(2))
    Traceback (most recent call last):
    handlax.errors.MissingRule: batch: triple has no rule in this column.
      at ...
      hint: write a function `batch` in its block, or add it from outside: @hx.columns.batch.rule(Triple).

    Remedy: write the rule in the block of the operation, or from outside.

    >>> @hx.columns.batch.rule(Triple)
    ... def batch(op, dims, x):
    ...     return hx.perform(op, x), dims[0]
    >>> hx.vmap(triple)(hnp.ones(2))
    Array([3., 3.], dtype=float32)

    Elsewhere: JAX raises NotImplementedError.
    """


class NotSparse(HandlaxError, NotImplementedError, ValueError):
    """An operation that would make a sparse array dense, or has no meaning for a sparse array.

    The result would have a number at each place that is not stored, such as the cosine of 0.

    >>> from handlax.experimental import sparse
    >>> x = sparse.BCOO.fromdense(hnp.array([0.0, 2.0]))
    >>> sparse.sparsify(hnp.cos)(x)
    Traceback (most recent call last):
    handlax.errors.NotSparse: cos: it has no sparse result, got BCOO(float32[2], nse=1).
      at ...
      hint: sparse.todense(x) gives the dense array; or add a rule: @hx.columns.sparse.rule(Cos).

    Remedy: make the array dense where that is meant, or take a function that keeps zeros.

    >>> hnp.cos(x.todense())
    Array([ 1.       , -0.4161468], dtype=float32)
    >>> sparse.sparsify(hnp.sin)(x)
    BCOO(float32[2], nse=1)

    Elsewhere: JAX raises NotImplementedError.
    """


class UnhandledEffect(HandlaxError, LookupError, ValueError):
    """An effect that no handler on the stack answers, or that is left in a program to be compiled.

    A function performs an effect, and no handler around the call has a clause for it.

    >>> @hx.effect
    ... class Rate:
    ...     def result_type(op):
    ...         return hx.ArrayType((), hnp.float32)
    >>> def step(x):
    ...     return x - hx.perform(Rate()) * x
    >>> step(1.0)
    Traceback (most recent call last):
    handlax.errors.UnhandledEffect: rate: nobody handles Rate().
      at ...
      hint: run it under hx.handle(handler)(f), with a clause for it.

    Remedy: call it under a handler; ``hx.effects_of(f)(*args)`` lists the effects that need one.

    >>> hx.handle(hx.handler({Rate: lambda op: 0.25}))(step)(1.0)
    Array(0.75, dtype=float32)

    Elsewhere: JAX has no effects of users.
    """


class UnboundAxis(UnhandledEffect, NameError):
    """A named axis that no ``vmap`` or mesh around the program binds.

    A collective names an axis, and no ``vmap``, ``pmap`` or ``shard_map`` around the call binds this name.

    >>> def centred(x):
    ...     return x - lax.pmean(x, "batch")
    >>> centred(hnp.array([1.0, 3.0]))
    Traceback (most recent call last):
    handlax.errors.UnboundAxis: pmean: nothing binds the axis 'batch'; in scope is none.
      at ...
      hint: bind it: vmap or pmap(..., axis_name='batch'), or shard_map over a mesh that has it.

    Remedy: bind the name around the function.

    >>> hx.vmap(centred, axis_name="batch")(hnp.array([1.0, 3.0]))
    Array([-1.,  1.], dtype=float32)

    Elsewhere: JAX raises NameError.
    """


class CannotCross(HandlaxError, RuntimeError):
    """A handler or an effect that cannot cross an operation or a transformation.

    An effect is performed under a transformation or in a loop for which its block does not say what it means there, or
    through which the state of a handler outside has no order in which to go.
    Nothing is guessed: to run it once, and once in each lane, are different programs.

    >>> @hx.effect
    ... class Tell:
    ...     def result_type(op):
    ...         return None
    >>> def told(x):
    ...     hx.perform(Tell())
    ...     return 2 * x
    >>> count = hx.handler({Tell: lambda n, op: (n + 1, None)})
    >>> hx.handle(count, 0)(hx.vmap(told))(hnp.ones(3))
    Traceback (most recent call last):
    handlax.errors.CannotCross: tell: this effect cannot cross vmap: it is declared with vmap='refuse'.
      at ..., under handler(Tell)
      hint: declare what it means with @hx.effect(vmap='once' or 'per_lane'), or handle it inside:
        vmap(hx.handle(h)(f)).

    Remedy: declare what it means there, ``@hx.effect(vmap="per_lane")``, or put the handler inside, where each lane has
    a state of its own.

    >>> hx.vmap(hx.handle(count, 0)(told))(hnp.ones(3))
    (Array([1, 1, 1], dtype=int32, weak_type=True), Array([2., 2., 2.], dtype=float32))

    Elsewhere: JAX has no effects of users; handlers of libraries on top of JAX are mostly skipped without an error.
    """


class EndlessCalls(HandlaxError, RecursionError):
    """Rules or clauses that call each other deeper than any stack.

    The default clause of an effect performs the same effect again, and never comes to an end.

    >>> @hx.effect
    ... class Factorial:
    ...     n: int
    ...     def result_type(op):
    ...         return hx.ArrayType((), hnp.int32)
    ...     def default(op):
    ...         return op.n * hx.perform(Factorial(op.n - 1))
    >>> hx.perform(Factorial(3))
    Traceback (most recent call last):
    handlax.errors.EndlessCalls: factorial: default clauses that perform effects must end, got thousands within each
      other.
      at ...
      hint: a default clause is answered by defaults too: it decides by fields of its effect, which differ from one to
        the next, or by lax.cond and lax.while_loop.

    Remedy: decide by a field of the effect when it ends.

    >>> @hx.effect
    ... class Factorial:
    ...     n: int
    ...     def result_type(op):
    ...         return hx.ArrayType((), hnp.int32)
    ...     def default(op):
    ...         return op.n * hx.perform(Factorial(op.n - 1)) if op.n else 1
    >>> hx.perform(Factorial(3))
    Array(6, dtype=int32)

    Elsewhere: Python raises RecursionError, which this class is too.
    """


class PythonAnswer(CannotCross):
    """An effect whose answer is a Python object, since ``result_type`` gives ``object``, where types are needed.

    Programs hold arrays; an effect that declares ``object`` may be answered by anything, where no program is recorded.

    >>> @hx.effect
    ... class Name:
    ...     def result_type(op):
    ...         return object
    >>> def named(x):
    ...     return 2 * x if hx.perform(Name()) == "double" else x
    >>> double = hx.handler({Name: lambda op: "double"})
    >>> hx.handle(double)(hx.jit(named))(3.0)
    Traceback (most recent call last):
    handlax.errors.PythonAnswer: name: its answer is a Python object, which no program or transformation holds.
      at ..., under jit > handler(Name)
      hint: perform it outside of jit, vmap and grad; under a clause that takes resume, in direct style:
        hx.direct(h)(f).

    Remedy: perform it before, and let the program use what was answered.

    >>> def named(x):
    ...     name = hx.perform(Name())
    ...     return hx.jit(lambda x: 2 * x if name == "double" else x)(x)
    >>> hx.handle(double)(named)(3.0)
    Array(6., dtype=float32, weak_type=True)

    Elsewhere: JAX has no effects of users.
    """


class NotDifferentiable(HandlaxError, TypeError):
    """A derivative of a function or value that has none.

    Derivatives are those of floats by floats; a gradient is that of one number.

    >>> hx.grad(lambda x: x**2)(3)
    Traceback (most recent call last):
    handlax.errors.NotDifferentiable: grad: the derivative by x, of dtype int32, is not defined.
      at ...
      hint: use a floating-point argument, 3.0 instead of 3, leave it out of argnums, or set allow_int=True.

    Remedy: pass a float; of a function with several results ``jacrev`` or ``jacfwd`` has all derivatives, and
    ``experimental.sparse`` has those by the entries of sparse arrays.

    >>> hx.grad(lambda x: x**2)(3.0)
    Array(6., dtype=float32, weak_type=True)
    >>> hx.jacrev(lambda x: x**2)(hnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)

    Elsewhere: JAX raises TypeError.
    """


class RegistrationError(HandlaxError, ValueError):
    """A second registration of the same thing, or one that is not possible.

    A block, a rule or a setting cannot be registered as it is written, or there is one already.

    >>> @hx.effect
    ... class Silent:
    ...     level: int
    Traceback (most recent call last):
    handlax.errors.RegistrationError: effect: Silent must declare the type of its result, there is no result_type in
      its block.
      at ...
      hint: def result_type(op): return None where it has none.

    Remedy: write what is missing; in place of a rule that is there, ``hx.rules`` puts another one in force in a scope.

    >>> @hx.effect
    ... class Silent:
    ...     level: int
    ...     def result_type(op):
    ...         return None

    Elsewhere: JAX replaces a rule silently.
    """


class ParseError(HandlaxError, ValueError):
    """A text that is not a program; ``line`` and ``column`` of the first mistake, counted from 1.

    The text of a program was changed by hand, cut off, or is of another language.
    ``parse_program`` gives a program or this error as a value, which ``unwrap()`` and ``failure()`` take out.

    >>> text = str(hx.make_program(lax.sin)(1.0))
    >>> raise hx.parse_program(text.replace("sin a", "sine a")).failure()
    Traceback (most recent call last):
    handlax.errors.ParseError: parse: line 2, column 15: expected a known operation, got 'sine'.
      at ...
      hint: near are sin, sinh, sign.

    Remedy: correct the text at that line and column, which are attributes of the error.

    >>> hx.parse_program(text).unwrap().ops
    (Sin(),)
    >>> hx.parse_program(text.replace("sin a", "sine a")).failure().column
    15

    Elsewhere: JAX does not read the texts of its programs.
    """

    line: int = 0
    column: int = 0


class TypeCheckError(HandlaxError, TypeError):
    """A program whose equations do not have the types that it declares.

    A transformation or a person has made a program whose types are not those of its operations.

    >>> p = hx.make_program(lax.sin)(hnp.ones(3))
    >>> wrong = hx.Program(p.in_types, p.ops, p.args, [hx.ArrayType((7,), hnp.float32)], p.outs, p.consts)
    >>> hx.typecheck(wrong)
    Traceback (most recent call last):
    handlax.errors.TypeCheckError: typecheck: program: equation 0, b: f32[7] = sin a: states f32[7], its type is
      f32[3].
      at ...
      hint: help(hx.errors.TypeCheckError) explains it.

    Remedy: let ``result_type`` give the types, as recording does.

    >>> sin, = p.ops
    >>> right = hx.Program(p.in_types, p.ops, p.args, [sin.result_type(*p.in_types)], p.outs, p.consts)
    >>> right == p
    True

    Elsewhere: JAX's ``JaxprTypeError``, which is another name of it.
    """


class CheckFailed(HandlaxError, ValueError):
    """``check``, ``check_finite``, ``check_bounds`` or ``raise_``: a condition that must hold does not.

    The message is that of the check in the program.

    >>> def root(x):
    ...     hx.check(x >= 0, "the argument of root must not be negative")
    ...     return hnp.sqrt(x)
    >>> error, y = hx.checkify(hx.jit(root))(-4.0)
    >>> error.throw()
    Traceback (most recent call last):
    handlax.errors.CheckFailed: the argument of root must not be negative.
      at ...
      hint: help(hx.errors.CheckFailed) explains it.

    Remedy: correct the value; or choose what is computed by the error, which ``checkify`` gives as a value.

    >>> error, y = hx.checkify(hx.jit(root))(4.0)
    >>> error.get(), y
    (None, Array(2., dtype=float32, weak_type=True))

    Elsewhere: JAX's ``checkify.JaxRuntimeError``.
    """

    quotes = True
