"""The operations of modules that ``import handlax`` does not load: the name in texts, and the module.

Written by ``python tools/late_operations.py``.
"""

# module -> the names of its operations
_NAMES = {
    "handlax.effects.control.debug_callbacks": "debug_callback debug_print",
    "handlax.effects.control.ffi_call": "ffi_call ffi_effect",
    "handlax.effects.operations.collectives.host_local": "global_to_host_local host_local_to_global",
    "handlax.effects.operations.fft": "fft",
    "handlax.effects.operations.indexing.relocation": "relocate",
    "handlax.effects.operations.linalg.cholesky": "cholesky",
    "handlax.effects.operations.linalg.determinant": "determinant log_determinant",
    "handlax.effects.operations.linalg.eig": "eig",
    "handlax.effects.operations.linalg.eigh": "eigh",
    "handlax.effects.operations.linalg.lu": "lu lu_pivots_to_permutation",
    "handlax.effects.operations.linalg.qr": "geqrf householder_product ormqr qr",
    "handlax.effects.operations.linalg.schur": "hessenberg schur tridiagonal",
    "handlax.effects.operations.linalg.solve": "solve",
    "handlax.effects.operations.linalg.svd": "svd",
    "handlax.effects.operations.linalg.triangular": "triangular_solve",
    "handlax.effects.operations.linalg.tridiagonal_systems": "tridiagonal_solve",
    "handlax.effects.operations.reductions.generic_reduce": "reduce",
    "handlax.effects.operations.reductions.row_folds":
        "and_rows max_rows min_rows or_rows repeat_rows sum_rows xor_rows",
    "handlax.effects.operations.reductions.softmax": "softmax",
    "handlax.effects.operations.special.bessel_functions": "bessel_i0e bessel_i1e",
    "handlax.effects.operations.special.common_divisors": "gcd",
    "handlax.effects.operations.special.special_functions":
        "digamma igamma igamma_grad_a igammac lgamma polygamma random_gamma_grad regularized_incomplete_beta zeta",
    "handlax.effects.operations.windows.convolution": "conv_general_dilated",
    "handlax.effects.operations.windows.generic_window": "reduce_window",
    "handlax.effects.operations.windows.window_reductions":
        "reduce_window_max reduce_window_min reduce_window_sum window_argmax window_argmin",
    "handlax.experimental.sparse.todense": "todense",
    "handlax.interpreters.inspection.explain_handlers": "clause_answers clause_performs",
    "handlax.interpreters.inspection.sharding_picture": "inspect_sharding",
    "handlax.interpreters.library.effectful.error_values": "debug_check reported",
    "handlax.interpreters.library.effectful.failures": "check",
    "handlax.interpreters.library.effectful.harvest": "sow",
    "handlax.interpreters.library.effectful.progress": "progress_report progress_tick",
    "handlax.interpreters.library.effectful.random_streams": "fresh_key",
    "handlax.interpreters.library.effectful.readers": "ask",
    "handlax.interpreters.library.effectful.states": "get modify put",
    "handlax.interpreters.library.effectful.stop_at_failure": "stop",
    "handlax.interpreters.library.effectful.writers": "tell",
    "handlax.interpreters.ragged.ragged_loop": "ragged_loop",
    "handlax.lowering.export.call_exported": "call_exported call_exported_effect",
    "handlax.probability.enumeration": "alternative likelihood",
    "handlax.probability.plates": "plate",
    "handlax.probability.sites": "sample",
}

LATE_OPERATION_NAMES = {name: module for module, names in _NAMES.items() for name in names.split()}
