"""Checks made by slime: prompt batches, dynamic batches, and required options."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Safety, Severity

DIES = "the run fails at startup, after Ray has allocated its devices"
SLIME = ConstraintSet("slime", why=DIES)
a = Handles(megatron_names() | names("slime"))
OPTIONS = "slime/utils/arguments.py"
SAMPLES = a.rollout_batch_size * a.n_samples_per_prompt
PLAIN_ROLLOUT = all_of(~a.debug_rollout_only, ~a.rollout_function_path.given, a.custom_generate_function_path.is_none)
"""A function of the user's own may return any number of samples."""
COUNTED = all_of(
    PLAIN_ROLLOUT,
    a.num_steps_per_rollout.is_none,
    a.load_debug_rollout_data.is_none,
    a.custom_convert_samples_to_train_data_path.is_none,
)
"""The samples of a rollout that are trained on are those that it generates. Before 0.3.0, which has no
--use-dynamic-global-batch-size, the batch may follow them."""
HIGH = 1e-4
"""Ten times the highest learning rate of a published run on rollouts, 1e-5."""
WIDE = 0.1
"""250 times the largest clipping range of a published run with gspo, 4e-4."""

SLIME.add(
    refuse(
        "batch-of-rollout",
        all_of(
            a.num_steps_per_rollout.given,
            a.global_batch_size.given,
            a.global_batch_size != SAMPLES // a.num_steps_per_rollout,
        ),
        message=(
            "--global-batch-size is {global_batch_size}, but a rollout of {rollout_batch_size} prompts × "
            "{n_samples_per_prompt} samples in {num_steps_per_rollout} steps gives batches of {made}"
        ),
        upstream=f"{OPTIONS}:1910",
        shows={"made": SAMPLES // a.num_steps_per_rollout},
        at=(a.global_batch_size, a.num_steps_per_rollout),
        fixes=(drop(a.global_batch_size), put(a.global_batch_size, SAMPLES // a.num_steps_per_rollout)),
    ),
    refuse(
        "batch-above-rollout",
        all_of(COUNTED, a.global_batch_size > SAMPLES),
        message=(
            "--global-batch-size is {global_batch_size}, but a rollout has only {samples} samples "
            "({rollout_batch_size} prompts × {n_samples_per_prompt} samples)"
        ),
        why="the run fails after the first rollout, which is too small for a step",
        upstream="slime/utils/dp_schedule.py:136",
        shows={"samples": SAMPLES},
        at=(a.global_batch_size, a.rollout_batch_size, a.n_samples_per_prompt),
        fixes=(put(a.global_batch_size, SAMPLES, offered=True),),
    ),
    refuse(
        "samples-left-over",
        all_of(COUNTED, a.global_batch_size < SAMPLES, SAMPLES % a.global_batch_size != 0),
        message=(
            "the {samples} samples of a rollout are not a multiple of --global-batch-size {global_batch_size}, so the "
            "last {left} are generated but not trained on"
        ),
        why="only whole batches are trained, so the remaining samples are dropped without a message",
        upstream="slime/utils/dp_schedule.py:135",
        shows={"samples": SAMPLES, "left": SAMPLES % a.global_batch_size},
        severity=Severity.WARNING,
        at=(a.global_batch_size, a.rollout_batch_size, a.n_samples_per_prompt),
    ),
    refuse(
        "sampling-at-temperature-zero",
        all_of(PLAIN_ROLLOUT, a.rollout_temperature == 0),
        message=(
            "at --rollout-temperature 0, all samples of a prompt are identical, and the actor divides its logits by "
            "the temperature"
        ),
        why="groups of identical samples have no advantage, and log-probabilities are NaN",
        upstream="slime/backends/megatron_utils/loss.py:91",
        severity=Severity.WARNING,
        at=(a.rollout_temperature,),
    ),
    refuse(
        "rate-of-pretraining",
        all_of(PLAIN_ROLLOUT, a.lr >= HIGH, a.optimizer == "adam"),
        message="--lr {lr} is typical of pre-training, but published reinforcement-learning runs use about 1e-6",
        why="the policy moves away from its initial model within a few steps. The exponent may be wrong",
        upstream="scripts/run-qwen3-30B-A3B.sh",
        severity=Severity.WARNING,
        at=(a.lr,),
    ),
    refuse(
        "clip-range-reversed",
        all_of(a.eps_clip_high.is_set, a.eps_clip_high < a.eps_clip),
        message="--eps-clip-high {eps_clip_high}, the upper end of the clipping range, is below --eps-clip {eps_clip}",
        why=(
            "methods with two limits use a higher upper limit, so that unlikely tokens can gain probability. A digit "
            "may be wrong"
        ),
        upstream="slime/utils/ppo_utils.py:134",
        severity=Severity.WARNING,
        at=(a.eps_clip_high, a.eps_clip),
    ),
    refuse(
        "dynamic-batch-limit",
        all_of(a.use_dynamic_batch_size, a.max_tokens_per_gpu.is_none),
        message="--use-dynamic-batch-size needs --max-tokens-per-gpu",
        upstream=f"{OPTIONS}:1809",
        at=(a.use_dynamic_batch_size,),
        fixes=(drop(a.use_dynamic_batch_size),),
    ),
    refuse(
        "one-sample-a-group",
        all_of(
            a.n_samples_per_prompt == 1,
            a.advantage_estimator.is_in("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline"),
            a.rewards_normalization,
            ~a.debug_rollout_only,
            ~a.use_opd,
            a.custom_reward_post_process_path.is_none,
        ),
        message=(
            "{advantage_estimator} compares the samples of a prompt, but --n-samples-per-prompt is 1, so there is "
            "nothing to compare"
        ),
        why="each reward minus the mean of its group is 0, so the model learns nothing",
        upstream="slime/ray/rollout.py:702",
        severity=Severity.WARNING,
        at=(a.n_samples_per_prompt, a.advantage_estimator),
    ),
    refuse(
        "over-sampling-below-batch",
        a.over_sampling_batch_size < a.rollout_batch_size,
        message=(
            "--over-sampling-batch-size {over_sampling_batch_size} is below --rollout-batch-size {rollout_batch_size}"
        ),
        upstream=f"{OPTIONS}:1924",
        at=(a.over_sampling_batch_size,),
        fixes=(drop(a.over_sampling_batch_size), put(a.over_sampling_batch_size, a.rollout_batch_size)),
    ),
    refuse(
        "no-length-of-run",
        all_of(a.rollout_batch_size.is_set, a.num_epoch.is_none, a.num_rollout.is_none),
        message="neither --num-rollout nor --num-epoch is given",
        upstream=f"{OPTIONS}:1939",
        at=(a.rollout_batch_size,),
    ),
    refuse(
        "stage-layers-without-pipeline",
        all_of(
            a.pipeline_model_parallel_size == 1,
            any_of(a.decoder_first_pipeline_num_layers.is_set, a.decoder_last_pipeline_num_layers.is_set),
        ),
        message="the number of layers of the first or the last stage is given, but there is only one stage",
        upstream="slime/backends/megatron_utils/arguments.py:87",
        at=(a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers),
        after=("megatron/uneven-pipeline",),
        fixes=(
            drop(
                also=(a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers),
                title="remove the layers of the first and the last stage",
                safety=Safety.SAFE,
            ),
        ),
    ),
    refuse(
        "two-kl-terms",
        all_of(a.kl_coef != 0, a.kl_loss_coef != 0),
        message="only one of --kl-coef and --kl-loss-coef may be set, but they are {kl_coef} and {kl_loss_coef}",
        upstream=f"{OPTIONS}:1787",
        at=(a.kl_loss_coef, a.kl_coef),
    ),
    refuse(
        "advantages-not-normalized",
        all_of(
            a.advantage_estimator.is_in("reinforce_plus_plus", "reinforce_plus_plus_baseline"), ~a.normalize_advantages
        ),
        message="--advantage-estimator {advantage_estimator} needs --normalize-advantages",
        upstream=f"{OPTIONS}:1790",
        at=(a.advantage_estimator,),
        fixes=(put(a.normalize_advantages),),
    ),
    conflicts(
        "rollout-log-probs-with-importance-sampling",
        a.use_rollout_logprobs,
        a.use_tis,
        message="--use-rollout-logprobs cannot be combined with --use-tis",
        upstream=f"{OPTIONS}:1796",
        at=(a.use_tis, a.use_rollout_logprobs),
    ),
    requires(
        "balance-by-flops-batch",
        a.balance_by_flops,
        a.use_dynamic_batch_size,
        message="--balance-by-flops needs --use-dynamic-batch-size",
        upstream=f"{OPTIONS}:1814",
        at=(a.balance_by_flops,),
        fixes=(drop(a.balance_by_flops),),
    ),
    refuse(
        "prediction-layers-not-there",
        all_of(a.enable_mtp_training, any_of(a.mtp_num_layers.is_none, a.mtp_num_layers == 0)),
        message="--enable-mtp-training needs --mtp-num-layers",
        upstream=f"{OPTIONS}:1944",
        at=(a.enable_mtp_training,),
        fixes=(drop(a.enable_mtp_training),),
    ),
    refuse(
        "evaluation-without-data",
        all_of(a.eval_interval.given, a.eval_config.is_none, a.eval_prompt_data.is_none),
        message="--eval-interval needs --eval-prompt-data or --eval-config",
        upstream=f"{OPTIONS}:1782",
        at=(a.eval_interval,),
        fixes=(drop(a.eval_interval, safety=Safety.SAFE),),
    ),
    refuse(
        "no-tokenizer",
        all_of(
            PLAIN_ROLLOUT,
            a.rollout_batch_size.is_set,
            a.prompt_data.is_set,
            a.rollout_global_dataset,
            ~a.data_source_path.given,
            ~a.hf_checkpoint.given,
            ~a.custom_config_path.given,
            ~a.debug_train_only,
        ),
        message="--hf-checkpoint is not given, so there is no tokenizer for the prompts",
        why="loading the tokenizer fails when the data source is created",
        upstream="slime/rollout/data_source.py:62",
        at=(a.prompt_data,),
    ),
    requires(
        "save-interval-without-save",
        a.save_interval.given,
        a.save.is_set,
        message="--save-interval {save_interval} needs --save",
        upstream=f"{OPTIONS}:1784",
        at=(a.save_interval,),
        fixes=(drop(a.save_interval),),
    ),
    refuse(
        "devices-of-a-node",
        all_of(
            a.colocate,
            a.actor_num_nodes > 1,
            a.num_gpus_per_node > a.actor_num_gpus_per_node,
            ~a.debug_train_only,
            a.rollout_external_engine_addrs.is_none,
            any_of(a.rollout_num_gpus.is_none, a.rollout_num_gpus > 0),
        ),
        message=(
            "--num-gpus-per-node is {num_gpus_per_node}, but the actor has {actor_num_gpus_per_node} devices on each "
            "of {actor_num_nodes} nodes, so engines on the second node get the address of the first"
        ),
        why="SGLang cannot bind the address of another node, so its engines do not start",
        upstream="slime/ray/rollout.py:949",
        severity=Severity.WARNING,
        at=(a.num_gpus_per_node, a.actor_num_gpus_per_node),
        fixes=(put(a.num_gpus_per_node, a.actor_num_gpus_per_node, safety=Safety.SAFE),),
    ),
)

SLIME.add(
    refuse(
        "distillation-without-type",
        all_of(a.use_opd, a.opd_type.is_none),
        message="--use-opd needs --opd-type sglang or --opd-type megatron",
        upstream=f"{OPTIONS}:1730",
        at=(a.use_opd,),
        fixes=(drop(a.use_opd),),
    ),
    refuse(
        "no-teacher-checkpoint",
        all_of(a.use_opd, a.opd_type == "megatron", a.opd_teacher_load.is_none),
        message="--opd-type megatron needs --opd-teacher-load",
        upstream=f"{OPTIONS}:1734",
        at=(a.opd_type,),
    ),
    refuse(
        "teacher-of-sglang",
        all_of(a.use_opd, a.opd_type == "sglang", a.opd_teacher_load.is_set),
        message="--opd-teacher-load does not work with --opd-type sglang, whose teacher is a server",
        upstream=f"{OPTIONS}:1750",
        at=(a.opd_teacher_load, a.opd_type),
        fixes=(drop(a.opd_teacher_load, safety=Safety.SAFE),),
    ),
    refuse(
        "teacher-without-distillation",
        all_of(~a.use_opd, a.opd_teacher_load.is_set),
        message="--opd-teacher-load needs --use-opd",
        upstream=f"{OPTIONS}:1757",
        at=(a.opd_teacher_load,),
        fixes=(drop(a.opd_teacher_load, safety=Safety.SAFE),),
    ),
    refuse(
        "two-parameter-lists",
        all_of(a.only_train_params_name_list.is_set, a.freeze_params_name_list.is_set),
        message="--only-train-params-name-list and --freeze-params-name-list are both given; give only one of them",
        upstream=f"{OPTIONS}:1974",
        at=(a.freeze_params_name_list, a.only_train_params_name_list),
    ),
    refuse(
        "odd-evaluation-data",
        all_of(
            a.eval_config.is_none,
            a.eval_prompt_data.is_set,
            a.eval_prompt_data.length > 1,
            a.eval_prompt_data.length % 2 == 1,
        ),
        message="--eval-prompt-data has {count} words, but each dataset needs a name and a path",
        upstream=f"{OPTIONS}:1700",
        shows={"count": a.eval_prompt_data.length},
        at=(a.eval_prompt_data,),
    ),
    refuse(
        "weights-without-folder",
        all_of(a.update_weight_transport == "disk", a.update_weight_disk_dir.is_none),
        message=(
            "--update-weight-transport disk needs --update-weight-disk-dir, which the trainer and the engines share"
        ),
        upstream=f"{OPTIONS}:1978",
        at=(a.update_weight_transport,),
    ),
    refuse(
        "weight-differences",
        all_of(
            a.update_weight_mode == "delta",
            any_of(a.update_weight_transport != "disk", a.colocate, a.update_weight_local_checkpoint_dir.is_none),
        ),
        message=(
            "--update-weight-mode delta needs --update-weight-transport disk and "
            "--update-weight-local-checkpoint-dir, and does not work with --colocate"
        ),
        upstream=f"{OPTIONS}:1997",
        at=(a.update_weight_mode, a.update_weight_transport, a.colocate),
    ),
    refuse(
        "released-trainer",
        all_of(
            a.release_train,
            any_of(a.save.is_none, a.update_weight_mode != "full", a.update_weight_transport != "disk"),
        ),
        message="--release-train needs --save and full weights with --update-weight-transport disk",
        upstream=f"{OPTIONS}:1990",
        at=(a.release_train, a.update_weight_mode, a.update_weight_transport),
        fixes=(drop(a.release_train),),
    ),
    refuse(
        "prompt-above-context",
        all_of(a.rollout_max_prompt_len.given, a.rollout_max_prompt_len > a.rollout_max_context_len - 1),
        message=(
            "prompts of up to {rollout_max_prompt_len} tokens leave no tokens for generation in a context of "
            "{rollout_max_context_len}"
        ),
        upstream=f"{OPTIONS}:1969",
        at=(a.rollout_max_prompt_len, a.rollout_max_context_len),
        fixes=(put(a.rollout_max_prompt_len, a.rollout_max_context_len - 1),),
    ),
    refuse(
        "mismatch-without-function",
        all_of(a.get_mismatch_metrics, a.custom_tis_function_path.is_none),
        message="--get-mismatch-metrics needs --custom-tis-function-path",
        upstream=f"{OPTIONS}:1799",
        at=(a.get_mismatch_metrics,),
        fixes=(drop(a.get_mismatch_metrics),),
    ),
    refuse(
        "unknown-reward",
        all_of(
            a.custom_rm_path.is_none,
            a.custom_generate_function_path.is_none,
            ~a.rollout_function_path.given,
            a.rm_type.is_set,
            ~a.rm_type.is_in(
                *("remote_rm", "deepscaler", "dapo", "math", "f1", "gpqa", "ifbench", "random"),
            ),
            ~a.rm_type.starts_with("boxed_"),
        ),
        message="slime has no reward {rm_type}, and --custom-rm-path is not given",
        why="the first rollout fails unless the metadata of every sample names another reward",
        severity=Severity.WARNING,
        upstream="slime/rollout/rm_hub/__init__.py:93",
        at=(a.rm_type,),
    ),
    refuse(
        "engine-above-devices",
        all_of(
            a.colocate,
            ~a.debug_train_only,
            a.rollout_external_engine_addrs.is_none,
            a.rollout_num_gpus_per_engine > a.world_size,
        ),
        message=(
            "an engine needs {rollout_num_gpus_per_engine} devices, but only the {world_size} devices of the actor generate"
        ),
        why="the engine waits for nodes that do not exist",
        upstream="slime/ray/rollout.py:1140",
        at=(a.rollout_num_gpus_per_engine,),
        fixes=(put(a.rollout_num_gpus_per_engine, a.world_size),),
    ),
    refuse(
        "sequence-ratio-never-clipped",
        all_of(a.advantage_estimator == "gspo", a.eps_clip >= WIDE, a.rollout_batch_size.is_set, ~a.debug_rollout_only),
        message="--eps-clip {eps_clip} suits per-token ratios, but gspo clips the ratio of a whole sequence, for which "
        "most published runs use 1e-4 to 4e-4",
        why="the mean ratio over the tokens of a sequence hardly ever leaves such a wide range, so nothing is clipped",
        upstream="slime/backends/megatron_utils/loss.py:965",
        severity=Severity.WARNING,
        at=(a.eps_clip, a.advantage_estimator),
    ),
)
