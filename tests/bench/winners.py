"""How often has a simulated pair in turns a winner, at each time per run that the window offers?

Both sides do the same work, or one is slower by a fifth. Each round has a level of its own (other
places in memory), all samples scatter, and the PC's speed drifts. On a busy PC, another program
comes and goes, and makes everything slower by a factor that is drawn for each pair. Calls have
several lengths: long ones leave few rounds, and the worst counts.

    python -m tests.bench.winners --pairs 300

With ``--steady``, how often is a sustained run of 15 s called not steady, whose speed only drifts
by 3 % over some seconds, or whose second half is slower by a tenth?
"""

import argparse
import itertools

import numpy as np

from gpu_studio.core.benchmark.claim import claim_of
from gpu_studio.core.benchmark.sustained import unsteadiness
from gpu_studio.core.messages.run_messages import SUSTAINED_LOAD_S, RunFinished, RunWorkload
from gpu_studio.core.statistics import (
    interval_of_rounds,
    planned_rounds,
    round_medians,
)
from tests.fakes.run_answers import finished, in_turns

BUDGETS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
CALLS_S = (0.001, 0.05, 0.1, 0.3)
_MOST_SAMPLES = 240  # of a run: a batch is as long as that needs
_PLACE, _SCATTER, _DRIFT, _DRIFTS_FOR_S = 0.02, 0.02, 0.03, 3.0
_OTHER_FOR_S, _ALONE_FOR_S = 0.3, 0.7


class Pc:
    """A PC whose speed drifts, with or without another program."""

    def __init__(self, random: np.random.Generator, *, is_busy: bool) -> None:
        self.random = random
        self._drift, self._slower = random.normal(0, _DRIFT), 1.0
        self._factor = float(np.exp(random.uniform(np.log(1.5), np.log(100)))) if is_busy else 1.0
        self._until_s = self._now_s = 0.0

    def time(self, call_s: float) -> float:
        while self._now_s > self._until_s:
            self._slower = self._factor if self._slower == 1.0 else 1.0
            lasts_s = _ALONE_FOR_S if self._slower == 1.0 else _OTHER_FOR_S
            self._until_s += self.random.exponential(lasts_s)
        taken_s = call_s * self._slower * np.exp(self._drift + self.random.normal(0, _SCATTER))
        keep = np.exp(-taken_s / _DRIFTS_FOR_S)
        self._drift = keep * self._drift + np.sqrt(1 - keep**2) * self.random.normal(0, _DRIFT)
        self._now_s += taken_s
        return float(taken_s)


def pair(pc: Pc, budget_s: float, call_s: float, lead: float, *, is_busy: bool) -> int:
    """Return the sign of the claim on a pair: 1 if the device wins."""
    rounds = planned_rounds(budget_s, call_s)
    batch_s = max(call_s, budget_s / _MOST_SAMPLES)
    samples_s: tuple[list[float], list[float]] = ([], [])
    starts: tuple[list[int], list[int]] = ([], [])
    spent_s = [0.0, 0.0]
    for number in itertools.count(1):
        order = [side for side in (0, 1) if spent_s[side] < budget_s]
        if not order:
            break
        for side in order if number % 2 else reversed(order):
            starts[side].append(len(samples_s[side]))
            level = np.exp(pc.random.normal(0, _PLACE)) * (lead if side == 0 else 1.0)
            while True:
                taken_s = pc.time(batch_s * level)
                samples_s[side].append(taken_s)
                spent_s[side] += taken_s
                if spent_s[side] >= min(len(starts[side]) * budget_s / rounds, budget_s):
                    break
    one, other = map(result, samples_s, starts, (is_busy, is_busy))
    claim = claim_of(one, other)
    assert claim is not None
    return claim.sign


def result(samples_s: list[float], starts: list[int], is_busy: bool) -> RunFinished:
    request = RunWorkload(run_id="1", workload="x", device="cpu", size=1, dtype="float32")
    whole = finished(
        request, tuple(samples_s), other_processes=is_busy,
        ci95_s=interval_of_rounds(samples_s, starts),
    )  # fmt: skip
    return in_turns(whole, rounds_s=round_medians(samples_s, starts))


def share(pairs: int, budget_s: float, lead: float, *, is_busy: bool) -> tuple[float, float]:
    """Return the least and the largest share of pairs with a winner, over the lengths of calls."""
    shares = []
    for call_s in CALLS_S:
        if lead > 1 and 3 * call_s > budget_s:
            continue  # no pair can have a winner
        random = np.random.default_rng([int(budget_s * 10), int(call_s * 1e4), is_busy])
        signs = [
            pair(Pc(random, is_busy=is_busy), budget_s, call_s, lead, is_busy=is_busy)
            for _ in range(pairs)
        ]
        shares.append(sum(sign != 0 for sign in signs) / pairs)
    return min(shares), max(shares)


def unsteady(runs: int, drift_s: float, drop: float) -> float:
    """Return the share of runs that are called not steady.

    Args:
        runs: how many.
        drift_s: over how many seconds their speed drifts.
        drop: how much slower the second half is, as a share.
    """
    random, count = np.random.default_rng(int(drift_s)), 300
    keep = np.exp(-SUSTAINED_LOAD_S / count / drift_s)
    called = 0
    for _ in range(runs):
        level, samples_s = random.normal(0, _DRIFT), []
        for index in range(count):
            level = keep * level + np.sqrt(1 - keep**2) * random.normal(0, _DRIFT)
            half = 1 + drop * (index >= count // 2)
            samples_s.append(float(half * np.exp(level + random.normal(0, _SCATTER))))
        called += bool(unsteadiness(samples_s))
    return called / runs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--steady", action="store_true")
    options = parser.parse_args()
    pairs = options.pairs
    if options.steady:
        print("| Speed drifts over | Called not steady | A tenth slower: found |\n|---|---|---|")
        for drift_s in (1.0, 3.0, 10.0):
            steady, slower = (unsteady(pairs, drift_s, drop) for drop in (0.0, 0.1))
            print(f"| {drift_s:g} s | {steady:.0%} | {slower:.0%} |", flush=True)
        return
    print("| Time per run | Alike, calm | Alike, busy | 20 % apart, calm |\n|---|---|---|---|")
    for budget_s in BUDGETS_S:
        calm = share(pairs, budget_s, 1.0, is_busy=False)[1]
        busy = share(pairs, budget_s, 1.0, is_busy=True)[1]
        found = share(pairs, budget_s, 1.2, is_busy=False)[0]
        print(f"| {budget_s:g} s | {calm:.1%} | {busy:.1%} | {found:.0%} |", flush=True)


if __name__ == "__main__":
    main()
