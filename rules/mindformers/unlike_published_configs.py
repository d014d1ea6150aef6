"""Values of MindFormers that hardly any published config has: a digit, a sign or a line is probably missing."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import a, legacy, mcore, semi, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers", why="no check covers this value, and the run is not the one intended")
MEAN = a["parallel.gradients_mean"]
STEPS = a["lr_schedule.total_steps"]
RATE = a["lr_schedule.learning_rate"]
HIDDEN = a["model.model_config.hidden_size"]
CLIPS = a["runner_wrapper.use_clip_grad"]
AUXILIARY = a["moe_config.aux_loss_factor"]
BALANCE = a["model.model_config.moe_aux_loss_coeff"]
BIAS = a["moe_config.topk_bias_update_rate"]
CORE_BIAS = a["model.model_config.moe_router_bias_update_rate"]
DEEPER = a["model.model_config.mtp_loss_factor"]
WIDTH = a["model.model_config.initializer_range"]
WIDE = 4_096
"""The hidden size of networks with 7B parameters and more."""
BASE = a["model.model_config.theta"]
LENGTH = a["model.model_config.seq_length"]

MINDFORMERS.add(
    refuse(
        "gradients-averaged-again",
        all_of(
            training, semi, a["use_parallel"], MEAN.given, MEAN, a["parallel_config.data_parallel"] > 1, HIDDEN >= 1_024
        ),
        message="gradients_mean True divides gradients by the number of devices once more, in semi_auto_parallel mode",
        why=(
            "the loss is already an average over all samples, so gradients become smaller, and are clipped less. "
            "Nearly all published configs of language models with this mode use False"
        ),
        severity=Severity.WARNING,
        at=(MEAN,),
        fixes=(put(MEAN, False),),
        upstream="mindformers/core/context/parallel.py",
    ),
    refuse(
        "schedule-of-few-steps",
        all_of(training, STEPS == 1, a["runner_config.stop_step"] != 1),
        message="total_steps 1 ends the learning-rate schedule after one step",
        why=(
            "the rest of the run trains at the last rate of the schedule, which is often 0. The default -1 means the "
            "number of steps of the run; its sign may be missing"
        ),
        severity=Severity.WARNING,
        at=(STEPS,),
        fixes=(put(STEPS, -1),),
        upstream="mindformers/core/lr/lr_schedule.py",
        after=("mindformers/schedule-within-warmup",),
    ),
    refuse(
        "learning-rate-too-high-for-size",
        all_of(training, HIDDEN >= WIDE, RATE >= 0.005, RATE < 0.05, a["model.model_config.pet_config"].is_none),
        message=(
            "learning_rate {lr_schedule.learning_rate} is several times that of published configs with a hidden size of "
            "{model.model_config.hidden_size}; a digit of the exponent may be missing"
        ),
        why="published wide networks use 1e-6 to 3e-4. With several times as much, the loss diverges",
        severity=Severity.WARNING,
        at=(RATE,),
        upstream="mindformers/core/lr/lr_schedule.py",
        after=("optimizer-out-of-range",),
    ),
    refuse(
        "clipping-left-out",
        all_of(
            training,
            a["runner_wrapper.type"].given,
            a["runner_wrapper.type"] == "MFTrainOneStepCell",
            ~CLIPS.given,
            a["model.model_config.vocab_size"].given,
            HIDDEN >= 1_024,
        ),
        message="use_clip_grad is not given, and MFTrainOneStepCell does not clip gradients by default",
        why="one batch with a large gradient can undo many steps. Published configs of language models use True",
        severity=Severity.WARNING,
        at=(a["runner_wrapper.type"],),
        fixes=(put(CLIPS, True),),
        versions=">=1.2",
        upstream="mindformers/wrapper/wrapper.py",
    ),
    refuse(
        "router-loss-too-strong",
        any_of(
            all_of(legacy, training, a["moe_config.expert_num"] > 1, any_of(AUXILIARY >= 0.2, BIAS >= 0.02)),
            all_of(mcore, training, any_of(all_of(BALANCE >= 0.1, BALANCE < 1), CORE_BIAS >= 0.02)),
        ),
        message="a coefficient of the router is at least ten times that of published configs",
        why=(
            "published configs use up to 0.05 for aux_loss_factor, 0.001 for moe_aux_loss_coeff, and 0.001 for the "
            "update rate of the bias. With more, the router is trained mainly to balance the experts"
        ),
        severity=Severity.WARNING,
        at=(AUXILIARY, BALANCE, BIAS, CORE_BIAS),
        upstream="mindformers/modules/transformer/moe.py",
    ),
    refuse(
        "prediction-loss-outweighs",
        all_of(training, DEEPER >= 1),
        message="mtp_loss_factor {model.model_config.mtp_loss_factor} makes the loss of further tokens outweigh that of "
        "the next token",
        why="published configs use 0.1 to 0.3. The decimal point may be in the wrong place",
        severity=Severity.WARNING,
        at=(DEEPER,),
        upstream="mindformers/parallel_core/transformer_config.py",
    ),
    refuse(
        "init-out-of-range",
        all_of(
            mcore,
            training,
            a["run_mode"] == "train",
            any_of(a["load_checkpoint"].is_none, a["load_checkpoint"] == ""),
            HIDDEN >= 1_024,
            any_of(WIDTH >= 0.05, all_of(WIDTH > 0, WIDTH < 0.003)),
        ),
        message="initializer_range {model.model_config.initializer_range} is far from the usual 0.006 to 0.02",
        why="initial weights that are too large make gradients overflow, and weights that are too small make them fade",
        severity=Severity.WARNING,
        at=(WIDTH,),
        upstream="mindformers/models/llama/llama_config.py",
    ),
    refuse(
        "rotary-base-small",
        all_of(legacy, training, BASE > 0, BASE < 1_000, HIDDEN >= 1_024, LENGTH >= 4_096),
        message="theta {model.model_config.theta} is less than 1000, but most published language models have 10000 or "
        "more",
        why="positions repeat within the sequence, so distant tokens look close. A digit may be missing",
        severity=Severity.WARNING,
        at=(BASE,),
        upstream="mindformers/models/llama/llama_layer.py",
        after=("differs-from-published",),
    ),
)
