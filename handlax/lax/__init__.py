"""handlax.lax: the operations as functions, under JAX's names; strict in dtype and shape.

``lax.add_p`` is the primitive that performs the operation of ``lax.add``, and so for every operation.
"""

from typing import Any as _Any

from ..effects.base.lazy_module import LazyModule as _LazyModule
from ..effects.control.branches import cond as cond
from ..effects.control.branches import switch as switch
from ..effects.control.checkpoint import dce_sink as dce_sink
from ..effects.control.checkpoint import optimization_barrier as optimization_barrier
from ..effects.control.composite import composite as composite
from ..effects.control.loops import fori_loop as fori_loop
from ..effects.control.loops import scan as scan
from ..effects.control.loops import while_loop as while_loop
from ..effects.core.named_axes import axis_size as axis_size
from ..effects.operations.collectives.lane_movements import all_gather as all_gather
from ..effects.operations.collectives.lane_movements import all_to_all as all_to_all
from ..effects.operations.collectives.lane_movements import pbroadcast as pbroadcast
from ..effects.operations.collectives.lane_movements import pcast as pcast
from ..effects.operations.collectives.lane_movements import pgather as pgather
from ..effects.operations.collectives.lane_movements import ppermute as ppermute
from ..effects.operations.collectives.lane_movements import pshuffle as pshuffle
from ..effects.operations.collectives.lane_movements import psum_scatter as psum_scatter
from ..effects.operations.collectives.lane_movements import pswapaxes as pswapaxes
from ..effects.operations.collectives.lane_movements import pvary as pvary
from ..effects.operations.collectives.lane_reductions import axis_index as axis_index
from ..effects.operations.collectives.lane_reductions import pargmax as pargmax
from ..effects.operations.collectives.lane_reductions import pargmin as pargmin
from ..effects.operations.collectives.lane_reductions import pcummax as pcummax
from ..effects.operations.collectives.lane_reductions import pcummin as pcummin
from ..effects.operations.collectives.lane_reductions import pcumprod as pcumprod
from ..effects.operations.collectives.lane_reductions import pcumsum as pcumsum
from ..effects.operations.collectives.lane_reductions import pdot as pdot
from ..effects.operations.collectives.lane_reductions import pmax as pmax
from ..effects.operations.collectives.lane_reductions import pmean as pmean
from ..effects.operations.collectives.lane_reductions import pmin as pmin
from ..effects.operations.collectives.lane_reductions import pprod as pprod
from ..effects.operations.collectives.lane_reductions import psum as psum
from ..effects.operations.collectives.ragged_exchange import ragged_all_to_all as ragged_all_to_all
from ..effects.operations.dot_general import DotAlgorithm as DotAlgorithm
from ..effects.operations.dot_general import DotAlgorithmPreset as DotAlgorithmPreset
from ..effects.operations.dot_general import Precision as Precision
from ..effects.operations.dot_general import batch_matmul as batch_matmul
from ..effects.operations.dot_general import dot as dot
from ..effects.operations.dot_general import dot_general as dot_general
from ..effects.operations.elementwise.arithmetic import RoundingMethod as RoundingMethod
from ..effects.operations.elementwise.arithmetic import abs as abs
from ..effects.operations.elementwise.arithmetic import add as add
from ..effects.operations.elementwise.arithmetic import cbrt as cbrt
from ..effects.operations.elementwise.arithmetic import ceil as ceil
from ..effects.operations.elementwise.arithmetic import div as div
from ..effects.operations.elementwise.arithmetic import floor as floor
from ..effects.operations.elementwise.arithmetic import integer_pow as integer_pow
from ..effects.operations.elementwise.arithmetic import is_finite as is_finite
from ..effects.operations.elementwise.arithmetic import mul as mul
from ..effects.operations.elementwise.arithmetic import mulhi as mulhi
from ..effects.operations.elementwise.arithmetic import neg as neg
from ..effects.operations.elementwise.arithmetic import nextafter as nextafter
from ..effects.operations.elementwise.arithmetic import reciprocal as reciprocal
from ..effects.operations.elementwise.arithmetic import reduce_precision as reduce_precision
from ..effects.operations.elementwise.arithmetic import rem as rem
from ..effects.operations.elementwise.arithmetic import round as round
from ..effects.operations.elementwise.arithmetic import rsqrt as rsqrt
from ..effects.operations.elementwise.arithmetic import sign as sign
from ..effects.operations.elementwise.arithmetic import sqrt as sqrt
from ..effects.operations.elementwise.arithmetic import square as square
from ..effects.operations.elementwise.arithmetic import stop_gradient as stop_gradient
from ..effects.operations.elementwise.arithmetic import sub as sub
from ..effects.operations.elementwise.bitwise import bitwise_and as bitwise_and
from ..effects.operations.elementwise.bitwise import bitwise_not as bitwise_not
from ..effects.operations.elementwise.bitwise import bitwise_or as bitwise_or
from ..effects.operations.elementwise.bitwise import bitwise_xor as bitwise_xor
from ..effects.operations.elementwise.bitwise import clz as clz
from ..effects.operations.elementwise.bitwise import population_count as population_count
from ..effects.operations.elementwise.bitwise import shift_left as shift_left
from ..effects.operations.elementwise.bitwise import shift_right_arithmetic as shift_right_arithmetic
from ..effects.operations.elementwise.bitwise import shift_right_logical as shift_right_logical
from ..effects.operations.elementwise.comparison import clamp as clamp
from ..effects.operations.elementwise.comparison import eq as eq
from ..effects.operations.elementwise.comparison import ge as ge
from ..effects.operations.elementwise.comparison import gt as gt
from ..effects.operations.elementwise.comparison import le as le
from ..effects.operations.elementwise.comparison import lt as lt
from ..effects.operations.elementwise.comparison import max as max
from ..effects.operations.elementwise.comparison import min as min
from ..effects.operations.elementwise.comparison import ne as ne
from ..effects.operations.elementwise.comparison import select as select
from ..effects.operations.elementwise.comparison import select_n as select_n
from ..effects.operations.elementwise.complex_parts import complex as complex
from ..effects.operations.elementwise.complex_parts import conj as conj
from ..effects.operations.elementwise.complex_parts import imag as imag
from ..effects.operations.elementwise.complex_parts import real as real
from ..effects.operations.elementwise.conversion import bitcast_convert_type as bitcast_convert_type
from ..effects.operations.elementwise.conversion import convert_element_type as convert_element_type
from ..effects.operations.elementwise.transcendental import acos as acos
from ..effects.operations.elementwise.transcendental import acosh as acosh
from ..effects.operations.elementwise.transcendental import asin as asin
from ..effects.operations.elementwise.transcendental import asinh as asinh
from ..effects.operations.elementwise.transcendental import atan as atan
from ..effects.operations.elementwise.transcendental import atan2 as atan2
from ..effects.operations.elementwise.transcendental import atanh as atanh
from ..effects.operations.elementwise.transcendental import cos as cos
from ..effects.operations.elementwise.transcendental import cosh as cosh
from ..effects.operations.elementwise.transcendental import erf as erf
from ..effects.operations.elementwise.transcendental import erf_inv as erf_inv
from ..effects.operations.elementwise.transcendental import erfc as erfc
from ..effects.operations.elementwise.transcendental import exp as exp
from ..effects.operations.elementwise.transcendental import exp2 as exp2
from ..effects.operations.elementwise.transcendental import expm1 as expm1
from ..effects.operations.elementwise.transcendental import log as log
from ..effects.operations.elementwise.transcendental import log1p as log1p
from ..effects.operations.elementwise.transcendental import logistic as logistic
from ..effects.operations.elementwise.transcendental import pow as pow
from ..effects.operations.elementwise.transcendental import sin as sin
from ..effects.operations.elementwise.transcendental import sinh as sinh
from ..effects.operations.elementwise.transcendental import tan as tan
from ..effects.operations.elementwise.transcendental import tanh as tanh
from ..effects.operations.fft import FftType as FftType
from ..effects.operations.fft import fft as fft
from ..effects.operations.foundations.accuracy import AccuracyMode as AccuracyMode
from ..effects.operations.foundations.accuracy import Tolerance as Tolerance
from ..effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from ..effects.operations.indexing.dynamic_slicing import dynamic_slice as dynamic_slice
from ..effects.operations.indexing.dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from ..effects.operations.indexing.dynamic_slicing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from ..effects.operations.indexing.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from ..effects.operations.indexing.dynamic_slicing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from ..effects.operations.indexing.gather_scatter import gather as gather
from ..effects.operations.indexing.gather_windows import GatherDimensionNumbers as GatherDimensionNumbers
from ..effects.operations.indexing.gather_windows import GatherScatterMode as GatherScatterMode
from ..effects.operations.indexing.gather_windows import ScatterDimensionNumbers as ScatterDimensionNumbers
from ..effects.operations.indexing.scatter_functions import index_take as index_take
from ..effects.operations.indexing.scatter_functions import scatter as scatter
from ..effects.operations.indexing.scatter_functions import scatter_add as scatter_add
from ..effects.operations.indexing.scatter_functions import scatter_apply as scatter_apply
from ..effects.operations.indexing.scatter_functions import scatter_max as scatter_max
from ..effects.operations.indexing.scatter_functions import scatter_min as scatter_min
from ..effects.operations.indexing.scatter_functions import scatter_sub as scatter_sub
from ..effects.operations.manipulation.creation import broadcasted_iota as broadcasted_iota
from ..effects.operations.manipulation.creation import empty as empty
from ..effects.operations.manipulation.creation import iota as iota
from ..effects.operations.manipulation.operand_promotion import broadcast_shapes as broadcast_shapes
from ..effects.operations.manipulation.rearranging import broadcast as broadcast
from ..effects.operations.manipulation.rearranging import broadcast_in_dim as broadcast_in_dim
from ..effects.operations.manipulation.rearranging import broadcast_to_rank as broadcast_to_rank
from ..effects.operations.manipulation.rearranging import collapse as collapse
from ..effects.operations.manipulation.rearranging import expand_dims as expand_dims
from ..effects.operations.manipulation.rearranging import reshape as reshape
from ..effects.operations.manipulation.rearranging import squeeze as squeeze
from ..effects.operations.manipulation.rearranging import stack as stack
from ..effects.operations.manipulation.rearranging import tile as tile
from ..effects.operations.manipulation.rearranging import transpose as transpose
from ..effects.operations.manipulation.slicing import concatenate as concatenate
from ..effects.operations.manipulation.slicing import index_in_dim as index_in_dim
from ..effects.operations.manipulation.slicing import pad as pad
from ..effects.operations.manipulation.slicing import rev as rev
from ..effects.operations.manipulation.slicing import slice as slice
from ..effects.operations.manipulation.slicing import slice_in_dim as slice_in_dim
from ..effects.operations.manipulation.slicing import split as split
from ..effects.operations.reductions.cumulative import associative_scan as associative_scan
from ..effects.operations.reductions.cumulative import cumlogsumexp as cumlogsumexp
from ..effects.operations.reductions.cumulative import cummax as cummax
from ..effects.operations.reductions.cumulative import cummin as cummin
from ..effects.operations.reductions.cumulative import cumprod as cumprod
from ..effects.operations.reductions.cumulative import cumsum as cumsum
from ..effects.operations.reductions.generic_reduce import reduce as reduce
from ..effects.operations.reductions.reductions import argmax as argmax
from ..effects.operations.reductions.reductions import argmin as argmin
from ..effects.operations.reductions.reductions import reduce_and as reduce_and
from ..effects.operations.reductions.reductions import reduce_max as reduce_max
from ..effects.operations.reductions.reductions import reduce_min as reduce_min
from ..effects.operations.reductions.reductions import reduce_or as reduce_or
from ..effects.operations.reductions.reductions import reduce_prod as reduce_prod
from ..effects.operations.reductions.reductions import reduce_sum as reduce_sum
from ..effects.operations.reductions.reductions import reduce_xor as reduce_xor
from ..effects.operations.reductions.scatter_products import scatter_mul as scatter_mul
from ..effects.operations.reductions.sorting import sort as sort
from ..effects.operations.reductions.sorting import sort_key_val as sort_key_val
from ..effects.operations.reductions.sorting import top_k as top_k
from ..effects.operations.special.bessel_functions import bessel_i0e as bessel_i0e
from ..effects.operations.special.bessel_functions import bessel_i1e as bessel_i1e
from ..effects.operations.special.special_functions import betainc as betainc
from ..effects.operations.special.special_functions import digamma as digamma
from ..effects.operations.special.special_functions import igamma as igamma
from ..effects.operations.special.special_functions import igamma_grad_a as igamma_grad_a
from ..effects.operations.special.special_functions import igammac as igammac
from ..effects.operations.special.special_functions import lgamma as lgamma
from ..effects.operations.special.special_functions import polygamma as polygamma
from ..effects.operations.special.special_functions import random_gamma_grad as random_gamma_grad
from ..effects.operations.special.special_functions import zeta as zeta
from ..effects.operations.windows.convolution_functions import conv as conv
from ..effects.operations.windows.convolution_functions import conv_general_dilated as conv_general_dilated
from ..effects.operations.windows.convolution_functions import conv_general_dilated_local as conv_general_dilated_local
from ..effects.operations.windows.convolution_functions import (
    conv_general_dilated_patches as conv_general_dilated_patches,
)
from ..effects.operations.windows.convolution_functions import conv_transpose as conv_transpose
from ..effects.operations.windows.convolution_functions import conv_with_general_padding as conv_with_general_padding
from ..effects.operations.windows.dimension_numbers import ConvDimensionNumbers as ConvDimensionNumbers
from ..effects.operations.windows.dimension_numbers import (
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
)
from ..effects.operations.windows.dimension_numbers import conv_dimension_numbers as conv_dimension_numbers
from ..effects.operations.windows.dimension_numbers import conv_general_permutations as conv_general_permutations
from ..effects.operations.windows.dimension_numbers import conv_general_shape_tuple as conv_general_shape_tuple
from ..effects.operations.windows.dimension_numbers import conv_shape_tuple as conv_shape_tuple
from ..effects.operations.windows.dimension_numbers import conv_transpose_shape_tuple as conv_transpose_shape_tuple
from ..effects.operations.windows.generic_window import reduce_window as reduce_window
from ..effects.operations.windows.geometry import padtype_to_pads as padtype_to_pads
from ..effects.operations.windows.geometry import reduce_window_shape_tuple as reduce_window_shape_tuple
from ..interpreters.custom.implicit import custom_linear_solve as custom_linear_solve
from ..interpreters.custom.implicit import custom_root as custom_root
from ..interpreters.transformations.vmap import map as map
from ..lowering.arrays.sharding_constraints import with_sharding_constraint as with_sharding_constraint
from ..lowering.jit.devices import platform_dependent as platform_dependent
from . import linalg as linalg
from .bit_generators import *
from .composed import *
from .grouped_products import *

_primitives = _LazyModule("handlax.effects.programs.primitives")


def __getattr__(name: str) -> _Any:
    """``add_p``: the primitive of this name."""
    if name.endswith("_p"):
        return getattr(_primitives, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
