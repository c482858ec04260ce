"""Protobuf's wire format, as far as messages are put together by hand."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """A non-negative number in groups of 7 bits, lowest first."""
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def message(tag: bytes, content: bytes) -> bytes:
    """A length-delimited field."""
    return tag + varint(len(content)) + content
