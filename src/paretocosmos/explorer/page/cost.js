// ---- what is traded, what the choice costs, and how sure that is ----
const listing = (texts, last) => (texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} ${last} ${texts[texts.length - 1]}`);
const showTrade = () => {
  if (!words.groups.length) say($("consequences-title"), "What it does");
  const between = words.groups.length && traded.some((name) => /\bgap|difference/.test(labelOf(name))) ? ` between ${listing(words.groups, "and")}` : "";
  say($("trade"), `The choice is between ${listing(names.map((_, j) => wishOf(j)), "and")}${between}: more of one costs some of the other${J > 2 ? "s" : ""}.`);
};
// The best choice without any limit, which everything is compared with.
let freely = { key: "", found: null };
const unbounded = () => {
  const key = `${state.run} ${state.constants} ${askedFor()}`;
  if (freely.key !== key) freely = { key, found: pick(chosenFrom(), criteriaOf({}, {})) };
  return freely.found;
};
const costParts = () => {
  const free = unbounded();
  if (free.at < 0) return [];
  const front = chosenFrom();
  const mix = mixOf(active(), choosingSplit);
  return traded.map((name) => ({ name, now: blend(front.columns[name], mix), by: blend(front.columns[name], mix) - front.columns[name][free.at] }));
};
const costText = () => {
  const parts = costParts();
  if (!parts.length) return "";
  const telling = parts.filter(({ name, by }) => isNumber(by) && Math.abs(by) * scaleOf(name) >= (unitOf(name) ? 0.05 : 1e-4));
  const best = `the choice with the ${way(bestName())}`;
  if (!telling.length) return `This is ${best}.`;
  return `Compared with ${best}: ${telling.map(({ name, by }) => difference(name, by)).join("; ")}.`;
};
// What new people may see of a limit: the test data, by which nothing was chosen.
const sureText = () => {
  const last = splits.includes("test") ? "test" : splits[splits.length - 1];
  const run = active();
  return boundsOf(criteria()).map(({ name, bound, side }) => {
    const value = gapAt(run, state.ray, last, name);
    const ends = gapEnds(run, state.ray, last, name);
    if (!isNumber(value) || last === choosingSplit) return "";
    const sure = ends ? ` (95 % interval: ${bare(name, ends[0])} to ${bare(name, ends[1])})` : "";
    const broken = ends && (side > 0 ? ends[1] > bound : ends[0] < bound);
    const over = side > 0 ? value > bound : value < bound;
    const said = over ? `: ${side > 0 ? "above" : "below"} the limit` : broken ? ": the limit may not hold for new cases" : "";
    return ` On the test data, ${theOf(name)} is ${inUnits(name, value)}${sure}${said}.`;
  }).join("");
};
const showCost = () => {
  const said = [costText(), sureText().trim()].filter(Boolean);
  if ($("cost").textContent !== said.join("")) $("cost").replaceChildren(...said.map((text) => make("span", {}, text)));
};
on("run", showTrade);
on("ray criteria run", showCost);
