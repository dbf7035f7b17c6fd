"""The exported folder opens in sentence-transformers and gives the same vectors."""

import importlib.metadata
import json

import numpy as np
import pytest

from superconext.core.blank import zeros_for_blank
from superconext.core.errors import MissingExtraError
from superconext.export.sentence_module import SentenceModule, write_sentence_transformer
from tests.export.conftest import SENTENCES


def opened(folder):
    library = pytest.importorskip(
        "sentence_transformers", reason="needs the sentence-transformers extra"
    )
    # From version 6 on, every module that is not the library's own must be allowed.
    return library.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")


def test_the_folder_opens_and_embeds_alike(model, tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the sentence-transformers extra")
    write_sentence_transformer(model, tmp_path)
    other = opened(tmp_path)
    expected = zeros_for_blank(SENTENCES, model.features(SENTENCES))
    for size in (1, 5, 64):
        vectors = other.encode(SENTENCES, batch_size=size)
        assert vectors.shape == expected.shape and np.abs(vectors - expected).max() < 1e-6
    assert np.abs(other.encode("zwin bzaf") - model.features(["zwin bzaf"])[0]).max() < 1e-6
    assert other.similarity_fn_name == "cosine" and other.max_seq_length == model.config.max_length
    module = other[0]
    assert module.get_sentence_embedding_dimension() == expected.shape[1]
    assert len(list(tmp_path.rglob("*.bin"))) == len(list(tmp_path.rglob("*.pkl"))) == 0


def test_the_library_asks_leave_for_modules_not_its_own(model, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    if int(library.__version__.split(".")[0]) < 6:
        pytest.skip("asks since its version 6")
    write_sentence_transformer(model, tmp_path)
    # If this fails, the leave that the guide tells of is no longer needed.
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        library.SentenceTransformer(str(tmp_path), device="cpu")
    # Of modules that are there already nothing is asked.
    module = SentenceModule.load(str(tmp_path / "superconext"))
    vectors = library.SentenceTransformer(modules=[module], device="cpu").encode(SENTENCES)
    assert np.abs(vectors - zeros_for_blank(SENTENCES, model.features(SENTENCES))).max() < 1e-6


def test_what_the_library_saves_opens_again(model, tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the sentence-transformers extra")
    first = tmp_path / "first"
    first.mkdir()
    write_sentence_transformer(model, first)
    opened(first).save(str(tmp_path / "second"))
    again = opened(tmp_path / "second").encode(SENTENCES)
    assert np.abs(again - zeros_for_blank(SENTENCES, model.features(SENTENCES))).max() < 1e-6


def test_a_folder_is_saved_to_again(model, tmp_path):
    for _ in range(2):
        SentenceModule(model).save(str(tmp_path))
    again = SentenceModule.load(str(tmp_path)).model
    assert np.array_equal(again.features(["zwin bzaf"]), model.features(["zwin bzaf"]))


def test_the_module_works_without_the_library(model):
    module = SentenceModule(model)
    features = module(module.tokenize(["zwin bzaf", "khayyyb"]))
    vectors = features["sentence_embedding"].detach().numpy()
    assert np.abs(vectors - model.features(["zwin bzaf", "khayyyb"])).max() < 1e-6
    blank = module(module.tokenize(["", "zwin bzaf", " \u200b"]))["sentence_embedding"]
    assert blank.any(dim=1).tolist() == [False, True, False]
    prompted = module(module.preprocess(["bzaf"], prompt="zwin "))["sentence_embedding"]
    assert np.abs(prompted.detach().numpy() - vectors[:1]).max() < 1e-6
    mask = module.tokenize(["zwin bzaf", "zwin"])["attention_mask"]
    assert mask.bool().sum(dim=1).tolist() == [2, 1], "the words, and not what fills up"


def test_without_the_package_the_extra_is_named(model, tmp_path, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(MissingExtraError, match=r"superconext\[sentence-transformers\]"):
        write_sentence_transformer(model, tmp_path)


def test_a_blank_text_is_zeros_under_a_prompt_too(model):
    module = SentenceModule(model)
    vectors = module(module.preprocess([" ", "bzaf"], prompt="zwin "))["sentence_embedding"]
    assert vectors.any(dim=1).tolist() == [False, True]


def test_a_module_that_is_loaded_is_no_longer_in_training_and_has_its_weights(model, tmp_path):
    SentenceModule(model).train().save(str(tmp_path))
    module = SentenceModule.load(str(tmp_path))
    assert not any(part.training for part in module.modules())
    expected = sum(len(list(encoder.parameters())) for encoder in model.encoders)
    assert len(list(module.parameters())) == expected > 0, "which move to a device with it"


def test_modules_of_the_librarys_own_are_those_of_a_single_member_alone(
    model, tmp_path, monkeypatch
):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "5.0")
    own = [{"path": "", "type": "own"}]
    monkeypatch.setattr(type(model.encoders[0]), "sentence_modules", lambda *given: own)
    write_sentence_transformer(model, tmp_path)
    (module,) = json.loads((tmp_path / "modules.json").read_text(encoding="utf-8"))
    assert (module["type"] == "own") == (len(model.encoders) == 1)


def test_an_unknown_word_is_one_of_the_words_that_the_mask_shows(model):
    features = SentenceModule(model).tokenize(SENTENCES)
    lengths = features["attention_mask"].sum(dim=1)
    assert lengths.tolist() == features["sentence_lengths"].tolist()
