import pytest
import torch
from torch.testing import assert_close

from transformer.cache import Memory
from transformer.decoding.protocol import Decodable, Selectable
from transformer.recurrent import AttentionSeq2Seq, Seq2Seq

SRC_VOCAB, TGT_VOCAB, D, H = 11, 13, 5, 6  # all different, so that no swapped axis goes unseen
SRC = torch.tensor([[4, 5, 6, 7, 2], [8, 2, 0, 0, 0], [9, 10, 3, 2, 0]])
TGT = torch.tensor([[1, 4, 12, 2], [1, 6, 7, 8], [1, 2, 0, 0]])
(B, S), T = SRC.shape, TGT.size(1)
LENGTHS = [5, 2, 4]
SCORES = ["additive", "dot", "general"]
KINDS = [(Seq2Seq, {"cell": cell}) for cell in ("lstm", "rnn")]
KINDS += [(AttentionSeq2Seq, {"cell": cell}) for cell in ("lstm", "rnn")]
KINDS += [(AttentionSeq2Seq, {"score": score}) for score in ("dot", "general")]
EACH = pytest.mark.parametrize(
    ("kind", "options"), KINDS, ids=lambda x: x.__name__ if isinstance(x, type) else str(x)
)
BOTH = [Seq2Seq, AttentionSeq2Seq]


def make(kind, **options):
    torch.manual_seed(0)
    sizes = {"d_model": D, "hidden_size": H}
    return kind(SRC_VOCAB, TGT_VOCAB, **sizes | options).double()


def code_by_loops(model, src, tgt):
    """The decoder goes on from where the encoder ends; one pair of sentences, word by word."""
    state, logits = None, []
    for word in src:
        _, state = model.encoder.step(model.src_embedding(word)[None], state)
    for word in tgt:
        h, state = model.decoder.step(model.tgt_embedding(word)[None], state)
        logits.append(model.output(h[0]))
    return torch.stack(logits)


def attention_by_loops(model, score, src, tgt):
    """Bahdanau et al.'s decoder for one pair of sentences, one number at a time."""
    states = []
    for rnn, words in ((model.encoder.forward_rnn, src), (model.encoder.backward_rnn, src.flip(0))):
        state, half = None, []
        for word in words:
            h, state = rnn.step(model.src_embedding(word)[None], state)
            half.append(h[0])
        states.append(half)
    rightward, leftward = states[0], states[1][::-1]
    memory = [torch.cat(pair) for pair in zip(rightward, leftward, strict=True)]
    state = torch.tanh(model.W_s.weight @ leftward[0] + model.W_s.bias)[None]
    logits, alphas = [], []
    for word in tgt:
        alpha = torch.stack([score(state[0, :H], h) for h in memory]).softmax(0)
        context = sum(a * h for a, h in zip(alpha, memory, strict=True))
        s, state = model.decoder.step(torch.cat([model.tgt_embedding(word), context])[None], state)
        logits.append(model.output(torch.cat([s[0], context])))
        alphas.append(alpha)
    return torch.stack(logits), torch.stack(alphas)


def assert_same_with_gradients(model, found, wanted):
    assert_close(found, wanted, rtol=0, atol=1e-12)
    found, wanted = (
        torch.autograd.grad(logits.square().sum(), list(model.parameters()), retain_graph=True)
        for logits in (found, wanted)
    )
    assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "rnn"])
def test_a_fixed_code_equals_plain_loops(cell):
    model = make(Seq2Seq, cell=cell)
    wanted = [code_by_loops(model, SRC[b, : LENGTHS[b]], TGT[b]) for b in range(B)]
    assert_same_with_gradients(model, model(SRC, TGT), torch.stack(wanted))


@pytest.mark.parametrize("cell", ["lstm", "rnn"])
@pytest.mark.parametrize("score", SCORES)
def test_attention_equals_plain_loops(cell, score):
    model = make(AttentionSeq2Seq, cell=cell, score=score)
    s = model.score
    formula = {  # chapter 2
        "additive": lambda q, k: (s.v.weight @ torch.tanh(s.W.weight @ q + s.U.weight @ k))[0],
        "dot": lambda q, k: q @ k,
        "general": lambda q, k: q @ (s.W.weight @ k),
    }[score]
    alignment, wanted = model.alignment(SRC, TGT), []
    assert alignment.shape == (B, T, S)
    for b, length in enumerate(LENGTHS):
        logits, alphas = attention_by_loops(model, formula, SRC[b, :length], TGT[b])
        wanted.append(logits)
        assert_close(alignment[b, :, :length], alphas, rtol=0, atol=1e-12)
        assert (alignment[b, :, length:] == 0).all()
    assert_same_with_gradients(model, model(SRC, TGT), torch.stack(wanted))


@EACH
def test_the_protocol_of_the_transformer(kind, options):
    model = make(kind, **options)
    memory = model.encode(SRC)
    assert_close(model.decode(TGT, memory), model(SRC, TGT), rtol=0, atol=0)
    assert model(SRC, TGT).shape == (B, T, TGT_VOCAB)
    assert isinstance(model, Decodable)
    assert isinstance(memory, Selectable)
    assert isinstance(model.start_decoding(SRC, max_len=T), Selectable)
    assert (model.pad_id, model.tgt_vocab_size, model.takes_cache) == (0, TGT_VOCAB, True)
    assert model.max_len > 10**9


def test_a_memory_without_a_mask_is_all_words():
    model = make(AttentionSeq2Seq)
    vectors, mask = model.encode(SRC[:1])
    assert mask.all()
    found = model.decode(TGT[:1], Memory(vectors))
    assert_close(found, model(SRC[:1], TGT[:1]), rtol=0, atol=0)


@EACH
def test_another_id_may_be_padding(kind, options):
    model, other = make(kind, **options), make(kind, pad_id=10, **options)
    other.load_state_dict(model.state_dict())
    src = SRC[:2]  # where no word is 10
    assert_close(other(src.where(src != 0, 10), TGT[:2]), model(src, TGT[:2]), rtol=0, atol=1e-12)


@EACH
def test_the_shortest_sources_give_no_nan(kind, options):
    model = make(kind, **options)
    src = torch.tensor([[0, 0], [2, 0], [0, 0]])  # a row of padding only; and one word
    logits = model(src, TGT)
    grads = torch.autograd.grad(logits.square().sum(), list(model.parameters()))
    assert logits.isfinite().all()
    assert all(grad.isfinite().all() for grad in grads)
    assert model(SRC[:, :1], TGT[:, :1]).isfinite().all()
    if kind is AttentionSeq2Seq:
        alignment = model.alignment(src, TGT)
        assert (alignment[0] == 0).all()
        assert (alignment[1] == torch.tensor([1.0, 0.0])).all()


def test_keys_are_projected_once_a_sentence():
    model, calls = make(AttentionSeq2Seq), []
    model.score.U.register_forward_hook(lambda _, inputs, __: calls.append(inputs[0].shape))
    model(SRC, TGT)
    assert calls == [(B, S, H)]


def test_cells_are_what_was_asked_for():
    names = [type(make(AttentionSeq2Seq, cell=cell).decoder).__name__ for cell in ("lstm", "rnn")]
    assert names == ["LSTM", "RNN"]
    model = make(Seq2Seq)
    for cell in (model.encoder, model.decoder):
        assert (cell.W_x.bias.reshape(4, H)[1] == 1.0).all()  # remembers, to begin with


def test_no_two_parts_share_weights():
    def lstm(input_size, hidden_size):
        return 4 * hidden_size * (input_size + hidden_size + 1)

    def size(model):
        return sum(p.numel() for p in model.parameters())

    embeddings = (SRC_VOCAB + TGT_VOCAB) * D
    assert size(make(Seq2Seq)) == embeddings + 2 * lstm(D, H) + TGT_VOCAB * (H + 1)
    encoder, decoder, first = 2 * lstm(D, H // 2), lstm(D + H, H), 2 * H * (H // 2 + 1)
    shared = embeddings + encoder + decoder + first + TGT_VOCAB * (2 * H + 1)
    scores = {"additive": 2 * H * H + H, "general": H * H, "dot": 0}
    for score, own in scores.items():
        assert size(make(AttentionSeq2Seq, score=score)) == shared + own


IDS = torch.ones(1, 1, dtype=torch.long)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        (IDS * 11, IDS, "src must hold ids from 0 to 10, got 11"),
        (IDS, IDS * 13, "tgt must hold ids from 0 to 12, got 13"),
        (SRC, TGT[:2], "tgt must have as many rows as the memory, 3, got 2"),
    ],
)
def test_tokens_that_do_not_fit_are_named(kind, src, tgt, message, unchecked):
    with pytest.raises(ValueError, match=message):
        make(kind)(src, tgt)
    if kind is AttentionSeq2Seq:
        with pytest.raises(ValueError, match=message):
            make(kind).alignment(src, tgt)


def test_a_memory_that_does_not_fit_is_named(unchecked):
    def memory(*shape):
        return Memory(torch.zeros(shape).double())

    with pytest.raises(ValueError, match="tgt must have as many rows as the memory, 2, got 3"):
        make(Seq2Seq).decode(TGT, memory(2, 2 * H))
    with pytest.raises(ValueError, match=r"memory must have shape \(B, 12\), got \(3, 6\)"):
        make(Seq2Seq).decode(TGT, memory(B, H))
    with pytest.raises(ValueError, match=r"memory must have shape \(B, S, 6\), got \(3, 4, 5\)"):
        make(AttentionSeq2Seq).decode(TGT, memory(B, 4, 5))
    with pytest.raises(ValueError, match=r"memory must have shape \(B, S, 6\), got \(3, 12\)"):
        make(AttentionSeq2Seq).decode(TGT, memory(B, 2 * H))


@pytest.mark.parametrize(
    ("kinds", "options", "message"),
    [
        (BOTH, {"cell": "gru"}, r"cell must be one of \('lstm', 'rnn'\), got 'gru'"),
        (BOTH, {"pad_id": 11}, "pad_id must be an id of both vocabularies, got 11"),
        (BOTH[1:], {"hidden_size": 5}, "hidden_size must be even, half each way, got 5"),
        (BOTH[1:], {"score": "x"}, r"score must be one of .*'dot', 'general'.*, got 'x'"),
    ],
)
def test_models_that_cannot_be_made_are_refused(kinds, options, message, unchecked):
    for kind in kinds:
        with pytest.raises(ValueError, match=message):
            make(kind, **options)
