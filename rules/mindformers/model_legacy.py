"""Checks that legacy graph-mode models make on their model_config."""

from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import (
    a,
    automatic,
    legacy,
    pipeline,
    semi,
    sequence_parallel,
    tensor,
    training,
)

MINDFORMERS = ConstraintSet("mindformers", why="the network cannot be built")
_LLAMA = "mindformers/models/llama/llama_transformer.py"
_LAYER = "mindformers/models/llama/llama_layer.py"
_MODEL = "mindformers/models/llama/llama.py"
_FINE = "mindformers/models/llama/llama_interleave.py"
heads, groups, hidden, ffn = a["shape.heads"], a["shape.query_groups"], a["shape.hidden"], a["shape.ffn"]
llama = all_of(legacy, a["shape.family"] == "llama")
fine = all_of(a["model.model_config.fine_grain_interleave"] > 1, tensor > 1)
plain = all_of(llama, ~fine)
model = "model.model_config"
flash, ring = a[f"{model}.use_flash_attention"], a[f"{model}.use_ring_attention"]
eod = a[f"{model}.use_eod_attn_mask_compression"]
splits = a["parallel_config.seq_split_num"]

MINDFORMERS.add(
    refuse(
        "no-heads",
        all_of(legacy, a[f"{model}.num_heads"] == 0),
        message="the model has 0 attention heads",
        why="the head size is the hidden size divided by the number of heads, so the network cannot be built",
        at=(a[f"{model}.num_heads"],),
    ),
    refuse(
        "no-key-value-heads",
        all_of(llama, a[f"{model}.n_kv_heads"] == 0),
        message="the model has 0 key/value heads",
        why="the number of heads is divided by the number of key/value heads, so the network cannot be built",
        at=(a[f"{model}.n_kv_heads"],),
    ),
    divides(
        "hidden-over-heads",
        heads,
        hidden,
        when=plain,
        message="hidden_size {shape.hidden} is not divisible by {shape.heads} heads",
        why="all heads must have the same width",
        at=(heads, hidden),
    ),
    refuse(
        "short-compressed-mask",
        all_of(
            *(llama, training, ~a[f"{model}.use_past"], a[f"{model}.seq_length"] < 2048),
            any_of(a[f"{model}.use_attn_mask_compression"], eod),
        ),
        message="seq_length {model.model_config.seq_length} is below 2048, which a compressed attention mask needs",
        why="the mask cannot be created",
        at=(a[f"{model}.seq_length"], a[f"{model}.use_attn_mask_compression"]),
        fixes=(put(a[f"{model}.use_attn_mask_compression"], False),),
    ),
    divides(
        "hidden-over-heads-interleaved",
        heads,
        hidden,
        when=all_of(llama, fine),
        message="hidden_size {shape.hidden} is not divisible by {shape.heads} heads",
        why="all heads must have the same width",
        at=(heads, hidden),
    ),
    divides(
        "key-value-heads-over-tensor",
        tensor * a["ulysses_degree"],
        groups,
        when=all_of(
            llama,
            ~(a["model.model_config.fine_grain_interleave"] > 1),
            tensor > 1,
            heads % (tensor * a["ulysses_degree"]) == 0,
        ),
        message=(
            "the number of key/value heads, {shape.query_groups}, is not divisible by {ranks} ranks (model_parallel "
            "× Ulysses); Llama layers do not replicate them"
        ),
        at=(tensor, groups),
        shows={"ranks": tensor * a["ulysses_degree"]},
        layout=True,
    ),
    divides(
        "key-value-heads-over-tensor-interleaved",
        tensor,
        groups,
        when=all_of(llama, fine),
        message=(
            "the number of key/value heads, {shape.query_groups}, is not divisible by model_parallel "
            "{parallel_config.model_parallel}; Llama layers do not replicate them"
        ),
        at=(tensor, groups),
        layout=True,
    ),
    divides(
        "heads-over-ulysses",
        tensor * a["ulysses_degree"],
        heads,
        when=all_of(plain, a["ulysses_degree"] > 1, heads % tensor == 0),
        message="{shape.heads} attention heads are not divisible by {ranks} ranks (model_parallel × Ulysses)",
        at=(a["parallel_config.context_parallel"], tensor, heads),
        shows={"ranks": tensor * a["ulysses_degree"]},
        layout=True,
    ),
    divides(
        "feed-forward-over-tensor",
        tensor,
        ffn,
        when=all_of(llama, ffn.is_set, tensor > 1, a["moe_config.expert_num"] <= 1),
        message=(
            "the feed-forward size {shape.ffn} is not divisible by model_parallel {parallel_config.model_parallel}"
        ),
        at=(a[f"{model}.intermediate_size"], tensor, a[f"{model}.multiple_of"]),
        layout=True,
    ),
    refuse(
        "fewer-layers-than-stages",
        all_of(legacy, semi, pipeline > 1, a["pipeline_layers"] < pipeline, a[f"{model}.num_layers"].is_set),
        message=(
            "the number of layers, {pipeline_layers}, is less than the number of pipeline stages, "
            "{parallel_config.pipeline_stage}"
        ),
        why="a stage would be empty",
        at=(pipeline, a[f"{model}.num_layers"]),
        layout=True,
    ),
    refuse(
        "fewer-layers-than-chunks",
        all_of(
            legacy,
            semi,
            pipeline > 1,
            a["pipeline_interleave"],
            a["pipeline_layers"] >= pipeline,
            a[f"{model}.pp_interleave_num"] * pipeline > a["pipeline_layers"],
        ),
        message=(
            "the number of layers, {pipeline_layers}, is less than {parallel_config.pipeline_stage} stages × "
            "{model.model_config.pp_interleave_num} chunks"
        ),
        why="a virtual stage would be empty",
        at=(a[f"{model}.pp_interleave_num"], pipeline),
        layout=True,
    ),
    refuse(
        "ring-attention-without-flash",
        all_of(llama, ring, ~flash),
        message="use_ring_attention needs use_flash_attention",
        fixes=(put(flash, True),),
    ),
    refuse(
        "eod-mask-without-flash",
        all_of(llama, eod, ~flash),
        message="use_eod_attn_mask_compression needs use_flash_attention",
        fixes=(put(flash, True),),
    ),
    refuse(
        "sequence-pipeline-ring",
        all_of(llama, splits > 1, ring),
        message="seq_split_num {parallel_config.seq_split_num} does not work with use_ring_attention",
        at=(ring, splits),
    ),
    refuse(
        "sequence-pipeline-eod",
        all_of(llama, splits > 1, eod),
        message="seq_split_num {parallel_config.seq_split_num} does not work with use_eod_attn_mask_compression",
        at=(eod, splits),
    ),
    refuse(
        "sequence-pipeline-flash",
        all_of(llama, splits > 1, ~flash),
        message="seq_split_num {parallel_config.seq_split_num} needs use_flash_attention",
        at=(flash, splits),
        fixes=(put(flash, True),),
    ),
    refuse(
        "fused-norm-gpt2",
        all_of(legacy, a["shape.family"] == "gpt2", sequence_parallel, training, automatic),
        message="GPT2 cannot be built with use_seq_parallel",
        why="the GPT2 layer requests a sharding that its layer norm does not support",
        at=(sequence_parallel,),
        fixes=(put(sequence_parallel, False),),
    ),
    refuse(
        "tensor-grid",
        all_of(
            legacy,
            a[f"{model}.use_3d_tensor_parallel"],
            tensor > 1,
            any_of(
                all_of(a[f"{model}.tp_x"].is_none, a[f"{model}.tp_y"].is_none, a[f"{model}.tp_z"].is_none),
                a[f"{model}.tp_x"] * a[f"{model}.tp_y"] * a[f"{model}.tp_z"] != tensor,
            ),
        ),
        message=(
            "tp_x {model.model_config.tp_x} × tp_y {model.model_config.tp_y} × tp_z {model.model_config.tp_z} must "
            "equal model_parallel {parallel_config.model_parallel}"
        ),
        why="the tensor-parallel ranks form a grid of tp_x × tp_y × tp_z ranks",
        at=(a[f"{model}.tp_x"], a[f"{model}.use_3d_tensor_parallel"], tensor),
        layout=True,
    ),
)
