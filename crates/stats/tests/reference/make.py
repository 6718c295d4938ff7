#!/usr/bin/env python3
"""Makes reference.json: values of numpy and scipy for fixed data, for tests/reference.rs.

Run: python3 make.py > reference.json   (made with scipy 1.17.1, numpy as installed with it)
The forty run times are those published with a NUMA-aware frame allocator (aware, unaware);
the other samples are made here.
"""

import itertools
import json
import math

import numpy as np
import scipy
from scipy import optimize, stats

AWARE = [9.149, 8.950, 8.542, 8.981, 8.850, 9.611, 9.572, 9.757, 9.150, 9.118,
         9.524, 8.713, 9.345, 9.046, 9.051, 10.058, 8.740, 9.266, 9.550, 9.047]
UNAWARE = [9.362, 9.963, 8.672, 9.138, 9.298, 8.827, 8.833, 10.458, 10.170, 10.417,
           9.502, 10.010, 10.125, 9.907, 10.143, 10.313, 10.368, 11.712, 11.376, 9.932]


def made(n, seed, digits):
    """Skewed positive values by a generator of our own; few digits give ties."""
    values, state = [], seed
    for _ in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        values.append(round(5 + 3 * (state / 2**31) ** 2, digits))
    return values


def describe(x):
    x = np.array(x)
    return {
        "values": x.tolist(),
        "mean": x.mean(),
        "variance": x.var(ddof=1) if len(x) > 1 else 0.0,
        "quantiles": [[q, np.quantile(x, q)] for q in (0, 0.01, 0.25, 1 / 3, 0.5, 0.9, 0.99, 1)],
    }


def walsh(x):
    return [(x[i] + x[j]) / 2 for i in range(len(x)) for j in range(i, len(x))]


def signed_rank(d):
    d = np.array(d)
    nonzero = d[d != 0]
    ranks = stats.rankdata(abs(nonzero))
    statistic = ranks[nonzero > 0].sum()
    if len(nonzero) <= 50:
        p = [exact_signs(ranks, statistic, side) for side in SIDES]
    else:
        p = [stats.wilcoxon(d, correction=True, method="asymptotic", alternative=s).pvalue for s in SIDES]
    if len(set(abs(nonzero))) == len(nonzero) == len(d) <= 50:  # scipy's own exact method
        own = [stats.wilcoxon(d, method="exact", alternative=s).pvalue for s in SIDES]
        assert np.allclose(p, own, rtol=1e-12), (p, own)
    return {"differences": d.tolist(), "statistic": statistic, "p": p}


SIDES = ("two-sided", "less", "greater")


def exact_signs(ranks, statistic, side):
    """The null distribution of the rank sum, by polynomials over whole numbers."""
    doubled = [int(round(2 * rank)) for rank in ranks]
    ways = [1]
    for weight in doubled:
        shifted = [0] * weight + ways
        ways = [a + b for a, b in itertools.zip_longest(ways, shifted, fillvalue=0)]
    at = int(round(2 * statistic))
    return sided(sum(ways[:at + 1]) / 2 ** len(ranks), sum(ways[at:]) / 2 ** len(ranks), side)


def sided(at_most, at_least, side):
    return {"two-sided": min(1, 2 * min(at_most, at_least)), "less": at_most, "greater": at_least}[side]


def rank_sum(a, b):
    """scipy's exact or normal method; its permutation test where there are few values with ties."""
    ties = len(set(a + b)) < len(a + b)
    if len(a + b) > 60:
        p = [stats.mannwhitneyu(b, a, alternative=s, method="asymptotic").pvalue for s in SIDES]
    elif not ties:
        p = [stats.mannwhitneyu(b, a, alternative=s, method="exact").pvalue for s in SIDES]
    else:
        method = stats.PermutationMethod(n_resamples=np.inf)
        p = [stats.mannwhitneyu(b, a, alternative=s, method=method).pvalue for s in SIDES]
    u = stats.mannwhitneyu(b, a).statistic
    return {"baseline": a, "candidate": b, "statistic": u, "p": p}


def permutation(d):
    method = dict(permutation_type="samples", n_resamples=np.inf, vectorized=True)
    statistic = lambda x, axis: np.mean(x, axis=axis)
    p = [stats.permutation_test((d,), statistic, alternative=s, **method).pvalue for s in SIDES]
    return {"differences": d, "p": p}


def shift(a, b):
    differences = sorted(y - x for x in a for y in b)
    return {"baseline": a, "candidate": b, "value": float(np.median(differences)),
            "interval": moses(differences, len(a), len(b))}


def moses(differences, n, m):
    """Differences cut off by the exact null distribution of U, counted on whole numbers."""
    ways = {(0, 0): 1}
    for rank in range(1, n + m + 1):
        step = dict(ways)
        for (chosen, total), count in ways.items():
            if chosen < m:
                step[chosen + 1, total + rank] = step.get((chosen + 1, total + rank), 0) + count
        ways = step
    lowest, below, cut = m * (m + 1) // 2, 0, 0
    while (below + ways[m, lowest + cut]) / math.comb(n + m, m) <= 0.025:
        below += ways[m, lowest + cut]
        cut += 1
    return [differences[cut - 1], differences[-cut]] if cut else None


def one_sample(x):
    """Tukey's interval by scipy's exact signed-rank p: the ends where p passes 5 %."""
    averages = sorted(walsh(x))
    total = len(x) * (len(x) + 1) // 2
    ways = [1]
    for rank in range(1, len(x) + 1):
        shifted = [0] * rank + ways
        ways = [a + b for a, b in itertools.zip_longest(ways, shifted, fillvalue=0)]
    assert len(ways) == total + 1
    below = np.cumsum([w / 2 ** len(x) for w in ways])
    cut = int((below <= 0.025).sum())
    return {"values": x, "value": float(np.median(averages)),
            "interval": [averages[cut - 1], averages[-cut]] if cut else None}


def fieller(a, b, paired):
    """The ratios at which a t test of mean(b) = r mean(a) has p = 5 %, by root finding."""
    a, b = np.array(a), np.array(b)
    ratio = b.mean() / a.mean()
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    cov = np.cov(a, b)[0, 1] / len(a) if paired else 0.0
    spread = vb + ratio**2 * va
    freedom = len(a) - 1 if paired else spread**2 / (
        vb**2 / (len(b) - 1) + ratio**4 * va**2 / (len(a) - 1))
    t = stats.t.ppf(0.975, freedom)
    gap = lambda r: abs(b.mean() - r * a.mean()) - t * math.sqrt(vb + r * r * va - 2 * r * cov)
    ends = [optimize.brentq(gap, ratio, ratio * f, xtol=1e-15, rtol=1e-14) for f in (0.2, 5)]
    return {"baseline": a.tolist(), "candidate": b.tolist(), "paired": paired,
            "value": ratio, "interval": ends}


def tost(x, bound):
    x = np.array(x)
    return {"values": x.tolist(), "bound": bound,
            "p_not_below": signed_rank(x + bound)["p"][2],
            "p_not_above": signed_rank(x - bound)["p"][1]}


def bootstrap(x):
    """scipy's BCa and percentile ends of mean and median, with many resamples."""
    out = {"values": x, "ends": []}
    for name, statistic in (("mean", np.mean), ("median", np.median)):
        for method in ("percentile", "BCa"):
            found = stats.bootstrap((x,), statistic, n_resamples=200_000, method=method, rng=1, batch=20_000)
            found = found.confidence_interval
            out["ends"].append([name, method, found.low, found.high])
    return out


def main():
    tied, plain, long = made(20, 1, 1), made(17, 2, 9), made(70, 3, 1)
    centred = lambda x, c: [round(v - c, 9) for v in x]
    log_ratios = [math.log(b / a) for a, b in zip(AWARE, UNAWARE)]
    p_values = [0.01, 0.04, 0.03, 0.005, 0.2, 0.04]
    out = {
        "scipy": scipy.__version__,
        "samples": [describe(x) for x in (AWARE, UNAWARE, tied, plain, long)],
        "signed_rank": [signed_rank(x) for x in (
            log_ratios, centred(tied, 6), centred(plain, 5.5), centred(long, 6), centred(tied[:7], 5))],
        "rank_sum": [rank_sum(a, b) for a, b in (
            (AWARE, UNAWARE), (plain, made(9, 7, 9)), (made(6, 4, 1), made(8, 5, 1)),
            (long, made(40, 6, 1)))],
        "permutation": [permutation(x) for x in (centred(made(12, 8, 2), 5.6), centred(plain[:15], 5.5))],
        "shift": [shift(a, b) for a, b in ((AWARE, UNAWARE), (tied, made(11, 9, 1)))],
        "hodges_lehmann": [one_sample(x) for x in (log_ratios, tied, plain)],
        "fieller": [fieller(AWARE, UNAWARE, False), fieller(AWARE, UNAWARE, True), fieller(tied, plain, False)],
        "equivalence": [tost([r / 10 for r in log_ratios], 0.02), tost(log_ratios, 0.1)],
        "p_values": p_values,
        "benjamini_hochberg": stats.false_discovery_control(p_values).tolist(),
        "bootstrap": [bootstrap(AWARE), bootstrap(tied)],
    }
    print(json.dumps(out, indent=None, separators=(",", ":"), default=float))


main()
