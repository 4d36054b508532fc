"""Build the compact tables that come with the package: `python scripts/build_data.py RAW_DIR`.

RAW_DIR holds the raw files as their authors published them (plain or .gz), each set in its own
folder (`adult/`, `compas/`, `credit/`) or all in one. The same files give the same bytes.
"""

import argparse
import hashlib
import lzma
from pathlib import Path

from paretocosmos.problems.tables import TABLES, read_raw

TARGET = Path(__file__).parents[1] / "src" / "paretocosmos" / "problems" / "data"

# lc and pb suit text: a byte depends on the one before it, not on its position.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]

README = """# The tables in this folder

Written by `python scripts/build_data.py RAW_DIR`; do not edit. CSV packed with xz; `RAW_DIR` holds
the raw files in `adult/`, `compas/` and `credit/`, plain or `.gz`. Rows are in the original order.

| file | source | licence |
| --- | --- | --- |
| `adult.csv.xz` | Adult / Census Income (Kohavi and Becker), UCI Machine Learning Repository, \
`adult.data` then `adult.test` | CC BY 4.0 |
| `compas.csv.xz` | ProPublica, `compas-scores-two-years.csv` of propublica/compas-analysis, from \
public court records | none stated |
| `default_credit.csv.xz` | Default of Credit Card Clients (I-Cheng Yeh), UCI Machine Learning \
Repository, `UCI_Credit_Card.csv` | CC BY 4.0 |

Changes made:

* `adult`: both files in one, with a header; the comment line, the blanks after the commas and the
  full stop after the test file's labels are gone. `?` is a missing value.
* `compas`: without id, names, birth dates and every column not listed below. Only the rows with
  |days_b_screening_arrest| <= 30, is_recid other than -1, c_charge_degree other than O and
  score_text other than N/A, as ProPublica filtered them. `length_of_stay` is c_jail_out -
  c_jail_in in whole hours, rounded down.
* `default_credit`: all rows and columns; whole numbers are written out (the raw file has 5e+05).

What is known to be wrong with each as a benchmark is said when it is loaded.
"""


def main() -> None:
    """Read the raw files, write the tables and their README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("raw", type=Path, metavar="RAW_DIR")
    raw = parser.parse_args().raw
    TARGET.mkdir(exist_ok=True)
    columns, packed_sums, plain_sums, total = [], [], [], 0
    for name in TABLES:
        frame = read_raw(name, raw)
        plain = frame.to_csv(index=False, lineterminator="\n").encode()
        packed = lzma.compress(plain, format=lzma.FORMAT_XZ, filters=FILTERS)
        (TARGET / f"{name}.csv.xz").write_bytes(packed)
        total += len(packed)
        columns.append(f"* `{name}`, {len(frame):,} rows: {', '.join(frame.columns)}")
        packed_sums.append(f"{hashlib.sha256(packed).hexdigest()}  {name}.csv.xz")
        plain_sums.append(f"{hashlib.sha256(plain).hexdigest()}  {name}.csv")
        print(f"{name}: {len(frame):,} rows, {len(packed):,} bytes")
    sums = "\n".join([*packed_sums, *plain_sums])
    text = README + "\n## Columns\n" + "\n".join(columns) + f"\n\n## sha256\n```\n{sums}\n```\n"
    (TARGET / "README.md").write_text(text, encoding="utf-8")
    print(f"in all {total:,} bytes in {TARGET}")


if __name__ == "__main__":
    main()
