"""Errors about compiling and executing programs, on devices and by processes."""

from __future__ import annotations

from .error import HandlaxError


class DeviceMismatch(HandlaxError, ValueError):
    """Arrays on different devices in one computation.

    Devices are needed, and a part of the computation has others, or none: an abstract mesh describes devices only.

    >>> P = hx.sharding.PartitionSpec
    >>> mesh = hx.sharding.AbstractMesh((2,), ("data",))
    >>> hx.device_put(hnp.ones(2), hx.sharding.NamedSharding(mesh, P("data")))
    Traceback (most recent call last):
    handlax.errors.DeviceMismatch: NamedSharding(mesh=AbstractMesh('data': 2, axis_types=(Explicit,)),
      spec=P('data',)): an abstract mesh has no devices, and they were asked for.
      at ...
      hint: make the sharding with a mesh of devices, as hx.make_mesh gives.

    Remedy: bring everything to the same devices, by ``device_put`` with one mesh of devices.

    >>> mesh = hx.make_mesh((1,), ("data",))
    >>> hx.device_put(hnp.ones(2), hx.sharding.NamedSharding(mesh, P("data")))
    Array([1., 1.], dtype=float32)

    Elsewhere: JAX raises ValueError.
    """


class ProcessesDiffer(HandlaxError, AssertionError):
    """A value that is not the same in every process.

    All processes of a job perform the same operations with the same values over the devices of all.
    One of them brought another value, or came to another place of the program; the message names it.
    Most often a seed, a clock or the order of a set decides differently in each process.
    This script is run by two processes, ``python -m handlax.launch --processes 2 script.py``.

        import handlax as hx
        from handlax.experimental import multihost_utils
        hx.distributed.initialize()
        seed = hx.process_index()
        multihost_utils.assert_equal(seed)

    Remedy: let the first process decide, and send its value to all.

        import handlax as hx
        from handlax.experimental import multihost_utils
        hx.distributed.initialize()
        seed = multihost_utils.broadcast_one_to_all(hx.process_index())
        multihost_utils.assert_equal(seed)

    Elsewhere: JAX raises AssertionError in ``assert_equal``; after other differences it waits, or computes them.
    """


class NotAddressable(HandlaxError, RuntimeError):
    """The data of an array of which other processes hold a part, asked for in this one.

    All processes compute with an array over the devices of several processes, and each holds a part of it.
    Its values as NumPy's, its elements or its text need all parts.
    This script is run by two processes, ``python -m handlax.launch --processes 2 script.py``.

        import numpy as np
        import handlax as hx
        hx.distributed.initialize()
        mesh = hx.make_mesh((2,), ("data",))
        x = hx.device_put(np.arange(2.0), hx.sharding.NamedSharding(mesh, hx.sharding.PartitionSpec("data")))
        np.asarray(x)

    Remedy: gather the parts, or read those that are here, ``x.addressable_shards``.

        import numpy as np
        import handlax as hx
        from handlax.experimental import multihost_utils
        hx.distributed.initialize()
        mesh = hx.make_mesh((2,), ("data",))
        x = hx.device_put(np.arange(2.0), hx.sharding.NamedSharding(mesh, hx.sharding.PartitionSpec("data")))
        assert multihost_utils.process_allgather(x, tiled=True).tolist() == [0.0, 1.0]

    Elsewhere: JAX raises RuntimeError.
    """


class ProcessFailure(HandlaxError, RuntimeError):
    """Processes that cannot be joined, or one of them that has failed or is missing.

    The processes of a job find each other through the first one, before any of them uses a device.
    Either they could not be joined, or one of them has ended while the others still need it.

    >>> x = hnp.ones(3)
    >>> hx.distributed.initialize("127.0.0.1:8476", num_processes=2, process_id=0)
    Traceback (most recent call last):
    handlax.errors.ProcessFailure: distributed.initialize: processes must be joined before a device is used, and one
      was used.
      at ...
      hint: call it at the top: before hx.devices(), device_put, jit and every computation.

    Remedy: call it at the top of the script, in all processes, with an address that is free on the first one;
    ``python -m handlax.launch`` starts a script as several processes that are joined.

    >>> import subprocess, sys
    >>> command = [sys.executable, "-m", "handlax.launch", "--processes", "2", "-m", "handlax"]
    >>> subprocess.run(command, capture_output=True).returncode
    0

    Elsewhere: JAX raises RuntimeError, or ends the process.
    """


class XlaError(HandlaxError, RuntimeError):
    """A program that failed while it was compiled or executed, as XLA or a callback reports it.

    What is raised is one of the classes below it: of the compiler, of a foreign function, of memory or of a callback.

    >>> hx.jit(lambda x: x + 1, compiler_options={"optimization": 3})(1.0)
    Traceback (most recent call last):
    handlax.errors.CompileError: compiler options must be XLA's, got 'optimization'
      at ...
      hint: see xla.proto for their names

    Remedy: catch the class that says which of them it was.

    >>> try:
    ...     hx.jit(lambda x: x + 1, compiler_options={"optimization": 3})(1.0)
    ... except hx.errors.CompileError:
    ...     print(hx.jit(lambda x: x + 1)(1.0))
    2.0

    Elsewhere: JAX's ``JaxRuntimeError``, which is another name of it.
    """

    quotes = True


class CompileError(XlaError):
    """XLA refused a program.

    XLA does not know an option, or found a program that it cannot compile for this device.

    >>> hx.jit(lambda x: x + 1, compiler_options={"optimization": 3})(1.0)
    Traceback (most recent call last):
    handlax.errors.CompileError: compiler options must be XLA's, got 'optimization'
      at ...
      hint: see xla.proto for their names

    Remedy: correct the option; of a program ``f.lower(x).as_text()`` shows what XLA was given.

    >>> hx.jit(lambda x: x + 1, compiler_options={"optimization_level": 3})(1.0)
    Array(2., dtype=float32, weak_type=True)

    Elsewhere: JAX raises ``JaxRuntimeError``.
    """


class ExecutionError(XlaError):
    """A compiled program that failed while it was executed, as where a foreign function returns an error.

    A foreign function refused its arguments; the message is its own.
    Here LAPACK's letters, which have one byte, came as Python's integers of eight.

    >>> b = hnp.ones((2, 1))
    >>> solve = hx.ffi.ffi_call("lapack_strsm_ffi", b)
    >>> solve(hnp.eye(2), b, side=76, uplo=76, trans_x=78, diag=78)
    Traceback (most recent call last):
    handlax.errors.ExecutionError: a compiled program must be executed without an error, got INVALID_ARGUMENT:
      [execute] Failed to decode all FFI handler operands (bad operands at: 4, 5, 6, 7) ...

    Remedy: give the attributes the types that the function declares.

    >>> solve(hnp.eye(2), b, side=np.uint8(76), uplo=np.uint8(76), trans_x=np.uint8(78), diag=np.uint8(78))
    Array([[1.],
           [1.]], dtype=float32)

    Elsewhere: JAX raises ``JaxRuntimeError``.
    """


class OutOfMemory(XlaError, MemoryError):
    """A device without the memory for a program's results or intermediate arrays.

    An array, or the sum of those that a program needs at once, is larger than the memory of the device.

    >>> hnp.broadcast_to(1.0, 2**45) + 1
    Traceback (most recent call last):
    handlax.errors.OutOfMemory: the memory of the host must suffice, got Unable to allocate 128. TiB for an array with
      shape (35184372088832,) and data type float32.
      at ...
      hint: help(hx.errors.OutOfMemory) explains it.

    Remedy: compute in parts, as ``lax.map`` does; save fewer residuals by ``hx.checkpoint``; use several devices.
    ``hx.costs(f)(*args).memory`` tells what a program needs.

    >>> lax.map(lambda i: (hnp.broadcast_to(1.0, 2**10) + i).sum(), hnp.arange(2))
    Array([1024., 2048.], dtype=float32)

    Elsewhere: NumPy raises MemoryError, JAX ``JaxRuntimeError``.
    """


class CallbackError(XlaError):
    """A callback that raised, its error being ``__cause__``, or returned other types than declared.

    A Python function that a program calls raised an exception, or returned another type than was declared.

    >>> prices = {1: 2.5}
    >>> def price(n):
    ...     return hx.pure_callback(lambda n: np.float32(prices[int(n)]), hx.ShapeDtypeStruct((), "float32"), n)
    >>> hx.jit(price)(2)
    Traceback (most recent call last):
    handlax.errors.CallbackError: pure_callback: the callback must return, <lambda> raised KeyError: 2
      at ...
      hint: help(hx.errors.CallbackError) explains it.

    Remedy: make the function total, and let it return NumPy arrays of the declared types.

    >>> prices[2] = 4.0
    >>> hx.jit(price)(2)
    Array(4., dtype=float32)

    Elsewhere: JAX raises ``JaxRuntimeError``.
    """


class DeletedArray(HandlaxError, RuntimeError):
    """A use of an array that was donated or deleted.

    A donated argument has given its memory to the results of the call, so that it cannot be read any more.

    >>> double = hx.jit(lambda x: 2 * x, donate_argnums=0)
    >>> x = hnp.ones(3) + 1
    >>> y = double(x)
    >>> x + y
    Traceback (most recent call last):
    handlax.errors.DeletedArray: an array must be read before it is deleted or donated.
      at ...
      hint: copy it before.

    Remedy: give the result the name of the argument, or do not donate it.

    >>> x = hnp.ones(3) + 1
    >>> x = double(x)
    >>> x
    Array([4., 4., 4.], dtype=float32)

    Elsewhere: JAX raises RuntimeError.
    """


class ExecutionRefused(HandlaxError, RuntimeError):
    """``no_execution``: an operation or a compiled function that is to be executed.

    Under ``hx.no_execution`` programs are traced, lowered and compiled, and none is executed.

    >>> f = hx.jit(lambda x: 2 * x)
    >>> with hx.no_execution():
    ...     f(np.ones(3))
    Traceback (most recent call last):
    handlax.errors.ExecutionRefused: <lambda>: nothing is executed under no_execution.
      at ...
      hint: f.lower(x).compile() compiles it.

    Remedy: ask for the compiled program, and call it later.

    >>> with hx.no_execution():
    ...     compiled = f.lower(hx.ShapeDtypeStruct((3,), "float32")).compile()
    >>> compiled(hnp.ones(3))
    Array([2., 2., 2.], dtype=float32)

    Elsewhere: JAX raises RuntimeError.
    """


class TransferRefused(HandlaxError, RuntimeError):
    """``transfer_guard``: data that would have to be brought to or from a device.

    Under ``hx.transfer_guard("disallow")`` an array of NumPy's or a Python number was given to a program, which would
    bring it to the device without a word.

    >>> f = hx.jit(lambda x: 2 * x)
    >>> with hx.transfer_guard("disallow"):
    ...     f(np.ones(3))
    Traceback (most recent call last):
    handlax.errors.TransferRefused: transfer_guard: an implicit transfer, host to device, is not allowed here, got x
      of <lambda>, f64[3].
      at ...
      hint: device_put and device_get are explicit; transfer_guard('allow') allows it.

    Remedy: move it where you mean to, by ``device_put`` and ``device_get``.

    >>> with hx.transfer_guard("disallow"):
    ...     print(f(hx.device_put(np.ones(3))))
    [2. 2. 2.]

    Elsewhere: JAX hands on an error of XLA's.
    """


class FoundNaN(HandlaxError, FloatingPointError):
    """``debug_nans``: an operation whose result has a NaN.

    Under ``hx.debug_nans`` the first operation that makes a NaN is an error.

    >>> with hx.debug_nans(True):
    ...     hnp.log(-1.0)
    Traceback (most recent call last):
    handlax.errors.FoundNaN: log: results must be numbers, got NaN in f32[]~.
      at ...
      hint: the operands: f32[]~.

    Remedy: keep the operands within the domain of the operation.

    >>> with hx.debug_nans(True):
    ...     print(hnp.log(hnp.maximum(-1.0, 1e-6)))
    -13.815511

    Elsewhere: NumPy warns; JAX raises FloatingPointError.
    """
