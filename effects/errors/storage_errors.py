"""Errors about files, exported functions and modules that are not there."""

from __future__ import annotations

from .error import HandlaxError


class BadArtifact(HandlaxError, ValueError):
    """Bytes that are no exported function: damaged, cut off, of another format, or of a later version of it.

    The bytes of an exported function were cut off, changed, or never were such bytes.

    >>> blob = hx.export.export(hx.jit(lambda x: 2 * x))(1.0).serialize()
    >>> hx.export.deserialize(blob[:-1])
    Traceback (most recent call last):
    handlax.errors.BadArtifact: deserialize: the bytes must be those of an exported function, got bytes that do not
      have their checksum.
      at ...
      hint: give the bytes that serialize() returned, all of them and nothing else.

    Remedy: give all bytes that ``serialize()`` returned; where they are lost, export the function again.

    >>> hx.export.deserialize(blob).call(3.0)
    Array(6., dtype=float32)
    """


class NotSaved(HandlaxError, OSError):
    """A tree that cannot be saved: its folder cannot be written to, or another save is writing to it.

    The folder cannot be written to: it is a file, the disk is full, a right is missing, or another save holds it.

    >>> import pathlib
    >>> size = pathlib.Path("weights").write_text("a file")
    >>> hx.checkpoints.save("weights", {"w": hnp.ones(2)})
    Traceback (most recent call last):
    handlax.errors.NotSaved: save: files must be written to ...weights, got File exists.
      at ...
      hint: help(hx.errors.NotSaved) explains it.

    Remedy: save to a folder that is new, or that holds a saved tree.

    >>> hx.checkpoints.save("step-1", {"w": hnp.ones(2)})
    >>> hx.checkpoints.restore("step-1")
    {'w': Array([1., 1.], dtype=float32)}
    """


class BadCheckpoint(HandlaxError, ValueError):
    """A folder or file without a saved tree that is whole: it is damaged, of a later version, or something else.

    There is no saved tree: the path is another's, a save was killed before its end, or a later version made it.

    >>> import pathlib
    >>> pathlib.Path("step-1").mkdir()
    >>> hx.checkpoints.restore("step-1")
    Traceback (most recent call last):
    handlax.errors.BadCheckpoint: restore: ...step-1/zarr.json must be the table of contents of a saved tree, got
      none.
      at ...
      hint: a save that was killed leaves none.

    Remedy: restore what was saved; ``CheckpointManager.resume`` finds the last step that is whole.

    >>> hx.checkpoints.save("step-1", {"w": hnp.ones(2)})
    >>> hx.checkpoints.restore("step-1")
    {'w': Array([1., 1.], dtype=float32)}
    """


class MissingCheckpoint(BadCheckpoint, FileNotFoundError):
    """A path at which there is no folder and no file, where a saved tree was to be read.

    The path is misspelt, relative to another working directory, or nothing was saved there.

    >>> hx.checkpoints.restore("step-1")
    Traceback (most recent call last):
    handlax.errors.MissingCheckpoint: restore: there must be a saved tree at ...step-1, got no folder and no file.
      at ...
      hint: checkpoints.save(path, tree) makes one; CheckpointManager.resume finds the last step that is whole.

    Remedy: restore what was saved.

    >>> hx.checkpoints.save("step-1", {"w": hnp.ones(2)})
    >>> hx.checkpoints.restore("step-1")
    {'w': Array([1., 1.], dtype=float32)}

    Elsewhere: Python raises FileNotFoundError, which this class is too.
    """

    @classmethod
    def at(cls, where: str, path: object) -> MissingCheckpoint:
        """The error that nothing is at ``path``; ``where`` names the function."""
        return cls(
            f"{where}: there must be a saved tree at {path}, got no folder and no file.",
            hint="checkpoints.save(path, tree) makes one; CheckpointManager.resume finds the last step that is whole.",
        )


class DamagedCheckpoint(BadCheckpoint):
    """A saved tree whose bytes were read, or are missing, and are not as they were saved: no later try will differ.

    Every array is saved with a checksum, and the bytes on disk do not have it: a disk or a copy has failed.

    >>> import pathlib
    >>> for step in ("step-1", "step-2"):
    ...     hx.checkpoints.save(step, {"w": hnp.ones(2)})
    >>> data, = [path for path in pathlib.Path("step-2").rglob("0") if path.is_file()]
    >>> size = data.write_bytes(bytes(12))
    >>> hx.checkpoints.restore("step-2")
    Traceback (most recent call last):
    handlax.errors.DamagedCheckpoint: restore: the leaf at ['w'] must be as it was saved, got DATA_LOSS: ...
      at ...
      hint: an earlier checkpoint is not damaged by this one.

    Remedy: restore an earlier step, as ``CheckpointManager.resume`` does by itself.

    >>> hx.checkpoints.restore("step-1")
    {'w': Array([1., 1.], dtype=float32)}
    """


class NotExportable(HandlaxError, ValueError, NotImplementedError):
    """A function, or a part of one, that cannot be exported, or an exported one that cannot be called here.

    An exported function runs in other processes, and something in it belongs to this one, such as a Python function.

    >>> def logged(x):
    ...     hx.debug.print("x = {}", x)
    ...     return 2 * x
    >>> hx.export.export(hx.jit(logged))(1.0)
    Traceback (most recent call last):
    handlax.errors.NotExportable: export: logged must not call the host, whose functions stay in this process, got
      DebugPrint(format='x = {}', arguments=None, ordered=False, logged=False, options=()).
      at ...
      hint: return what it is to see as a result.

    Remedy: return what is to be seen outside.

    >>> exported = hx.export.export(hx.jit(lambda x: (x, 2 * x)))(1.0)
    >>> exported.call(3.0)
    (Array(3., dtype=float32), Array(6., dtype=float32))

    Elsewhere: JAX raises NotImplementedError when it is serialized.
    """


class NotSerializable(NotExportable, TypeError):
    """A tree of arguments or results with a key or a type of nodes that has no form in bytes.

    The structure of arguments and results is written with the function, and keys are strings there.

    >>> hx.export.export(hx.jit(lambda layers: layers[0] + 1))({0: 2.0}).serialize()
    Traceback (most recent call last):
    handlax.errors.NotSerializable: serialize: the keys of dictionaries must be strings, got 0.
      at ...
      hint: help(hx.errors.NotSerializable) explains it.

    Remedy: use strings as keys, lists or tuples; register containers of your own.

    >>> blob = hx.export.export(hx.jit(lambda layers: layers["0"] + 1))({"0": 2.0}).serialize()
    >>> hx.export.deserialize(blob).call({"0": 5.0})
    Array(6., dtype=float32)
    """


class JaxIsLoaded(HandlaxError, ImportError):
    """``as_jax``: JAX itself is loaded in the process in which handlax is to stand for it.

    ``handlax.as_jax`` answers ``import jax``; a module that has imported JAX itself would keep it, and two libraries
    would work on the same values.

        import types, sys
        sys.modules["jax"] = types.ModuleType("jax")  # as import jax does, where JAX is installed
        from handlax import as_jax
        as_jax.install()

    Remedy: call ``install()`` before anything imports jax, or start by ``python -m handlax.as_jax script.py``.

        from handlax import as_jax
        as_jax.install()
        import jax
        assert jax.numpy.ones(2).sum() == 2
    """


class MissingModule(HandlaxError, ModuleNotFoundError):
    """A module or name of JAX's that is not there: handlax does not have it for ``as_jax``, or JAX is not installed.

    A package that is needed for this call alone is not installed, or a program behind ``as_jax`` imports a module of
    JAX's that handlax does not have.

        from handlax import as_jax
        as_jax.install()
        import jax.experimental.pallas

    Remedy: install the package that the message names; instead of a module, use one that is there, here ``ffi``.

        from handlax import as_jax
        as_jax.install()
        import jax.ffi

    Elsewhere: Python raises ModuleNotFoundError, which this class is too.
    """
