"""Checks of tokenizer options, such as the required files and vocabulary size."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Severity

WHY = "the tokenizer is created right after the arguments are read, and every rank stops there"
MEGATRON = ConstraintSet("megatron", why=WHY)
TYPE = a.tokenizer_type
BUILD = "megatron/training/tokenizer/tokenizer.py"
FROM_FILE = (
    *(
        "SentencePieceTokenizer",
        "GPTSentencePieceTokenizer",
        "Llama2Tokenizer",
        "TikTokenizer",
        "HuggingFaceTokenizer",
        "MultimodalTokenizer",
    ),
    "SFTTokenizer",
)
WORD_PIECES = ("BertWordPieceLowerCase", "BertWordPieceCase")
STATED = all_of(
    ~a.use_checkpoint_args,
    any_of(a.entry_is_known, all_of(TYPE.given, a.entry.is_in("pretrain_bert.py", "pretrain_t5.py"))),
)
UNTYPED = all_of(
    TYPE.is_none,
    a.tokenizer_model.is_set,
    a.metadata_path.is_none,
    a.entry.is_in("pretrain_gpt.py", "pretrain_mamba.py", "pretrain_hybrid.py"),
    STATED,
)

MEGATRON.add(
    refuse(
        "tokenizer-model-missing",
        all_of(TYPE.is_in(*FROM_FILE), a.tokenizer_model.is_none, a.metadata_path.is_none, STATED),
        message="--tokenizer-type {tokenizer_type} needs --tokenizer-model, which is not set",
        at=(TYPE,),
    ),
    refuse(
        "tokenizer-vocabulary-missing",
        all_of(
            any_of(
                all_of(TYPE == "GPT2BPETokenizer", any_of(a.vocab_file.is_none, a.merge_file.is_none)),
                all_of(TYPE.is_in(*WORD_PIECES), a.vocab_file.is_none),
            ),
            STATED,
        ),
        message="--tokenizer-type {tokenizer_type} needs --vocab-file, and GPT2BPETokenizer needs --merge-file as well",
        why=WHY + ". Newer releases download the missing files",
        at=(TYPE,),
    ),
    refuse(
        "vocabulary-file-missing",
        all_of(
            a.merge_file.given,
            ~a.vocab_file.given,
            ~TYPE.given,
            ~a.tokenizer_model.given,
            ~a.use_checkpoint_args,
        ),
        message="--merge-file is given without --vocab-file, but GPT2BPETokenizer, the default, needs both",
        why=WHY + ". Newer releases download the missing files",
        at=(a.merge_file,),
        after=("megatron/tokenizer-vocabulary-missing", "megatron/tokenizer-type-missing"),
        versions="<0.17",
    ),
    refuse(
        "word-piece-vocabulary-missing",
        all_of(
            a.entry.is_in("pretrain_bert.py", "pretrain_t5.py"),
            ~TYPE.given,
            a.vocab_file.is_none,
            ~a.use_checkpoint_args,
        ),
        message="{entry} needs --vocab-file, because its default tokenizer is BertWordPieceLowerCase",
        upstream=f"{BUILD}:28",
        at=(a.data_path,),
        always=True,
        versions="<0.17",
    ),
    refuse(
        "sentinels-missing",
        all_of(
            a.entry == "pretrain_t5.py",
            any_of(TYPE.is_in(*WORD_PIECES, "SentencePieceTokenizer"), TYPE.is_none),
            a.vocab_extra_ids == 0,
            ~a.use_checkpoint_args,
        ),
        message=(
            "pretrain_t5.py needs --vocab-extra-ids, because the tokenizer has no sentinel tokens to mask spans with"
        ),
        why="an assertion fails when the datasets are built",
        upstream="megatron/core/datasets/t5_dataset.py",
        at=(TYPE, a.vocab_extra_ids),
        fixes=(put(a.vocab_extra_ids, 100),),
        versions="<0.17",
    ),
    refuse(
        "tokenizer-type-missing",
        all_of(UNTYPED, any_of(a.vocab_file.is_none, a.merge_file.is_none)),
        message=(
            "--tokenizer-model has no effect without --tokenizer-type, because {entry} uses GPT2BPETokenizer, which "
            "needs --vocab-file and --merge-file"
        ),
        unless_framework="mindspeed-llm",
        at=(a.tokenizer_model,),
        fixes=(put(TYPE, "HuggingFaceTokenizer"),),
    ),
    refuse(
        "tokenizer-type-left-to-script",
        UNTYPED,
        message="--tokenizer-model has no effect without --tokenizer-type, because {entry} uses GPT-2's tokenizer",
        why=("the data is read with a tokenizer other than the named one, and the vocabulary size differs"),
        severity=Severity.WARNING,
        at=(a.tokenizer_model,),
        fixes=(put(TYPE, "HuggingFaceTokenizer"),),
    ),
    refuse(
        "tokenizer-size-missing",
        all_of(TYPE.is_in("NullTokenizer", "NullMultimodalTokenizer"), a.vocab_size.is_none, STATED),
        message="--tokenizer-type {tokenizer_type} needs --vocab-size",
        at=(TYPE,),
    ),
)
