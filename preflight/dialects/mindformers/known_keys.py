"""Keys of configs: those of a release, and their effect on the training."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import islice

from preflight.dialects.mindformers import mcore_model_config
from preflight.dialects.mindformers.graph_namespace import TRAINING
from preflight.dialects.mindformers.release_tables import Table, read_at, table
from preflight.loaders.document import Entry, Node
from preflight.run.version_ranges import matches
from preflight.source import spelling
from preflight.source.finding import Key
from preflight.source.record import NamedTuple

# fmt: off
_SECTIONS = ("model", "net", "optimizer", "lr_schedule", "train_dataset", "eval_dataset", "dataset", "data",
    "processor", "trainer", "runner_wrapper")
# fmt: on
_NAMES = frozenset(
    """run_mode seed load_checkpoint output_dir use_parallel use_legacy pretrained_model_dir
    runner_config runner_config.epochs runner_config.batch_size runner_config.gradient_accumulation_steps
    parallel_config parallel_config.data_parallel parallel_config.model_parallel parallel_config.pipeline_stage
    parallel_config.micro_batch_num parallel_config.context_parallel parallel_config.expert_parallel
    recompute_config parallel context moe_config parallelism
    training training.local_batch_size training.global_batch_size training.steps""".split()
)


def keeps(name: str) -> bool:
    """Whether a key is one of them, or is in a section of such keys."""
    return name in _NAMES or name.partition(".")[0] in _SECTIONS


_PARAMETERS = frozenset(
    """num_layers num_hidden_layers hidden_size intermediate_size n_kv_heads num_key_value_heads num_query_groups
    vocab_size num_experts expert_num n_routed_experts moe_intermediate_size ffn_hidden_size multiple_of
    ffn_dim_multiplier q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim head_dim lora_rank
    tie_word_embeddings mtp_depth""".split()
)
_DECIDED = {
    "runner_config.batch_size": "the tokens per step",
    "runner_config.gradient_accumulation_steps": "the tokens per step",
    "parallel_config.micro_batch_num": "the tokens per step",
    "parallel_config.data_parallel": "the tokens per step",
    "training.local_batch_size": "the tokens per step",
    "training.global_batch_size": "the tokens per step",
    "runner_config.epochs": "the length of the training",
    "training.steps": "the length of the training",
    "optimizer.type": "the optimizer",
    "lr_schedule.learning_rate": "the learning rate",
    "lr_schedule.lr_end": "the learning rate",
    "lr_schedule.warmup_ratio": "the learning rate",
    "lr_schedule.warmup_steps": "the learning rate",
}


def decides(name: str) -> str:
    """The part of the training that a key affects; "" for none."""
    section, _, last = name.partition(".")[0], "", name.rpartition(".")[2]
    if section in ("model", "net") and last == "seq_length":
        return "the tokens per step"
    if section in ("model", "net") and last in _PARAMETERS:
        return "the number of parameters"
    return _DECIDED.get(name, "")


DATASET = frozenset(
    (
        "add_extra_itm_score auto_tune autotune_per_step batch batch_size column_order construct_args_key data_layout "
        "data_loader dataset_size device_num do_eval drop_remainder dynamic_batch eod_mask_loss eod_reset eod_token_id "
        "eos_id eos_reset eos_token_id eval_interval eval_offset filepath_prefix gmask_id ignore_pad_token_for_loss "
        "img_dynamic_batch input_columns k_test label_transforms mask_policy max_seq_length max_source_length "
        "max_target_length micro_batch micro_batch_num mindrecord mixup_op modal_content_input_columns "
        "modal_content_output_columns modal_content_transforms modal_to_text_transform net_input_columns "
        "num_parallel_workers num_shards numa_enable output_columns packed_num pad_token_id prefetch_size profile "
        "python_multiprocessing rank_id repeat reset_attention_mask return_attention_mask project_columns "
        "reset_position_ids sampler seed seq_length set_init_step shard_id shuffle sop_id text_transforms "
        "token_monitor token_monitor_config tokenizer train_samples transforms use_data_packing "
    ).split()
)
"""Keys of train_dataset and eval_dataset."""

LOADER = frozenset(
    (
        "adaptor_config annotation_dir annotation_file annotation_files batch bin_path cache col_names column_names "
        "columns_list compressed_eod_mask_length config create_attention_mask create_compressed_eod_mask data_files "
        "data_source_type dataset_dir dataset_files dataset_list dataset_name dataset_path dataset_ratios dataset_size "
        "datasets_type doc_stride dtype extra_kwargs file_format file_limit fine_label handler hypothesis_template "
        "idx_path image_dirs input_columns is_align load_func load_indices_npz_path map_function map_function_kwargs "
        "max_chunk_size max_length max_question_len max_seq_len mmap mock_columns mock_dtypes mock_shapes mock_size "
        "multimodal num_padded num_parallel_workers num_samples num_shards nums_per_dataset origin_columns packing "
        "padded_sample path path_prefix phase process_num python_multiprocessing random_mapping read_function "
        "repeat_images return_in_generator sample_nums sampler samples_count samples_num save_indices_npz_path scale "
        "seq_length shard_equal_rows shard_id shuffle shuffle_buffer_size shuffle_dataset size sizes skip_num split "
        "stage sub_data_loader sub_data_loader_args temp_file_dir text_col tokenizer type use_broadcast_data "
    ).split()
)
"""Keys of their data_loader: arguments of the loaders and of MindDataset, and keys removed before."""

PARALLEL = frozenset(
    (
        "device_num global_rank gradients_mean gradient_fp32_sync loss_repeated_mean pipeline_stages "
        "pipeline_result_broadcast parallel_mode search_mode auto_parallel_search_mode parameter_broadcast "
        "strategy_ckpt_load_file strategy_ckpt_save_file group_ckpt_save_file full_batch dataset_strategy "
        "enable_parallel_optimizer parallel_optimizer_config grad_accumulation_step all_reduce_fusion_config "
        "communi_parallel_mode optimizer_weight_shard_size optimizer_weight_shard_aggregated_save sharding_propagation "
        "enable_alltoall strategy_ckpt_config comm_fusion pipeline_config dump_local_norm dump_local_norm_path "
        "dump_device_local_norm auto_parallel_new_interface init_param_in_compile force_fp32_communication "
        "full_batch_is_set enable_fold_pipeline enable_concurrent_sharding"
    ).split()
)
CONTEXT = frozenset(
    (
        "mode device_target device_id save_graphs save_graphs_path enable_dump save_dump_path deterministic "
        "enable_reduce_precision variable_memory_max_size enable_profiling profiling_options "
        "enable_auto_mixed_precision enable_graph_kernel graph_kernel_flags reserve_class_name_in_scope check_bprop "
        "max_device_memory mempool_block_size print_file_path enable_sparse max_call_depth env_config_path "
        "auto_tune_mode grad_for_scalar enable_compile_cache compile_cache_path runtime_num_threads precompile_only "
        "ascend_config gpu_config jit_syntax_level jit_enable_inplace_ops debug_level op_timeout memory_optimize_level "
        "memory_offload aoe_tune_mode aoe_config inter_op_parallel_num disable_format_transform support_binary "
        "exec_order host_scheduling_max_threshold pynative_synchronize jit_config jit_level infer_boost "
        "affinity_cpu_list use_graceful_exit device_type enable_mindio_ttp_save_ckpt dataset_broadcast_opt_level "
        "save_compile_cache load_compile_cache reserve_memory max_size run_mode memory_replay train_precision_sync "
        "infer_precision_sync exclude_cann_cpu postprocess_use_numpy offload_config dynamic_shape launch_blocking "
        "conv_allow_tf32 matmul_allow_hf32 op_precision_mode hccl_watchdog topo_order use_past use_legacy "
        "predict_cpu_offload"
    ).split()
)
NESTED = {
    "pipeline_config": ("pipeline_interleave", "pipeline_scheduler"),
    "strategy_ckpt_config": ("save_file", "load_file", "only_trainable_params"),
    "parallel_optimizer_config": (
        "gradient_accumulation_shard",
        "parallel_optimizer_threshold",
        "optimizer_weight_shard_size",
        "optimizer_level",
    ),
}
# fmt: off
SECTIONS = (
    *("runner_config", "context", "parallel", "trainer", "model", "moe_config", "parallel_config", "recompute_config",
        "swap_config", "runner_wrapper"),
    *("optimizer", "lr_schedule", "metric", "train_dataset", "train_dataset_task", "callbacks", "monitor_config",
        "eval_dataset", "eval_dataset_task"),
    *("eval_callbacks", "processor", "checkpoint", "grouped_lr_schedule", "affinity_config", "base_config",
        "tensorboard", "auto_tune", "filepath_prefix"),
    *("autotune_per_step", "pretrained_model_dir", "generation_config", "layer_decay", "profile", "init_start_profile",
        "remove_redundancy", "seed"),
    *("run_mode", "use_parallel", "load_checkpoint", "src_strategy_path_or_dir", "auto_trans_ckpt",
        "only_save_strategy", "resume_training", "output_dir"),
    *("micro_batch_interleave_num", "load_ckpt_format", "use_legacy", "do_eval", "eval_step_interval",
        "eval_epoch_interval", "predict_batch_size"),
    *("input_data", "transform_process_num", "load_ckpt_async", "remote_save_url", "save_file", "lr_scale",
        "lr_scale_factor", "layer_scale"),
    *("ckpt_use_legacy_format", "use_legacy_format", "balanced_load", "print_separate_loss", "ignore_data_skip",
        "data_skip_steps", "init_method"),
)
# fmt: on
# fmt: off
MODEL = (
    *("type", "auto_register", "checkpoint_name_or_path", "pet_config", "parallel_config", "moe_config", "quant_config",
        "rl_config", "tokenizer", "auto_map"),
    *("is_sample_acceleration", "repetition_penalty", "max_length", "max_new_tokens", "min_length", "min_new_tokens",
        "eos_token_id", "bos_token_id"),
    *("do_sample", "top_k", "top_p", "temperature", "max_decode_length", "is_encoder_decoder", "vision_model",
        "llm_model", "text_model", "dataset_config"),
    *("fine_grain_interleave", "disable_lazy_inline", "model_type", "architectures", "return_extra_loss",
        "monitor_config", "parallel_decoding_params"),
)
# fmt: on

_OF_OLD_RELEASES = (
    "enable_dump",
    "save_dump_path",
    "memory_offload",
    "device_type",
    "reserve_memory",
    "max_size",
    "memory_replay",
    "launch_blocking",
)
"""Keys that a context may still contain, and that MindSpore 2.7 no longer knows."""
TRAINERS = ("CausalLanguageModelingTrainer", "MultiModalToTextGenerationTrainer", "GeneralTaskTrainer")
_BUILT = {"1.5.0": 320, "1.7.0": 398, "2.1.0": 398}
_TEMPLATE = "mindformers/tools/register/template.py:116"
_OLD = {"parallel_config": 57, "recompute_config": 46, "moe_config": 40}
_CONSTRUCTED = {"recompute_config": 57, "swap_config": 50}
"""The cases in which sections are passed to classes: before templates existed and, since then, if the template of a run
mode lacks the section."""
_CONTEXT = {"1.0.0": 104, "1.2.0": 104, "1.3.2": 130, "1.5.0": 200, "1.7.0": 199}
_PARALLEL = {"1.0.0": 115, "1.2.0": 115, "1.3.2": 141, "1.5.0": 109, "1.7.0": 104, "2.1.0": 104}


MOST_GUESSES = 100
"""The number of unknown keys of a mapping compared with the known ones; a file with more is not just misspelt."""


class Stray(NamedTuple):
    """A key that is unknown in its place. near: the key that was probably meant; weight: error, warning or note."""

    key: Key
    entry: Entry
    where: str
    near: str
    weight: str
    upstream: str | None


def strays(tree: Node, kind: str, version: str, config: Node | None = None) -> Iterator[Stray]:
    """Every key of a graph-mode tree that is unknown in its release."""
    t = table(version)
    for section in t.strict:
        if section == "moe_config" and kind == "mcore" and t.templated:
            continue
        if t.templated and _template_applies(section, tree):
            yield from _in_section(tree, (section,), t.sections[section], "error", _TEMPLATE)
        elif section in (lines := _CONSTRUCTED if t.templated else _OLD):
            yield from _in_section(
                tree, (section,), t.sections[section], "error", f"mindformers/core/parallel_config.py:{lines[section]}"
            )
    yield from _of_trainer(tree, version)
    yield from _of_mindspore(tree, version)
    yield from _of_model(tree, kind, t, config)
    yield from _of_datasets(tree)
    known = {*t.general, *SECTIONS, *t.sections}
    unknown = (entry for entry in tree.entries if entry.key.value not in known and not entry.shadowed)
    for entry in islice(unknown, MOST_GUESSES):
        name = entry.key.value
        if isinstance(name, str) and (near := nearest(name, known, 0.85)):
            yield Stray((name,), entry, "the top level", near, "warning", None)


def _template_applies(section: str, tree: Node) -> bool:
    """Whether the template of the run mode has the section; other sections are passed on unchanged."""
    if section in ("parallel_config", "moe_config", "runner_config"):
        return True
    mode = tree.get("run_mode")
    return mode is not None and mode.value in TRAINING


def _in_section(
    tree: Node, path: Key, known: Iterable[str], weight: str, upstream: str | None, cutoff: float = 0.7
) -> Iterator[Stray]:
    section = tree.get(*path)
    if section is None or section.kind != "mapping":
        return
    have = {entry.key.value for entry in section.entries}
    if have <= (known := {*known}):
        return
    meant = [key for key in known if key not in _OF_OLD_RELEASES]
    unknown = (entry for entry in section.entries if not entry.shadowed and entry.key.value not in known)
    for number, entry in enumerate(unknown):
        name = entry.key.value
        near = nearest(str(name), meant, cutoff, have) if number < MOST_GUESSES else ""
        yield Stray(
            (*path, name if isinstance(name, (str, int)) else str(name)),
            entry,
            ".".join(map(str, path)),
            near,
            weight,
            upstream,
        )


def _of_trainer(tree: Node, version: str) -> Iterator[Stray]:
    """The trainer section is passed to its class, which accepts only a name."""
    kind = tree.get("trainer", "type")
    if (read := read_at(version)) in _BUILT and kind is not None and kind.value in TRAINERS:
        yield from _in_section(
            tree,
            ("trainer",),
            ("type", "model_name"),
            "error",
            f"mindformers/tools/register/register.py:{_BUILT[read]}",
        )


def _of_mindspore(tree: Node, version: str) -> Iterator[Stray]:
    """Sections passed to MindSpore, which knows its own names."""
    known = {*PARALLEL, "auto_pipeline"} if matches(version, "<1.7") else PARALLEL
    on = tree.get("use_parallel")
    if on is not None and on.value:
        place = f"mindformers/core/context/parallel.py:{_PARALLEL[read_at(version)]}"
        yield from _in_section(tree, ("parallel",), known, "error", place)
        for name, keys in NESTED.items():
            yield from _in_section(tree, ("parallel", name), keys, "error", place)
    if matches(version, ">=1.5"):
        place = f"mindformers/core/context/build_context.py:{_CONTEXT.get(read_at(version), 320)}"
        yield from _in_section(tree, ("context", "jit_config"), ("jit_level", "infer_boost"), "error", place)
    if (read := read_at(version)) in _CONTEXT:
        yield from _in_section(
            tree, ("context",), CONTEXT, "error", f"mindformers/core/context/build_context.py:{_CONTEXT[read]}"
        )
    else:
        yield from _in_section(tree, ("context",), CONTEXT, "warning", None)


def _of_datasets(tree: Node) -> Iterator[Stray]:
    """Sections whose keys are read one by one: only near misses are reported."""
    for section in ("train_dataset", "eval_dataset"):
        for path, known in (((section,), DATASET), ((section, "data_loader"), LOADER)):
            yield from (stray for stray in _in_section(tree, path, known, "warning", None, 0.85) if stray.near)


def _of_model(tree: Node, kind: str, t: Table, config: Node | None) -> Iterator[Stray]:
    """model_config: legacy types ignore unknown keys; mcore refuses them in 1.7 and warns in 2.x."""
    path: Key = ("model", "model_config")
    section = tree.get(*path)
    if section is None or section.kind != "mapping":
        return
    if kind == "mcore":
        said = section.get("model_type") or (config.get("model_type") if config is not None else None)
        names = mcore_model_config.names(t.version, str(said.value) if said is not None else "", t.mcore)
        known = {
            *(
                name
                for name, field in names.targets.items()
                if names.latent or not names.config or field not in mcore_model_config.LATENT
            ),
            *names.ignored,
            *t.mcore_models.get(names.config, ()),
            "model_type",
            "architectures",
            "auto_map",
            "pet_config",
            "quantization_config",
        }
        if said is None:
            return  # the type is in an unread config.json
        refused = matches(t.version, "<2")
        place = "mindformers/parallel_core/transformer_config_utils.py:515" if refused else None
        yield from _in_section(tree, path, known, "error" if refused else "warning", place)
        return
    model = section.get("type")
    arguments = t.models.get(model.value) if model is not None and isinstance(model.value, str) else None
    if arguments is None:
        return
    for stray in _in_section(tree, path, {*arguments, *MODEL}, "warning", None, 0.8):
        yield stray if stray.near else stray._replace(weight="note")


def nearest(name: str, known: Iterable[str], cutoff: float, taken: Container[object] = ()) -> str:
    """The known key that a key most likely means, or ""; taken: its neighbours."""
    alike = spelling.alike(name, sorted(known), cutoff)
    return next((key for key in alike if key not in taken and not _other_abbreviation(name, key)), "")


def _other_abbreviation(name: str, key: str) -> bool:
    """Whether keys differ in a short part with another meaning rather than a typo: eod_token_id and bos_token_id."""
    pairs = [pair for pair in zip(name.split("_"), key.split("_"), strict=False) if pair[0] != pair[1]]
    if name.count("_") != key.count("_") or len(pairs) != 1:
        return False
    one, other = pairs[0]
    letters = sum(map(str.__ne__, one, other))
    return len(one) == len(other) <= 3 and letters > 1 and sorted(one) != sorted(other)
