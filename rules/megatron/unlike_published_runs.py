"""Values, and networks, that hardly any published run has: a line or a digit is probably missing."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.rules.megatron.option_names import TRAINING, a, all_of, any_of, gated, moe
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron", why="no check covers this value, and the run is not the one that was intended")
TRAINS = all_of(~a.skip_train, a.entry_trains)
PLAIN = a.entry.is_in("pretrain_gpt.py", "")
HYBRID = a.entry.is_in("pretrain_mamba.py", "pretrain_hybrid.py")
COMPLETE = a.options_are_complete
"""For checks of options that are not given: the caller of the script, or a fork, may have another way to give them."""
WEIGHTS = "megatron/training/arguments.py"
LEARNED = a.position_embedding_type == "learned_absolute"
ROTARY = any_of(a.rotary_base.given, a.rotary_percent.given, a.use_rope_scaling, a.rotary_interleaved)
"""Options that only rotary positions read."""
LONG = 4_096
"""Sequences of this length need rotary positions with a large base."""
WIDE = 1_024
"""Test networks are narrower, and have any combination of parts."""
RMS = all_of(TRAINS, a.normalization == "RMSNorm", a.hidden_size >= WIDE)

MEGATRON.add(
    refuse(
        "rotary-options-without-rope",
        all_of(TRAINS, COMPLETE, LEARNED, ROTARY, ~a.multi_latent_attention),
        message="the rotary options have no effect, because --position-embedding-type is learned_absolute",
        why=(
            "learned_absolute is also the default. The model gets a table of learned positions, to which rotary weights "
            "do not transfer. A line may be missing"
        ),
        severity=Severity.WARNING,
        at=(a.position_embedding_type, a.rotary_base, a.rotary_percent, a.use_rope_scaling, a.rotary_interleaved),
        fixes=(put(a.position_embedding_type, "rope"),),
        upstream="megatron/core/models/gpt/gpt_model.py",
        after=("differs-from-published",),
    ),
    refuse(
        "learned-positions-with-rms-norm",
        all_of(
            RMS,
            COMPLETE,
            ~a.position_embedding_type.given,
            LEARNED,
            any_of(all_of(PLAIN, gated), HYBRID),
            ~ROTARY,
        ),
        message=(
            "--position-embedding-type is not given, so positions are learned, but most published networks with RMSNorm "
            "and a gated MLP have rotary positions, and hybrid ones have rotary positions or none"
        ),
        why="learned_absolute is the default. A line such as --position-embedding-type rope may be missing",
        severity=Severity.WARNING,
        at=(a.position_embedding_type, a.normalization),
        upstream=WEIGHTS,
        after=("differs-from-published",),
    ),
    refuse(
        "gate-missing-with-rms-norm",
        all_of(
            RMS,
            PLAIN,
            COMPLETE,
            a.position_embedding_type == "rope",
            ~a.add_bias_linear,
            ~a.gated_linear_unit,
            ~a.squared_relu,
            ~moe,
            a.spec.is_none,
            a.hybrid_override_pattern.is_none,
            a.hybrid_layer_pattern.is_none,
        ),
        message=(
            "the MLP has no gate and uses GELU, but most published networks with RMSNorm and rotary positions have a "
            "gated MLP or a squared ReLU"
        ),
        why="--swiglu may be missing. The network is then smaller, and weights of the intended one do not load",
        severity=Severity.WARNING,
        at=(a.ffn_hidden_size, a.normalization),
        fixes=(put(a.swiglu),),
        upstream="megatron/core/transformer/mlp.py",
        after=("differs-from-published", "mindspeed/fused-swiglu-without-swiglu"),
    ),
    refuse(
        "norm-left-out",
        all_of(
            TRAINS,
            PLAIN,
            COMPLETE,
            a.position_embedding_type == "rope",
            a.rotary_percent >= 1,
            a.swiglu,
            ~a.add_bias_linear,
            ~a.normalization.given,
            ~a.layernorm_zero_centered_gamma,
            ~a.apply_layernorm_1p,
            a.normalization == "LayerNorm",
            a.hidden_size >= WIDE,
        ),
        message=(
            "--normalization is not given, so the norms are LayerNorm, but most published networks with rotary positions "
            "and SwiGLU have RMSNorm"
        ),
        why="weights of an RMSNorm have no biases for a LayerNorm, and train to other values",
        severity=Severity.WARNING,
        at=(a.swiglu, a.position_embedding_type),
        fixes=(put(a.normalization, "RMSNorm"),),
        upstream=WEIGHTS,
        after=("differs-from-published", "mindspeed/fused-rmsnorm-with-layernorm"),
    ),
    refuse(
        "biases-with-rms-norm",
        all_of(RMS, COMPLETE, a.position_embedding_type == "rope", a.swiglu, a.add_bias_linear),
        message=(
            "every linear layer has a bias, but most published networks with RMSNorm, rotary positions and SwiGLU have "
            "none"
        ),
        why="biases are the default, and weights of such a network have none for them. --disable-bias-linear may be missing",
        severity=Severity.NOTE,
        at=(a.normalization, a.swiglu),
        upstream=WEIGHTS,
        after=("differs-from-published", "megatron/shared-experts-with-bias"),
    ),
    refuse(
        "rotary-part-small",
        all_of(TRAINS, a.position_embedding_type == "rope", a.rotary_percent > 0, a.rotary_percent < 0.2),
        message="--rotary-percent {rotary_percent} gives rotary positions to only that fraction of each head",
        why="published models use 0.25, 0.5 or 1. The decimal point may be in the wrong place",
        severity=Severity.WARNING,
        at=(a.rotary_percent,),
        upstream=WEIGHTS,
        after=("differs-from-published",),
    ),
    refuse(
        "rotary-base-small",
        all_of(
            TRAINS,
            a.position_embedding_type == "rope",
            a.rotary_base.given,
            a.rotary_base < 1_000,
            a.seq_length >= LONG,
            a.hidden_size >= WIDE,
        ),
        message="--rotary-base {rotary_base} is less than 1000, but most published language models have 10000 or more",
        why="positions repeat within the sequence, so distant tokens look close. A digit may be missing",
        severity=Severity.WARNING,
        at=(a.rotary_base,),
        upstream="megatron/core/models/common/embeddings/rotary_pos_embedding.py",
        after=("differs-from-published",),
    ),
    refuse(
        "weight-decay-above-published",
        all_of(TRAINS, a.optimizer == "adam", a.weight_decay >= 5, a.weight_decay < 10),
        message="--weight-decay {weight_decay} is far above that of most published runs with Adam (0.1 or less)",
        why="weights shrink much faster than intended. The decimal point may be in the wrong place",
        severity=Severity.WARNING,
        at=(a.weight_decay,),
        upstream="megatron/core/optimizer/optimizer_config.py",
    ),
    refuse(
        "init-too-wide",
        all_of(
            TRAINS,
            ~a.finetune,
            ~a.use_mup,
            any_of(a.init_method_std >= 0.1, all_of(a.init_method_std >= 0.05, a.hidden_size >= WIDE)),
        ),
        message="--init-method-std {init_method_std} makes the initial weights much larger than usual (0.006 to 0.03)",
        why="the first losses are huge, and the gradients overflow. A digit or a decimal point may be missing",
        severity=Severity.WARNING,
        at=(a.init_method_std,),
        upstream=WEIGHTS,
    ),
    refuse(
        "init-too-narrow",
        all_of(TRAINS, ~a.finetune, ~a.use_mup, a.init_method_std.given, a.init_method_std < 0.003),
        message="--init-method-std {init_method_std} makes the initial weights much smaller than usual (0.005 to 0.03)",
        why="signals and gradients fade in a deep network, so training starts slowly or not at all. A zero may be extra",
        severity=Severity.WARNING,
        at=(a.init_method_std,),
        upstream=WEIGHTS,
    ),
    refuse(
        "decoupled-rate-too-high",
        all_of(TRAINS, a.optimizer == "adam", a.decoupled_lr >= 0.02),
        message="--decoupled-lr {decoupled_lr} is far above a usual rate; the sign or a digit of the exponent may be missing",
        why="this rate applies to the input and output layers, whose weights Adam then moves by about this much per step",
        severity=Severity.WARNING,
        at=(a.decoupled_lr,),
        upstream="megatron/core/optimizer/__init__.py",
    ),
    refuse(
        "decoupled-minimum-above-rate",
        all_of(TRAINS, a.lr_decay_style != "constant", a.decoupled_min_lr > a.decoupled_lr),
        message="--decoupled-min-lr {decoupled_min_lr} is above --decoupled-lr {decoupled_lr}, so the rate rises",
        why="the rates apply to the input and output layers, and no check compares them",
        severity=Severity.WARNING,
        at=(a.decoupled_min_lr, a.decoupled_lr),
        upstream="megatron/core/optimizer/__init__.py",
    ),
    refuse(
        "latent-norm-left-out",
        all_of(
            TRAINS,
            COMPLETE,
            a.multi_latent_attention,
            ~a.qk_layernorm,
            a.num_experts > 1,
            a.hidden_size >= WIDE,
            a.experimental_attention_variant.is_none,
        ),
        message=(
            "--qk-layernorm is not given, but published networks with latent attention and experts normalize the "
            "compressed queries, keys and values"
        ),
        why="the option is off by default; without it, weights of these norms have no place in the network",
        severity=Severity.WARNING,
        at=(a.multi_latent_attention,),
        fixes=(put(a.qk_layernorm),),
        upstream="megatron/core/transformer/multi_latent_attention.py",
        after=("differs-from-published",),
    ),
    refuse(
        "clipping-too-weak",
        all_of(TRAINS, a.clip_grad >= 50, a.clip_grad <= 1_000),
        message="--clip-grad {clip_grad} hardly ever clips, but most published runs clip at 1",
        why="one batch with a large gradient can then undo many steps. The decimal point may be missing",
        severity=Severity.WARNING,
        at=(a.clip_grad,),
        upstream="megatron/core/optimizer/clip_grads.py",
    ),
    refuse(
        "fine-tuning-without-base",
        all_of(
            TRAINS,
            PLAIN,
            COMPLETE,
            ~a.mock_data,
            a.finetune,
            a.load.is_none,
            a.pretrained_checkpoint.is_none,
            any_of(a.train_iters >= 100, a.train_samples >= a.global_batch_size * 100),
        ),
        message="--finetune is given without --load, so the run starts from random weights",
        why="nothing reports that no weights are loaded. A line or a variable may be missing",
        severity=Severity.WARNING,
        at=(a.finetune,),
        upstream=TRAINING,
        unless_framework="mindspeed",
    ),
)
