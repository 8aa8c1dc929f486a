"""Compiles the modules that a message passes through, for a wheel that is built with HATCH_BUILD_HOOK_ENABLE_CUSTOM=1.

Which ones pyproject.toml says. They stay beside their compiled form, and are what runs wherever that is missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE = """
from mypyc.build import mypycify
from setuptools import setup

setup(name="organism", ext_modules=mypycify({arguments!r}, multi_file=True, group_name="organism", debug_level="0"))
"""


class CompiledModules(BuildHookInterface[Any]):
    """Works on a copy: beside the sources a module of yesterday would be imported in their place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        self._place = tempfile.TemporaryDirectory(prefix="organism-")
        copy = Path(self._place.name)
        shutil.copytree(Path(self.root, "organism"), copy / "organism", ignore=shutil.ignore_patterns("*.so"))
        modules = [f"organism/{module}.py" for module in self.config["modules"]]
        arguments = [f"--python-version={sys.version_info.major}.{sys.version_info.minor}", *self.config["mypy"]]
        (copy / "setup.py").write_text(COMPILE.format(arguments=[*arguments, *modules]), "utf-8")
        subprocess.run([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], cwd=copy, check=True)
        made = [*copy.glob("*.so"), *copy.glob("organism/*/*.so")]
        build_data["force_include"] |= {str(path): str(path.relative_to(copy)) for path in made}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - what a hook is given
        if version == "standard":
            self._place.cleanup()
