import dataclasses

import pytest

from transformer.config import TransformerConfig


def test_defaults_are_the_papers_base_model():
    c = TransformerConfig(37_000, 37_000)
    assert (c.d_model, c.n_heads, c.d_k, c.d_ff, c.dropout) == (512, 8, 64, 2048, 0.1)
    assert (c.n_encoder_layers, c.n_decoder_layers) == (6, 6)
    assert (c.norm, c.position, c.pad_id, c.share_embeddings) == ("post", "sinusoidal", 0, True)
    assert c.max_len == 512
    assert c == TransformerConfig.base(37_000, 37_000)


def test_presets():
    made = {}
    for preset in (TransformerConfig.tiny, TransformerConfig.small, TransformerConfig.big):
        c = preset(10, 20)
        assert (c.src_vocab_size, c.tgt_vocab_size) == (10, 20)
        layers = (c.n_encoder_layers, c.n_decoder_layers)
        made[preset.__name__] = (c.d_model, c.n_heads, c.d_ff, layers, c.dropout)
    assert made == {
        "tiny": (64, 4, 256, (2, 2), 0.1),
        "small": (128, 4, 512, (2, 2), 0.1),
        "big": (1024, 16, 4096, (6, 6), 0.3),
    }


def test_tables_are_shared_where_they_can_be():
    assert TransformerConfig(10, 10).share_embeddings is True
    assert TransformerConfig(10, 11).share_embeddings is False
    assert TransformerConfig(10, 10, share_embeddings=False).share_embeddings is False


def test_a_changed_vocabulary_decides_about_sharing_anew():
    assert TransformerConfig(10, 10).replace(tgt_vocab_size=12).share_embeddings is False
    assert TransformerConfig(10, 12).replace(tgt_vocab_size=10).share_embeddings is True
    untied = TransformerConfig(10, 10, share_embeddings=False)
    assert untied.replace(d_model=64).share_embeddings is False


def test_past_the_vocabularies_all_is_by_keyword():
    with pytest.raises(TypeError, match="positional"):
        TransformerConfig(10, 10, 64)


def test_is_frozen_and_replace_validates():
    c = TransformerConfig(10, 10)
    with pytest.raises(dataclasses.FrozenInstanceError):
        c.d_model = 8
    assert c.replace(d_model=64).d_model == 64
    with pytest.raises(ValueError, match="d_model must be a multiple of n_heads, got 65 and 8"):
        c.replace(d_model=65)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"src_vocab_size": 0}, "src_vocab_size must be positive, got 0"),
        ({"tgt_vocab_size": -1}, "tgt_vocab_size must be positive, got -1"),
        ({"d_model": 0}, "d_model must be positive, got 0"),
        ({"n_encoder_layers": 0}, "n_encoder_layers must be positive, got 0"),
        ({"n_decoder_layers": -3}, "n_decoder_layers must be positive, got -3"),
        ({"d_ff": 0}, "d_ff must be positive, got 0"),
        ({"max_len": 0}, "max_len must be positive, got 0"),
        ({"d_model": 10, "n_heads": 4}, "multiple of n_heads, got 10 and 4"),
        ({"d_model": 9, "n_heads": 3}, "d_model must be even, a sine and a cosine each, got 9"),
        (
            {"d_model": 12, "n_heads": 4, "position": "rotary"},
            "d_k must be even, to be turned in pairs, got 3",
        ),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"norm": "none"}, r"norm must be one of \('post', 'pre'\), got 'none'"),
        ({"position": "no such"}, "position must be one of .*'rotary', .*, got 'no such'"),
        ({"pad_id": 10}, "pad_id must be an id of both vocabularies, got 10"),
        ({"n_key_heads": 3}, "n_heads must be a multiple of n_key_heads, got 8 and 3"),
        ({"norm_kind": "batch"}, r"norm_kind must be one of \('layer', 'rms'\), got 'batch'"),
        ({"norm_eps": 0.0}, "norm_eps must be positive and finite, got 0.0"),
        ({"feed_forward": "selu"}, "feed_forward must be one of .* got 'selu'"),
        ({"rope_theta": 0.0}, "rope_theta must be positive and finite, got 0.0"),
        ({"tgt_vocab_size": 11, "share_embeddings": True}, "two sizes, got 10 and 11"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(values, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**{"src_vocab_size": 10, "tgt_vocab_size": 10, **values})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pad_id": 0.5}, "pad_id must be an integer, got 0.5"),
        ({"pad_id": True}, "pad_id must be an integer, got True"),
        ({"bias": 1}, "bias must be a bool, got 1"),
        ({"d_model": 64.0}, r"d_model must be an integer, got 64\.0"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1'"),
        ({"share_embeddings": "no"}, "share_embeddings must be a bool, got 'no'"),
    ],
)
def test_refuses_types(values, message):
    with pytest.raises(TypeError, match=message):
        TransformerConfig(10, 10, **values)
