import json
import os
import pickle
import shutil

import huggingface_hub
import pytest
import torch
from huggingface_hub import RepoUrl
from safetensors.torch import load_file, save_file
from torch import nn
from torch.testing import assert_close

from tests.package.limits import largest_file
from transformer import Transformer, TransformerConfig, load_model, save_model
from transformer.family import DecoderOnly, EncoderOnly, FamilyConfig

FILES = ["config.json", "model.safetensors"]
SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 24, "max_len": 12}


def transformer(**changes):
    torch.manual_seed(0)
    return Transformer(TransformerConfig.tiny(11, 13, **{**SIZES, **changes}))


def family(kind, **changes):
    torch.manual_seed(0)
    return kind(FamilyConfig(11, n_layers=2, **{**SIZES, **changes}))


MODELS = {
    "a Transformer": lambda: transformer(position="rotary", norm="pre"),
    "one table of three": lambda: Transformer(TransformerConfig.tiny(11, 11, **SIZES)),
    "GPT": lambda: family(DecoderOnly, dropout=0.1),
    "a model of today": lambda: family(
        DecoderOnly, norm_kind="rms", feed_forward="swiglu", position="rotary", n_key_heads=1
    ),
    "one with windows": lambda: family(
        DecoderOnly, window=2, layer_types=("full_attention", "sliding_attention"), qk_norm=True
    ),
    "BERT": lambda: family(EncoderOnly, norm="post", n_token_types=2),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back_as_it_was_saved(kind, tmp_path):
    model = MODELS[kind]()
    assert save_model(model, tmp_path / "deep/model") == tmp_path / "deep/model"
    assert sorted(os.listdir(tmp_path / "deep/model")) == FILES
    assert os.listdir(tmp_path / "deep") == ["model"]
    loaded = load_model(str(tmp_path / "deep/model"))
    assert type(loaded) is type(model)
    assert loaded.config == model.config
    assert not loaded.training
    assert_close(loaded.state_dict(), model.state_dict(), rtol=0, atol=0)
    shared = [len({id(p) for p in m.parameters()}) for m in (loaded, model)]
    assert shared[0] == shared[1]
    tokens = torch.tensor([[4, 5, 6, 2]])
    given = (tokens, tokens) if type(model) is Transformer else (tokens,)
    assert_close(loaded(*given), model.eval()(*given), rtol=0, atol=0)


def test_tables_of_positions_are_made_anew_rather_than_saved(tmp_path):
    model = transformer(position="sinusoidal")
    saved = load_file(save_model(model, tmp_path / "model") / "model.safetensors").keys()
    tables = {name for name, _ in model.named_buffers()}
    assert tables
    assert not tables & saved


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_model_of_another_precision_comes_back_in_it(dtype, tmp_path):
    model = transformer().to(dtype)
    loaded = load_model(save_model(model, tmp_path / "model"))
    assert {p.dtype for p in loaded.parameters()} == {dtype}
    assert_close(loaded.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_the_model_that_was_there_is_replaced_and_nothing_else_ever_is(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()  # an empty one is as good as none
    save_model(transformer(), folder)
    save_model(transformer(d_ff=32), folder)
    assert load_model(folder).config.d_ff == 32
    assert os.listdir(tmp_path) == ["model"]
    (folder / "notes.txt").write_text("mine")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(ValueError, match=r"must be new, empty or a saved model, got .*/model"):
        save_model(transformer(), folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    (folder / "notes.txt").unlink()
    for data in (before["config.json"][:-9], b'{"model_type": "bert"}'):  # by whom is not known
        (folder / "config.json").write_bytes(data)
        with pytest.raises(ValueError, match=r"must be new, empty or a saved model, got .*/model"):
            save_model(transformer(), folder)
    assert (folder / "model.safetensors").read_bytes() == before["model.safetensors"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match=r"must be new, empty or a saved model, got .*/file"):
        save_model(transformer(), tmp_path / "file")


def test_what_a_killed_save_left_is_taken_away(tmp_path):
    folder = save_model(transformer(), tmp_path / "model")
    for name in FILES:
        (folder / f".transformer-{name}-1a2b3c4d").touch()
    save_model(transformer(), folder)
    assert sorted(os.listdir(folder)) == FILES


def test_by_the_names_of_hugging_face_it_is_the_same(tmp_path):
    model = MODELS["GPT"]()
    folder = model.save_pretrained(tmp_path / "model")
    loaded = DecoderOnly.from_pretrained(str(folder))
    assert loaded.config == load_model(folder).config == model.config
    assert_close(loaded.state_dict(), model.state_dict(), rtol=0, atol=0)
    with pytest.raises(ValueError, match=rf"{folder} must hold a Transformer, got a DecoderOnly$"):
        Transformer.from_pretrained(folder)


def test_a_model_goes_to_the_hub_and_comes_back_from_it(tmp_path, monkeypatch):
    calls = []

    class Hub:
        def __init__(self, token):
            calls.append(token)

        def create_repo(self, repo_id, **options):
            calls.append(options)
            return RepoUrl(f"https://hub/someone/{repo_id}", endpoint="https://hub")

        def upload_folder(self, *, repo_id, folder_path, **options):
            calls.append(options)
            cache = tmp_path / f"models--{repo_id.replace('/', '--')}"  # as they keep it
            (cache / "refs").mkdir(parents=True)
            (cache / "refs/main").write_text("0" * 40)
            shutil.copytree(folder_path, cache / "snapshots" / ("0" * 40))
            return repo_id

    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    model = transformer()
    name = model.push_to_hub("a-model", private=True, token="x", commit_message="first")
    assert calls == ["x", {"private": True, "exist_ok": True}, {"commit_message": "first"}]
    assert name == "someone/a-model"
    here = {"cache_dir": tmp_path, "local_files_only": True}
    loaded = Transformer.from_pretrained(name, **here)
    assert_close(loaded.state_dict(), model.state_dict(), rtol=0, atol=0)
    with pytest.raises(OSError, match="snapshot folder"):
        Transformer.from_pretrained("someone/another", **here)
    with pytest.raises(ValueError, match="'a/b/c'"):
        Transformer.from_pretrained("a/b/c", **here)


def test_nothing_but_safetensors_is_asked_for_or_read(saved, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda name, **kwargs: asked.update(kwargs) or saved
    )
    Transformer.from_pretrained("someone/a-model", revision="v2")
    assert asked == {"allow_patterns": FILES, "revision": "v2"}
    torch.save(transformer().state_dict(), saved / "pytorch_model.bin")
    (saved / FILES[1]).unlink()
    with pytest.raises(FileNotFoundError, match=FILES[1]):
        Transformer.from_pretrained(saved)


@pytest.mark.parametrize("size", [10, 3000])  # the first file does not fit, or the second
def test_a_full_disk_is_told_and_leaves_the_old_model(size, tmp_path):
    old, new = save_model(transformer(), tmp_path / "old"), tmp_path / "new"
    for folder in (old, new):
        with largest_file(size), pytest.raises(OSError, match=f"File too large: '{folder}/"):
            save_model(transformer(d_ff=32), folder)
    assert sorted(os.listdir(old)) == FILES
    assert load_model(old).config.d_ff == 24
    with pytest.raises(FileNotFoundError, match=f"{new}/model.safetensors"):
        load_model(new)
    assert load_model(save_model(transformer(), new)).config.d_ff == 24  # where a config is alone


def enlarge(m):
    m.src_embedding.tokens = nn.Embedding(99, 16)


def untie(m):
    m.output.weight = nn.Parameter(m.output.weight.clone())


def tie(m):
    m.encoder.layers[1] = m.encoder.layers[0]


def add(m):
    m.encoder.layers[0].adapter = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (enlarge, r"is not as its config makes it: src_embedding.tokens.weight is \(99, 16\), not"),
        (untie, r"is not as its config makes it: output.weight is \(11, 16\), not None$"),
        (
            tie,
            r"is not as .*: encoder.layers.1.feed_forward.W_1.bias is None, not \(24,\); .* more",
        ),
        (add, r"is not as its config makes it: encoder.layers.0.adapter.bias is \(2,\), not None;"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved_over_a_good_model(change, message, tmp_path):
    model = MODELS["one table of three"]()
    folder = save_model(model, tmp_path / "model")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    change(model)
    with pytest.raises(ValueError, match=f"^model {message}"):
        save_model(model, folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


@pytest.mark.usefixtures("unchecked")
def test_a_model_of_another_class_is_refused(tmp_path):
    class Mine(Transformer):
        """Whose forward may be any other."""

    namesake = type("Transformer", (Mine,), {})
    for model in (nn.Linear(2, 3), *(kind(transformer().config) for kind in (Mine, namesake))):
        with pytest.raises(ValueError, match=r"model must be one of \('Transformer', 'Decoder"):
            save_model(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.fixture
def saved(tmp_path):
    return save_model(transformer(), tmp_path / "model")


def test_a_file_that_is_missing_or_cut_off_is_named(saved):
    file = saved / FILES[1]
    data = file.read_bytes()
    for size in (0, 1, 100, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:size])
        with pytest.raises(ValueError, match=f"^{file} is "):
            load_model(saved)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=FILES[1]):
        load_model(saved)


def test_each_bit_of_a_weight_counts_and_each_of_the_config(saved):
    file = saved / FILES[1]
    data = bytearray(file.read_bytes())
    dropout = data.index(b": ", data.index(b"dropout")) + 2
    for at in (dropout, *torch.randint(len(data) // 2, len(data), (40,)).tolist()):
        data[at] ^= 1 << at % 3  # a digit stays one
        file.write_bytes(data)
        with pytest.raises(ValueError, match=f"^{file} is damaged: what it holds is not what was"):
            load_model(saved)
        data[at] ^= 1 << at % 3


def save_as(saved, about, tensors):
    """As ``save_model`` did before, without a digest; ``about`` is what it says."""
    (saved / FILES[0]).write_text(json.dumps(about))
    save_file(
        tensors, saved / FILES[1], metadata={"format": "pt", "transformer": json.dumps(about)}
    )


def said(saved):
    about = json.loads((saved / FILES[0]).read_text())
    del about["digest"]
    return about


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, r"is not a model .*its format is not 'transformer.saved 1'"),
        ({"config": []}, "is not a model .*its config must be of type dict"),
        ({"model": "os"}, r"must name one of \('Transformer', .*got 'os'"),
        ({"n_wings": 2}, "is of another model: .*'n_wings'"),
        ({"d_model": 7}, "is of another model: d_model must be a multiple"),
        (
            {"d_ff": 9},
            r"is of another model: decoder.layers.0.feed_forward.W_1.bias is \(24,\), not",
        ),
    ],
)
def test_what_save_model_did_not_write_is_refused_by_name(saved, change, message):
    about = said(saved)
    (about if change.keys() <= about.keys() else about["config"]).update(change)
    save_as(saved, about, load_file(saved / FILES[1]))
    with pytest.raises(ValueError, match=f"^{saved / FILES[1]} {message}"):
        load_model(saved)


def test_a_pickle_is_not_read(saved):
    (saved / FILES[1]).write_bytes(pickle.dumps([1]))
    with pytest.raises(ValueError, match=f"^{saved / FILES[1]} is damaged: "):
        load_model(saved)


def test_folders_from_before_there_was_a_digest_load_and_of_a_younger_field_is_the_default(saved):
    about = said(saved)
    del about["config"]["norm"]
    tensors = load_file(saved / FILES[1])
    save_as(saved, about, tensors)
    assert load_model(saved).config == transformer().config
    assert_close(load_model(saved).state_dict(), transformer().state_dict(), rtol=0, atol=0)
    save_file(tensors, saved / FILES[1])  # and before the weights said what they are
    assert_close(load_model(saved).state_dict(), transformer().state_dict(), rtol=0, atol=0)
    save_model(transformer(d_ff=32), saved)
    assert load_model(saved).config.d_ff == 32
