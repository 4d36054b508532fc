// ---- what is traded, what the choice costs, and how sure that is ----
const listing = (texts, last) => (texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} ${last} ${texts[texts.length - 1]}`);
const showTrade = () => {
  if (!words.groups.length) say($("consequences-title"), "What the choice does");
  const between = words.groups.length && traded.some((name) => /\bgap|difference/.test(labelOf(name))) ? ` between ${words.groups.length > MOST_SAID ? `${words.groups.length} groups` : listing(words.groups, "and")}` : "";
  say($("trade"), `The choice is between ${listing(names.map((_, j) => wishOf(j)), "and")}${between}: more of one costs some of the other${J > 2 ? "s" : ""}.`);
};
// The best choice without any limit, which everything is compared with.
let freely = { key: "", found: null };
const unbounded = () => {
  const key = `${state.run} ${state.constants} ${askedFor()}`;
  if (freely.key !== key) freely = { key, found: pick(chosenFrom(), criteriaOf({}, {})) };
  return freely.found;
};
const costParts = (split) => {
  const free = unbounded();
  if (free.at < 0) return [];
  const reference = chosenFrom().ray(free.at);
  return traded.map((name) => ({ name, by: valueAt(active(), state.ray, split, name) - valueAt(active(), reference, split, name) }));
};
// Both choices on the same data, which the sentence names.
const costText = (split) => {
  const parts = costParts(split);
  if (!parts.length) return "";
  if (!parts.some(({ by }) => isNumber(by))) return "";
  const telling = parts.filter(({ name, by }) => isNumber(by) && Math.abs(by) * scaleOf(name) >= (unitOf(name) ? 0.05 : 1e-4));
  const best = `the choice with the ${way(bestName())}`;
  const compared = `On ${dataName(split)}, compared with ${best}`;
  if (!telling.length) return `${compared}: no difference.`;
  return `${compared}: ${telling.map(({ name, by }) => difference(name, by)).join("; ")}.`;
};
// ---- what got worse beside it, the worst first; what is traded has been said ----
const WORTH_SAYING = 0.01; // one point, or one of 100 people
const worseOutcomes = (split) => {
  const free = unbounded();
  if (free.at < 0) return [];
  const run = active();
  const reference = chosenFrom().ray(free.at);
  return outcomesOf(run).filter(({ name }) => !name).flatMap((outcome) => {
    const [before, now] = [reference, state.ray].map((ray) => gapOf(outcome, run, ray, split));
    const grown = { by: now - before, text: `${Object.hasOwn(page.measures, outcome.gap) ? theOf(outcome.gap) : `the gap in ${outcome.title.toLowerCase()}`} grew from ${fixed(100 * before, 1)} to ${pointsText(now)}` };
    const lost = outcome.cells.filter((cell) => cell.group && typeof outcome.larger === "boolean").map((cell) => {
      const change = cell.at(run, state.ray, split)[0] - cell.at(run, reference, split)[0];
      const size = fixed(Math.abs(100 * change), 0);
      const [before, after] = cell.sentence.split("#");
      return { by: outcome.larger ? -change : change, text: `${before}${size} ${change > 0 ? "more" : "fewer"}${agreeing(after, size)}` };
    });
    const worst = lost.sort((a, b) => b.by - a.by).slice(0, 1); // of each outcome, the group that loses most
    return [...(traded.includes(outcome.gap) ? [] : [grown]), ...worst];
  }).filter(({ by }) => by >= WORTH_SAYING).sort((a, b) => b.by - a.by);
};
const worseText = (split) => {
  const worse = worseOutcomes(split).slice(0, 3);
  return worse.length ? `Worse on ${dataName(split)}, too: ${worse.map(({ text }) => text).join("; ")}.` : "";
};
const showCost = () => {
  const said = [costText(state.split), worseText(state.split)].filter(Boolean);
  if ($("cost").textContent !== said.join("")) $("cost").replaceChildren(...said.map((text) => make("span", {}, text)));
};
on("run", showTrade);
on("ray criteria run view", showCost);
