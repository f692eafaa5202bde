"""`handlax.image`: images resampled, under JAX's names."""

from .resampling import ResizeMethod as ResizeMethod
from .resampling import resize as resize
from .resampling import scale_and_translate as scale_and_translate
