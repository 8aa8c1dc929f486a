"""The embedded default: a model without weights, which answers with what it is given.

``model`` is the provider. It reads the talk (``talking``), and then, whichever fits first: fills a schema
(``filling``), tells what the tools answered (``telling``), calls tools (``offering``), summarises (``summing_up``),
gives back what was said (``recalling``), or says honestly what it is. What the words mean to it stands in
``lexicon``; numbers, sums, days and places are read by files of their names. It knows English and German.
"""
