// ---- how good the front is, how it was trained, what to know of it, and its configuration ----
const epochsOf = (record) => {
  const networks = Array.isArray(record.networks) ? record.networks.filter(isGroup) : [];
  return [...new Set((networks.length ? networks.map((one) => one.epoch_selected) : [record.epoch_selected]).filter(isNumber))].sort((a, b) => a - b);
};
const listed = (numbers) => (numbers.length < 7 ? numbers.join(", ") : `${numbers[0]} to ${numbers[numbers.length - 1]}`);
const showFacts = () => {
  const { record, label } = active();
  const facts = [named(record.name), label, named(record.conditioning), named(record.backbone), isGroup(record.protocol) ? null : record.protocol,
    runs.length > 1 || !isNumber(record.seed) ? null : `seed ${record.seed}`,
    `${active().fronts[0].count} ${active().networks ? "networks" : "rays"}`];
  say($("facts"), facts.filter((one) => one && typeof one === "string").join("  ·  "));
};
const showQuality = () => {
  const every = runs.flatMap((run) => run.fronts.map((front) => front.report));
  const shares = ["dominated_share", "inverted_share", "range_covered"];
  const told = (value, key) => (shares.includes(key) ? percent(value) : plain(value));
  const cell = ({ numbers, by_objective: each }, key) => (Object.hasOwn(each, key)
    ? make("td", {}, ...names.map((name) => make("div", {}, make("small", {}, `${nice(name)} `), told(each[key][name], key))))
    : make("td", {}, told(numbers[key], key)));
  const rows = Object.entries(page.meanings).filter(([key]) => every.some(({ numbers, by_objective: each }) => key in numbers || key in each));
  const head = runs.flatMap((run) => run.fronts.map((front) => (runs.length > 1 ? `${run.label}, ${front.split}` : front.split)));
  const costs = [["sensitivity (0: the ray has no effect)", (run) => plain(run.record.sensitivity)], ["training time", (run) => duration(run.record.seconds_training)], ["parameters", (run) => plain(run.record.parameters)]];
  const infeasible = (run) => Math.max(0, ...(Array.isArray(run.record.networks) ? run.record.networks : []).map((one) => Number(one?.infeasible_share) || 0));
  if (runs.some((run) => infeasible(run) > 0)) costs.push(["steps without a solution, which used the ray as weights", (run) => percent(infeasible(run), 1)]);
  $("quality-body").replaceChildren(make("div", { class: "sideways", tabindex: 0, role: "region", "aria-label": "Quality of the front" }, make("table", { class: "numbers wide" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "number"), ...head.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map(([key, why]) => make("tr", {}, make("th", { scope: "row" }, nice(key), make("small", {}, why)),
      ...every.map((report) => cell(report, key)))),
    ...costs.map(([name, of]) => make("tr", {}, make("th", { scope: "row" }, name), ...runs.flatMap((run) => run.fronts.map((_, at) => make("td", {}, at ? "" : of(run))))))))));
};

const showTraining = () => {
  const { record, networks } = active();
  const points = (Array.isArray(record.evaluations) ? record.evaluations : []).filter((one) => isGroup(one) && isNumber(one.epoch) && isNumber(one.hypervolume_val));
  $("training").hidden = points.length < 2;
  if (points.length < 2 || !$("training").open) return;
  const chosen = epochsOf(record);
  const best = chosen.length === 1 ? points.find((one) => one.epoch === chosen[0]) : undefined;
  say($("training-text"), chosen.length > 1 ? `Each of the ${networks} networks has its own selected epoch: ${listed(chosen)}.`
    : best ? `Epoch ${best.epoch} was selected, with a validation hypervolume of ${plain(best.hypervolume_val)}.` : "Validation hypervolume at every evaluation.");
  const svg = $("training-chart");
  const [width, height] = [Math.max(svg.parentNode.clientWidth, 240), 200];
  const [dx, dy] = [domainOf([points.map((one) => one.epoch)]), domainOf([points.map((one) => one.hypervolume_val)])];
  const sx = (value) => 56 + ((value - dx[0]) / (dx[1] - dx[0])) * (width - 68);
  const sy = (value) => height - 30 - ((value - dy[0]) / (dy[1] - dy[0])) * (height - 50);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", `Validation hypervolume from ${plain(points[0].hypervolume_val)} to ${plain(points[points.length - 1].hypervolume_val)} over ${points.length} evaluations`);
  svg.replaceChildren(
    ...ticksOf(dy, 4).flatMap(([value, text]) => [draw("line", { class: "gridline", x1: 56, x2: width - 12, y1: sy(value), y2: sy(value) }), draw("text", { x: 48, y: sy(value) + 4, "text-anchor": "end" }, text)]),
    ...ticksOf(dx, width < 480 ? 4 : 7).map(([value, text]) => draw("text", { x: sx(value), y: height - 8, "text-anchor": "middle" }, text)),
    draw("polyline", { class: "trace", points: points.map((one) => `${sx(one.epoch)},${sy(one.hypervolume_val)}`).join(" ") }),
    ...points.map((one) => draw("circle", { class: chosen.includes(one.epoch) ? "dot selected" : "dot", cx: sx(one.epoch), cy: sy(one.hypervolume_val), r: chosen.includes(one.epoch) ? 5 : 2.5 })));
};

const showCaveats = () => {
  const { record } = active();
  const found = (Array.isArray(record.findings) ? record.findings : []).filter(isGroup).map((one) => one.text);
  const caveats = [...new Set([found, record.caveats ?? []].flat().map(unquoted))];
  $("caveats").hidden = !caveats.length;
  $("caveats-list").replaceChildren(...caveats.map((caveat) => make("li", {}, caveat)));
};

const showConfiguration = () => {
  if (!$("configuration").open) return;
  const left = ["evaluations", "caveats", "findings", "by_objective"];
  say($("configuration-body"), JSON.stringify(Object.fromEntries(Object.entries(active().record).filter(([key]) => !left.includes(key))), null, 1));
};
on("run", showFacts);
on("run", showCaveats);
on("run", showTraining);
on("run", showConfiguration);
const setUpAbout = () => {
  showQuality();
  $("rays").addEventListener("toggle", buildRays);
  $("training").addEventListener("toggle", showTraining);
  $("configuration").addEventListener("toggle", showConfiguration);
};
