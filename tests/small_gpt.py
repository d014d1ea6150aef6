"""The options of a small run of GPT that no release of Megatron-LM refuses."""

SIZES = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
    "--micro-batch-size 1 --train-iters 9 --lr 1e-4"
)
