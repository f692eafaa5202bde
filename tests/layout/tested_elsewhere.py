"""Modules without a test file of their own: where in tests/ they are tested, and why there.

A path that ends in / is a folder.
"""

LAWS = "laws/test_laws.py"
NESTS = "laws/test_nests.py"
GOLDEN = "golden/test_values.py"
CONTROL = "golden/test_control.py"
MUTANTS = "handlax/testing/mutants/test_mutation_run.py"
BLOCKS = "a block of operations: every law holds of each, its functions give the values recorded with JAX"

TESTED_ELSEWHERE: dict[str, tuple[tuple[str, ...], str]] = {
    # effects
    "effects/base/errors.py": (
        ("errors/test_any_mistake.py", "errors/test_control_flow.py"), "a class of errors is a mistake made"),
    **{
        f"effects/errors/{part}_errors.py": (
            ("docs/test_error_pages.py", "docs/test_pages.py"), "the page of each class raises it, and its remedy not")
        for part in ("argument", "effect", "execution", "shape", "storage", "tracing")
    },
    "effects/core/varying.py": (
        ("interpreters/transformations/test_shard_map.py",), "cotangents of what the devices of a mesh share"),
    "effects/base/immutables.py": (
        ("public_interface/test_immutability.py",), "it is what makes values unassignable, class by class"),
    "effects/base/stack.py": (
        ("threads/test_transformations.py", "interpreters/core/test_record.py"),
        "a stack shows in what handlers answer, in every thread and task"),
    "effects/control/body_rules.py": ((NESTS, CONTROL), "rules of bodies, for all operations that have bodies"),
    "effects/control/checkpoint.py": (
        ("interpreters/transformations/test_checkpoint.py", LAWS), "the operation behind the public function"),
    "effects/control/custom_rules.py": (
        ("interpreters/custom/test_custom_jvp.py", "interpreters/custom/test_custom_vjp.py",
         "interpreters/custom/test_custom_vmap.py", "interpreters/custom/test_implicit.py"),
        "the operations behind the public decorators"),
    "effects/control/vmap_methods.py": (
        ("effects/control/test_callbacks.py", "effects/control/test_ffi_call.py"), "the batch rule of both"),
    "effects/control/lanes.py": (
        ("interpreters/batching/test_divergent_lanes.py", "interpreters/handlers/test_state_movements.py"),
        "the operation that batching makes of effects in lanes"),
    "effects/core/result_trees.py": (
        ("interpreters/handlers/test_answer_types.py",), "the handlers in force determine the type"),
    "effects/core/array_backend.py": (
        ("effects/core/test_arrays.py", "lowering/jit/test_devices.py"), "arrays use what implements it"),
    "effects/core/parameters.py": (("laws/test_parameters.py",), "a law of every operation"),
    "effects/core/named_axes.py": (
        ("effects/operations/collectives/test_collective.py",), "an axis is what collectives name"),
    "effects/core/signatures.py": (("typing/test_programs.py",), "what checkers of types make of transformations"),
    "effects/functions/keys.py": (
        ("effects/base/test_value_identity.py", "interpreters/differentiation/test_deferred_rules.py"),
        "values in keys are compared with the others"),
    "effects/functions/unsupported.py": (
        ("public_interface/test_unsupported_arguments.py",), "seen at the public functions that have the argument"),
    "effects/operations/": ((LAWS, GOLDEN), BLOCKS),
    "effects/operators/numpy_arithmetic.py": (
        (GOLDEN, "effects/operators/test_array_operators.py"), "NumPy's functions, call by call"),
    "effects/programs/equation_views.py": (("effects/programs/test_program.py",), "views that a program builds"),
    "effects/programs/higher_order.py": ((NESTS,), "the law of operations with bodies, for all of them"),
    "effects/programs/lexer.py": (("effects/programs/test_parser.py",), "tokens are seen by what is parsed"),
    "effects/programs/parse_result.py": (("effects/programs/test_parser.py",), "the parser as a Result"),
    "effects/sharding/devices.py": (
        ("effects/sharding/test_mesh.py", "effects/sharding/test_named_sharding.py"), "what meshes ask of devices"),
    "effects/types/extent_factors.py": (("effects/types/test_extent.py",), "what extents consist of"),
    "effects/types/sized.py": (("effects/types/test_extent.py",), "extents within values"),
    "effects/trees/failures.py": (("effects/trees/test_cpp_pytrees.py",), "what errors leave behind in a thread"),
    "effects/trees/flatten.py": (("effects/trees/test_pytrees.py",), "laws of leaves and structures together"),
    "effects/trees/node_types.py": (("effects/trees/test_registration.py",), "what registering a type does"),
    "effects/trees/paths.py": (("effects/trees/test_pytrees.py",), "laws of leaves and structures together"),
    "effects/trees/structure.py": (("effects/trees/test_pytrees.py",), "laws of leaves and structures together"),

    "effects/trees/path_keys.py": (("effects/trees/test_pytrees.py",), "the keys of which the paths of trees consist"),
    # interpreters
    "interpreters/batching/batch.py": (
        (LAWS, NESTS, "interpreters/transformations/test_vmap.py"), "batching is a law of every operation"),
    "interpreters/batching/batching_rules.py": (
        ("interpreters/custom/test_custom_vmap.py", "interpreters/differentiation/test_deferred_rules.py"),
        "one of the deferred rules, which are tested together"),
    "interpreters/core/evaluate.py": (
        (LAWS, "lowering/compile/test_eager_compilation.py"), "evaluation is what laws compare with"),
    "interpreters/core/sited_box.py": (
        ("interpreters/core/test_trace_cache.py",), "messages name the line at which a box was made"),
    "interpreters/core/state_flow.py": (
        ("interpreters/core/test_body_transform.py", "interpreters/handlers/test_state_movements.py"),
        "how states cross, by the movements that have flows"),
    "interpreters/core/rule_codegen.py": (
        ("interpreters/core/test_rule_cache.py",), "the code that cached rules are executed by"),
    "interpreters/custom/custom_call.py": (
        ("interpreters/custom/test_custom_jvp.py", "interpreters/custom/test_custom_vjp.py",
         "interpreters/custom/test_custom_vmap.py"), "the call that all of them share"),
    "interpreters/core/loop_rotation.py": (
        ("interpreters/handlers/test_state_movements.py", "interpreters/handlers/test_handle.py"),
        "loops whose test performs effects"),
    "interpreters/custom/derivative_rules.py": (
        ("interpreters/custom/test_custom_jvp.py", "interpreters/custom/test_custom_vjp.py"),
        "the user's rules as operations perform them"),
    "interpreters/differentiation/jvp.py": ((LAWS, NESTS), "forward mode is a law of every operation"),
    "interpreters/differentiation/linearize.py": (
        (NESTS, "laws/test_transformation_nests.py"), "reverse mode is a law of every nest"),
    "interpreters/differentiation/linear_rules.py": (
        ("interpreters/differentiation/test_deferred_rules.py",), "one of the deferred rules, tested together"),
    "interpreters/differentiation/partial_eval_bodies.py": (
        ("interpreters/differentiation/test_partial_eval.py", NESTS), "partial evaluation of operations with bodies"),
    "interpreters/differentiation/reinstallation.py": (
        ("interpreters/differentiation/test_deferred_rules.py",), "how every deferred rule is evaluated"),
    "interpreters/inspection/body_iterations.py": (
        ("interpreters/inspection/test_stepper.py",), "steps into loops and branches"),
    "interpreters/inspection/compare_runs.py": (
        ("interpreters/inspection/test_stepper.py",), "a comparison of two steppers"),
    "interpreters/inspection/rule_overview.py": (
        ("effects/core/test_columns.py", "effects/core/test_cell_sources.py"), "lists cells and their lines"),
    "interpreters/inspection/html.py": (("interpreters/inspection/test_draw.py",), "a page is drawn and opened"),
    "interpreters/inspection/svg.py": (("interpreters/inspection/test_draw.py",), "a picture is drawn and opened"),
    "interpreters/library/effectful/first_event.py": (
        ("interpreters/library/effectful/test_failures.py", "interpreters/library/pure/test_nan_origin.py"),
        "the state that both handlers keep"),
    "interpreters/library/effectful/harvest_state.py": (
        ("interpreters/library/effectful/test_harvest.py",), "the state of harvest"),
    "interpreters/library/effectful/stop_at_failure.py": (
        ("interpreters/library/effectful/test_failures.py",), "failures that end the program"),

    # lowering
    "interpreters/transformations/differentiated_arguments.py": (
        ("interpreters/transformations/test_derivatives.py",), "which arguments derivatives take and refuse"),
    "interpreters/batching/joined_processes.py": (
        ("lowering/maps/test_process_lanes.py",), "jit of pmap over several processes executes such programs"),
    "effects/operations/collectives/host_local.py": (
        ("lowering/maps/test_process_lanes.py",), "pmap over several processes performs them"),
    "lowering/maps/device_lanes.py": (
        ("lowering/maps/test_pmap.py", "lowering/maps/test_process_lanes.py"), "what pmap does with its lanes"),
    "lowering/compile/attributes.py": (
        ("effects/control/test_composite.py", "effects/control/test_ffi_call.py"), "attributes of both"),
    "lowering/arrays/transfer_guards.py": (
        ("effects/core/test_jax_contexts.py",), "what the guards of settings refuse, call by call"),
    "lowering/compile/host_calls.py": (
        ("effects/control/test_callbacks.py", "lowering/xla/test_host_callbacks.py"), "callbacks, which it calls"),
    "lowering/compile/manual_computation.py": (
        ("interpreters/transformations/test_shard_map.py",), "what the devices of a mesh execute"),
    "lowering/compile/foreign_calls.py": (
        ("effects/operations/linalg/test_lapack.py", "effects/control/test_ffi_call.py", LAWS),
        "the calls that factorisations and foreign functions are lowered to"),
    "lowering/compile/emitter.py": ((LAWS, GOLDEN), "that compiled programs give what is evaluated is a law"),
    "lowering/compile/stablehlo_modules.py": ((LAWS, GOLDEN), "that compiled programs give what is evaluated is a law"),
    "lowering/export/artifact_schema.py": (
        ("lowering/export/test_artifact_reader.py", "beside_jax/test_exported_functions.py"),
        "the tables of JAX's format"),
    "lowering/export/artifact_writer.py": (
        ("lowering/export/test_artifact_reader.py",), "what is written is read"),
    "lowering/export/refined_functions.py": (
        ("lowering/export/test_dimension_arguments.py",), "what a call with known sizes calls"),
    "lowering/export/symbolic_arguments.py": (
        ("lowering/export/test_dimension_arguments.py",), "the arguments of exported functions with symbolic sizes"),
    "lowering/export/exported.py": (("lowering/export/test_export.py",), "what export returns"),
    "lowering/export/exported_module.py": (("lowering/export/test_export.py",), "the program of what export returns"),
    "lowering/jit/call_fastpath.py": (("lowering/jit/test_jit.py",), "the fast path of a call"),
    "lowering/jit/call_signature.py": (
        ("lowering/jit/test_jit.py", "interpreters/core/test_trace_cache.py"), "the key of a call"),
    "lowering/jit/dispatch.py": (
        ("lowering/jit/test_jit.py", "threads/test_compilation.py"), "a call from arguments to results"),
    "lowering/inspection/memory_plan.py": (
        ("interpreters/differentiation/test_memory_budget.py",), "the consequences of a memory budget"),
    "lowering/compile/estimate.py": (
        ("lowering/compile/test_eager_compilation.py",), "the choices that follow from estimates"),
    "lowering/compile/eager_rates.py": (("layout/test_operation_facts.py",), "a generated table"),
    "lowering/xla/array_backend.py": (
        ("lowering/compile/test_eager_compilation.py", "effects/core/test_arrays.py"),
        "the runtime as arrays use it"),
    "lowering/clients/jaxlib_modules.py": (
        ("lowering/xla/test_jax_import_guard.py", "lowering/xla/test_executables.py"), "jaxlib's own modules"),
    "lowering/xla/shape_refinement.py": (
        ("lowering/export/test_dimension_arguments.py", "lowering/compile/test_symbolic_sizes.py"),
        "what calls of functions with symbolic sizes do"),
    "lowering/xla/compiler_calls.py": (
        ("interpreters/custom/test_custom_partitioning.py", "interpreters/inspection/test_sharding_picture.py"),
        "what asks while it compiles"),
    "lowering/xla/mlir_bindings.py": (("handlax/extend/test_mlir.py",), "what lowering rules of users build with it"),
    "lowering/clients/genuine_jax.py": (("handlax/as_jax/test_views.py",), "it is about views of handlax.as_jax"),
    "lowering/xla/jaxlib_runtime.py": (
        ("lowering/xla/test_buffers.py", "lowering/xla/test_executables.py"), "the names of the runtime's files"),
    "lowering/xla/lazy.py": (("public_interface/test_names.py",), "which modules a new process has imported"),

    # api
    "handlax/scipy/stats/": (("handlax/scipy/test_stats.py",), "SciPy's functions, one table of distributions"),
    "handlax/scipy/special/": (("handlax/scipy/test_special.py",), "SciPy's functions, one table with their bounds"),
    "handlax/extend/checked_results.py": (
        ("handlax/extend/test_ad.py", "handlax/extend/test_batching.py"), "what rules give is compared with types"),
    "handlax/extend/rule_registries.py": (
        ("handlax/extend/test_ad.py", "handlax/extend/test_batching.py"), "a registry is seen by the rules in it"),
    "handlax/extend/core/primitives.py": (("laws/test_parameters.py",), "the primitive of every operation"),
    "handlax/__main__.py": (("handlax/launch/test_command_line.py",), "what is executed as a program"),
    "handlax/explain.py": (("handlax/launch/test_command_line.py",), "what is executed as a program"),
    "handlax/as_jax/__main__.py": (("handlax/test_as_jax.py",), "what is executed as a program"),
    "handlax/as_jax/version.py": (("handlax/test_as_jax.py",), "a constant"),
    "handlax/interop/": (
        ("beside_jax/test_interop.py", "handlax/interop/test_jax.py"), "what converts functions shows in them"),
    "handlax/launch/__main__.py": (("lowering/clients/test_processes.py",), "what is executed as several processes"),
    "handlax/": (("public_interface/test_names.py",), "names of functions that are tested where they are written"),
    "handlax/experimental/": (
        ("interpreters/library/effectful/test_error_values.py", "effects/control/test_callbacks.py"),
        "names of functions that are tested where they are written"),
    "handlax/experimental/compilation_cache/": (("lowering/xla/test_disk_cache.py",), "the setting as functions"),
    "handlax/experimental/sparse/": (
        ("handlax/experimental/test_sparse.py", "handlax/experimental/sparse/test_sparsify.py"),
        "each function beside the dense one, and under transformations"),
    "handlax/lax/": ((LAWS, GOLDEN), "the operations as functions"),
    "handlax/nn/": (("handlax/test_nn.py", GOLDEN), "by area, and call by call"),
    "handlax/numpy/": (
        (GOLDEN, "handlax/test_numpy_creation.py", "handlax/test_numpy_elementwise.py",
         "handlax/test_numpy_indexing.py", "handlax/test_numpy_products.py", "handlax/test_numpy_reductions.py",
         "handlax/test_numpy_searching.py", "handlax/test_numpy_shaping.py"), "by area, and call by call"),
    "handlax/probability/sites.py": (
        ("handlax/probability/test_traces.py",), "a site is what handlers make of it"),
    "handlax/random/": (("handlax/test_random.py", "golden/test_random.py"), "by area, and draw by draw"),
    "handlax/scipy/linalg/": (("handlax/scipy/test_linalg.py",), "against SciPy, function by function"),
    "handlax/testing/closeness.py": (("handlax/testing/test_comparisons.py", LAWS), "the comparison of all laws"),
    "handlax/testing/crossing_laws.py": (
        ("handlax/testing/test_handler_laws.py", "handlax/testing/test_transformation_laws.py"), "laws of both"),
    "handlax/testing/drawn_programs.py": (("handlax/testing/test_handler_laws.py",), "the programs of its checks"),
    "handlax/testing/run_differences.py": (("handlax/testing/test_recordings.py",), "the comparison of recordings"),
    "handlax/testing/faults/injection.py": (
        ("handlax/testing/faults/test_moments.py", "handlax/testing/faults/test_failures.py"),
        "what all kinds of faults have in common"),
    "handlax/testing/faults/new_processes.py": (
        ("handlax/testing/faults/test_kills.py", "handlax/testing/faults/test_exits.py"),
        "what faults of processes have in common"),
    "handlax/testing/fuzzing/__main__.py": (("handlax/testing/fuzzing/test_fuzz_command.py",), "it calls the command"),
    "handlax/testing/mutants/__main__.py": (("docs/test_pages.py",), "what the page of how-to/mutants.md executes"),
    "handlax/testing/mutants/fork_server.py": ((MUTANTS,), "a run is many forks"),
    "handlax/testing/mutants/mutant_worker.py": ((MUTANTS,), "a program of its own, which a run starts"),
    "handlax/testing/nest_laws.py": ((NESTS,), "the laws themselves"),
    "handlax/testing/effect_programs/": (("laws/test_effect_programs.py",), "an oracle says what they mean"),
    "handlax/testing/generator/": (
        (NESTS, "laws/test_ragged_programs.py", "handlax/testing/test_handler_laws.py",
         "handlax/testing/test_random_programs.py"),
        "the programs of which laws are checked"),
}
