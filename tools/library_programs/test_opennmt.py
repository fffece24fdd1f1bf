"""OpenNMT-tf 1.25.3: models of made-up sentences, trained, evaluated and used from checkpoints."""

import opennmt
import pytest
import tensorflow as tf
from opennmt.utils.vocab import Vocab

SENTENCES = ["a b c d", "b c d e", "c d e a", "d e a b", "e a b c"] * 8


def described(folder):
    """Files of sentences and of their words, and a configuration that names them."""
    (folder / "run").mkdir()
    for name in ("source", "target"):
        (folder / f"{name}.txt").write_text("\n".join(SENTENCES) + "\n")
        vocab = Vocab(special_tokens=["<blank>", "<s>", "</s>"])
        vocab.add_from_text(str(folder / f"{name}.txt"))
        vocab.serialize(str(folder / f"{name}.vocab"))
    return {
        "model_dir": str(folder / "run"),
        "data": {
            "train_features_file": str(folder / "source.txt"),
            "train_labels_file": str(folder / "target.txt"),
            "eval_features_file": str(folder / "source.txt"),
            "eval_labels_file": str(folder / "target.txt"),
            "source_words_vocabulary": str(folder / "source.vocab"),
            "target_words_vocabulary": str(folder / "target.vocab"),
        },
        "params": {
            "optimizer": "AdamOptimizer", "learning_rate": 0.01, "beam_width": 2,
            "decoding_steps": 8, "average_loss_in_time": True,
        },
        "train": {"batch_size": 8, "train_steps": 60, "save_checkpoints_steps": 60,
                  "save_summary_steps": 20, "sample_buffer_size": 40},
        "eval": {"batch_size": 8},
        "infer": {"batch_size": 8},
    }  # fmt: skip


def inputters():
    return (
        opennmt.inputters.WordEmbedder("source_words_vocabulary", embedding_size=16),
        opennmt.inputters.WordEmbedder("target_words_vocabulary", embedding_size=16),
    )


def recurrent():
    return opennmt.models.SequenceToSequence(
        *inputters(),
        opennmt.encoders.BidirectionalRNNEncoder(1, 16, cell_class=tf.nn.rnn_cell.LSTMCell),
        opennmt.decoders.AttentionalRNNDecoder(1, 16, bridge=opennmt.layers.CopyBridge()),
    )


def transformer():
    return opennmt.models.Transformer(
        *inputters(), num_layers=1, num_units=16, num_heads=2, ffn_inner_dim=32, dropout=0.0
    )


@pytest.mark.parametrize("model", [recurrent, transformer])
def test_translation(model, tmp_path):
    runner = opennmt.Runner(model(), described(tmp_path), seed=3)
    runner.train()
    found = runner.evaluate()
    assert found["loss"] < 1.0
    runner.infer(str(tmp_path / "source.txt"), predictions_file=str(tmp_path / "out.txt"))
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert len(lines) == len(SENTENCES)
    assert sum(a == b for a, b in zip(lines, SENTENCES, strict=True)) > len(SENTENCES) // 2
