"""Arrays and trees shown by treescope."""

import jax
import jax.numpy as jnp
import treescope

X = jnp.arange(60.0).reshape(5, 12) / 8
TREE = {"weights": [X, jnp.zeros(3)], "step": 3, "mask": jnp.array([True, False])}


def a_tree_as_text():
    return treescope.render_to_text(TREE), treescope.render_to_text((jnp.arange(4), jnp.float32(2.5)))


def a_large_array_is_summarised():
    return treescope.render_to_text(jnp.arange(10_000.0).reshape(100, 100))


def a_tree_as_a_page():
    page = treescope.render_to_html({"mask": TREE["mask"], "step": 3})
    return [word in page for word in ("mask", "dtype=bool", "False", "step")]


def an_array_as_a_picture():
    return [len(treescope.render_array(x)._repr_html_()) for x in (X, X > 0, jnp.arange(12).reshape(3, 4))]


def a_traced_value():
    shown = []
    jax.jit(lambda x: shown.append(treescope.render_to_text(x)) or x)(X)
    return "[5,12]" in shown[0]
