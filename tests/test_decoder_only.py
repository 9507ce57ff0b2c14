"""A model without a source trains and decodes with the package as it is."""

import math

import pytest
import torch
from torch.testing import assert_close

from tests.decoder_only import DecoderOnly
from tests.test_model import shaken
from transformer.data.batches import TextBatch
from transformer.decoding import beam_search, greedy_decode, sample
from transformer.training import evaluate_loss, fit, warmup_schedule

ENDS = {"eos_id": 2, "max_len": 6}


def model():
    torch.manual_seed(0)
    return shaken(DecoderOnly())


def prompts():
    """Four of different lengths, padded on the left; the last one is nothing but padding."""
    tokens = torch.randint(3, 11, (4, 5), generator=torch.Generator().manual_seed(1))
    tokens[1, :2], tokens[2, :4], tokens[3] = 0, 0, 0
    return tokens


def test_a_changed_token_changes_no_earlier_logit():
    made, tokens = model(), prompts()
    before = made(tokens)
    changed = tokens.clone()
    changed[0, 3] = 3 + changed[0, 3] % 8
    after = made(changed)
    assert torch.equal(after[0, :3], before[0, :3])
    assert (after[0, 3:] != before[0, 3:]).any()


@pytest.mark.parametrize("first", [1, torch.tensor([4, 5, 6, 7])])
def test_cached_decoding_from_prompts_is_decoding_without(first):
    made, ends = model(), {**ENDS, "bos_id": first}
    for search in (greedy_decode, beam_search):
        cached, whole = (search(made, prompts(), use_cache=c, **ends) for c in (True, False))
        assert_close(cached, whole, rtol=0, atol=1e-5)
    draws = [
        sample(made, prompts(), use_cache=c, generator=torch.Generator().manual_seed(0), **ends)
        for c in (True, False)
    ]
    assert torch.equal(*draws)


def test_a_prompt_goes_on_as_it_would_alone_and_with_its_last_word_as_the_first_token():
    made, tokens = model(), prompts()[:3]
    together = greedy_decode(made, tokens[:, :-1], bos_id=tokens[:, -1], **ENDS)
    for prompt, row in zip(tokens, together, strict=True):
        words = prompt[prompt != 0]
        alone = words[None]
        for y in row[row != 0]:
            assert made(alone)[0, -1, 1:].argmax() + 1 == y
            alone = torch.cat([alone, y[None, None]], dim=1)


def test_without_any_prompt_it_begins_with_the_first_token():
    made, nothing = model(), torch.empty(2, 0, dtype=torch.long)
    cached, whole = (
        greedy_decode(made, nothing, bos_id=1, use_cache=c, **ENDS) for c in (True, False)
    )
    assert torch.equal(cached, whole)


def test_keys_of_a_group_are_kept_once():
    made = model()
    state = made.start_decoding(prompts(), max_len=3)
    assert {tuple(cache.keys.shape) for cache in state.caches} == {(4, 2, 8, 4)}


def counting(i):
    """Rows that count upwards from anywhere, 3 … 10 and round again, with an end after six."""
    first = torch.randint(8, (16, 1), generator=torch.Generator().manual_seed(i))
    numbers = 3 + (first + torch.arange(6)) % 8
    ones = torch.ones(16, 1, dtype=torch.long)
    return TextBatch(torch.cat([ones, numbers, 2 * ones], dim=1))


def test_learns_to_count_resumes_and_counts_on(tmp_path):
    options = {"schedule": warmup_schedule(1e-2, warmup=20), "progress": False, "device": "cpu"}
    options |= {"smoothing": 0.0}
    torch.manual_seed(0)
    made, again = DecoderOnly(), DecoderOnly()
    before = evaluate_loss(made, [counting(1000)])
    fit(made, counting, n_steps=120, run=tmp_path, save_every=60, **options)
    after = evaluate_loss(made, [counting(1000)])
    # the first number of a row is one of eight; six that follow are certain
    assert before > 2.0
    assert math.log(8) / 7 < after < math.log(8) / 7 + 0.05
    fit(again, counting, n_steps=120, run=tmp_path, **options)
    assert all(
        torch.equal(p, q) for p, q in zip(made.parameters(), again.parameters(), strict=True)
    )
    prompt = torch.tensor([[1, 5, 6], [1, 9, 10]])
    written = greedy_decode(made, prompt, bos_id=torch.tensor([7, 3]), eos_id=2, max_len=5)
    assert written.tolist() == [[8, 9, 10, 2], [4, 5, 6, 2]]
