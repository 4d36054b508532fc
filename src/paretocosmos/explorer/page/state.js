// ---- the one state, and who is called when it changes ----
const begin = () => {
  const { rays, count, ray } = runs[0].front(choosingSplit);
  return ray(nearest(rays, count, J, names.map(() => 1 / J), 1)[0][0]);
};
const state = {
  ray: begin(),
  run: 0,
  shown: runs.map(() => true),
  split: choosingSplit,
  view: J === 2 ? "plane" : J === 3 ? "space" : "lines",
  x: names[0],
  y: names[1],
  max: Object.create(null),
  min: Object.create(null),
  best: "",
  constants: false,
  byBounds: false,
  yaw: -0.75,
  pitch: 0.45,
  head: 0,
  group: 0,
};
const active = () => runs[state.run];
const chosenFrom = () => active().front(choosingSplit);
const visible = () => runs.filter((run) => state.shown[run.index]);
// The active run is drawn last, on top.
const inOrder = () => visible().sort((a, b) => (a.index === state.run) - (b.index === state.run));
const mixOf = (run, split) => mixture(run.front(split), state.ray, run.networks > 0);
const hasBounds = () => Object.keys(state.max).length + Object.keys(state.min).length > 0;
const criteria = () => ({
  max: state.max, min: state.min, constants: state.constants,
  minimize: state.best && !isLarger(state.best) ? state.best : null,
  maximize: state.best && isLarger(state.best) ? state.best : null,
});
// What "best" means where nothing was said: the first objective without a bound.
const bestName = () => state.best || names.find((name) => !(name in state.max)) || names[0];

// Kinds of change, in the order of their calls: bounds are checked before anything is drawn.
// "criteria" bounds or what is best, "run" which runs are shown or chosen from, "view" how they are
// shown, "turn" the picture in space, "ray" the chosen point.
const KINDS = ["criteria", "run", "view", "turn", "ray"];
const listeners = Object.fromEntries(KINDS.map((kind) => [kind, []]));
const on = (kinds, listener) => kinds.split(" ").forEach((kind) => listeners[kind].push(listener));
let due = new Set();
const changed = (...kinds) => {
  if (!due.size) requestAnimationFrame(refresh);
  kinds.forEach((kind) => due.add(kind));
};
const refresh = () => {
  const called = new Set(KINDS.filter((kind) => due.has(kind)).flatMap((kind) => listeners[kind]));
  due = new Set();
  called.forEach((listener) => listener());
};

const setRay = (ray, byBounds = false) => {
  state.ray = onSimplex(ray);
  state.byBounds = byBounds;
  changed("ray");
};
// The point that answers the bounds best becomes the chosen one.
const choose = () => {
  const found = pick(chosenFrom(), criteria());
  if (found.at >= 0) setRay(chosenFrom().ray(found.at), true);
  else state.byBounds = false;
  changed("criteria", "ray"); // the numbers of a point show which bounds it breaks
  return found;
};
const setBound = (name, value) => {
  const side = isLarger(name) ? state.min : state.max;
  if (value === null) delete side[name];
  else side[name] = value;
  if (hasBounds()) choose();
  else { state.byBounds = false; changed("criteria", "ray"); }
};
const boundOf = (name) => (isLarger(name) ? state.min : state.max)[name];

// ---- the view lives in the address, so that a reload or a copied address shows it again ----
const remembered = ["split", "view", "x", "y", "best"];
const remember = () => {
  const kept = new URLSearchParams();
  kept.set("ray", state.ray.map((one) => Number(one.toPrecision(10))).join(","));
  if (state.run) kept.set("run", state.run);
  for (const key of remembered) kept.set(key, state[key]);
  for (const side of ["max", "min"]) for (const [name, value] of Object.entries(state[side])) kept.append(side, `${value}=${name}`);
  if (state.constants) kept.set("constants", "1");
  if (state.byBounds) kept.set("chosen", "1");
  const hidden = runs.filter((run) => !state.shown[run.index]).map((run) => run.index);
  if (hidden.length) kept.set("hidden", hidden.join(","));
  try { history.replaceState(null, "", `#${kept}`); } catch { /* an address that may not change */ }
};
const recall = () => {
  const kept = new URLSearchParams(location.hash.slice(1));
  const ray = (kept.get("ray") ?? "").split(",").map(Number);
  if (ray.length === J && ray.every((one) => isNumber(one) && one >= 0)) state.ray = onSimplex(ray);
  if (runs[Number(kept.get("run"))]) state.run = Number(kept.get("run"));
  const known = { split: splits, view: ["plane", "space", "lines"], x: quantities, y: quantities, best: ["", ...quantities] };
  for (const key of remembered) if (known[key].includes(kept.get(key))) state[key] = kept.get(key);
  for (const side of ["max", "min"]) {
    for (const text of kept.getAll(side)) {
      const cut = text.indexOf("=");
      const [value, name] = [Number(text.slice(0, cut)), text.slice(cut + 1)];
      if (isNumber(value) && quantities.includes(name)) state[side][name] = value;
    }
  }
  state.constants = kept.get("constants") === "1";
  state.byBounds = kept.get("chosen") === "1";
  for (const index of (kept.get("hidden") ?? "").split(",")) if (index !== "" && runs[index]) state.shown[index] = false;
  state.shown[state.run] = true;
  if (J !== 3 && state.view === "space") state.view = J === 2 ? "plane" : "lines";
};
let resting = 0;
on("ray criteria run view", () => { clearTimeout(resting); resting = setTimeout(remember, 300); });
