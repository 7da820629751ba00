#!/usr/bin/env python3
"""Writes streams that are difficult for one-pass learners, with the true labels.

    scripts/make_streams.py sensors --rows 300000 --seed 1 --out sensors.csv
    scripts/make_streams.py scales --rows 60000 --seed 1 --out scales.csv
    scripts/make_streams.py skewed --rows 20000 --seed 1 --out skewed.csv
    scripts/make_streams.py drifting --rows 100000 --seed 1 --out drifting.csv

sensors  12 columns in time order: autocorrelated rows, six modes with long dwell times, of which one appears after 55 %
         and one after 80 % of the rows, and a few spikes (--spikes): rows in which one to three columns jump
scales   4 columns: eight Gaussian clusters whose standard deviations span three decades
skewed   2 columns: four clusters, two of them banana-shaped, one log-normal and one Gaussian
drifting 8 columns in time order: four modes whose means move steadily, in each column by 4 standard deviations of the mode
         over the stream; test rows are from the last tenth of the time

For FILE.csv, FILE.labels has the mode of each row (-1 for a spike). --test-rows writes FILE.test.csv and
FILE.test.labels with further rows in random order. Needs only the standard library.
"""

import argparse
import math
import pathlib
import random


def random_factor(rng, dim, spread):
    """The lower Cholesky factor of a covariance with random correlations."""
    scale = [spread * math.exp(rng.uniform(-0.5, 0.5)) for _ in range(dim)]
    return [[scale[i] if i == j else scale[i] * rng.gauss(0, 0.4) / math.sqrt(dim) * 2 if j < i else 0.0
             for j in range(dim)] for i in range(dim)]


def multiply(lower, z):
    return [sum(row[j] * z[j] for j in range(i + 1)) for i, row in enumerate(lower)]


class Sensors:
    """Six modes; within a mode, rows follow a first-order autoregression whose stationary distribution is Gaussian."""

    DIM, MODES, MEMORY = 12, 6, 0.9
    FIRST = [0.0, 0.0, 0.0, 0.0, 0.55, 0.8]

    def __init__(self, rng):
        self.means = [[rng.gauss(0, 4.0) for _ in range(self.DIM)] for _ in range(self.MODES)]
        self.factors = [random_factor(rng, self.DIM, 1.3) for _ in range(self.MODES)]

    def stream(self, rng, rows, spikes):
        at = set(rng.sample(range(rows // 20, rows), spikes))
        mode, left, z = 0, 0, None
        for i in range(rows):
            if left == 0:
                known = [m for m in range(self.MODES) if self.FIRST[m] <= i / rows]
                new = [m for m in known if self.FIRST[m] > 0 and i <= self.FIRST[m] * rows + 4000]
                mode, left = rng.choice(new or known), rng.randint(2000, 6000)
            if z is None:
                z = [rng.gauss(0, 1) for _ in range(self.DIM)]
            else:
                fresh = math.sqrt(1 - self.MEMORY**2)
                z = [self.MEMORY * v + fresh * rng.gauss(0, 1) for v in z]
            # A late mode appears at its exact row.
            due = [m for m in range(self.MODES) if self.FIRST[m] > 0 and i == int(self.FIRST[m] * rows)]
            if due:
                mode, left = due[0], 4000
            left -= 1
            row = self.row(mode, z)
            if i in at:
                for column in rng.sample(range(self.DIM), rng.randint(1, 3)):
                    row[column] += rng.choice([-1, 1]) * rng.uniform(30, 60)
                yield row, -1
            else:
                yield row, mode

    def row(self, mode, z):
        return [m + v for m, v in zip(self.means[mode], multiply(self.factors[mode], z))]

    def test(self, rng, rows, counts):
        for mode in rng.choices(range(self.MODES), weights=counts, k=rows):
            yield self.row(mode, [rng.gauss(0, 1) for _ in range(self.DIM)]), mode


class Clusters:
    """Independent rows of several clusters."""

    def stream(self, rng, rows, spikes):
        for _ in range(rows):
            label = rng.choices(range(len(self.weights)), weights=self.weights)[0]
            yield self.row(rng, label), label

    def test(self, rng, rows, counts):
        return self.stream(rng, rows, 0)


class Scales(Clusters):
    DIM, K = 4, 8

    def __init__(self, rng):
        self.weights = [rng.uniform(0.5, 1.5) for _ in range(self.K)]
        self.means = [[rng.gauss(0, 10.0) for _ in range(self.DIM)] for _ in range(self.K)]
        spreads = [10 ** (-2 + 3 * k / (self.K - 1)) for k in range(self.K)]
        self.factors = [random_factor(rng, self.DIM, spread) for spread in spreads]

    def row(self, rng, label):
        z = [rng.gauss(0, 1) for _ in range(self.DIM)]
        return [m + v for m, v in zip(self.means[label], multiply(self.factors[label], z))]


class Skewed(Clusters):
    def __init__(self, rng):
        self.weights = [rng.uniform(0.7, 1.3) for _ in range(4)]
        places = [(0, 0), (14, 0), (0, 14), (14, 14)]
        rng.shuffle(places)
        self.places = [(x + rng.gauss(0, 0.5), y + rng.gauss(0, 0.5)) for x, y in places]
        self.turns = [rng.uniform(0, 2 * math.pi) for _ in range(4)]

    def row(self, rng, label):
        if label < 2:
            a = rng.gauss(0, 1.0)
            x, y = 2.0 * a, a * a - 1 + rng.gauss(0, 0.4)
        elif label == 2:
            x, y = math.exp(rng.gauss(0, 0.6)) - 1, math.exp(rng.gauss(0, 0.6)) - 1
        else:
            x, y = rng.gauss(0, 1), rng.gauss(0, 0.6)
        (px, py), turn = self.places[label], self.turns[label]
        return [px + x * math.cos(turn) - y * math.sin(turn), py + x * math.sin(turn) + y * math.cos(turn)]


class Drifting:
    """Independent rows of four modes whose means move."""

    DIM, MODES, DISTANCE = 8, 4, 4.0

    def __init__(self, rng):
        self.means = [[rng.gauss(0, 4.0) for _ in range(self.DIM)] for _ in range(self.MODES)]
        self.factors = [random_factor(rng, self.DIM, 1.0) for _ in range(self.MODES)]
        self.signs = [rng.choice([-1, 1]) for _ in range(self.DIM)]

    def row(self, rng, time):
        mode = rng.randrange(self.MODES)
        lower = self.factors[mode]
        noise = multiply(lower, [rng.gauss(0, 1) for _ in range(self.DIM)])
        moved = [self.DISTANCE * time * sign * math.hypot(*factor) for sign, factor in zip(self.signs, lower)]
        return [sum(values) for values in zip(self.means[mode], noise, moved)], mode

    def stream(self, rng, rows, spikes):
        return (self.row(rng, i / rows) for i in range(rows))

    def test(self, rng, rows, counts):
        return (self.row(rng, rng.uniform(0.9, 1.0)) for _ in range(rows))


KINDS = {"sensors": Sensors, "scales": Scales, "skewed": Skewed, "drifting": Drifting}


def write(path, rows):
    counts = {}
    with open(path, "w") as data, open(path.with_suffix(".labels"), "w") as labels:
        header = None
        for row, label in rows:
            if header is None:
                header = ",".join(f"x{j + 1}" for j in range(len(row)))
                print(header, file=data)
            print(",".join(repr(round(value, 6)) for value in row), file=data)
            print(label, file=labels)
            counts[label] = counts.get(label, 0) + 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spikes", type=int, default=60)
    parser.add_argument("--test-rows", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    source = KINDS[args.kind](rng)
    counts = write(args.out, source.stream(rng, args.rows, args.spikes))
    if args.test_rows:
        weights = [counts.get(label, 0) for label in range(max(counts) + 1)]
        write(args.out.with_suffix(".test.csv"), source.test(rng, args.test_rows, weights))


if __name__ == "__main__":
    main()
