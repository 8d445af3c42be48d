"""method.py - how a benchmark's rounds become one figure and one verdict.

A ratio is the median of per-round ratios.  In each round both commands run twice
(ours, peer, peer, ours; the next round the other way round), so each is measured
against itself as well: the A/A interval is the 95 % interval of the median of
those ratios, by order statistics, the wider one of the two commands'.

A paired row's two are measured side by side by one program, so that each of its
rounds is a ratio: the 95 % interval of their median decides, as a whole on one side
of the bar or "unresolved".

An interval that is as wide as the row's noise is given more rounds for a while: it narrows with the
square root of their number.

What a stranger would get wrong:
- A wide A/A interval is no pass, however good the median looks: it is "unresolved".
  So is a median beyond its bar where there is a twin, the same in instructions: times
  of some nanoseconds depend on what else the processor's core does, counts do not.
  What is unresolved passes only by its twin.
- Only how wide the interval is says when there are rounds enough.  Rounds that end when the
  ratio looks right would find what they look for.

Tests: tests/project/bench.t.
"""
import dataclasses
import math
import typing

ROUNDS = 21
NOISE = 0.02       # widest A/A interval that lets a ratio pass
NOISE_PAIRS = 0.04  # the same for pairs of malloc and free, lock and unlock: a few nanoseconds


@dataclasses.dataclass(frozen=True)
class Bar:
    """Lowest and highest value that pass; None: no limit on that side."""
    low: typing.Optional[float] = None
    high: typing.Optional[float] = None

    def holds(self, value):
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def misses_by(self, value):
        """How far outside, 0 inside."""
        return max(0.0, value - self.high if self.high is not None else 0.0,
                   self.low - value if self.low is not None else 0.0)

    def __str__(self):
        if self.low is not None and self.high is not None:
            return "%g..%g" % (self.low, self.high)
        return "" if self.low is self.high else "<= %g" % self.high if self.low is None else ">= %g" % self.low


def at_most(x):
    return Bar(high=x)


def at_least(x):
    return Bar(low=x)


def between(low, high):
    return Bar(low, high)


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure.  bench/README.md says what commands may contain and must print."""
    name: str
    unit: str
    bar: Bar                       # Bar(): for comparison only
    ours: tuple
    peer: tuple = ()
    kind: str = "ratio"            # ratio: ours / peer; added: ours - peer; value: ours
                                   # paired: ours / peer, both printed by ours
                                   # insn: instructions, ours - peer; insn_ratio: ours / peer
    twin: str = ""                 # the instruction-count row that an unresolved ratio passes by
    metric: str = ""               # the name in the programs' output; "": the row's own
    peer_metric: str = ""          # the same for the peer; "": metric
    peer_name: str = ""            # for people
    noise: float = NOISE
    rounds: int = ROUNDS
    counts: tuple = (2000, 202000)  # insn: {n} in the commands
    inside: str = ""               # insn: count only what this function takes
    tool: str = "callgrind"        # insn: of valgrind; cachegrind runs more programs and knows no inside
    within_noise: bool = False     # ratio: the noise alone decides how far beyond the bar is a miss

    def experiment(self):
        """Rows with the same commands are measured by the same runs."""
        return (self.kind, self.ours, self.peer, self.rounds, self.counts, self.inside, self.tool)

    def metrics(self):
        ours = self.metric or self.name
        return ours, self.peer_metric or ours


@dataclasses.dataclass
class Result:
    row: Row
    value: typing.Optional[float] = None
    ok: typing.Union[bool, str] = "skipped"
    ours: typing.Optional[float] = None
    theirs: typing.Optional[float] = None
    noise: typing.Optional[float] = None
    why: str = ""                  # it was skipped

    def json(self):
        peer = self.row.peer_name or None
        if peer and self.theirs is not None:
            peer = "%s: %s" % (peer, number(self.theirs))
        if self.ok == "skipped":
            peer = "%sskipped: %s" % (peer + ", " if peer else "", self.why)
        return {"name": self.row.name, "value": rounded(self.value), "unit": self.row.unit, "bar": str(self.row.bar) or None,
                "ok": self.ok, "peer": peer, "noise": rounded(self.noise)}


def rounded(x):
    return None if x is None else float("%.5g" % x)


def number(x):
    return "" if x is None else "%.4g" % x if abs(x) < 10000 else "%.0f" % x


def median(values):
    s = sorted(values)
    if not s:
        raise ValueError("median of nothing")
    half = len(s) // 2
    return s[half] if len(s) % 2 else (s[half - 1] + s[half]) / 2


def interval(values):
    """The 95 % interval of the median: the order statistics it lies between."""
    s = sorted(values)
    k = max(0, math.floor((len(s) - 1.96 * math.sqrt(len(s))) / 2))
    return s[k], s[len(s) - 1 - k]


def width(values):
    low, high = interval(values)
    return high - low


def ratio_result(row, rounds):
    """rounds: of (ours, ours again, theirs, theirs again)."""
    if len(rounds) < row.rounds:
        raise ValueError("%s: %d rounds, not %d" % (row.name, len(rounds), row.rounds))
    value = median([(a + b) / (c + d) for a, b, c, d in rounds])
    noise = max(width([a / b for a, b, _, _ in rounds]), width([c / d for _, _, c, d in rounds]))
    return Result(row, value, ratio_verdict(row, value, noise), median([(r[0] + r[1]) / 2 for r in rounds]),
                  median([(r[2] + r[3]) / 2 for r in rounds]), noise)


def paired_result(row, rounds):
    """rounds: of (ours, theirs), measured side by side."""
    ratios = [a / b for a, b in rounds]
    low, high = interval(ratios)
    value = median(ratios)
    ok = row.bar.holds(low) and row.bar.holds(high)
    if not ok and any(row.bar.holds(r) for r in (low, value, high)):
        ok = "unresolved"
    return Result(row, value, ok, median([a for a, _ in rounds]), median([b for _, b in rounds]), high - low)


def is_noisy(result):
    """Would more rounds tell more?  The ratio itself is not asked."""
    return result.row.kind in ("ratio", "paired") and result.row.bar != Bar() and result.noise >= result.row.noise


def ratio_verdict(row, value, noise):
    if row.bar == Bar():
        return True
    if row.within_noise:
        return row.bar.misses_by(value) <= noise
    if row.bar.holds(value):
        return True if noise < row.noise else "unresolved"
    if row.twin:
        return "unresolved"
    # Noise excuses what is near the bar, not what is beyond it by more than the noise.
    return "unresolved" if noise >= row.noise and row.bar.misses_by(value) <= noise * value else False


def added_result(row, rounds):
    """The same rounds, for what we add to something that may be next to nothing."""
    value = median([(a + b - c - d) / 2 for a, b, c, d in rounds])
    noise = max(width([a - b for a, b, _, _ in rounds]), width([c - d for _, _, c, d in rounds]))
    return Result(row, value, row.bar.holds(value), median([(r[0] + r[1]) / 2 for r in rounds]),
                  median([(r[2] + r[3]) / 2 for r in rounds]), noise / abs(value) if value else None)


def value_result(row, values):
    value = median(values)
    noise = width(values) / abs(value) if len(values) > 1 and value else None
    return Result(row, value, row.bar.holds(value), value, None, noise)


def insn_result(row, ours, theirs):
    """Instructions of one operation."""
    value = ours - theirs if row.kind == "insn" else ours / theirs
    return Result(row, value, row.bar.holds(value), ours, theirs)


def against(row, theirs):
    """The same figure of two builds side by side, where smaller is better; else None.  theirs: the row's command in the other."""
    if row.bar.high is None or row.bar.low is not None:
        return None
    counted = row.kind in ("insn", "insn_ratio")
    return dataclasses.replace(row, unit="ratio", bar=at_most(1.01 if counted else 1), peer=theirs, twin="",
                               kind="insn_ratio" if counted else "ratio", metric=row.metrics()[0], peer_metric="",
                               peer_name="the other build, " + row.unit, within_noise=True)


def passes(result, results):
    """Does it count as a pass, given the others of its run?"""
    if result.ok == "unresolved":
        twin = [r for r in results if r.row.name == result.row.twin]
        return bool(twin) and twin[0].ok is True
    return result.ok is True
