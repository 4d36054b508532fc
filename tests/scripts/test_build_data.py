"""The public tables: counts from their publishers, and the copies in the package."""

import gzip
import hashlib
import lzma
import re
import runpy
import shutil
import sys
from importlib import resources
from pathlib import Path

import pandas as pd
import pytest

from paretocosmos.errors import DataError
from paretocosmos.problems.tables import TableName, read_embedded

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from build_data import TABLES, read_raw

ROOT = Path(__file__).parents[2]
RAW = ROOT.parent / "shared" / "data"
FILES = resources.files("paretocosmos.problems") / "data"
ALL: tuple[TableName, ...] = ("adult", "compas", "default_credit")

needs_raw = pytest.mark.skipif(not RAW.is_dir(), reason="the raw files are not here")


class TestEmbedded:
    @pytest.mark.parametrize("name", ALL)
    def test_checksums_in_the_readme(self, name: TableName) -> None:
        sums = {
            line[66:]: line[:64]
            for line in (FILES / "README.md").read_text("utf-8").splitlines()
            if re.match(r"[0-9a-f]{64}  ", line)
        }
        packed = (FILES / f"{name}.csv.xz").read_bytes()
        assert hashlib.sha256(packed).hexdigest() == sums[f"{name}.csv.xz"]
        assert hashlib.sha256(lzma.decompress(packed)).hexdigest() == sums[f"{name}.csv"]

    def test_they_are_small(self) -> None:
        sizes = [len((FILES / f"{name}.csv.xz").read_bytes()) for name in ALL]
        assert sum(sizes) < 1_500_000

    def test_adult_counts(self) -> None:
        frame = read_embedded("adult")
        assert frame.shape == (48_842, 15)
        assert (frame["income"] == ">50K").sum() == 11_687
        assert (frame["sex"] == "Female").sum() == 16_192
        unknown = (frame[["workclass", "occupation", "native-country"]] == "?").sum()
        assert unknown.tolist() == [2_799, 2_809, 857]
        assert not frame.isna().any(axis=None)

    def test_adult_train_file_is_uci_s(self) -> None:
        # written back as UCI writes it, the first 32,561 rows have the md5 everybody knows
        lines = lzma.decompress((FILES / "adult.csv.xz").read_bytes()).decode().splitlines()
        text = "".join(line.replace(",", ", ") + "\n" for line in lines[1:32_562]) + "\n"
        assert hashlib.md5(text.encode()).hexdigest() == "5d7c39d7b8804f071cdd1f2a7c460872"

    def test_compas_counts(self) -> None:
        frame = read_embedded("compas")
        assert len(frame) == 6_172
        assert frame["sex"].value_counts().to_dict() == {"Male": 4_997, "Female": 1_175}
        assert frame["two_year_recid"].sum() == 2_809
        assert (frame["is_recid"] == frame["two_year_recid"]).mean() == pytest.approx(0.971, 1e-3)
        assert not frame.loc[frame["is_recid"] == 0, "two_year_recid"].any()
        assert frame["length_of_stay"].min() == -12
        assert not frame.isna().any(axis=None)

    def test_compas_holds_nobody_s_name(self) -> None:
        columns = set(read_embedded("compas").columns)
        assert not columns & {"id", "name", "first", "last", "dob", "c_jail_in", "c_jail_out"}

    def test_default_credit_counts(self) -> None:
        frame = read_embedded("default_credit")
        assert frame.shape == (30_000, 25)
        assert frame["default.payment.next.month"].sum() == 6_636
        assert frame["SEX"].value_counts().to_dict() == {1: 11_888, 2: 18_112}
        assert frame["ID"].tolist() == list(range(1, 30_001))


@needs_raw
class TestRaw:
    @pytest.mark.parametrize("name", ALL)
    def test_embedded_equals_raw(self, name: TableName) -> None:
        pd.testing.assert_frame_equal(read_raw(name, RAW), read_embedded(name))

    def test_md5_of_the_published_file(self) -> None:
        with gzip.open(RAW / "adult" / "adult.data.gz") as stream:
            digest = hashlib.md5(stream.read()).hexdigest()
        assert digest == "5d7c39d7b8804f071cdd1f2a7c460872"

    def test_plain_files_in_one_folder(self, tmp_path: Path) -> None:
        for file in ("adult.data", "adult.test"):
            with gzip.open(RAW / "adult" / f"{file}.gz") as stream:
                (tmp_path / file).write_bytes(stream.read())
        pd.testing.assert_frame_equal(read_raw("adult", tmp_path), read_embedded("adult"))

    @pytest.mark.system
    def test_the_script_writes_the_same_tables(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        script = tmp_path / "scripts" / "build_data.py"
        script.parent.mkdir()
        shutil.copy(ROOT / "scripts" / "build_data.py", script)
        target = tmp_path / "src" / "paretocosmos" / "problems"
        target.mkdir(parents=True)
        monkeypatch.setattr(sys, "argv", ["build_data.py", str(RAW)])
        runpy.run_path(str(script), run_name="__main__")
        for name in ALL:
            # another liblzma may pack differently: what is packed counts
            built = lzma.decompress((target / "data" / f"{name}.csv.xz").read_bytes())
            assert built == lzma.decompress((FILES / f"{name}.csv.xz").read_bytes())
        assert "in all 1," in capsys.readouterr().out

    def test_a_truncated_file(self, tmp_path: Path) -> None:
        whole = (RAW / "credit" / "UCI_Credit_Card.csv.gz").read_bytes()
        (tmp_path / "UCI_Credit_Card.csv.gz").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match=r"cannot be read .* fresh copy"):
            read_raw("default_credit", tmp_path)


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "file"),
        [
            ("adult", "adult.data"),
            ("compas", "compas-scores-two-years.csv"),
            ("default_credit", "UCI_Credit_Card.csv"),
        ],
    )
    def test_absent(self, name: TableName, file: str, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=f"`{file}` or `{file}.gz`.*missing in"):
            read_raw(name, tmp_path / "nowhere")

    @pytest.mark.parametrize(
        ("name", "file", "text"),
        [
            ("adult", "adult.data", "old, Private\n"),
            ("compas", "compas-scores-two-years.csv", "id,sex\n1,Male\n"),
            ("default_credit", "UCI_Credit_Card.csv", "<html>not found</html>\n"),
        ],
    )
    def test_something_else_by_that_name(
        self, name: TableName, file: str, text: str, tmp_path: Path
    ) -> None:
        (tmp_path / file).write_text(text)
        with pytest.raises(DataError, match=f"{file}` cannot be read"):
            read_raw(name, tmp_path)

    def test_columns_right_and_contents_wrong(self, tmp_path: Path) -> None:
        head = "sex,age,age_cat,race,c_charge_degree,priors_count,days_b_screening_arrest,"
        head += "decile_score,score_text,is_recid,two_year_recid,c_jail_in,c_jail_out\n"
        row = "Male,30,25 - 45,Other,F,0,1,1,Low,0,0,yesterday,today morning\n"
        (tmp_path / "compas-scores-two-years.csv").write_text(head + row)
        with pytest.raises(DataError, match=r"`compas` .* not as published"):
            read_raw("compas", tmp_path)

    def test_every_table_has_a_reader(self) -> None:
        assert tuple(TABLES) == ALL
