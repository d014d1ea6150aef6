"""Process meshes of different sizes in one pipeline, five numbers each."""

from __future__ import annotations

from math import prod

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives

EACH = 5
"""Numbers of a mesh."""
WORDS = {
    "mesh_left_over": "the count of numbers in the process meshes beyond a multiple of five",
    "mesh_count": "the number of process meshes",
    "mesh_pipeline": "`pipeline_model_parallel_size`",
    "mesh_micro": "`micro_batch_size`",
    "mesh_splits": "the number of stages in `hetero_pipeline_layer_split`",
    "mesh_layers": "the number of layers in `hetero_pipeline_layer_split`",
    "mesh_stages": "the number of stages of all process meshes",
    "mesh_ranks": "the number of ranks of all process meshes",
    "mesh_context": "the largest context-parallel size of a process mesh",
    "mesh_data": "the data-parallel size of the first process mesh",
    "mesh_data_last": "the data-parallel size of the last process mesh",
    "mesh_tensor_first": "the tensor-parallel size of the first process mesh",
    "mesh_tensor_last": "the tensor-parallel size of the last process mesh",
    "mesh_tensor_differs": "whether the tensor-parallel sizes of the process meshes differ",
    "mesh_differs": "whether the layouts of the process meshes differ in more than data parallelism",
    "mesh_type_known": "whether `hetero_device_types` names `hetero_current_device_type`",
    "mesh_batch_left": "the first data-parallel size that does not divide the micro-batches of the first process mesh",
}
"""Values of the meshes that the checks use."""
CLAUSES = {
    "mesh_tensor_differs": (
        "the tensor-parallel sizes of the process meshes differ",
        "all process meshes have the same tensor-parallel size",
    ),
    "mesh_differs": (
        "the layouts of the process meshes differ in more than data parallelism",
        "the process meshes differ only in data parallelism",
    ),
    "mesh_type_known": (
        "`hetero_device_types` names `hetero_current_device_type`",
        "`hetero_device_types` does not name `hetero_current_device_type`",
    ),
}
NAMES = frozenset(WORDS)
OF_EACH = (
    *("tensor_model_parallel_size", "context_parallel_size", "expert_model_parallel_size", "micro_batch_size"),
    *("pipeline_model_parallel_size", "expert_tensor_parallel_size", "sequence_parallel"),
)
"""Values that differ between meshes."""


@derives(*NAMES)
def meshes(run: Run) -> None:
    """The combined values of all meshes; a rank uses the sizes of its mesh as those of the run."""
    numbers = run.hetero_process_meshes
    if numbers is None:
        for name in NAMES:
            run.derive(name, None)
        return
    of = "hetero_process_meshes"
    run.derive("mesh_left_over", len(numbers) % EACH, of=of)
    run.derive("mesh_count", len(numbers) // EACH, of=of)
    _split(run)
    run.derive("mesh_pipeline", run.pipeline_model_parallel_size, of="pipeline_model_parallel_size")
    run.derive("mesh_micro", run.micro_batch_size, of="micro_batch_size")
    for name in OF_EACH:
        run.lose(name, "each process mesh has its own value")
    if not numbers or len(numbers) % EACH:
        raise NotKnown("the process meshes are not complete")
    tensor, context, expert, data, stages = (numbers[at::EACH] for at in range(EACH))
    ranks = sum(prod(one) for one in zip(tensor, context, data, stages, strict=True))
    for name, raw in (
        ("mesh_stages", sum(stages)),
        ("mesh_ranks", ranks),
        ("mesh_context", max(context)),
        ("mesh_data", data[0]),
        ("mesh_data_last", data[-1]),
        ("mesh_tensor_first", tensor[0]),
        ("mesh_tensor_last", tensor[-1]),
        ("mesh_tensor_differs", len(set(tensor)) > 1),
        ("mesh_differs", len(set(zip(tensor, context, expert, stages, strict=True))) > 1),
    ):
        run.derive(name, raw, of=of)
    types, mine = run.hetero_device_types, run.hetero_current_device_type
    run.derive("mesh_type_known", types is None or mine in types, of="hetero_current_device_type")
    left = next((one for one in data if data[0] * run.mesh_micro % one), None)
    run.derive("mesh_batch_left", left, of=of)


def _split(run: Run) -> None:
    split = run.hetero_pipeline_layer_split
    run.derive("mesh_splits", len(split) if split is not None else None, of="hetero_pipeline_layer_split")
    run.derive("mesh_layers", sum(split) if split is not None else None, of="hetero_pipeline_layer_split")
