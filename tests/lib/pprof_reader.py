"""pprof_reader.py - a decoder of profile.proto of the tests' own, which owes nothing to the encoder."""
import gzip

from harness import need


def varint(b, i):
    n = shift = 0
    while True:
        n |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return n, i


def fields(b):
    """(number, value) of a message: int, or bytes for what has a length."""
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        if key & 7 == 0:
            value, i = varint(b, i)
        elif key & 7 == 2:
            n, i = varint(b, i)
            need(i + n <= len(b), "a field reaches past its message")
            value, i = b[i:i + n], i + n
        else:
            raise AssertionError("wire type %d" % (key & 7))
        yield key >> 3, value


def ints(b):
    if isinstance(b, int):
        return [b]
    found, i = [], 0
    while i < len(b):
        n, i = varint(b, i)
        found.append(n)
    return found


def signed(n):
    return n - (1 << 64) if n >> 63 else n


class Profile:
    def __init__(self, raw):
        body = gzip.decompress(raw)
        need(raw[:3] == b"\x1f\x8b\x08" and raw[4:8] == bytes(4), "the head of a gzip member")
        self.all = {}
        for number, value in fields(body):
            self.all.setdefault(number, []).append(value)
        self.strings = [s.decode("utf-8") for s in self.all[6]]
        self.comments = [self.strings[n] for value in self.all.get(13, []) for n in ints(value)]
        self.types = [tuple(self.strings[dict(fields(t)).get(k, 0)] for k in (1, 2)) for t in self.all[1]]
        self.mappings = [dict(fields(m)) for m in self.all.get(3, [])]
        self.functions = [dict(fields(m)) for m in self.all.get(5, [])]
        self.locations = []
        for m in self.all.get(4, []):
            location = {"lines": []}
            for number, value in fields(m):
                if number == 4:
                    location["lines"].append(dict(fields(value)))
                else:
                    location[number] = value
            self.locations.append(location)
        self.samples = []
        for m in self.all.get(2, []):
            stack, values, labels = [], [], []
            for number, value in fields(m):
                if number == 1:
                    stack += ints(value)
                elif number == 2:
                    values += [signed(v) for v in ints(value)]
                else:
                    labels.append(dict(fields(value)))
            self.samples.append((stack, values, labels))

    def stack(self, ids):
        return [self.strings[self.functions[l[1] - 1][2]] for i in ids for l in self.locations[i - 1]["lines"]]
