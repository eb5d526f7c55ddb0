"""Keep pandas out of commands that have no use for it.

Arrow imports pandas only to recognise its objects, which takes more than a second at the start of each command. PySpark
does need it, so it may be imported once PySpark is there. For the program alone: a process that uses OmniGraph as a
library decides for itself.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class PandasOnlyForSpark(MetaPathFinder):
    """Tells whoever looks for pandas before PySpark is imported that there is none."""

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None, /) -> ModuleSpec | None:
        """Never a module: the finders after this one find those."""
        if fullname == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("pandas is not needed here", name=fullname)
        return None


def start_without_pandas() -> None:
    """From now on pandas is imported for PySpark only."""
    sys.meta_path.insert(0, PandasOnlyForSpark())
