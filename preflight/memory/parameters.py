"""Parameters per rank: N of each pipeline stage, dense and expert weights separately because they are sharded
separately.

Source: the layers as Megatron-LM d98e8a6 builds them (megatron/core/transformer, megatron/core/models/gpt).
"""

from __future__ import annotations

from preflight.memory import activations
from preflight.memory.inputs_from_plan import Shape
from preflight.source.record import NamedTuple, replace


class Parameters(NamedTuple):
    """Elements on one rank: dense weights of layers, expert weights, input embedding, output layer, adapters of dense
    weights and of experts."""

    dense: float
    expert: float
    embedding: float
    output: float
    adapter: float = 0.0
    frozen: bool = False  # only adapters, or the parts next to the decoder, are trained
    expert_adapter: float = 0.0

    @property
    def total(self) -> float:
        return self.dense + self.expert + self.embedding + self.output + self.adapter + self.expert_adapter

    @property
    def replicated(self) -> float:
        """Everything that is not expert weight: sharded over the dense data-parallel ranks."""
        return self.dense + self.embedding + self.output + self.adapter

    @property
    def trained(self) -> Parameters:
        """Parameters with gradients and optimizer states: only the adapters if there are any."""
        if self.adapter or self.expert_adapter or self.frozen:
            return Parameters(0.0, self.expert_adapter, 0.0, 0.0, self.adapter)
        return self


def attention(s: Shape) -> float:
    """h(a + 2g)d/t + a·d·h/t, biases, query-key norms; latent: down projections are whole, up projections are divided
    by t."""
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
    """Two norms of h, four with norms after the parts (twice that for layer norm), and connections of residual
    streams."""
    return (4 if s.post_norm else 2) * s.hidden * s.norm + activations.parameters(s)


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
    """Elements of the largest matrix of a layer that is not an expert: queries, keys and values together,
    or the MLP's input."""
    h, t = s.hidden, s.tensor
    attention_in = h * (s.heads + 2 * s.groups) * s.head_dim / t if s.latent is None else s.heads * s.latent.v * h / t
    wide = s.ffn if s.experts is None or not all(s.experts.layers) else s.experts.shared
    return max(attention_in, s.projections * h * wide / t)


def widest_expert(s: Shape) -> float:
    """Elements of the largest matrix of one expert: its input projections."""
    return s.projections * s.hidden * s.experts.ffn / s.expert_tensor if s.experts else 0.0


def adapters(s: Shape) -> tuple[float, float]:
    """Low-rank adapters of a layer, of dense weights and of experts: r·(in + out) a linear;
    the half on the side that tensor parallelism leaves whole is replicated. "shared fc1", "shared fc2": one adapter for
    all experts of a rank (Megatron-Bridge 51885cf peft/lora.py, share_expert_adapters)."""
    h, t = s.hidden, s.tensor
    groups = max(s.groups / t, 1)
    sizes = {
        "query": h + s.heads * s.head_dim / t,
        "key": h + groups * s.head_dim,
        "value": h + groups * s.head_dim,
        "qkv": _latent_adapters(s) if s.latent else h + (s.heads / t + 2 * groups) * s.head_dim,
        "projection": s.heads * (s.latent.v if s.latent else s.head_dim) / t + h,
    }
    dense = sum(s.adapter_rank * sizes.get(name, 0.0) for name in s.adapters)
    wide, count, tensor = s.ffn, 0.0, t
    if s.experts:
        wide, count, tensor = s.experts.ffn, s.experts.count / s.expert, s.expert_tensor
        if s.experts.shared:
            dense += sum(s.adapter_rank * (h + s.experts.shared * s.projections / t) for n in s.adapters if "fc" in n)
    of_mlp = 0.0
    for name in s.adapters:
        inputs = s.projections if name.endswith("fc1") else 1
        if name.endswith(("gate", "up", "fc1", "fc2")):
            many = count if count and not name.startswith("shared") else 1
            of_mlp += many * s.adapter_rank * (h + inputs * wide / tensor)
    return (dense, of_mlp) if s.experts else (dense + of_mlp, 0.0)


def _latent_adapters(s: Shape) -> float:
    """The projections before latent attention: down projections whole, up projections divided."""
    assert s.latent is not None
    m, h, heads = s.latent, s.hidden, s.heads / s.tensor
    query = heads * (m.nope + m.rope)
    down = h + 2 * m.q_rank if m.q_rank else h
    return down + query + h + 2 * m.kv_rank + m.rope + heads * (m.nope + m.v)


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
    held = sum(row[rank] for row in s.stages)
    low_rank, of_experts = adapters(s) if s.adapters else (0.0, 0.0)
    return Parameters(dense, expert, embedding, output, low_rank * held, False, of_experts * held)


def model(s: Shape) -> float:
    """Parameters of the whole model, each counted once (layout set aside)."""
    whole = replace(s, tensor=1, pipeline=1, expert=1, expert_tensor=1, stages=((sum(map(sum, s.stages)),),))
    return stage(whole, 0).total
