"""``handlax.example_libraries.stax``: neural networks as pairs of functions, under JAX's names.

    init, apply = serial(Dense(64), Relu, Dense(10), LogSoftmax)
    shape, params = init(key, (-1, 784));  y = apply(params, x)

A layer is ``(init, apply)``. ``init(rng, input_shape)`` gives the shape of the result and the parameters, where -1 is a
size that is not known; ``apply(params, inputs, **kwargs)`` gives the result, and ``rng=`` reaches the layers that draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import lax, random
from ..effects.base.errors import BadArgument, BadCall
from ..effects.types.array_type import Shape
from ..nn import elu, gelu, initializers, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus
from ..numpy.arrays.index_arrays import where
from ..numpy.arrays.joining_splitting import concatenate
from ..numpy.arrays.shape_manipulation import expand_dims, reshape
from ..numpy.mathematics.elementary_functions import exp, sqrt, tanh
from ..numpy.statistics.averages import mean, var

Layer = tuple[Callable[..., Any], Callable[..., Any]]
"""``init(key, input_shape)``, which gives the shape of the output and parameters, and ``apply(parameters, x)``."""
glorot, randn, logsoftmax = initializers.glorot_normal, initializers.normal, log_softmax
_GLOROT, _NORMAL, _SMALL = glorot(), randn(), randn(1e-6)


def Dense(out_dim: int, W_init: Any = _GLOROT, b_init: Any = _NORMAL) -> Layer:
    """``x @ W + b``, over the last axis.

    >>> init, apply = Dense(3)
    >>> shape, (w, b) = init(random.key(0), (-1, 4))
    >>> shape, w.shape, b.shape
    ((-1, 3), (4, 3), (3,))
    """

    def init(rng: Any, input_shape: Shape) -> Any:
        k, l = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k, (input_shape[-1], out_dim)), b_init(l, (out_dim,)))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return inputs @ weights + bias

    return init, apply


def _with_ones(shape: Shape) -> Shape:
    """The shape with 1 for each size -1, which is not known."""
    return tuple([1 if size == -1 else size for size in shape])


def _convolution(
    transposed: bool, dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
    strides: Sequence[int] | None, padding: Any, W_init: Any, b_init: Any,
) -> Layer:
    """A convolution or transposed convolution; in its dimension numbers C, I and O are channels, and N is the batch.
    """
    lhs, rhs, out = dimension_numbers
    steps = tuple(strides or (1,) * len(filter_shape))
    W_init = W_init or glorot(rhs.index("I"), rhs.index("O"))
    convolve: Any = lax.conv_transpose if transposed else lax.conv_general_dilated
    out_shape = lax.conv_transpose_shape_tuple if transposed else lax.conv_general_shape_tuple

    def init(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        kernel = tuple([channels[c] if c in channels else next(sizes) for c in rhs])
        result = out_shape(_with_ones(input_shape), kernel, steps, padding, dimension_numbers)
        shape = tuple([-1 if input_shape[lhs.index("N")] == -1 and c == "N" else n for c, n in zip(out, result)])
        k, l = random.split(rng)
        bias = tuple([out_chan if c == "C" else 1 for c in out])
        return shape, (W_init(k, kernel), b_init(l, bias))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return convolve(inputs, weights, steps, padding, dimension_numbers=dimension_numbers) + bias

    return init, apply


def GeneralConv(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: Any = "VALID", W_init: Any = None, b_init: Any = _SMALL,
) -> Layer:
    """A convolution and a bias; ``dimension_numbers`` as ``("NHWC", "HWIO", "NHWC")``.

    >>> init, _ = GeneralConv(("NHWC", "HWIO", "NHWC"), 8, (3, 3))
    >>> init(random.key(0), (-1, 28, 28, 1))[0]
    (-1, 26, 26, 8)
    """
    return _convolution(False, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: Any = "VALID", W_init: Any = None, b_init: Any = _SMALL,
) -> Layer:
    """A transposed convolution and a bias; ``dimension_numbers`` as ``("NHWC", "HWIO", "NHWC")``.

    >>> init, _ = GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 8, (3, 3))
    >>> init(random.key(0), (-1, 28, 28, 1))[0]
    (-1, 30, 30, 8)
    """
    return _convolution(True, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = _SMALL,
) -> Layer:
    """``GeneralConv`` of images, whose channels come last.

    >>> Conv(4, (3, 3))[0](random.key(0), (-1, 8, 8, 2))[0]
    (-1, 6, 6, 4)
    """
    return GeneralConv(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv1DTranspose(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = _SMALL,
) -> Layer:
    """``GeneralConvTranspose`` of sequences, whose channels come last.

    >>> Conv1DTranspose(4, (3,))[0](random.key(0), (-1, 8, 2))[0]
    (-1, 10, 4)
    """
    return GeneralConvTranspose(("NHC", "HIO", "NHC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def ConvTranspose(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = _SMALL,
) -> Layer:
    """``GeneralConvTranspose`` of images, whose channels come last.

    >>> ConvTranspose(4, (3, 3))[0](random.key(0), (-1, 8, 8, 2))[0]
    (-1, 10, 10, 4)
    """
    return GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), out_chan, filter_shape, strides, padding, W_init, b_init)


def BatchNorm(
    axis: Any = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
    beta_init: Any = initializers.zeros, gamma_init: Any = initializers.ones,
) -> Layer:
    """``gamma (x - mean) / sqrt(var + epsilon) + beta``, the moments over ``axis``.

    >>> _, apply = BatchNorm(axis=0, epsilon=0.0)
    >>> apply((np.zeros(1), np.ones(1)), np.array([[1.0], [3.0]])).tolist()
    [[-1.0], [1.0]]
    """
    axes = (axis,) if np.ndim(axis) == 0 else tuple(axis)

    def init(rng: Any, input_shape: Shape) -> Any:
        shape = tuple([size for i, size in enumerate(input_shape) if i not in axes])
        k, l = random.split(rng)
        return input_shape, (beta_init(k, shape) if center else (), gamma_init(l, shape) if scale else ())

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        y = (x - mean(x, axes, keepdims=True)) / sqrt(var(x, axes, keepdims=True) + epsilon)
        if scale:
            y = y * expand_dims(gamma, axes)
        return y + expand_dims(beta, axes) if center else y

    return init, apply


def _same_shape(rng: Any, input_shape: Shape) -> Any:
    """The initialisation of a layer without parameters whose result has the shape of its input."""
    return input_shape, ()


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """The layer ``fun(x, **fun_kwargs)`` without parameters, whose result has the shape of ``x``.

    >>> _, apply = elementwise(lax.neg)
    >>> apply((), 2.0).tolist()
    -2.0
    """
    return _same_shape, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh, Exp, Relu = elementwise(tanh), elementwise(exp), elementwise(relu)
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid, Elu = elementwise(softplus), elementwise(sigmoid), elementwise(elu)
LeakyRelu, Selu, Gelu = elementwise(leaky_relu), elementwise(selu), elementwise(gelu)


def _pooling(reducer: Any, init_val: float, average: bool = False) -> Callable[..., Layer]:
    """The function that makes pooling layers with a reducer; with ``average`` windows are divided by their size."""

    def PoolingLayer(
        window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """A reduction over windows of the spatial axes; ``spec`` as ``"NHWC"``, which is the default."""
        spec = spec or "N" + "HWD"[: len(window_shape)] + "C"
        windows, steps = iter(window_shape), iter(strides or (1,) * len(window_shape))
        window, step = (tuple([1 if c in "NC" else next(sizes) for c in spec]) for sizes in (windows, steps))

        def init(rng: Any, input_shape: Shape) -> Any:
            known = _with_ones(input_shape)
            pads = lax.padtype_to_pads(known, window, step, padding)
            shape = lax.reduce_window_shape_tuple(known, window, step, pads)
            return tuple([-1 if size == -1 else n for size, n in zip(input_shape, shape)]), ()

        def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
            y = lax.reduce_window(inputs, init_val, reducer, window, step, padding)
            if not average:
                return y
            return y / lax.reduce_window(lax.full_like(inputs, 1), 0.0, lax.add, window, step, padding)

        return init, apply

    return PoolingLayer


MaxPool, SumPool = _pooling(lax.max, -np.inf), _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, average=True)


Flatten: Layer = (  # all dimensions but the first become one
    lambda rng, input_shape: ((input_shape[0], prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: reshape(inputs, (inputs.shape[0], -1)),
)
Identity: Layer = (_same_shape, lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """The layer whose result is a list of its input, ``num`` times.

    >>> _, apply = FanOut(2)
    >>> apply((), 3)
    [3, 3]
    """
    return (lambda rng, shape: ([shape] * num, ())), (lambda params, inputs, **kwargs: [inputs] * num)


FanInSum: Layer = ((lambda rng, shapes: (shapes[0], ())), (lambda params, inputs, **kwargs: sum(inputs)))


def FanInConcat(axis: int = -1) -> Layer:
    """The layer that concatenates a sequence of inputs along an axis.

    >>> init, _ = FanInConcat()
    >>> init(None, [(-1, 2), (-1, 3)])[0]
    (-1, 5)
    """

    def init(rng: Any, input_shapes: Sequence[Shape]) -> Any:
        at = axis % len(input_shapes[0])
        joined = sum([shape[at] for shape in input_shapes])
        return (*input_shapes[0][:at], joined, *input_shapes[0][at + 1 :]), ()

    return init, lambda params, inputs, **kwargs: concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """The layer that keeps each element with probability ``rate`` and divides it by ``rate``, and sets others to 0.

    It is the identity if ``mode`` is not "train".

    Raises (``apply``): BadCall: there is no ``rng=``, which is needed in every mode.

    >>> init, apply = Dropout(0.5, mode="test")
    >>> apply((), np.ones(2), rng=random.key(0)).tolist()
    [1.0, 1.0]
    """

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise BadCall("Dropout: a key is needed in every mode, got None.", hint="apply(params, inputs, rng=key).")
        if mode != "train":
            return inputs
        return where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return _same_shape, apply


def _keys(rng: Any, count: int) -> Any:
    """A key for each of several layers, or None for each if there is no key."""
    return random.split(rng, count) if rng is not None else (None,) * count


def serial(*layers: Layer) -> Layer:
    """The composition of layers: the result of each is the input of the next.

    >>> init, apply = serial(Dense(3), Relu)
    >>> shape, params = init(random.key(0), (-1, 4))
    >>> shape, len(params)
    ((-1, 3), 2)
    """

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for layer_init, _ in layers:
            rng, key = random.split(rng)
            input_shape, own = layer_init(key, input_shape)
            params.append(own)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, layer), own, key in zip(layers, params, keys):
            inputs = layer(own, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """The layer that applies each of several layers to its own input: a sequence of inputs gives a list of results.

    >>> _, apply = parallel(Identity, Relu)
    >>> [y.tolist() for y in apply([(), ()], [np.array([-1.0]), np.array([-1.0])])]
    [[-1.0], [0.0]]
    """

    def init(rng: Any, input_shapes: Sequence[Any]) -> Any:
        if len(input_shapes) != len(layers):
            raise BadArgument(f"parallel: each of {len(layers)} layers needs an input, got {len(input_shapes)}.")
        keys = random.split(rng, len(layers))
        made = [layer(key, shape) for (layer, _), key, shape in zip(layers, keys, input_shapes)]
        return [shape for shape, _ in made], [params for _, params in made]

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [layer(p, x, rng=key, **kwargs) for (_, layer), p, x, key in zip(layers, params, inputs, keys)]

    return init, apply


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer ``make_layer(input_shape)``, made when the shape is known.

    >>> init, _ = shape_dependent(lambda shape: Dense(shape[-1]))
    >>> init(random.key(0), (-1, 4))[0]
    (-1, 4)
    """

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        shape = [x.shape for x in inputs] if isinstance(inputs, (list, tuple)) else inputs.shape
        return make_layer(shape)[1](params, inputs, **kwargs)

    return (lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape)), apply
