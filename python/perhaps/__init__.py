"""Could this key be in that set? A filter answers *no*, which is certain, or *perhaps*.

>>> import perhaps
>>> seen = perhaps.Filter(keys=1_000_000, fpr=0.01)
>>> seen.add("hello")
>>> "hello" in seen, "world" in seen
(True, False)

Keys are str (hashed as UTF-8), bytes, or int (64 bits, hashed as numbers), exactly as in the C++ library and in the
command ``perhaps``: a filter that was built in one is queried in the others. ``hash()`` is never used.
"""
from __future__ import annotations

from . import _native
from ._native import BadRequest, DamagedFile, Error, FileError, Full, Mismatch, Unsupported, WrongKey

__version__ = _native.version
__all__ = [
    "BadRequest", "DamagedFile", "Error", "FileError", "Filter", "Full", "Mismatch", "Unsupported", "WrongKey",
    "build", "families", "formats", "open", "size",
]

TYPE_CHECKING = False  # importing typing would take longer than all the rest
if TYPE_CHECKING:
    import os
    from typing import Any, Iterable, Iterator, Mapping, Optional, Union

    Key = Union[str, bytes, int]
    Path = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
    Parameters = Optional[Mapping[str, object]]


def _text(parameters: Parameters) -> Optional[str]:
    if parameters is None:
        return None
    if not hasattr(parameters, "items"):
        raise TypeError("parameters is a mapping, such as {'fpp': 0.01}")
    return " ".join(f"{name}={str(value).lower() if value in (True, False) else value}"
                    for name, value in parameters.items())


def _rate(fpr: Optional[float]) -> float:
    if fpr == 0:  # which means the default, to the library
        raise BadRequest("fpr: a rate lies between 0 and 1")
    return fpr or 0


def _numpy() -> Any:
    try:
        return __import__("numpy")  # not `import numpy`: a type checker would read all of it
    except ImportError:
        return None


class Filter(_native.Filter):
    """A set that may answer *perhaps* where the truth is *no*, and never the other way round.

    >>> seen = Filter(keys=10_000, fpr=0.001, family="cuckoo")
    >>> seen.update(["one", "two", "three"])
    >>> "two" in seen
    True
    >>> seen.discard("two")
    'removed'
    >>> len(seen)
    2

    A filter may be used by many threads, and queried by many at once. A change waits for the queries that are running,
    and queries wait for a change.
    """

    _parameters: Parameters = None
    _keyed = False

    def __init__(
        self,
        keys: int = 1_000_000,
        fpr: float = 0.01,
        family: str = "line",
        key: Optional[bytes] = None,
        *,
        bits_per_key: float = 0,
        max_bytes: int = 0,
        guard_bits: int = 0,
        seed: Optional[int] = None,
    ) -> None:
        """An empty filter for `keys` keys. `key` is a secret of 16 bytes, for keys that others choose."""
        self._make(family, keys, _rate(fpr), bits_per_key, max_bytes, guard_bits, 0, seed, key, 0, None, None)
        self._keyed = key is not None

    @classmethod
    def from_bytes(
        cls,
        data: Any,
        key: Optional[bytes] = None,
        *,
        format: Optional[str] = None,
        parameters: Parameters = None,
        name: Optional[str] = None,
    ) -> Filter:
        """What bytes() gave, or the file of another system. A copy, which can be changed if its family can.

        >>> seen = Filter(keys=100)
        >>> seen.add(42)
        >>> 42 in Filter.from_bytes(bytes(seen))
        True
        """
        filter = cls.__new__(cls)
        filter._read(data, key, format, _text(parameters), name)
        filter._parameters, filter._keyed = parameters, key is not None
        return filter

    def contains(self, column: Any) -> Any:
        """A bool for each key of a column: a numpy array if numpy is installed, else bytes of 0 and 1.

        A column is an array of numpy, of Arrow or of the module array, a memoryview, or any iterable of keys. Integers
        in 64 bits and the texts of Arrow are not copied, and other threads run meanwhile.

        >>> seen = Filter(keys=100)
        >>> seen.update(range(0, 10, 2))
        >>> [bool(answer) for answer in seen.contains([2, 3, 4])]
        [True, False, True]
        """
        answers = self._contains(column)
        numpy = _numpy()
        return bytes(answers) if numpy is None else numpy.frombuffer(answers, dtype=numpy.bool_)

    def copy(self) -> Filter:
        """A copy in memory, which can be changed if the family can."""
        other = type(self).__new__(type(self))
        other._copy_from(self)
        other.__dict__.update(self.__dict__)
        return other

    def save(self, path: Path) -> None:
        """Writes a file, whole or not at all; perhaps.open and the command `perhaps` read it."""
        self._save(path)

    def __ior__(self, other: Filter) -> Filter:
        self._merge(other)
        return self

    def __or__(self, other: Filter) -> Filter:
        both = self.copy()
        both |= other
        return both

    def __iand__(self, other: Filter) -> Filter:
        self._intersect(other)
        return self

    def __and__(self, other: Filter) -> Filter:
        both = self.copy()
        both &= other
        return both

    def __len__(self) -> int:
        """The number of distinct keys, estimated from the bits: reads all of them."""
        return round(self._describe()["keys_estimated"])

    def __bool__(self) -> bool:
        return True  # not what len() would say after a pass over the bits

    def __iter__(self) -> Iterator[Key]:
        raise TypeError("a filter does not know its keys")

    def __copy__(self) -> Filter:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Filter:
        from copy import deepcopy

        other = self.copy()
        memo[id(self)] = other  # its attributes may refer to it
        other.__dict__ = deepcopy(self.__dict__, memo)
        return other

    def __reduce__(self) -> Any:
        if self._keyed:
            raise Error("the key of a keyed filter is not pickled: pass bytes(filter), and the key apart")
        return _unpickle, (type(self), bytes(self), self.format, self._parameters), self.__dict__

    def __repr__(self) -> str:
        d = self._describe()
        kind = d["family"] if d["format"] == "perhaps" else f"{d['format']}: {d['family']}"
        return f"<perhaps.Filter {kind}, {d['bytes']} bytes, about {d['keys_estimated']:.0f} keys>"

    @property
    def nbytes(self) -> int:
        """Of the table, in memory."""
        return self._nbytes()

    @property
    def fpr(self) -> float:
        """The rate of false positives as it is now: reads all bits."""
        return self._describe()["fpr"]

    @property
    def fill(self) -> float:
        """The share of bits that are set: reads all of them."""
        return self._describe()["fill"]

    @property
    def family(self) -> str:
        """"line", "ribbon" and so on."""
        return self._describe()["family"]

    @property
    def format(self) -> str:
        """"perhaps", or the name of another system's format."""
        return self._describe()["format"]

    @property
    def read_only(self) -> bool:
        """Opened from a file, static, or of another system: copy() may make one that can be changed."""
        return self._describe()["read_only"]

    def describe(self) -> dict[str, object]:
        """Everything that is known about it."""
        return dict(self._describe())


def _unpickle(cls: type[Filter], data: bytes, format: str, parameters: Parameters) -> Filter:
    return cls.from_bytes(data, format=None if format == "perhaps" else format, parameters=parameters)


def open(
    path: Path,
    key: Optional[bytes] = None,
    *,
    format: Optional[str] = None,
    parameters: Parameters = None,
    verify: bool = True,
) -> Filter:
    """Maps a file of ours or of another system. The filter is read-only; copy() makes one that can be changed.

    `verify` reads every byte once. Some formats must be named, because their bytes do not tell (formats()).
    """
    filter = Filter.__new__(Filter)
    filter._open(path, key, format, _text(parameters), verify)
    filter._parameters, filter._keyed = parameters, key is not None
    return filter


def build(
    keys: Iterable[Key],
    family: Optional[str] = None,
    fpr: Optional[float] = None,
    *,
    threads: int = 1,
    key: Optional[bytes] = None,
    bits_per_key: float = 0,
    max_bytes: int = 0,
    arity: int = 0,
    seed: Optional[int] = None,
    format: Optional[str] = None,
    parameters: Parameters = None,
) -> Filter:
    """A filter of all these keys: of any family ("ribbon" by default), or in the `format` of another system.

    >>> words = build(["one", "two", "three"], family="ribbon", fpr=1e-3)
    >>> "two" in words, "four" in words
    (True, False)
    >>> words.add("four")
    Traceback (most recent call last):
    perhaps.Unsupported: a ribbon filter cannot be changed: build another
    """
    column = keys if hasattr(keys, "__len__") else list(keys)
    if format is None:
        family = family or "ribbon"
    expected = len(column) if format is None else 0  # type: ignore[arg-type]
    filter = Filter.__new__(Filter)
    filter._build(column, (family, expected, _rate(fpr), bits_per_key, max_bytes, 0, arity, seed, key, threads, format,
                           _text(parameters)))
    filter._parameters, filter._keyed = parameters, key is not None
    return filter


def size(keys: int, fpr: float = 0.01, family: str = "line", *, bits_per_key: float = 0) -> dict[str, float]:
    """What a filter would need, by the model of its family.

    >>> size(1_000_000, fpr=0.01)["bytes"] < 1_400_000
    True
    """
    sizes = _native.size(family, keys, _rate(fpr), bits_per_key, 0, 0, 0, None, None, 0, None, None)
    return {"bytes": sizes["bytes"], "bits": sizes["bits"], "probes": sizes["probes"], "fpr": sizes["fpr"]}


def families() -> dict[str, str]:
    """The families and what each is for.

    >>> families()["line"]
    'one cache line per key; the default'
    """
    return {row[0]: row[1] for row in _native.families()}


def formats() -> dict[str, str]:
    """The formats of other systems that are read.

    >>> "parquet" in formats()
    True
    """
    return {row[0]: row[1] for row in _native.formats()}
