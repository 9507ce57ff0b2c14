"""Models without a source train and decode as those with one do."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.package.test_model import shaken
from transformer.data.batches import TextBatch
from transformer.decoding import greedy_decode
from transformer.decoding.protocol import Decodable, Selectable
from transformer.family import DecoderOnly, FamilyConfig
from transformer.layers import Dropout
from transformer.multihead import MultiHeadAttention, record_attention
from transformer.training import evaluate_loss, smoothed_cross_entropy
from transformer.training.objective import count_labels
from transformer.training.protocol import Trainable

WINDOW, FULL = "sliding_attention", "full_attention"
ENDS = {"eos_id": 2, "max_len": 6}
SIZES = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_ff": 24, "max_len": 20, "dropout": 0.0}
CONFIGS = {
    "gpt2": FamilyConfig.gpt2(11, **SIZES),
    "modern": FamilyConfig.modern(11, n_key_heads=2, **SIZES),
    "paper": FamilyConfig(11, position="sinusoidal", norm="post", feed_forward="relu", **SIZES),
    "windows": FamilyConfig.modern(11, window=3, tie_embeddings=False, **SIZES),
    "gemma3": FamilyConfig.modern(
        11,
        **SIZES | {"n_key_heads": 2, "feed_forward": "geglu_tanh"},
        **{"window": 2, "layer_types": [WINDOW, FULL], "local_rope_theta": 50.0},
        **{"head_dim": 6, "qk_norm": True, "sandwich_norm": True, "scale_embeddings": True},
    ),
    "without": FamilyConfig(11, position="none", bias=False, tie_embeddings=False, **SIZES),
}
KINDS = pytest.mark.parametrize("kind", CONFIGS)


def model(kind):
    torch.manual_seed(0)
    return shaken(DecoderOnly(CONFIGS[kind]))


def prompts():
    """Four of different lengths, padded on the left; the last one is nothing but padding."""
    tokens = torch.randint(3, 11, (4, 5), generator=torch.Generator().manual_seed(1))
    tokens[1, :2], tokens[2, :4], tokens[3] = 0, 0, 0
    return tokens


def stepwise(model, src, tgt):
    """The logits of ``tgt``, one token at a time."""
    state = model.start_decoding(src, max_len=tgt.size(1))
    return torch.stack([model.decode_next(y, state) for y in tgt.unbind(1)], dim=1)


@KINDS
def test_a_prompt_goes_on_as_it_would_alone_and_with_its_last_word_as_the_first_token(kind):
    made, tokens = model(kind), prompts()[:3]
    together = greedy_decode(made, tokens[:, :-1], bos_id=tokens[:, -1], **ENDS)
    for prompt, row in zip(tokens, together, strict=True):
        words = prompt[prompt != 0]
        alone = words[None]
        for y in row[row != 0]:
            assert made(alone)[0, -1, 1:].argmax() + 1 == y
            alone = torch.cat([alone, y[None, None]], dim=1)


def test_has_what_training_and_decoding_ask_for():
    made = model("modern")
    assert isinstance(made, Decodable)
    assert isinstance(made, Trainable)
    assert isinstance(made.encode(prompts()), Selectable)
    assert (made.pad_id, made.max_len, made.tgt_vocab_size) == (0, 20, 11)


def test_padding_may_have_any_id():
    made = shaken(DecoderOnly(CONFIGS["gpt2"].replace(pad_id=1)))
    padded = prompts().masked_fill(prompts() == 0, 1)
    assert_close(made(padded)[1:2, 2:], made(padded[1:2, 2:]), rtol=0, atol=1e-12)
    assert 1 not in greedy_decode(made, padded, bos_id=3, eos_id=2, max_len=1)
    tgt = torch.tensor([[3, 4]] * 4)
    whole = made.decode(tgt, made.encode(padded))
    assert_close(stepwise(made, padded, tgt), whole, rtol=0, atol=1e-12)


@KINDS
def test_without_padding_every_token_is_text_in_the_whole_and_in_the_steps(kind):
    text, padded = (shaken(DecoderOnly(CONFIGS[kind].replace(pad_id=i))) for i in (None, 0))
    text.load_state_dict(padded.state_dict())
    tokens = prompts()
    assert_close(text(tokens[:1]), padded(tokens[:1]), rtol=0, atol=1e-12)  # no 0 in the first
    assert (text(tokens) - padded(tokens)).abs().amax(dim=(1, 2))[1:3].min() > 0.01
    tgt = torch.tensor([[0, 3, 0]] * 4)
    whole = text.decode(tgt, text.encode(tokens))
    assert_close(stepwise(text, tokens, tgt), whole, rtol=0, atol=1e-12)


def test_without_padding_every_label_has_a_loss_but_pytorchs_own_that_has_none():
    text = DecoderOnly(CONFIGS["gpt2"].replace(pad_id=None))
    tokens = prompts()  # with many a 0
    batch = TextBatch(tokens)
    wanted = nn.functional.cross_entropy(text(*batch.inputs).flatten(0, 1), batch.labels.flatten())
    assert_close(evaluate_loss(text, [batch]), wanted.item())
    labels = batch.labels.clone()
    labels[0, 1:] = -100
    assert count_labels(labels, pad_id=None) == labels.numel() - 3
    logits = text(*batch.inputs)
    some = smoothed_cross_entropy(logits, labels, smoothing=0.0, pad_id=None)
    wanted = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    assert_close(some, wanted)


@KINDS
def test_maps_of_every_attention(kind):
    made = model(kind)
    with record_attention(made) as maps:
        recorded = made(prompts()[:2])
    assert_close(recorded, made(prompts()[:2]), rtol=0, atol=1e-10)
    assert list(maps) == ["blocks.0.self_attention", "blocks.1.self_attention"]
    for weights in maps.values():
        assert weights.shape == (2, 4, 5, 5)
        assert (weights.triu(1) == 0).all()
        assert (weights[1, :, 2:, :2] == 0).all()
    for weights, window in zip(maps.values(), made.config.windows, strict=True):
        out_of_sight = weights[0].tril(-5 if window is None else -window)
        assert (out_of_sight == 0).all()
        assert (weights[0].tril(-4 if window is None else 1 - window) != out_of_sight).any()


@pytest.mark.usefixtures("unchecked")
def test_refuses_tokens_and_lengths():
    made, tokens = model("modern"), prompts()
    for call in (made, lambda src: made.start_decoding(src, max_len=2)):
        with pytest.raises(ValueError, match="must hold ids from 0 to 10, got 11"):
            call(tokens + 1)
    with pytest.raises(ValueError, match="tokens must be no longer than max_len = 20, got 25"):
        made(tokens.repeat(1, 5))
    with pytest.raises(ValueError, match="prompt and max_len together must be at most 20, got 21"):
        made.start_decoding(tokens, max_len=16)
    longest = made.start_decoding(tokens, max_len=15)
    for y in range(15):
        made.decode_next(tokens[:, 0], longest)
        assert longest.length == 6 + y


@KINDS
def test_every_part_drops_out_and_all_attention_is_the_packages(kind):
    made = DecoderOnly(CONFIGS[kind].replace(dropout=0.25))
    rates = [m.p for m in made.modules() if isinstance(m, Dropout)]
    assert rates == [0.25] * (1 + 2 * 2)  # the embedding, two sub-layers in two blocks
    assert sum(isinstance(m, MultiHeadAttention) for m in made.modules()) == 2


def test_prompts_padded_on_the_right_are_refused():
    """Behind padding, what is written would follow nothing; positions would count it."""
    made, right = model("modern"), torch.tensor([[7, 8, 9], [6, 5, 0]])
    message = "src must be padded on the left, .* got the padding id 0 behind a word"
    for use_cache in (True, False):
        with pytest.raises(ValueError, match=message):
            greedy_decode(made, right, bos_id=1, eos_id=2, max_len=2, use_cache=use_cache)
    made(right)  # to read a text is another matter


@KINDS
def test_texts_that_join_and_leave_go_on_as_each_does_alone(kind):
    made, g = model(kind).double(), torch.Generator().manual_seed(2)
    texts = [torch.randint(3, 11, (1, n), generator=g) for n in (9, 6, 14, 8)]
    whole = [made(text)[0] for text in texts]
    read = [3, 1, 7, 2]  # of each the prompt; the rest comes in steps
    state, inside = made.start_decoding(texts[0][:, : read[0]], max_len=6), [0]

    def step():
        """A word more of each text that is inside."""
        words = torch.cat([texts[i][0, read[i]][None] for i in inside])
        logits = made.decode_next(words, state)
        for i, row in zip(inside, logits, strict=True):
            assert_close(row, whole[i][read[i]], rtol=0, atol=1e-12)
            read[i] += 1

    def join(i, room):
        state.join(made.start_decoding(texts[i][:, : read[i]], max_len=room))
        inside.append(i)

    with torch.no_grad():
        step()
        join(1, 5)
        step()
        join(2, 7)  # longer than all, in a larger room
        step()
        state.select(torch.tensor([2, 1]))  # the first leaves, the others change places
        inside[:] = [2, 1]
        step()
        join(3, 6)
        step()
        state.select(torch.tensor([1, 2]))  # the longest leaves
        inside[:] = [1, 3]
        step()
    assert read == [6, 6, 10, 4]
    assert state.length.tolist() == [[6], [4]]


def test_only_prompts_without_padding_that_were_read_can_join():
    made = model("modern")
    read, padded = (made.start_decoding(p, max_len=3) for p in (prompts()[:1], prompts()))
    with pytest.raises(ValueError, match="without padding"):
        read.join(padded)
    nothing = made.start_decoding(torch.empty(1, 0, dtype=torch.long), max_len=3)
    with pytest.raises(ValueError, match="must hold a position or more, got none"):
        read.join(nothing)
