"""Checks of how layers are divided among pipeline stages and virtual stages."""

from preflight.lint.constraint import ConstraintSet, divides, drop, refuse
from preflight.lint.expressions import total
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
STAGES = a.pipeline_model_parallel_size
PER_CHUNK = a.num_layers_per_virtual_pipeline_stage
CHUNKS = a.num_virtual_stages_per_pipeline_rank
VIRTUAL = a.virtual_pipeline_model_parallel_size
UNEVEN = any_of(a.decoder_first_pipeline_num_layers.is_set, a.decoder_last_pipeline_num_layers.is_set)
LAYERS = a.pipeline_num_layers
NO_PATTERN = a.hybrid_layer_pattern.is_none
BY_CHUNK = all_of(PER_CHUNK.is_set, CHUNKS.is_none, a.pipeline_model_parallel_layout.is_none)
LISTED = any_of(a.num_layer_list.is_set, a.pipeline_num_transformer_layers.is_set)  # from MindSpeed-LLM
PLAIN = all_of(
    ~LISTED, PER_CHUNK.is_none, CHUNKS.is_none, a.pipeline_model_parallel_layout.is_none, ~UNEVEN, NO_PATTERN
)

MEGATRON.add(
    refuse(
        "virtual-stages-twice",
        total(PER_CHUNK.is_set, CHUNKS.is_set, a.pipeline_model_parallel_layout.is_set) > 1,
        message=(
            "virtual stages are set more than once; set only the layers per virtual stage, the virtual stages per "
            "rank, or a layout"
        ),
        fixes=(drop(PER_CHUNK), drop(CHUNKS)),
        after=("mindspeed/layout-virtual-stages",),
    ),
    divides(
        "layout-over-stages",
        STAGES,
        a.layout_num_stages,
        when=all_of(a.pipeline_model_parallel_layout.is_set, PER_CHUNK.is_none, CHUNKS.is_none),
        message=(
            "the pipeline layout has {layout_num_stages} stages, which are not divisible by the pipeline-parallel "
            "size {pipeline_model_parallel_size}"
        ),
        at=(a.pipeline_model_parallel_layout, STAGES),
        layout=True,
    ),
    refuse(
        "virtual-stages-with-uneven-split",
        all_of(BY_CHUNK, UNEVEN),
        message=(
            "stages of different sizes cannot be split into virtual stages of "
            "{num_layers_per_virtual_pipeline_stage} layers; use --num-virtual-stages-per-pipeline-rank instead"
        ),
        at=(PER_CHUNK, a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers),
        fixes=(drop(PER_CHUNK),),
        unless_framework="mindspeed-llm",  # hides virtual stages from the check if the pipeline parallel size is 2
    ),
    divides(
        "interleaved-layers-over-stages",
        STAGES,
        LAYERS,
        when=all_of(BY_CHUNK, ~UNEVEN),
        message="{pipeline_num_layers} layers are not divisible by {pipeline_model_parallel_size} pipeline stages",
        at=(a.num_layers, STAGES),
        layout=True,
        after=("mindspeed-llm/layers-over-two-stages",),
    ),
    refuse(
        "stage-over-virtual-stages",
        all_of(BY_CHUNK, ~UNEVEN, LAYERS % STAGES == 0, any_of(PER_CHUNK == 0, LAYERS // STAGES % PER_CHUNK != 0)),
        message=(
            "the {layers} layers of a pipeline stage cannot be divided into virtual stages of "
            "{num_layers_per_virtual_pipeline_stage} layers"
        ),
        shows={"layers": LAYERS // STAGES},
        at=(PER_CHUNK, a.num_layers, STAGES),
        layout=True,
        after=("mindspeed-llm/virtual-stage-divides",),
    ),
    divides(
        "layers-over-stages",
        STAGES,
        LAYERS,
        when=PLAIN,
        message="{pipeline_num_layers} layers are not divisible by {pipeline_model_parallel_size} pipeline stages",
        why="an uneven split needs a separate option, so " + REFUSED,
        at=(a.num_layers, STAGES),
        layout=True,
    ),
    refuse(
        "virtual-stages-without-pipeline",
        all_of(VIRTUAL.is_set, a.overlap_p2p_comm, STAGES <= 1),
        message=(
            "{virtual_pipeline_model_parallel_size} virtual stages need a pipeline, but the pipeline-parallel size is "
            "{pipeline_model_parallel_size}"
        ),
        at=(PER_CHUNK, CHUNKS, a.pipeline_model_parallel_layout, STAGES),
        fixes=(drop(PER_CHUNK, safety=Safety.SAFE), drop(CHUNKS, safety=Safety.SAFE)),
        layout=True,
        after=("megatron/pattern-with-layers-per-virtual-stage", "megatron/pattern-with-virtual-stages"),
    ),
    refuse(
        "virtual-stages-with-two-stages",
        all_of(VIRTUAL.is_set, ~a.overlap_p2p_comm, STAGES <= 2),
        message=(
            "without overlapped communication, virtual stages need a pipeline-parallel size of at least 3, not "
            "{pipeline_model_parallel_size}"
        ),
        at=(a.overlap_p2p_comm, PER_CHUNK, CHUNKS, STAGES),
        fixes=(drop(a.overlap_p2p_comm),),
        layout=True,
    ),
    refuse(
        "interleaving-without-pipeline",
        all_of(any_of(PER_CHUNK.is_set, CHUNKS.is_set), STAGES <= 1),
        message="virtual stages need a pipeline, but the pipeline-parallel size is {pipeline_model_parallel_size}",
        fixes=(drop(PER_CHUNK, safety=Safety.SAFE), drop(CHUNKS, safety=Safety.SAFE)),
        layout=True,
    ),
    refuse(
        "interleaving-with-two-stages",
        all_of(any_of(PER_CHUNK.is_set, CHUNKS.is_set), a.overlap_p2p_comm.given, STAGES == 2),
        message=(
            "without overlapped communication, virtual stages need a pipeline-parallel size of at least 3, not "
            "{pipeline_model_parallel_size}"
        ),
        at=(a.overlap_p2p_comm, PER_CHUNK, CHUNKS, STAGES),
        fixes=(drop(a.overlap_p2p_comm),),
        layout=True,
        unless_framework="mindspeed-llm",
    ),
    refuse(
        "split-rank-over-pipeline",
        all_of(a.pipeline_model_parallel_split_rank.is_set, a.pipeline_model_parallel_split_rank >= STAGES),
        message=(
            "--pipeline-model-parallel-split-rank {pipeline_model_parallel_split_rank} leaves none of the "
            "{pipeline_model_parallel_size} stages to the decoder"
        ),
        fixes=(drop(a.pipeline_model_parallel_split_rank),),
    ),
    refuse(
        "parallel-size-zero",
        any_of(a.tensor_model_parallel_size <= 0, STAGES <= 0, a.context_parallel_size <= 0),
        message=(
            "the tensor-, pipeline- and context-parallel sizes are {tensor_model_parallel_size}, "
            "{pipeline_model_parallel_size} and {context_parallel_size}; each must be at least 1"
        ),
        why="before it starts, the run divides by this size or gets a negative number of ranks",
    ),
)
