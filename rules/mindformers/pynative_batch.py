"""Checks that the pynative trainer makes on the batch-size ramp-up and the data."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, refuse
from preflight.lint.expressions import Handles, any_of

a = Handles(names())
PYNATIVE = ConstraintSet("pynative")
DATA = "train_dataset.dataloader"
READERS = ("BlendedMegatronDatasetDataLoader", "HFDataLoader", "MindDataset", "OrderedIndexDataLoader")
OLD_READERS = READERS[:3]
"""The data loaders of 2.0."""

PYNATIVE.add(
    refuse(
        "balance-without-mask",
        (a["train_dataset.balance_enabled"] == True)
        & (a[f"{DATA}.type"] == "BlendedMegatronDatasetDataLoader")
        & any_of(
            a[f"{DATA}.config.create_compressed_eod_mask"].is_none,
            a[f"{DATA}.config.create_compressed_eod_mask"] == False,
            a[f"{DATA}.config.create_seq_len_vector"] == True,
        ),
        message="balance_enabled needs create_compressed_eod_mask and does not work with create_seq_len_vector",
        why=(
            "the load is measured from the compressed mask, so without this mask the run fails when the dataset is "
            "built"
        ),
        at=(a["train_dataset.balance_enabled"],),
    ),
    refuse(
        "reader",
        ~a[f"{DATA}.type"].is_none & ~a[f"{DATA}.type"].is_in(*READERS) & (a["run_mode"] != "predict"),
        message="pynative mode does not support the dataloader {train_dataset.dataloader.type}; it supports {readers}",
        why="the run fails when the dataset is built",
        shows={"readers": ", ".join(READERS)},
    ),
    refuse(
        "reader-without-order",
        ~a[f"{DATA}.type"].is_none & ~a[f"{DATA}.type"].is_in(*OLD_READERS) & (a["run_mode"] != "predict"),
        message="pynative mode does not support the dataloader {train_dataset.dataloader.type}; it supports {readers}",
        why=("before 2.1, no dataset can read data by an ordered index, so the run fails when the dataset is built"),
        shows={"readers": ", ".join(OLD_READERS)},
    ),
)
