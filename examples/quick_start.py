"""One training on census data, then any limit on the gap between men and women."""

from paretocosmos import fit

run = fit("adult")  # census data, included: who earns over 50,000 dollars?
for gap in (0.16, 0.08, 0.02):
    point = run.choose(max={"demographic_parity": gap}, maximize="accuracy").test
    men, women = point["selection_rate_Male"], point["selection_rate_Female"]
    print(
        f"gap at most {100 * gap:.0f} points: {point['accuracy']:.1%} correct, "
        f"yes for {men:.0%} of men and {women:.0%} of women"
    )
