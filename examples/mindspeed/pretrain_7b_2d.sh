#!/bin/bash
# A 7B model on 4 nodes of 8 NPUs, trained with MindSpeed: 2-D tensor parallelism, communication overlap.
# This example has faults on purpose: try `preflight check` on it.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export HCCL_CONNECT_TIMEOUT=1800

NPUS_PER_NODE=8
NNODES=4
MASTER_ADDR=${MASTER_ADDR:-localhost}

TP=8
PP=2

DISTRIBUTED_ARGS="
    --nproc_per_node $NPUS_PER_NODE \
    --nnodes $NNODES \
    --node_rank ${NODE_RANK:-0} \
    --master_addr $MASTER_ADDR \
    --master_port 6000
"

MODEL_ARGS="
    --num-layers 32 \
    --hidden-size 4096 \
    --ffn-hidden-size 11008 \
    --num-attention-heads 32 \
    --seq-length 8192 \
    --max-position-embeddings 8192 \
    --position-embedding-type rope \
    --normalization RMSNorm \
    --swiglu \
    --disable-bias-linear \
    --untie-embeddings-and-output-weights \
    --tokenizer-type NullTokenizer \
    --vocab-size 32000
"

PARALLEL_ARGS="
    --tensor-model-parallel-size ${TP} \
    --pipeline-model-parallel-size ${PP} \
    --sequence-parallel \
    --tp-2d \
    --tp-x 4 \
    --tp-y 4 \
    --enable-overlap-ag-with-matmul \
    --enable-overlap-matmul-with-rs \
    --use-distributed-optimizer
"

TRAIN_ARGS="
    --micro-batch-size 1 \
    --global-batch-size 63 \
    --train-iters 2000 \
    --lr 1.25e-4 \
    --min-lr 1.25e-5 \
    --lr-decay-style cosine \
    --weight-decay 0.1 \
    --bf16 \
    --mock-data
"

torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $MODEL_ARGS \
    $PARALLEL_ARGS \
    $TRAIN_ARGS \
    --distributed-backend nccl
