"""Calls of ``nn``: activations keep the floating dtype, and normalise along one axis."""

from .call_case import Array, Case, case, dtype_of, each

INF = float("inf")
x = Array("f32", (3, 4))
row = Array("f32", (4,), values=(1.0, -INF, 2.0, 0.5))


def activations() -> list[Case]:
    rows: list[Case] = []
    for name in ("relu", "relu6", "sigmoid", "silu", "swish", "softplus", "soft_sign", "log_sigmoid", "elu", "selu",
                 "celu", "gelu", "leaky_relu",
                 "hard_tanh", "hard_sigmoid", "hard_silu", "hard_swish", "mish", "squareplus", "tanh", "identity",
                 "sparse_plus", "sparse_sigmoid"):
        rows += each(f"nn.{name}", "f16 bf16 f32 f64", low=-4, high=4, loose=4) + [case(f"nn.{name}", 0.5, loose=4)]
    rows += [case("nn.relu", Array("i32")), case("nn.gelu", x, approximate=False, loose=4),
             case("nn.leaky_relu", x, 0.2), case("nn.elu", x, 0.5),
             case("nn.softplus", Array("f32", (4,), values=(-100.0, 0.0, 30.0, 200.0))),
             case("nn.glu", x, axis=-1, loose=4)]
    return rows + [case("nn.log_sigmoid", Array("f32", (4,), values=(-200.0, -1.0, 1.0, 200.0)))]


def normalisations() -> list[Case]:
    rows: list[Case] = []
    for name in ("softmax", "log_softmax", "logsumexp", "standardize"):
        rows += each(f"nn.{name}", "bf16 f32 f64", (3, 4), loose=16) + [case(f"nn.{name}", x, axis=0, loose=16)]
    rows += [case("nn.softmax", row), case("nn.log_softmax", row, loose=4), case("nn.logsumexp", row),
             case("nn.logsumexp", x, axis=1, keepdims=True),
             case("nn.softmax", x, where=Array("b1", (3, 4), seed=2), loose=4),
             case("nn.logsumexp", x, b=Array("f32", (3, 4), 0.5), loose=4),
             case("nn.logsumexp", Array("f32", (2,), values=(-INF, -INF))), case("nn.softmax", x, axis=(0, 1), loose=4)]
    rows += [case("nn.one_hot", Array("i32", (4,), values=(0, 2, 5, -1)), 3),
             case("nn.one_hot", Array("i32", (2, 2), 0, 3), 3, dtype=dtype_of("i8")),
             case("nn.one_hot", Array("i32", (3,), 0, 4), 4, axis=0, dtype=dtype_of("bf16"))]
    return rows


CASES = [*activations(), *normalisations()]
