"""Trees of arrays saved and restored by orbax."""

import tempfile

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

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
