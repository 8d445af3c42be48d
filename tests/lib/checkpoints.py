"""checkpoints.py - an answer that was asked for with checkpoint=N: gzip members, one behind the other."""
import zlib


def whole_chunks(data):
    whole = b""
    while b"\r\n" in data:
        size, _, rest = data.partition(b"\r\n")
        n = int(size, 16)
        if not n or len(rest) < n + 2:
            break
        whole += rest[:n]
        data = rest[n + 2:]
    return whole


def members(data):
    """The whole ones, as they stand; data may be an answer from its first line on."""
    found = []
    if data.startswith(b"HTTP/"):
        head, _, data = data.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in head.lower():
            data = whole_chunks(data)
    while data:
        d = zlib.decompressobj(16 + zlib.MAX_WBITS)
        d.decompress(data)
        if not d.eof:
            break
        found.append(data[:len(data) - len(d.unused_data)])
        data = d.unused_data
    return found
