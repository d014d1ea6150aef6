#!/bin/bash
#SBATCH --job-name=train-8b
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8

# The same run with five faults: find them with "preflight check", mend what can be mended with "preflight fix --unsafe".
CUDA_DEVICE_MAX_CONNECTIONS=1

TP=3
PP=2
SEQUENCE=8192
DATA=${DATA:-/data/pile_text_document}
TOKENIZER=${TOKENIZER:-/models/tokenizer.model}

LAUNCH_ARGS=(
    --nnodes "$SLURM_NNODES"
    --nproc-per-node "$SLURM_GPUS_ON_NODE"
    --rdzv-backend c10d
    --rdzv-endpoint "$(scontrol show hostnames | head -n 1):29500"
)

MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length "$SEQUENCE"
    --max-position-embeddings "$SEQUENCE"
    --position-embedding-type rope
    --normalization RMSNorm
    --swiglu
    --disable-bias-linear
    --untie-embeddings-and-output-weights
)

PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP
    --pipeline-model-parallel-size $PP
    --sequence-parallel
    --use-distributed-optimizer
)

TRAINING_ARGS="
    --micro-batch-size 1 \
    --global-batch-size 128 \
    --train-iters 10000 \
    --lr 3.0e-4 \
    --min-lr 3.0e-5 \
    --lr-decay-style cosin \
    --lr-warmup-iters 100 \
    --clip-grad 1.0 \
    --bf16
"

srun torchrun "${LAUNCH_ARGS[@]}" pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    "${PARALLEL_ARGS[@]}" \
    $TRAINING_ARGS $MOE_ARGS \
    --data-path "$DATA" --save /checkpoints/train-8b --save-interval 1000 \
    --tokenizer-type Llama2Tokenizer \
    --tokenizer-model "$TOKENIZER" \
    --split 99,1,0
    --log-interval 10 2>&1 | tee train.log
