"""The paper, reproduced: recipes, their cells, claims and reports."""
