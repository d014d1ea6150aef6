"""Checks that compare a run with the checkpoint that it loads."""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.saved_arguments import Pair, alike, goes_on, is_known, is_on, loaded, pairs, same, shown
from preflight.rules.megatron.saved_shapes import Unlike, changed, unlike

ROTARY = (
    *(
        "rotary_base",
        "rotary_percent",
        "rotary_interleaved",
        "rotary_scaling_factor",
        "rotary_seq_len_interpolation_factor",
    ),
    *(
        "use_rope_scaling",
        "rope_scaling_factor",
        "original_max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "mscale",
    ),
)
EXPERTS = (
    *("moe_router_topk", "moe_router_score_function", "moe_router_pre_softmax", "moe_router_num_groups"),
    *("moe_router_group_topk", "moe_router_topk_scaling_factor", "moe_router_enable_expert_bias", "moe_layer_freq"),
    *("moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "moe_shared_expert_gate"),
)
LATENT = ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")
OTHERS = (
    *("position_embedding_type", "normalization", "norm_epsilon", "apply_layernorm_1p", "swiglu", "squared_relu"),
    *("openai_gelu", "quick_geglu", "qk_layernorm", "qk_l2_norm", "add_bias_linear", "add_qkv_bias", "kv_channels"),
    *("untie_embeddings_and_output_weights", "num_experts", "multi_latent_attention", "mtp_num_layers"),
    *("apply_residual_connection_post_layernorm", "softmax_scale", "window_size", "no_rope_freq"),
)
IN_PLACE = "the checkpoint was saved with {name} {before}, but the run has {now}, and nothing compares the two"


def _names(job: Job) -> tuple[str, ...]:
    """The arguments that define this network."""
    get, saved = job.arguments.get, job.site.saved if job.site is not None else {}
    kind = get("position_embedding_type")
    names = list(OTHERS)
    if kind.raw in ("rope", "mrope", "yarn") and kind.raw == saved.get("position_embedding_type"):
        names += ROTARY
    if is_on(job, "num_experts") and saved.get("num_experts"):
        names += EXPERTS
    else:
        names.append("ffn_hidden_size")
    latent = get("multi_latent_attention").raw is True
    if latent and saved.get("multi_latent_attention") is True:
        names = [*(name for name in names if name != "kv_channels"), *LATENT]
    if not latent and get("group_query_attention").raw is True and saved.get("group_query_attention") is True:
        names.append("num_query_groups")
    return tuple(names)


@rule(id="loaded-checkpoint-differs", severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_differs(job: Job) -> Iterator[Finding | Unverified]:
    """The run builds a different network from that of the checkpoint, and Megatron does not notice the difference.

    ## What it does
    With `--site`, compares the arguments of the run that saved the checkpoint with those of this run, if no loader
    compares them: rotary base and scaling, norm and its epsilon, activation, query groups, experts and their router,
    tied embeddings.

    ## Why is this bad?
    If the shapes of the weights stay the same, the run continues with weights that were trained for a different
    computation, so the loss starts higher or never recovers. If the shapes are known to differ,
    `loaded-checkpoint-shapes` reports it.

    ## Example
    With `--site`, for a checkpoint that was saved with `--rotary-base 500000`:

        --position-embedding-type rope --load /data/llama3

    Use instead:

        --position-embedding-type rope --rotary-base 500000 --load /data/llama3

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1421, load_args_from_checkpoint, lists what it compares
    nowhere
    """
    if loaded(job) is None or job.arguments.given("moe_use_upcycling") is not None:
        return
    ends = {name for one in unlike(job) for name in one.names}  # errors that another rule reports
    for pair in pairs(job, (name for name in _names(job) if name not in ends)):
        if not is_known(pair.now):
            yield Unverified(pair.now.because or f"{pair.name} is assumed")
        elif not alike(pair.now.raw, pair.before) and not _is_of_older_release(pair):
            name = job.arguments.spell(pair.name)
            message = Message(IN_PLACE, name=name, before=shown(pair.before), now=shown(pair.now.raw))
            place = job.place(pair.now, job.arguments.given(job.site.checkpoint.argument))  # type: ignore[union-attr]
            yield Finding(message, place, key=pair.now.key)


def _is_of_older_release(pair: Pair) -> bool:
    """Whether one of the two values is a default that replaces an argument which older releases did not have."""
    return pair.before is None or (pair.now.raw is None and not pair.now.written)


FREE = ("fully_reshardable", "fully_sharded_model_space", "fsdp_dtensor")
BY_RANK = (
    "the run has an expert-parallel size of {now}, but the checkpoint with one file per rank has {before}, so the run "
    "looks for the files of other ranks and ends"
)
MISMATCH = (
    "the run has tensor- and pipeline-parallel sizes of {tensor} and {pipeline}, but the checkpoint has "
    "{saved_tensor} and {saved_pipeline}, so the optimizer state in the checkpoint, saved as {sharding}, cannot be "
    "loaded"
)


@rule(id="loaded-checkpoint-layout", severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_layout(job: Job) -> Iterator[Finding | Unverified]:
    """The checkpoint cannot be loaded into the layout of the run.

    ## What it does
    With `--site`, compares the tensor-parallel and pipeline-parallel sizes with those of the run that saved a
    distributed checkpoint, and checks how the optimizer state is sharded. If the checkpoint consists of one file per
    rank, the expert-parallel size is compared as well.

    ## Why is this bad?
    The weights of a distributed checkpoint can be loaded into any layout. The state of the distributed optimizer can be
    loaded into another layout only if it was saved as `fully_reshardable` or `fully_sharded_model_space`. Otherwise,
    the run ends with `RuntimeError: (TP, PP) mismatch`. Checkpoints with one file per rank can only be loaded into the
    layout that saved them.

    ## Example
    With `--site`, for a checkpoint of `--tensor-model-parallel-size 2` that was saved without
    `--ckpt-fully-parallel-save`:

        --tensor-model-parallel-size 4 --use-distributed-optimizer --load /data/llama

    Use instead (the layout of the checkpoint, or only its weights):

        --tensor-model-parallel-size 4 --use-distributed-optimizer --load /data/llama --no-load-optim

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py, load_checkpoint, and
    megatron/core/optimizer/distrib_optimizer.py, checkpoint_fully_reshardable_formats
    """
    found, get = loaded(job), job.arguments.get
    if found is not None and found.kind == "torch":
        yield from _by_rank(job)
    if found is None or job.site is None or found.kind != "torch_dist" or found.release or not found.sharding:
        return
    saved = job.site.saved
    if (
        not goes_on(job)
        or not get("no_load_optim").known
        or get("no_load_optim").raw
        or saved.get("no_save_optim")
        or get("use_distributed_optimizer").raw is not True
    ):
        return
    tensor, pipeline = get("tensor_model_parallel_size"), get("pipeline_model_parallel_size")
    if not (is_known(tensor) and is_known(pipeline)):
        yield Unverified(tensor.because or pipeline.because)
        return
    before = tuple(saved.get(f"{name}_model_parallel_size", 1) for name in ("tensor", "pipeline"))
    if before == (tensor.raw, pipeline.raw) or found.sharding in FREE:
        return
    message = Message(
        MISMATCH,
        tensor=tensor.raw,
        pipeline=pipeline.raw,
        saved_tensor=before[0],
        saved_pipeline=before[1],
        sharding=found.sharding,
    )
    yield Finding(message, job.place(tensor, pipeline, job.arguments.given(found.argument)))


def _by_rank(job: Job) -> Iterator[Finding]:
    """The expert-parallel size differs from the one that the files were saved with."""
    now, found = job.arguments.get("expert_model_parallel_size"), loaded(job)
    before = job.site.saved.get("expert_model_parallel_size") if job.site is not None else None
    if found is not None and is_known(now) and type(before) is int and before != now.raw:
        place = job.place(now, job.arguments.given(found.argument))
        yield Finding(Message(BY_RANK, now=now.raw, before=before), place, key=now.key)


ALWAYS = ("num_layers", "hidden_size", "num_attention_heads", "add_position_embedding")
WITH_VOCABULARY = ("max_position_embeddings", "make_vocab_size_divisible_by", "tokenizer_type")
BY_SIZE = ("NullTokenizer", "NullMultimodalTokenizer", "TikTokenizer")
"""Tokenizers whose size is set by `--vocab-size`; the size of all others comes from their files."""
RETURNED = ("return_unexpected", "return_all")
"""Values of `--dist-ckpt-strictness` that make the loader return the mismatched tensors together with the state."""
TUPLE = (
    "with {name} {now}, the loader returns a tuple, which load_checkpoint uses as the state, so the run fails when "
    "it loads the checkpoint"
)
DIFFERS = "the checkpoint was saved with {name} {before}, but the run has {now}, so the run fails when it loads the checkpoint"


def compared(job: Job) -> tuple[str, ...]:
    """The arguments that the loader compares."""
    get = job.arguments.get
    names = list(ALWAYS)
    distributed = get("use_dist_ckpt").raw is not False
    if is_on(job, "vocab_file"):
        sized = get("tokenizer_type").raw in BY_SIZE
        names += [*WITH_VOCABULARY, *(("padded_vocab_size",) if sized and not distributed else ())]
    if get("data_parallel_random_init").raw is True:
        names.append("data_parallel_random_init")
    if is_on(job, "phase_transition_iterations"):
        names.append("global_batch_size")
    found = loaded(job)
    if not distributed and found is not None and found.version >= 3.0:
        names += ["tensor_model_parallel_size", "pipeline_model_parallel_size"]
    return tuple(names)


@rule(id="loaded-checkpoint-refused", severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_refused(job: Job) -> Iterator[Finding | Unverified]:
    """Megatron rejects the checkpoint because it was saved with different arguments.

    ## What it does
    With `--site`, compares the arguments that `check_checkpoint_args` compares: layers, hidden size, attention heads
    and whether position embeddings are added. With `--vocab-file`, it also compares positions and tokenizer, and the
    vocabulary if the tokenizer takes its size from `--vocab-size`. Without a distributed checkpoint, it also compares
    the tensor-parallel and pipeline-parallel sizes. With `--finetune`, nothing is compared. The rule also reports
    `--dist-ckpt-strictness return_unexpected` and `return_all` if a distributed checkpoint is loaded, because the
    loader then returns more than the state, but `load_checkpoint` treats the whole result as the state.

    ## Why is this bad?
    The run ends with an assertion error, or with `'tuple' object has no attribute 'get'`, when it loads the checkpoint,
    after it has waited in the queue and built the model.

    ## Example
    With `--site`, for a checkpoint with 32 layers:

        --num-layers 40 --load /data/llama

    Use instead:

        --num-layers 32 --load /data/llama

    ## References
    Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:139, check_checkpoint_args, and
    megatron/core/dist_checkpointing/serialization.py:48, load
    """
    found = loaded(job)
    if found is None:
        return
    strictness = job.arguments.get("dist_ckpt_strictness")
    if found.kind == "torch_dist" and is_known(strictness) and strictness.raw in RETURNED:
        named = {"name": job.arguments.spell("dist_ckpt_strictness"), "now": strictness.raw}
        yield Finding(Message(TUPLE, **named), job.place(strictness), key=strictness.key)
    if not goes_on(job):
        return
    for pair in pairs(job, compared(job)):
        if not is_known(pair.now):
            yield Unverified(pair.now.because or f"{pair.name} is assumed")
        elif not same(pair.now.raw, pair.before):
            name = job.arguments.spell(pair.name)
            message = Message(DIFFERS, name=name, before=shown(pair.before), now=shown(pair.now.raw))
            place = job.place(pair.now, job.arguments.given(job.site.checkpoint.argument))  # type: ignore[union-attr]
            yield Finding(message, place, key=pair.now.key)


SHAPE = "the checkpoint has {tensor} of shape {saved}, but {name} {now} makes it {wanted}, so the run fails when it loads the checkpoint"
ABSENT = (
    "the checkpoint has no {tensor}, which the run has with {name} {now}, so the run fails when it loads the checkpoint"
)

MORE = "the checkpoint has {tensor}, which the run does not have with {name} {now}, so the run fails when it loads the checkpoint"


@rule(id="loaded-checkpoint-shapes", severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def loaded_checkpoint_shapes(job: Job) -> Iterator[Finding]:
    """The tensors in the checkpoint have different shapes from those of the network that the run builds.

    ## What it does
    With `--site`, compares the shapes of tensors in the checkpoint with those that follow from the arguments of the
    run: attention, feed-forward networks, experts, positions and, for checkpoints with one file per rank, the
    vocabulary. It also reports tensors that the run needs but a distributed checkpoint lacks, such as the output layer
    if its embeddings were tied. With `--finetune`, which disables the comparison of arguments, it reports hidden size
    and layers as well. Before core 0.13, checkpoints with one file per rank must have exactly the tensors of the run; a
    distributed checkpoint must have all of them with every value of `--dist-ckpt-strictness`, and no others with
    `raise_all`. Networks with latent attention, hybrid layers or a separate specification are not compared.

    ## Why is this bad?
    The run ends when it loads the checkpoint, after it has waited in the queue and built the model. The error is
    `Global shape mismatch`, `size mismatch` or a `KeyError` for the name of a tensor, and does not name the option that
    causes it.

    ## Example
    With `--site`, for a checkpoint that was saved with `--num-query-groups 8`:

        --group-query-attention --num-query-groups 4 --load /data/llama

    Use instead:

        --group-query-attention --num-query-groups 8 --load /data/llama

    ## References
    Megatron-LM core_v0.17.0, megatron/core/dist_checkpointing/strategies/torch.py:501, _validate_global_shapes, and
    megatron/training/checkpointing.py:1866, load_model_state_dict
    """
    told = set()
    for one in unlike(job):
        name = _decides(job, one)
        if name not in told:
            told.add(name)
            yield _finding(job, one, name)


def _decides(job: Job, one: Unlike) -> str:
    """The argument that changes the shape of the tensor: the first one that differs from the checkpoint, otherwise the
    first one given."""
    typed = (name for name in one.names if job.arguments.given(name) is not None)
    return next(iter(changed(job, one.names)), None) or next(typed, one.names[0])


def _finding(job: Job, one: Unlike, name: str) -> Finding:
    now = job.arguments.get(name)
    named = {"tensor": one.tensor, "name": job.arguments.spell(name), "now": shown(now.raw)}
    if one.saved and one.wanted:
        message = Message(SHAPE, **named, saved=_product(one.saved), wanted=_product(one.wanted))
    else:
        message = Message(MORE if one.saved else ABSENT, **named)
    others = (job.arguments.given(each) for each in (*one.names, "load", "pretrained_checkpoint"))
    return Finding(message, job.place(now, *others), key=now.key)


def _product(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
