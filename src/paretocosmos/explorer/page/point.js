// ---- the numbers of the chosen point, on every split apart ----
const stateOf = () => {
  const run = active();
  const mix = mixOf(run, choosingSplit);
  const front = run.front(choosingSplit);
  const same = front.constant[heaviest(mix)] ? " It gives everybody the same answer." : "";
  if (run.networks) {
    const ray = front.ray(mix[0][0]);
    const whole = ray.indexOf(1);
    return `The network trained ${whole >= 0 ? `on ${nice(names[whole])} alone` : `for the ray ${ray.map((one) => one.toFixed(3)).join(", ")}`}.${same}`;
  }
  if (mix.length > 1) return `Interpolated between evaluated rays: a good guess, not a measurement.${same}`;
  if (nearest(front.rays, front.count, J, state.ray, 1)[0][1] > 1e-6) return "Beyond the evaluated rays: the outermost is shown.";
  return (state.byBounds && hasBounds() ? "Evaluated, and the best choice within your limits." : "Evaluated: these numbers were measured.") + same;
};
let cells = [];
const buildPoint = () => {
  $("weights").replaceChildren(...names.map((name) => make("div", {}, make("div", { class: "row" }, make("span", {}, nice(name)), make("b")), make("div", { class: "bar" }, make("i")))));
  const own = active().fronts.map((front) => front.split);
  const head = make("tr", {}, make("th", { scope: "col" }, "Value"), ...own.map((split) => make("th", { scope: "col" }, splitName(split))));
  cells = quantities.map((name) => own.map(() => make("td")));
  const rows = quantities.map((name, at) => {
    const row = make("tr", { class: names.includes(name) ? "objective" : "metric" }, make("th", { scope: "row" }, nice(name)), ...cells[at]);
    return row;
  });
  $("numbers").replaceChildren(make("caption", { class: "hidden" }, "Losses and metrics of the chosen point"), make("thead", {}, head), make("tbody", {}, ...rows));
  showPoint();
};
const showPoint = () => {
  const run = active();
  say($("point-state"), stateOf());
  $("point-state").classList.toggle("guess", mixOf(run, choosingSplit).length > 1);
  [...$("weights").children].forEach((node, j) => {
    say(node.querySelector("b"), percent(state.ray[j], 1));
    node.querySelector("i").style.transform = `scaleX(${state.ray[j].toFixed(4)})`;
  });
  run.fronts.forEach((front, f) => {
    const mix = mixOf(run, front.split);
    quantities.forEach((name, at) => {
      const value = blend(front.columns[name], mix);
      const cell = cells[at][f];
      say(cell, fixed(value, digitsOf(front, name)));
      const bound = boundOf(name);
      const broken = bound !== undefined && isNumber(value) && (isLarger(name) ? value < bound - 1e-12 : value > bound + 1e-12);
      cell.classList.toggle("broken", broken);
      if (broken) cell.title = `${isLarger(name) ? "below" : "above"} the limit ${plain(bound)}`;
      else cell.removeAttribute("title");
    });
  });
  showOthers();
};
const known = new Map();
const digitsOf = (front, name) => {
  const key = front.columns[name];
  if (!known.has(key)) known.set(key, decimals(key));
  return known.get(key);
};
const showOthers = () => {
  const every = visible();
  $("others").hidden = every.length < 2;
  if (every.length < 2) return;
  const shown = names.slice(0, 3);
  $("others-table").replaceChildren(
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, splitName(state.split)), ...shown.map((name) => make("th", { scope: "col" }, nice(name))))),
    make("tbody", {}, ...every.map((run) => {
      const front = shownFront(run);
      const mix = mixOf(run, state.split);
      return make("tr", { class: run.index === state.run ? "own" : "" }, make("th", { scope: "row" }, run.label), ...shown.map((name) => make("td", {}, fixed(blend(front.columns[name], mix), digitsOf(shownFront(active()), name)))));
    })));
};
on("run view", buildPoint);
on("ray", showPoint);
