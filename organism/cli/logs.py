"""The logs in a data directory: one a tenant, found with or without a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from organism.bootstrap import TENANTS, key_path_of
from organism.cli.exits import Exit
from organism.cli.options import Offline
from organism.cli.show import refuse
from organism.config.tokens import TOKENS_FILE, read_tokens
from organism.errors import ConfigInvalid
from organism.log.place import Place
from organism.model.ids import DEFAULT_TENANT, folder_of

NAME_IT: Final = "Name the directory that `organism serve` was given: --data DIR."
NAME_HIM: Final = "`organism token list` names the tenants; each has a log from its first start on."


@dataclass(frozen=True, slots=True)
class TenantLog:
    """A tenant's log. ``tenant`` is its id; of one that config/tokens.yaml does not name, the name of its directory."""

    tenant: str
    directory: Path
    key: Path | None

    @property
    def place(self) -> Place:
        """Its files."""
        return Place(self.directory, self.key, self.directory.name)


def logs_in(options: Offline) -> list[TenantLog]:
    """A log for each tenant's directory, ``default``'s first; only that of ``--tenant`` if it is given.

    Its files may be missing. Where there is any tenant's directory there was one for ``default``.
    """
    names = {folder_of(tenant): tenant for tenant in (DEFAULT_TENANT, *_listed(options.config))}
    if options.tenant is not None:
        names[folder_of(options.tenant)] = options.tenant
        folders = [folder_of(options.tenant)]
    else:
        there = {path.name for path in options.data.glob(f"{TENANTS}/*") if path.is_dir()}
        folders = [DEFAULT_TENANT, *sorted(there - {DEFAULT_TENANT})] if there else []
    return [
        TenantLog(names.get(folder, folder), options.data / TENANTS / folder, key_path_of(options.key, folder))
        for folder in folders
        if options.tenant is None or (options.data / TENANTS / folder).is_dir()
    ]


def logs_to_read(options: Offline) -> list[TenantLog]:
    """The same; ends the command if there is none."""
    found = logs_in(options)
    if not found and options.tenant is not None:
        refuse(Exit.NOT_FOUND, f"Tenant {options.tenant} has no log in {options.data}.", NAME_HIM)
    if not found:
        refuse(Exit.NOT_FOUND, f"{options.data} holds no log.", NAME_IT)
    return found


def _listed(config: Path) -> list[str]:
    """The tenants of the tokens' file, as far as it can be read: without it they go by their directories."""
    try:
        return [entry.id for entry in read_tokens(config.parent / TOKENS_FILE)]
    except ConfigInvalid:
        return []
