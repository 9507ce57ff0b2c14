"""Our parts with their weights compute what those of Hugging Face compute: GPT-2 to Gemma 3.

Their models are made here, with random weights; nothing is downloaded.
"""

import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.package.test_model import shaken
from transformer.decoding import greedy_decode
from transformer.family.hugging_face import (
    load_bert,
    load_gemma3,
    load_gpt2,
    load_llama,
    load_mistral,
)

FULL, WINDOW = "full_attention", "sliding_attention"
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
# Sizes that all differ, an eps that shows, and in each row what the others have not.
GPT2 = {
    "usual": {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 20, "n_positions": 17},
    "wide": {"n_embd": 10, "n_layer": 3, "n_head": 5, "n_positions": 14, "layer_norm_epsilon": 0.1},
    "exact gelu, untied": {
        **{"n_embd": 8, "n_layer": 1, "n_head": 4, "n_inner": 7, "n_positions": 13},
        **{"activation_function": "gelu", "tie_word_embeddings": False, "layer_norm_epsilon": 0.03},
    },
}
BERT = {
    "usual": {
        **{"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3},
        **{"intermediate_size": 20, "max_position_embeddings": 17},
    },
    "relu, three segments": {
        **{"hidden_size": 10, "num_hidden_layers": 3, "num_attention_heads": 5},
        **{"intermediate_size": 21, "max_position_embeddings": 14, "layer_norm_eps": 0.1},
        **{"hidden_act": "relu", "type_vocab_size": 3},
    },
    "gelu_new": {
        **{"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 4},
        **{"intermediate_size": 7, "max_position_embeddings": 13, "hidden_act": "gelu_new"},
    },
}
LLAMA = {
    "grouped": {
        **{"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6},
        **{"num_key_value_heads": 2, "intermediate_size": 20, "max_position_embeddings": 17},
        "rms_norm_eps": 0.1,
    },
    "tied, another base": {
        **{"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2},
        **{"intermediate_size": 19, "max_position_embeddings": 14, "tie_word_embeddings": True},
        "rope_parameters": {"rope_theta": 50.0, "rope_type": "default"},
    },
    "one head of keys, biases": {
        **{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4},
        **{"num_key_value_heads": 1, "intermediate_size": 7, "max_position_embeddings": 13},
        **{"attention_bias": True, "mlp_bias": True},
    },
    "heads of another width": {
        **{"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3},
        **{"head_dim": 6, "intermediate_size": 19, "max_position_embeddings": 15},
    },
}
# Texts have nine words, and more where they are written on.
MISTRAL = {
    "windows": {
        **{"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6},
        **{"num_key_value_heads": 2, "intermediate_size": 20, "max_position_embeddings": 17},
        **{"rms_norm_eps": 0.1, "sliding_window": 4},
    },
    "narrow windows, wide heads": {
        **{"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2},
        **{"num_key_value_heads": 1, "intermediate_size": 19, "max_position_embeddings": 14},
        **{"tie_word_embeddings": True, "head_dim": 10, "sliding_window": 2},
        "rope_parameters": {"rope_theta": 50.0, "rope_type": "default"},
    },
    "without windows": {
        **{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4},
        **{"num_key_value_heads": 4, "intermediate_size": 7, "max_position_embeddings": 13},
        "sliding_window": None,
    },
}
GEMMA3 = {
    "five of six": {
        **{"hidden_size": 12, "num_hidden_layers": 7, "num_attention_heads": 2},
        **{"num_key_value_heads": 1, "intermediate_size": 20, "max_position_embeddings": 17},
        **{"head_dim": 8, "query_pre_attn_scalar": 5, "rms_norm_eps": 0.1, "sliding_window": 3},
    },
    "other bases and layers, untied": {
        **{"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6},
        **{"num_key_value_heads": 2, "intermediate_size": 19, "max_position_embeddings": 14},
        **{"head_dim": 4, "query_pre_attn_scalar": 4, "sliding_window": 4},
        **{"tie_word_embeddings": False, "layer_types": [FULL, WINDOW, FULL]},
        "rope_parameters": {
            FULL: {"rope_theta": 50.0, "rope_type": "default"},
            WINDOW: {"rope_theta": 7.0, "rope_type": "default"},
        },
    },
}


def real(make, config, sizes, seed=0):
    """A model of theirs, all of whose weights are away from where they start, in float64."""
    torch.manual_seed(0)
    made = make(config(vocab_size=29, **ENDS, **sizes))
    return shaken(made, torch.float32, seed).double().eval()


def gpt2(hf, name="usual", seed=0):
    return real(hf.GPT2LMHeadModel, hf.GPT2Config, GPT2[name], seed)


def bert(hf, name="usual", make="BertForMaskedLM"):
    return real(getattr(hf, make), hf.BertConfig, BERT[name])


def llama(hf, name="grouped", seed=0):
    return real(hf.LlamaForCausalLM, hf.LlamaConfig, LLAMA[name], seed)


def mistral(hf, name="windows", seed=0):
    return real(hf.MistralForCausalLM, hf.MistralConfig, MISTRAL[name], seed)


def gemma3(hf, name="five of six", seed=0):
    return real(hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, GEMMA3[name], seed)


def texts(side="right"):
    """Four rows, the second and the third with padding on one side."""
    tokens = torch.randint(3, 29, (4, 9), generator=torch.Generator().manual_seed(1))
    for row, n in ((1, 3), (2, 8)):
        tokens[row, :n] = 0
    return tokens.flip(1) if side == "right" else tokens


def assert_same(mine, wanted, tokens, atol):
    """At every position that is a word; and there is something to compare."""
    words = tokens != 0
    assert wanted[words].std() > 0.5
    assert_close(mine[words], wanted[words].detach(), rtol=0, atol=atol)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("make", ["BertForMaskedLM", "BertForPreTraining"])
@pytest.mark.parametrize("name", BERT)
def test_bert_is_the_real_one(hf, name, make, side):
    theirs, tokens = bert(hf, name, make), texts(side)
    ours = load_bert(theirs.state_dict(), theirs.config.to_dict()).double()
    types = torch.arange(9).expand(4, 9) % theirs.config.type_vocab_size
    inputs = {"attention_mask": (tokens != 0).long(), "token_type_ids": types}
    wanted = theirs(tokens, **inputs)[0]
    assert_same(ours(tokens, types), wanted, tokens, 1e-12)
    hidden = theirs.bert(tokens, **inputs)
    assert_same(ours.encode(tokens, types), hidden.last_hidden_state, tokens, 1e-12)
    if ours.pooler is None:
        assert hidden.pooler_output is None
    else:
        assert_close(
            ours.pooler(ours.encode(tokens, types)), hidden.pooler_output, rtol=0, atol=1e-12
        )
    assert_same(ours(tokens), theirs(tokens, attention_mask=tokens != 0)[0], tokens, 1e-12)


DECODERS = [
    *((gpt2, load_gpt2, name) for name in GPT2),
    *((llama, load_llama, name) for name in LLAMA),
    *((mistral, load_mistral, name) for name in MISTRAL),
    *((gemma3, load_gemma3, name) for name in GEMMA3),
]


of_each_decoder = pytest.mark.parametrize(
    ("make", "load", "name"), DECODERS, ids=[name for _, _, name in DECODERS]
)


@pytest.mark.parametrize("side", ["right", "left"])
@of_each_decoder
def test_a_decoder_is_the_real_one(hf, make, load, name, side):
    theirs, tokens = make(hf, name), texts(side)
    ours = load(theirs.state_dict(), theirs.config.to_dict()).double()
    words = (tokens != 0).long()
    where = (words.cumsum(1) - 1).clamp(min=0)  # as their generate has it
    wanted = theirs(tokens, attention_mask=words, position_ids=where).logits
    # those of today turn and normalise in float32
    tolerance = 1e-12 if make is gpt2 else 5e-6 * wanted.abs().max().item()
    assert_same(ours(tokens), wanted, tokens, tolerance)
    assert not ours.training


LOADERS = [
    *((gpt2, load_gpt2), (bert, load_bert), (llama, load_llama)),
    *((mistral, load_mistral), (gemma3, load_gemma3)),
]
NAMES = ["gpt2", "bert", "llama", "mistral", "gemma3"]
of_each = pytest.mark.parametrize(("make", "load"), LOADERS, ids=NAMES)


def test_a_model_and_its_config_may_be_the_objects_themselves(hf):
    theirs = gpt2(hf)
    wanted = load_gpt2(theirs.state_dict(), theirs.config.to_dict())
    for ours in (load_gpt2(theirs), load_gpt2(theirs.state_dict(), theirs.config)):
        assert ours.config == wanted.config
        assert_close(ours.state_dict(), wanted.state_dict(), rtol=0, atol=0)


@of_each
@pytest.mark.parametrize("shard", ["1GB", "4KB"])
def test_a_folder_holds_the_same_model(hf, make, load, shard, tmp_path):
    theirs = make(hf).float()
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1 or shard == "4KB"
    from_file, direct = load(tmp_path), load(theirs.state_dict(), theirs.config.to_dict())
    assert from_file.config == direct.config
    for mine, wanted in zip(from_file.parameters(), direct.parameters(), strict=True):
        assert torch.equal(mine, wanted)
    assert load(str(tmp_path)).pad_id == 0


@pytest.mark.parametrize("shard", ["1GB", "4KB"])
def test_no_other_file_in_a_folder_is_read(hf, shard, tmp_path):
    theirs = llama(hf).float()
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    wanted = load_llama(tmp_path).state_dict()
    others = {name: x + 1 for name, x in theirs.state_dict().items()}
    save_file(others, tmp_path / "model_other.safetensors")
    assert_close(load_llama(tmp_path).state_dict(), wanted, rtol=0, atol=0)
    index = tmp_path / "model.safetensors.index.json"
    if shard == "1GB":
        index.write_text("no index, which nobody asks where there is one file")
        assert_close(load_llama(tmp_path).state_dict(), wanted, rtol=0, atol=0)
        return
    next(tmp_path.glob("model-00002-*")).unlink()
    with pytest.raises(FileNotFoundError, match="model-00002-"):
        load_llama(tmp_path)
    index.write_text("{}")
    with pytest.raises(ValueError, match=f"^{index} is not an index of weights: "):
        load_llama(tmp_path)


def test_files_as_they_are_published(hf):
    causal, theirs = torch.ones(17, 17).tril()[None, None], gpt2(hf)
    old = {name.removeprefix("transformer."): x for name, x in theirs.state_dict().items()}
    del old["lm_head.weight"]
    old |= {"h.0.attn.bias": causal, "h.1.attn.masked_bias": torch.tensor(-1e4)}
    assert_loads_alike(load_gpt2, theirs, old)
    theirs = bert(hf, make="BertForPreTraining")
    old = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): x
        for name, x in theirs.state_dict().items()
    }
    assert any(name.endswith("gamma") for name in old)
    assert_loads_alike(load_bert, theirs, old | {"bert.embeddings.position_ids": torch.arange(17)})
    theirs, frequencies = llama(hf), {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}
    assert_loads_alike(load_llama, theirs, theirs.state_dict() | frequencies)


def assert_loads_alike(load, theirs, old):
    config = theirs.config.to_dict()
    new, again = load(theirs.state_dict(), config), load(old, config)
    for mine, wanted in zip(again.parameters(), new.parameters(), strict=True):
        assert torch.equal(mine, wanted)


def test_half_precision_files_become_float32_models(hf, tmp_path):
    theirs = llama(hf).to(torch.bfloat16)
    theirs.save_pretrained(tmp_path)
    ours = load_llama(tmp_path)
    assert {p.dtype for p in ours.parameters()} == {torch.float32}
    assert torch.equal(ours.output.weight, theirs.lm_head.weight.float())


MISSING = [
    (gpt2, load_gpt2, "transformer.h.1.mlp.c_proj.bias"),
    (gpt2, load_gpt2, "transformer.h.0.attn.c_attn.bias"),
    (bert, load_bert, "cls.predictions.transform.LayerNorm.bias"),
    (llama, load_llama, "lm_head.weight"),
    (mistral, load_mistral, "model.layers.0.mlp.up_proj.weight"),
    (gemma3, load_gemma3, "model.layers.2.post_feedforward_layernorm.weight"),
]


@pytest.mark.parametrize(("make", "load", "name"), MISSING, ids=[name for _, _, name in MISSING])
def test_refuses_weights_that_are_missing_or_left_over(hf, make, load, name):
    theirs = make(hf)
    weights, config = theirs.state_dict(), theirs.config.to_dict()
    few = {each: x for each, x in weights.items() if each != name}
    with pytest.raises(ValueError, match=rf"weights must .* too few, \['{name}'\], or many, \[\]"):
        load(few, config)
    with pytest.raises(ValueError, match=rf"too few, \[\], or many, \['{name}\.more'\]"):
        load(weights | {f"{name}.more": torch.ones(1)}, config)
    with pytest.raises(ValueError, match=rf"{name} must make .* \(.*\), got \([12],.*\)"):
        load(
            weights | {name: torch.ones(2, 2) if weights[name].dim() > 1 else torch.ones(2)}, config
        )


WRONG = [
    (gpt2, load_gpt2, {"model_type": "gpt_neo"}, "config must .* 'gpt2', got 'gpt_neo'"),
    (gpt2, load_gpt2, {"activation_function": "silu"}, "an activation of .*, got 'silu'"),
    (gpt2, load_gpt2, {"scale_attn_weights": False}, "scale_attn_weights = True .* got False"),
    (gpt2, load_gpt2, {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx = False"),
    (gpt2, load_gpt2, {"add_cross_attention": True}, "add_cross_attention = False"),
    (bert, load_bert, {"position_embedding_type": "relative_key"}, "type = 'absolute'"),
    (bert, load_bert, {"is_decoder": True}, "is_decoder = False"),
    (bert, load_bert, {"tie_word_embeddings": False}, "tie_word_embeddings = True"),
    (llama, load_llama, {"hidden_act": "gelu"}, "hidden_act = 'silu' .* got 'gelu'"),
    (llama, load_llama, {"attention_bias": True}, "mlp_bias = True for our parts, got False"),
    (llama, load_llama, {"rope_parameters": {"rope_type": "llama3"}}, "'default' .* 'llama3'"),
    (llama, load_llama, {"rope_parameters": None, "rope_scaling": {"type": "yarn"}}, "got 'yarn'"),
    (llama, load_llama, {"rope_scaling": {"rope_type": "linear"}}, "got 'linear'"),  # and the other
    (mistral, load_mistral, {"model_type": "ministral"}, "model_type 'mistral', got 'ministral'"),
    (mistral, load_mistral, {"hidden_act": "gelu"}, "hidden_act = 'silu' .* got 'gelu'"),
    (mistral, load_mistral, {"layer_types": [FULL] * 2}, r"layer_types = None .* got \['full"),
    (mistral, load_mistral, {"rope_parameters": {"rope_type": "yarn"}}, "'default' .* got 'yarn'"),
    (gemma3, load_gemma3, {"model_type": "gemma3"}, "model_type 'gemma3_text', got 'gemma3'"),
    (gemma3, load_gemma3, {"hidden_activation": "silu"}, "'gelu_pytorch_tanh' .* got 'silu'"),
    (gemma3, load_gemma3, {"attention_bias": True}, "attention_bias = False .* got True"),
    (gemma3, load_gemma3, {"attn_logit_softcapping": 50.0}, "attn_.* = None .* got 50.0"),
    (gemma3, load_gemma3, {"final_logit_softcapping": 30.0}, "final_.* = None .* got 30.0"),
    (gemma3, load_gemma3, {"use_bidirectional_attention": True}, "attention = False .* got True"),
    (gemma3, load_gemma3, {"rope_scaling": {"rope_type": "linear"}}, "'default' .* got 'linear'"),
    (gemma3, load_gemma3, {"rope_parameters": {FULL: {"type": "yarn"}}}, "got 'yarn'"),
    (gemma3, load_gemma3, {"rope_parameters": {WINDOW: {"type": "yarn"}}}, "got 'yarn'"),
    (gemma3, load_gemma3, {"rope_parameters": {"rope_type": "default"}}, r"each .*\['rope_type'\]"),
    (llama, load_llama, {"mlp_bias": None}, "mlp_bias = False .* got None"),
    # A null that stands for nothing is refused, and so is what would give other numbers in silence.
    (gpt2, load_gpt2, {"n_embd": "16"}, "must be an integer, got '16"),
    (gpt2, load_gpt2, {"activation_function": None}, "an activation of .*, got None"),
    (gpt2, load_gpt2, {"tie_word_embeddings": None}, "tie_embeddings must be a bool, got None"),
    (llama, load_llama, {"hidden_act": None}, "hidden_act = 'silu' .* got None"),
    (llama, load_llama, {"rope_parameters": {"rope_theta": None}}, "rope_theta must .*, got None"),
    (mistral, load_mistral, {"rope_parameters": None, "rope_theta": None}, "rope_.* got None"),
    (gemma3, load_gemma3, {"query_pre_attn_scalar": 0}, "must be a positive number, got 0"),
    (gemma3, load_gemma3, {"query_pre_attn_scalar": None}, "query_pre_attn_scalar .* got None"),
    (
        *(gemma3, load_gemma3, {"layer_types": None, "sliding_window_pattern": -6}),
        "sliding_window_pattern must be a positive number, got -6",
    ),
]


@pytest.mark.parametrize(("make", "load", "changes", "message"), WRONG)
@pytest.mark.usefixtures("unchecked")
def test_refuses_models_that_our_parts_cannot_be(hf, make, load, changes, message):
    theirs = make(hf)
    with pytest.raises((TypeError, ValueError), match=message):
        load(theirs.state_dict(), theirs.config.to_dict() | changes)


@pytest.mark.usefixtures("unchecked")
def test_refuses_what_is_no_model(hf, tmp_path):
    theirs = gpt2(hf)
    weights, config = theirs.state_dict(), theirs.config.to_dict()
    with pytest.raises(ValueError, match=r"config must come with a state dict, as .* got None"):
        load_gpt2(weights)
    del (short := dict(config))["n_embd"]
    with pytest.raises(ValueError, match=r"config must have 'n_embd', got only \['_name_or_path'"):
        load_gpt2(weights, short)
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ValueError, match="weights must be a model, its state dict or a folder"):
            load_gpt2(folder)
    save_file({"x": torch.ones(1)}, tmp_path / "model.safetensors")
    assert load_file(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="weights must be a model, its state dict or a folder"):
        load_gpt2(tmp_path)
    with pytest.raises(ValueError, match=r"config must come with a state dict, as .* got None"):
        load_gpt2(torch.nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"weights must be a model, .*, got int"):
        load_gpt2(5)
    untied = weights | {"lm_head.weight": weights["lm_head.weight"] + 1}
    with pytest.raises(ValueError, match=r"lm_head\.weight and transformer\.wte\.weight must be"):
        load_gpt2(untied, config)


DAMAGED_WEIGHTS = {
    "cut off": lambda data: data[: len(data) // 2],
    "a pickle": lambda data: pickle.dumps([1]),
}


@pytest.mark.parametrize("damage", DAMAGED_WEIGHTS)
def test_a_damaged_file_is_named(hf, damage, tmp_path):
    llama(hf).save_pretrained(tmp_path)
    file, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    file.write_bytes(DAMAGED_WEIGHTS[damage](file.read_bytes()))
    with pytest.raises(ValueError, match=f"^{file} is damaged: "):
        load_llama(tmp_path)
    config.write_bytes(config.read_bytes()[:-3])
    with pytest.raises(ValueError, match=f"^{config} is not the config of a model: "):
        load_llama(tmp_path)


def test_what_may_be_null_in_a_config_follows_from_the_rest(hf):
    theirs = llama(hf, "heads of another width")
    nulls = {"rope_parameters": None, "rope_scaling": None, "num_key_value_heads": None}
    ours = load_llama(theirs.state_dict(), theirs.config.to_dict() | nulls).config
    assert (ours.rope_theta, ours.n_key_heads) == (10_000.0, None)
    theirs = gpt2(hf, "wide")
    assert (
        load_gpt2(theirs.state_dict(), theirs.config.to_dict() | {"n_inner": None}).config.d_ff
        == 40
    )


def test_padding_is_what_is_asked_for_or_what_the_config_keeps_for_nothing_else(hf):
    theirs = gpt2(hf)
    weights, config = theirs.state_dict(), theirs.config.to_dict()
    assert load_gpt2(weights, config).pad_id == 0
    assert load_gpt2(weights, config, pad_id=7).pad_id == 7
    assert load_gpt2(weights, config | {"pad_token_id": 2}, pad_id=2).pad_id == 2
    for of_texts in (
        {"pad_token_id": None},
        {"pad_token_id": 2},  # where a text ends
        {"pad_token_id": 1},  # where it begins
        {"pad_token_id": 6, "eos_token_id": [5, 6]},
        {"pad_token_id": -1},  # as in the first Llama's config
    ):
        assert load_gpt2(weights, config | of_texts).pad_id is None
    with pytest.raises(ValueError, match="pad_id must be an id of both vocabularies, got 50256"):
        load_gpt2(weights, config, pad_id=50_256)


# GPT-2 and SmolLM have one token for the beginning of a text, its end and, when asked, padding.
END = 5
ONE_TOKEN = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": None}
PACKED = {
    "inside": [7, 8, END, 9, 10, 11, 12],
    "in front": [END, END, 7, 8, 9, 10, 11],
    "packed": [END, 7, 8, 9, END, 10, END],
    "nothing else": [END] * 7,
}


def with_one_token(make, load, hf, name, seed=0, **changes):
    """Their model, whose texts are separated by ``END``, and ours with its weights."""
    theirs = make(hf, name, seed)
    for key, token in {**ONE_TOKEN, **changes}.items():
        setattr(theirs.config, key, token)
        setattr(theirs.generation_config, key, token)
    return theirs, load(theirs.state_dict(), theirs.config.to_dict()).double()


@pytest.mark.parametrize("padding", [None, END], ids=["no padding", "the end"])
@of_each_decoder
def test_the_end_of_a_text_is_a_token_like_any_other(hf, make, load, name, padding):
    theirs, ours = with_one_token(make, load, hf, name, pad_token_id=padding)
    tokens = torch.tensor(list(PACKED.values()))
    wanted = theirs(tokens).logits.detach()
    assert_close(ours(tokens), wanted, rtol=0, atol=1e-5)
    hidden = load(theirs.state_dict(), theirs.config.to_dict(), pad_id=END).double()
    apart = (hidden(tokens) - wanted).abs().amax(dim=(1, 2))
    assert (apart[:3] > 0.01).all(), "these texts cannot tell padding from an end"


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@of_each_decoder
def test_greedy_decoding_ends_where_their_generate_ends(hf, make, load, name, use_cache):
    theirs, ours = with_one_token(make, load, hf, name, seed=3)
    g = torch.Generator().manual_seed(4)
    prompt = torch.randint(29, (40, 4), generator=g)  # the end stands in some of them
    assert (prompt[:, :-1] == END).any()
    # The end is made as likely, in both, as is needed for it to come at about one step in ten.
    logits = theirs(prompt).logits.detach()
    bias = (logits.amax(dim=-1) - logits[..., END]).quantile(0.1)
    for head in (theirs.get_output_embeddings(), ours.output):
        head.register_forward_hook(lambda _, x, logits: logits + bias * is_end(logits))
    wanted = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False,
        pad_token_id=END,
    )[:, 4:]  # fmt: skip
    written = greedy_decode(
        ours, prompt[:, :-1], bos_id=prompt[:, -1], eos_id=END, max_len=8, use_cache=use_cache
    )
    assert torch.equal(written, wanted)
    lengths = (written != END).sum(dim=1)
    assert 5 < (lengths < 8).sum() < 40, "some texts end, and some do not"
    assert len(lengths.unique()) > 2


def is_end(logits):
    return torch.nn.functional.one_hot(torch.tensor(END), logits.size(-1)).to(logits)


def test_dropout_is_the_configs(hf):
    theirs = gpt2(hf)
    weights, config = theirs.state_dict(), theirs.config.to_dict()
    assert load_gpt2(weights, config | {"resid_pdrop": 0.3}).config.dropout == 0.3
    assert (
        load_gpt2(weights, {k: x for k, x in config.items() if k != "resid_pdrop"}).config.dropout
        == 0.1
    )
    theirs = bert(hf)
    config = theirs.config.to_dict() | {"hidden_dropout_prob": 0.25}
    assert load_bert(theirs.state_dict(), config).config.dropout == 0.25


@pytest.mark.parametrize(
    ("make", "load", "name", "original"),
    [
        (gpt2, load_gpt2, "usual", "transformer.wte.weight"),
        (bert, load_bert, "usual", "bert.embeddings.word_embeddings.weight"),
        (llama, load_llama, "tied, another base", "model.embed_tokens.weight"),
        (mistral, load_mistral, "narrow windows, wide heads", "model.embed_tokens.weight"),
        (gemma3, load_gemma3, "five of six", "model.embed_tokens.weight"),
    ],
    ids=NAMES,
)
def test_a_tied_table_may_be_stored_under_its_other_name_alone(hf, make, load, name, original):
    theirs = make(hf, name)
    few = {key: x for key, x in theirs.state_dict().items() if key != original}
    assert len(few) == len(theirs.state_dict()) - 1
    assert_loads_alike(load, theirs, few)


@pytest.mark.parametrize(
    ("make", "load", "name", "tied"),
    [
        (gpt2, load_gpt2, "usual", True),
        (llama, load_llama, "grouped", False),
        (mistral, load_mistral, "windows", False),
        (gemma3, load_gemma3, "five of six", True),
    ],
)
def test_a_config_that_does_not_say_whether_tables_are_tied_means_what_it_did(
    hf, make, load, name, tied
):
    theirs = make(hf, name)
    config = theirs.config.to_dict()
    del config["tie_word_embeddings"]
    assert load(theirs.state_dict(), config).config.tie_embeddings == tied


def test_the_base_of_rotation_may_stand_beside_the_other_values(hf):
    theirs = llama(hf, "tied, another base")
    config = theirs.config.to_dict()
    del config["rope_parameters"]
    ours = load_llama(theirs.state_dict(), config | {"rope_theta": 50.0, "rope_scaling": None})
    assert ours.config.rope_theta == 50.0
    assert load_llama(theirs.state_dict(), config).config.rope_theta == 10_000.0


def test_a_config_that_does_not_name_a_window_has_mistrals_first(hf):
    theirs = mistral(hf, "without windows")
    weights, config = theirs.state_dict(), theirs.config.to_dict()
    assert load_mistral(weights, config).config.window is None
    del config["sliding_window"]
    assert load_mistral(weights, config).config.window == hf.MistralConfig().sliding_window == 4096


@pytest.mark.parametrize("pattern", [{}, {"sliding_window_pattern": 3}])
def test_windows_and_bases_of_rotation_as_gemma_3_is_published(hf, pattern):
    config = gemma3(hf).config.to_dict()
    for name in ("rope_parameters", "layer_types", "_sliding_window_pattern"):
        del config[name]
    old = config | {"rope_theta": 60.0, "rope_local_base_freq": 5.0, "rope_scaling": None} | pattern
    for about in (config | pattern, old):
        made = hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**about))
        theirs = shaken(made, torch.float32).double().eval()
        ours = load_gemma3(theirs.state_dict(), about).double()
        wanted = theirs(texts()).logits
        assert_same(ours(texts()), wanted, texts(), 5e-6 * wanted.abs().max().item())
        every = pattern.get("sliding_window_pattern", 6)
        assert [window is None for window in ours.config.windows] == [
            i % every == every - 1 for i in range(7)
        ]
    assert (ours.config.rope_theta, ours.config.local_rope_theta) == (60.0, 5.0)


def test_gains_of_half_precision_are_added_in_full(hf, tmp_path):
    theirs = gemma3(hf).to(torch.bfloat16)
    theirs.save_pretrained(tmp_path)
    ours = load_gemma3(tmp_path)
    assert torch.equal(ours.norm.weight, 1 + theirs.model.norm.weight.float())
    assert not torch.equal(ours.norm.weight, (1 + theirs.model.norm.weight).float())
