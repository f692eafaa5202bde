"""JAX's settings: those that have the same meaning here, and those that have no meaning here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType

from .caches import cached
from .source_locations import warn_user

# JAX's name -> the name here, for settings that mean the same
_SAME = """
    check_static_indices compilation_cache_dir cpu_collectives_implementation debug_infs debug_nans default_device
    default_matmul_precision default_prng_impl disable_bwd_checks disable_jit disable_most_optimizations
    enable_custom_prng enable_x64 explain_cache_misses legacy_prng_key log_compiles no_execution no_tracing
    num_cpu_devices numpy_dtype_promotion numpy_rank_promotion platforms traceback_filtering transfer_guard
    transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device
"""
ALIASES: Mapping[str, str] = MappingProxyType({
    **{f"jax_{name}": name for name in _SAME.split()},
    "jax_check_tracer_leaks": "check_leaks",
    "jax_platform_name": "platforms",
})

_NAMES = """
    accurate_erf_inv allow_f16_reductions array array_garbage_collection_guard auto_pcast backend_target
    bcoo_cusparse_lowering captured_constants_report_frames captured_constants_warn_bytes check_proxy_envs
    compilation_cache_check_contents compilation_cache_expect_pgle
    compilation_cache_include_metadata_in_key compilation_cache_max_size compiler_detailed_logging_min_ops
    compiler_enable_remat_pass cpu_enable_async_dispatch
    cpu_get_global_topology_timeout_minutes cpu_get_local_topology_timeout_minutes cross_host_transfer_socket_address
    cross_host_transfer_timeout_seconds cross_host_transfer_transfer_size cross_host_transport_addresses
    cuda_visible_devices custom_jvp3 custom_vjp3 debug_key_reuse debug_leaked_clients_on_clear_backends
    debug_log_modules default_dtype_bits disable_vmap_shmap_error
    disallow_mesh_context_manager distributed_debug distributed_verify_secure_credentials
    dump_ir_modes dump_ir_to dynamic_shapes eager_pmap embedded_constants_max_bytes enable_checks
    enable_compilation_cache enable_memories enable_pgle enable_preemption_service
    enable_recoverability error_checking_behavior_divide error_checking_behavior_nan error_checking_behavior_oob
    experimental_unsafe_xla_runtime_errors explicit_x64_dtypes export_calling_convention_version
    export_deserialize_expired_versions export_ignore_forward_compatibility force_dcn_cross_host_transfers
    high_dynamic_range_gumbel hlo_source_file_canonicalization_regex include_debug_info_in_dumps
    include_full_tracebacks_in_locations log_checkpoint_residuals logging_level
    memory_fitting_level mock_gpu_topology mosaic_allow_hlo mosaic_unzip_debug_locations mtls_ca_file mtls_cert_file
    mtls_key_file mtls_peer_uri_prefix mutable_array_checks
    oneapi_visible_devices optimization_level pallas_auto_assign_collective_ids
    pallas_auto_assign_collective_ids_limit pallas_enable_debug_checks pallas_poison_buffers pallas_verbose_errors
    persistent_cache_enable_xla_caches persistent_cache_min_compile_time_secs persistent_cache_min_entry_size_bytes
    pgle_aggregation_percentile pgle_profiling_runs pjrt_client_create_options pmap_no_rank_reduction pmap_shmap_merge
    pprint_use_color ragged_dot_use_ragged_dot_instruction raise_on_ppermute_sort_diff raise_persistent_cache_errors
    random_seed_offset remat3 remat_barrier_no_cotangents remove_custom_partitioning_ptr_from_cache_key
    remove_size_one_mesh_axis_from_type rocm_visible_devices scan3 send_traceback_to_runtime serialization_version
    share_binary_between_hosts share_binary_between_hosts_timeout_ms softmax_custom_jvp sort_devices_by_process_index
    source_url_schema spmd_mode thread_guard threefry_gpu_kernel_lowering
    traceback_in_locations_limit tracer_error_num_traceback_frames use_cpp_shard_args use_direct_linearize
    use_emit_pipeline_primitive use_hlo_logistic_lowering use_magma use_rgv3
    use_simplified_jaxpr_constants xla_backend xla_profile_version
"""
WITHOUT_MEANING = frozenset([f"jax_{name}" for name in _NAMES.split()]) | frozenset((
    "check_vma",
    "eager_constant_folding",
    "jax2tf_associative_scan_reductions",
    "jax2tf_default_native_serialization",
    "mock_num_gpu_processes",
))
FIXED: Mapping[str, bool | None] = MappingProxyType({
    **dict.fromkeys(WITHOUT_MEANING), "jax_threefry_partitionable": True, "jax_use_shardy_partitioner": True,
})
"""The settings that nothing changes here, with their values: those without meaning, and how programs are computed."""


def from_environment(name: str) -> tuple[str, str]:
    """The variable of the environment that sets ``name``, and its text: ``HANDLAX_NAME``, or else JAX's variable."""
    theirs = [jax.upper() for jax, ours in ALIASES.items() if ours == name] or [f"JAX_{name.upper()}"]
    variables = [f"HANDLAX_{name.upper()}", *theirs]
    variable = next((v for v in variables if v in os.environ), variables[0])
    return variable, os.environ.get(variable, "").strip()


def flags(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    """JAX's settings in a command line, before ``--``, with their texts.

    >>> [*flags(["--jax_enable_x64", "--nojax_debug_nans", "-v", "--jax_platforms=cpu", "--", "--jax_disable_jit"])]
    [('jax_enable_x64', 'True'), ('jax_debug_nans', 'False'), ('jax_platforms', 'cpu')]
    """
    for argument in takewhile(lambda argument: argument != "--", arguments):
        flag = re.fullmatch(r"--?(no)?(jax_\w+)(?:=(.*))?", argument)
        if flag is not None:
            yield flag[2], str(flag[1] is None) if flag[3] is None else flag[3]


def truth(text: str) -> bool | str:
    """The bool that a text of the environment stands for; the text itself if it stands for none."""
    word = text.lower()
    return word in _YES or (word not in _NO and text)


_YES, _NO = ("1", "t", "true", "y", "yes", "on"), ("0", "f", "false", "n", "no", "off")


@cached("settings without meaning", 256)
def note_without_meaning(name: str) -> None:
    """Say once that a setting of JAX has no meaning here, or none but the one that it has."""
    warn_user(f"config: {name} is accepted as one of JAX's settings, but has no meaning here and changes nothing.")
