import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.testing import assert_close

from tests.package.oracles import (
    TorchTransformer,
    gradients,
    torch_gradients,
    torch_stack,
)
from tools.chapters import ROOT
from transformer.cache import Memory
from transformer.config import TransformerConfig
from transformer.embedding import Embedding
from transformer.layers import Dropout
from transformer.model import Decoder, Encoder, Transformer
from transformer.multihead import record_attention
from transformer.positional import POSITIONS

B, S, T, D = 3, 7, 6, 16
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
POSITION_KINDS = pytest.mark.parametrize("position", POSITIONS)


def config(**changes):
    sizes = {"d_model": D, "n_heads": 4, "d_ff": 24, "max_len": 12, "dropout": 0.0}
    layers = {"n_encoder_layers": 2, "n_decoder_layers": 3}
    return TransformerConfig(
        **{"src_vocab_size": 20, "tgt_vocab_size": 25} | sizes | layers | changes
    )


def shaken(module, dtype=torch.float64, seed=0):
    """With parameters away from where they start: no bias zero, no gain one."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=g))
    return module.to(dtype)


def vectors(length, seed=1):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(B, length, D, generator=g, dtype=torch.float64)


def sentences(vocab_size, length, seed=2):
    """Random words; the second sentence is three long, the rest of it padding."""
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, vocab_size, (B, length), generator=g)
    tokens[1, 3:] = 0
    return tokens


SRC, TGT = sentences(20, S), sentences(25, T, seed=3)


@NORMS
def test_stacks_without_masks_equal_torch(norm):
    x, memory = vectors(T), vectors(S, seed=5)
    encoder, decoder = (shaken(stack(config(norm=norm))) for stack in (Encoder, Decoder))
    assert_close(encoder(memory), torch_stack(encoder)(memory), rtol=0, atol=1e-12)
    assert_close(decoder(x, memory), torch_stack(decoder)(x, memory), rtol=0, atol=1e-12)


def assert_same(ours, theirs, mine, wanted, tolerance):
    """Outputs, and the gradients of every parameter."""
    assert_close(mine, wanted, rtol=0, atol=tolerance * max(1, wanted.abs().max().item()))
    weight = torch.randn(mine.shape, generator=torch.Generator().manual_seed(4)).to(mine)
    grads = torch_gradients(ours, gradients(ours, (mine * weight).sum()))
    expected = gradients(theirs, (wanted * weight).sum())
    for name, gradient in expected.items():
        scale = max(1, gradient.abs().max().item())
        assert_close(grads[name], gradient, rtol=0, atol=tolerance * scale, msg=name)


@DTYPES
@NORMS
@pytest.mark.parametrize("shared", [False, True])
def test_the_whole_model_equals_torch(shared, norm, dtype):
    c = config(tgt_vocab_size=20 if shared else 25, norm=norm, share_embeddings=shared)
    ours = shaken(Transformer(c), dtype)
    theirs = TorchTransformer(ours)
    tgt = TGT.clamp(max=c.tgt_vocab_size - 1)
    holes = tgt.clone()
    holes[0, 2] = 0
    for tokens in (holes, tgt):  # padding among words, and behind them; what it sees is never read
        read = tokens != 0
        mine, wanted = ours(SRC, tokens)[read], theirs(SRC, tokens)[read]
        assert_same(ours, theirs, mine, wanted, TOLERANCE[dtype])
    assert torch.equal(ours.decode(tgt, ours.encode(SRC))[read], mine)
    tables = {"src_embedding.tokens.weight"}
    tables |= set() if shared else {"tgt_embedding.tokens.weight", "output.weight"}
    outside = {name for name, _ in ours.named_parameters() if "coder" not in name}
    assert outside == tables


@NORMS
@POSITION_KINDS
def test_a_changed_token_changes_no_earlier_logit(position, norm):
    model = shaken(Transformer(config(position=position, norm=norm)))
    before = model(SRC, TGT)
    for t in range(T):
        changed = TGT.clone()
        changed[0, t] = 1 + changed[0, t] % 24
        after = model(SRC, changed)
        assert torch.equal(after[0, :t], before[0, :t])
        assert (after[0, t] != before[0, t]).any()
        assert torch.equal(after[1:], before[1:])


@NORMS
@POSITION_KINDS
def test_padding_changes_nothing(position, norm):
    model = shaken(Transformer(config(position=position, norm=norm)))
    alone = model(SRC[1:2, :3], TGT[1:2, :3])
    for before, after in ((0, 0), (0, 1), (0, 5), (1, 0), (5, 2)):
        wide = [F.pad(tokens[1:2, :3], (before, after)) for tokens in (SRC, TGT)]
        # rotary positions count padding: they are relative, to the precision of their tables
        tolerance = 1e-6 if position == "rotary" and before else 1e-12
        assert_close(model(*wide)[:, before : before + 3], alone, rtol=0, atol=tolerance)


@POSITION_KINDS
def test_made_without_memory_it_is_whole_once_it_is_loaded(position):
    model = shaken(Transformer(config(position=position)), torch.float32)
    with torch.device("meta"):
        loaded = Transformer(config(position=position))
    torch.use_deterministic_algorithms(True)  # which fills new memory with NaN
    try:
        loaded.to_empty(device="cpu").load_state_dict(model.state_dict())
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(loaded(SRC, TGT), model(SRC, TGT))


def test_it_is_exported_for_any_batch_and_any_length():
    # in a process of its own: the run-time check of annotations is not made to be exported
    subprocess.run([sys.executable, "-c", EXPORT], cwd=ROOT, check=True)


EXPORT = """
import torch
from transformer import Transformer, TransformerConfig
torch.manual_seed(0)
sizes = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
model = Transformer(TransformerConfig(20, 25, max_len=12, **sizes)).eval()
lengths = [{0: torch.export.Dim("B"), 1: torch.export.Dim(n, max=12)} for n in "ST"]
inputs = torch.ones(4, 5, dtype=torch.long), torch.ones(4, 6, dtype=torch.long)
exported = torch.export.export(model, inputs, dynamic_shapes=lengths).module()
src, tgt = torch.randint(1, 20, (7, 3)), torch.randint(1, 25, (7, 8))
src[0, 0] = src[1, 2] = tgt[2, 7] = 0
torch.testing.assert_close(exported(src, tgt)[tgt != 0], model(src, tgt)[tgt != 0])
"""


@POSITION_KINDS
def test_order_is_seen_only_with_positions(position):
    model, words = shaken(Transformer(config(position=position))), SRC[[0, 2]]
    turned = model.encode(words.flip(1)).vectors.flip(1)
    assert torch.allclose(turned, model.encode(words).vectors) is (position == "none")


def test_embedding_scales_the_table_and_adds_positions():
    embed = Embedding(20, config()).double()
    tokens = SRC[:, :4]
    expected = embed.tokens.weight[tokens] * math.sqrt(D)
    assert_close(embed(tokens), expected + embed.positions.table[:4])
    assert_close(embed(tokens, start=3), expected + embed.positions.table[3:7])
    big = Embedding(1000, config(d_model=64))
    assert_close(big.tokens.weight.std().item(), 1 / 8, rtol=0.02, atol=0)
    dropped = (
        Embedding(20, config(dropout=0.5))(torch.ones(50, 12, dtype=torch.long)) == 0
    ).float()
    assert 0.45 < dropped.mean() < 0.55


def test_every_residual_drops_out():
    model = Transformer(config(dropout=0.25))
    rates = [module.p for module in model.modules() if isinstance(module, Dropout)]
    assert rates == [0.25] * (
        2 + 2 * 2 + 3 * 3
    )  # two embeddings, two encoder and three decoder layers


def test_the_longest_sequences_are_as_long_as_max_len():
    model = Transformer(config(position="rotary"))
    longest = torch.ones(2, 12, dtype=torch.long)
    assert model(longest, longest).shape == (2, 12, 25)
    for stack in (model.encoder, model.decoder):
        assert len(stack.layers[0].self_attention.positions.cos) == 12


def test_weights_start_as_glorot_and_bengio_have_it():
    model = Transformer(config(d_model=64, d_ff=256, tgt_vocab_size=25))
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            limit = math.sqrt(6 / sum(module.weight.shape))
            assert module.weight.abs().max() <= limit, name
            assert module.weight.std() > 0.9 * limit / math.sqrt(3), name
            assert module.bias is None or not module.bias.any()


def count(config):
    with torch.device("meta"):
        model = Transformer(config)
    return sum(p.numel() for p in model.parameters())


def test_parameters_by_hand():
    d, f, v = 512, 2048, 37_000
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * f + f + d, 2 * d
    layers = 6 * (attention + feed_forward + 2 * norm)
    layers += 6 * (2 * attention + feed_forward + 3 * norm)
    assert layers == 44_138_496
    assert count(TransformerConfig.base(v, v)) == layers + v * d == 63_082_496
    assert count(TransformerConfig.base(v, v, share_embeddings=False)) == layers + 3 * v * d
    assert count(TransformerConfig.base(v, v, norm="pre")) == layers + v * d + 2 * norm
    assert count(TransformerConfig.big(v, v)) == 214_245_376  # the paper rounds: 213


# Vaswani et al. (2017), Table 3, rows of (C): parameters in millions, 65 for the base model.
TABLE_3 = {
    "N=2": (36, {"n_encoder_layers": 2, "n_decoder_layers": 2}),
    "N=4": (50, {"n_encoder_layers": 4, "n_decoder_layers": 4}),
    "N=8": (80, {"n_encoder_layers": 8, "n_decoder_layers": 8}),
    "d_ff=1024": (53, {"d_ff": 1024}),
    "d_ff=4096": (90, {"d_ff": 4096}),
}


@pytest.mark.parametrize("row", TABLE_3)
def test_parameters_differ_from_the_base_model_as_in_the_papers_table(row):
    millions, changes = TABLE_3[row]
    base, changed = (count(TransformerConfig.base(37_000, 37_000, **c)) for c in ({}, changes))
    assert abs((changed - base) / 1e6 - (millions - 65)) < 1


@POSITION_KINDS
@NORMS
def test_no_nan_for_empty_sources_single_tokens_and_full_padding(norm, position):
    model = shaken(Transformer(config(norm=norm, position=position)), torch.float32)
    src = SRC.clone()
    src[2] = 0
    tgt = TGT.clone()
    tgt[0] = 0
    for s, t in (
        (src, tgt),
        (src[:, :1], tgt[:, :1]),
        (torch.zeros_like(src), torch.zeros_like(tgt)),
    ):
        logits = model(s, t)
        assert logits.isfinite().all()
        grads = gradients(model, logits.square().mean())
        assert all(g.isfinite().all() for g in grads.values())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@POSITION_KINDS
def test_a_model_made_where_half_precision_is_the_default_type(position, dtype):
    torch.set_default_dtype(dtype)
    try:
        model = Transformer(config(position=position))
    finally:
        torch.set_default_dtype(torch.float32)
    logits = model(SRC, TGT)
    assert logits.dtype == dtype
    state = model.start_decoding(SRC, max_len=2)
    assert_close(model.decode_next(TGT[:, 0], state), logits[:, 0], rtol=0, atol=0.1)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch's kernel has no batches
@POSITION_KINDS
def test_gradients_of_each_sentence_by_vmap(position):
    model = shaken(Transformer(config(position=position)))
    weights = dict(model.named_parameters())

    def total(weights, src, tgt):
        logits = functional_call(model, weights, (src[None], tgt[None]))
        return (logits.square() * (tgt != 0)[:, None]).sum()  # of words

    every = vmap(grad(total), (None, 0, 0))(weights, SRC, TGT)
    for b in range(B):
        for name, gradient in grad(total)(weights, SRC[b], TGT[b]).items():
            assert_close(every[name][b], gradient, rtol=0, atol=1e-9, msg=name)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_each_sentence_drops_out_by_itself_under_vmap():
    model = Transformer(config(dropout=0.5)).train()
    same = SRC[:1].expand(8, -1)
    for randomness, n_far in (("different", 8 * 7), ("same", 0)):
        logits = vmap(lambda src: model(src[None], src[None]), randomness=randomness)(same)
        far = (logits[:, None] - logits).abs().flatten(2).amax(dim=-1) > 1e-3  # each from each
        assert far.sum() == n_far


# Of a model with two encoder and three decoder layers, so many parameters fewer than the base.
VARIANTS = {
    "n_key_heads": (2, (2 + 2 * 3) * 2 * (D * D + D) // 2),  # of W_k and W_v, half
    "norm_kind": ("rms", (2 * 2 + 3 * 3) * D),  # of each norm the β
    "feed_forward": ("swiglu", -5 * (D * 24 + 24)),
    "bias": (False, (2 + 2 * 3) * 4 * D + 5 * (24 + D)),
}


@NORMS
@pytest.mark.parametrize("name", VARIANTS)
def test_each_choice_changes_what_it_names_and_no_more(name, norm):
    choice, saved = VARIANTS[name]
    extra = 2 * D if (name, norm) == ("norm_kind", "pre") else 0  # two last norms
    assert count(config(norm=norm)) - count(config(norm=norm, **{name: choice})) == saved + extra


def test_without_padding_every_token_is_text():
    padded, text = (shaken(Transformer(config(pad_id=pad_id))) for pad_id in (0, None))
    text.load_state_dict(padded.state_dict())
    src, tgt = SRC[[0, 2]], TGT[[0, 2]]  # no zero in them
    assert_close(text(src, tgt), padded(src, tgt), rtol=0, atol=1e-12)
    zeros = SRC.masked_fill(SRC == 19, 0), TGT.masked_fill(TGT == 24, 0)
    apart = (text(*zeros) - padded(*zeros)).abs().amax(dim=(1, 2))
    assert apart[1] > 0.01
    nothing = Transformer(config(pad_id=None)).encode(SRC).mask
    assert nothing.all()


def test_maps_of_every_attention_module():
    model = shaken(Transformer(config()))
    with record_attention(model) as maps:
        recorded = model(SRC, TGT)
    assert_close(recorded, model(SRC, TGT), rtol=0, atol=1e-11)
    lengths = {"encoder": (S, S), "decoder.self": (T, T), "decoder.cross": (T, S)}
    assert len(maps) == 2 + 3 + 3
    for name, weights in maps.items():
        stack, _, _, kind = name.split(".")
        key = stack if stack == "encoder" else f"decoder.{kind.split('_')[0]}"
        assert weights.shape == (B, 4, *lengths[key])
        assert (weights[1, :, :3, 3:] == 0).all()
        assert_close(weights.sum(-1), torch.ones(B, 4, lengths[key][0]).double())


def bad_tokens():
    good, long = torch.ones(2, 4, dtype=torch.long), torch.ones(2, 13, dtype=torch.long)
    m = "must hold ids from 0 to"
    yield good + 19, good, f"src {m} 19, got 20"
    yield good, good + 24, f"tgt {m} 24, got 25"
    yield -good, good, f"src {m} 19, got -1"
    yield good.float(), good, r"src must hold integer ids, got torch\.float32"
    yield long, good, "src must be no longer than max_len = 12, got 13 tokens"
    yield good, long, "tgt must be no longer than max_len = 12, got 13 tokens"
    yield good, good[:1], r"memory must have shape \(1, S, 16\), got \(2, 4, 16\)"


@pytest.mark.parametrize(("src", "tgt", "message"), list(bad_tokens()))
@pytest.mark.usefixtures("unchecked")
def test_refuses_tokens(src, tgt, message):
    with pytest.raises(ValueError, match=message):
        Transformer(config())(src, tgt)


@pytest.mark.usefixtures("unchecked")
def test_refuses_a_memory_that_does_not_fit():
    model = Transformer(config())
    memory = model.encode(SRC)
    narrow = Memory(memory.vectors[..., :8], memory.mask)
    with pytest.raises(ValueError, match=r"memory must have shape \(3, S, 16\), got \(3, 7, 8\)"):
        model.decode(TGT, narrow)
