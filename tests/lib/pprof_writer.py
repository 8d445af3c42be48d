"""pprof_writer.py - profiles as other tools write them, and stranger ones, for the tests of readers."""


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def message(field, body):
    return varint(field << 3 | 2) + varint(len(body)) + body


def packed(field, values):
    return message(field, b"".join(varint(v) for v in values)) if values else b""


def profile(types, samples, locations, functions, mappings, drop="", keep="", default="", comments=(), time=0, duration=0):
    """types: (type, unit); samples: (ids of locations, values, labels); locations: (id, mapping, address, (function, line)...);
    functions: (id, name, system name, file, start line); mappings: (id, file, build id)."""
    strings = {"": 0}

    def s(text):
        return strings.setdefault(text, len(strings))
    out = b"".join(message(1, number(1, s(t)) + number(2, s(u))) for t, u in types)
    for stack, values, labels in samples:
        out += message(2, packed(1, stack) + packed(2, values) +
                       b"".join(message(3, number(1, s(k)) + number(2, s(v))) for k, v in labels))
    for i, file, build in mappings:
        out += message(3, number(1, i) + number(2, 4096 * i) + number(3, 4096 * i + 4096) + number(5, s(file)) +
                       number(6, s(build)) + number(7, 1))
    for i, mapping, address, lines in locations:
        out += message(4, number(1, i) + number(2, mapping) + number(3, address) +
                       b"".join(message(4, number(1, f) + number(2, at)) for f, at in lines))
    for i, name, system, file, start in functions:
        out += message(5, number(1, i) + number(2, s(name)) + number(3, s(system)) + number(4, s(file)) + number(5, start))
    out += (number(7, s(drop)) + number(8, s(keep)) + number(9, time) + number(10, duration) +
            packed(13, [s(c) for c in comments]) + number(14, s(default)))
    return out + b"".join(message(6, text.encode()) for text in strings)


NAMES = ("main", "crunch", "a::b<int>::c(int)", "main.(*T).foo[go.shape.int]", "main.(*T[int]).bar", "foo(bar)", "malloc",
         "operator new(unsigned long)", "tcmalloc::Alloc", "_ZN3foo3barEv", "_Z3addii", "_ZNSt6vectorIiSaIiEE9push_backERKi",
         "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "x.<init>", "Vec<T>)(", "[unknown]", "java.lang.Thread.run",
         "ns::(anonymous namespace)::f(int)", "a;b", "\u00fcn\u00efcode", "operator()", "ns::operator<<")
UNITS = ("count", "bytes", "nanoseconds", "microseconds", "ms", "seconds", "hours", "kilobytes", "widgets", "", "GCU", "nanogcu",
         "B", "Bytes", "sample", "auto", "minimum")
TYPES = ("samples", "cpu", "inuse_space", "alloc_space", "space", "delay", "other")
DROPS = ("", "", "malloc|tcmalloc::.*", r"operator new.*|(__)?posix_memalign|crunch", r"f[0-9]+|operator new(\[\])?", "main|(foo)|bar")
MAPPINGS = (("/usr/bin/prog", "abc123"), ("/lib/libc.so.6", ""), ("", ""), ("[vdso]", ""), ("dir/", ""))


def any_profile(r, types=None):
    """One of r, a random.Random, of these types or any.  No two rows of a table have one name: pprof has no order for those."""
    apart = r.choice((0, 1000))  # ids are no indices
    mappings = [(i + 1 + apart, file, build) for i, (file, build) in enumerate(r.sample(MAPPINGS, r.randint(0, len(MAPPINGS))))]
    functions = []
    for i in range(r.randint(1, 25)):
        name = r.choice(NAMES + ("",)) if r.random() < .7 else "f%d" % i
        functions.append((i + 1 + apart, name, name if r.random() < .9 or not name else "system", r.choice(("", "a.c", "/src/main.c")),
                          r.randint(0, 3) if name else 0))
    locations = [(i + 1 + apart, r.choice([0] + [m[0] for m in mappings]), 4096 + 16 * i,
                  [(r.choice(functions)[0], r.randint(0, 90)) for _ in range(r.choice((0, 1, 1, 1, 2, 3)))])
                 for i in range(r.randint(1, 40))]
    types = types or [(t, r.choice(UNITS)) for t in r.sample(TYPES, r.randint(1, 4))]
    negative, scale, base = r.random() < .4, 10 ** r.randint(0, 12), r.random() < .15
    samples = []
    for _ in range(r.choice((0, 1, 3, 30, 200))):
        values = [0 if r.random() < .1 else int(r.paretovariate(.7) * scale) % 10 ** 16 * (-1 if negative and r.random() < .5 else 1)
                  for _ in types]
        samples.append(([r.choice(locations)[0] for _ in range(r.choice((0, 1, 2, 5, 20)))], values,
                        [("pprof::base", "true")] if base and r.random() < .4 else [("k", "v")] if r.random() < .1 else []))
    return profile(types, samples, locations, functions, mappings, drop=r.choice(DROPS), keep=r.choice(("", "f1.*", "main")),
                   default=r.choice(("", "cpu", "space", "nope")), comments=r.choice(((), ("hello", "#no"))),
                   time=r.choice((0, 1700000000123456789)), duration=r.choice((0, 10 ** 9, 1234567890)))
