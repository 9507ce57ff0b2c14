"""The parts of the family by hand, its configurations, the encoder, and masked words."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.package.test_model import shaken
from transformer.family import DecoderOnly, EncoderOnly, FamilyConfig
from transformer.family.masking import MaskedBatch, mask_words
from transformer.layers import (
    FEED_FORWARDS,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    RMSNorm,
)
from transformer.multihead import MultiHeadAttention
from transformer.positional import RotaryPositions
from transformer.training.protocol import Trainable, TrainingBatch

WINDOW, FULL = "sliding_attention", "full_attention"
D, FF, H = 12, 20, 6
SIZES = {"d_model": D, "n_heads": H, "n_layers": 2, "d_ff": FF, "max_len": 16}
BERT = FamilyConfig.bert(23, **SIZES, dropout=0.0)


def numbers(*shape, seed=1):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def texts():
    """Three of nine words of 4 … 22; of the second the last four are padding."""
    tokens = torch.randint(4, 22, (3, 9), generator=torch.Generator().manual_seed(1))
    tokens[1, 5:] = 0
    return tokens


def test_rms_norm_by_hand():
    norm = shaken(RMSNorm(4, eps=0.5))
    x = torch.tensor([1.0, -1.0, 3.0, 1.0]).double()  # mean square 3
    assert_close(norm(x), norm.weight * x / math.sqrt(3.5))
    rows = numbers(2, 3, 4)
    rms = (rows.square().sum(-1, keepdim=True) / 4 + 0.5) ** 0.5
    assert_close(norm(rows), rows / rms * norm.weight)
    centred = rows - rows.mean(-1, keepdim=True)
    assert_close(RMSNorm(4).double()(centred), LayerNorm(4).double()(rows))


def test_feed_forward_networks_by_hand():
    x = numbers(2, 5, D)
    for word, wanted in ACTIVATIONS_BY_HAND.items():
        made = shaken(FEED_FORWARDS[word](D, FF))
        hidden = wanted(x @ made.W_1.weight.T + made.W_1.bias)
        assert_close(made(x), hidden @ made.W_2.weight.T + made.W_2.bias)
    assert [*ACTIVATIONS_BY_HAND, "swiglu", "geglu_tanh"] == list(FEED_FORWARDS)
    assert FEED_FORWARDS["swiglu"] is GatedFeedForward
    gated = shaken(GatedFeedForward(D, FF))
    gate, up = x @ gated.W_1.weight.T, x @ gated.W_3.weight.T
    assert_close(gated(x), (gate / (1 + (-gate).exp()) * up) @ gated.W_2.weight.T)
    other = shaken(FEED_FORWARDS["geglu_tanh"](D, FF))
    other.load_state_dict(gated.state_dict())
    assert_close(other(x), (tanh_phi(gate) * up) @ gated.W_2.weight.T)
    assert not [name for name, _ in gated.named_parameters() if "bias" in name]
    assert len(list(FeedForward(D, FF, bias=False).parameters())) == 2


def phi(z):
    return z * 0.5 * (1 + torch.erf(z / math.sqrt(2)))


def tanh_phi(z):
    """Hendrycks and Gimpel's approximation; it is off by up to 5e-4."""
    return z * 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


ACTIVATIONS_BY_HAND = {"relu": lambda z: z.clamp(min=0), "gelu": phi, "gelu_tanh": tanh_phi}


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: MultiHeadAttention(12, 6, d_k=0), "d_k must be positive, got 0"),
        (lambda: RotaryPositions(4, 4, theta=0.0), "theta must be positive and finite, got 0.0"),
        (lambda: RMSNorm(0), "d_model must be positive, got 0"),
        (lambda: RMSNorm(4)(torch.ones(2, 3)), r"x must have shape \(..., 4\), got \(2, 3\)"),
        (lambda: GatedFeedForward(4, 8)(torch.ones(3)), r"x must have shape \(..., 4\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_parts_refuse(make, error):
    with pytest.raises(ValueError, match=error):
        make()


def gemma3(**sizes):
    return FamilyConfig(
        262_144, n_heads=4, n_key_heads=1, head_dim=256, norm_kind="rms", position="rotary",
        feed_forward="geglu_tanh", bias=False, max_len=32_768, window=512, qk_norm=True,
        sandwich_norm=True, scale_embeddings=True, **sizes,
    )  # fmt: skip


# Parameters, as counted by those who publish them.
PUBLISHED = [
    (DecoderOnly, FamilyConfig.gpt2(), 124_439_808),
    (
        DecoderOnly,
        FamilyConfig.gpt2(d_model=1600, n_heads=25, n_layers=48, d_ff=6400),
        1_557_611_200,
    ),
    (EncoderOnly, FamilyConfig.bert(), 109_514_298),
    (DecoderOnly, FamilyConfig.modern(), 134_515_008),
    (
        DecoderOnly,
        FamilyConfig.modern(
            32_000, d_model=4096, n_heads=32, n_key_heads=8, n_layers=32, d_ff=14_336,
            tie_embeddings=False, max_len=32_768, window=4096,
        ),
        7_241_732_096,
    ),
    (DecoderOnly, gemma3(d_model=640, n_layers=18, d_ff=2048), 268_098_176),
    (DecoderOnly, gemma3(d_model=1152, n_layers=26, d_ff=6912), 999_885_952),
    (
        DecoderOnly,
        FamilyConfig.modern(
            128_256, d_model=4096, n_heads=32, n_key_heads=8, n_layers=32, d_ff=14_336,
            tie_embeddings=False, rope_theta=5e5, max_len=8192,
        ),
        8_030_261_248,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "config", "n_parameters"), PUBLISHED)
def test_parameters_of_published_models(kind, config, n_parameters):
    with torch.device("meta"):
        assert sum(p.numel() for p in kind(config).parameters()) == n_parameters


def test_a_configuration_in_other_sizes():
    assert FamilyConfig.modern(23, **SIZES).n_key_heads is None  # as many as of queries
    grouped = FamilyConfig.modern(23, **SIZES, n_key_heads=2)
    assert (grouped.n_key_heads, grouped.d_k) == (2, 2)
    assert grouped.replace(n_heads=3).n_key_heads is None
    assert BERT.replace(n_heads=4, n_key_heads=2).n_key_heads == 2
    assert BERT.replace(dropout=0.5) == FamilyConfig.bert(23, **SIZES, dropout=0.5)
    assert (BERT.d_k, FamilyConfig.gpt2().max_len) == (2, 1024)
    assert FamilyConfig.bert().norm_eps == 1e-12


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"n_layers": 0}, "n_layers must be positive, got 0"),
        ({"pad_id": 23}, "pad_id must be an id of both vocabularies, got 23"),
        ({"n_token_types": -1}, "n_token_types must be 0 or more, got -1"),
        ({"window": 0}, "window must be positive, got 0"),
        ({"window": 3, "layer_types": (FULL,)}, "layer_types must have .* n_layers = 2, got 1"),
        ({"window": 3, "layer_types": ()}, "layer_types must have .* n_layers = 2, got 0"),
        ({"layer_types": (FULL, "full")}, "layer_types must be one of .*, got 'full'"),
        ({"layer_types": (FULL, WINDOW)}, "window must be a number .*, got None"),
        ({"local_rope_theta": 0.0}, r"local_rope_theta must be positive and finite, got 0\.0"),
        ({"head_dim": 0}, "head_dim must be positive, got 0"),
        ({"head_dim": 3, "position": "rotary"}, "d_k must be even, to be turned in pairs, got 3"),
        ({"sandwich_norm": True, "norm": "post"}, "norm must be 'pre' with a .*, got 'post'"),
        *(
            ({name: "no"}, f"{name} must be a bool, got 'no'")
            for name in ("bias", "tie_embeddings", "qk_norm", "sandwich_norm", "scale_embeddings")
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_a_configuration_refuses(changes, error):
    with pytest.raises((TypeError, ValueError), match=error):
        FamilyConfig(23, **SIZES | changes)


CHOICES = {
    "norm_kind": ("rms", 2 * (2 * D) + D),  # of each norm a β less, of five norms
    "feed_forward": ("swiglu", -2 * (D * FF + FF)),
    "bias": (False, 2 * (4 * D + FF + D)),
    "position": ("rotary", 16 * D),
    "n_key_heads": (2, 2 * 2 * (D * D + D) * 2 // 3),
    "tie_embeddings": (False, -23 * D),
    "head_dim": (5, -2 * (4 * D + 3) * (H * 5 - D)),
    "qk_norm": (True, -2 * 4 * 2),
    "sandwich_norm": (True, -2 * 2 * (2 * D)),
    "scale_embeddings": (True, 0),
    "window": (3, 0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_each_choice_changes_what_it_names_and_no_more(name):
    choice, saved = CHOICES[name]
    base = FamilyConfig(23, **SIZES)
    changed = base.replace(**{name: choice})
    before, after = (
        sum(p.numel() for p in DecoderOnly(config).parameters()) for config in (base, changed)
    )
    assert before - after == saved
    logits = [shaken(DecoderOnly(config))(texts()) for config in (base, changed)]
    assert not torch.allclose(*logits)
    sizes = [p.numel() for p in DecoderOnly(base.replace(norm="post")).parameters()]
    assert sum(sizes) == before  # the last norm becomes the embeddings'


def test_some_layers_may_have_a_window():
    c = FamilyConfig.modern(23, **SIZES, window=3, layer_types=[WINDOW, FULL])
    assert (c.windows, c.layer_types) == ((3, None), (WINDOW, FULL))
    assert c.replace(layer_types=None).windows == (3, 3)
    assert c.replace(layer_types=None, window=None).windows == (None, None)


def test_an_encoder_has_no_window():
    with pytest.raises(ValueError, match="window must be None in an encoder, got 3"):
        EncoderOnly(BERT.replace(window=3))


def test_sinusoidal_positions_stand_beside_scaled_embeddings_as_in_chapter_8():
    model = DecoderOnly(FamilyConfig(23, **SIZES, position="sinusoidal"))
    tokens, e = texts(), model.embedding
    wanted = e.tokens.weight[tokens] * math.sqrt(D) + e.positions.table[:9]
    assert_close(e(tokens), wanted)
    scaled = DecoderOnly(FamilyConfig.modern(23, **SIZES, scale_embeddings=True)).embedding
    assert_close(scaled(tokens), scaled.tokens.weight[tokens] * math.sqrt(D))


def test_embeddings_drop_out_after_their_norm():
    model, tokens = shaken(EncoderOnly(BERT.replace(dropout=0.4))), texts()
    wanted = model.embedding.eval()(tokens)
    torch.manual_seed(0)
    dropped = model.embedding.train()(tokens)
    kept = dropped != 0  # what is normalised after it has dropped out is nowhere exactly zero
    assert 0.5 < kept.double().mean() < 0.7
    assert_close(dropped[kept], wanted[kept] / 0.6, rtol=1e-4, atol=0)


@pytest.mark.parametrize("word", FEED_FORWARDS)
def test_the_head_has_the_activation_of_the_networks(word):
    model = shaken(EncoderOnly(BERT.replace(feed_forward=word)))
    head, vectors = model.head, model.encode(texts())
    gates = {"swiglu": lambda z: z / (1 + (-z).exp()), "geglu_tanh": tanh_phi}
    wanted = (ACTIVATIONS_BY_HAND | gates)[word](vectors @ head.W.weight.T + head.W.bias)
    assert_close(head(vectors), head.output(head.norm(wanted)))


def encoder():
    torch.manual_seed(0)
    return shaken(EncoderOnly(BERT))


@pytest.mark.usefixtures("unchecked")
def test_token_types():
    model, tokens = encoder(), texts()
    zeros = torch.zeros_like(tokens)
    assert torch.equal(model(tokens, zeros), model(tokens))
    assert not torch.allclose(model(tokens, zeros + 1), model(tokens))
    without = EncoderOnly(BERT.replace(n_token_types=0))
    for made, types, message in (
        (without, zeros, "types must be None in a model without token types"),
        (model, zeros + 2, "types must hold ids from 0 to 1, got 2"),
        (model, zeros[:, :4], r"types must have the shape of tokens, \(3, 9\), got \(3, 4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            made.encode(tokens, types)
    with pytest.raises(ValueError, match="tokens must be no longer than max_len = 16, got 18"):
        model(tokens.repeat(1, 2))


@pytest.mark.parametrize("make", [DecoderOnly, EncoderOnly])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_half_precision(make, kind):
    model, tokens = make(FamilyConfig(23, **SIZES, norm_kind=kind)), texts()
    wanted = model(tokens)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(tokens)
    for logits in (mixed, model.to(torch.bfloat16)(tokens)):
        assert logits.dtype == torch.bfloat16
        assert_close(logits.float(), wanted, rtol=0, atol=0.1)
    assert model.to(torch.float16)(tokens).isfinite().all()


def masked(tokens, **options):
    g = torch.Generator().manual_seed(0)
    return mask_words(tokens, vocab_size=23, mask_id=22, generator=g, **options)


def test_of_15_percent_of_the_words_80_are_hidden_10_replaced_and_10_stay():
    tokens = torch.randint(4, 22, (200, 500), generator=torch.Generator().manual_seed(1))
    shown, labels = masked(tokens)
    asked = labels != 0
    assert torch.equal(labels[asked], tokens[asked])
    assert torch.equal(shown[~asked], tokens[~asked])
    hidden, kept = (shown == 22)[asked], (shown == tokens)[asked]
    share = {"asked": asked, "hidden": hidden, "kept": kept, "other": ~hidden & ~kept}
    share = {name: each.double().mean().item() for name, each in share.items()}
    words = 19  # 3 … 21; one replacement in as many is the word itself
    wanted = {"asked": 0.15, "hidden": 0.8, "kept": 0.1 + 0.1 / words, "other": 0.1 - 0.1 / words}
    for name, p in wanted.items():  # five standard deviations of so many draws
        n = tokens.numel() if name == "asked" else asked.sum().item()
        assert abs(share[name] - p) < 5 * math.sqrt(p * (1 - p) / n), name
    others = shown[asked][~hidden & ~kept]
    counts = torch.bincount(others, minlength=23)
    assert counts[:3].sum() == counts[22] == 0
    assert counts[3:22].min() > 0.7 * counts.sum() / 19
    assert masked(tokens, share=0.0).labels.sum() == 0
    assert 0.39 < (masked(tokens, share=0.4).labels != 0).double().mean() < 0.41


def test_specials_and_padding_are_neither_asked_for_nor_put_in():
    tokens = torch.randint(23, (200, 200), generator=torch.Generator().manual_seed(1))
    shown, labels = masked(tokens, specials=(1, 2, 3), pad_id=5, share=0.5)
    special = torch.isin(tokens, torch.tensor([1, 2, 3, 5, 22]))
    assert torch.equal(shown[special], tokens[special])
    assert (labels[special] == 5).all()
    assert not torch.isin(shown[~special], torch.tensor([1, 2, 3, 5])).any()
    assert torch.equal(masked(tokens).tokens, masked(tokens).tokens)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"mask_id": 23}, r"mask_id, specials and pad_id must be ids below 23, got \[.*23\]"),
        ({"specials": (-1,)}, "must be ids below 23, got"),
        ({"specials": range(23)}, "specials must leave a word of the 23, got"),
        ({"share": 1.0}, r"share must be at least 0 and below 1, got 1\.0"),
        ({"vocab_size": 20}, "tokens must hold ids from 0 to 19, got 2"),
    ],
)
def test_masking_refuses(changes, error):
    with pytest.raises(ValueError, match=error):
        mask_words(texts(), **{"vocab_size": 23, "mask_id": 22} | changes)


def test_a_batch_of_masked_words_is_one_to_train_with():
    batch = masked(texts(), share=0.5)
    assert isinstance(batch, TrainingBatch)
    assert isinstance(batch.to("cpu"), MaskedBatch)
    (inputs,) = batch.inputs
    assert inputs is batch.tokens
    assert batch.to("meta").labels.device.type == "meta"
    assert isinstance(encoder(), Trainable)
