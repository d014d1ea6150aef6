"""MindSpeed-MM: options of Megatron-LM and its own; a JSON file describes the network, and parts of Megatron are
patched."""

from __future__ import annotations

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout
from preflight.dialects.megatron.derivation_namespace import Run, derives
from preflight.frontends.flat_options import typed
from preflight.frontends.front_end import FrontEnd
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.published_architecture import OFF
from preflight.loaders.document import Document, Unknown
from preflight.run.value import Origin

PLAIN = OFF | {
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "bf16", "fp16"),
    *("expert_model_parallel_size", "expert_tensor_parallel_size", "micro_batch_size", "global_batch_size", "lr"),
    *("sequence_parallel", "use_distributed_optimizer", "train_iters", "min_lr", "use_torch_fsdp2"),
    *("encoder_pipeline_model_parallel_size", "encoder_tensor_model_parallel_size"),
    *("tensor_parallel_num_weight_shards", "expert_tensor_parallel_num_weight_shards"),
}
"""Options with the same meaning as in Megatron, and those that only Megatron's own trainer has."""
NETWORK = (
    *("num_layers", "encoder_num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups"),
    *("kv_channels", "vocab_size", "num_experts", "moe_router_topk", "moe_ffn_hidden_size", "mtp_num_layers"),
    *("max_position_embeddings", "num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage"),
)
"""Options for which the values in the JSON file take precedence."""


@derives()
def network(run: Run) -> None:
    """The model's JSON file describes the network; of the other values only explicit ones are known."""
    for name in run.table.defaults:
        known = name in PLAIN or name in run.written or name in run.effective
        if name in NETWORK or not known:
            run.lose(name, "it is in the JSON file of --mm-model")


MINDSPEED_MM = FrontEnd(
    "mindspeed-mm",
    "26.1.0",
    core="0.12.1",
    before=(network,),
    steps=(*layout.STEPS, *batch.STEPS),
    unread="dropped",
    apart=("megatron/", "mindspeed/", "pretrain_", "gpt_builders", "model_provider"),
)
"""It patches Megatron's validator and its models, so only checks that apply to every program are made."""


def read(document: Document, surroundings: Surroundings) -> Reading:
    """A launch of one of its scripts. Options of MindSpeed, and of the script itself, are not described."""
    made = typed(MINDSPEED_MM, document, surroundings)
    given = made.parsed.written.get("load")
    if given is not None:
        because = "weights may be of any kind"
        made.parsed.written["load"] = given._replace(raw=Unknown(because), origin=Origin.UNKNOWN, note=because)
    made.parsed.faults = [fault for fault in made.parsed.faults if not fault.unknown_option]
    return reading(MINDSPEED_MM, document, surroundings, made)
