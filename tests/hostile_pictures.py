"""Picture files that attack whoever opens them: small on the disk, huge, endless or false inside.

`HOSTILE` has one of each kind by its file's name. Every maker takes milliseconds: what is huge is
huge only when it is decoded. Standard library only.
"""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

PNG_HEAD = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB, _RGBA = 0, 2, 6  # color types of PNG
_CHANNELS = {_GRAY: 1, _RGB: 3, _RGBA: 4}
_ADLER = 65521
_MIB = 1 << 20


# ── PNG (W3C, Portable Network Graphics) ─────────────────────────────────────────────────────────


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_head(
    width: int, height: int, depth: int = 8, color: int = _RGB, interlace: int = 0
) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return PNG_HEAD + png_chunk(b"IHDR", header)


def packed_zeros(count: int) -> bytes:
    """Return a zlib stream of ``count`` zeros, without compressing them one by one."""
    block, one = zlib.compressobj(9), bytes(_MIB)
    stream = block.compress(one) + block.flush(zlib.Z_FULL_FLUSH)
    head, body = stream[:2], stream[2:]
    rest = zlib.compressobj(9, wbits=-15)
    tail = rest.compress(bytes(count % _MIB)) + rest.flush()
    # Of zeros, the first sum of Adler-32 stays 1, and the second one counts them.
    return head + body * (count // _MIB) + tail + struct.pack(">HH", count % _ADLER, 1)


def png_bomb(
    width: int,
    height: int,
    depth: int = 1,
    color: int = _GRAY,
    texts: bytes = b"",
    interlace: int = 0,
) -> bytes:
    """Return a whole PNG of one color.

    Args:
        width: in pixels.
        height: in pixels.
        depth: bits of a channel.
        color: the color type.
        texts: chunks between the header and the pixels.
        interlace: 1 for seven passes; their rows are too few then, as in a cut file.
    """
    row = 1 + (width * depth * _CHANNELS[color] + 7) // 8
    pixels = png_chunk(b"IDAT", packed_zeros(row * height))
    head = png_head(width, height, depth, color, interlace)
    return head + texts + pixels + png_chunk(b"IEND", b"")


def packed_texts(count: int = 70, size: int = 7_900_000) -> bytes:
    """Return a small PNG with ``count`` zTXt chunks of ``size`` bytes each."""
    body = packed_zeros(size)
    texts = (png_chunk(b"zTXt", b"note%d\0\0" % number + body) for number in range(count))
    return png_bomb(8, 8, texts=b"".join(texts))


def packed_race(size: int = 500_000_000) -> bytes:
    """Return a PNG whose own chunk of a race is a bomb."""
    return png_bomb(8, 8, texts=png_chunk(b"zTXt", b"gpu-studio-race\0\0" + packed_zeros(size)))


def endless_chunks(count: int = 200_000) -> bytes:
    return png_bomb(8, 8, texts=png_chunk(b"tEXt", b"a\0") * count)


# ── JPEG (ITU-T T.81) ────────────────────────────────────────────────────────────────────────────


def _segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(body) + 2) + body


def gray_jpeg(
    width: int, height: int, blocks: int = 4096, *, is_progressive: bool = False
) -> bytes:
    """Return a gray JPEG; each block of 8 × 8 needs two bits.

    Args:
        width: in pixels.
        height: in pixels.
        blocks: how many blocks have data; a decoder fills the rest.
        is_progressive: 2,000 passes over the whole picture.
    """
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0"
    table = b"\x01" + bytes(15) + b"\0"  # one code of one bit, for 0
    head = b"\xff\xd8" + _segment(0xDB, b"\0" + b"\x01" * 64)
    head += _segment(0xC2 if is_progressive else 0xC0, frame)
    head += _segment(0xC4, b"\0" + table) + _segment(0xC4, b"\x10" + table)
    if not is_progressive:
        return head + _segment(0xDA, b"\x01\x01\0\0\x3f\0") + bytes(blocks // 4) + b"\xff\xd9"
    first = _segment(0xDA, b"\x01\x01\0\0\0\0") + bytes(blocks // 8)
    others = _segment(0xDA, b"\x01\x01\0\x01\x3f\0") + bytes(blocks // 8)
    return head + first + others * 2000 + b"\xff\xd9"


# ── WebP (RFC 9649) ──────────────────────────────────────────────────────────────────────────────


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    """Return a WebP file of chunks."""
    body = b"WEBP"
    for kind, content in chunks:
        body += kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def canvas(width: int, height: int, flags: int = 0) -> tuple[bytes, bytes]:
    """Return the VP8X chunk, which says how large the picture is."""
    sides = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return b"VP8X", struct.pack("<I", flags) + sides


def flat_webp(width: int, height: int) -> tuple[bytes, bytes]:
    """Return the VP8L chunk of a picture in one color: its pixels need no bit at all."""
    bits = [(width - 1, 14), (height - 1, 14), (0, 1), (0, 3)]  # sides, no alpha, version
    bits += [(0, 1), (0, 1), (0, 1)]  # no transform, no cache of colors, one group of codes
    bits += [(1, 1), (0, 1), (1, 1), (0, 8)] * 5  # five codes of one symbol, which is 0
    value = place = 0
    for one, length in bits:
        value |= one << place
        place += length
    return b"VP8L", b"\x2f" + value.to_bytes((place + 7) // 8 + 8, "little")


# ── GIF (GIF89a) and BMP (BITMAPINFOHEADER) ──────────────────────────────────────────────────────


def gif(
    width: int, height: int, levels: bytes = b"\0", screen: tuple[int, int] | None = None
) -> bytes:
    """Return a GIF in gray.

    Args:
        width: of its picture.
        height: of its picture.
        levels: the first pixels, 0 to 127 for black to white.
        screen: the size that it claims for the whole.
    """
    palette = b"".join(bytes([2 * level]) * 3 for level in range(128))
    codes = b"".join(b"\x80" + levels[at : at + 100] for at in range(0, len(levels), 100)) + b"\x81"
    blocks = b"".join(
        bytes([len(codes[at : at + 255])]) + codes[at : at + 255]
        for at in range(0, len(codes), 255)
    )
    head = b"GIF89a" + struct.pack("<HHBBB", *(screen or (width, height)), 0xF6, 0, 0) + palette
    place = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0)
    return head + place + b"\x07" + blocks + b"\0\x3b"


def bmp(width: int, height: int, bits: int = 8, packing: int = 0, pixels: bytes = b"") -> bytes:
    """Return a BMP with a header of this size; ``packing`` is 1 for runs of 8-bit pixels."""
    colors = bytes(1024) if bits == 8 else b""
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, packing, 0, 0, 0, 0, 0)
    start = 14 + len(header) + len(colors)
    head = b"BM" + struct.pack("<IHHI", start + len(pixels), 0, 0, start)
    return head + header + colors + pixels


# ── SVG, which is no picture here ────────────────────────────────────────────────────────────────


def svg_naming(target: Path | str) -> bytes:
    """Return an SVG that shows another file, such as a pipe or one on another PC."""
    link = "http://www.w3.org/1999/xlink"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="{link}" width="9" height="9">'
        f'<image xlink:href="{target}" width="9" height="9"/></svg>'
    ).encode()


def nested_svg(depth: int = 30) -> bytes:
    """Return an SVG that draws two to the power of ``depth`` dots."""
    groups = "".join(
        f'<g id="g{n}"><use xlink:href="#g{n - 1}"/><use xlink:href="#g{n - 1}"/></g>'
        for n in range(1, depth)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="9" height="9"><defs><g id="g0"><rect width="1" height="1"/></g>{groups}</defs>'
        f'<use xlink:href="#g{depth - 1}"/></svg>'
    ).encode()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "empty.png": lambda: b"",
    "only a head.png": lambda: PNG_HEAD,
    "text.jpg": lambda: b"hello",
    "another computer.png": lambda: svg_naming("file://another-pc/share/picture.png"),
    "a device.png": lambda: svg_naming("/dev/zero"),
    "nested.png": nested_svg,
    "nested.svg": nested_svg,
    "texts.png": packed_texts,
    "race.png": packed_race,
    "chunks.png": endless_chunks,
    "bomb.png": lambda: png_bomb(30_000, 30_000),
    "deep bomb.png": lambda: png_bomb(10_000, 10_000, 16, _RGBA),
    "interlaced.png": lambda: png_bomb(3_000, 3_000, 8, _RGBA, interlace=1),
    "no pixels.png": lambda: png_head(9, 9),
    "no size.png": lambda: png_bomb(0, 0),
    "largest.png": lambda: png_head(2**31 - 1, 2**31 - 1, 16, _RGBA),
    "bomb.jpg": lambda: gray_jpeg(65_500, 65_500),
    "passes.jpg": lambda: gray_jpeg(9_000, 9_000, 1_000, is_progressive=True),
    "bomb.webp": lambda: riff(flat_webp(16_384, 16_384)),
    "canvas.webp": lambda: riff(canvas(16_384, 16_384), flat_webp(1, 1)),
    "flat.webp": lambda: riff(flat_webp(10_000, 10_000)),
    "screen.gif": lambda: gif(1, 1, screen=(65_535, 65_535)),
    "bomb.gif": lambda: gif(65_535, 65_535),
    "size.bmp": lambda: bmp(2**31 - 1, 2**31 - 1, 24),
    "upside down.bmp": lambda: bmp(30_000, -(2**31), 24),
    "runs.bmp": lambda: bmp(30_000, 30_000, 8, 1, b"\xff\0" * 64 + b"\0\x01"),
    "jumps.bmp": lambda: bmp(3_000, 3_000, 8, 1, b"\0\x02\xff\xff" * 4_000 + b"\0\x01"),
}  # fmt: skip
"""The content of each hostile file by its name, whose ending need not be true."""
