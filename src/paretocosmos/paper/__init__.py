"""The paper, reproduced. The core never imports this room; the command line does.

From a recipe to a report, in this order:

- `recipe`: what a table or figure of the paper needs (``recipes/*.toml``), cell by cell.
- `reproduce`: trains the cells that are not done, here, on processes (`_workers`) or on a cluster
  (`_cluster`); `_cell` trains one, `_done` says what is done, `_reproduction` where all of them
  stand.
- `collected`: what the cells gave as one typed value, which is the JSON in ``results/``; `_numbers`
  takes means over seeds, `_against` sets the paper's numbers beside ours (`published`, from
  ``published.toml`` and ``reasons.toml``), `_claims` and `_claim_ablation` judge what it says.
- `report`: that value as Markdown, HTML and figures.
- `names`: what problems, methods and sets are called in all of it.
"""
