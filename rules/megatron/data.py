"""Checks of data sources, fill-in-the-middle training, and memory logging."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, separate_data
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
FIM = a.fim_data

MEGATRON.add(
    conflicts(
        "data-path-twice",
        a.data_path.is_set,
        a.data_args_path.is_set,
        message="--data-path and --data-args-path both set the data; use only one of the two",
        at=(a.data_args_path, a.data_path),
        fixes=(drop(a.data_args_path), drop(a.data_path)),
    ),
    conflicts(
        "split-data-path-twice",
        separate_data,
        a.per_split_data_args_path.is_set,
        message="--per-split-data-args-path and the data paths of the splits both set the data",
        at=(a.per_split_data_args_path, a.train_data_path, a.valid_data_path, a.test_data_path),
        fixes=(drop(a.per_split_data_args_path),),
    ),
    conflicts(
        "split-with-separate-data",
        all_of(a.entry == "pretrain_gpt.py", a.split.given, a.data_path.is_none),
        any_of(separate_data, a.per_split_data_args_path.is_set),
        unless_framework="mindspeed",
        message="--split {split} does not work with separate data for each split",
        why=(
            "the configuration of the dataset asserts that only one of these options is given, so the run fails "
            "after the model is built"
        ),
        upstream="megatron/core/datasets/blended_megatron_dataset_config.py:116",
        at=(a.split,),
        fixes=(drop(a.split, safety=Safety.SAFE),),
    ),
    refuse(
        "dataset-threads-not-positive",
        a.num_dataset_builder_threads <= 0,
        message="--num-dataset-builder-threads is {num_dataset_builder_threads}; it must be at least 1",
        fixes=(drop(a.num_dataset_builder_threads, safety=Safety.SAFE),),
    ),
    conflicts(
        "two-data-sources",
        a.data_path.length > 0,
        separate_data,
        message="the data is set both by --data-path and by the data paths of the splits; use only one of the two",
        fixes=(drop(a.data_path),),
    ),
    conflicts(
        "mock-data-with-paths",
        a.mock_data,
        any_of(a.data_path.length > 0, separate_data),
        message="--mock-data does not work with data paths; give only one of them",
        why="the run fails at launch; Megatron 0.6 ignores the paths and trains on mock data",
        fixes=(drop(a.mock_data), drop(a.data_path)),
    ),
    conflicts(
        "fim-with-mock-data",
        FIM,
        a.mock_data,
        message="--fim-data does not work with --mock-data, which has no documents",
    ),
    refuse(
        "fim-without-rate",
        all_of(FIM, ~a.fim_rate),
        message="--fim-data needs --fim-rate above 0, not {fim_rate}",
        at=(a.fim_rate, FIM),
        fixes=(drop(a.fim_rate),),
    ),
    refuse(
        "fim-without-spm-rate",
        all_of(FIM, a.fim_rate, ~a.fim_spm_rate),
        message="--fim-data needs --fim-spm-rate above 0, not {fim_spm_rate}",
        at=(a.fim_spm_rate, FIM),
        fixes=(drop(a.fim_spm_rate),),
    ),
    refuse(
        "log-memory-interval",
        all_of(a.log_memory_interval.is_set, a.log_memory_interval % a.log_interval != 0),
        message="--log-memory-interval {log_memory_interval} is not a multiple of --log-interval {log_interval}",
        fixes=(
            put(
                a.log_memory_interval,
                (a.log_memory_interval // a.log_interval + 1) * a.log_interval,
                safety=Safety.SAFE,
            ),
        ),
    ),
)
