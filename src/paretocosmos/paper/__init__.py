"""The reproduction of the paper. Only the command line imports this package.

From a recipe to a report, in this order:

- `recipe`: the experiments of a table or figure of the paper, read from ``recipes/*.toml``.
- `reproduction`: trains the experiments that are not done, wherever `training.scheduler` runs
  them; `experiment` trains one and finds its finished runs.
- `collect`: the results of the experiments (`results`), compared with the paper's numbers
  (`published`), and the paper's claims judged by them (`claims`).
- `report`: these results as Markdown, HTML and figures.
"""
