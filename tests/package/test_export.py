"""An exported model translates in other tools as it does here: transformers, CTranslate2, ONNX.

The models are made here, with random weights or a few steps of training; nothing is downloaded.
"""

import json
import warnings

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.package.odd_lines import odd_lines
from tests.package.test_model import shaken
from tests.package.unchecked import unchecked
from transformer.commands import main
from transformer.commands.run_folder import LoadedRun, load
from transformer.config import TransformerConfig
from transformer.data.batches import Batch, pad
from transformer.data.text import BytePairEncoding, Vocabulary, clean_line
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.decoding import beam_search, greedy_decode
from transformer.decoding.translate import translate
from transformer.export import save_marian
from transformer.layers import LayerNorm
from transformer.model import Transformer
from transformer.training import fit

LINES = ["Ein Hund läuft .", "zwei Hunde  laufen über das <eos> Gras", "Gras", "the <pad> dog"]
SIZES = {"d_model": 12, "n_heads": 3, "d_ff": 20, "n_encoder_layers": 2, "n_decoder_layers": 3}
ENDS = {"bos_id": BOS_ID, "eos_id": EOS_ID}


@pytest.fixture(scope="module")
def byte_pairs():
    return BytePairEncoding.train(
        ["the dog runs .", "ein Hund läuft über das Gras ."] * 3, vocab_size=290
    )


@pytest.fixture(scope="module")
def words():
    german = Vocabulary(["ein", "Hund", "läuft", "über", "das", "Gras", "."])
    return german, Vocabulary(["a", "dog", "runs", "over", "the", "grass"])


def random_model(src, tgt, **changes):
    config = TransformerConfig(len(src), len(tgt), **SIZES, max_len=57, **changes)
    torch.manual_seed(0)
    return shaken(Transformer(config), torch.float32).eval()


def sources(tokenizer):
    return pad([[*tokenizer.encode(line), EOS_ID] for line in LINES])


def up_to_the_end(tokens):
    """Of each row; what they fill the rest with is theirs."""
    rows = tokens.tolist()
    return [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in rows]


def learned_model(src, tgt):
    """One that has learned an answer by heart for each line, of different words and lengths."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(len(src), len(tgt), **SIZES, max_len=57))
    answers = [torch.randperm(len(tgt) - 4)[: 2 + i] + 4 for i in range(len(LINES))]
    targets = pad([[BOS_ID, *answer.tolist(), EOS_ID] for answer in answers])
    batch = Batch(sources(src), targets)
    options = {"schedule": lambda n: 0.01, "smoothing": 0.0, "progress": False}
    with unchecked():
        fit(model, lambda i: batch, n_steps=60, device="cpu", **options)
    return model.eval()


def exported(hf, folder, model, src, tgt, **options):
    """Their model and the tokenizers of both sides, from the files alone."""
    save_marian(model, folder, src_tokenizer=src, tgt_tokenizer=tgt, **options)
    theirs, report = hf.MarianMTModel.from_pretrained(folder, output_loading_info=True)
    assert not any(report[kind] for kind in ("unexpected_keys", "mismatched_keys"))
    assert {name.rpartition(".")[2] for name in report["missing_keys"]} <= {"weight"}
    one = hf.AutoTokenizer.from_pretrained(folder)
    other = folder / "target"
    return theirs.eval(), one, hf.AutoTokenizer.from_pretrained(other) if other.exists() else one


@pytest.fixture(scope="module")
def learned(byte_pairs, words):
    return {"byte pairs": learned_model(byte_pairs, byte_pairs), "words": learned_model(*words)}


@pytest.fixture(params=["shared", "shared, from zero", "words"])
def pair(request, hf, byte_pairs, words, tmp_path):
    """Our model and theirs, with our tokenizers and theirs."""
    src, tgt = words if request.param == "words" else (byte_pairs, byte_pairs)
    model = request.getfixturevalue("learned")["words" if src is not tgt else "byte pairs"]
    theirs = exported(
        hf, tmp_path / "new", model, src, tgt, start_from_zero="zero" in request.param
    )
    return (model, src, tgt), theirs


def test_the_logits_are_ours(pair):
    (model, src, tgt), (theirs, tokenizer, _) = pair
    texts = tokenizer(LINES, padding=True, return_tensors="pt")
    tokens = torch.randint(3, len(tgt), (len(LINES), 9), generator=torch.Generator().manual_seed(3))
    tokens[:, 0] = BOS_ID
    start = tokens.clone()
    start[:, 0] = theirs.config.decoder_start_token_id
    logits = theirs(**texts, decoder_input_ids=start).logits
    ours = model(sources(src), tokens)
    assert_close(logits[..., : len(tgt)], ours, atol=2e-5, rtol=0)
    assert (logits[..., len(tgt) :] < -1e8).all()  # the token that only starts


@pytest.mark.parametrize(("beams", "stop"), [(1, True), (4, True), (4, "never")])
def test_generate_writes_what_we_write(pair, beams, stop):
    (model, src, tgt), (theirs, tokenizer, other) = pair
    texts = tokenizer(LINES, padding=True, return_tensors="pt")
    how = {"length_penalty": 0.0, "early_stopping": stop} if beams > 1 else {}
    written = theirs.generate(**texts, num_beams=beams, max_length=16, **how)[:, 1:]
    given = sources(src)
    if beams == 1:
        ours = greedy_decode(model, given, **ENDS, max_len=15)
    else:
        how["early_stopping"] = stop is True
        ours, _ = beam_search(model, given, **ENDS, max_len=15, beam_size=beams, **how)
    assert up_to_the_end(written) == up_to_the_end(ours)
    assert len(written.unique()) > 6  # else any mistake would do
    assert len(set(map(len, up_to_the_end(ours)))) > 2
    read = [other.decode(row, skip_special_tokens=True) for row in written]
    assert read == [tgt.decode(row) for row in ours]


def test_generation_is_set_as_translate_decodes(pair):
    (model, *_), (theirs, *_) = pair
    chosen = theirs.generation_config
    assert (chosen.num_beams, chosen.early_stopping, chosen.length_penalty) == (4, True, 0.6)
    assert chosen.max_length == model.max_len + 1  # the start counts, but is no word
    assert chosen.suppress_tokens == [0]
    assert chosen.forced_eos_token_id is None


ODD = [
    *("", "Ein", " zwei  Leerzeichen ", "<eos>", "vor <pad> nach", "<eos>!", "e\u0301"),
    *("Über\tdas", "日本 🎉", "das <unk> Gras", "<pad><eos>", "Gras .", "ΟΔΟΣ ΣΑΣ"),
    "\u0130\u1e9e\u01c5",
]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", ["byte pairs", "words"])
def test_the_tokenizer_gives_our_ids(hf, byte_pairs, words, tmp_path, kind, lowercase):
    src, tgt = words if kind == "words" else (byte_pairs, byte_pairs)
    model = random_model(src, tgt)
    _, one, _ = exported(hf, tmp_path / "new", model, src, tgt, lowercase=lowercase)
    for text in [*ODD, *odd_lines()]:
        read = clean_line(text, lowercase=lowercase)
        assert one(text).input_ids == [*src.encode(read), EOS_ID], text
        assert one.decode(one(text).input_ids, skip_special_tokens=True) == src.decode(
            src.encode(read)
        )
    two = one("Ein", "Gras").input_ids  # as far as they read two texts at once
    assert two == [*one("Ein").input_ids, *one("Gras").input_ids]
    assert one.model_max_length == model.max_len
    assert (one.pad_token_id, one.bos_token_id, one.eos_token_id, one.unk_token_id) == (0, 1, 2, 3)
    assert set(one("Ein")) == {"input_ids", "attention_mask"}  # what the model takes


def test_their_model_can_be_saved_anew(hf, byte_pairs, tmp_path):
    model = random_model(byte_pairs, byte_pairs)
    theirs, *_ = exported(hf, tmp_path / "new", model, byte_pairs, byte_pairs)
    theirs.save_pretrained(tmp_path / "again")
    again = hf.MarianMTModel.from_pretrained(tmp_path / "again").eval()
    tokens = torch.tensor([[1, 5, 6]])
    wanted = model(tokens, tokens)
    assert_close(again(tokens, decoder_input_ids=tokens).logits, wanted, atol=2e-5, rtol=0)


def test_it_can_go_on_learning(hf, byte_pairs, tmp_path):
    """Their loss, of labels without a start, is ours."""
    model = random_model(byte_pairs, byte_pairs, dropout=0.25)
    theirs, *_ = exported(hf, tmp_path / "new", model, byte_pairs, byte_pairs)
    src, labels = torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 9, 2]])
    tgt = torch.tensor([[1, 7, 8, 9]])
    ours = nn.functional.cross_entropy(model(src, tgt)[0], labels[0])
    assert_close(theirs(src, labels=labels).loss, ours, atol=2e-5, rtol=0)
    c = theirs.config
    assert (c.dropout, c.attention_dropout, c.activation_dropout) == (0.25, 0.0, 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "pre"}, "model must have norm = 'post', as Marian has, got 'pre'"),
        ({"position": "learned"}, "model must have position = 'sinusoidal', as Marian has, got 'l"),
        ({"pad_id": 4}, "model must have pad_id = 0, as Marian has, got 4"),
    ],
)
def test_a_model_that_marian_cannot_be_is_refused(byte_pairs, tmp_path, changes, message):
    config = TransformerConfig(len(byte_pairs), len(byte_pairs), **SIZES | changes)
    model = Transformer(config)
    with pytest.raises(ValueError, match=message):
        save_marian(model, tmp_path / "new", src_tokenizer=byte_pairs, tgt_tokenizer=byte_pairs)
    assert not (tmp_path / "new").exists()


def test_parts_from_elsewhere_are_refused(byte_pairs, tmp_path):
    both = {"src_tokenizer": byte_pairs, "tgt_tokenizer": byte_pairs}
    model = random_model(byte_pairs, byte_pairs)
    model.encoder.norm = LayerNorm(12)
    with pytest.raises(ValueError, match=r"Marian's parts alone, got \['encoder.norm.bias', 'enc"):
        save_marian(model, tmp_path / "new", **both)
    model = random_model(byte_pairs, byte_pairs)
    model.decoder.layers[1].cross_attention.W_k = nn.Linear(12, 12, bias=False)
    with pytest.raises(ValueError, match=r"got none of the name decoder.layers.1.cross.*W_k.bias"):
        save_marian(model, tmp_path / "new", **both)
    model.decoder.layers[1].cross_attention.W_k = nn.Linear(12, 4)
    with pytest.raises(ValueError, match=r"W_k.weight must have 12 rows in Marian, got \(4, 12\)"):
        save_marian(model, tmp_path / "new", **both)
    assert not (tmp_path / "new").exists()


def test_what_does_not_belong_together_is_refused(byte_pairs, words, tmp_path):
    german, english = words
    model = random_model(german, english)
    with pytest.raises(ValueError, match="the model's 11 and 10 tokens, got 10 and 11"):
        save_marian(model, tmp_path / "new", src_tokenizer=english, tgt_tokenizer=german)
    options = {"src_tokenizer": german, "tgt_tokenizer": english}
    with pytest.raises(ValueError, match="one vocabulary for both languages, got one for each"):
        save_marian(model, tmp_path / "new", **options, start_from_zero=True)
    (tmp_path / "note").write_text("mine")
    for taken in (tmp_path, tmp_path / "note"):
        with pytest.raises(ValueError, match=f"folder must be new or empty, got '{taken}'"):
            save_marian(model, taken, **options)
    assert (tmp_path / "note").read_text() == "mine"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the command line, on lower-cased byte pairs: the target is the source, twice."""
    folder = tmp_path_factory.mktemp("runs")
    subjects, verbs = ("The cat", "A dog", "We", "My sister"), ("sleep", "eat", "never read")
    lines = [f"{subject} {verb}" for subject in subjects for verb in verbs]
    for name, text in (("src", lines), ("tgt", [f"{line} {line}" for line in lines])):
        (folder / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    options = ["--preset", "tiny", "--device", "cpu", "--quiet", "--lowercase", "--max-len", "99"]
    options += ["--vocab-size", "300", "--steps", "60", "--save-every", "30", "--dropout", "0"]
    files = [str(folder / "src"), str(folder / "tgt")]
    out = str(folder / "run")
    assert main(["train", "--out", out, "--train", *files, *options, "--peak", "0.005"]) == 0
    return folder / "run", lines


def test_the_command_exports_a_run(hf, run, tmp_path, capsys):
    folder, lines = run
    capsys.readouterr()
    new = tmp_path / "new"
    assert main(["export", str(folder), "--to", "marian", str(new), "--checkpoint", "last"]) == 0
    assert capsys.readouterr().out == f"{new}: step 60 of {folder}, for marian\n"
    theirs = hf.MarianMTModel.from_pretrained(new).eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(new)
    texts = tokenizer(lines, padding=True, return_tensors="pt")
    written = theirs.generate(**texts, max_length=60, length_penalty=0.0)
    loaded = load(folder, "last", device=torch.device("cpu"))
    lowered = [line.lower() for line in lines]
    ours = translate(lowered, loaded.model, *loaded.tokenizers, max_len=59, length_penalty=0.0)
    assert tokenizer.batch_decode(written, skip_special_tokens=True) == ours
    assert len(set(ours)) > 3  # it has learned to tell them apart


def test_the_command_tells_whose_each_tokenizer_is(monkeypatch, tmp_path):
    told = {}
    loaded = LoadedRun(None, ("source", "target"), False, "step 1")
    monkeypatch.setattr("transformer.commands.export.load_run", lambda _: loaded)
    monkeypatch.setattr(
        "transformer.commands.export.save_marian", lambda *_, **options: told.update(options)
    )
    assert main(["export", "run", "--to", "marian", str(tmp_path)]) == 0
    assert (told["src_tokenizer"], told["tgt_tokenizer"]) == loaded.tokenizers


def test_the_command_chooses_checkpoints_and_refuses_in_a_line(run, tmp_path, capsys):
    folder, _ = run
    capsys.readouterr()
    start = ["export", str(folder), "--to", "ctranslate2"]
    assert main([*start, str(tmp_path / "mean"), "--average", "2"]) == 0
    assert "mean of steps 30, 60" in capsys.readouterr().out
    settings = json.loads((tmp_path / "mean/config.json").read_text())
    assert settings["decoder_start_token_id"] == settings["vocab_size"] - 1
    assert main([*start, str(tmp_path / "mean")]) == 2
    assert "folder must be new or empty" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "none"), "--to", "marian", str(tmp_path / "x")]) == 2
    assert "must be the folder of a run" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", str(folder), str(tmp_path / "x")])
    assert "--to" in capsys.readouterr().err


@pytest.fixture
def ctranslate2():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "ctranslate2", reason="ctranslate2 is not installed: pip install ctranslate2"
        )


@pytest.mark.parametrize("beams", [1, 4])
def test_ctranslate2_writes_what_we_write(hf, run, tmp_path, beams, ctranslate2):
    folder, lines = run
    new = str(tmp_path / "new")
    assert main(["export", str(folder), "--to", "ctranslate2", new, "--checkpoint", "last"]) == 0
    converter = ctranslate2.converters.TransformersConverter
    converter(new).convert(str(tmp_path / "converted"))
    translator = ctranslate2.Translator(str(tmp_path / "converted"), intra_threads=1)
    tokenizer = hf.AutoTokenizer.from_pretrained(new)
    texts = [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids) for line in lines]
    options = {"beam_size": beams, "length_penalty": 0.0, "max_decoding_length": 59}
    results = translator.translate_batch(texts, suppress_sequences=[["<pad>"]], **options)
    ids = [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results]
    loaded = load(folder, "last", device=torch.device("cpu"))
    lowered = [line.lower() for line in lines]
    limits = {"beam_size": beams, "max_len": 59, "length_penalty": 0.0}
    ours = translate(lowered, loaded.model, *loaded.tokenizers, **limits)
    assert [tokenizer.decode(row, skip_special_tokens=True) for row in ids] == ours
    # the other folder would lose its last token there, and <bos>: the converter says so
    assert main(["export", str(folder), "--to", "marian", str(tmp_path / "other")]) == 0
    with pytest.raises(ValueError, match=r"[Vv]ocabulary"):
        converter(str(tmp_path / "other")).convert(str(tmp_path / "not"))
