"""Our parts with their weights compute what GPT-2, BERT and Llama of Hugging Face compute.

Their models are made here, with random weights; nothing is downloaded.
"""

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.test_model import shaken
from transformer.decoding import greedy_decode
from transformer.family.hugging_face import load_bert, load_gpt2, load_llama

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
}


@pytest.fixture(scope="module")
def hf():
    import transformers

    transformers.logging.disable_progress_bar()
    return transformers


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
@pytest.mark.parametrize("name", GPT2)
def test_gpt2_is_the_real_one(hf, name, side):
    theirs, tokens = gpt2(hf, name), texts(side)
    ours = load_gpt2(theirs.state_dict(), theirs.config.to_dict()).double()
    words = (tokens != 0).long()
    where = (words.cumsum(1) - 1).clamp(min=0)  # as their generate has it
    wanted = theirs(tokens, attention_mask=words, position_ids=where).logits
    assert_same(ours(tokens), wanted, tokens, 1e-12)
    assert not ours.training


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


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", LLAMA)
def test_llama_is_the_real_one(hf, name, side):
    theirs, tokens = llama(hf, name), texts(side)
    ours = load_llama(theirs.state_dict(), theirs.config.to_dict()).double()
    wanted = theirs(tokens, attention_mask=(tokens != 0).long()).logits
    # theirs turns and normalises in float32
    assert_same(ours(tokens), wanted, tokens, 1e-6 * wanted.abs().max().item())
    assert not ours.training


CASES = [(gpt2, load_gpt2, name) for name in GPT2] + [(llama, load_llama, name) for name in LLAMA]


@pytest.mark.parametrize(("make", "load", "name"), CASES, ids=[name for _, _, name in CASES])
def test_greedy_decoding_is_their_generate(hf, make, load, name):
    theirs, prompt = make(hf, name, seed=3), texts("left")[:, 4:]
    ours = load(theirs.state_dict(), theirs.config.to_dict()).double()
    wanted = theirs.generate(
        prompt, attention_mask=(prompt != 0).long(), max_new_tokens=8, do_sample=False,
        suppress_tokens=[0],
    )[:, 5:]  # fmt: skip
    written = greedy_decode(ours, prompt[:, :-1], bos_id=prompt[:, -1], eos_id=2, max_len=8)
    assert torch.equal(written, wanted)
    assert len(wanted.unique()) > 2


@pytest.mark.parametrize(
    ("make", "load"), [(gpt2, load_gpt2), (bert, load_bert), (llama, load_llama)]
)
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


def test_files_as_they_were_published_years_ago(hf, tmp_path):
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
    (gpt2, load_gpt2, "transformer.wpe.weight"),
    (gpt2, load_gpt2, "transformer.h.0.attn.c_attn.bias"),
    (bert, load_bert, "cls.predictions.transform.LayerNorm.bias"),
    (llama, load_llama, "lm_head.weight"),
    (llama, load_llama, "model.layers.1.self_attn.k_proj.weight"),
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
    (gpt2, load_gpt2, {"model_type": "gpt_neo"}, "model_type 'gpt2', got 'gpt_neo'"),
    (gpt2, load_gpt2, {"activation_function": "silu"}, "an activation of .*, got 'silu'"),
    (gpt2, load_gpt2, {"scale_attn_weights": False}, "scale_attn_weights = True .* got False"),
    (gpt2, load_gpt2, {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx = False"),
    (gpt2, load_gpt2, {"add_cross_attention": True}, "add_cross_attention = False"),
    (bert, load_bert, {"position_embedding_type": "relative_key"}, "type = 'absolute'"),
    (bert, load_bert, {"is_decoder": True}, "is_decoder = False"),
    (bert, load_bert, {"tie_word_embeddings": False}, "tie_word_embeddings = True"),
    (llama, load_llama, {"hidden_act": "gelu"}, "hidden_act = 'silu' .* got 'gelu'"),
    (llama, load_llama, {"head_dim": 8}, "head_dim = 4 for our parts, got 8"),
    (llama, load_llama, {"attention_bias": True}, "mlp_bias = True for our parts, got False"),
    (llama, load_llama, {"rope_parameters": {"rope_type": "llama3"}}, "'default' .* 'llama3'"),
    (llama, load_llama, {"rope_parameters": None, "rope_scaling": {"type": "yarn"}}, "got 'yarn'"),
]


@pytest.mark.parametrize(("make", "load", "changes", "message"), WRONG)
def test_refuses_models_that_our_parts_cannot_be(hf, make, load, changes, message):
    theirs = make(hf)
    with pytest.raises(ValueError, match=f"config must have .*{message}"):
        load(theirs.state_dict(), theirs.config.to_dict() | changes)


def test_refuses_what_is_no_model(hf, tmp_path):
    theirs = gpt2(hf)
    weights, config = theirs.state_dict(), theirs.config.to_dict()
    with pytest.raises(ValueError, match=r"config must come with a state dict, as .* got None"):
        load_gpt2(weights)
    del (short := dict(config))["n_embd"]
    with pytest.raises(ValueError, match=r"config must have 'n_embd', got only \['_name_or_path'"):
        load_gpt2(weights, short)
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ValueError, match="weights must be a state dict or a folder with"):
            load_gpt2(folder)
    save_file({"x": torch.ones(1)}, tmp_path / "model.safetensors")
    assert load_file(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="weights must be a state dict or a folder with"):
        load_gpt2(tmp_path)
    untied = weights | {"lm_head.weight": weights["lm_head.weight"] + 1}
    with pytest.raises(ValueError, match=r"lm_head\.weight and transformer\.wte\.weight must be"):
        load_gpt2(untied, config)


def test_padding_is_the_configs_or_the_end_or_what_is_asked_for(hf):
    theirs = gpt2(hf)
    weights, config = theirs.state_dict(), theirs.config.to_dict()
    ends = {"pad_token_id": None, "eos_token_id": [5, 6]}
    assert load_gpt2(weights, config).pad_id == 0
    assert load_gpt2(weights, config, pad_id=7).pad_id == 7
    assert load_gpt2(weights, config | {"pad_token_id": None}).pad_id == 2
    assert load_gpt2(weights, config | ends).pad_id == 5
    with pytest.raises(ValueError, match="pad_id must be given for a config that has no"):
        load_gpt2(weights, config | {"pad_token_id": None, "eos_token_id": None})
    with pytest.raises(ValueError, match="pad_id must be an id of both vocabularies, got 50256"):
        load_gpt2(weights, config, pad_id=50_256)


def test_the_base_of_rotation_stood_elsewhere_once(hf):
    theirs = llama(hf, "tied, another base")
    config = theirs.config.to_dict()
    del config["rope_parameters"]
    ours = load_llama(theirs.state_dict(), config | {"rope_theta": 50.0, "rope_scaling": None})
    assert ours.config.rope_theta == 50.0
    assert load_llama(theirs.state_dict(), config).config.rope_theta == 10_000.0
