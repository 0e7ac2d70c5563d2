"""The zip archive that torch.save writes since PyTorch 1.6: its list, its parts. No torch here."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import TYPE_CHECKING, Any

from gpu_studio.core.units import format_bytes
from gpu_studio.engine.switching.tensor_pickle import (
    ITEM_BYTES,
    Describer,
    StorageHeader,
    check_opcodes,
    refuse,
)

if TYPE_CHECKING:
    from typing import BinaryIO

LONGEST_PICKLE = 64 << 20
_MOST_RECORDS = 1_000_000
_LOCAL_HEADER_BYTES = 30  # in front of each part, without its name (APPNOTE.TXT of PKWARE, 4.3.7)


class ZipReader:
    """The format since 1.6: a zip archive of data.pkl and a record a storage, uncompressed."""

    def __init__(self, file: BinaryIO, size_bytes: int, shown: str) -> None:
        self._size_bytes = size_bytes
        self._shown = shown
        self.protocol = 0
        try:
            self._archive = zipfile.ZipFile(file)
            listed = self._archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
            refuse(f"{shown} is cut off: the list at its end is missing. Copy it again.")
        if len(listed) > _MOST_RECORDS:
            refuse(f"{shown} has {len(listed)} records, too many for a model.")
        self._records = {record.filename: record for record in listed}
        self._prefix = self._check_records()
        self._check_order(listed)

    def root(self) -> Any:
        """Return the described object of the file."""
        raw = self._archive.read(f"{self._prefix}data.pkl")
        stream = io.BytesIO(raw)
        self.protocol = check_opcodes(stream, self._shown)
        stream.seek(0)
        return Describer(stream, self._storage, self._shown).load()

    def _check_order(self, listed: list[zipfile.ZipInfo]) -> None:
        """Refuse a list that two readers may understand in two ways."""
        names: set[str] = set()
        end = 0
        for record in sorted(listed, key=lambda one: one.header_offset):
            if record.filename in names:
                refuse(f"{self._shown} has two parts named {record.filename[-40:]}: it is forged.")
            begin, is_first = record.header_offset, not names
            end_before, end = end, begin + _LOCAL_HEADER_BYTES + record.compress_size
            if begin < end_before or (is_first and begin) or end > self._size_bytes:
                refuse(
                    f"{self._shown} is put together wrongly: the part {record.filename[-40:]} does "
                    "not begin where it should. It is damaged or forged."
                )
            names.add(record.filename)

    def _check_records(self) -> str:
        """Return what all names begin with, once every part is found to be harmless."""
        self._refuse_programs()
        stored_bytes = 0
        for name, record in self._records.items():
            if record.compress_type != zipfile.ZIP_STORED or record.flag_bits & 1:
                refuse(f"{self._shown} is a packed zip archive. torch.save does not pack.")
            stored_bytes += record.file_size
            if stored_bytes > self._size_bytes:
                refuse(
                    f"{self._shown} says that its part {name[-40:]} brings it to "
                    f"{format_bytes(stored_bytes)}, but the file has "
                    f"{format_bytes(self._size_bytes)}."
                )
        pickles = [name for name in self._records if name.rsplit("/", 1)[-1] == "data.pkl"]
        if len(pickles) != 1:
            refuse(f"{self._shown} is a zip archive, but not one that torch.save wrote.")
        if self._records[pickles[0]].file_size > LONGEST_PICKLE:
            refuse(f"{self._shown} has a list of tensors of more than 64 MiB.")
        return pickles[0].removesuffix("data.pkl")

    def _refuse_programs(self) -> None:
        """Refuse TorchScript, some of whose parts are packed."""
        for name in self._records:
            _, _, inner = name.partition("/")
            if inner.startswith("code/") or inner == "constants.pkl":
                refuse(
                    f"{self._shown} has code in it: it is a TorchScript program. Save the tensors "
                    "alone, with torch.save(model.state_dict(), …)."
                )

    def _storage(self, key: str, dtype: str, count: int) -> StorageHeader:
        record = self._records.get(f"{self._prefix}data/{key}")
        declared = count * ITEM_BYTES[dtype]
        if record is None or record.file_size < declared:
            there = format_bytes(record.file_size) if record else "nothing"
            refuse(
                f"{self._shown} declares {format_bytes(declared)} for one tensor and has {there} "
                "of it: it is cut off or forged."
            )
        return StorageHeader(key, dtype, declared)
