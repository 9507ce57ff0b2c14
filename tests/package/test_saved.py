import json
import multiprocessing
import os
import pickle
import shutil
import signal
from dataclasses import asdict

import huggingface_hub
import pytest
import torch
from huggingface_hub import RepoUrl
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.testing import assert_close

from tests.package.limits import kill_before, largest_file
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
    (folder / "config.json").write_bytes(before["config.json"][:-9])  # by whom is not known
    with pytest.raises(ValueError, match=r"must be new, empty or a saved model, got .*/model"):
        save_model(transformer(), folder)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match=r"must be new, empty or a saved model, got .*/file"):
        save_model(transformer(), tmp_path / "file")


@pytest.mark.parametrize("alone", [False, True], ids=["weights too", "a config alone"])
def test_a_model_of_hugging_face_is_not_replaced(alone, tmp_path):
    from transformers import BertConfig, BertForMaskedLM

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}
    BertForMaskedLM(BertConfig(**sizes, intermediate_size=8)).save_pretrained(tmp_path / "bert")
    assert sorted(os.listdir(tmp_path / "bert")) == FILES
    if alone:
        (tmp_path / "bert" / FILES[1]).unlink()
    before = {p.name: p.read_bytes() for p in (tmp_path / "bert").iterdir()}
    with pytest.raises(ValueError, match=r"must be new, empty or a saved model, got .*/bert"):
        save_model(transformer(), tmp_path / "bert")
    assert {p.name: p.read_bytes() for p in (tmp_path / "bert").iterdir()} == before


def test_a_link_to_a_folder_stays_one(tmp_path):
    save_model(transformer(), tmp_path / "model")
    (tmp_path / "latest").symlink_to("model")
    save_model(transformer(d_ff=32), tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert load_model(tmp_path / "model").config.d_ff == 32


def test_the_folder_itself_stays(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    folder.chmod(0o2775)  # as of a group
    monkeypatch.chdir(folder)
    before = os.stat(folder)
    for _ in range(2):
        save_model(transformer(), ".")
    assert load_model(".").config == transformer().config
    assert (os.stat(".").st_ino, os.stat(".").st_mode) == (before.st_ino, before.st_mode)


def save_until_killed(folder, number):
    kill_before(number, folder)
    save_model(transformer(d_ff=32), folder)


@pytest.mark.parametrize("old", [24, None])
def test_killed_at_any_moment_of_a_save_the_old_model_is_there_or_the_new(old, tmp_path):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__, "torch._dynamo"])
    number, found, folder = 0, [], tmp_path / "model"
    if old:
        save_model(transformer(d_ff=old), folder)
    while True:
        number, copy = number + 1, tmp_path / f"{number}/model"
        shutil.copytree(folder, copy) if old else copy.parent.mkdir()
        process = processes.Process(target=save_until_killed, args=(copy, number))
        process.start()
        process.join()
        try:
            model = load_model(copy)
        except FileNotFoundError:
            found.append(None)
        else:
            expected = transformer(d_ff=model.config.d_ff).state_dict()
            assert_close(model.state_dict(), expected, rtol=0, atol=0)
            found.append(model.config.d_ff)
        save_model(transformer(), copy)  # which takes away what is left of the other
        assert sorted(os.listdir(copy)) == FILES
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    turn = found.index(32)
    assert found == [old] * turn + [32] * (len(found) - turn)
    assert 1 < turn < len(found) - 1


@pytest.mark.parametrize("kind", MODELS)
def test_by_the_names_of_hugging_face_it_is_the_same(kind, tmp_path):
    model = MODELS[kind]()
    folder = model.save_pretrained(tmp_path / "model")
    loaded = type(model).from_pretrained(str(folder))
    assert type(loaded) is type(model)
    assert not loaded.training
    assert loaded.config == load_model(folder).config == model.config
    assert_close(loaded.state_dict(), model.state_dict(), rtol=0, atol=0)
    other = DecoderOnly if type(model) is Transformer else Transformer
    wanted = rf"{folder} must hold a {other.__name__}, got a {type(model).__name__}$"
    with pytest.raises(ValueError, match=wanted):
        other.from_pretrained(folder)


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
    with pytest.raises(OSError, match=r"^someone/another could not be fetched: "):
        Transformer.from_pretrained("someone/another", **here)
    with pytest.raises(ValueError, match=r"name must be a folder or .* on the Hub, got 'a/b/c'"):
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
def test_a_full_disk_is_told_by_the_folder_and_leaves_the_old_model(size, tmp_path):
    save_model(transformer(), tmp_path / "model")
    message = rf"{tmp_path}/model was not saved: .*File too large"
    with largest_file(size), pytest.raises(OSError, match=message):
        save_model(transformer(d_ff=32), tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert load_model(tmp_path / "model").config.d_ff == 24


def enlarge(m):
    m.src_embedding.tokens = nn.Embedding(99, 16)


def untie(m):
    m.output.weight = nn.Parameter(m.output.weight.clone())


def tie(m):
    m.encoder.layers[1] = m.encoder.layers[0]


def add(m):
    m.encoder.layers[0].adapter = nn.Linear(2, 2)


def spoil(m):
    nn.init.constant_(m.encoder.layers[1].feed_forward.W_1.bias, torch.inf)


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
        (spoil, "must hold finite numbers, got others in encoder.layers.1.feed_forward.W_1.bias$"),
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

    for model in (nn.Linear(2, 3), Mine(transformer().config)):
        with pytest.raises(ValueError, match=r"model must be one of \('Transformer', 'Decoder"):
            save_model(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.fixture
def saved(tmp_path):
    return save_model(transformer(), tmp_path / "model")


WANTED = asdict(TransformerConfig.tiny(11, 13, **SIZES))


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (b"{" * 10**5, "is not a model that save_model wrote"),
        (b"\xff\xfe", "is not a model that save_model wrote"),
        (pickle.dumps([1]), "is not a model that save_model wrote"),
        ({"format": "x"}, r"is not a model .*its format is not 'transformer.saved 1'"),
        ({"config": []}, "is not a model .*its config must be of type dict"),
        ({"model": "os"}, r"config.json must name one of \('Transformer', .*got 'os'"),
        ({"config": WANTED | {"n_wings": 2}}, "config.json holds no Transformer: .*'n_wings'"),
        ({"config": {"src_vocab_size": 9}}, "config.json holds no Transformer: .*'tgt_vocab_size'"),
        (
            {"config": WANTED | {"d_model": 7}},
            "config.json holds no Transformer: d_model must be a multiple",
        ),
        (
            {"config": WANTED | {"d_model": "8"}},
            r"config.json holds no Transformer: (.|\n)*'?d_model",
        ),
        ({"config": WANTED | {"tgt_vocab_size": 10**9}}, r"another model: output.weight is \(13,"),
        ({"config": WANTED | {"max_len": 10**12}}, "max_len must be at most 100,000,000"),
    ],
)
def test_what_save_model_did_not_write_is_refused_by_name(saved, about, message):
    if isinstance(about, dict):
        stored = json.loads((saved / FILES[0]).read_text())
        about = json.dumps(stored | about).encode()
    (saved / FILES[0]).write_bytes(about)
    with pytest.raises(ValueError, match=message) as refused:
        load_model(saved)
    assert str(saved) in str(refused.value)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_missing_or_cut_off_is_named(saved, file):
    data = (saved / file).read_bytes()
    (saved / file).write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=rf"{saved}/{file} is "):
        load_model(saved)


def test_each_bit_of_a_weight_counts(saved):
    data, wanted = bytearray((saved / FILES[1]).read_bytes()), f"{saved}/{FILES[1]} "
    for at in torch.randint(len(data) // 2, len(data), (40,)).tolist():
        data[at] ^= 1 << at % 8
        (saved / FILES[1]).write_bytes(data)
        with pytest.raises(ValueError, match=wanted):
            load_model(saved)
        data[at] ^= 1 << at % 8


def test_a_folder_from_before_there_were_digests_loads_and_needs_both_its_files(saved):
    about = json.loads((saved / FILES[0]).read_text())
    del about["sha256"]
    (saved / FILES[0]).write_text(json.dumps(about))
    save_file(load_file(saved / FILES[1]), saved / FILES[1], metadata={"format": "pt"})
    assert_close(load_model(saved).state_dict(), transformer().state_dict(), rtol=0, atol=0)
    for name in FILES:
        shutil.copytree(saved, saved.parent / name)
        (saved.parent / name / name).unlink()
        with pytest.raises(FileNotFoundError, match=name):
            load_model(saved.parent / name)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_waits_until_a_file_is_read(saved, monkeypatch):
    reached = []

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        reached.append("its end")
        return safe_open(*args)

    monkeypatch.setattr("transformer.tensors.safe_open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_model(saved)
    assert reached == ["its end"]


def test_tensors_of_other_names_shapes_types_and_values_are_refused(saved):
    file = saved / FILES[1]
    tensors = load_file(file)
    name = "encoder.layers.1.feed_forward.W_1.bias"
    for change, message in (
        ({name: torch.zeros(9)}, rf"is of another model: {name} is \(9,\), not \(24,\)$"),
        ({"x": torch.zeros(3)}, r"is of another model: x is \(3,\), not None$"),
        ({name: torch.full((24,), torch.nan)}, f"must hold finite numbers, got others in {name}$"),
        ({name: torch.zeros(24, dtype=torch.complex64)}, f"{name} is complex64, not float32$"),
    ):
        save_file(tensors | change, file)
        with pytest.raises(ValueError, match=f"{file} .*{message}"):
            load_model(saved)


def test_a_field_that_is_younger_than_the_file_has_its_default(saved):
    stored = json.loads((saved / FILES[0]).read_text())
    del stored["config"]["norm"]
    (saved / FILES[0]).write_text(json.dumps(stored))
    assert load_model(saved).config == transformer().config
