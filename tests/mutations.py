"""Would the tests notice? ``make mutations`` breaks the package on purpose, a line at a time.

Each mutation below is one wrong edit. It is made in a copy of the tree, where the tests named for
it run; it counts as caught if one of them fails. The same tests first pass there unchanged. The
status is 1 if a mutation survives, or no longer applies because the package has changed.
"""

import argparse
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
padding mask turned round: (tokens != pad_id) ⇒ (tokens == pad_id)
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
new queries at position 0 | test_cache.py: self.queries(query, cache.length) ⇒ self.queries(query)
recording never ends: module.record = record ⇒ pass

# cache.py | test_cache.py
cache writes keys where it began: self.keys.narrow(2, start, T) ⇒ self.keys.narrow(2, 0, T)
cache writes values where it began: self.values.narrow(2, start, T) ⇒ self.values.narrow(2, 0, T)
cache does not grow: self.length += T ⇒ self.length = T
new keys at position 0: k, v = project(key, value, self.length) ⇒ k, v = project(key, value, 0)
room is read: return self.keys.narrow(2, 0, self.length), ⇒ return self.keys,
room for one more: if start + T > self.max_len: ⇒ if start + T > self.max_len + 1:
cache selects only keys: self.keys, self.values = self.keys[rows], self.values[rows] ⇒
    self.keys, self.values = self.keys[rows], self.values[: len(rows)]
memory projected at every step: if self.kept is None: ⇒ if True:
memory's cache not selected: self.kept = keys[rows], values[rows] ⇒ pass
layer selects itself alone: self.cross_attention.select(rows) ⇒ pass
memory's mask not selected: None if self.mask is None else self.mask[rows] ⇒ self.mask
state's memory not selected: self.memory = self.memory.select(rows) ⇒ pass
one layer's cache selected: for cache in self.caches: ⇒ for cache in self.caches[:1]:
any forward takes a cache: return any(p.name == "cache" or ⇒ return any(True or

# positional.py | test_positional.py
sin for cos: [angles.sin(), angles.cos()] ⇒ [angles.cos(), angles.sin()]
start ignored: return table[start : start + length] ⇒ return table[:length]
rotary turns the other way: [-x[..., 1::2], x[..., 0::2]] ⇒ [x[..., 1::2], -x[..., 0::2]]
rotary pairs wrong: .repeat_interleave(2, dim=-1) ⇒ .repeat(1, 2)
rotary start ignored: _rows(table, start, x.size(2)) ⇒ _rows(table, 0, x.size(2))
angles in float32: torch.arange(0, width, 2, dtype=torch.float64) ⇒
    torch.arange(0, width, 2, dtype=torch.float32)
rotary in no attention: return cls(max_len, d_k) ⇒ return Positions()

# layers.py | test_layers.py
LayerNorm over positions: F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps) ⇒
    (x - x.mean(-2, True)) * (x.var(-2, False, keepdim=True) + self.eps) ** -0.5 * self.weight
LayerNorm's variance unbiased:
    F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps) ⇒
    (x - x.mean(-1, True)) * (x.var(-1, keepdim=True) + self.eps) ** -0.5 * self.weight + self.bias
no ReLU: self.W_1(x).relu_() ⇒ self.W_1(x)
post for pre: if self.pre: ⇒ if not self.pre:
no residual, post: self.norm(x + self.dropout(sublayer(x))) ⇒ self.norm(self.dropout(sublayer(x)))
residual dropped out too:
    self.norm(x + self.dropout(sublayer(x))) ⇒ self.norm(self.dropout(x + sublayer(x)))
dropout in evaluation: if self.training and self.p > 0 else x ⇒ if self.p > 0 else x
small dropout is none: self.p > 0 else ⇒ self.p > 0.01 else

# config.py | test_config.py
another longest sequence: max_len: int = 512 ⇒ max_len: int = 256
tiny with two heads: _TINY = {"d_model": 64, "n_heads": 4, ⇒ _TINY = {"d_model": 64, "n_heads": 2,
small with eight heads:
    _SMALL = {"d_model": 128, "n_heads": 4, ⇒ _SMALL = {"d_model": 128, "n_heads": 8,
sharing kept with another vocabulary: changes = {"share_embeddings": None, **changes} ⇒ pass

# checks.py | test_checks.py test_config.py
padding held against the larger vocabulary:
    min(src_vocab_size, tgt_vocab_size) ⇒ max(src_vocab_size, tgt_vocab_size)
all may be dropped: if not 0 <= share < 1: ⇒ if not 0 <= share <= 1:
infinity is a number: if not 0 < number < math.inf: ⇒ if not 0 < number:
a true size: if not isinstance(size, int) or isinstance(size, bool): ⇒ if not isinstance(size, int):
the id after the last: largest >= vocab_size ⇒ largest > vocab_size
masks of the wrong length: m not in (1, s) ⇒ m > s

# model.py | test_model.py test_cached_decoding.py
no √d_model: self.tokens(tokens) * self.scale ⇒ self.tokens(tokens)
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
a layer of the memory's own cache: cache=cache.cross_attention ⇒ cache=cache.self_attention
no cache for self-attention: partial(look_back, cache=cache.self_attention) ⇒ look_back
no cache for the memory: partial(look_across, cache=cache.cross_attention) ⇒ look_across
all layers share the first cache: zip(layers, caches, strict=True) ⇒
    zip(layers, [caches[0]] * len(layers), strict=True)
any part is thought to take a cache: return all(map(takes_cache, [*layers, *attentions])) ⇒
    return True
the longest sequence refused: if tokens.size(1) > self.config.max_len: ⇒
    if tokens.size(1) >= self.config.max_len:
a rotary table twice as long: in_attention(max_len=c.max_len, ⇒ in_attention(max_len=2 * c.max_len,
the decoder's feed-forward network never drops out:
    self.residual_3 = Residual(c.d_model, dropout=c.dropout, norm=c.norm) ⇒
    self.residual_3 = Residual(c.d_model, norm=c.norm)
causal mask left on the CPU | test_fake_cuda.py: causal_mask(tgt.size(1), device=tgt.device) ⇒
    causal_mask(tgt.size(1))

# decoding/beams.py | test_decoding.py
length penalty off by one: ((5 + self.length) / 6) ⇒ ((6 + self.length) / 6)
beams' caches not reordered:
    rows = beam.gather(1, kept) + K ⇒ rows = torch.arange(K, device=flat.device) + K
beams' words not reordered: self.tokens.gather(1, beam[ ⇒ self.tokens.gather(1, 0 * beam[
ended beams go on: log_p.masked_fill(ends, -math.inf).topk(K) ⇒ log_p.topk(K)
padding beamed as a word: log_p.select(1, self.pad_id).fill_(-math.inf) ⇒ pass
too few continuations: topk(min(2 * K, K * V)) ⇒ topk(min(K, K * V))
half-precision probabilities | test_cached_decoding.py: logits.float().log_softmax ⇒
    logits.log_softmax
ties go to the later sentence: better = score > self.best_score ⇒ better = score >= self.best_score
beams that do not exist end: ends = ends & (log_p > -math.inf) ⇒ pass
several ends count as one: ends.sum(dim=1) ⇒ ends.any(dim=1).long()
one first token for all | test_cached_decoding.py:
    (self.going.new_zeros(n) + bos_id)[:, None] ⇒ (self.going.new_zeros(n) + bos_id)[0]
beams on the CPU | test_fake_cuda.py: torch.arange(n, device=device)  # (n,) ⇒
    torch.arange(n)  # (n,)

# decoding/search.py | test_decoding.py
words after <eos>: on = tokens != eos_id ⇒ on = tokens == tokens
top-p leaves out the last: before >= p ⇒ before + ordered >= p
top-p takes one too many: before >= p ⇒ before > p
top-k keeps k + 1: logits.topk(k).values ⇒ logits.topk(k + 1).values
top-p before top-k: keep_top_p(keep_top_k(logits.float() / temperature, top_k), top_p) ⇒
    keep_top_k(keep_top_p(logits.float() / temperature, top_p), top_k)
temperature multiplied: logits.float() / temperature ⇒ logits.float() * temperature
temperature after what is kept:
    keep_top_p(keep_top_k(logits.float() / temperature, top_k), top_p) ⇒
    keep_top_p(keep_top_k(logits.float(), top_k), top_p) / temperature
padding written as a word:
    logits.select(1, model.pad_id).fill_(-math.inf)  # padding is not a word ⇒ pass

# decoding/steps.py | test_cached_decoding.py
no step is cached: if use_cache and model.takes_cache else ⇒ if False else
any model is cached: if use_cache and model.takes_cache else ⇒ if use_cache else
memory not selected: self.memory, self.tgt = self.memory.select(rows), self.tgt[rows] ⇒
    self.tgt = self.tgt[rows]
first tokens of the wrong number let through: check_shape(bos_id, len(src), name="bos_id") ⇒ pass

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

# data/tasks.py | test_tasks.py
reversal moves <eos>: backwards = lengths - 1 - position ⇒ backwards = lengths - position
never of the greatest length: torch.randint(min_len, max_len + 1, ⇒ torch.randint(min_len, max_len,

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
written in place: path.with_name(f".{path.name}.{os.getpid()}") ⇒ path
leavings of a failed write: temporary.unlink() ⇒ pass
the temporary file named: str(path)) from error ⇒ str(temporary)) from error

# metrics.py | test_metrics.py
BLEU's arguments swapped:
    (list(hypotheses), [list(references)]) ⇒ (list(references), [list(hypotheses)])
BLEU always with capitals: BLEU(lowercase=lowercase, ⇒ BLEU(lowercase=False,
chrF always with capitals: CHRF(lowercase=lowercase) ⇒ CHRF()
chrF with pairs of words: CHRF(lowercase=lowercase) ⇒ CHRF(lowercase=lowercase, word_order=2)
alignment of the word before: _is_word(tgt[:, 1:]) & ⇒ _is_word(tgt[:, :-1]) &
links the wrong way round: {(best_b[t], t) for ⇒ {(t, best_b[t]) for
sure links not possible: len(a & (p | s)) ⇒ len(a & p)

# data/parallel.py | test_parallel.py
unequal files not refused: if len(src_lines) != len(tgt_lines): ⇒ if False:
no bos: [BOS_ID, *tgt_tokenizer ⇒ [*tgt_tokenizer
bad lines not numbered: left_out=tuple(left_out) ⇒ left_out=()
long pairs not numbered: unknown, tuple(left_out)) ⇒ unknown)

# data/multi30k.py | test_multi30k.py -k 'not chapter'
any file is good enough: if got == wanted: ⇒ if True:
a wrong file is kept: if fault is None: ⇒ if True:
the variable is not looked at: folder or os.environ.get(VARIABLE) ⇒ folder
the variable comes before the folder: folder or os.environ.get(VARIABLE) ⇒
    os.environ.get(VARIABLE) or folder
fetched though it was not asked for: if not download: ⇒ if False:
fetched again though it is there: _fetch(list(faults), ⇒ _fetch(list(FILES),
English for German: for side in ("de", "en") ⇒ for side in ("en", "de")
a silent server is waited for: timeout=timeout) as answer ⇒ timeout=60) as answer
a file without end is read: answer.read(min(left, 1 << 16)) ⇒ answer.read(1 << 16)
no network is a traceback: except (OSError, HTTPException) ⇒ except HTTPException
the bar counts files that are there: for name in names) ⇒ for name in FILES)
the bar is never silent: {} if progress else ⇒ {} if True else
the bar is silent where the variable has no say: {"disable": True}  # ⇒ {"disable": False}  #

# decoding/translate.py | test_translate.py
translations in order of length: zip(rows, tokens.cpu() ⇒ zip(sorted(rows), tokens.cpu()
cut off after 5 tokens more: src.size(1) + 50 ⇒ src.size(1) + 5
length penalty not handed on: length_penalty=length_penalty, ⇒
shortest first: key=lambda i: len(sources[i]), reverse=True ⇒ key=lambda i: len(sources[i])
beam as wide as you like: if beam_size > tgt_vocab_size: ⇒ if False:
greedy whatever is asked: if beam_size == 1: ⇒ if True:

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

# commands/options.py | test_command_line.py -k 'refused or help'
any device: if not is_here: ⇒ if False:
any GPU: (found.index or 0) < torch.cuda.device_count() ⇒ True
a device that holds nothing: torch.zeros((), device=found).item() ⇒ pass
sizes without end: 1 <= int(text) <= _LARGEST ⇒ 1 <= int(text)
seeds without end: 0 <= int(text) < 2**63 ⇒ 0 <= int(text)
rate not a number: if not 0 < float(text) < math.inf: ⇒ if float(text) <= 0:
penalty without end: if not math.isfinite(float(text)): ⇒ if False:
another beam than translate | test_translate.py -k one_way: beam_size: int = 4 ⇒ beam_size: int = 5
beam not named | test_translate.py -k named: if self.beam_size == 1: ⇒ if False:

# commands/run_folder.py | test_translate.py -k 'run or chosen or settings'
first checkpoint for the last: return saved[-1:] ⇒ return saved[:1]
last checkpoint for the best | test_command_line.py -k best:
    return [best_checkpoint(self.path)] ⇒ return saved[-1:]
mean of the first checkpoints: return saved[-average:] ⇒ return saved[:average]
fewer than asked for in the mean: if average > len(saved): ⇒ if False:
tokenizers of another model: if sizes != (len(tokenizers[0]), len(tokenizers[1])): ⇒ if False:
another format of settings: if about.pop("format") != _FORMAT: ⇒ if not about.pop("format"):
lowercase of another kind: if not isinstance(settings.lowercase, bool) or ⇒ if
other settings accepted | test_command_line.py -k other_settings:
    if before.options.get(name) != value ⇒ if False
other sentences accepted | test_command_line.py -k other_sentences:
    if now["digests"].get(name) != before.digests.get(name) ⇒ if False
folder of other things taken | test_command_line.py -k other_things:
    or any(self.path.iterdir())) ⇒ )

# commands/prepare.py | test_command_line.py -k 'held_out or behind or schedule or epochs or paper'
grammar dev split taken from train: seed=args.seed + 1, split="test" ⇒ seed=args.seed + 1
folder made before all is checked: begins = not folder.is_run() ⇒
    begins = not folder.is_run(); args.out.mkdir(parents=True, exist_ok=True)
each process reads all batches | test_command_line.py -k torchrun: rank=rank, ⇒ rank=0,
paper's peak without the warm-up: (d_model * args.warmup) ** -0.5 ⇒ d_model**-0.5
paper's decay where linear was asked: if args.schedule == "linear": ⇒ if False:
epochs rounded down: args.steps or math.ceil( ⇒ args.steps or int(
tokenizer of capitals | test_command_line.py -k dev_and_test:
    (line.lower() if args.lowercase else line for ⇒ (line for
sizes not handed on | test_command_line.py -k byte_pairs:
    for name in _SIZES if ⇒ for name in () if
steps an epoch without accumulation | test_command_line.py -k says_what:
    math.ceil(len(batches) / args.accumulate) ⇒ len(batches)

# commands/train_options.py | test_command_line.py -k settled
last step of a decay free: return FREE - {"steps", "epochs"} if ⇒ return FREE if

# commands/train.py | test_command_line.py -k 'kept or says_what or dev_and_test'
nothing kept but the latest: keep=args.keep, ⇒
saved and measured at the end only: save_every=args.save_every, ⇒
measured by another decoding: Decoding(args.beam_size, args.length_penalty) ⇒ Decoding()
the others wait for a word | test_command_line.py -k told_once: raise SystemExit(2) ⇒ pass
always with progress: progress=not args.quiet ⇒ progress=True

# commands/translate.py | test_translate.py -k 'line or marks or options'
case of the run forgotten: text.lower() if run.lowercase else text ⇒ text
byte-order mark read: text.removeprefix("\ufeff") ⇒ text
control characters read: re.sub(r"[\x00-\x1f\x7f]", " ", text ⇒ str(text
length penalty left out: length_penalty=args.length_penalty, ⇒
lines before an error lost: except ValueError: ⇒ except KeyError:
lines counted from 0: enumerate(lines, start=1) ⇒ enumerate(lines)
a terminal waits for a batch: 1 if sys.stdin.isatty() else args.batch_size ⇒ args.batch_size
written at the end: sys.stdout.flush() ⇒ pass
two lines for one: translation.replace("\n", " ") ⇒ translation

# commands/evaluate.py | test_translate.py -k 'scores or scored or skipped or asked'
kept pairs not those encoded: if number not in left_out ⇒ if number <= len(examples)
case forgotten in the scores: "lowercase": run.lowercase} ⇒ "lowercase": False}
sources in capitals: if run.lowercase else sources, ⇒ if False else sources,
right in other letters only: _words(t) == _words(w) ⇒ t == w
length penalty forgotten: length_penalty=decoding.length_penalty, ⇒
bad lines not reported: if report.skipped: ⇒ if False:

# runtime.py | test_runtime.py
bfloat16 on old GPUs: >= (8, 0) ⇒ >= (7, 0)
timer does not wait: torch.cuda.synchronize(self.device) ⇒ pass
mode not restored: module.training = mode ⇒ pass
all left in training mode: module.training = mode ⇒ module.training = True
evaluated with gradients: with torch.no_grad(): ⇒ with torch.enable_grad():
evaluated with dropout: model.eval() ⇒ pass

# training/objective.py | test_training.py -k 'not compiled'
padding has a loss: ignore_index=pad_id ⇒ ignore_index=-100
no smoothing: label_smoothing=smoothing ⇒ label_smoothing=0.0
padding of id 0 alone counts nothing: (labels != pad_id) ⇒ (labels != 0)
warm-up's exponent: warmup**-1.5 ⇒ warmup**-0.5
linear decay ends too early: (n_steps + 1 - step) / (n_steps + 1 - warmup) ⇒
    (n_steps - step) / (n_steps - warmup)
linear decay without a warm-up: peak * min(step / warmup, ⇒ peak * min(1.0,
warm-up off by one: step * warmup**-1.5 ⇒ (step - 1) * warmup**-1.5

# training/step.py | test_training.py -k 'not compiled'
mean of the batches' means: / n_tokens.clamp(min=1) ⇒
    / count_labels(batch.labels, pad_id=self.pad_id) / self.accumulate
not times the processes | test_command_line.py -k torchrun:
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
scale not restored: self.step.scaler.load_state_dict(state["scaler"]) ⇒ pass
no scale to restore: if state["scaler"]: ⇒ if True:
Ctrl-C loses what is done: self._save_what_is_done() ⇒ pass
Ctrl-C saves twice: done not in [0, *map(step_of, checkpoints(self.run))] ⇒ done
an evaluation that fails loses a step: self._save(run, number) ⇒
    (evaluate is None or number in self.history.evaluations) and self._save(run, number)
the last loss in the bar: _mean(self.history.losses[-100:]) ⇒ self.history.losses[-1]
mean loss since the start in a line: _mean(self.history.losses[since:]) ⇒
    _mean(self.history.losses)
epochs without accumulation: number * step.accumulate / len ⇒ number / len
lines without progress: if bar.disable: ⇒ if False:

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
    _restore_moments(model, optimizer, _read_moments(path / _FILES[1], model)) ⇒ pass
written in place: run / f".writing-{os.getpid()}" ⇒ run / f"step-{step:08d}"
oldest kept: checkpoints(run)[:-keep] ⇒ checkpoints(run)[keep:]
best not kept: if old != best: ⇒ if True:
highest evaluation the best: return min((p for p ⇒ return max((p for p
an evaluation of NaN the best: if not math.isnan(values[p])) ⇒ if str(step_of(p)) in evaluations)
another shape accepted: tuple(t.shape) for n, t ⇒ 0 for n, t
weights of NaN accepted: if broken: ⇒ if False:
files not flushed: flush(temporary / name) ⇒ pass
leftovers of removal not cleared: (".writing-*", ".removing-*") ⇒ (".writing-*",)
a full disk not named: isinstance(error, OSError | SafetensorError) ⇒ isinstance(error, OSError)
a file that cannot be read not called so: with open(file, "rb"): ⇒ if True:
average in single precision: tensor.double() for ⇒ tensor.clone() for
sum for an average: total / len(paths) for ⇒ total for

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

# book/claims.py | test_book.py
one anchor for all Chinese claims: [0] in "LMN" and ⇒ [0] in "LMN" and character.isascii() and
raised characters in anchors: and not raised_or_lowered ⇒
symbols in anchors: if not re.fullmatch("[α-ω]", word) ⇒
anchors of words as they were typed: unicodedata.normalize("NFC", text).lower() ⇒ text.lower()

# book/your_turn.py | test_your_turn.py
largest input first: sorted(inputs, key=_size) ⇒ sorted(inputs, key=_size, reverse=True)
only the first input is tried: for given in self.inputs: ⇒ for given in self.inputs[:1]:
the reader's error stops the notebook: except Exception as error: ⇒ except KeyError as error:
inputs not copied: value.clone() if isinstance(value, Tensor) else value ⇒ value
any mistake is named: if all(check._difference(attempt, given) is None for ⇒
    if any(check._difference(attempt, given) is None for
shapes not compared: if got.shape != expected.shape: ⇒ if got.dim() != expected.dim():
a mask may be of numbers: if (got.dtype == torch.bool) != (expected.dtype == torch.bool): ⇒
    if False:
a written function counts as empty: return returns and steps[0].argval in (None, ...) ⇒
    return returns
the right answer is told: print(f"✗ {self.label}: not {answer}") ⇒
    print(f"✗ {self.label}: not {answer} but {self.right}")
a word's case counts: answer.strip().casefold() == wanted.casefold() ⇒ answer == wanted

# book/drawings/matrix.py | test_drawings.py
ties are drawn: if abs(last % 1 - 0.5) < TIE: ⇒ if abs(last % 1 - 0.5) < 0:
rows for columns: self.row(i).column(j) ⇒ self.row(j).column(i)
a hyphen for a minus: .replace("-", "−") ⇒ .replace("−", "-")
large numbers are pale: low + (high - low) * min(1.0, full) ⇒ high - (high - low) * min(1.0, full)

# book/drawings/svg.py | test_drawings.py
minus zero: + 0.0 for value in values] ⇒ for value in values]
after an index the line stays low: height = down ⇒ height = 0.0
markup in words: else element("tspan", escape(token), **style) ⇒
    else element("tspan", token, **style)
plain words are not escaped: parts.append(escape(token) if plain else ⇒
    parts.append(token if plain else

# book/drawings/canvas.py | test_drawings.py
text that a phone shows too small: if size < SMALLEST: ⇒ if size < 0:
masked cells show their number: if not seen: ⇒ if False:
dark mode is forgotten: {{{''.join(rules)}}} ⇒ {{}}
any words will do for those who hear it: if len(alt) < 40: ⇒ if len(alt) < 1:
the followed row is not bold: bold=told, quiet=matrix.faint and not told) ⇒
    quiet=matrix.faint and not told)
the ring is round a column: place.row(follow) if follow is not None ⇒
    place.column(follow) if follow is not None

# book/drawings/model_map.py | test_drawings.py
everything is lit: on, words = part in lit or ⇒ on, words = True or
the decoder's part is lit as well: f"{frame}: {part}" in lit ⇒ f"encoder: {part}" in lit
any name will do: if unknown := set(given) - set(known): ⇒ if unknown := set():

# book/translator/learning.py | test_translator.py
learning rate a step late: rate_of(step + 1) ⇒ rate_of(max(step, 1))
gradient not clipped: clip_norm=1.0, ⇒ clip_norm=None,
padding counts in the loss: , ignore_index=PAD_ID) ⇒ )
one of two right will do: [a and b for a, b in zip(one_right ⇒ [a or b for a, b in zip(one_right

# book/translator/data.py | test_translator.py
tuned on the test: if pair.source not in asked ⇒ if pair.source

# book/translator/results.py | test_translator.py
lowest for highest: return min(values), max(values) ⇒ return max(values), max(values)
any run agrees: <= highest + margin ⇒ <= 1
longer training not said: "" if row.n_steps == N_STEPS else ⇒ "" if True else

# family/config.py | test_family.py
a head as wide as one of the keys: return self.d_model // self.n_heads ⇒
    return self.d_model // self.n_key_heads

# family/parts.py | test_family.py
root mean square without eps: self.weight.to(x.dtype), self.eps) ⇒ self.weight.to(x.dtype), 0.0)
gain of another precision: self.weight.to(x.dtype) ⇒ self.weight
gate and value exchanged: F.silu(self.W_1(x)) * self.W_3(x) ⇒ self.W_1(x) * F.silu(self.W_3(x))
no gate: F.silu(self.W_1(x)) * self.W_3(x) ⇒ F.silu(self.W_1(x))
groups interleaved: x.repeat_interleave(self.group, dim=1) ⇒ x.repeat(1, self.group, 1, 1)
any base is 10,000: / theta ** (pairs / d_k) ⇒ / 10_000.0 ** (pairs / d_k)

# family/stack.py | test_family.py test_decoder_only.py
norms all with one eps | test_family_hugging_face.py: eps=config.norm_eps ⇒ eps=1e-5
GELU exact for all | test_family_hugging_face.py:
    partial(F.gelu, approximate="tanh"),  # GPT-2's ⇒ F.gelu,
GELU by tanh for all | test_family_hugging_face.py: "gelu": F.gelu,  # x Φ(x), exactly ⇒
    "gelu": partial(F.gelu, approximate="tanh"),
gated networks lose their biases: GatedFeedForward(c.d_model, c.d_ff, bias=c.bias) ⇒
    GatedFeedForward(c.d_model, c.d_ff)
attention always has biases: {"bias": config.bias, "positions": positions} ⇒
    {"positions": positions}
no √d_model: if c.position == "sinusoidal" else 1.0 ⇒ if False else 1.0
embeddings not normalised: make_norm(c) if c.norm_order == "post" else ⇒ nn.Identity() if True else
no last norm: make_norm(config) if config.norm_order == "pre" else ⇒ nn.Identity() if True else
all tokens of segment 0: if types is None else types) ⇒ if True else types)
all blocks share the first cache: zip(blocks, caches, strict=True) ⇒
    zip(blocks, [caches[0]] * len(blocks), strict=True)
blocks never drop out: dropout=config.dropout, norm=config.norm_order ⇒ norm=config.norm_order

# family/decoder_only.py | test_decoder_only.py
no causal mask: mask = words & causal_mask(T, device=tokens.device) ⇒ mask = words
padding has a place: words[:, 0, 0].long().cumsum(dim=-1) ⇒ (tokens == tokens).long().cumsum(dim=-1)
padding seen by the steps: self.run(x, state.words, state.caches) ⇒ self.run(x, None, state.caches)
steps stand after the padding, too: state.words.sum(dim=-1)[:, 0], state.length + 1 ⇒
    state.words.new_full((len(tokens), 1), state.length, dtype=torch.long), state.length + 1
tables not tied | test_family.py: self.output.weight = self.embedding.tokens.weight ⇒ pass
any part is thought to take a cache: return all(map(takes_cache, [*self.blocks, *attentions])) ⇒
    return True
padding of other texts: self.words = self.words[rows] ⇒ pass
the longest text refused: if length > self.max_len: ⇒ if length >= self.max_len:
another pad_id seen: T, words = tokens.size(1), padding_mask(tokens, self.pad_id) ⇒
    T, words = tokens.size(1), padding_mask(tokens)

# family/encoder_only.py | test_family.py
head without its norm: self.output(self.norm(self.activation(self.W(x)))) ⇒
    self.output(self.activation(self.W(x)))
head without GELU: self.norm(self.activation(self.W(x))) ⇒ self.norm(self.W(x))
padding seen: self.run(x, padding_mask(tokens, self.pad_id)) ⇒ self.run(x, None)
pooler of the last token: torch.tanh(self.W(x[:, 0])) ⇒ torch.tanh(self.W(x[:, -1]))

# family/masking.py | test_family.py
all that is asked for is hidden: asked & (fate < 0.8) ⇒ asked
none stays: tokens.where(~asked | (fate >= 0.9), other) ⇒ tokens.where(~asked, other)
nothing replaced: tokens.where(~asked | (fate >= 0.9), other) ⇒ tokens
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

# book/explorer/page.py | test_explorer.py
words as markup: escape(word)}</th>' ⇒ word}</th>'
sentences that end the script: .replace("<", "\\u003c") ⇒
percents cut off: (w * 100 + SCALE // 2) // SCALE ⇒ (w * 100) // SCALE
gold marks turned round: {(j, i): "&nbsp;◆" ⇒ {(i, j): "&nbsp;◆"
a head too many: 0 <= head < sizes[kind][1] ⇒ 0 <= head <= sizes[kind][1]
starts with the first layer: return kind, n_layers - 1, 0 ⇒ return kind, 0, 0

# book/explorer/explored.py | test_explorer.py
dropout in the maps: with evaluating(model), record_attention(model) ⇒
    with record_attention(model)
labels in place of inputs: torch.tensor([tgt[:-1]], device=device) ⇒
    torch.tensor([tgt[1:]], device=device)
links past the end: 0 <= j < T ⇒ 0 <= j <= T
weights of any size: not (low >= 0 and high <= 1.01) ⇒ False
weights up to 1.5: high <= 1.01) ⇒ high <= 1.5)
weights that rounding put above one refused: high <= 1.01) ⇒ high <= 1.0)

# book/explorer/explorer.js | test_explorer_browser.py
sum over heads: / heads.length; ⇒ ;
French where English stands: quoted(now.columns[s], now.columnLang), after ⇒
    quoted(now.columns[s], now.rowLang), after
least looked at first: row[b] - row[a] ⇒ row[a] - row[b]
gold of another word: gold.includes(s) ? [mark()] ⇒ gold.includes(t) ? [mark()]
rows that cannot be chosen: line.addEventListener("click", () => pick(t)); ⇒
deaf to dark mode: : system.matches); ⇒ : false);
no status to be read out: role: "status" ⇒ role: "note"
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


def outcome(mutation: Mutation, tree: Path) -> tuple[bool, str]:
    """Whether all is well, and what the tests did in ``tree``, which is changed meanwhile."""
    if not mutation.old:
        status, failed = run_tests(mutation.tests, tree)
        return (True, "passes unchanged") if status == 0 else (False, f"FAILS UNCHANGED: {failed}")
    file = tree / "transformer" / mutation.module
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return False, f"DOES NOT APPLY: what is there occurs {text.count(mutation.old)} times"
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        status, failed = run_tests(mutation.tests, tree)
    finally:
        file.write_text(text, encoding="utf-8")
    if status == 0:
        return False, "SURVIVED"
    return (True, f"caught by {failed}") if status == 1 else (False, f"BREAKS THE RUN: {failed}")


def run_tests(tests: str, tree: Path) -> tuple[int, str]:
    """pytest's exit status, 1 where a test has failed, and which did."""
    # no bytecode: two versions of a file may be of one length and one second
    settings = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300"}
    words = [f"tests/{word}" if word.startswith("test_") else word for word in shlex.split(tests)]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += words
    try:
        options = {"cwd": tree, "env": os.environ | settings, "timeout": TIMEOUT}
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except subprocess.TimeoutExpired:
        return 1, f"its taking more than {TIMEOUT} seconds"
    failed = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return done.returncode, failed[1] if failed else done.stdout[-300:] + done.stderr[-300:]


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
    trees: queue.Queue[Path] = queue.Queue()

    def work(mutation: Mutation) -> tuple[bool, str]:
        tree = trees.get()
        try:
            return outcome(mutation, tree)
        finally:
            trees.put(tree)

    n_caught, n_wrong, jobs = 0, 0, unchanged + chosen
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.workers) as pool:
        for i in range(args.workers):
            trees.put(copy_tree(Path(folder) / str(i)))
        for mutation, (well, what) in zip(jobs, pool.map(work, jobs), strict=True):
            n_caught += well and bool(mutation.old)
            n_wrong += not well
            print(f"{mutation.module:<23} {mutation.name:<38} {what}", flush=True)
    print(f"{n_caught} of {len(chosen)} caught")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
