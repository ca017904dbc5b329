"""Every feed on one tape: rows of a tape as Arrow, Polars and pandas."""

import datetime
import os
import pathlib
from collections.abc import Iterable
from typing import Any, Literal, SupportsIndex, TypeAlias, final

import numpy
import pandas
import polars
import pyarrow

__version__: str

Schema: TypeAlias = Literal["bbo", "trades"]
PriceType: TypeAlias = Literal["decimal", "fixed", "float"]
SizeType: TypeAlias = Literal["narrow", "wide"]
Time: TypeAlias = str | SupportsIndex | datetime.date | pandas.Timestamp | numpy.datetime64

class Error(Exception):
    """An error of unitape."""

    code: str
    """A word for programs: `damage`, `unknown_schema`, `size_misfit` and others."""
    cause: Literal["call", "data", "outside"]
    """On whose side the cause lies."""
    file: pathlib.Path | None
    """The file, where one is to blame."""
    position: int | None
    """A byte of `file`, or without a file a position on the tape."""

def open(path: str | os.PathLike[str]) -> Tape:
    """Opens the tape in a directory."""

@final
class Tape:
    """A tape: the directory, nothing of which is kept open."""

    def get_range(
        self,
        schema: Schema,
        symbols: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        limit: int | None = None,
        *,
        size_type: SizeType = "narrow",
    ) -> Rows:
        """Selects rows of a schema. Nothing is read yet, and the end of the tape is fixed now.

        `symbols` is a list of instruments, or text that is split at commas; `start` is inclusive and `end` exclusive.
        """

    def schemas(self) -> list[str]:
        """Returns the names of the schemas that `get_range` knows."""

    def symbols(self) -> list[str]:
        """Returns the names of the instruments, in the order in which they came onto the tape."""

    def info(self) -> dict[str, Any]:
        """Returns facts about the tape as a dict, without reading all of it."""

@final
class Rows:
    """Rows of a tape. Each conversion reads them, and each gives the same rows: the end of the tape is fixed."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns a new Arrow stream. Its batches are read as the consumer asks for them."""

    def __arrow_c_schema__(self) -> object:
        """Returns the schema of the stream."""

    def to_arrow(self, price_type: PriceType = "decimal") -> pyarrow.Table:
        """Reads the rows as a pyarrow Table."""

    def to_polars(self, price_type: PriceType = "decimal") -> polars.DataFrame:
        """Reads the rows as a Polars DataFrame."""

    def to_df(
        self, price_type: PriceType = "float", tz: str | datetime.tzinfo | None = None
    ) -> pandas.DataFrame:
        """Reads the rows as a pandas DataFrame. Times are in the zone `tz`, or UTC."""

    @property
    def not_found(self) -> list[str]:
        """The symbols that were asked for and the tape does not have."""

    @property
    def schema(self) -> str:
        """The name of the schema."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
