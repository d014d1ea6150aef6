"""Checks of how layers are split across pipeline stages and virtual stages."""

from preflight.lint.constraint import ConstraintSet, conflicts, divides, drop, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of

MEGATRON = ConstraintSet("megatron", why="Megatron rejects the model configuration at startup")
BLOCK = "megatron/core/transformer/transformer_block.py"
FIRST, LAST = a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers
UNEVEN = any_of(FIRST.is_set, LAST.is_set)
COUNTED = any_of(a.account_for_embedding_in_pipeline_split, a.account_for_loss_in_pipeline_split)
LAYOUT = a.pipeline_model_parallel_layout
PIPELINE, VIRTUAL = a.pipeline_model_parallel_size, a.virtual_pipeline_model_parallel_size
LAYERS = a.pipeline_num_layers
DROP_COUNTED = drop(a.account_for_embedding_in_pipeline_split, also=(a.account_for_loss_in_pipeline_split,))

MEGATRON.add(
    conflicts(
        "counted-embedding-with-uneven-stages",
        UNEVEN,
        COUNTED,
        message=(
            "embedding and loss cannot be counted as layers when the number of layers of the first or last stage is "
            "given"
        ),
        fixes=(DROP_COUNTED, drop(a.account_for_loss_in_pipeline_split)),
    ),
    conflicts(
        "layout-with-counts",
        LAYOUT.is_set,
        any_of(UNEVEN, COUNTED),
        message="a pipeline layout places every layer, so the counts for the first or last stage contradict it",
        at=(FIRST, LAST, a.account_for_embedding_in_pipeline_split, a.account_for_loss_in_pipeline_split, LAYOUT),
        fixes=(drop(FIRST, also=(LAST,)), drop(LAST), DROP_COUNTED, drop(a.account_for_loss_in_pipeline_split)),
    ),
    refuse(
        "first-stage-empty",
        all_of(LAYOUT.is_none, FIRST <= 0),
        message="--decoder-first-pipeline-num-layers is {decoder_first_pipeline_num_layers}; it must be at least 1",
        at=(FIRST,),
        fixes=(drop(FIRST),),
        layout=True,
    ),
    refuse(
        "last-stage-empty",
        all_of(LAYOUT.is_none, LAST <= 0),
        message="--decoder-last-pipeline-num-layers is {decoder_last_pipeline_num_layers}; it must be at least 1",
        at=(LAST,),
        fixes=(drop(LAST),),
        layout=True,
    ),
    divides(
        "first-stage-over-virtual-stages",
        VIRTUAL,
        FIRST,
        when=all_of(LAYOUT.is_none, FIRST > 0, VIRTUAL.is_set),
        message=(
            "the {decoder_first_pipeline_num_layers} layers of the first stage are not divisible by "
            "{virtual_pipeline_model_parallel_size} virtual stages"
        ),
        why=(
            "every virtual stage of a rank must hold the same number of layers, so Megatron rejects the model "
            "configuration"
        ),
        at=(FIRST, a.num_virtual_stages_per_pipeline_rank, a.num_layers_per_virtual_pipeline_stage),
        layout=True,
    ),
    divides(
        "last-stage-over-virtual-stages",
        VIRTUAL,
        LAST,
        when=all_of(LAYOUT.is_none, LAST > 0, VIRTUAL.is_set),
        message=(
            "the {decoder_last_pipeline_num_layers} layers of the last stage are not divisible by "
            "{virtual_pipeline_model_parallel_size} virtual stages"
        ),
        why=(
            "every virtual stage of a rank must hold the same number of layers, so Megatron rejects the model "
            "configuration"
        ),
        at=(LAST, a.num_virtual_stages_per_pipeline_rank, a.num_layers_per_virtual_pipeline_stage),
        layout=True,
    ),
    divides(
        "counted-layers-over-stages",
        PIPELINE,
        LAYERS,
        when=all_of(LAYOUT.is_none, ~UNEVEN, COUNTED, a.num_virtual_stages_per_pipeline_rank.is_set),
        message=(
            "{pipeline_num_layers} layers, including embedding and loss, are not divisible by "
            "{pipeline_model_parallel_size} pipeline stages"
        ),
        at=(a.num_layers, PIPELINE),
        layout=True,
    ),
    divides(
        "counted-layers-over-virtual-stages",
        VIRTUAL,
        LAYERS // PIPELINE,
        when=all_of(LAYOUT.is_none, ~UNEVEN, COUNTED, VIRTUAL.is_set, LAYERS % PIPELINE == 0),
        message=(
            "{rank} layers per rank, including embedding and loss, are not divisible by "
            "{virtual_pipeline_model_parallel_size} virtual stages"
        ),
        shows={"rank": LAYERS // PIPELINE},
        at=(a.num_virtual_stages_per_pipeline_rank, a.num_layers),
        layout=True,
    ),
    divides(
        "layers-over-interleaved-stages",
        PIPELINE,
        a.num_layers,
        when=all_of(
            LAYOUT.is_none,
            ~UNEVEN,
            ~COUNTED,
            a.hybrid_layer_pattern.is_none,
            a.num_virtual_stages_per_pipeline_rank.is_set,
        ),
        message="{num_layers} layers are not divisible by {pipeline_model_parallel_size} pipeline stages",
        why="no earlier check catches this, so every rank fails when the model is built",
        at=(PIPELINE, a.num_layers),
        unless_framework="mindspeed-llm",
        layout=True,
    ),
    divides(
        "layers-over-virtual-stages",
        VIRTUAL,
        a.num_layers // PIPELINE,
        when=all_of(
            LAYOUT.is_none,
            ~UNEVEN,
            ~COUNTED,
            a.hybrid_layer_pattern.is_none,
            VIRTUAL.is_set,
            PIPELINE > 1,
            a.num_layers % PIPELINE == 0,
        ),
        message=(
            "{rank} layers of a pipeline stage are not divisible by {virtual_pipeline_model_parallel_size} virtual stages"
        ),
        why="no earlier check catches this, so every rank fails when the model is built",
        shows={"rank": a.num_layers // PIPELINE},
        at=(a.num_virtual_stages_per_pipeline_rank, a.num_layers),
        unless_framework="mindspeed-llm",
        layout=True,
    ),
    refuse(
        "virtual-stages-not-positive",
        a.num_virtual_stages_per_pipeline_rank <= 0,
        message=(
            "--num-virtual-stages-per-pipeline-rank is {num_virtual_stages_per_pipeline_rank}; it must be at least 1"
        ),
        why="the number of layers is divided by the number of virtual stages when the model is built",
        fixes=(drop(a.num_virtual_stages_per_pipeline_rank),),
        layout=True,
    ),
    refuse(
        "no-layers",
        a.num_layers == 0,
        message="a model needs at least one layer",
        why="the initial scale of the output layers is computed by dividing by the number of layers",
        at=(a.num_layers, a.hybrid_layer_pattern),
    ),
)
