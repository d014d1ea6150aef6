"""Checks made by FlagScale on process meshes, which use several kinds of devices with separate layouts."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.flagscale_process_meshes import NAMES
from preflight.frontends.front_end import names
from preflight.lint.constraint import ConstraintSet, divides, drop, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Severity

DIES = "every rank stops at startup, before the first step"
FLAGSCALE = ConstraintSet("flagscale", why=DIES)
a = Handles(megatron_names() | names("flagscale") | NAMES)
TRAIN, CONTEXT = "flagscale/train/arguments.py", "flagscale/train/hetero/parallel_context.py"
PATCH = "flagscale/backends/Megatron-LM/megatron/training/arguments.py.patch"
MESHES = a.hetero_process_meshes.is_set
SHARED = all_of(MESHES, any_of(~a.untie_embeddings_and_output_weights, a.mtp_num_layers >= 1))
MULTIPLE = any_of(a.mesh_data % a.mesh_data_last == 0, a.mesh_data_last % a.mesh_data == 0)

FLAGSCALE.add(
    refuse(
        "mesh-numbers",
        all_of(MESHES, a.mesh_left_over > 0),
        message=(
            "hetero_process_meshes has {numbers} numbers, but each mesh has five: tensor, context, expert, data and "
            "pipeline"
        ),
        upstream=f"{TRAIN}:88",
        shows={"numbers": a.hetero_process_meshes.length},
        at=(a.hetero_process_meshes,),
    ),
    refuse(
        "mesh-stages",
        all_of(MESHES, a.mesh_pipeline != a.mesh_stages),
        message="pipeline_model_parallel_size is {mesh_pipeline}, but the process meshes have {mesh_stages} stages",
        upstream=f"{TRAIN}:121",
        at=(a.pipeline_model_parallel_size, a.hetero_process_meshes),
        fixes=(put(a.pipeline_model_parallel_size, a.mesh_stages),),
    ),
    refuse(
        "mesh-micro-batch",
        all_of(MESHES, a.mesh_batch_left.is_set),
        message=(
            "the first mesh's data-parallel size {mesh_data} × micro-batch size {mesh_micro} is not a multiple of "
            "{mesh_batch_left}, the data-parallel size of another mesh"
        ),
        upstream=f"{TRAIN}:105",
        at=(a.hetero_process_meshes, a.micro_batch_size),
    ),
    divides(
        "mesh-batch",
        a.mesh_micro * a.mesh_data,
        a.global_batch_size,
        message=(
            "the global batch size {global_batch_size} is not a multiple of micro-batch size {mesh_micro} × "
            "data-parallel size {mesh_data}"
        ),
        upstream="megatron/core/num_microbatches_calculator.py:348",
        when=all_of(MESHES, a.rampup_batch_size.is_none, ~a.decrease_batch_size_if_needed, a.global_batch_size.given),
        at=(a.global_batch_size, a.hetero_process_meshes),
    ),
    refuse(
        "mesh-context",
        all_of(MESHES, a.enable_hetero, a.mesh_context > 1),
        message=(
            "a process mesh has a context-parallel size of {mesh_context}, but heterogeneous training does not "
            "support context parallelism"
        ),
        upstream=f"{CONTEXT}:550",
        at=(a.hetero_process_meshes,),
    ),
    refuse(
        "mesh-expert-sizes",
        all_of(
            MESHES,
            a.expert_tensor_parallel_size_per_process_mesh.is_set,
            a.expert_tensor_parallel_size_per_process_mesh.length != a.mesh_count,
        ),
        message="expert_tensor_parallel_size_per_process_mesh has {sizes} sizes for {mesh_count} process meshes",
        upstream=f"{TRAIN}:99",
        shows={"sizes": a.expert_tensor_parallel_size_per_process_mesh.length},
        at=(a.expert_tensor_parallel_size_per_process_mesh, a.hetero_process_meshes),
    ),
    refuse(
        "mesh-embedding-stage",
        all_of(MESHES, a.standalone_embedding_stage),
        message="standalone_embedding_stage does not work with hetero_process_meshes",
        upstream=f"{TRAIN}:124",
        at=(a.standalone_embedding_stage, a.hetero_process_meshes),
        fixes=(drop(a.standalone_embedding_stage),),
    ),
    refuse(
        "mesh-ends",
        all_of(SHARED, a.mesh_tensor_first != a.mesh_tensor_last),
        message=(
            "the first and last meshes have tensor-parallel sizes of {mesh_tensor_first} and {mesh_tensor_last}, but "
            "they share the embedding, so the sizes must be equal (untie_embeddings_and_output_weights is off, or "
            "mtp_num_layers is set)"
        ),
        upstream=f"{TRAIN}:134",
        at=(a.hetero_process_meshes, a.untie_embeddings_and_output_weights, a.mtp_num_layers),
    ),
    refuse(
        "mesh-shared-embedding",
        all_of(SHARED, a.use_distributed_optimizer, ~MULTIPLE),
        message=(
            "the first and last meshes share the embedding, but neither of their data-parallel sizes, {mesh_data} and "
            "{mesh_data_last}, is a multiple of the other"
        ),
        upstream=f"{TRAIN}:142",
        at=(a.hetero_process_meshes,),
    ),
    refuse(
        "mesh-partial-reduce",
        all_of(
            SHARED,
            a.use_distributed_optimizer,
            a.mesh_data != a.mesh_data_last,
            MULTIPLE,
            ~a.use_partial_reduce_for_shared_embedding,
        ),
        message=(
            "the first and last meshes share the embedding but have data-parallel sizes of {mesh_data} and "
            "{mesh_data_last}, which requires use_partial_reduce_for_shared_embedding"
        ),
        upstream=f"{TRAIN}:149",
        at=(a.hetero_process_meshes,),
        fixes=(put(a.use_partial_reduce_for_shared_embedding),),
    ),
    refuse(
        "mesh-virtual-stages",
        all_of(
            MESHES,
            a.enable_hetero,
            any_of(a.num_layers_per_virtual_pipeline_stage.is_set, a.num_virtual_stages_per_pipeline_rank.is_set),
        ),
        message="heterogeneous training does not support virtual pipeline stages",
        upstream=f"{PATCH}:154",
        at=(a.num_layers_per_virtual_pipeline_stage, a.num_virtual_stages_per_pipeline_rank),
        fixes=(drop(a.num_layers_per_virtual_pipeline_stage, also=(a.num_virtual_stages_per_pipeline_rank,)),),
    ),
    refuse(
        "layer-split-sum",
        all_of(MESHES, a.hetero_pipeline_layer_split.is_set, a.mesh_layers != a.num_layers),
        message="hetero_pipeline_layer_split has {mesh_layers} layers, but the model has {num_layers}",
        upstream=f"{TRAIN}:169",
        at=(a.hetero_pipeline_layer_split, a.num_layers),
    ),
    refuse(
        "layer-split-stages",
        all_of(MESHES, a.hetero_pipeline_layer_split.is_set, a.mesh_splits != a.mesh_pipeline),
        message="hetero_pipeline_layer_split has {mesh_splits} stages, but the pipeline has {mesh_pipeline}",
        upstream=f"{TRAIN}:172",
        at=(a.hetero_pipeline_layer_split, a.pipeline_model_parallel_size),
    ),
    refuse(
        "mesh-device-types",
        all_of(MESHES, a.hetero_device_types.length != a.mesh_count),
        message="hetero_device_types must name one device type for each of the {mesh_count} process meshes",
        upstream=f"{TRAIN}:185",
        at=(a.hetero_device_types, a.hetero_process_meshes),
    ),
    refuse(
        "mesh-current-type",
        all_of(MESHES, a.hostfile.is_none, ~a.mesh_type_known),
        message="hetero_current_device_type is {hetero_current_device_type}, which is not in hetero_device_types",
        upstream=f"{TRAIN}:188",
        at=(a.hetero_current_device_type, a.hetero_device_types),
    ),
    refuse(
        "hetero-without-meshes",
        all_of(a.enable_hetero, a.hetero_process_meshes.is_none),
        message="enable_hetero needs hetero_process_meshes",
        upstream=f"{CONTEXT}:601",
        at=(a.enable_hetero,),
        fixes=(drop(a.enable_hetero),),
    ),
    refuse(
        "mesh-ranks",
        all_of(MESHES, a.enable_hetero, a.mesh_ranks != a.world_size),
        message="the process meshes have {mesh_ranks} ranks in total, but the run has {world_size}",
        upstream=f"{CONTEXT}:633",
        at=(a.hetero_process_meshes,),
    ),
    refuse(
        "meshes-without-hetero",
        all_of(MESHES, ~a.enable_hetero, a.mesh_differs),
        message=(
            "hetero_process_meshes lists meshes with different layouts, but enable_hetero is off, so the ranks create "
            "mismatched process groups"
        ),
        why="the ranks of each mesh apply its sizes to the whole run, so creating process groups hangs or fails",
        upstream="flagscale/backends/Megatron-LM/megatron/training/initialize.py.patch:88",
        at=(a.hetero_process_meshes, a.enable_hetero),
        fixes=(put(a.enable_hetero),),
    ),
    refuse(
        "mesh-checkpoints",
        all_of(MESHES, a.enable_hetero, a.mesh_tensor_differs, ~a.no_save_optim, a.ckpt_format != "torch"),
        message=(
            "{ckpt_format} checkpoints are not fully supported if the meshes have different tensor-parallel sizes; "
            "FlagScale's developers recommend ckpt_format torch"
        ),
        why="saving or loading a distributed checkpoint fails (FlagScale issue 319)",
        upstream="flagscale/train/train.py:1632",
        severity=Severity.WARNING,
        at=(a.ckpt_format, a.hetero_process_meshes),
        fixes=(put(a.ckpt_format, "torch"),),
    ),
)
