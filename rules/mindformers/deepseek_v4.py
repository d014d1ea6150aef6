"""Checks that graph-mode MindFormers makes on DeepSeek-V4 attention and hash routing, and older checks of the data."""

from preflight.lint.constraint import ConstraintSet, divides, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.lint.value_kinds import ListOf, whole
from preflight.rules.mindformers.shared_conditions import a, legacy, mcore, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers", why="the transformer config rejects these settings")
hybrid = all_of(mcore, a["mcore.experimental_attention_variant"] == "dsv4_hybrid")
ratios, layers, mtp = a["mcore.csa_compress_ratios"], a["mcore.num_layers"], a["mcore.mtp_num_layers"]
tokens = a["model.model_config.seq_length"]
asked, answered = a["train_dataset.max_source_length"], a["train_dataset.max_target_length"]

MINDFORMERS.add(
    refuse(
        "sparse-hybrid-latent",
        all_of(hybrid, ~a["mcore.multi_latent_attention"]),
        message="experimental_attention_variant dsv4_hybrid needs multi_latent_attention",
        at=(a["mcore.multi_latent_attention"], a["mcore.experimental_attention_variant"]),
    ),
    refuse(
        "sparse-hybrid-ratios",
        all_of(hybrid, ratios.is_none),
        message="experimental_attention_variant dsv4_hybrid needs csa_compress_ratios",
        why="each layer must have its own compression ratio",
        at=(a["mcore.experimental_attention_variant"],),
    ),
    refuse(
        "sparse-hybrid-length",
        all_of(
            hybrid,
            ratios.is_set,
            any_of(all_of(mtp.is_none, ratios.length != layers), all_of(mtp.is_set, ratios.length != layers + mtp)),
        ),
        message=(
            "csa_compress_ratios has {length} entries, but it needs one for each of the {mcore.num_layers} layers "
            "and for each prediction layer"
        ),
        why="each layer, including the prediction layers, must have its own compression ratio",
        at=(ratios, layers),
        shows={"length": ratios.length},
    ),
    refuse(
        "sparse-hybrid-entries",
        all_of(hybrid, ratios.is_set, ~ratios.is_a(ListOf(whole(0, 0, also=(4, 128))))),
        message="csa_compress_ratios is {mcore.csa_compress_ratios}; each entry must be 0, 4 or 128",
        why="the kernels can compress only by 4 or by 128",
        at=(ratios,),
    ),
    divides(
        "sparse-hybrid-groups",
        a["mcore.o_groups"],
        a["mcore.num_attention_heads"] * a["mcore.v_head_dim"],
        when=hybrid,
        message=(
            "{mcore.num_attention_heads} heads × v_head_dim {mcore.v_head_dim} is not divisible by o_groups "
            "{mcore.o_groups}"
        ),
        why="the output projection processes the heads in groups of equal size",
        at=(a["mcore.o_groups"], a["mcore.num_attention_heads"]),
    ),
    refuse(
        "sparse-hybrid-window",
        all_of(hybrid, a["mcore.apply_dsa_kernel_fusion"], a["mcore.csa_window_size"] != 128),
        message="fused sparse attention needs csa_window_size 128, not {mcore.csa_window_size}",
        why="the fused kernel supports only a window size of 128",
        at=(a["mcore.csa_window_size"], a["mcore.apply_dsa_kernel_fusion"]),
    ),
    refuse(
        "sparse-hybrid-dims",
        all_of(hybrid, a["mcore.qk_head_dim"] + a["mcore.qk_pos_emb_head_dim"] != a["mcore.v_head_dim"]),
        message=(
            "qk_head_dim {mcore.qk_head_dim} + qk_pos_emb_head_dim {mcore.qk_pos_emb_head_dim} must equal "
            "v_head_dim {mcore.v_head_dim}"
        ),
        why="keys and values share one cache, so they must have the same width",
        at=(a["mcore.v_head_dim"], a["mcore.qk_head_dim"]),
    ),
    refuse(
        "hash-layers-vocabulary",
        all_of(a["mcore.moe_n_hash_layers"] > 0, a["mcore.actual_vocab_size"].is_none),
        message="moe_n_hash_layers {mcore.moe_n_hash_layers} needs actual_vocab_size",
        why="hash routing looks tokens up in a table with actual_vocab_size entries",
        at=(a["mcore.moe_n_hash_layers"],),
    ),
    refuse(
        "question-answer-length",
        all_of(
            legacy,
            training,
            a["train_dataset.data_loader.type"] == "ADGenDataLoader",
            a["metric"].given,
            asked + answered + 1 != tokens,
        ),
        message=(
            "seq_length {model.model_config.seq_length} must equal max_source_length "
            "{train_dataset.max_source_length} + max_target_length {train_dataset.max_target_length} + 1"
        ),
        why=(
            "the dataset pads to the sum, but the network is built for seq_length. The check that compares them "
            "is skipped once a dataset exists"
        ),
        severity=Severity.WARNING,
        at=(tokens, asked, answered),
    ),
    refuse(
        "dynamic-batch-split",
        all_of(training, a["train_dataset.dynamic_batch"], a["parallel_config.seq_split_num"] > 1),
        message=(
            "dynamic_batch does not work with seq_split_num {parallel_config.seq_split_num}, because sequences of "
            "varying length cannot be split"
        ),
        why="the run fails before the first step",
        at=(a["train_dataset.dynamic_batch"], a["parallel_config.seq_split_num"]),
    ),
    refuse(
        "resume-by-name",
        all_of(a["use_legacy_format"].is_in(False), ~a["resume_training"].is_in(True, False)),
        message="resume_training is {resume_training}; with the new checkpoint format, it must be True or False",
        why="with the new checkpoint format, the framework finds the file itself",
        after=("mindformers/resume-name-new-format",),
        at=(a["resume_training"], a["use_legacy_format"]),
    ),
    refuse(
        "expert-router",
        all_of(
            legacy,
            training,
            a["shape.family"] == "llama",
            a["moe_config.expert_num"] > 1,
            ~a["moe_config.use_gmm"],
            a["moe_config.routing_policy"] != "TopkRouterV2",
        ),
        message="routing_policy is {moe_config.routing_policy}; the experts of this model need TopkRouterV2",
        why="the expert layer cannot be built. The default is TopkRouterV1, so the router must be set explicitly",
        at=(a["moe_config.routing_policy"], a["moe_config.expert_num"]),
    ),
    refuse(
        "first-dense-layers",
        a["mcore.first_k_dense_replace"] > a["mcore.num_layers"],
        message="first_k_dense_replace {mcore.first_k_dense_replace} is more than the {mcore.num_layers} layers",
    ),
    refuse(
        "chunked-loss",
        all_of(mcore, a["mcore.chunk_loss_num"] > 1, a["mcore.calculate_per_token_loss"]),
        message="chunk_loss_num {mcore.chunk_loss_num} does not work with calculate_per_token_loss",
        at=(a["mcore.chunk_loss_num"], a["mcore.calculate_per_token_loss"]),
    ),
)
