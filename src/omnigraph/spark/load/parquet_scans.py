"""DataFrames that are nothing but columns of Parquet files: tasks read those files themselves.

What Spark hands over to Python it first makes rows of, and then columns again, which takes longer than all checks. So a
frame whose plan is one scan of local Parquet, with columns left out or renamed at most, is loaded as its files are.
That must not change what is loaded: whatever is not known here to mean the same in Spark and in Arrow (an option, a
setting, a type, a very old date) leaves the frame to Spark.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet

from omnigraph.errors import OmniGraphError
from omnigraph.write.decode.files import InputFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_FILES = 500
"""Files that the driver looks into; of more of them Spark makes better tasks."""

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_FILES = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"
_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_ABOUT_NAMES = {"path", "paths", "pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore"}
"""Options that choose files, which has been done when there is a plan."""

_OTHER_MEANINGS = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
_PLAIN: dict[str, tuple[pa.DataType, ...]] = {
    "boolean": (pa.bool_(),),
    "tinyint": (pa.int8(),),
    "smallint": (pa.int16(),),
    "int": (pa.int32(),),
    "bigint": (pa.int64(),),
    "float": (pa.float32(),),
    "double": (pa.float64(),),
    "string": (pa.string(), pa.large_string()),
    "binary": (pa.binary(), pa.large_binary()),
    "date": (pa.date32(),),
}
"""What Arrow reads where Spark reads this."""

_FIRST_DAY = date(1900, 1, 1)
"""Spark may move dates and moments of another calendar than today's; none from here on."""

_logger = logging.getLogger("omnigraph.spark")


@dataclass(frozen=True, slots=True)
class ParquetScan:
    """Files, and the columns of them that the frame has: as they are called there, and in the frame."""

    files: list[InputFile]
    columns: tuple[tuple[str, str], ...]


def parquet_scan(frame: DataFrame) -> ParquetScan | None:
    """The scan that a frame is; None when it is more than that, or may be."""
    try:
        return _scan(frame.sparkSession, frame._jdf.queryExecution().optimizedPlan())
    except Exception as error:
        # A plan of another shape than today's, a file that only Spark can read: Spark tells what is wrong with it.
        if not isinstance(error, OSError | OmniGraphError | pa.ArrowException) and not _is_of_spark(error):
            raise
        _logger.debug("the frame is left to Spark: %s", error)
        return None


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def _scan(session: SparkSession, plan: Any) -> ParquetScan | None:
    # The optimizer leaves one projection at most, whatever was chosen and renamed one after the other; it has also put
    # in what a cache or an extension of the session makes of the plan.
    chosen = _all(plan.projectList()) if _is(plan, "Project") else None
    relation = plan.child() if chosen is not None else plan
    if not _is(relation, "LogicalRelation") or not _reads_plain_files(session, relation):
        return None
    found = {
        column.exprId().id(): (column.name(), column.dataType().simpleString()) for column in _all(relation.output())
    }
    columns: list[tuple[str, str]] = []
    types: dict[str, str] = {}
    for column in chosen if chosen is not None else _all(relation.output()):
        meant = column.child() if _is(column, "Alias") else column
        if not _is(meant, "AttributeReference") or meant.exprId().id() not in found:
            return None
        name, type_ = found[meant.exprId().id()]
        types[name] = type_
        columns.append((name, column.name()))
    files = _local_files(relation.relation().location().inputFiles())
    if files is None or not columns or not all(_is_read_alike(file, types) for file in files):
        return None
    return ParquetScan(files, tuple(columns))


def _reads_plain_files(session: SparkSession, logical: Any) -> bool:
    """Whether the files have all there is to the rows: no values in the names of directories, no table with rules of
    its own, no option or setting that gives what is in them another meaning."""
    if logical.isStreaming() or not logical.catalogTable().isEmpty():
        return False
    relation = logical.relation()
    if relation.getClass().getName() != _RELATION or relation.fileFormat().getClass().getName() != _PARQUET:
        return False
    if relation.location().getClass().getName() != _FILES or relation.partitionSchema().length():
        return False
    options = {name.lower() for name in relation.options().keySet().mkString("\n").split("\n")}
    encrypted = session.sparkContext._jsc.hadoopConfiguration().get("parquet.crypto.factory.class")
    return (
        options <= _ABOUT_NAMES
        and not encrypted
        and all(session.conf.get(name, "false") == "false" for name in _OTHER_MEANINGS)
    )


def _local_files(uris: Any) -> list[InputFile] | None:
    """Files on a disk of this machine; None when some lie elsewhere: only Spark has the means to read them."""
    if not 0 < len(uris) <= MOST_FILES:
        return None
    files = []
    for uri in sorted(uris):
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc or parts.query or parts.fragment:
            return None
        path = unquote(parts.path)
        files.append(InputFile(path, os.path.getsize(path), path))
    return files if all(file.suffix == ".parquet" for file in files) else None


def _is_read_alike(file: InputFile, types: Mapping[str, str]) -> bool:
    """Whether Arrow reads from these columns of a file what Spark does, which thinks them to be of these types."""
    with file.open_raw() as stream:
        parquet = pyarrow.parquet.ParquetFile(stream)
        schema, metadata = parquet.schema_arrow, parquet.metadata
    for name, told in types.items():
        # A dot would name a column inside another one; names that differ in case only are one to Spark.
        same = [other for other in schema.names if other.lower() == name.lower()]
        if same != [name] or "." in name:
            return False
        type_ = schema.field(name).type
        if not _means(told, type_):
            return False
        if (pa.types.is_date(type_) or pa.types.is_timestamp(type_)) and not _is_recent(metadata, name):
            return False
    return True


def _means(told: str, type_: pa.DataType) -> bool:
    if told == "timestamp":
        return pa.types.is_timestamp(type_) and type_.tz is not None and type_.unit in ("ms", "us")
    if told == "array<float>":
        return bool(pa.types.is_list(type_) and pa.types.is_float32(type_.value_type))
    return type_ in _PLAIN.get(told, ())


def _is_recent(metadata: Any, name: str) -> bool:
    """Whether the file says of every day or moment of a column that it is none of another calendar."""
    leaf = next(number for number in range(metadata.num_columns) if metadata.schema.column(number).path == name)
    for number in range(metadata.num_row_groups):
        known = metadata.row_group(number).column(leaf).statistics
        if known is None:
            return False
        if known.has_min_max:
            first = known.min.date() if isinstance(known.min, datetime) else known.min
            if first < _FIRST_DAY:
                return False
        elif known.null_count != metadata.row_group(number).num_rows:
            return False
    return True


def _all(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _is(node: Any, name: str) -> bool:
    return bool(node.getClass().getSimpleName() == name)
