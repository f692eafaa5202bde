"""Trees of arrays saved and restored by orbax, on eight devices and by two processes."""

import socket
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental.array_serialization.serialization import GlobalAsyncCheckpointManager
from jax.sharding import NamedSharding, PartitionSpec
from orbax.checkpoint.experimental import v1

jax.config.update("jax_num_cpu_devices", 8)
TREE = {"a": jnp.arange(6.0).reshape(2, 3), "b": [jnp.int32(3), 2.5, jnp.ones(2, jnp.bfloat16)]}


def a_tree():
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(f"{folder}/tree", TREE)
        checkpointer.wait_until_finished()
        as_saved = checkpointer.restore(f"{folder}/tree")
        return as_saved, checkpointer.restore(f"{folder}/tree", jax.eval_shape(lambda: TREE))


def a_random_key():
    with tempfile.TemporaryDirectory() as folder, ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(f"{folder}/tree", {"key": jax.random.key(7)})
        return jax.random.normal(checkpointer.restore(f"{folder}/tree")["key"], (3,))


def the_last_steps_of_training():
    options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=2)
    with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder, options=options) as manager:
        step = jax.jit(jax.grad(lambda w: (w**2).sum()))
        w = jnp.arange(3.0)
        for i in range(7):
            w = w - 0.1 * step(w)
            manager.save(i, args=ocp.args.StandardSave({"w": w}))
        manager.wait_until_finished()
        return manager.all_steps(), manager.restore(4, args=ocp.args.StandardRestore({"w": jnp.zeros(3)})), w


def items_of_several_kinds():
    with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder) as manager:
        items = {"state": ocp.args.StandardSave(TREE), "about": ocp.args.JsonSave({"epoch": 3, "name": "run"})}
        manager.save(0, args=ocp.args.Composite(**items))
        manager.wait_until_finished()
        wanted = {"state": ocp.args.StandardRestore(), "about": ocp.args.JsonRestore()}
        restored = manager.restore(0, args=ocp.args.Composite(**wanted))
        return restored["state"], restored["about"]


def _over(axes, *spec):
    """An array over eight devices, and what it is like."""
    sharding = NamedSharding(jax.make_mesh([*axes.values()], [*axes]), PartitionSpec(*spec))
    x = jax.device_put(np.arange(64, dtype="float32").reshape(8, 8), sharding)
    return x, jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


def _parts(x):
    return str(x.sharding.spec), [shard.data for shard in x.addressable_shards]


def arrays_over_other_devices_than_before():
    saved = {"rows": _over({"i": 8}, "i")[0], "whole": _over({"i": 8})[0], "both": _over({"i": 4, "j": 2}, "j", "i")[0]}
    like = dict.fromkeys(saved, _over({"i": 2, "j": 4}, "i", "j")[1])
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(f"{folder}/tree", saved)
        checkpointer.wait_until_finished()
        found, as_saved = checkpointer.restore(f"{folder}/tree", like), checkpointer.restore(f"{folder}/tree")
        return [_parts(x) for x in (*found.values(), *as_saved.values())]


def other_shapes_and_dtypes():
    with tempfile.TemporaryDirectory() as folder, ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(f"{folder}/tree", {"x": _over({"i": 8}, "i")[0], "n": 3, "host": np.arange(3)})
        sharding = _over({"i": 2, "j": 4}, "i", "j")[1].sharding
        asked = {
            "x": ocp.ArrayRestoreArgs(sharding=sharding, dtype=jnp.bfloat16, global_shape=(8, 4), strict=False),
            "n": ocp.RestoreArgs(restore_type=int), "host": ocp.RestoreArgs(restore_type=np.ndarray),
        }
        found = checkpointer.restore(f"{folder}/tree", restore_args=asked)
        return found, str(found["x"].dtype), type(found["n"]).__name__, type(found["host"]).__name__


def a_part_of_a_tree():
    with tempfile.TemporaryDirectory() as folder, ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(f"{folder}/tree", TREE)
        wanted = ocp.args.PyTreeRestore({"a": jax.ShapeDtypeStruct((2, 3), jnp.float32)}, partial_restore=True)
        return checkpointer.restore(f"{folder}/tree", args=wanted)


def arrays_that_are_donated_while_they_are_written():
    x, handler = _over({"i": 8}, "i")[0], ocp.StandardCheckpointHandler()
    with tempfile.TemporaryDirectory() as folder, ocp.AsyncCheckpointer(handler) as checkpointer:
        checkpointer.save(f"{folder}/tree", args=ocp.args.StandardSave({"x": x}))
        y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
        checkpointer.wait_until_finished()
        return checkpointer.restore(f"{folder}/tree", args=ocp.args.StandardRestore()), y


def the_second_interface():
    x, like = _over({"i": 8}, "i")
    with tempfile.TemporaryDirectory() as folder:
        v1.save_pytree(f"{folder}/tree", {"x": x, "n": 3})
        return v1.load_pytree(f"{folder}/tree", {"x": like, "n": 0}), v1.load_pytree(f"{folder}/tree")


def single_arrays():
    x, like = _over({"i": 4, "j": 2}, "i", "j")
    with tempfile.TemporaryDirectory() as folder:
        manager = GlobalAsyncCheckpointManager()
        manager.serialize_with_paths([x], [f"{folder}/x"], on_commit_callback=lambda: None)
        manager.wait_until_finished()
        (found,) = manager.deserialize_with_paths([like.sharding], [f"{folder}/x"])
        return _parts(found)


_PROCESS = """
import sys
import jax, numpy as np
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec as P
jax.config.update("jax_num_cpu_devices", 2)
address, index, folder = sys.argv[1:]
jax.distributed.initialize(address, 2, int(index))
X = np.arange(64, dtype="float32").reshape(8, 8)
over = lambda axes, *spec: NamedSharding(jax.make_mesh([*axes.values()], [*axes]), P(*spec))
x = jax.make_array_from_callback((8, 8), over({"i": 4}, "i"), X.__getitem__)
with ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=1)) as manager:
    for step in range(2):
        manager.save(step, args=ocp.args.StandardSave({"x": x, "n": step}))
    manager.wait_until_finished()
    like = {"x": jax.ShapeDtypeStruct((8, 8), "float32", sharding=over({"i": 2, "j": 2}, "j", "i")), "n": 0}
    found = manager.restore(1, args=ocp.args.StandardRestore(like))
    assert all(np.array_equal(shard.data, X[shard.index]) for shard in found["x"].addressable_shards)
    print("found", manager.all_steps(), found["n"])
"""


def two_processes():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    how = ["-m", "handlax.as_jax"] if "handlax" in sys.modules else []
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write(_PROCESS)
        program.flush()
        started = [subprocess.Popen([sys.executable, *how, program.name, address, str(index), folder], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for index in range(2)]
        lines = [process.communicate(timeout=300)[0].splitlines() for process in started]
    return [line for each in lines for line in each if line.startswith("found")], [p.returncode for p in started]
