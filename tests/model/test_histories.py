"""Random histories over several branches: after every step each branch of the store equals the model's.

`OMNIGRAPH_MODEL_EXAMPLES` makes the run deeper; each example is a history of its own. What a run finds is shrunk to a
short script, which is kept among the written histories in `tests/merge/test_histories.py`.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.model.histories import EXAMPLES
from tests.model.schema_histories import SchemaMachine
from tests.model.undo_histories import UndoMachine
from tests.model.undo_schema_histories import UndoSchemaMachine

TestHistories = pytest.mark.slow(UndoMachine.TestCase)
TestHistories.settings = settings(
    max_examples=EXAMPLES or 14,
    stateful_step_count=50 if EXAMPLES else 30,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
    if EXAMPLES
    else [Phase.explicit, Phase.generate],
    derandomize=not EXAMPLES,
    suppress_health_check=list(HealthCheck),
)

TestSchemaHistories = pytest.mark.slow(SchemaMachine.TestCase)
TestSchemaHistories.settings = settings(TestHistories.settings, max_examples=EXAMPLES or 3)

TestUndoSchemaHistories = pytest.mark.slow(UndoSchemaMachine.TestCase)
TestUndoSchemaHistories.settings = settings(TestHistories.settings, max_examples=EXAMPLES or 3)
