"""Checks of pipelined pynative prediction, which rejects schedules and swapping that are designed for a backward pass."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import Handles, all_of

a = Handles(names())
WHY = (
    "without a backward pass, the steps of this feature do nothing or wait forever, so the run fails when prediction "
    "starts"
)
PYNATIVE = ConstraintSet("pynative", why=WHY)
TRAINER = "mindformers/pynative/trainer/trainer.py"
piped = all_of(a["run_mode"] == "predict", a["parallelism.pipeline_parallel"] > 1)

PYNATIVE.add(
    refuse(
        "inference-interleave",
        all_of(piped, a["parallelism.pipeline_parallel_interleave_num"] > 1),
        message=(
            "prediction over a pipeline needs pipeline_parallel_interleave_num 1, "
            "not {parallelism.pipeline_parallel_interleave_num}"
        ),
        at=(a["parallelism.pipeline_parallel_interleave_num"], a["run_mode"]),
        fixes=(put(a["parallelism.pipeline_parallel_interleave_num"], 1),),
    ),
    refuse(
        "inference-overlap",
        all_of(piped, a["parallelism.pipeline_parallel_overlap_b_f"]),
        message="prediction over a pipeline does not work with pipeline_parallel_overlap_b_f",
        at=(a["parallelism.pipeline_parallel_overlap_b_f"], a["run_mode"]),
        fixes=(put(a["parallelism.pipeline_parallel_overlap_b_f"], False),),
    ),
    refuse(
        "inference-swap",
        all_of(piped, a["swap.enable"]),
        message="prediction over a pipeline does not work with swap.enable",
        at=(a["swap.enable"], a["run_mode"]),
        fixes=(put(a["swap.enable"], False),),
    ),
)
