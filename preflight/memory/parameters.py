"""Parameters per rank: N of each pipeline stage, dense and expert weights apart because they are sharded apart.

Source: the layers as Megatron-LM d98e8a6 builds them (megatron/core/transformer, megatron/core/models/gpt).
"""

from __future__ import annotations

from preflight.memory import streams
from preflight.memory.shape import Shape
from preflight.source.record import NamedTuple, replace


class Parameters(NamedTuple):
    """Elements on one rank: dense weights of layers, expert weights, input embedding, output layer, adapters."""

    dense: float
    expert: float
    embedding: float
    output: float
    adapter: float = 0.0
    frozen: bool = False  # adapters, or what stands beside the decoder, are all that is trained

    @property
    def total(self) -> float:
        return self.dense + self.expert + self.embedding + self.output + self.adapter

    @property
    def replicated(self) -> float:
        """Everything that is not expert weight: sharded over the dense data-parallel ranks."""
        return self.dense + self.embedding + self.output + self.adapter

    @property
    def trained(self) -> Parameters:
        """What gets gradients and optimizer states: the adapters alone where there are any."""
        return Parameters(0.0, 0.0, 0.0, 0.0, self.adapter) if self.adapter or self.frozen else self


def attention(s: Shape) -> float:
    """h(a + 2g)d/t + a·d·h/t, biases, query-key norms; latent: down projections whole, up projections divided by t."""
    h, t = s.hidden, s.tensor
    if s.latent is None:
        groups = max(s.groups / t, 1)
        rows = (s.heads / t + 2 * groups) * s.head_dim
        return (
            h * rows
            + s.heads * s.head_dim * h / t
            + (rows if s.qkv_bias else 0)
            + (h if s.bias else 0)
            + (2 * s.head_dim * s.norm if s.qk_norm else 0)
        )
    m = s.latent
    qk = m.nope + m.rope
    query = h * s.heads * qk / t
    if m.q_rank is not None:
        query = h * m.q_rank / m.down + m.q_rank * s.heads * qk / t + m.q_rank * s.norm
    key_value = h * (m.kv_rank + m.rope) / m.down + m.kv_rank * s.heads * (m.nope + m.v) / t + m.kv_rank * s.norm
    return query + key_value + s.heads * m.v * h / t + (h if s.bias else 0)


def mlp(s: Shape, ffn: int, tensor: int) -> float:
    """(g + 1)h·f/t, biases g·f/t + h; g input projections."""
    return (s.projections + 1) * s.hidden * ffn / tensor + (s.projections * ffn / tensor + s.hidden if s.bias else 0)


def norms(s: Shape) -> float:
    """Two norms of h, four with norms behind (twice that for layer norm), and connections of residual streams."""
    return (4 if s.post_norm else 2) * s.hidden * s.norm + streams.parameters(s)


def dense_layer(s: Shape) -> float:
    """Parameters per rank of a layer without experts."""
    return attention(s) + mlp(s, s.ffn, s.tensor) + norms(s)


def expert_layer(s: Shape) -> tuple[float, float]:
    """The dense part (attention, norms, router h·E, shared experts) and the expert part (E/e)(g + 1)h·f/x."""
    assert s.experts is not None
    e = s.experts
    shared = (s.projections + 1) * s.hidden * e.shared / s.tensor if e.shared else 0
    dense = attention(s) + norms(s) + s.hidden * e.count + shared
    return dense, e.count / s.expert * mlp(s, e.ffn, s.expert_tensor)


def mamba(s: Shape) -> float:
    """A Mamba-2 layer: projections h(2d + 2GN + H)/t and d·h/t, a convolution over 4 tokens with bias, three numbers
    a head, its norm; G groups of state N, H heads (Megatron-LM core_v0.19.0, megatron/core/ssm/mamba_mixer.py)."""
    assert s.mamba is not None
    m = s.mamba
    return (s.hidden * (m.projected + m.inner) + 5 * m.convolved + 3 * m.heads + m.inner) / s.tensor


def part(s: Shape, letter: str) -> tuple[float, float]:
    """Dense and expert parameters of a layer of a hybrid model, with its one norm."""
    norm = norms(s) / 2
    if letter == "E":
        dense, expert = expert_layer(s)
        return dense - attention(s) - norm, expert
    return norm + (mamba(s) if letter == "M" else attention(s) if letter == "*" else mlp(s, s.ffn, s.tensor)), 0.0


def layers(s: Shape, first: int, count: int) -> tuple[float, float]:
    """Dense and expert parameters of consecutive decoder layers."""
    if s.parts:
        each = [part(s, letter) for letter in s.parts[first : first + count]]
        return sum(dense for dense, _ in each), sum(expert for _, expert in each)
    if s.experts is None:
        return count * dense_layer(s), 0.0
    routed = sum(s.experts.layers[first : first + count])
    dense, expert = expert_layer(s)
    return (count - routed) * dense_layer(s) + routed * dense, routed * expert


def mtp(s: Shape) -> tuple[float, float]:
    """Multi-token-prediction depths: each one more layer (the last layer's kind), 2h·h/t projection, three norms."""
    if not s.mtp:
        return 0.0, 0.0
    dense, expert = (dense_layer(s), 0.0) if s.experts is None or s.experts.layers[-1:] != (True,) else expert_layer(s)
    return s.mtp * (dense + 2 * s.hidden * s.hidden / s.tensor + 3 * s.hidden * s.norm), s.mtp * expert


def widest(s: Shape) -> float:
    """Elements of the largest matrix of a layer that is no expert: queries, keys and values together,
    or the MLP's input."""
    h, t = s.hidden, s.tensor
    attention_in = h * (s.heads + 2 * s.groups) * s.head_dim / t if s.latent is None else s.heads * s.latent.v * h / t
    wide = s.ffn if s.experts is None or not all(s.experts.layers) else s.experts.shared
    return max(attention_in, s.projections * h * wide / t)


def widest_expert(s: Shape) -> float:
    """Elements of the largest matrix of one expert: its input projections."""
    return s.projections * s.hidden * s.experts.ffn / s.expert_tensor if s.experts else 0.0


def adapters(s: Shape) -> float:
    """Low-rank adapters of a layer: r·(in + out) a linear;
    the half on the side that tensor parallelism leaves whole is replicated."""
    h, t, out = s.hidden, s.tensor, 0.0
    v = s.latent.v if s.latent else s.head_dim
    wide = s.projections * s.ffn / t
    sizes = {
        "query": h + s.heads * s.head_dim / t,
        "key": h + max(s.groups / t, 1) * s.head_dim,
        "value": h + max(s.groups / t, 1) * s.head_dim,
        "qkv": h + (s.heads / t + 2 * max(s.groups / t, 1)) * s.head_dim,
        "projection": s.heads * v / t + h,
        "gate": h + s.ffn / t,
        "up": h + s.ffn / t,
        "fc1": h + wide,
        "fc2": s.ffn / t + h,
    }
    for name in s.adapters:
        each = s.experts.count / s.expert if s.experts and name in ("gate", "up", "fc1", "fc2") else 1
        out += each * s.adapter_rank * sizes.get(name, 0.0)
    return out


def stage(s: Shape, rank: int) -> Parameters:
    """Parameters of a pipeline rank: its chunks' layers; embedding V·h/t on the first; output V·h/t on the last unless
    it is the first stage's tied embedding; final norm and multi-token prediction on the last."""
    parts = [layers(s, s.first_layer(v, rank), s.stages[v][rank]) for v in range(s.virtual)]
    dense, expert = sum(p[0] for p in parts), sum(p[1] for p in parts)
    table = s.vocab * s.hidden / s.tensor
    first, last = rank == 0, rank == s.last_rank
    embedding = table + s.positions * s.hidden if first else 0.0
    output = table if last and (not s.tied or not first) else 0.0
    if last:
        more = mtp(s)
        dense, expert = dense + s.hidden * s.norm + more[0], expert + more[1]
        if s.mtp and not first:
            embedding += table
    if s.beside is not None:
        still, trained, _ = s.beside if first else (0.0, 0.0, 0.0)
        return Parameters(dense + still, expert, embedding, output, trained, True)
    return Parameters(dense, expert, embedding, output, adapters(s) * sum(row[rank] for row in s.stages))


def model(s: Shape) -> float:
    """Parameters of the whole model, each counted once (layout set aside)."""
    whole = replace(s, tensor=1, pipeline=1, expert=1, expert_tensor=1, stages=((sum(map(sum, s.stages)),),))
    return stage(whole, 0).total
