import copy
import itertools
from contextlib import nullcontext

import pytest
import torch

from transformer.attention import attention_weights
from transformer.masks import (
    causal_mask,
    checked_padding_mask,
    decoder_mask,
    note_of,
    noted,
    padding_mask,
)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("pad_id", [0, 9])
def test_padding_mask_is_true_at_words(dtype, pad_id):
    tokens = torch.tensor([[5, 7, pad_id], [4, pad_id, pad_id]], dtype=dtype)
    mask = padding_mask(tokens, pad_id)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_padding_mask_defaults_to_zero():
    assert padding_mask(torch.tensor([[1, 0]])).flatten().tolist() == [True, False]


@pytest.mark.parametrize("T", [0, 1, 5])
def test_causal_mask_is_true_at_the_past_and_the_present(T):
    mask = causal_mask(T)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[s <= t for s in range(T)] for t in range(T)]


def test_causal_mask_is_made_where_it_is_wanted():
    assert causal_mask(3, device="meta").device.type == "meta"


def test_together_they_broadcast_over_heads():
    tokens = torch.tensor([[3, 4, 5], [3, 0, 0]])
    mask = padding_mask(tokens) & causal_mask(3)
    x = torch.randn(2, 4, 3, 8, generator=torch.Generator().manual_seed(0))
    weights = attention_weights(x, x, mask)
    assert (weights > 0).sum(-1)[0, 0].tolist() == [1, 2, 3]
    assert (weights > 0).sum(-1)[1, 0].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.zeros(3, dtype=torch.long), r"tokens must have two axes \(B, S\), got shape \(3,\)"),
        (
            torch.zeros(1, 2, 3, dtype=torch.long),
            r"tokens must have two axes .* got shape \(1, 2, 3\)",
        ),
        (torch.zeros(2, 3), "tokens must hold integer ids, got torch.float32"),
        (torch.zeros(2, 3, dtype=torch.bool), "tokens must hold integer ids, got torch.bool"),
    ],
)
def test_tokens_that_are_no_tokens_are_refused(tokens, message, unchecked):
    with pytest.raises(ValueError, match=message):
        padding_mask(tokens)


def test_a_negative_length_is_refused():
    with pytest.raises(ValueError, match="T must not be negative, got -1"):
        causal_mask(-1)


@pytest.mark.parametrize("pad_id", [0, 1, 2, None])
def test_what_is_noted_of_ids_is_true_of_them(pad_id):
    rows = list(itertools.product(range(3), repeat=3))
    for batch in itertools.product(rows, repeat=2):  # every two sentences of three ids
        tokens = torch.tensor(batch)
        mask = checked_padding_mask(tokens, pad_id, 3, 9, name="src")
        assert torch.equal(mask, padding_mask(tokens, pad_id))
        words, together = mask[:, 0, 0], decoder_mask(mask).expand(2, 1, 3, 3)[:, 0]
        on_the_right = bool((words.sort(descending=True).values == words).all())
        if note_of(mask) == "full":
            assert words.all()
        assert (note_of(mask) in ("full", "right")) is (on_the_right and bool(words[:, 0].all()))
        assert torch.equal(decoder_mask(mask.clone()).expand(2, 1, 3, 3)[:, 0], together)
        assert together.any(dim=-1).all()
        seen = words[:, None] & causal_mask(3)
        assert torch.equal(together[words], seen[words])
        assert torch.equal(together[~words], causal_mask(3).expand(2, 3, 3)[~words])


@pytest.mark.parametrize("window", [1, 2, 3, 4, 9])
def test_in_a_window_the_last_positions_are_seen(window):
    rows = torch.tensor([[5, 6, 7, 8], [0, 0, 5, 6], [5, 6, 0, 0], [0, 5, 0, 6]])
    near = torch.tensor([[t - window < s <= t for s in range(4)] for t in range(4)])
    for tokens in (rows, rows[:1], rows[2:3], rows[1:2]):
        words = checked_padding_mask(tokens, 0, 9, 9, name="src")
        mask = decoder_mask(words, window)
        for made in (mask, decoder_mask(words.clone(), window)):
            made = made.expand(len(tokens), 1, 4, 4)[:, 0]
            word = tokens != 0
            assert torch.equal(made[word], (word[:, None] & near)[word])
            assert made.any(dim=-1).all()
        causal = window >= 4 and note_of(words) is not None
        assert note_of(mask) == ("causal" if causal else "keyed")


def test_a_batch_without_padding_needs_no_mask():
    assert note_of(checked_padding_mask(torch.tensor([[3, 4]]), 0, 9, 9, name="src")) == "full"


def test_what_is_made_of_a_mask_has_no_note():
    mask = noted(causal_mask(3), "causal")
    made = ~mask, mask[:2], mask & mask, mask.clone(), copy.deepcopy(mask)
    assert [note_of(x) for x in made] == [None] * 5


@pytest.mark.parametrize("mode", [nullcontext, torch.inference_mode])
def test_a_note_ends_where_the_mask_is_changed(mode):
    with mode():
        for change in (lambda x: x.__setitem__((..., 0), False), lambda x: x.T.fill_(False)):
            mask = noted(causal_mask(3), "causal")
            assert note_of(mask) == "causal"
            change(mask)
            assert note_of(mask) is None


def test_a_copy_has_no_note_though_it_has_been_changed_as_often():
    mask = causal_mask(3)
    for _ in range(5):
        mask &= True
    copied = copy.deepcopy(noted(mask, "causal"))
    while copied._version < mask._version:
        copied.fill_(False)
    assert note_of(copied) is None
