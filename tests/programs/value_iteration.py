"""Value iteration on a grid with walls: the values, the greedy policy, and the way out that it walks."""

import handlax.numpy as jnp
from handlax import jit, vmap

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


def after(state, move, walls):
    size = jnp.array(walls.shape)
    there = jnp.clip(state + move, 0, size - 1)
    return jnp.where(walls[there[0], there[1]], state, there)


@jit
def sweep(values, walls, goal):
    def best(state):
        there = vmap(lambda move: after(state, move, walls))(jnp.array(MOVES))
        gains = values[there[:, 0], there[:, 1]] * 0.9 - 0.04
        at_goal = jnp.all(state == goal)
        return jnp.where(at_goal, 1.0, gains.max()), jnp.where(at_goal, -1, gains.argmax())

    rows, columns = jnp.indices(walls.shape)
    return vmap(vmap(best))(jnp.stack([rows, columns], axis=-1))


def main():
    walls = jnp.zeros((5, 5), dtype=bool).at[jnp.array([1, 1, 1, 3, 3]), jnp.array([0, 1, 3, 1, 2])].set(True)
    goal = jnp.array([4, 4])
    values = jnp.zeros((5, 5))
    for _ in range(15):
        values, policy = sweep(values, walls, goal)
    state, steps = jnp.array([0, 0]), []
    for _ in range(9):
        move = policy[state[0], state[1]]
        state = jnp.where(move < 0, state, after(state, jnp.array(MOVES)[move], walls))
        steps.append(state)
    return {"values": values, "policy": policy, "steps": jnp.stack(steps)}
