"""Checks of reinforcement learning: parallel rollouts, and CUDA graphs and caches between training and generation."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
RL = a.perform_rl_step
CACHE = a.rl_kv_cache_management_mode
INFLIGHT = all_of(RL, a.rl_max_inflight_requests.is_set)
PROMPTS = a.grpo_prompts_per_step * a.grpo_group_size
LAG = all_of(RL, a.rl_generation_lag.is_set, a.rl_max_inflight_requests.is_none)

MEGATRON.add(
    refuse(
        "kept-graphs-without-graphs",
        all_of(RL, a.rl_persist_cuda_graphs, a.cuda_graph_impl.written.is_none | (a.cuda_graph_impl.written == "none")),
        message="--rl-persist-cuda-graphs needs CUDA graphs, but --cuda-graph-impl creates none",
        at=(a.rl_persist_cuda_graphs, a.cuda_graph_impl),
        fixes=(put(a.cuda_graph_impl, "local"), drop(a.rl_persist_cuda_graphs, safety=Safety.SAFE)),
    ),
    refuse(
        "training-graphs-without-graphs",
        all_of(
            RL, a.rl_training_cuda_graphs, a.cuda_graph_impl.written.is_none | (a.cuda_graph_impl.written == "none")
        ),
        message="--rl-training-cuda-graphs needs CUDA graphs, but --cuda-graph-impl creates none",
        at=(a.rl_training_cuda_graphs, a.cuda_graph_impl),
        fixes=(put(a.cuda_graph_impl, "local"), drop(a.rl_training_cuda_graphs, safety=Safety.SAFE)),
    ),
    refuse(
        "cache-offload-without-kept-graphs",
        all_of(RL, CACHE == "offload", ~a.rl_persist_cuda_graphs),
        message="--rl-kv-cache-management-mode offload needs --rl-persist-cuda-graphs",
        why="capturing the graph again would overwrite the cache, so " + REFUSED,
        at=(CACHE,),
        fixes=(put(a.rl_persist_cuda_graphs), put(CACHE, "persist")),
    ),
    refuse(
        "cache-offload-with-unified-memory",
        all_of(RL, CACHE == "offload", a.rl_persist_cuda_graphs, a.inference_dynamic_batching_unified_memory_level > 0),
        message=(
            "--rl-kv-cache-management-mode offload does not work with unified memory, which moves the cache itself"
        ),
        at=(CACHE, a.inference_dynamic_batching_unified_memory_level),
        fixes=(drop(CACHE),),
    ),
    conflicts(
        "inflight-with-lag",
        INFLIGHT,
        a.rl_generation_lag.is_set,
        message=(
            "--rl-max-inflight-requests {rl_max_inflight_requests} and --rl-generation-lag {rl_generation_lag} set "
            "the same limit; give only one of them"
        ),
        at=(a.rl_generation_lag, a.rl_max_inflight_requests),
        fixes=(drop(a.rl_generation_lag), drop(a.rl_max_inflight_requests)),
    ),
    refuse(
        "inflight-not-positive",
        all_of(INFLIGHT, a.rl_generation_lag.is_none, a.rl_max_inflight_requests < 1),
        message="--rl-max-inflight-requests is {rl_max_inflight_requests}; it must be at least 1",
        at=(a.rl_max_inflight_requests,),
    ),
    refuse(
        "inflight-without-partial-rollouts",
        all_of(INFLIGHT, a.rl_generation_lag.is_none, a.rl_max_inflight_requests > PROMPTS, ~a.rl_partial_rollouts),
        message=(
            "{rl_max_inflight_requests} requests in flight exceed one batch of {batch} and need --rl-partial-rollouts"
        ),
        shows={"batch": PROMPTS},
        at=(a.rl_max_inflight_requests,),
        fixes=(put(a.rl_partial_rollouts), put(a.rl_max_inflight_requests, PROMPTS)),
    ),
    refuse(
        "lag-too-negative",
        all_of(LAG, a.rl_generation_lag < -1),
        message="--rl-generation-lag is {rl_generation_lag}; it must be at least -1",
        at=(a.rl_generation_lag,),
    ),
    refuse(
        "lag-without-partial-rollouts",
        all_of(LAG, a.rl_generation_lag > 0, ~a.rl_partial_rollouts),
        message="a generation lag of {rl_generation_lag} needs --rl-partial-rollouts",
        at=(a.rl_generation_lag,),
        fixes=(put(a.rl_partial_rollouts), drop(a.rl_generation_lag)),
    ),
    refuse(
        "submission-without-partial-rollouts",
        all_of(RL, a.rl_submission_granularity != "B", ~a.rl_partial_rollouts),
        message="--rl-submission-granularity {rl_submission_granularity} needs --rl-partial-rollouts",
        at=(a.rl_submission_granularity,),
        fixes=(put(a.rl_partial_rollouts), drop(a.rl_submission_granularity)),
    ),
    refuse(
        "consumption-by-rollout",
        all_of(RL, a.rl_consumption_granularity == "R"),
        message="--rl-consumption-granularity R is not implemented; it must be G or B",
        at=(a.rl_consumption_granularity,),
        fixes=(drop(a.rl_consumption_granularity),),
    ),
    refuse(
        "consumption-finer-than-submission",
        all_of(RL, a.rl_submission_granularity == "B", a.rl_consumption_granularity == "G"),
        message="rollouts are submitted by batch, so they cannot be consumed by group",
        at=(a.rl_consumption_granularity, a.rl_submission_granularity),
        fixes=(drop(a.rl_consumption_granularity),),
    ),
    refuse(
        "offloaded-optimizer-not-loaded",
        all_of(RL, a.skip_train, a.no_load_optim, a.rl_offload_optimizer_during_inference),
        message=(
            "--skip-train with --no-load-optim creates no optimizer, so "
            "--rl-offload-optimizer-during-inference has nothing to offload"
        ),
        at=(a.rl_offload_optimizer_during_inference, a.no_load_optim),
        fixes=(drop(a.rl_offload_optimizer_during_inference, safety=Safety.SAFE),),
    ),
)
