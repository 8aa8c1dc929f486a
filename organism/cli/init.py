"""``organism init``: a small working organism, written where it overwrites nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from organism.cli.exits import Exit
from organism.cli.options import Init
from organism.cli.output import refuse, show_text

STARTER: Final = Path(__file__).parent / "starter"
FILES: Final[Mapping[str, str]] = {
    "organism.yaml": "organism.yaml",
    "handlers/__init__.py": "handlers/__init__.py",
    "handlers/hello.py": "handlers/hello.py",
    "README.md": "README.md",
    "gitignore": ".gitignore",
}
"""The starter's files, and where they are written."""


def init(options: Init) -> None:
    """Write all files; none if one of them, or a ``handlers`` folder, is there already."""
    directory, remedy = options.directory, "Name a new directory, or an empty one."
    if directory.exists() and not directory.is_dir():
        refuse(Exit.CONFLICT, f"{directory} is a file.", remedy)
    tops = dict.fromkeys(name.partition("/")[0] for name in FILES.values())
    present = [str(directory / top) for top in tops if os.path.lexists(directory / top)]
    if present:
        refuse(Exit.CONFLICT, f"Nothing was written, because this exists: {', '.join(present)}.", remedy)
    try:
        write_starter(directory)
    except OSError as error:
        remedy = "Nothing is left there. Make room on its disk, or choose another directory."
        refuse(Exit.FAILED, f"{error.filename or directory} cannot be written: {error.strerror}.", remedy)
    enter = "" if directory.resolve() == Path.cwd() else f"cd {shlex.quote(str(directory))} && "
    wrote = "".join(f"wrote {directory / name}\n" for name in FILES.values())
    message = f"{wrote}\nNext: {enter}organism serve\nThen, in a second terminal there, follow README.md."
    show_text(options, {"directory": str(directory.resolve()), "files": list(FILES.values())}, message)


def write_starter(directory: Path) -> None:
    """Write the files below ``directory``, which is made if it is not there. Raises ``OSError``, and leaves none."""
    with ExitStack() as unfinished:
        for stored, name in FILES.items():
            target = directory / name
            for folder in reversed([each for each in target.parents if not each.exists()]):
                folder.mkdir()
                unfinished.callback(folder.rmdir)
            with target.open("x", encoding="utf-8") as file:
                unfinished.callback(target.unlink)
                file.write((STARTER / stored).read_text("utf-8"))
        unfinished.pop_all()
