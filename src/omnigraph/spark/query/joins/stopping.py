"""Joins that look up, row by row, whether their task was cancelled.

Spark compiles joins that stand behind one another into one loop in the other, as deep as there are joins, and such a
loop looks at no interrupt: a cancelled task would go on until it has met every row. So a row is asked about before it
meets the rows of the next join. The question is a condition that always holds or fails; it names a column of each side
of the join that made the row, since Spark moves a condition down to where all of its columns are first together, and
that is inside the loop in question. Columns are looked at only by the message of the failure.

Asking costs some nanoseconds. Spark says that the task was killed, whatever it failed with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.spark.query.bindings import Bindings

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


class Stopping:
    """The question, for one query."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._cancelled: Column | None = None

    def asked(self, rows: Bindings) -> Bindings:
        """The same rows, each asked about."""
        from pyspark.sql import functions as f

        alone = rows.any_column()
        columns = rows.met or (() if alone is None else (alone,))
        if not columns:
            return rows
        if self._cancelled is None:
            self._cancelled = _task_is_cancelled(self._session)
        stopped = f.raise_error(f.concat_ws(" ", f.lit("cancelled at"), *[f.col(c).cast("string") for c in columns]))
        frame = rows.frame.where(f.when(self._cancelled, stopped).otherwise(f.lit(True)))
        return replace(rows, frame=frame, met=())


def _task_is_cancelled(session: SparkSession) -> Column:
    """`TaskContext.get().isInterrupted()`, an expression that Spark's SQL has and has no name for."""
    from pyspark.sql import Column

    jvm = session._jvm
    assert jvm is not None
    # Whole names: each dot of `jvm.org.apache…` would be a question to the JVM.
    invoke = getattr(jvm, "org.apache.spark.sql.catalyst.expressions.objects.Invoke")
    static_invoke = getattr(jvm, "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke")
    object_type = getattr(jvm, "org.apache.spark.sql.types.ObjectType")
    context = getattr(jvm, "java.lang.Class").forName("org.apache.spark.TaskContext")
    nothing = getattr(jvm, "org.apache.spark.api.python.PythonUtils").toSeq([])
    no_function = getattr(getattr(jvm, "scala.None$"), "MODULE$")
    boolean = getattr(jvm, "org.apache.spark.sql.types.DataTypes").BooleanType
    # Both are said to be deterministic: Spark leaves any other condition where it is, and lets none stand in a join.
    its_task = static_invoke(context, object_type(context), "get", nothing, nothing, True, True, True, no_function)
    asked = invoke(its_task, "isInterrupted", boolean, nothing, nothing, True, True, True)
    made: Column = Column(getattr(jvm, "org.apache.spark.sql.classic.ExpressionUtils").column(asked))
    return made
