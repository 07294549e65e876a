"""Does one pipeline differ from another, and by how much? Paired comparison of two vectors of per-query values.

Delta is b − a, so a positive one means that b is better. What varies are *families* of questions (paraphrases,
parameters of one template): two of a family say little more than one, so every interval is over families. How each
interval was chosen, and what it covers, is measured by benchmarks/honesty.py and stands in docs/evaluation.md:
Student's t for a difference, widened by half of the largest family; for a mean of values from 0 to 1 the same with one
family added at either end. Neither can have zero width. Below `FEWEST` families there is no interval and no word.

A word needs interval and test alike (`Comparison.word`), and p is corrected over all that is shown together; Holm's
correction is ours because scipy only controls the false discovery rate. What the values mean is in measures.py; queries
that either side leaves unscored take no part. What holds however often one looks is in sequential.py.

Sources: Liang and Zeger 1986 (sums by cluster); Agresti and Coull 1998 (observations added at either end); Holm 1979;
Schuirmann 1987 (the same within a margin); Bloom 1995 (minimum detectable effect).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, isfinite, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_core.errors import InputError
from rag_core.measure.scores import ScoredReport

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float64]

CORRECTION = "Holm"
LEVEL = 0.05
"""How often a word or an interval may be wrong by chance."""
MARGIN = 0.05
"""Differences smaller than this are none for practical purposes, unless a person says otherwise."""
FEWEST = 6
"""Fewer families than this carry neither an interval nor a word."""
POWER = 0.8
MOST = 100_000  # questions: what would need more is not planned for
TIE = 1e-12  # differences this small are rounding, not wins
BETTER, WORSE, SAME, OPEN = "better", "worse", "the same for practical purposes", "not yet known"
TOO_FEW, IDENTICAL = "too few questions", "the same"
DIFFERENCE, LEVELS, ALL_TIE = "Student's t over families, widened", "t over families, one added at 0 and at 1", "exact"

Values = Sequence[float | None]


class Interval(NamedTuple):
    """Where a mean lies, and by which method; None and '' where too few families say nothing."""

    low: float | None
    high: float | None
    method: str


NO_INTERVAL = Interval(None, None, "")


@dataclass(frozen=True, slots=True)
class Comparison:
    """How b differs from a over the queries that both score. None where there are too few queries to say."""

    a: str
    b: str
    measure: str
    queries: int  # pairs compared
    delta: float | None  # mean of b − a
    low: float | None  # 95 % interval of delta; from 6 families on
    high: float | None
    p: float | None  # two-sided, of no difference
    wins: int  # queries on which b is better
    ties: int
    losses: int
    detectable: float | None  # smallest true difference that the rule finds with power 0.8
    interval: str = ""  # how the interval came about
    families: int = 0
    deviation: float = 0.0  # of the families' differences
    largest: float = 0.0  # of them, without its sign
    p_corrected: float | None = None  # set by `corrected`
    identical: bool = False  # every figure of every question is that of the other: nothing to infer

    def word(self, margin: float = MARGIN, level: float = LEVEL) -> str:
        """What b is beside a: better, worse, the same for practical purposes, not yet known, or too few questions.

        Interval and corrected test must both say it; within the margin it is the same whatever the sign.
        """
        if self.identical:
            return IDENTICAL
        if self.low is None or self.high is None or self.p is None:
            return TOO_FEW
        if -margin < self.low and self.high < margin:
            return SAME
        p = self.p if self.p_corrected is None else self.p_corrected
        if p > level:
            return OPEN
        return BETTER if self.low > 0 else WORSE if self.high < 0 else OPEN

    def needed(self, margin: float = MARGIN, level: float = LEVEL) -> int | None:
        """Families in all with which the word would be known four times in five, if delta and spread are as seen."""
        if self.delta is None or self.low is None:
            return None
        return families_to_decide(self.delta, self.deviation, self.largest, margin, level)

    def to_json(self) -> dict[str, Any]:
        """One flat mapping for the `comparison` list of the command line."""
        ci = None if self.low is None or self.high is None else [self.low, self.high]
        named = {name: getattr(self, name) for name in self.__slots__ if name not in ("low", "high")}
        correction = CORRECTION if self.p_corrected is not None else None
        said = {"verdict": self.word(), "margin": MARGIN, "needed": self.needed()}
        return {**named, "ci": ci, "correction": correction, **said}

    def to_text(self) -> str:
        """One line: the difference with its interval, the test, wins and losses."""
        return comparison_line(self.to_json())


def compare(
    a: Values,
    b: Values,
    *,
    names: tuple[str, str] = ("a", "b"),
    measure: str = "",
    families: Sequence[str] | None = None,
) -> Comparison:
    """Compare two vectors of per-query values that stand in the same order of queries, which `families` name.

    A query that either side leaves unscored (None) is left out; without families each query is its own. Raises
    InputError for vectors of different length or a value that is not finite.
    """
    import numpy as np

    differences, named = paired_differences(a, b, families)
    row = np.asarray(differences, dtype=float)
    count, wins, losses = len(row), int((row > 0).sum()), int((row < 0).sum())
    if not count:
        return Comparison(*names, measure, 0, None, None, None, None, 0, 0, 0, None)
    sums = by_family(row, named)
    delta, spread, largest = float(row.mean()), sums.deviation, sums.largest
    low, high, method = difference_interval(row, named)
    return Comparison(
        *names,
        measure,
        count,
        delta,
        low,
        high,
        p_of_no_difference(sums),
        wins,
        count - wins - losses,
        losses,
        detectable(len(sums.means), spread, largest),
        method,
        len(sums.means),
        spread,
        largest,
    )


def paired_differences(
    a: Values, b: Values, families: Sequence[str] | None = None
) -> tuple[list[float], list[str] | None]:
    """Each b − a over the queries that both score, and their families; what is mere rounding is 0."""
    if len(a) != len(b) or (families is not None and len(families) != len(a)):
        raise InputError(f"comparison got {len(a)} and {len(b)} values, expected one of each per query")
    places = [at for at, pair in enumerate(zip(a, b, strict=True)) if None not in pair]
    differences = []
    for at in places:
        before, after = a[at], b[at]
        assert before is not None
        assert after is not None
        bad = next((value for value in (before, after) if not isfinite(value)), None)
        if bad is not None:
            raise InputError(f"comparison got the value {bad}, expected a finite number or nothing")
        difference = float(after) - float(before)
        differences.append(0.0 if abs(difference) <= TIE else difference)
    return differences, None if families is None else [families[at] for at in places]


class Families(NamedTuple):
    """Values by family: each family's weighted mean (their plain mean is that of the values) and how it deviates."""

    means: Row
    residuals: Row  # from the mean of the values, weighted alike
    sizes: Row  # as shares of the mean size

    @property
    def largest(self) -> float:
        """The largest family mean, without its sign."""
        return float(abs(self.means).max()) if len(self.means) else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the families; 0 below two."""
        return sqrt(float((self.residuals**2).sum()) / (len(self.means) - 1)) if len(self.means) > 1 else 0.0


def by_family(row: Row, families: Sequence[str] | None = None) -> Families:
    """The values summed by family, as shares of the mean family: the mean of `means` is the mean of `row`."""
    import numpy as np

    if families is None or not len(row):
        return Families(row, row - row.mean() if len(row) else row, np.ones(len(row)))
    _, member = np.unique(np.asarray(families, dtype=object).astype(str), return_inverse=True)
    sums, sizes = np.bincount(member, row), np.bincount(member).astype(np.float64)
    scale = len(sums) / max(1, len(row))
    residuals = (sums - sizes * float(row.mean())) * scale
    return Families(np.asarray(sums * scale, dtype=np.float64), residuals, sizes * scale)


def difference_interval(row: Row, families: Sequence[str] | None = None, level: float = LEVEL) -> Interval:
    """Where the mean of paired differences lies, at 1 − level; None below 6 families.

    Where every difference is 0 nothing can be estimated: as many questions as one bound of a share leaves open might
    differ by 1 (Clopper and Pearson 1934).
    """
    from scipy.special import stdtrit  # what scipy.stats.t asks; scipy.stats itself takes a second to import

    sums = by_family(row, families)
    count = len(sums.means)
    if count < FEWEST:
        return NO_INTERVAL
    if not sums.largest:
        unseen = 1 - (level / 2) ** (1 / count)
        return Interval(-unseen, unseen, ALL_TIE)
    off = float(stdtrit(count - 1, 1 - level / 2)) * standard_error(count, sums.deviation, sums.largest)
    mean = float(row.mean())
    return Interval(mean - off, mean + off, DIFFERENCE)


def standard_error(count: int, deviation: float, largest: float) -> float:
    """Of a mean difference over families: as if half a family more lay as far from the mean as the largest from 0.

    Without that, ties make the plain one too small: at ten families with 60 % ties it covers .89 instead of .93.
    """
    return sqrt(((count - 1) * deviation**2 + largest**2 / 2) / ((count - 1) * count))


def p_of_no_difference(sums: Families) -> float | None:
    """Two-sided p of the widened t; never below what signs alone could show, 2 / 2^families that differ."""
    from scipy.special import stdtr

    count = len(sums.means)
    if count < FEWEST:
        return None
    if not sums.largest:
        return 1.0
    score = float(sums.means.mean()) / standard_error(count, sums.deviation, sums.largest)
    differ = int((abs(sums.means) > TIE).sum())
    return min(1.0, max(2 * float(stdtr(count - 1, -abs(score))), 2.0 ** (1 - differ)))


def mean_interval(values: Sequence[float] | Row, families: Sequence[str] | None = None) -> Interval:
    """Where the mean of values from 0 to 1 lies, at 95 %: t with one family added at 0 and one at 1, within 0 to 1.

    None below 6 families. The added ones keep a share that was 0 or 1 everywhere from being certain.
    """
    import numpy as np
    from scipy.special import stdtrit

    row = np.asarray(values, dtype=float)
    sums = by_family(row, families)
    count = len(sums.means)
    if count < FEWEST:
        return NO_INTERVAL
    whole = count + 2
    centre = (float(sums.means.sum()) + 1) / whole
    residuals = np.concatenate([sums.means - sums.sizes * centre, [-centre, 1 - centre]])
    off = float(stdtrit(count - 1, 1 - LEVEL / 2)) * sqrt(float((residuals**2).sum()) / ((whole - 1) * whole))
    mean = float(row.mean())
    return Interval(max(0.0, min(mean, centre - off)), min(1.0, max(mean, centre + off)), LEVELS)


def power_of(
    count: int, delta: float, deviation: float, largest: float, margin: float = MARGIN, level: float = LEVEL
) -> float:
    """How often `count` families would let the rule say better, worse, or the same, at this true difference."""
    from scipy.special import ndtr, stdtrit

    error = max(standard_error(count, deviation, largest), 1e-12)
    edge = float(stdtrit(count - 1, 1 - level / 2))
    differs = float(ndtr(abs(delta) / error - edge))
    same = float(ndtr((margin - delta) / error - edge) + ndtr((margin + delta) / error - edge) - 1)
    return max(differs, same)


def families_to_decide(
    delta: float, deviation: float, largest: float, margin: float = MARGIN, level: float = LEVEL
) -> int | None:
    """The fewest families with which the rule decides four times in five; None where 100,000 would not do."""
    if not largest:  # nothing differs: what the bound of a share leaves open must come under the margin
        return max(FEWEST, ceil(log(level / 2) / log(1 - margin))) if margin > 0 else None

    def enough(count: int) -> bool:
        return power_of(count, delta, deviation, largest, margin, level) >= POWER

    return fewest(enough)


def fewest(enough: Callable[[int], bool]) -> int | None:
    """The least count from 6 on that is enough, where more is never worse; None beyond 100,000."""
    low, high = FEWEST - 1, FEWEST
    while not enough(high):
        if high >= MOST:
            return None
        low, high = high, min(MOST, 2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable(count: int, deviation: float, largest: float, level: float = LEVEL) -> float | None:
    """Smallest true mean difference that the rule in force finds with power 0.8; None below 6 families.

    (t(1 − level/2) + t(power)) · standard error with n − 1 degrees of freedom (Bloom, Minimum detectable effects,
    Evaluation Review 19(5), 1995), of the widened error. The largest difference grows with the effect: some 1.5
    deviations lie beyond it, where nothing larger was seen.
    """
    from scipy.special import stdtrit

    if count < FEWEST or not largest:
        return None
    edge, effect = float(stdtrit(count - 1, [1 - level / 2, POWER]).sum()), 0.0
    for _ in range(20):  # converges: each step moves less than half of the one before
        effect = edge * standard_error(count, deviation, max(largest, effect + 1.5 * deviation))
    return effect


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p values, in the order given (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for done, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[position]))
        adjusted[position] = highest
    return adjusted


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with `p_corrected` for their number; those without a p do not count."""
    adjusted = iter(holm([row.p for row in comparisons if row.p is not None]))
    return [row if row.p is None else replace(row, p_corrected=next(adjusted)) for row in comparisons]


def shown_p(p: float) -> str:
    """A p as it is read: never 0.000."""
    return "p below 0.001" if p < 0.001 else f"p {p:.3f}"


def comparison_line(row: Mapping[str, Any]) -> str:
    """What `Comparison.to_json` gave, in one line."""
    if row["delta"] is None:
        return f"{row['b']} − {row['a']}: no question has a relevant label, so nothing is compared"
    if row["verdict"] == IDENTICAL:
        return f"{row['b']} − {row['a']}: {row['measure']} the same on each of {row['queries']} questions"
    interval = " (too few for an interval)" if row["ci"] is None else f" [{row['ci'][0]:+.3f}, {row['ci'][1]:+.3f}]"
    p = row["p"] if row["p_corrected"] is None else row["p_corrected"]
    said = "" if p is None else f", {shown_p(p)} ({row['correction'] or 'uncorrected'}), {row['verdict']}"
    counts = f"{row['wins']} wins, {row['ties']} ties, {row['losses']} losses"
    return f"{row['b']} − {row['a']}: {row['measure']} {row['delta']:+.3f}{interval}{said}; {counts}"


def compare_reports(
    reports: Sequence[ScoredReport], every_pair: bool = False, measures: Sequence[str] = ("SetF",)
) -> list[Comparison]:
    """Each pipeline against the first, or every pair, in these measures; nothing for a single one.

    p is corrected over all of it, pairs and measures.
    """
    if len(reports) < 2:
        return []
    compared: list[Comparison] = []
    scores = {report.name: list(report.query_scores) for report in reports}
    for measure in dict.fromkeys(measures):
        values = {report.name: report.values(measure) for report in reports}
        compared += compare_each(values, measure, reports[0].families, every_pair=every_pair)
    return corrected([said_identical(one) if scores[one.a] == scores[one.b] else one for one in compared])


def said_identical(compared: Comparison) -> Comparison:
    """A comparison of two that give the same everywhere: no interval, no test, whatever the number of questions."""
    return replace(compared, identical=True, low=None, high=None, p=None, detectable=None, interval="")


def compare_each(
    values: Mapping[str, Values], measure: str, families: Sequence[str] | None = None, *, every_pair: bool = False
) -> list[Comparison]:
    """Every pipeline against the first, or every pair (values by name, same queries in the same order), corrected."""
    pairs = list(combinations(values, 2))
    if not every_pair:
        pairs = pairs[: len(values) - 1]
    rows = (compare(values[a], values[b], names=(a, b), measure=measure, families=families) for a, b in pairs)
    return corrected(list(rows))
