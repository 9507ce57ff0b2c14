"""Would the tests notice? ``make mutations`` breaks the package on purpose, a line at a time.

Each mutation below is one wrong edit. It is made in a copy of the tree, where the tests named for
it run; it counts as caught if one of them fails. The same tests first pass there unchanged. The
status is 1 if a mutation survives, or no longer applies because the package has changed.
"""

import argparse
import json
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 600  # seconds

# "# module | tests" heads the mutations of a module, with the tests that guard it, as pytest takes
# them. A mutation is "name: what is there ⇒ what is put in its place", or "name | tests: …" where
# other tests guard it; it goes on in indented lines. What is there must occur once in the module.
TABLE = r"""
# attention.py | test_attention.py
mask turned round: scores.masked_fill(~mask, -math.inf) ⇒ scores.masked_fill(mask, -math.inf)
no 1/√d_k: (q / math.sqrt(q.size(-1))) @ k ⇒ q @ k
d_k for √d_k: math.sqrt(q.size(-1)) ⇒ q.size(-1)
softmax over the queries: scores.softmax(dim=-1).masked_fill ⇒ scores.softmax(dim=-2).masked_fill
query without keys not zero: .softmax(dim=-1).masked_fill(~mask, 0.0) ⇒ .softmax(dim=-1)

# fused.py | test_attention.py
fused kernel without the mask: _added(mask | no_key, bias) ⇒ None
query without keys not zero, fused: _added(mask | no_key, bias)).masked_fill(no_key, 0.0) ⇒
    _added(mask | no_key, bias))
queries without keys overflow: q = q.masked_fill(no_key, 0.0) ⇒ pass
bias where nothing may be seen: torch.where(mask, bias, -math.inf) ⇒ bias
bias turned round: torch.where(mask, bias, -math.inf) ⇒ torch.where(mask, -bias, -math.inf)
bias lost without a mask: return _kernel(q, k, v, bias) ⇒ return _kernel(q, k, v, None)
bias of another dtype: mask = mask.to(q.dtype) ⇒ pass
half precision in its own: q.itemsize < 4 ⇒ q.itemsize < 2
double precision in float32: q.itemsize < 4 ⇒ q.itemsize != 4
dropout not scaled | test_layers.py: x * keep.div_(1 - dropped / 2**16) ⇒ x * keep
all dropped near one | test_layers.py: min(round(p * 2**16), 2**16 - 1) ⇒ round(p * 2**16)
no bits on a GPU | test_layers.py: x.device.type != "cpu" or torch ⇒ torch

# masks.py | test_masks.py
padding mask turned round: else tokens != pad_id ⇒ else tokens == pad_id
padding where there is none | test_model.py: if pad_id is None else ⇒ if False else
causal mask sees one word ahead: .tril() ⇒ .tril(1)
causal mask hides the present: .tril() ⇒ .tril(-1)

# multihead.py | test_multihead.py
heads cut across positions: x.unflatten(-1, (-1, self.d_k)).transpose(1, 2) ⇒
    x.reshape(len(x), -1, x.size(1), self.d_k)
heads interleaved when merged: x.transpose(1, 2).flatten(-2) ⇒ x.permute(0, 2, 3, 1).flatten(-2)
values made of keys: self.split(self.W_v(value)) ⇒ self.split(self.W_v(key))
queries not turned: self.positions.turn(self.split(self.W_q(query)), start) ⇒
    self.split(self.W_q(query))
keys not turned: return self.positions.turn(k, start), v ⇒ return k, v
values turned, too: return self.positions.turn(k, start), v ⇒
    return self.positions.turn(k, start), self.positions.turn(v, start)
no bias on the scores: bias = self.positions.bias(q.size(2), k.size(2)) ⇒ bias = None
bias lost to the fused kernel: return fused_heads(q, k, v, mask, bias) ⇒
    return fused_heads(q, k, v, mask)
bias lost where weights are recorded: @ k.mT + bias.to(q.dtype) ⇒ @ k.mT
recorded scores overflow: (q / math.sqrt(self.d_k)) @ k.mT ⇒ q @ k.mT / math.sqrt(self.d_k)
new queries at position 0 | test_cache.py: self.queries(query, start) ⇒ self.queries(query)
new keys at position 0 | test_cache.py: self.project(key, value, start) ⇒ self.project(key, value)
memory projected at every step | test_cache.py:
    if isinstance(cache, MemoryCache) and cache.kept is not None: ⇒ if False:
groups interleaved: x.repeat_interleave(group, dim=1) ⇒ x.repeat(1, group, 1, 1)
every head has its keys: n_heads if n_key_heads is None else n_key_heads ⇒ n_heads
recording never ends: module.record = record ⇒ pass

# cache.py | test_cache.py
cache writes keys where it began: self.keys.narrow(2, start, ⇒ self.keys.narrow(2, 0,
cache writes values where it began: self.values.narrow(2, start, ⇒ self.values.narrow(2, 0,
cache does not grow: self.length = end ⇒ self.length = k.size(2)
room is read: return self.keys.narrow(2, 0, end), ⇒ return self.keys,
room for one more: if end > self.max_len: ⇒ if end > self.max_len + 1:
memory not kept: self.kept = k, v ⇒ return k, v
cache selects only keys: (self._select(room, rows) for room in (self.keys, self.values)) ⇒
    (self._select(self.keys, rows), self.values[: len(rows)])
cache selects one position too few: written = room.narrow(2, 0, self.length) ⇒
    written = room.narrow(2, 0, max(self.length - 1, 0))
a search that begins has the room of one row: if len(rows) > len(room): ⇒ if False:
room made anew at each selection: if len(rows) > len(room): ⇒ if True:
memory's cache not selected:
    self.kept = keys.index_select(0, rows), values.index_select(0, rows) ⇒ pass
a step without the memory's cache | test_cached_decoding.py:
    attention(queries, k, v, mask, cache=self) ⇒ attention(queries, k, v, mask)
beams not queries of one memory | test_cached_decoding.py:
    if len(q) > len(k) else q ⇒ if False else q
layer selects itself alone: self.cross_attention.select(sources) ⇒ pass
memory's mask not selected: None if self.mask is None else self.mask.index_select(0, rows) ⇒
    self.mask
state's memory not selected: self.memory = self.memory.select(sources) ⇒ pass
caches not selected: cache.select(rows, sources) ⇒ pass
caches of a decoder alone not selected: cache.select(rows) ⇒ pass
sources are taken for rows: sources, n_before = rows // self.per_source, ⇒ sources, n_before = rows,
beams of unequal numbers share a memory: if (counts == counts[0]).all(): ⇒ if True:
no memory is shared: sources, self.per_source = distinct, len(rows) // len(distinct) ⇒ pass
a memory copied at each step: if torch.equal(sources, torch.arange(n_before, ⇒
    if False and torch.equal(sources, torch.arange(n_before,
any part takes a cache: return bool(getattr(part, "takes_cache", False)) ⇒ return True

# positional.py | test_positional.py
sin for cos: [angles.sin(), angles.cos()] ⇒ [angles.cos(), angles.sin()]
start ignored: return table[start : start + length] ⇒ return table[:length]
rotary turns the other way: [-x[..., 1::2], x[..., 0::2]] ⇒ [x[..., 1::2], -x[..., 0::2]]
rotary pairs wrong: .repeat_interleave(2, dim=-1) ⇒ .repeat(1, 2)
rotary start ignored: _rows(table, start, x.size(2)) ⇒ _rows(table, 0, x.size(2))
angles in float32: torch.arange(0, width, 2, dtype=torch.float64) ⇒
    torch.arange(0, width, 2, dtype=torch.float32)
rotary in no attention: return cls(max_len, d_k, theta=theta) ⇒ return Positions()
any base is 10,000 | test_family.py: / theta ** (pairs / width) ⇒ / 10_000.0 ** (pairs / width)
no base passed on | test_family.py: cls(max_len, d_k, theta=theta) ⇒ cls(max_len, d_k)
places given one by one not read | test_decoder_only.py:
    x + F.embedding(start, self.table) ⇒ x + self.table[: x.size(1)]

# layers.py | test_layers.py
LayerNorm over positions: F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps) ⇒
    (x - x.mean(-2, True)) * (x.var(-2, False, keepdim=True) + self.eps) ** -0.5 * self.weight
LayerNorm's variance unbiased:
    F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps) ⇒
    (x - x.mean(-1, True)) * (x.var(-1, keepdim=True) + self.eps) ** -0.5 * self.weight + self.bias
no ReLU: activation: Activation = torch.relu_, ⇒ activation: Activation = nn.Identity(),
post for pre: if self.pre: ⇒ if not self.pre:
no residual, post: self.norm(x + self.dropout(sublayer(x))) ⇒ self.norm(self.dropout(sublayer(x)))
residual dropped out too:
    self.norm(x + self.dropout(sublayer(x))) ⇒ self.norm(self.dropout(x + sublayer(x)))
dropout in evaluation: if self.training and self.p > 0 else x ⇒ if self.p > 0 else x
small dropout is none: self.p > 0 else ⇒ self.p > 0.01 else
root mean square without eps | test_family.py:
    self.weight.to(x.dtype), self.eps) ⇒ self.weight.to(x.dtype), 0.0)
gain of another precision | test_family.py: self.weight.to(x.dtype) ⇒ self.weight
gate and value exchanged | test_family.py:
    F.silu(self.W_1(x)) * self.W_3(x) ⇒ self.W_1(x) * F.silu(self.W_3(x))
no gate | test_family.py: F.silu(self.W_1(x)) * self.W_3(x) ⇒ F.silu(self.W_1(x))
what goes through has no bias | test_family_hugging_face.py:
    self.W_3 = nn.Linear(d_model, d_ff, bias=bias) ⇒
    self.W_3 = nn.Linear(d_model, d_ff, bias=False)
ReLU is GELU | test_family.py: "relu": torch.relu_, ⇒ "relu": F.gelu,
GELU exact for all | test_family.py test_family_hugging_face.py:
    partial(F.gelu, approximate="tanh"),  # GPT-2's ⇒ F.gelu,
GELU by tanh for all | test_family.py test_family_hugging_face.py:
    "gelu": F.gelu,  # x Φ(x), exactly ⇒ "gelu": partial(F.gelu, approximate="tanh"),
norms all with one eps | test_model.py: NORMS[kind](d_model, eps=eps) ⇒ NORMS[kind](d_model)
norms all of one kind | test_model.py: NORMS[kind](d_model, eps=eps) ⇒ LayerNorm(d_model, eps=eps)

# config.py | test_config.py
another longest sequence: max_len: int = 512 ⇒ max_len: int = 256
tiny with two heads: _TINY = {"d_model": 64, "n_heads": 4, ⇒ _TINY = {"d_model": 64, "n_heads": 2,
small with eight heads:
    _SMALL = {"d_model": 128, "n_heads": 4, ⇒ _SMALL = {"d_model": 128, "n_heads": 8,
sharing kept with another vocabulary: changes = {"share_embeddings": None, **changes} ⇒ pass
groups kept with other heads | test_family.py: if "n_heads" in changes ⇒ if False
a head as wide as one of the keys | test_family.py: return self.d_model // self.n_heads ⇒
    return self.d_model // (self.n_key_heads or self.n_heads)
rotations all of one base | test_model.py: n_heads=self.n_heads, theta=self.rope_theta ⇒
    n_heads=self.n_heads, theta=10_000.0
a rotary table twice as long | test_model.py: max_len=self.max_len, d_k=self.d_k ⇒
    max_len=2 * self.max_len, d_k=self.d_k

# checks.py | test_checks.py test_config.py
padding held against the larger vocabulary:
    min(src_vocab_size, tgt_vocab_size) ⇒ max(src_vocab_size, tgt_vocab_size)
all may be dropped: if not 0 <= share < 1: ⇒ if not 0 <= share <= 1:
infinity is a number: if not 0 < number < math.inf: ⇒ if not 0 < number:
a true size: if not isinstance(size, int) or isinstance(size, bool): ⇒ if not isinstance(size, int):
the id after the last: largest >= vocab_size ⇒ largest > vocab_size
masks of the wrong length: m not in (1, s) ⇒ m > s

# embedding.py | test_model.py test_family.py
no √d_model: self.tokens(tokens) * self.scale ⇒ self.tokens(tokens)
all tokens of segment 0: if types is None else types) ⇒ if True else types)
dropout before the norm: self.dropout(self.norm(x)) ⇒ self.norm(self.dropout(x))
never a norm: nn.Identity() if norm is None else norm ⇒ nn.Identity()

# model.py | test_model.py test_cached_decoding.py
source padding seen by the encoder: self.encoder(self.src_embedding(src), mask) ⇒
    self.encoder(self.src_embedding(src), None)
source padding seen by the decoder: memory.vectors, tgt_mask, memory.mask) ⇒
    memory.vectors, tgt_mask, None)
source padding seen by the steps: self.decoder(x, vectors, None, mask, state.caches) ⇒
    self.decoder(x, vectors, None, None, state.caches)
no causal mask: tgt_mask & causal_mask(tgt.size(1), device=tgt.device) ⇒ tgt_mask
target padding seen:
    tgt_mask = padding_mask(tgt, self.config.pad_id) ⇒ tgt_mask = (tgt == tgt)[:, None, None]
another pad_id seen by the encoder: mask = padding_mask(src, self.config.pad_id) ⇒
    mask = padding_mask(src)
another pad_id seen by the decoder: tgt_mask = padding_mask(tgt, self.config.pad_id) ⇒
    tgt_mask = padding_mask(tgt)
tgt table not tied: self.tgt_embedding.tokens.weight = self.src_embedding.tokens.weight ⇒ pass
output table not tied: self.output.weight = self.src_embedding.tokens.weight ⇒ pass
cached steps all at position 0: start=state.length ⇒ start=0
the memory's attention in the layer's own cache: cache.cross_attention.looking(look_across) ⇒
    partial(look_across, cache=cache.self_attention)
no cache for self-attention: partial(look_back, cache=cache.self_attention) ⇒ look_back
no cache for the memory: cache.cross_attention.looking(look_across) ⇒ look_across
all layers share the first cache: zip(layers, caches, strict=True) ⇒
    zip(layers, [caches[0]] * len(layers), strict=True)
any part is thought to take a cache: return all(map(takes_cache, self.decoder.layers)) ⇒
    return True
any attention is thought to take a cache | test_cache.py:
    takes_cache(self.self_attention) and takes_cache(self.cross_attention) ⇒ True
the longest sequence refused: if tokens.size(1) > self.config.max_len: ⇒
    if tokens.size(1) >= self.config.max_len:
the decoder's feed-forward network never drops out:
    self.residual_3 = add_and_norm() ⇒ self.residual_3 = add_and_norm(dropout=0.0)
cross-attention without groups: self.cross_attention = attention() ⇒
    self.cross_attention = attention(n_key_heads=None)
an encoder's attention always has biases: bias=c.bias, positions=positions ⇒ positions=positions
a block writes without its cache | test_decoder_only.py:
    partial(self.self_attention, cache=cache) ⇒ self.self_attention
no last norm: if config.norm == "post": ⇒ if True:
the last norm of another eps: (config.d_model, eps=config.norm_eps) ⇒ (config.d_model)
causal mask left on the CPU | test_soft_cuda.py: causal_mask(tgt.size(1), device=tgt.device) ⇒
    causal_mask(tgt.size(1))

# decoding/limits.py | test_decoding.py
length penalty off by one: ((5 + n_tokens) / 6) ⇒ ((6 + n_tokens) / 6)
length penalty from four: ((5 + n_tokens) / 6) ⇒ ((4 + n_tokens) / 6)
length penalty by sevenths | test_real_sentences.py -k score: ((5 + n_tokens) / 6) ⇒
    ((5 + n_tokens) / 7)
any penalty: if abs(length_penalty) > largest: ⇒ if False:
padding may be read first: (bos_id == model.pad_id).any() ⇒ False
padding may be read first, an int: if token == model.pad_id: ⇒ if False:
a first token for all in a tensor: if bos_id.shape != (n_sentences,): ⇒ if bos_id.dim() > 1:
first tokens of the wrong number let through | test_cached_decoding.py:
    if bos_id.shape != (n_sentences,): ⇒ if bos_id.dim() != 1:
a true id: if not isinstance(token, int) or isinstance(token, bool): ⇒
    if not isinstance(token, int):
filled up with zeros without padding: self.eos_id if pad_id is None else pad_id ⇒ pad_id or 0
one first token for all | test_cached_decoding.py: device=device) + self.bos_id ⇒
    device=device) + torch.as_tensor(self.bos_id).flatten()[:1]

# decoding/beams.py | test_decoding.py
beams' caches not reordered:
    rows = beam.gather(1, kept) + K ⇒ rows = torch.arange(K, device=flat.device) + K
beams' words not reordered: self.tokens.gather(1, beam[ ⇒ self.tokens.gather(1, 0 * beam[
ended beams go on: log_p.masked_fill(ends, -math.inf).topk(K) ⇒ log_p.topk(K)
padding beamed as a word: log_p.select(1, self.pad_id).fill_(-math.inf) ⇒ pass
too few continuations: topk(min(2 * K, K * V)) ⇒ topk(min(K, K * V))
two ends at once cost a place: topk(min(2 * K, K * V)) ⇒ topk(min(K + 1, K * V))
half-precision probabilities | test_cached_decoding.py: logits.float().log_softmax ⇒
    logits.log_softmax
ties go to the later sentence: better = score > best_score ⇒ better = score >= best_score
beams that do not exist end: ends = ends & (log_p > -math.inf)  # ⇒ pass  #
several ends count as one: ends.sum(dim=1) ⇒ ends.any(dim=1).long()
ends behind the first K count: log_p[:, :K], ends[:, :K]) ⇒ log_p[:, :K], ends[:, -K:])
NaN beams are kept silent: if not self.log_p.eq(self.log_p).all(): ⇒ if False:
what never ends is lost: endless = self.n_ended[self.going] == 0 ⇒
    endless = self.n_ended[self.going] < 0
what has ended and goes on counts twice: endless = self.n_ended[self.going] == 0 ⇒
    endless = self.n_ended[self.going] >= 0
beams on the CPU | test_soft_cuda.py: torch.arange(n, device=device)  # (n,) ⇒
    torch.arange(n)  # (n,)

# decoding/search.py | test_decoding.py
words after <eos>: on = tokens != limits.eos_id ⇒ on = tokens == tokens
top-p leaves out the last: before >= p ⇒ before + ordered >= p
top-p takes one too many: before >= p ⇒ before > p
top-k keeps k + 1: logits.topk(k).values ⇒ logits.topk(k + 1).values
top-p before top-k: keep_top_p(keep_top_k(logits, top_k), top_p) ⇒
    keep_top_k(keep_top_p(logits, top_p), top_k)
temperature multiplied: keepdim=True)) / temperature ⇒ keepdim=True)) * temperature
temperature after what is kept: keep_top_p(keep_top_k(logits, top_k), top_p).softmax(dim=-1) ⇒
    (keep_top_p(keep_top_k(logits * temperature, top_k), top_p) / temperature).softmax(dim=-1)
a cold sample overflows: (logits - logits.amax(dim=-1, keepdim=True)) / ⇒ logits /
a temperature below float32: min(max(temperature, COLDEST), HOTTEST) ⇒ min(temperature, HOTTEST)
a temperature above float32: min(max(temperature, COLDEST), HOTTEST) ⇒ max(temperature, COLDEST)
padding written as a word: logits.select(1, pad_id).fill_(-math.inf) ⇒ pass
sampling without its cache: generate(model, src, draw, limits, use_cache=use_cache) ⇒
    generate(model, src, draw, limits)
greedy decoding without its cache: logits.argmax(dim=-1), limits, use_cache=use_cache) ⇒
    logits.argmax(dim=-1), limits)
beams without their cache: limits, beam_size=beam_size, use_cache=use_cache) ⇒
    limits, beam_size=beam_size)
NaN is written in silence: if not are_numbers: ⇒ if False:
NaN of the last step alone: are_numbers &= ~logits ⇒ are_numbers = ~logits
NaN is drawn from: if not (shares[:, 0] >= 0).all(): ⇒ if False:

# decoding/steps.py | test_cached_decoding.py
no step is cached: if use_cache and model.takes_cache else ⇒ if False else
any model is cached: if use_cache and model.takes_cache else ⇒ if use_cache else
memory not selected: self.memory, self.tgt = self.memory.select(rows), self.tgt[rows] ⇒
    self.tgt = self.tgt[rows]

# recurrent/cells.py | test_recurrent.py
LSTM's gates swapped: i, f, g, o = ⇒ i, f, o, g =
forget bias at another gate: _, f, _, _ = self ⇒ f, _, _, _ = self
padding moves the state: new if is_word is None else torch.where(is_word, new, state) ⇒ new
backward half not turned round: leftward.flip(1) ⇒ leftward
backward mask not turned round: mask.flip(1) ⇒ mask

# recurrent/scores.py | test_seq2seq.py
additive score without tanh: self.v(pairs.tanh()) ⇒ self.v(pairs)
general score without W: return self.W(key) ⇒ return key
general score with a bias: nn.Linear(d_key, d_query, bias=False) ⇒ nn.Linear(d_key, d_query)

# recurrent/seq2seq.py | test_seq2seq.py
context of the next word: return torch.cat([s, context], dim=-1) ⇒ return torch.cat(
    [s, (self.attend(state)[:, None] @ state.memory.vectors)[:, 0]], dim=-1)
padding attended to: None if mask is None else mask[:, None] ⇒ None
source not selected: self.memory, self.keys = self.memory.select(rows), self.keys[rows] ⇒ pass
keys not selected: self.memory.select(rows), self.keys[rows] ⇒
    self.memory.select(rows), self.keys[: len(rows)]
another pad_id is a word: src != self.pad_id ⇒ src != 0

# data/text.py | test_text.py
unknown words are padding: self._ids.get(word, UNK_ID) ⇒ self._ids.get(word, PAD_ID)
words after <eos> decoded: ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids ⇒ ids

# data/batches.py | test_batches.py
every rank the same batch: batch[self._rank :: W] ⇒ batch[::W]
inputs with the last label: return self.src, self.tgt[:, :-1] ⇒ return self.src, self.tgt[:, 1:]
labels not shifted: return self.tgt[:, 1:] ⇒ return self.tgt[:, :-1]
text's labels not shifted: return self.tokens[:, 1:] ⇒ return self.tokens[:, :-1]
text's inputs shifted: return (self.tokens[:, :-1],) ⇒ return (self.tokens[:, 1:],)
every epoch alike: f"{self._seed} {e}" ⇒ f"{self._seed}"
fit asks for the wrong batch: divmod(i, len(self)) ⇒ divmod(i + 1, len(self))
batches cut from unsorted pairs: order.sort(key=lambda i: self._lengths[i], reverse=True) ⇒ pass
batches of one process only: size = self._world_size * ( ⇒ size = 1 * (

# files.py | test_files.py
not put on the disk: flush(temporary) ⇒ pass
written in place: path.with_name(f".{path.name}.{secrets.token_hex(4)}") ⇒ path
a name that can be foreseen: secrets.token_hex(4) ⇒ os.getpid()
a planted link followed: open(temporary, "xb") ⇒ open(temporary, "wb")
leavings of a failed write: temporary.unlink() ⇒ pass
the temporary file named: str(path)) from error ⇒ str(temporary)) from error
what a link points to removed: if path.is_symlink() or not path.is_dir(): ⇒
    if not path.is_dir():
files of a folder not flushed | test_checkpoint.py -k disk_holds: flush(file) ⇒ pass
the old folder lost | test_saved.py -k what_stops: and old.exists() and not final.exists(): ⇒
    and False:
half a folder left behind | test_saved.py -k full_disk: remove(temporary) ⇒ pass
no lock: lock.acquire(timeout=0) ⇒ pass

# tensors.py | test_saved.py
saved buffers forgotten | test_checkpoint.py -k buffers: named |= {name: buffer ⇒ _ = {name: buffer
tables of positions saved, too: for name, buffer in model.named_buffers() if name in saved} ⇒
    for name, buffer in model.named_buffers()}
another shape accepted: in (shapes, types): ⇒ in (types,):
another type accepted: in (shapes, types): ⇒ in (shapes,):
weights of NaN accepted: if tensor.is_floating_point() and not tensor.isfinite().all(): ⇒
    if False:
infinite weights accepted | test_checkpoint.py -k not_finite: not tensor.isfinite().all() ⇒
    tensor.isnan().any()
a file that cannot be read not called so | test_checkpoint.py -k cannot_be_read:
    with open(file, "rb"): ⇒ if True:
a full disk not named | test_saved.py -k full_disk: raise OSError(str(error)) from error ⇒ raise
what differs not counted | test_checkpoint.py -k another_models: {len(names) - 3} more ⇒
    {len(names)} more
half precision of the other kind: "F16": torch.float16 ⇒ "F16": torch.bfloat16

# memory.py | test_memory.py
gradients forgotten: _COPIES = 4 ⇒ _COPIES = 3
one layer too many: times = getattr(config, stack) - 1 ⇒ times = getattr(config, stack)
processes forgotten: if free is not None and needed * processes > free: ⇒
    if free is not None and needed > free:
free rather than available: int(values["MemAvailable"] ⇒ int(values["MemFree"]
groups above have no say: [root / own, *(root / own).parents] ⇒ [root / own]
the largest limit: return min((limit for limit in limits ⇒ return max((limit for limit in limits

# saved.py | test_saved.py
any folder replaced: <= {_CONFIG, _WEIGHTS} ⇒ >= set()
a class of the same name saved: or type(model) is not _class_of(kind): ⇒ or False:
precision lost: return model.to(types.pop()) if len(types) == 1 else model ⇒ return model
unknown fields dropped: if unknown := sorted(values.keys() - names): ⇒ if unknown := []:
true for 1 | test_checkpoint.py -k true: if type(about.get(key)) is not kind: ⇒
    if not isinstance(about.get(key), kind):
brackets without end | test_checkpoint.py -k brackets:
    except (ValueError, RecursionError) as error: ⇒
    except ValueError as error:
layers unseen | test_checkpoint.py -k sizes: if sum(stacks.values()) > len(stored): ⇒ if False:
memory not looked at | test_checkpoint.py -k sizes: check_fits(size.in_use, ⇒ dict(n=size.in_use,

# metrics.py | test_metrics.py
BLEU's arguments swapped:
    (list(hypotheses), [list(references)]) ⇒ (list(references), [list(hypotheses)])
BLEU always with capitals: BLEU(lowercase=lowercase, ⇒ BLEU(lowercase=False,
chrF always with capitals: CHRF(lowercase=lowercase) ⇒ CHRF()
chrF with pairs of words: CHRF(lowercase=lowercase) ⇒ CHRF(lowercase=lowercase, word_order=2)
alignment of the word before: _is_word(tgt[:, 1:]) & ⇒ _is_word(tgt[:, :-1]) &
links the wrong way round: {(best_b[t], t) for ⇒ {(t, best_b[t]) for
sure links not possible: len(a & (p | s)) ⇒ len(a & p)
infinite weights: not weights.isfinite().all() ⇒ weights.isnan().any()

# data/parallel.py | test_parallel.py
unequal files not refused: if len(src_lines) != len(tgt_lines): ⇒ if False:
no bos: [BOS_ID, *tgt_tokenizer ⇒ [*tgt_tokenizer
bad lines not numbered: left_out=tuple(skipped) ⇒ left_out=()
long pairs not numbered: unknown, tuple(left_out)) ⇒ unknown)
a page for a gzip file: elif data and str(path).endswith(".gz"): ⇒ elif False:
an old Mac's lines for one: if b"\n" not in data and b"\r" in data.strip(): ⇒ if False:

# data/multi30k.py | test_multi30k.py -k 'not chapter'
any file is good enough: if got == wanted: ⇒ if True:
a wrong file is kept: if fault is None: ⇒ if True:
the variable is not looked at: folder or os.environ.get(VARIABLE) ⇒ folder
the variable comes before the folder: folder or os.environ.get(VARIABLE) ⇒
    os.environ.get(VARIABLE) or folder
fetched though it was not asked for: if not download: ⇒ if False:
fetched again though it is there: _fetch(list(faults), ⇒ _fetch(list(FILES),
English for German: place / f"{theirs}.de.gz", place / f"{theirs}.en.gz" ⇒
    place / f"{theirs}.en.gz", place / f"{theirs}.de.gz"
dev for test: "dev": "val", "test": "test_2016_flickr" ⇒ "dev": "test_2016_flickr", "test": "val"
a silent server is waited for: timeout=timeout) as answer ⇒ timeout=60) as answer
a file without end is read: answer.read(min(left, 1 << 16)) ⇒ answer.read(1 << 16)
no network is a traceback: except (OSError, HTTPException) ⇒ except HTTPException
the bar counts files that are there: for name in names) ⇒ for name in FILES)
the bar is never silent: {} if progress else ⇒ {} if True else
the bar is silent where the variable has no say: {"disable": True}  # ⇒ {"disable": False}  #

# transformer_book/real_sentences/bootstrap.py | test_real_sentences.py -k 'strap or seed'
an interval of 90 % | test_real_sentences.py -k interval: [0.025, 0.975] ⇒ [0.05, 0.95]
resampled tests of half the size | test_real_sentences.py -k interval:
    (n_samples, len(one)) ⇒ (n_samples, len(one) // 2)
one seed for all: manual_seed(seed) ⇒ manual_seed(0)
not paired: - bleu_of(other[chosen].sum(dim=1)) ⇒ - bleu_of(other[chosen.flip(0)].sum(dim=1))

# transformer_book/real_sentences/candidates.py | test_real_sentences.py -k 'word or score'
unpenalised: key=lambda one: one.score(alpha) ⇒ key=lambda one: one.log_p
candidates of the sorted sentences | test_real_sentences.py -k one_search:
    candidates_of[rows[source]] ⇒ candidates_of[source]
a sentence without a word fails: one: one.score(alpha), default=None) ⇒ one: one.score(alpha))

# decoding/translate.py | test_translate.py
translations in order of length: zip(rows, tokens.cpu() ⇒ zip(sorted(rows), tokens.cpu()
cut off after 5 tokens more: src.size(1) + 50 ⇒ src.size(1) + 5
length penalty not handed on: length_penalty=length_penalty, ⇒
shortest first: key=lambda i: len(sources[i]), reverse=True ⇒ key=lambda i: len(sources[i])
beam as wide as you like: if beam_size > tgt_vocab_size: ⇒ if False:
greedy whatever is asked: if beam_size == 1: ⇒ if True:
sentences without a word translated: if len(ids) > 1] ⇒ if ids]

# commands/__init__.py | test_command_line.py -k 'in_a_line or traceback or silence or told_once'
errors of the program in a line: if args.debug or not _is_of_users(error): ⇒ if args.debug:
no traceback for --debug: if args.debug or not _is_of_users(error): ⇒
    if not _is_of_users(error):
several lines: " ".join(str(error).split("\n")) ⇒ str(error)
a file not named: where = "" if error.filename is None else ⇒ where = "" if True else
success after an error: _CLOSED_PIPE = 2, 130, 141 ⇒ _CLOSED_PIPE = 0, 130, 141
a closed output met twice: os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()) ⇒ pass
told by each process: None if _rank() else f" ⇒ f"
locale's encoding | test_translate.py -k locale: reconfigure(encoding="utf-8", ⇒ reconfigure(
a loss told by each process | test_command_line.py -k another_process:
    rank=_rank() if same else 0) ⇒ rank=0)
errors of other processes lost | test_command_line.py -k another_process:
    rank=_rank() if same else 0) ⇒ rank=_rank())
an interrupt told by each process | test_command_line.py -k another_process:
    or "interrupted", rank=_rank()) ⇒ or "interrupted", rank=0)
an interrupt has no traceback for --debug | test_command_line.py -k before_the_first:
    if args.debug: ⇒ if False:
told once a machine | test_command_line.py -k another_process: os.environ.get("RANK", 0) ⇒
    os.environ.get("LOCAL_RANK", 0)
a name that is not UTF-8 fails | test_command_line.py -k told_in_a_line: errors="backslashreplace" ⇒
    errors="strict"
closed streams | test_command_line.py -k nothing_is_open: if getattr(sys, name) is None: ⇒ if False:

# commands/options.py | test_command_line.py -k 'refused or help'
any device: if not is_here: ⇒ if False:
any GPU: (wanted.index or 0) < torch.cuda.device_count() ⇒ True
a device that holds nothing: torch.zeros((), device=wanted).item() ⇒ pass
sizes without end: 1 <= int(text) <= LARGEST ⇒ 1 <= int(text)
seeds without end: 0 <= int(text) < 2**63 ⇒ 0 <= int(text)
rate not a number: if not 0 < float(text) < math.inf: ⇒ if float(text) <= 0:
penalty without end: if not math.isfinite(float(text)): ⇒ if False:
passes without end: if not 0 < float(text) <= LARGEST: ⇒ if not 0 < float(text):
another beam than translate | test_translate.py -k one_way:
    Option("1 is greedy", free=True)] = 4 ⇒ Option("1 is greedy", free=True)] = 5
a default of zero not shown | test_command_line.py -k types_and_defaults:
    if not any(f.default is no for no in (None, False, MISSING)): ⇒ if f.default:
both of two that exclude each other: place = exclusive[about.either] ⇒ pass
beam not named | test_translate.py -k named: if self.beam_size == 1: ⇒ if False:
a size of zero | test_command_line.py -k do_not_fit: if not 1 <= int(text) ⇒ if not 0 <= int(text)
all may be dropped | test_command_line.py -k do_not_fit: if not 0 <= float(text) < 1: ⇒
    if not 0 <= float(text) <= 1:
a greedy length not told | test_translate.py -k named: return f"greedy{at_most}" ⇒ return "greedy"
a beam's length not told | test_translate.py -k named: {self.length_penalty:g}{at_most}" ⇒
    {self.length_penalty:g}"

# commands/run_folder.py | test_translate.py -k 'run or chosen or settings'
first checkpoint for the last: return saved[-1:] ⇒ return saved[:1]
last checkpoint for the best | test_command_line.py -k best:
    return [best_checkpoint(self.path)] ⇒ return saved[-1:]
mean of the first checkpoints: return saved[-average:] ⇒ return saved[:average]
fewer than asked for in the mean: if average > len(saved): ⇒ if False:
tokenizers of another model: if sizes != (len(tokenizers[0]), len(tokenizers[1])): ⇒ if False:
settings of other kinds: "of a training run", **kinds) ⇒ "of a training run")
other settings accepted | test_command_line.py -k other_settings:
    if before.get(name) != value ⇒ if False
an option younger than the run refused | test_command_line.py -k older:
    before = {**defaults, **self.settings().options} ⇒ before = self.settings().options
other sentences accepted | test_command_line.py -k other_sentences:
    if digests.get(name) != before.get(name) ⇒ if False
the name on the way told | test_command_line.py -k called_while:
    str(error), str(self.path)) from error ⇒ str(error), error.filename) from error
folder of other things taken | test_command_line.py -k other_things:
    or any(self.path.iterdir())) ⇒ )
settings before what they tell of | test_command_line.py -k empty_folder: (*names, _SETTINGS): ⇒
    (_SETTINGS, *names):
the first step for the last | test_command_line.py -k corpus_and_measures:
    return step_of(saved[-1]) if ⇒ return step_of(saved[0]) if

# commands/prepare.py | test_command_line.py -k 'held_out or behind or schedule or epochs or paper'
grammar dev split taken from train: seed=seed + 1, split="test" ⇒ seed=seed + 1
folder made before all is checked: begins = _check_at_once(options, folder, rank) ⇒
    begins = _check_at_once(options, folder, rank); options.out.mkdir(parents=True, exist_ok=True)
each process reads all batches | test_command_line.py -k torchrun: rank=rank, ⇒ rank=0,
paper's peak without the warm-up: (d_model * course.warmup) ** -0.5 ⇒ d_model**-0.5
paper's decay where linear was asked: if course.schedule == "linear": ⇒ if False:
epochs rounded down: steps = math.ceil( ⇒ steps = int(
tokenizer of capitals | test_command_line.py -k dev_and_test:
    (line.lower() if data.lowercase else line for ⇒ (line for
steps an epoch without accumulation | test_command_line.py -k says_what:
    math.ceil(len(batches) / accumulate) ⇒ len(batches)
size not looked at | test_command_line.py -k before_its_sentences:
    _check_size(options, _config(options, _FEWEST, _FEWEST)) ⇒ pass
another vocabulary not seen | test_command_line.py -k vocabulary:
    folder.check_model(Transformer(config)) ⇒ pass
another process not seen | test_command_line.py -k two_commands: folder.check_alone() ⇒ pass
a corpus of seed 0 | test_command_line.py -k seed_settles: grammar_pairs(data.pairs, seed=seed) ⇒
    grammar_pairs(data.pairs, seed=0)
a dev set of seed 1 | test_command_line.py -k seed_settles: grammar_pairs(500, seed=seed + 1 ⇒
    grammar_pairs(500, seed=1
weights of any seed | test_command_line.py -k seed_settles: seed_everything(options.course.seed) ⇒
    pass
another test refused | test_command_line.py -k other_sentences: pairs.keys() - {"test"} ⇒
    pairs.keys()
byte pairs of the source alone | test_command_line.py -k files_with_byte_pairs:
    for pair in train for line in pair) ⇒ for pair in train for line in pair[:1])
long lines always skipped | test_command_line.py -k long_lines:
    max_len=max_len, on_bad=data.on_bad ⇒ max_len=max_len, on_bad="skip"
pairs that were left out are measured | test_command_line.py -k long_lines:
    return Split(kept, examples) ⇒ return Split(pairs, examples)
a beam wider than the vocabulary | test_command_line.py -k cannot_be_trained:
    check_beam_size(options.decoding.beam_size, len(tokenizers[1])) ⇒ pass

# commands/train_options.py | test_command_line.py -k settled
last step of a decay free: if self.course.schedule == "linear" else () ⇒ if False else ()
sizes not handed on | test_command_line.py -k byte_pairs:
    for f in fields(self) if f.name != "preset"} ⇒ for f in ()}
a new field of the model no option | test_command_line.py -k new_field:
    if f.name not in _DECIDED: ⇒ if f.name in {*_DEFAULTS, "norm", "position"}:

# commands/train.py | test_command_line.py -k 'kept or says_what or dev_and_test'
nothing kept but the latest: keep=machine.keep, ⇒
saved and measured at the end only: save_every=machine.save_every, ⇒
measured by another decoding: decoding=options.decoding) ⇒ decoding=type(options.decoding)())
the others wait for a word | test_command_line.py -k told_once: raise SystemExit(2) ⇒ pass
always with progress: progress=not machine.quiet ⇒ progress=True
seed not handed on | test_command_line.py -k training_are_handed: seed=course.seed, ⇒
precision not handed on | test_command_line.py -k training_are_handed:
    precision=machine.precision, ⇒
compiling not handed on | test_command_line.py -k training_are_handed: compiled=machine.compile, ⇒
smoothing not handed on | test_command_line.py -k training_are_handed: smoothing=course.smoothing, ⇒
clip norm not handed on | test_command_line.py -k training_are_handed: clip_norm=course.clip_norm, ⇒
accumulation not handed on | test_command_line.py -k training_are_handed:
    accumulate=options.batches.per_step, ⇒
measured at the end alone | test_command_line.py -k training_are_handed:
    evaluate_every=machine.save_every, ⇒

# commands/translate.py | test_translate.py -k 'line or marks or options'
case of the run forgotten: text.lower() if run.lowercase else text ⇒ text
byte-order mark read: text.removeprefix("\ufeff") ⇒ text
control characters read: re.sub(r"[\x00-\x1f\x7f]", " ", text ⇒ str(text
length penalty left out: length_penalty=decoding.length_penalty, ⇒
lines before an error lost: except ValueError: ⇒ except KeyError:
lines counted from 0: enumerate(lines, start=1) ⇒ enumerate(lines)
a terminal waits for a batch: 1 if sys.stdin.isatty() else decoding.batch_size ⇒ decoding.batch_size
written at the end: sys.stdout.flush() ⇒ pass
two lines for one: translation.replace("\n", " ") ⇒ translation
<eos> has no place | test_translate.py -k longest_line: len(run.tokenizers[0].encode(text)) + 1, ⇒
    len(run.tokenizers[0].encode(text)),
a batch of one more | test_translate.py -k terminal: if len(batch) == size: ⇒ if len(batch) > size:

# commands/evaluate.py | test_translate.py -k 'scores or scored or skipped or asked'
kept pairs not those encoded: if number not in left_out ⇒ if number <= len(examples)
case forgotten in the scores: references=references, lowercase=run.lowercase) ⇒
    references=references, lowercase=False)
sources in capitals: if run.lowercase else sources, ⇒ if False else sources,
right in other letters only: _words(t) == _words(w) ⇒ t == w
length penalty forgotten: length_penalty=decoding.length_penalty, ⇒
bad lines not reported: if report.skipped and not quiet: ⇒ if False:
one file for both | test_command_line.py -k refused_in_a_line:
    and source.samefile(target): ⇒ and False:
max_len forgotten | test_translate.py -k 'decoded_as_asked or in_line': max_len=decoding.max_len, ⇒
long pairs an error whatever is asked | test_translate.py -k 'decoded_as_asked or in_line':
    max_len=max_len, on_long=on_bad) ⇒ max_len=max_len, on_long="error")

# runtime.py | test_runtime.py
bfloat16 on old GPUs: >= (8, 0) ⇒ >= (7, 0)
timer does not wait: torch.cuda.synchronize(self.device) ⇒ pass
mode not restored: module.training = _modes.pop(module).training ⇒ _modes.pop(module)
all left in training mode: module.training = _modes.pop(module).training ⇒
    module.training = bool(_modes.pop(module))
the first to leave gives the mode back: if _modes[module].n_evaluating == 0: ⇒
    if _modes[module].n_evaluating >= 0:
the last to come notes the mode: _modes.setdefault(module, _Mode(module.training)).n_evaluating ⇒
    _modes[module] = _Mode(module.training, _modes.get(module, _Mode(True)).n_evaluating);
    _modes[module].n_evaluating
evaluated with gradients: with torch.no_grad(): ⇒ with torch.enable_grad():
evaluated with dropout: model.eval() ⇒ pass

# training/objective.py | test_training.py -k 'not compiled'
padding has a loss: ignore_index=_no_label(pad_id) ⇒ ignore_index=-100
no smoothing: label_smoothing=smoothing ⇒ label_smoothing=0.0
padding of id 0 alone counts nothing: (labels != _no_label(pad_id)) ⇒ (labels != 0)
warm-up's exponent: warmup**-1.5 ⇒ warmup**-0.5
linear decay ends too early: (n_steps + 1 - step) / (n_steps + 1 - warmup) ⇒
    (n_steps - step) / (n_steps - warmup)
linear decay without a warm-up: peak * min(step / warmup, ⇒ peak * min(1.0,
warm-up off by one: step * warmup**-1.5 ⇒ (step - 1) * warmup**-1.5

# training/step.py | test_training.py -k 'not compiled'
mean of the batches' means: / n_tokens.clamp(min=1) ⇒
    / count_labels(batch.labels, pad_id=self.pad_id) / self.accumulate
not times the processes | test_processes.py -k two_machines:
    scale(loss * world_size()) ⇒ scale(loss)
seeded at the first step only: self._reseed(number) ⇒ number == 1 and self._reseed(number)
every step the same dropout: f"{self.seed} {number} {rank()}" ⇒ f"{self.seed} {rank()}"
every process the same dropout: f"{self.seed} {number} {rank()}" ⇒ f"{self.seed} {number}"
gradients not cut: nn.utils.clip_grad_norm_(self.parameters, self.clip_norm) ⇒ pass
gradients cut before they are unscaled: self.scaler.unscale_(self.optimizer) ⇒ pass
gradients never cleared: self.optimizer.zero_grad() ⇒ pass
gradients shared after every batch: return self.forward.no_sync() ⇒
    return contextlib.nullcontext()
gradients never scaled: enabled=self.dtype == torch.float16 ⇒ enabled=False
scale never updated: self.scaler.update() ⇒ pass
trains without dropout: self.module.to(self.device).train() ⇒ self.module.to(self.device).eval()
labels of padding 0 alone: self.pad_id = self.model.pad_id ⇒ self.pad_id = 0
Ctrl-C cuts an update in two: with uninterrupted(): ⇒ if True:

gradients shared too early | test_processes.py: if i + 1 < len(batches) else ⇒ if i > 0 else
another smoothing than asked for: smoothing=self.smoothing, pad_id ⇒ smoothing=0.1, pad_id
a loss holds on to its graph: total += loss.detach() ⇒ total = total + loss
sixteen seeds for all steps: .getrandbits(32) ⇒ .getrandbits(4)
a step on padding alone is 0 / 0: n_tokens.clamp(min=1) ⇒ n_tokens
refused after the first batch: check_share(smoothing=self.smoothing) ⇒ pass
a sharded model copied as well | test_processes.py: world_size() > 1 and not self.sharded ⇒
    world_size() > 1
the same batch twice | test_training.py -k 'accumulated or bfloat16':
    self.batches(first + i) for i ⇒ self.batches(first) for i
only a GPU in half precision | test_training.py -k 'accumulated or bfloat16':
    enabled=self.dtype is not None ⇒ enabled=self.device.type == "cuda"
each process its own loss | test_command_line.py -k torchrun_learn:
    total, learning_rate = self._sum(total), ⇒ total, learning_rate = total,

# training/loop.py | test_training.py -k 'not compiled'
a folder's folders are not made: mkdir(parents=True, exist_ok=True) ⇒ mkdir(exist_ok=True)
one weight may be NaN: if not all(p.isfinite().all() for ⇒ if not any(p.isfinite().all() for
an infinite loss passes: if not math.isfinite(loss): ⇒ if math.isnan(loss):
losses are read at the end alone: or last or number % 10 == 0: ⇒ or last:
a sharded model saved in a run: self.run is not None and self.step.sharded ⇒ False
measured with smoothing: smoothing=0.0, pad_id=pad_id ⇒ smoothing=0.1, pad_id=pad_id
measured labels of padding 0 alone: count_labels(batch.labels, pad_id=pad_id) ⇒
    count_labels(batch.labels)
last step done twice: range(done + 1, self.n_steps + 1) ⇒ range(max(done, 1), self.n_steps + 1)
scale not restored: self.step.scaler.load_state_dict(scaler) ⇒ pass
no scale to restore: if scaler: ⇒ if True:
two trainings in a folder | test_checkpoint.py -k two_processes: with only_writer(run): ⇒ if True:
Ctrl-C loses what is done: self._save_what_is_done() ⇒ pass
Ctrl-C saves twice: done not in [0, *map(step_of, checkpoints(self.run))] ⇒ done
an evaluation that fails loses a step: self._save(run, number) ⇒
    (evaluate is None or number in self.history.evaluations) and self._save(run, number)
the last loss in the bar: _mean(self.history.losses[-100:]) ⇒ self.history.losses[-1]
mean loss since the start in a line: _mean(self.history.losses[since:]) ⇒
    _mean(self.history.losses)
epochs without accumulation: number * step.accumulate / len ⇒ number / len
lines without progress: if bar.disable: ⇒ if False:
the bar stands still | test_training.py -k bar_counts: bar.update() ⇒ pass
the bar begins anew when a run goes on | test_training.py -k bar_counts: initial=done, ⇒ initial=0,
no steps between saves means the last | test_training.py -k refuses:
    save_every=n_steps if save_every is None else save_every ⇒ save_every=save_every or n_steps
the bar is of the last ten steps | test_training.py -k bar_counts: self.history.losses[-100:] ⇒
    self.history.losses[-10:]
a bad loss named from the last look on | test_training.py -k within_ten:
    enumerate(values, done + 1) ⇒ enumerate(values, 1)
every process shows its bar | test_training.py -k of_many_processes:
    hidden, device = not progress or rank() > 0, ⇒ hidden, device = not progress,
every process saves | test_training.py -k of_many_processes: if rank() == 0: ⇒ if True:
measured as often as saved | test_training.py -k evaluations_come:
    evaluate_every=n_steps if evaluate_every is None ⇒
    evaluate_every=save_every or n_steps if evaluate_every is None
goes on from the oldest | test_training.py -k pieces: read_checkpoint(saved[-1], ⇒
    read_checkpoint(saved[0],
an evaluation is noted before it is told | test_training.py -k stderr:
    self._report(number, value, bar) ⇒
    self.history.evaluations[number] = value; self._report(number, value, bar)

# export/marian.py | test_export.py -k 'not ctranslate2 and not onnx'
sines and cosines stay in turns: torch.arange(0, c.d_model, 2), torch.arange(1, c.d_model, 2) ⇒
    torch.arange(c.d_model // 2), torch.arange(c.d_model // 2, c.d_model)
<bos> without √d_model: table[BOS_ID] * model.tgt_embedding.scale ⇒ table[BOS_ID]
sources begin with <bos>: "model.encoder.embed_positions.weight": positions ⇒
    "model.encoder.embed_positions.weight": first
what only starts may be written: [_NEVER] ⇒ [0.0]
padding may be written: "suppress_tokens": [PAD_ID] ⇒ "suppress_tokens": []
the start takes a word's place: c.max_len + 1 ⇒ c.max_len
a setting of another kind passes: value != field.default ⇒ False

# export/tokenizer.py | test_export.py -k 'not ctranslate2 and not onnx'
a written <eos> ends a text: "split_special_tokens": True ⇒ "split_special_tokens": False
capitals stay: [normalizers.Lowercase(), made.normalizer] ⇒ [made.normalizer]
a source without <eos>: single=f"$A {_EOS}" ⇒ single="$A"
words of specials are specials: normalizers.Replace(a_special, _UNK), ⇒

# training/checkpoint.py | test_checkpoint.py -k 'not killed'
moments not restored | test_training.py -k pieces:
    restore_moments(model, optimizer, self.moments) ⇒ pass
written in place: run / f".writing-{os.getpid()}" ⇒ run / f"step-{step:08d}"
oldest kept: checkpoints(run)[:-keep] ⇒ checkpoints(run)[keep:]
best not kept: if old != best: ⇒ if True:
highest evaluation the best: return min(measured ⇒ return max(measured
an evaluation of NaN the best: if not math.isnan(values[path])] ⇒
    if str(step_of(path)) in evaluations]
leftovers of removal not cleared: (".writing-", ".removing-") ⇒ (".writing-",)
another step than the folder's: and step_of(path) != about["step"]: ⇒ and False:
links followed when leftovers go: remove(run / name) ⇒ __import__("shutil").rmtree(run / name)
average in single precision: tensor.double() for ⇒ tensor.clone() for
sum for an average: total / len(paths) for ⇒ total for
best by the first's evaluations: _read_about(saved[-1])["state"] ⇒ _read_about(saved[0])["state"]
removed under its own name: os.rename(old, run / f".removing-{old.name}") ⇒
    remove(old); (run / f".removing-{old.name}").mkdir()
steps of eight digits alone: \d{8,} ⇒ \d{8}
the latest is never the best: default=saved[-1]) ⇒ default=saved[0])
the last of two best: min(measured, key=lambda path: values[path], ⇒
    min(reversed(measured), key=lambda path: values[path],

# training/moments.py | test_checkpoint.py -k 'moments_that or adam_may'
negative mean squares: (tensor < 0).any() ⇒ False
no mean square of zero: (tensor < 0).any() ⇒ (tensor <= 0).any()
half a step: and tensor % 1 == 0): ⇒ ):
steps without end: 0 <= tensor.item() <= _MOST_STEPS ⇒ 0 <= tensor.item()
frozen ones expected | test_training.py -k frozen: if f"{names[p]}:step" in moments ⇒ if True
moments of all asked for | test_training.py -k frozen: if name in moved: ⇒ if True:

# training/history.py | test_checkpoint.py -k 'no_training_leaves or that_a_training'
too few losses: len(losses) != saved.step ⇒ len(losses) > saved.step
losses that are no numbers: or not all(_is_number(x) and math.isfinite(x) for x in losses): ⇒ :
evaluations to come: 1 <= int(step) <= saved.step and ⇒ 1 <= int(step) and
a scale of zero: and scaler["scale"] > 0 ⇒
a growth below zero: and x >= 0 for x ⇒ for x
an infinite scale: _is_number(x) and math.isfinite(x) and x >= 0 ⇒ _is_number(x) and x >= 0
an evaluation before the first: 1 <= int(step) <= saved.step ⇒ 0 <= int(step) <= saved.step
more numbers than a scaler's: scaler.keys() == _SCALER ⇒ scaler.keys() >= _SCALER
evaluations by words | test_training.py -k pieces:
    {int(step): value for step, value in evaluations.items()} ⇒ evaluations

# data/grammar/lexicon.py | test_grammar.py
adjectives all masculine: return self.french[noun.feminine][plural] ⇒ return self.french[0][plural]
they see is they go: voyons voient ⇒ voyons vont

# data/grammar/sentences.py | test_grammar.py
predicates all singular:
    adjective.french[subject.feminine][subject.plural] ⇒ adjective.french[subject.feminine][0]
held-out pairs in train: == (split == "test") ⇒ >= (split == "test")
des before an adjective: unit("some", "de") ⇒ unit("some", "des")
adverb after the rest: *not_.french[1:], *adverb.french, *rest] ⇒
    *not_.french[1:], *rest, *adverb.french]
they sleeps: third if person == 2 else base ⇒ third if person in (2, 4) else base

# data/grammar/function_words.py | test_grammar.py
they have is they are: "avons", "ont") ⇒ "avons", "sont")

# data/grammar/alignment.py | test_grammar.py
contractions lose a link: units = units | done.pop()[1] ⇒ units = done.pop()[1]
elided before an aspirated h: and not word.startswith(ASPIRATED) ⇒

# transformer_book/claims.py | test_book.py
one anchor for all Chinese claims: [0] in "LMN" and ⇒ [0] in "LMN" and character.isascii() and
raised characters in anchors: and not raised_or_lowered ⇒
symbols in anchors: if not re.fullmatch("[α-ω]", word) ⇒
anchors of words as they were typed: unicodedata.normalize("NFC", text).lower() ⇒ text.lower()

a claim of no kind: if self.kind not in KINDS: ⇒ if self.kind and self.kind not in KINDS:
an identity of 3 seeds: if self.kind != "experiment": ⇒ if False:
zero seeds: type(number) is not int or number < 1 ⇒ type(number) is not int or number < 0
the budget is not told: for name, n in ⇒ for name, n in () and
two NaN are close: rtol=10 * tolerance, atol=tolerance) ⇒
    rtol=10 * tolerance, atol=tolerance, equal_nan=True)
every output is a claim: if MIME in output.get("data", {}) ⇒ if output.get("data", {})

# transformer_book/evening.py | test_evening.py -k 'files or file_holds'
marks of what is new stay: NEW.sub("", text) ⇒ text
lists that grow keep their last piece: if added else each.text ⇒ if False else each.text
the first of each name stays: found[key] = each ⇒ found.setdefault(key, each)
what a needed name needs is left out: for name in known[n].needs} - needed ⇒
    for name in known[n].names} - needed
lines that the page leaves blank are lost: else each.blank) ⇒ else 0)
decorators are lost: min([node.lineno, *(d.lineno ⇒ max([node.lineno, *(d.lineno
locals are taken for the file's: if symbol.is_global(): ⇒ if True:

# transformer_book/exam/allowed.py | test_exam.py -k yours
the book's own is let in: if name in ("transformer", "transformer_book"): ⇒
    if name == "transformers":
one's own Transformer is refused: if ast.unparse(value) != "self": ⇒ if True:

# transformer_book/exam/marks.py | test_exam.py -k 'look or from_outside'
changed arguments pass: if not is_unchanged(now, before): ⇒ if False:
new models are not moved: parameter.add_(0.3 * ⇒ parameter.add_(0.0 *
far away is near: return a.shape != b.shape or not ⇒ return a.shape != b.shape and not

# transformer_book/exam/marks.py | test_exam.py -k made_of_a_wrong_part
what is wrong is called unreadable: if self.waits[name]: ⇒ if False:

# transformer_book/exam/names.py | test_exam.py -k near
other parts count as near: if not a or a[0] != b[0]: ⇒ if not a:
what is imported counts as near: getattr(found, "__module__", None) == module.__name__ ⇒ found

# transformer_book/exam/layouts.py | test_exam.py -k style
no matrix is turned: (False,) if each.known else (False, True) ⇒ (False,)
no rows head by head: for by_head in (False, True): ⇒ for by_head in (False,):

# transformer_book/exam/copying.py | test_exam.py -k style
gains taken for biases: key=lambda p: -float(p.mean()) ⇒ key=lambda p: float(p.mean())

# transformer_book/exam/heads.py | test_exam.py -k look
one size is enough: for d_model, n_heads in ((4, 1), (12, 3)): ⇒ for d_model, n_heads in ():

# transformer_book/exam/layers.py | test_exam.py -k look
a layer may see ahead: if (moved[:2] > MOVED).any(): ⇒ if False:

# transformer_book/exam/whole.py | test_exam.py -k look
sentences of a batch may meet: if far(together, alone): ⇒ if False:
only the first target word is changed: for place in range(1, T): ⇒ for place in range(T, T):

# transformer_book/exam/numbers.py | test_exam.py -k last_norm
no last norm in pre-LN: if lacks_a_norm: ⇒ if False:

# transformer_book/exam/writing.py | test_exam.py -k look
one step is enough: for _ in range(2): ⇒ for _ in range(0):

# transformer_book/exam/parts.py | test_exam.py -k waits
trains what is wrong: if part.trains and is_wrong: ⇒ if False:

# transformer_book/exam/translation.py | test_exam.py -k learns_nothing
nothing learned is enough: if share < ENOUGH: ⇒ if False:

# transformer_book/exam/sitting.py | test_exam.py -k loop
a loop ends the exam: left = left[done + 1 :] ⇒ left = []

# transformer_book/exam/desk.py | test_exam.py -k ends_the_process
what the file prints gets in between: os.dup2(quiet, 1) ⇒ pass

# transformer_book/your_turn.py | test_your_turn.py
largest input first: sorted(inputs, key=_size) ⇒ sorted(inputs, key=_size, reverse=True)
only the first input is tried: for given in self.inputs: ⇒ for given in self.inputs[:1]:
the reader's error stops the notebook: except Exception as error: ⇒ except KeyError as error:
inputs not copied: arguments = list(map(copy_of, given)) ⇒ arguments = list(given)
arguments may change: if changed and not self.in_place: ⇒ if changed and self.in_place:
any mistake is named: if all(check._difference(attempt, given) is None for ⇒
    if any(check._difference(attempt, given) is None for
large tensors are allowed: if n_numbers > most: ⇒ if n_numbers > 2 * most:
a written function counts as empty: return returns and steps[0].argval in (None, ...) ⇒
    return returns
a wrapped empty function is not empty: body = getattr(inspect.unwrap(function), ⇒
    body = getattr(function,
dots are a gap: return found is not None and not found[1].returned_something ⇒
    return found is not None
what is wrong is used: elif self._first_difference(yours): ⇒ elif False:
what is not written is used: or self._is_unwritten(yours): ⇒ or False:
the solution counts as the reader's: if yours is solution or ⇒ if
what cannot be trained is used: why = next(filter(None, found), "") ⇒ why = ""
the right answer is told: print(f"✗ {self.label}: not {answer}") ⇒
    print(f"✗ {self.label}: not {answer} but {self.right}")
counts within one per cent: 0.01 * isinstance(right, float) ⇒ 0.01
how near an answer has to be is fixed: within if within is not None else ⇒ 0.01 if within else

# transformer_book/answers.py | test_your_turn.py
a list stands in for a tensor: and not isinstance(mine, Tensor): ⇒ and False:
another number type stands in: and mine.dtype != theirs.dtype: ⇒ and False:
no gradient comes through: and theirs.requires_grad and not mine.requires_grad: ⇒ and False:
gradients are not asked for: copied.requires_grad_() ⇒ pass
gradients are always asked for: _with_gradients if trained else copy_of ⇒ _with_gradients
fewer parts stand in: return "" if len(got) == len(expected) else ⇒ return "" if True else
lists are not copied: return type(value)(map(copy_of, value)) ⇒ return type(value)(value)
tensors in lists may change: all(map(is_unchanged, now, before)) ⇒ True
words in lists may change: return now is before or now == before ⇒ return True
words in a list are not those in a tuple: got, expected = list(got), list(expected) ⇒ pass
shapes not compared: if numbers.shape != expected.shape: ⇒ if numbers.dim() != expected.dim():
a mask may be of numbers: if kind != "fractions" and _kind(numbers) != kind: ⇒ if False:
numbers may be far off: rtol=10 * tolerance, atol=tolerance) ⇒
    rtol=1000 * tolerance, atol=tolerance)
small numbers may be far off: rtol=10 * tolerance, atol=tolerance) ⇒
    rtol=10 * tolerance, atol=1000 * tolerance)
a plain number may be far off: <= tolerance * (1 + 10 * abs(expected)) ⇒
    <= tolerance * (1 + 1000 * abs(expected))
an answer within a fixed distance: <= within * abs(wanted) ⇒ <= within
an answer without its sign: abs(answer - wanted) <= ⇒ abs(abs(answer) - abs(wanted)) <=
a list is no tuple: isinstance(got, tuple | list) or len(got) ⇒ isinstance(got, tuple) or len(got)
too few things: or len(got) != len(expected): ⇒ or len(got) > len(expected):
True is a number: return isinstance(value, int | float) and not isinstance(value, bool) ⇒
    return isinstance(value, int | float)
words in their order: words = sorted(word for word in words if word != "and") ⇒ pass
a word's case counts: text.casefold()) ⇒ text)
the plural counts: re.sub(r"(?<=\w{2})s$", "", word) ⇒ word

# tools/turns.py | test_turns.py
signs are not read: if signs != {SIGNS[how]}: ⇒ if False:
whose function is used is not read: if not _fits(line, how)] ⇒ if False]
lost claims are not seen: if repr(claims_of(was.outputs)) != repr(claims_of(now.outputs)): ⇒
    if False:
a solution goes without its helpers: if name in names - {old}] ⇒ if False]
a wrong answer is right: answer = f"{check}.right" if how == "right" else ⇒
    answer = f"{check}.right" if how else
a failure is no failure: failed |= bool(wrong) ⇒ failed |= False

# tools/ledger.py | test_make_chapters.py -k ledger
a bar breaks the table: <>|$] ⇒ <>$]
the kind without its budget: {made.description} ⇒ {made.kind}

# tools/chapters.py | test_make_chapters.py -k ledger
what is printed after a claim comes before it: before = joined[-1] if joined else {} ⇒
    before = next((o for o in joined if o.output_type == "stream"), {})

# tests/measured.py | test_measured.py
any factor: return a * b > 0 and max(abs(a), abs(b)) <= within * min(abs(a), abs(b)) ⇒
    return a * b > 0
any sign: return a * b > 0 and ⇒ return
nothing is anything: abs(a - b) <= (units + 1e-6) * unit ⇒ abs(a - b) <= (units + 1e-6)
what a cell states is ignored: (WITHIN, UNITS) if within is None else ⇒
    (WITHIN, UNITS) if True else

# tests/tautologies.py | test_tautologies.py
a constant beside and: any(map(_is_constant, values)) or all(map(always, values)) ⇒
    all(map(always, values))
not False: case _ if _is_constant(node): ⇒ case ast.Constant(value=True):
x == x: if isinstance(op, ast.Eq | ast.Is | ast.LtE | ast.GtE) and _identical(a, b): ⇒ if False:
two calls are one: return ast.dump(a) == ast.dump(b) and not calls ⇒
    return ast.dump(a) == ast.dump(b)
a name is never looked up: if meant and all(map(always, meant)): ⇒ if False:

# transformer_book/drawings/matrix.py | test_drawings.py
ties are drawn: if abs(last % 1 - 0.5) < TIE: ⇒ if abs(last % 1 - 0.5) < 0:
rows for columns: self.row(i).column(j) ⇒ self.row(j).column(i)
a hyphen for a minus: .replace("-", "−") ⇒ .replace("−", "-")
large numbers are pale: low + (high - low) * min(1.0, full) ⇒ high - (high - low) * min(1.0, full)

# transformer_book/drawings/svg.py | test_drawings.py
minus zero: + 0.0 for value in values] ⇒ for value in values]
after an index the line stays low: height = down ⇒ height = 0.0
markup in words: else element("tspan", escape(token), **style) ⇒
    else element("tspan", token, **style)
plain words are not escaped: parts.append(escape(token) if plain else ⇒
    parts.append(token if plain else

# transformer_book/drawings/canvas.py | test_drawings.py
text that a phone shows too small: if size < SMALLEST: ⇒ if size < 0:
masked cells show their number: if not seen: ⇒ if False:
dark mode is forgotten: {{{''.join(rules)}}} ⇒ {{}}
any words will do for those who hear it: if len(alt) < 40: ⇒ if len(alt) < 1:
the followed row is not bold: bold=told, quiet=matrix.faint and not told) ⇒
    quiet=matrix.faint and not told)
the ring is round a column: self.ring(place.row(follow)) ⇒
    self.ring(place.column(follow))

# transformer_book/drawings/model_map.py | test_drawings.py
everything is lit: on, words = part in lit or ⇒ on, words = True or
the decoder's part is lit as well: f"{frame}: {part}" in lit ⇒ f"encoder: {part}" in lit
any name will do: if unknown := set(given) - set(known): ⇒ if unknown := set():
residual connections past nothing: below = heights[i - 1] + 24 ⇒ below = heights[i] + 24

# transformer_book/translator/learning.py | test_translator.py
learning rate a step late: rate_of(step + 1) ⇒ rate_of(max(step, 1))
gradient not clipped: clip_norm=1.0, ⇒ clip_norm=None,
padding counts in the loss: , ignore_index=PAD_ID) ⇒ )
one of two right will do: [a and b for a, b in zip(one_right ⇒ [a or b for a, b in zip(one_right

# transformer_book/translator/data.py | test_translator.py
tuned on the test: if pair.source not in asked ⇒ if pair.source

# transformer_book/translator/results.py | test_translator.py
lowest for highest: return min(values), max(values) ⇒ return max(values), max(values)
any run agrees: <= highest + margin ⇒ <= 1
longer training not said: "" if row.n_steps == N_STEPS else ⇒ "" if True else

# family/stack.py | test_family.py test_decoder_only.py
embeddings' norm of another eps | test_family_hugging_face.py:
    (c.d_model, eps=c.norm_eps) if c.norm ⇒ (c.d_model) if c.norm
no √d_model: if c.position == "sinusoidal" else 1.0 ⇒ if False else 1.0
embeddings not normalised: if c.norm == "post" else None ⇒ if False else None
all blocks share the first cache: zip(blocks, caches, strict=True) ⇒
    zip(blocks, [caches[0]] * len(blocks), strict=True)

# family/decoder_only.py | test_decoder_only.py
no causal mask: mask = words & causal_mask(tokens.size(1), device=tokens.device) ⇒ mask = words
padding has a place: words[:, 0, 0].long().cumsum(dim=-1) ⇒ (tokens == tokens).long().cumsum(dim=-1)
padding seen by the steps: self.run(x, state.words, state.caches) ⇒ self.run(x, None, state.caches)
steps stand after the padding, too: where = state.words.sum(dim=-1)[:, 0] ⇒
    where = state.words.new_full((len(tokens), 1), state.length, dtype=torch.long)
tables not tied | test_family.py: self.output.weight = self.embedding.tokens.weight ⇒ pass
any part is thought to take a cache: return all(map(takes_cache, self.blocks)) ⇒
    return True
padding of other texts: self.words = self.words[rows] ⇒ pass
the longest text refused: if length > self.max_len: ⇒ if length >= self.max_len:
another pad_id seen: words = padding_mask(tokens, self.pad_id) ⇒ words = padding_mask(tokens)
another pad_id seen in prompts: Prompted(padding_mask(src, self.pad_id), caches) ⇒
    Prompted(padding_mask(src), caches)

# family/encoder_only.py | test_family.py
head without its norm: self.output(self.norm(self.activation(self.W(x)))) ⇒
    self.output(self.activation(self.W(x)))
head with GELU for all: ACTIVATIONS[c.feed_forward] ⇒ ACTIVATIONS["gelu"]
head without GELU: self.norm(self.activation(self.W(x))) ⇒ self.norm(self.W(x))
padding seen: types=types), padding_mask(tokens, self.pad_id)) ⇒ types=types), None)
pooler of the last token: torch.tanh(self.W(x[:, 0])) ⇒ torch.tanh(self.W(x[:, -1]))

# family/masking.py | test_family.py
all that is asked for is hidden: asked & (fate < 0.8) ⇒ asked
none stays: tokens.where(~asked | (fate >= 0.9), words[which]) ⇒ tokens.where(~asked, words[which])
nothing replaced: tokens.where(~asked | (fate >= 0.9), words[which]) ⇒ tokens
specials asked for: < share) & is_word[tokens] ⇒ < share)
every word is a label: tokens.masked_fill(~asked, pad_id) ⇒ tokens

# family/hugging_face.py | test_family_hugging_face.py
GPT-2's layers as they are stored: x = x.mT if ".c_" in name and x.dim() == 2 else x ⇒ pass
queries, keys and values in another order: ["qkv".index( ⇒ ["kqv".index(
halves not interleaved: return halves.transpose(1, 2).flatten(0, 2) ⇒ return x
only queries turned: re.search("W_[qk]", ours) ⇒ re.search("W_q", ours)
a copy that differs: if x is not None and not torch.equal ⇒ if False and not torch.equal
left over and not said: if missing or left: ⇒ if missing:
old norms not known: "gamma": "weight", "beta": "bias" ⇒ "gamma": "gamma", "beta": "beta"
any rotation loaded: if kind != "default": ⇒ if False:
dropout of another model: dropout=c.get("resid_pdrop", 0.1) ⇒ dropout=0.1
BERT's dropout of another model: dropout=c.get("hidden_dropout_prob", 0.1) ⇒ dropout=0.1
a table under its other name lost: theirs.setdefault(original, x) ⇒ theirs.get(original, x)
the end of a text hidden: or padding in text ⇒
a text that ends in two ways hidden: *(ends if isinstance(ends, list) else [ends]) ⇒ ends
no padding is padding: or padding < 0 ⇒

# transformer_book/explorer/page.py | test_explorer.py
words as markup: escape(word)}</th>' ⇒ word}</th>'
sentences that end the script: .replace("<", "\\u003c") ⇒
percents cut off: (w * 100 + SCALE // 2) // SCALE ⇒ (w * 100) // SCALE
gold marks turned round: {(j, i): "&nbsp;◆" ⇒ {(i, j): "&nbsp;◆"
a head too many: 0 <= head < sizes[kind][1] ⇒ 0 <= head <= sizes[kind][1]
starts with the first layer: return kind, n_layers - 1, 0 ⇒ return kind, 0, 0

# transformer_book/explorer/explored.py | test_explorer.py
dropout in the maps: with evaluating(model), record_attention(model) ⇒
    with record_attention(model)
labels in place of inputs: torch.tensor([tgt[:-1]], device=device) ⇒
    torch.tensor([tgt[1:]], device=device)
links past the end: 0 <= j < T ⇒ 0 <= j <= T
weights of any size: not (low >= 0 and high <= 1.01) ⇒ False
weights up to 1.5: high <= 1.01) ⇒ high <= 1.5)
weights that rounding put above one refused: high <= 1.01) ⇒ high <= 1.0)

# website/parts/beams_kept.js | test_living_numbers.py
four for five: (5 + nTokens) / 6 ⇒ (4 + nTokens) / 6
one ended beam too few: ended.length < K ⇒ ended.length < K - 1
ended beyond the beams: longer.slice(0, K).filter(hasEnded) ⇒ longer.filter(hasEnded)
ended ones take room | test_page_translator.py:
    .filter((beam) => !hasEnded(beam)).slice(0, K) ⇒ .slice(0, K).filter((beam) => !hasEnded(beam))

# website/parts/living/beam_words.js | test_living_numbers.py
probability for score: found.score > all[0].score - SAME ⇒ found.p > all[0].p - SAME

# website/parts/translator/grammar.js | test_page_translator.py -k as_often
all sequences equally often: those.map(() => weight)) ⇒ those.map(() => 1))

# website/extensions/grammar_rules.py | test_page_translator.py -k as_often
yes for no: self.pick((p, 1 - p)) == 0 ⇒ self.pick((p, 1 - p)) == 1
the last of several ways alone: found[_parts(sentence.english)] += p ⇒
    found[_parts(sentence.english)] = p
phrases of either number as often: sum(odds.values())) ⇒ 0.5)
a for an | test_page_translator.py -k go_on:
    with_articles([*determiner, *described])[: len(determiner)] ⇒ determiner
a way left out | test_page_translator.py -k go_on: reversed(range(len(chosen))) ⇒
    reversed(range(1, len(chosen)))
what never happens | test_page_translator.py -k own_code:
    self.pick((p, 1 - p)) == 0 if 0 < p < 1 else p == 1 ⇒ self.pick((p, 1 - p)) == 0

# website/extensions/bundles.py | test_site_styles.py -k names_on_all
templates are pages: if path.parent.name != "_static") ⇒ )
parts give nothing: pages.add_script(path.read_text(encoding="utf-8"), path.suffix == ".js") ⇒ pass
fonts keep their address | test_site_pages.py -k by_what_is_in: (?:css|js|woff2) ⇒ (?:css|js)
all scripts run at once | test_site_styles.py -k of_their_own:
    if name in IN_TURN else script ⇒ if False else script
the theme marks, too | test_site_styles.py -k one_mark: "const e=null;" ⇒
    'const e=document.querySelector("#pst-page-toc-nav");'
buttons come twice | test_folded_cells.py -k one_button:
    "    if (codeCell.id.startsWith('codecell')) return\n" ⇒ ""

# website/extensions/lean_pages.py | test_lean_pages.py
lines of code join: NEEDED.sub("", inside) ⇒ LINES.sub("\n", inside)
two names are one: class="([\w-]+)" ⇒ class="([\w -]+)"
what is no element loses them: '<span class=" ⇒ 'span class="
an empty line goes: (?!\n)") ⇒ ")
styles keep their notes: NOTE.sub("", inside) ⇒ inside
scripts keep theirs: return rjsmin.jsmin(inside) ⇒ return inside

# website/extensions/lean_styles.py | test_site_styles.py -k 'rule or selector or paper'
fields have all parts | test_site_styles.py -k fields: or FIELDS.search(text) ⇒
whatever comes after: if AFTER.search(text): ⇒ if False:
our unused rules: if ours and len(kept) < len(every) ⇒ if False
ids always used: (is_class or token.type == "hash") ⇒ is_class
dark on paper: rules.append(f"@media not print{{ ⇒ rules.append(f"@media all{{
places do not count: return pages.use(selector) ⇒ return True
siblings in one order: if between in "+~" and not gap and said: ⇒ if False:
what a script makes is sought: if tag in pages.made and not named: ⇒ if False:
what a script gives is sought: if name in pages.given: ⇒ if False:
what a script changes is sought: if name.value not in pages.changed: ⇒ if True:
any value of an attribute: whole = name.value in MANY or not rest ⇒ whole = True

# website/extensions/lean_values.py | test_site_styles.py -k value
values behind values: ahead |= behind[name] - found ⇒ pass
pages ask for nothing: ahead = set(asked) ⇒ ahead = set()

# website/extensions/folded_cells.py | test_folded_cells.py
a note is moved, too: r'<details class="[^"]*\bhide\b[^"]*">\s*<summary> ⇒
    r'<details[^>]*>\s*<summary>
a fold ends at the first end in it: depth += -1 if edge[1] else 1 ⇒ depth = 0 if edge[1] else 1
what runs is moved: if not RUNS.search(page, fold.end(), end): ⇒ if True:
each page is taken apart: if sum(end - start for start, end, _ in found) < FEWEST: ⇒ if False:
names by what they are called: hashlib.sha256(inside.encode()).hexdigest()[:10] ⇒
    hashlib.sha256(title.encode()).hexdigest()[:10]
a second build takes the links for cells: if STUBS.search(page): ⇒ if False:
what an older build has left stays: beside(path).unlink(missing_ok=True) ⇒ pass
checks read the link: return put_together(page, beside(path).read_text("utf-8")) if ⇒
    return page if
scripts of all lengths move: {10000,} ⇒ {1,}

# website/static/folded.js | test_folded_cells.py
nothing at rest: if (document.readyState === "complete") idle(later); ⇒
a place in a fold is not gone to: addEventListener("hashchange", () => go(true)); ⇒
paper has links: addEventListener("beforeprint", () => unless(fillAll())); ⇒
marks in the open alone: _highlightText(fold, word, "highlighted"); ⇒ 0;
a cell without its buttons: window.bookCopyButtons(fold); ⇒
reload jumps to the place: go(!visit || visit.type === "navigate"); ⇒ go(true);
what was opened early stays empty: fillOpen(); // some ⇒ // some
who saves gets all: if (navigator.connection?.saveData) return; ⇒

# website/extensions/visitors.py | test_site_pages.py
each word of code has an element | test_site_pages.py -k words_of_code:
    (nodes.literal, visit_words_of_code, ⇒ (nodes.literal, nothing,
each bracket of a signature has one | test_site_pages.py -k words_of_code:
    (desc_sig_name, desc_sig_punctuation, ⇒ (desc_sig_name,
each word of a signature has one | test_site_pages.py -k words_of_code:
    (desc_signature, visit_words_of_code, ⇒ (desc_sig_space, nothing,
any fold goes on: if cell["prompt_show"] == f"{before['prompt_show']}, continued": ⇒
    if cell["prompt_show"].endswith(", continued"):
what goes on comes first: before.extend(cell.children) ⇒ before.children[:0] = cell.children
code does not hang: "short": short} ⇒ "short": None}
what is printed hangs late: "myst-ansi": 42 ⇒ "myst-ansi": 43
short lines hang: return line if letters <= short else ⇒ return
a space begins anew: yield (kind if kind is last else Text), space ⇒ yield Text, space
spaces take the next colour: yield (kind if kind is last else Text), space ⇒ yield kind, space
signs are letters: unescape(re.sub("<[^>]*>", "", line)) ⇒ line
only scripts make tables reachable: FRAME.replace(">", ' tabindex="0">') ⇒ FRAME
no heads at all: nodes.thead) and not node.astext() ⇒ nodes.thead)
a fold is called by the other title | test_site_pages.py -k 'pictures or fold':
    node["prompt_show"] ⇒ node["prompt_hide"]

# tools/repository.py | test_repository.py
a dot is any sign: re.escape(between.join(old)) ⇒ between.join(old)
renamed by half: changed[path] = after ⇒ replace_file(path, after); changed[path] = after

# transformer_book/explorer/explorer.js | test_explorer_browser.py
sum over heads: / heads.length; ⇒ ;
French where English stands: quoted(now.columns[s], now.columnLang), after ⇒
    quoted(now.columns[s], now.rowLang), after
least looked at first: row[b] - row[a] ⇒ row[a] - row[b]
gold of another word: gold.includes(s) ? [mark()] ⇒ gold.includes(t) ? [mark()]
rows that cannot be chosen: line.addEventListener("click", () => pick(t)); ⇒
deaf to dark mode: : system.matches); ⇒ : false);
no status to be read out: role: "status" ⇒ role: "note"

# commands/export.py | test_export.py -k the_command
each for the other: options.to == "ctranslate2" ⇒ options.to != "ctranslate2"
capitals: lowercase=run.lowercase, ⇒
tokenizers swapped: src_tokenizer, tgt_tokenizer = run.tokenizers ⇒
    tgt_tokenizer, src_tokenizer = run.tokenizers

# transformer_book/experiments/running.py | test_experiments.py -k 'twice or meanwhile'
the second look is left out: if mine and _is_lacking(experiment, name, chosen[name], plan): ⇒
    if mine:
a claim is not asked for: if mine and _is_lacking(experiment, name, chosen[name], plan): ⇒
    if _is_lacking(experiment, name, chosen[name], plan):
claims of all rates are one: f"{arm} {plan.sweep} {plan.lr} {plan.seed}" ⇒
    f"{arm} {plan.sweep} {plan.seed}"
waits for a claim: fcntl.LOCK_EX | fcntl.LOCK_NB ⇒ fcntl.LOCK_EX

# tools/rehearsal.py | test_rehearsal.py -k 'handed or alone or four_times or given'
Colab's Python is a package: python = versions.pop("python") ⇒ python = versions["python"]
what is given is never Colab's: given = False, pins(options.colab) ⇒ given = False, pins()
the versions of others not compared: given=given, soft=options.soft) ⇒ soft=options.soft)
never soft: given=given, soft=options.soft) ⇒ given=given)
a soft kernel is a plain one: [str(book / SOFT)] if soft else ["-m"] ⇒ ["-m"]
a soft chapter is unchanged: adapt(notebook, chapter) ⇒ pass
notes of changes on every GPU: changed_for_soft(chapter) if options.soft else [] ⇒
    changed_for_soft(chapter)
no notes of changes: changed_for_soft(chapter) if options.soft else [] ⇒ []
no more time on a soft one: LIMIT * (4 if soft else 1) ⇒ LIMIT
the last one decides: failed |= bool(wrong) ⇒ failed = bool(wrong)
ignored cells count: and "nbval-ignore-output" not in pair[0].metadata.get("tags", []) ⇒
claims are no ticks | test_rehearsal.py -k claim_that_is_lost: return claims + [line ⇒ return [line

# website/extensions/head_words.py | test_site_pages.py -k 'descri or pages_head'
a text that just fits is cut: if len(text) <= length: ⇒ if len(text) < length:
a question mark in the head: content="{escape(words)}" ⇒ content="{words}"
commas before the dots: .rstrip(" ,;:–—") ⇒

# website/extensions/next_page.py | test_site_pages.py -k follow_the_map
the page before asks: _, _, following = ⇒ _, following, _ =
pages that know an older map: if app.config.root_doc in changed else [] ⇒ if False else []

# website/extensions/ticks.py | test_site_pages.py -k 'waits or counts_once or no_chapter or saves'
no turns are told: for what, n in counts.items() if n] ⇒ for what, n in counts.items()]
each line is a turn: len({m[0] for t in waiting if (m := re.search(r"Your turn \d+\.\d+", t))}) ⇒
    len([m[0] for t in waiting if (m := re.search(r"Your turn \d+\.\d+", t))])
an output is marked for its cell: typed_in(block.parent.parent)["classes"] ⇒
    block.parent["classes"]
the cell that runs a file is to type in: return before if before.astext() ⇒
    return cell if before.astext()
other pages have a head: if not CHAPTER.fullmatch(app.env.docname): ⇒ if False:

# website/extensions/book_site.py | test_site_pages.py -k 'named_are_linked or carries_a_number'
a chapter links to itself: if page in (None, self.env.docname): ⇒ if page is None:
a chapter at the start of a sentence: \b[Cc]hapter ⇒ \bchapter
the number stays in the formula: nodes.Text(TAG.sub("", block.astext()).strip()) ⇒
    nodes.Text(block.astext())
exercises are figures: "Exercise": "ex" ⇒ "Exercise": "fig"
an entry's key for its address: f"cite-{key}" ⇒ key
words after a link lost: yield nodes.Text(words[end:]) ⇒ pass
sections without an address: anchor(app, section, f"sec-{title[1]}") ⇒ pass
each character is a letter | test_site_pages.py -k for_chinese: "中文" if CHINESE ⇒ None if CHINESE
an entry leads to a number | test_site_pages.py -k for_chinese:
    (kind, name, term["ids"][0], main, ⇒ (kind, name, number, main,

# website/theme/genindex.html | test_site_pages.py -k for_chinese
terms look as names do: {% if term %} ⇒ {% if 0 %}
parts are left out: {%- if parts %} ⇒ {%- if 0 %}
a letter's heading under the row: <section class="book-letter" ⇒ <section class="letter"
letters are not what scheme.js lays out: <section id="index"> ⇒ <p></p>
other places have its name, too: if loop.first else ⇒ if loop else

# website/extensions/page_parts.py | test_site_pages.py -k modules
a changed script in an old folder: len(content)}\n".encode() + content) ⇒ len(content)}\n".encode())
no room kept | test_page_translator_site.py -k 'asks_for or far_away': if part.room: ⇒ if False:
modules behind modules not told | test_page_translator_site.py -k 'at_once or own_modules':
    ahead.append(path) ⇒ pass

# website/extensions/formulas.py | test_site_pages.py -k 'carries_a_number'
formulas in the line: .strip(), display=True) ⇒ .strip())

# website/extensions/translator_files.py | test_page_translator_site.py -k 'words_are_those'
kilobytes of 1024: / 1000) ⇒ / 1024)
the mean is never chosen | test_page_translator.py -k aligns_best:
    is_mean = head == share.size(1) - 1 ⇒ is_mean = False

# website/parts/translator/search.js | test_page_translator_browser.py -k chance
again is the same again: this.seed += 1; ⇒
what is not sampled is reshaped all the same: this.way === "sampling" ? this.#options() : {} ⇒
    this.#options()

# website/parts/translator/view.js | test_page_translator_browser.py -k unknown
an unknown word is named twice: [...new Set(strange)] ⇒ [...strange]
a word more than it can | test_page_translator_browser.py -k odd:
    const longest = words.maxLen - 1; ⇒ const longest = words.maxLen;
an error page for a model | test_page_translator_browser.py -k failure: if (!response.ok) throw ⇒
    if (false) throw
an unknown word while it is typed: const isBegun = begun && i === typed.length - 1; ⇒
    const isBegun = false;
any word is begun: const isBegun = begun && i === typed.length - 1; ⇒ const isBegun = true;

# website/parts/translator/word_box.js | test_page_translator_browser.py -k keyboard
up from nowhere is the last but one: const from = this.active < 0 && step < 0 ? 0 : this.active; ⇒
    const from = this.active;

# website/parts/translator/text.js | test_page_translator_browser.py -k marks
marks within words: |[.,;:!?]+(?=["“”„«»)]*(\s|$))/g ⇒ |[.,;:!?]+/g
quotation marks are words: ["“”„«»()]| ⇒ [¤]|
a French word apart from its apostrophe | test_page_translator_browser.py -k tap:
    .replaceAll("' ", "'") ⇒

# website/parts/living/beam_search.js | test_living_numbers.py -k beams
odds of the rest not kept: (p * (1 - share)) / rest ⇒ p * (1 - share)
what is over is still ahead: return n > shown && shown < steps.length ? "ahead" : "never"; ⇒
    return n > shown ? "ahead" : "never";
ended ones are dropped: if (beams.some(is) || ended.some(is)) return "kept"; ⇒
    if (beams.some(is)) return "kept";

# website/parts/living/limits.js | test_living_numbers.py -k product
an addition and no operation: 2 * n * D * D ⇒ n * D * D
rows come for nothing: (n * D + D * D + n * D) ⇒ (D * D)
the slower of both for the quicker: Math.max(multiply, fetch) ⇒ Math.min(multiply, fetch)
it never ends: : Infinity ⇒ : 0

# website/parts/living/roofline.js | test_living_words.py -k product
a tenth too quick: Math.max(fetch, multiply / 10) ⇒ multiply / 10
the longer does not count: fetch >= multiply; ⇒ fetch >= multiply / 10;

# website/parts/living/depth.js | test_living_words.py -k stack
words may be one: words.filter((own) => own <= OWN.words) ⇒ words.filter((own) => own < 0)
one of three is enough: arriving.every((ratio) => ratio > 0.1 ⇒ arriving.some((ratio) => ratio > 0.1

# website/parts/living/stacks.js | test_living_words.py -k stack
the row of one layer more: [n - 1] ⇒ [n]
norm without addition is both: norm ? "norm_only" ⇒ norm ? "post"

# website/parts/living/looks.js | test_living_numbers.py -k packages_layer
the second head looks as the first: (two ? b : a) / 100 ⇒ a / 100
both columns are dog's: noun === NOUNS[column] ⇒ noun === NOUNS[0]
a cut beyond the sentences | test_living_numbers.py -k straight_cut:
    Math.min(1, Math.max(0, -(px * dx + py * dy) / long)) ⇒ -(px * dx + py * dy) / long
the first noun is always asked for | test_living_numbers.py -k straight_cut:
    nouns[which] === "dog" ⇒ nouns[0] === "dog"

# website/parts/living/heads.js | test_living_words.py -k heads
both are one of both: first > 0 !== second > 0 ⇒ first > 0 || second > 0
the farther for the nearer: Math.min(first, second) ⇒ Math.max(first, second)
a noun without weight takes turns: a % 100 ? ⇒ a ?
head 2 cannot be turned | test_living_browser.py -k one_look:
    now.two = now.b !== now.a ⇒ now.two = false
one head has two looks | test_living_browser.py -k one_look:
    if (!now.two) now.b = now.a ⇒ if (!now.two) now.a = now.b

# website/parts/living/cuts.js | test_living_browser.py -k cuts_are_drawn
bends where no map helps: else if (!hidden(state)) bends ⇒ else bends
a cut lies askew | test_living_browser.py -k drawn_cut: u - reach * y ⇒ u - reach * x
first is second | test_living_browser.py -k drawn_cut: nouns.forEach((noun, i) => ⇒
    nouns.toReversed().forEach((noun, i) =>

# website/parts/living/runs.js | test_living_words.py -k runs
the end is the last ten steps: (means.at(-1) + means.at(-2)) / 2 ⇒ means.at(-1)
two of three are enough: ends(state).every((end) => end < COUNTING) ⇒
    ends(state).filter((end) => end < COUNTING).length > 1
the next rate's runs: + RATES.indexOf(rate)); ⇒ + (RATES.indexOf(rate) + 1) % RATES.length);
the highest is the best: all.indexOf(Math.min(...all)) ⇒ all.indexOf(Math.max(...all))
it rises on and on | test_living_numbers.py -k rises:
    Math.min(n / Math.max(warmUp, 1), 1) ⇒ (n / Math.max(warmUp, 1))

# website/parts/living/rates.js | test_living_words.py -k runs
one run decides: if (lower === 0) ⇒ if (lower <= 1)
higher is lower: end < without[seed] ⇒ end > without[seed]
too short for too long: state.rate > other ? "long" ⇒ state.rate < other ? "long"
it is sure and wrong as soon as the rate is too high:
    state.rate > other && ends(state).every((end) => end > LOG_V) ⇒ state.rate > other

# website/parts/living/rate_plots.js | test_living_browser.py -k runs_are_drawn
above the break as high as at it: + 0.32 * over) ⇒ )

# website/small_runs.py | test_living.py -k small_runs
a warm-up one step late: (step + 1) / max(warm_up, 1) ⇒ step / max(warm_up, 1)
the seeds are one: losses = trained(names, seed, ⇒ losses = trained(names, 0,

# website/extensions/living_files.py | test_living.py -k threads
milliseconds for seconds: float(ms) / 1000 ⇒ float(ms)

# website/parts/living/sampling.js | test_living_numbers.py -k draws
one standard error: 3 * Math.sqrt((share ⇒ Math.sqrt((share

# website/extensions/search_records.py | test_search.py
a root is lost: "msqrt": "√" ⇒ "msqrt": ""
indices are not set apart: "msub": " _" ⇒ "msub": "  "
code is prose: *(".headerlink", ".cell_input", ⇒ *(".headerlink",
a section has those inside it: "script", "style", "section", ⇒ "script", "style",
a term is a chapter: " ".join(said[1:]), "term") ⇒ " ".join(said[1:]), "chapter")
words may be elements: (html.escape(part) for part in record) ⇒ iter(record)
a section leads to its page: here = address if i == 0 else ⇒ here = address if True else

# website/theme/scheme.js | test_site_pages.py -k pressed_before
what is pressed early is lost: pressed?.click(); ⇒
formulas wait for no font | test_site_pages.py -k set_anew_once: .then(come) ⇒
every font is asked for | test_site_pages.py -k set_anew_once:
    .filter((tag) => document.querySelector(tag)) ⇒
a font that fails is waited for | test_site_pages.py -k set_anew_once: allSettled ⇒ all
it is pressed too early: setTimeout(() => { ⇒ [0].forEach(() => {

# website/theme/layout.html | test_site_pages.py -k one_style_sheet
italic comes late: if "<em>" in ⇒ if "<nothing>" in
italic for a page without: [:2500] else () ⇒ [:2500] else ("serif-italic",)
a field is laid out at once | test_site_pages.py -k laid_out_for:
    <template class="book-late"><dialog ⇒ <template class="x"><dialog

# website/extensions/theme.py | test_site_pages.py -k laid_out_for
an icon is fetched: context["favicon_url"] = ICON ⇒ pass

# conftest.py | test_house.py -k checked
the grammar is checked: or name.startswith(f"{GRAMMAR}.") ⇒
packages are not checked: name.removesuffix(".__init__") for name in names ⇒
    name for name in names if "__init__" not in name
no shapes are checked: if not around_the_grammar(n)] ⇒ if False]

# website/extensions/pictures.py | test_site_pages.py
all pictures wait: ({"fetchpriority": "high"} if opens(node) else ⇒ ({} if False else
a first picture never waits | test_site_pages.py -k as_others_do: and before < FIRST_SCREEN ⇒
each picture opens a page | test_site_pages.py -k as_others_do: return other is node and ⇒ return
a size in pixels lost: return int(width.removesuffix("px")), int(height.removesuffix("px")) ⇒
    return size_of(path)
a picture without its words | test_site_pages.py -k 'pictures or fold':
    "alt": node.get("alt", ""), ⇒ "alt": "",

# website/extensions/visitors.py | test_site_pages.py -k name_alone
cells are containers: .replace(" docutils container", "") ⇒

# website/hosting.py | test_hosting.py
short files are compressed: AT_LEAST = 1400 ⇒ AT_LEAST = 1
fonts are compressed: (".html", ".css", ⇒ (".html", ".woff2", ".css",
an old page stays compressed: if not holds(to, text): ⇒ if not to.exists():
all is compressed each time: if not holds(to, text): ⇒ if True:
compressed files of nothing stay: left.unlink() ⇒ pass
a cut file is a fault of ours: except (OSError, EOFError): ⇒ except OSError:
an old page is not told: if not holds(compressed_of(path), path.read_bytes()) ⇒ if False
strangers are not told: for path in strangers ⇒ for path in ()
compressed for whom cannot read it: if not there or "gzip" not in ⇒ if not there or "" not in
a file from beside the folder: path.is_file() and packed.is_file() ⇒ packed.is_file()
nobody is told that it is compressed: self.send_header("Content-Encoding", "gzip") ⇒ pass

# website/editions/offer.py | test_editions.py -k stand_beside
pages with links, compressed ones without: compress(site) ⇒ pass

# website/extensions/letters.py | test_search.py -k letter
a letter leads to its last term: first.setdefault(letter, term["ids"][0]) ⇒
    first[letter] = term["ids"][0]
all letters have one list: lists.setdefault(letter, ⇒ lists.setdefault("",

# website/static/search.js | test_search.py -k 'first or marked or said'
sqrt is a word | test_search.py -k root: "√"); ⇒ "sqrt");
names stay last: found.unshift(found.pop()); ⇒
no word to mark on the page: address.searchParams.set("highlight", asked); ⇒
nothing is not said: says.textContent = total ⇒ says.textContent = true

# website/static/place.js | test_search.py -k contents
every box takes the focus: box.tabIndex = wide[i] ? 0 : -1; ⇒ box.tabIndex = 0;
a mark stays: else link.removeAttribute("aria-current"); ⇒ else link.title = "";
contents in a dialog are an error: "#pst-secondary-sidebar, dialog" ⇒ "#pst-secondary-sidebar"
what is marked is out of sight: show(link); ⇒ link.title = "";
a section's last name is marked: section && !links.has(section) ⇒ section

# website/parts/ledger/filter.js | test_search.py -k ledger
one word is enough: .every((word) ⇒ .some((word)
an empty chapter stays: section.hidden = shown === 0; ⇒
any budget: && kind.includes(this.budget.value) ⇒
"""


class Mutation(NamedTuple):
    module: str
    name: str
    tests: str
    old: str = ""  # without which nothing is changed
    new: str = ""


def mutations(table: str = TABLE) -> list[Mutation]:
    found = []
    for line in re.sub(r"\n    ", " ", table).splitlines():
        if line.startswith("# "):
            module, tests = line[2:].split(" | ")
        elif line:
            name, edit = line.split(":", 1)
            name, _, own = name.partition(" | ")
            old, new = (text.strip() for text in edit.split("⇒"))
            found.append(Mutation(module, name, own or tests, old, new))
    return found


def copy_tree(to: Path) -> Path:
    """What git tracks or would, as it stands in the working tree."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # rather than deleted
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
    return to


def file_of(mutation: Mutation, tree: Path) -> Path:
    """The library's modules are named by their place in it, others from the root."""
    within = tree / "transformer" / mutation.module
    return within if within.is_file() else tree / mutation.module


class Tree:
    """A copy of the tree, and a process that runs its tests (``tests/warm.py``)."""

    def __init__(self, folder: Path) -> None:
        self.folder = copy_tree(folder)
        self.printed = folder.with_suffix(".txt")
        # no bytecode: two versions of a file may be of one length and one second
        settings = {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300"}
        self.runner = subprocess.Popen(
            [sys.executable, "tests/warm.py", str(TIMEOUT)],
            cwd=folder,
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self.runner.communicate()  # closes its input, which ends it

    def run_tests(self, tests: str) -> tuple[int, str]:
        """pytest's exit status, 1 where a test has failed, and which did."""
        words = [f"tests/{w}" if w.startswith("test_") else w for w in shlex.split(tests)]
        words = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *words]
        self.runner.stdin.write(json.dumps([words, str(self.printed)]) + "\n")
        self.runner.stdin.flush()
        if (status := json.loads(self.runner.stdout.readline())) is None:
            return 1, f"its taking more than {TIMEOUT} seconds"
        printed = self.printed.read_text(encoding="utf-8", errors="replace")
        failed = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", printed, re.MULTILINE)
        return status, failed[1] if failed else printed[-600:]


def outcome(mutation: Mutation, tree: Tree) -> tuple[bool, str]:
    """Whether all is well, and what the tests did in ``tree``, which is changed meanwhile."""
    if not mutation.old:
        status, failed = tree.run_tests(mutation.tests)
        return (True, "passes unchanged") if status == 0 else (False, f"FAILS UNCHANGED: {failed}")
    file = file_of(mutation, tree.folder)
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return False, f"DOES NOT APPLY: what is there occurs {text.count(mutation.old)} times"
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        status, failed = tree.run_tests(mutation.tests)
    finally:
        file.write_text(text, encoding="utf-8")
    if status == 0:
        return False, "SURVIVED"
    return (True, f"caught by {failed}") if status == 1 else (False, f"BREAKS THE RUN: {failed}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="in module or name")
    parser.add_argument("--list", action="store_true", help="show the mutations and stop")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(arguments)
    chosen = [m for m in mutations() if any(t in f"{m.module}: {m.name}" for t in args.only)]
    if args.list:
        for m in chosen:
            print(f"{m.module}: {m.name}  ({m.tests})\n  - {m.old}\n  + {m.new}")
        return 0
    unchanged = [Mutation("", tests, tests) for tests in dict.fromkeys(m.tests for m in chosen)]
    trees: queue.Queue[Tree] = queue.Queue()

    def work(mutation: Mutation) -> tuple[bool, str]:
        tree = trees.get()
        try:
            return outcome(mutation, tree)
        finally:
            trees.put(tree)

    n_caught, n_wrong, jobs = 0, 0, unchanged + chosen
    with (
        tempfile.TemporaryDirectory() as folder,
        ExitStack() as ending,
        ThreadPoolExecutor(args.workers) as pool,
    ):
        for i in range(args.workers):
            trees.put(ending.enter_context(closing(Tree(Path(folder) / str(i)))))
        for mutation, (well, what) in zip(jobs, pool.map(work, jobs), strict=True):
            n_caught += well and bool(mutation.old)
            n_wrong += not well
            print(f"{mutation.module:<23} {mutation.name:<38} {what}", flush=True)
    print(f"{n_caught} of {len(chosen)} caught")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
