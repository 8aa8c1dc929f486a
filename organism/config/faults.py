"""Where the faults of a configuration's files are gathered, so that all of them are told at once."""

from __future__ import annotations

from organism.errors import ConfigInvalid, Fault

Place = tuple[str | int, ...]
"""The way from the root to a value: keys of mappings and indexes of lists."""

MAX_NAMED = 2


class Faults:
    """What is wrong with one file, and with those that are read with it. ``line`` counts from 1."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._files = [file]
        self._found: list[tuple[int, int, str, Fault]] = []

    def of(self, file: str) -> Faults:
        """The faults of another file, told together with these, after them."""
        other = Faults(file)
        other._files, other._found = self._files, self._found
        self._files.append(file)
        return other

    @property
    def are_none(self) -> bool:
        """Whether nothing is wrong with this very file so far."""
        return all(file != self._file for _, _, file, _ in self._found)

    def add(self, line: int, place: Place, message: str) -> None:
        """Note a fault at ``FILE:LINE:KEY`` (``FILE:LINE`` where no key is to blame). ``place`` names the key."""
        self._note(line, f"{line}:{written(place)}" if place else str(line), message)

    def at(self, pointer: str, message: str) -> None:
        """Note a fault at a JSON pointer, as ``FILE:POINTER``; the whole file has the empty one."""
        self._note(1, pointer, message)

    def refuse_if_any(self) -> None:
        """Raise the refusal if there is any fault."""
        if self._found:
            raise self.refusal()

    def refusal(self) -> ConfigInvalid:
        """Every fault so far, in the order of the files and of their lines."""
        found = sorted(self._found, key=lambda each: each[:2])
        details = tuple(fault for *_, fault in found)
        files = list(dict.fromkeys(file for _, _, file, _ in found))
        more = f" and {len(files) - MAX_NAMED} more files" if len(files) > MAX_NAMED else ""
        named = (", " if more else " and ").join(files[:MAX_NAMED]) + more
        count = "1 fault" if len(details) == 1 else f"{len(details)} faults"
        verb = "is" if len(files) == 1 else "are"
        message = f"{named} {verb} not valid: {count}, each with its line and key in `details`."
        return ConfigInvalid(message, details=details)

    def _note(self, line: int, where: str, message: str) -> None:
        fault = Fault(f"{self._file}:{where}".removesuffix(":"), message)
        self._found.append((self._files.index(self._file), line, self._file, fault))


def written(place: Place) -> str:
    """``listeners[0].handler``, as a person would write it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")
