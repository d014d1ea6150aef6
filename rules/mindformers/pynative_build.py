"""Checks made while a pynative run builds its network layers, seed, optimizer and schedule."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, one_of, put, refuse
from preflight.lint.declared_fixes import drop
from preflight.lint.expressions import Handles, all_of, any_of

a = Handles(names())
LAYER = "the layer cannot be built"
PYNATIVE = ConstraintSet("pynative", why=LAYER)
_STEPS = "mindformers/core/lr/lr_schedule.py"
WARMING = (
    "ConstantWarmUpLR",
    "LinearWithWarmUpLR",
    "CosineWithRestartsAndWarmUpLR",
    "PolynomialWithWarmUpLR",
    "WarmUpStableDecayLR",
)
ACTIVATIONS = ("gelu", "silu", "fusedswiglu", "GELU", "SiLU", "FusedSwiGlu", "SILU", "FUSEDSWIGLU", "Gelu", "Silu")
heads, hidden, length = a["net.num_attention_heads"], a["net.hidden_size"], a["net.seq_length"]
ratio, steps, schedule = a["lr_scheduler.warmup_ratio"], a["lr_scheduler.warmup_steps"], a["lr_scheduler.type"]
ratios, layers, mtp = a["net.csa_compress_ratios"], a["net.num_layers"], a["net.mtp_num_layers"]
training = a["run_mode"] != "predict"
compressed = any_of(a["net.use_attn_mask_compression"], a["net.use_eod_attn_mask_compression"])

PYNATIVE.add(
    one_of(
        "architecture",
        a["model.architectures"],
        ("DeepseekV3ForCausalLM", "DeepseekV4ForCausalLM", "Qwen3ForCausalLM"),
        when=all_of(training, a["model.auto_register"].is_none),
        message=(
            "pynative mode cannot train {model.architectures}; it supports DeepseekV3ForCausalLM, "
            "DeepseekV4ForCausalLM and Qwen3ForCausalLM"
        ),
        why="no class is registered under this name, or the class has no pynative network for training",
        after=("pynative-wrong-type", "pynative/model-type"),
    ),
    refuse(
        "architecture-of-another-type",
        all_of(
            training,
            any_of(
                all_of(
                    a["model.model_type"] == "qwen3",
                    a["model.architectures"].is_in("DeepseekV3ForCausalLM", "DeepseekV4ForCausalLM"),
                ),
                all_of(
                    a["model.model_type"].is_in("deepseek_v3", "deepseek_v4"),
                    a["model.architectures"] == "Qwen3ForCausalLM",
                ),
            ),
        ),
        message="{model.architectures} cannot be built from a config of model_type {model.model_type}",
        why="the network reads fields that the config of the other model does not have",
        at=(a["model.architectures"], a["model.model_type"]),
    ),
    one_of(
        "normalization",
        a["net.normalization"],
        ("LayerNorm", "RMSNorm"),
        message="normalization is {net.normalization}; in pynative mode it must be LayerNorm or RMSNorm",
    ),
    refuse(
        "activation",
        ~a["net.hidden_act"].is_in(
            "gelu", "silu", "fusedswiglu", "GELU", "SiLU", "FusedSwiGlu", "SILU", "FUSEDSWIGLU", "Gelu", "Silu"
        ),
        message="hidden_act is {net.hidden_act}; in pynative mode it must be gelu, silu or fusedswiglu",
        beside=("pynative-network-numbers",),
        fixes=(put(a["net.hidden_act"], "silu"),),
    ),
    refuse(
        "hidden-over-heads",
        all_of(a["net.multi_latent_attention"] == False, hidden % heads != 0),
        message="hidden_size {net.hidden_size} is not a multiple of num_attention_heads {net.num_attention_heads}",
        at=(hidden, heads),
    ),
    refuse(
        "no-heads",
        all_of(a["net.multi_latent_attention"] == False, heads == 0),
        message="the network has 0 attention heads",
        why=(
            "the number of heads is divided by the number of key/value heads, and the hidden size by the number of "
            "heads"
        ),
        at=(heads,),
    ),
    refuse(
        "hybrid-length",
        all_of(
            a["net.experimental_attention_variant"] == "dsv4_hybrid",
            all_of(ratios.given, ratios.is_set, mtp.given, layers.given),
            any_of(all_of(mtp.is_none, ratios.length != layers), all_of(mtp.is_set, ratios.length != layers + mtp)),
        ),
        message=(
            "csa_compress_ratios has {length} entries, but it needs one for each of the {net.num_layers} layers and "
            "{net.mtp_num_layers} prediction layers"
        ),
        why="each layer, including the prediction layers, must have its own compression ratio",
        at=(ratios, layers, mtp),
        shows={"length": ratios.length},
    ),
    refuse(
        "short-compressed-mask",
        all_of(compressed, length < 2048),
        message="seq_length {net.seq_length} is below 2048, which the compressed attention mask needs",
        at=(length, a["net.use_attn_mask_compression"]),
        fixes=(put(a["net.use_attn_mask_compression"], False),),
    ),
    refuse(
        "hybrid-query",
        all_of(a["net.experimental_attention_variant"] == "dsv4_hybrid", a["net.q_lora_rank"].is_none),
        message="dsv4_hybrid attention needs q_lora_rank",
        at=(a["net.q_lora_rank"],),
    ),
    refuse(
        "seed",
        a["training.seed"] < 0,
        message="training.seed is {training.seed}; it must not be negative",
        why="the seed is set before anything is built",
        fixes=(put(a["training.seed"], 42),),
    ),
    refuse(
        "rate-in-optimizer",
        all_of(training, a["optimizer.learning_rate"].given, a["optimizer.type"].is_in("AdamW", "Muon")),
        message="optimizer.learning_rate is not allowed in pynative mode; set the rate in lr_scheduler",
        why="the trainer passes the schedule to the optimizer under the same name",
        at=(a["optimizer.learning_rate"],),
        fixes=(drop(a["optimizer.learning_rate"]),),
    ),
    refuse(
        "warmup-missing",
        all_of(training, schedule.is_in(*WARMING), ratio.is_none, steps.is_none),
        message="{lr_scheduler.type} needs warmup_ratio or warmup_steps",
        why="the run fails when the schedule is built",
        at=(ratio, schedule),
        always=True,
    ),
    refuse(
        "warmup-ratio",
        all_of(training, ratio.given, any_of(ratio < 0, ratio > 1)),
        message="warmup_ratio is {lr_scheduler.warmup_ratio}; it must be from 0 to 1",
        why="the run fails when the schedule is built",
        at=(ratio,),
    ),
    refuse(
        "warmup-steps",
        all_of(training, ratio.is_none, steps < 0),
        message="warmup_steps is {lr_scheduler.warmup_steps}; it must not be negative",
        why="the run fails when the schedule is built",
        at=(steps,),
    ),
)
