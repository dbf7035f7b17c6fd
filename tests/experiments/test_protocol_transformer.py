"""Protocols of the papers on a transformer, which they were written for."""

import pytest

pytest.importorskip("transformers")

from tests.cli.conftest import call_main, write_table
from tests.encoders.transformers import LABELS, TEXTS, make_model

STUDIES = [
    ("gunel-fewshot", "fewshot", "ce_scl"),
    pytest.param("dualcl", "shots", "dualcl", marks=pytest.mark.slow),
    pytest.param("lacon", "imbalance", "lacon", marks=pytest.mark.slow),
    pytest.param("css-lm", "fewshot", "css_lm", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("protocol", "study", "system"), STUDIES)
@pytest.mark.filterwarnings("ignore")
def test_a_protocol_runs_on_a_transformer(protocol, study, system, tmp_path):
    model = make_model(tmp_path / "tiny-bert")
    texts = [
        (label, f"{text} {mark}")
        for mark in ("aji", "bali", "chwiya", "daba", "ewa", "fhal")
        for text, label in zip(TEXTS, LABELS, strict=True)
    ]
    files = {
        name: write_table(tmp_path / f"{name}.tsv", [(a, f"{b} {name[0]}") for a, b in texts])
        for name in ("train", "dev", "test")
    }
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(f"klma{i} {text}" for i, text in enumerate(TEXTS)))
    words = ["--protocol", protocol, "--study", study, "--encoder", "transformer"]
    words += ["--model", model, "--epochs", 1, "--seeds", 1, "--unlabelled", pool]
    out = tmp_path / "out"
    given = "--dev", files["dev"], "--test", files["test"]
    outcome = call_main("compare", files["train"], *given, *words, "--out", out)
    assert outcome.code == 0, outcome.err
    lines = next(out.rglob("results.jsonl")).read_text(encoding="utf-8")
    assert f'"objective":"{system}"' in lines
    (report,) = out.rglob("protocol.md")
    text = report.read_text(encoding="utf-8").replace("\\", "")
    assert system in text and "Its encoder here: tiny-bert" in text and "A BiLSTM" not in text
