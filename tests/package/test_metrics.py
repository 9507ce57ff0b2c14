import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import tensor

from transformer.metrics import (
    alignment_accuracy,
    alignment_error_rate,
    alignment_from_attention,
    bleu,
    chrf,
    exact_match,
)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "same"),
    [
        ([5, 6, 2], [5, 6, 2], True),
        ([5, 6, 2], [5, 7, 2], False),
        ([5, 6, 2], [5, 6, 7, 2], False),
        ([5, 6, 7, 2], [5, 6, 2], False),
        ([5, 6, 2, 0, 0], [5, 6, 2], True),  # padding
        ([5, 6, 2, 9, 2], [5, 6, 2, 8], True),  # what follows <eos>
        ([5, 6, 0, 0], [5, 6], True),  # padding where there is no <eos>
        ([5, 6], [5, 6, 2], False),  # one that never ends
        ([5, 0, 6, 2], [5, 6, 2], False),  # <pad> said in the middle is a mistake
        ([5, 6, 2], [1, 5, 6, 2, 0], True),  # a row of Batch.tgt
        ([5, 1, 2], [5, 2], False),
        ([2], [2], True),
        ([], [], True),
        ([], [2], False),
    ],
)
def test_a_match_is_exact(hypothesis, reference, same):
    assert exact_match([hypothesis], [reference]) == same
    assert exact_match([reference], [hypothesis]) == same


def test_tensors_of_two_widths_and_lists_match():
    hypotheses = tensor([[5, 2, 0, 0], [6, 6, 6, 6], [7, 8, 2, 0], [2, 0, 0, 0]])
    references = tensor([[1, 5, 2], [1, 6, 2], [1, 8, 2], [1, 2, 0]])
    assert exact_match(hypotheses, references) == 0.5
    assert exact_match(hypotheses.tolist(), references) == 0.5
    assert type(exact_match(hypotheses, references)) is float


def test_bleu_by_hand():
    # Every n-gram of the short one is in the long one: only brevity costs, e^(1 - 6/4).
    short, long = "the cat sat on", "the cat sat on the mat"
    assert bleu(hypotheses=[short], references=[long]).score == pytest.approx(
        100 * math.exp(1 - 6 / 4)
    )
    # The other way round: 4 of 6 words (the second "the" is one too many), 3 of 5, 2 of 4, 1 of 3.
    precisions = [4 / 6, 3 / 5, 2 / 4, 1 / 3]
    assert bleu(hypotheses=[long], references=[short]).score == pytest.approx(
        100 * math.prod(precisions) ** 0.25
    )


def test_bleu_counts_over_the_corpus():
    # 4 + 4 of 8 words, 3 + 1 of 6 pairs, 2 + 0 of 4 triples, 1 + 0 of 2 fours; equally long
    hypotheses, references = ["a b c d", "a b d c"], ["a b c d", "a b c d"]
    expected = 100 * math.prod([8 / 8, 4 / 6, 2 / 4, 1 / 2]) ** 0.25
    assert bleu(hypotheses=hypotheses, references=references).score == pytest.approx(expected)


def test_bleu_says_how_it_was_computed():
    score = bleu(hypotheses=["A b c d."], references=["a b c d ."])
    assert score.score < 100
    assert "case:mixed" in score.signature
    assert "tok:13a" in score.signature
    lower = bleu(hypotheses=["A b c d."], references=["a b c d ."], lowercase=True)
    assert lower.score == pytest.approx(100)
    assert "case:lc" in lower.signature
    plain = bleu(hypotheses=["a b c d."], references=["a b c d ."], tokenize="none")
    assert plain.score < 70
    assert "tok:none" in plain.signature


@pytest.mark.parametrize(("hypothesis", "reference"), [("", "a b"), ("a b", ""), ("", "")])
def test_bleu_of_nothing_is_zero(hypothesis, reference):
    assert bleu(hypotheses=[hypothesis], references=[reference]).score == 0.0


def test_bleu_is_quiet_about_tokenized_text(caplog):
    bleu(hypotheses=["a b c d ."] * 200, references=["a b c d ."] * 200)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("我们今天去北京的天安门。", True),
        ("ここに猫がたくさんいます。", True),
        ("ฉันรักประเทศไทยมาก", True),
        ("我们 今天 去 北京 的 天安门 。", False),
        ("나는 한국어를 사랑한다", False),
        ("Donaudampfschifffahrtsgesellschaften", False),
    ],
)
def test_bleu_warns_of_text_that_it_takes_for_one_word(text, warned, caplog):
    for name in ("13a", "intl"):
        bleu(hypotheses=[text], references=[text], tokenize=name)
        said = f"BLEU finds no words in text without spaces by {name!r}; tokenize as 'zh' or 'char'"
        assert caplog.messages == [said] * warned
        caplog.clear()
    bleu(hypotheses=[text], references=[text], tokenize="char")
    assert not caplog.messages


def test_chrf_by_hand():
    # 4 letters on either side, without the space: 3 of 4 letters, 2 of 3 pairs, 1 of 2 triples,
    # 0 of 1 four; there are no longer ones, so precision and recall are means of these four.
    share = (3 / 4 + 2 / 3 + 1 / 2 + 0) / 4
    assert chrf(hypotheses=["a bcx"], references=["ab cd"]).score == pytest.approx(100 * share)
    # 4 of 8 letters are in the reference, 3 of 7 pairs, 2 of 6, 1 of 5; all of the reference's are
    # in the hypothesis. Of runs that only one side is long enough for, none is counted.
    precision = (4 / 8 + 3 / 7 + 2 / 6 + 1 / 5) / 4
    expected = 100 * 5 * precision / (4 * precision + 1)
    assert chrf(hypotheses=["abcdwxyz"], references=["abcd"]).score == pytest.approx(expected)


def test_chrf_says_how_it_was_computed():
    score = chrf(hypotheses=["A b"], references=["a b"])
    assert score.score < 100
    assert score.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    lower = chrf(hypotheses=["A b"], references=["a b"], lowercase=True)
    assert lower.score == pytest.approx(100)
    assert "case:lc" in lower.signature


SRC = tensor([[5, 6, 7, 2], [8, 9, 2, 0]])
TGT = tensor([[1, 15, 16, 2, 0], [1, 17, 18, 19, 2]])
WEIGHTS = tensor(
    [
        [[0.2, 0.5, 0.1, 0.2], [0.1, 0.1, 0.2, 0.6], [1.0, 0, 0, 0], [1.0, 0, 0, 0]],
        [[0.4, 0.6, 0, 0], [0.5, 0.5, 0, 0], [0.0, 0.1, 0.9, 0.0], [0.0, 1.0, 0, 0]],
    ]
)
ALIGNED = [{(1, 0), (2, 1)}, {(1, 0), (0, 1), (1, 2)}]


def test_row_t_is_target_word_t():
    # Row 0 stands at <bos> and predicts 15 or 17. <eos> and <pad> neither get nor give a link,
    # though row 1 of the first and row 2 of the second sentence look at <eos> most.
    assert alignment_from_attention(WEIGHTS, src=SRC, tgt=TGT) == ALIGNED


def test_an_unknown_word_is_a_word():
    src, tgt = tensor([[3, 5, 2]]), tensor([[1, 3, 2]])
    weights = tensor([[[0.7, 0.2, 0.1], [0.0, 0.0, 1.0]]])
    assert alignment_from_attention(weights, src=src, tgt=tgt) == [{(0, 0)}]


def test_sentences_without_words_have_no_links():
    weights = torch.full((2, 2, 2), 0.5)
    src, tgt = tensor([[2, 0], [5, 2]]), tensor([[1, 5, 2], [1, 2, 0]])
    assert alignment_from_attention(weights, src=src, tgt=tgt) == [set(), set()]


def test_accuracy_counts_words_that_have_a_partner():
    def accuracy(*gold):
        return alignment_accuracy(WEIGHTS, gold, src=SRC, tgt=TGT)

    assert accuracy(*ALIGNED) == 1.0
    assert accuracy({(0, 0), (1, 0)}, frozenset()) == 1.0  # one of two partners is enough
    assert accuracy({(0, 0)}, {(0, 1)}) == 0.5
    # summed over the corpus, not averaged over sentences: 0 of 1 and 2 of 3
    assert accuracy({(0, 0)}, {(1, 0), (0, 1), (0, 2)}) == 2 / 4
    assert accuracy({(0, 0), (2, 0), (0, 1)}, set()) == 0.0


def test_error_rate_by_hand():
    # |A| = 3, |S| = 2, |A ∩ S| = 1, |A ∩ P| = 2
    predicted, sure, possible = {(0, 0), (1, 1), (2, 2)}, {(0, 0), (1, 2)}, {(0, 0), (1, 2), (1, 1)}
    assert alignment_error_rate([predicted], [sure], [possible]) == pytest.approx(1 - 3 / 5)
    assert alignment_error_rate([predicted], [sure], [possible - sure]) == pytest.approx(1 - 3 / 5)
    assert alignment_error_rate([predicted], [sure]) == pytest.approx(1 - 2 / 5)
    # a second sentence, all wrong, adds its links: |A| + |S| = 5 + 4
    both = alignment_error_rate([predicted, {(0, 1)}], [sure, {(1, 0), (0, 0), (2, 0)}])
    assert both == pytest.approx(1 - 2 / 9)


links = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


@given(st.lists(st.tuples(links, links, links), min_size=1))
def test_error_rate_lies_between_its_ends(triples):
    predicted, sure, possible = zip(*triples, strict=True)
    if any(predicted) or any(sure):
        rate = alignment_error_rate(predicted, sure, possible)
        assert 0 <= rate <= alignment_error_rate(predicted, sure) <= 1
        assert (rate == 0) == all(
            s <= a <= s | p for a, s, p in zip(predicted, sure, possible, strict=True)
        )


def bad_weights(*shape, src=SRC, tgt=TGT, value=0.5):
    weights = torch.full(shape, value)
    return lambda: alignment_from_attention(weights, src=src, tgt=tgt)


def bad_gold(*gold):
    return lambda: alignment_accuracy(WEIGHTS, gold, src=SRC, tgt=TGT)


BAD = [
    (lambda: exact_match([], []), "hypotheses must hold at least one sentence, got none"),
    (
        lambda: exact_match([[2]], [[2], [2]]),
        "hypotheses must be as many as references, got 1 and 2",
    ),
    (
        lambda: chrf(hypotheses=["a"], references=["a", "b"]),
        "hypotheses must be as many as references, got 1 and 2",
    ),
    (
        lambda: bleu(hypotheses="ab", references=["a", "b"]),
        "hypotheses must be a list with one str a sentence, got 'ab'",
    ),
    (
        lambda: bleu(hypotheses=["a"], references=[["a"]]),
        r"references must be a list with one str a sentence, got \[\['a'\]\]",
    ),
    (
        lambda: bleu(hypotheses=["a"], references=["a"], tokenize="moses"),
        "tokenize must be one of .*'13a', .* got 'moses'",
    ),
    (
        bad_weights(2, 3, 4, 4),
        r"weights must have shape \(2, 4, 4\) .* heads averaged, got \(2, 3, 4, 4\)",
    ),
    (bad_weights(1, 4, 4), r"weights must have shape \(2, 4, 4\) .* got \(1, 4, 4\)"),
    (bad_weights(2, 4, 4, tgt=TGT[:1]), r"fit src \(2, 4\) and tgt \(1, 5\)"),
    (bad_weights(2, 4, 4, value=math.nan), "weights must be finite, got inf or NaN"),
    (bad_gold({(0, 0)}), "gold must be as many as weights, got 1 and 2"),
    (bad_gold(set(), set()), "gold must hold at least one link, got none"),
    (
        bad_gold(set(), {(2, 0)}),
        r"gold\[1\] must link 2 source words to 3 target words, got \(2, 0\)",
    ),
    (
        bad_gold({(0, 2)}, set()),
        r"gold\[0\] must link 3 source words to 2 target words, got \(0, 2\)",
    ),
    (bad_gold({(-1, 0)}, set()), r"gold\[0\] must link .* got \(-1, 0\)"),
    (bad_gold({(0, -1)}, set()), r"gold\[0\] must link .* got \(0, -1\)"),
    (
        lambda: alignment_error_rate([set()], [set()], [{(0, 0)}]),
        "predicted and sure must hold at least one link, got none",
    ),
    (
        lambda: alignment_error_rate([set()], [set(), set()]),
        "predicted must be as many as sure, got 1 and 2",
    ),
    (
        lambda: alignment_error_rate([set()], [set()], [set(), set()]),
        "possible must be as many as sure, got 2 and 1",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_cannot_be_measured_is_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()
