"""Sizes and settings that are accepted but that no published run uses."""

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.lint.expressions import Expression
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron", why="no check covers this value, and the run is not the one that was intended")
TRAINS = all_of(~a.skip_train, a.entry_trains)
TRIAL = 1_000
"""Runs with fewer iterations are trials: their options are often copied from the long run."""
LEAST_BETA = 0.5
FEW = 8
"""Published runs of some length have larger batches."""

LARGE = 0.1
"""A hundred times the published rate."""


def in_between(dropout: Expression) -> Expression:
    """Half or more, but not all."""
    return all_of(dropout >= 0.5, dropout < 1)


MEGATRON.add(
    refuse(
        "narrow-mlp",
        all_of(
            TRAINS,
            any_of(a.num_experts.is_none, a.num_experts <= 1),
            a.ffn_hidden_size.given,
            a.ffn_hidden_size < a.hidden_size,
        ),
        message="--ffn-hidden-size {ffn_hidden_size} is less than --hidden-size {hidden_size}; a digit may be missing",
        why=(
            "published dense networks have MLPs of 2.5 to 8 times the hidden size, so a narrower MLP removes most of "
            "the network"
        ),
        severity=Severity.WARNING,
        at=(a.ffn_hidden_size, a.hidden_size),
        upstream="https://arxiv.org/abs/2002.05202",
    ),
    refuse(
        "every-expert-chosen",
        all_of(TRAINS, a.num_experts > 2, a.moe_router_topk == a.num_experts, a.train_iters >= TRIAL),
        message="--moe-router-topk {moe_router_topk} sends every token to all {num_experts} experts, so nothing is "
        "routed",
        why=(
            "the run computes a dense network at the cost of all experts. The number may have been meant for "
            "another option"
        ),
        severity=Severity.WARNING,
        at=(a.moe_router_topk, a.num_experts),
        upstream="megatron/core/transformer/moe/router.py",
    ),
    refuse(
        "experts-without-balancing",
        all_of(
            TRAINS,
            ~a.finetune,
            a.num_experts > 1,
            a.moe_router_load_balancing_type.given,
            a.moe_router_load_balancing_type == "none",
            ~a.moe_aux_loss_coeff.given,
            ~a.moe_router_enable_expert_bias,
            a.train_iters >= TRIAL,
        ),
        message=(
            "nothing balances the {num_experts} experts, because --moe-router-load-balancing-type is none and "
            "--moe-router-enable-expert-bias is off"
        ),
        why=(
            "tokens concentrate on a few experts, which becomes visible only in the curves of a run that has trained "
            "for days"
        ),
        severity=Severity.WARNING,
        at=(a.moe_router_load_balancing_type,),
        upstream="megatron/core/transformer/moe/router.py",
    ),
    refuse(
        "beta-near-zero",
        all_of(
            TRAINS,
            a.optimizer == "adam",
            any_of(
                all_of(a.adam_beta1 > 0, a.adam_beta1 < LEAST_BETA),
                all_of(a.adam_beta1 <= a.adam_beta2, a.adam_beta2 > 0, a.adam_beta2 < LEAST_BETA),
            ),
        ),
        message="Adam's betas are {adam_beta1} and {adam_beta2}, but no published run has one below 0.8; a digit may be "
        "wrong",
        why="Adam then averages over one or two steps, so the noise of a single batch moves the weights",
        severity=Severity.WARNING,
        at=(a.adam_beta1, a.adam_beta2),
        upstream="https://arxiv.org/abs/1412.6980v9#section-2",
    ),
    refuse(
        "batch-of-few-samples",
        all_of(
            TRAINS,
            ~a.finetune,
            ~a.global_batch_size.given,
            ~a.rampup_batch_size.given,
            ~a.step_batch_size_schedule.given,
            a.train_iters >= TRIAL,
            a.global_batch_size < FEW,
        ),
        message=(
            "without --global-batch-size, the global batch size is only {global_batch_size}, one micro-batch per "
            "data-parallel rank"
        ),
        why="at a usual learning rate, the gradients of so few samples are noise. A line may be missing",
        severity=Severity.WARNING,
        at=(a.train_iters,),
        upstream="megatron/training/arguments.py",
        after=("megatron/global-batch-left-out",),
    ),
    refuse(
        "dropout-of-most",
        all_of(TRAINS, any_of(in_between(a.hidden_dropout), in_between(a.attention_dropout))),
        message="--hidden-dropout is {hidden_dropout} and --attention-dropout is {attention_dropout}, but published runs use "
        "0 to 0.2; a digit may be wrong",
        why="half of the activations or more are replaced by zeros, so the network learns little",
        severity=Severity.WARNING,
        at=(a.hidden_dropout, a.attention_dropout),
        upstream="https://jmlr.org/papers/v15/srivastava14a.html",
    ),
    refuse(
        "expert-bias-outweighs",
        all_of(TRAINS, a.moe_router_enable_expert_bias, a.moe_router_bias_update_rate >= LARGE),
        message="--moe-router-bias-update-rate is {moe_router_bias_update_rate}, but published runs use 0 to 0.001",
        why="scores lie between 0 and 1, so within a few steps the bias alone chooses the experts",
        severity=Severity.WARNING,
        at=(a.moe_router_bias_update_rate,),
        upstream="https://arxiv.org/abs/2408.15664",
    ),
)
