"""The preparers of the density-estimation sets on small samples in their sources' formats. All numbers are made up."""

from __future__ import annotations

import gzip
import io
import random
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from datasets_lib import prepare  # noqa: E402
from datasets_lib.raw import PrepareError, Raw  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None
try:
    import h5py
except ImportError:
    h5py = None


def prepared(name: str, file: str, content: bytes):
    """The header and the numbers that a preparer makes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.write_bytes(content)
        with Raw(path) as raw:
            table = prepare.PREPARERS[name](raw, 0)
            return table.header, [[float(cell) for cell in row] for row in table.rows]


@unittest.skipIf(numpy is None, "these preparers need numpy")
class Preparers(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(5)

    def scaled(self, rows):
        """That columns have mean 0 and standard deviation 1, up to the test rows."""
        table = numpy.array(rows)
        self.assertTrue((abs(table.mean(axis=0)) < 0.6).all(), table.mean(axis=0))
        self.assertTrue((abs(table.std(axis=0) - 1) < 0.5).all(), table.std(axis=0))

    def test_power(self):
        lines = ["Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_metering_1;"
                 "Sub_metering_2;Sub_metering_3"]
        for i in range(60):
            lines.append(f"16/12/2006;17:{i:02}:00;{self.random.random():.3f};0.1;{230 + self.random.random():.2f};"
                         f"18.4;{i % 3};{i % 2};17.000")
        lines.insert(7, "16/12/2006;18:00:00;?;?;?;?;?;?;")
        text = "\n".join(lines).encode()
        header, rows = prepared("power", "household_power_consumption.txt", text)
        self.assertEqual((header, len(rows), {len(row) for row in rows}), (prepare.density.POWER, 60, {6}))
        self.scaled(rows)
        self.assertEqual(prepared("power", "household_power_consumption.txt", text)[1], rows)
        with self.assertRaisesRegex(PrepareError, "line 1"):
            prepared("power", "household_power_consumption.txt", b"a;b\n")
        with self.assertRaisesRegex(PrepareError, "line 3 has 2 fields"):
            prepared("power", "household_power_consumption.txt", (lines[0] + "\n" + lines[1] + "\n1;2\n").encode())

    def test_gas_leaves_out_columns_that_repeat_others(self):
        lines = ["Time CO Ethylene sensors"]
        for i in range(200):
            free = [self.random.gauss(0, 1) for _ in range(8)]
            sensors = free + [2 * value + self.random.gauss(0, 0.01) for value in free]
            lines.append(" ".join(f"{value:.6f}" for value in [i / 100, 0.0, 0.0] + sensors))
        header, rows = prepared("gas", "ethylene_CO.txt", "\n".join(lines).encode())
        self.assertEqual((len(header), len(rows)), (8, 50))
        self.scaled(rows)
        for text in (b"head\n1 2 3\n", b"head\n1 2 3\n1 2\n", b"head\na b c\n"):
            with self.assertRaisesRegex(PrepareError, "19 numbers"):
                prepared("gas", "ethylene_CO.txt", text)

    def test_gas_draws_a_quarter_of_the_rows_in_random_order(self):
        lines = ["Time CO Ethylene sensors"]
        for i in range(402):
            noise = [self.random.gauss(0, 1) for _ in range(15)]
            lines.append(" ".join(f"{value:.6f}" for value in [i / 100, 0.0, 0.0, i] + noise))
        _, rows = prepared("gas", "ethylene_CO.txt", "\n".join(lines).encode())
        times = [row[0] for row in rows]
        self.assertEqual((len(times), len(set(times))), (100, 100))
        self.assertLess(min(times[:50]), max(times[50:]))
        self.assertNotEqual(times, sorted(times))

    def test_hepmass_keeps_signal_rows_and_columns_without_repeats(self):
        def part(rows, wider):
            lines = ["# label," + ",".join(f"f{i}" for i in range(27 + wider))]
            for i in range(rows):
                # The columns that go repeat their smallest value. One that repeats its largest value stays.
                features = [i // 2 % 2 if j < 6 else self.random.gauss(j, 2) for j in range(27)] + [1000] * wider
                features[8] = min(features[8], 8.0)
                lines.append(",".join(map(str, [i % 2] + features)))
            return gzip.compress("\n".join(lines).encode())

        held = io.BytesIO()
        with zipfile.ZipFile(held, "w") as archive:
            archive.writestr("1000_train.csv.gz", part(80, 0))
            archive.writestr("1000_test.csv.gz", part(40, 1))
        header, rows = prepared("hepmass", "hepmass.zip", held.getvalue())
        self.assertEqual((len(header), len(rows)), (21, 60))
        self.scaled(rows)

    def test_miniboone_keeps_signal_events_and_43_columns(self):
        events = [[self.random.gauss(0, 1) if j >= 7 else round(self.random.random()) for j in range(50)] for _ in range(60)]
        events[3] = [-999.0] * 50
        text = "40 20\n" + "\n".join(" ".join(map(str, event)) for event in events)
        header, rows = prepared("miniboone43", "MiniBooNE_PID.txt", text.encode())
        self.assertEqual((len(header), len(rows)), (43, 39))
        self.scaled(rows)
        last = [event[7] for event in events[:40] if event[0] > -100]
        self.assertEqual(sorted(range(39), key=last.__getitem__), sorted(range(39), key=lambda i: rows[i][0]), "file order")
        with self.assertRaisesRegex(PrepareError, "two counts"):
            prepared("miniboone43", "MiniBooNE_PID.txt", b"1 2 3\n")

    @unittest.skipIf(h5py is None, "this preparer needs h5py")
    def test_bsds300(self):
        held = io.BytesIO()
        with h5py.File(held, "w") as file:
            for part, rows in (("train", 5), ("validation", 2), ("test", 3)):
                file[part] = numpy.full((rows, 63), float(rows))
        header, rows = prepared("bsds300", "BSDS300.hdf5", held.getvalue())
        self.assertEqual((len(header), [row[0] for row in rows]), (63, [5.0] * 5 + [2.0] * 2 + [3.0] * 3))
        with self.assertRaisesRegex(PrepareError, "BSDS300.hdf5"):
            prepared("bsds300", "BSDS300.hdf5", b"not a file of this kind")

    def test_clean_files_stay_as_they_are(self):
        self.assertEqual(prepared("watch", "watch.csv", b"a,b\n1,2.5\n3,4\n"), (["a", "b"], [[1, 2.5], [3, 4]]))


if __name__ == "__main__":
    unittest.main()
