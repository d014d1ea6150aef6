"""What a pynative run that predicts over a pipeline refuses:
schedules and swapping that are made for a backward pass."""

from preflight.dialects.mindformers.pynative_names import names
from preflight.lint.expressions import Handles, all_of
from preflight.lint.shapes import ConstraintSet, put, refuse

a = Handles(names())
PYNATIVE = ConstraintSet("pynative")
TRAINER = "mindformers/pynative/trainer/trainer.py"
WHY = "without a backward pass its steps do nothing, or wait for ever; refused when the prediction begins"
piped = all_of(a["run_mode"] == "predict", a["parallelism.pipeline_parallel"] > 1)

PYNATIVE.add(
    refuse(
        "inference-interleave",
        all_of(piped, a["parallelism.pipeline_parallel_interleave_num"] > 1),
        message=(
            "prediction over a pipeline needs pipeline_parallel_interleave_num 1, "
            "not {parallelism.pipeline_parallel_interleave_num}"
        ),
        why=WHY,
        at=(a["parallelism.pipeline_parallel_interleave_num"], a["run_mode"]),
        fixes=(put(a["parallelism.pipeline_parallel_interleave_num"], 1),),
    ),
    refuse(
        "inference-overlap",
        all_of(piped, a["parallelism.pipeline_parallel_overlap_b_f"]),
        message="prediction over a pipeline does not work with pipeline_parallel_overlap_b_f",
        why=WHY,
        at=(a["parallelism.pipeline_parallel_overlap_b_f"], a["run_mode"]),
        fixes=(put(a["parallelism.pipeline_parallel_overlap_b_f"], False),),
    ),
    refuse(
        "inference-swap",
        all_of(piped, a["swap.enable"]),
        message="prediction over a pipeline does not work with swap.enable",
        why=WHY,
        at=(a["swap.enable"], a["run_mode"]),
        fixes=(put(a["swap.enable"], False),),
    ),
)
