// ---- the one state, and who is called when it changes ----
// The page opens on the run with the largest hypervolume, at equal weights.
const hypervolumeOf = (run) => run.front(choosingSplit).report.numbers.hypervolume ?? -Infinity;
const firstRun = runs.reduce((best, run) => (hypervolumeOf(run) > hypervolumeOf(best) ? run : best)).index;
const begin = () => {
  const { rays, count, ray } = runs[firstRun].front(choosingSplit);
  return ray(nearest(rays, count, J, names.map(() => 1 / J), 1)[0][0]);
};
const state = {
  ray: begin(),
  run: firstRun,
  touched: false, // until then nobody has chosen
  by: "",
  why: "",
  asked: "", // the answers that led to the choice
  shown: runs.map(() => true),
  split: choosingSplit,
  view: J <= 3 ? "plane" : "lines",
  x: traded[0],
  y: traded[1] ?? traded[0],
  zoom: 0,
  centre: null,
  pins: {},
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
const mixOf = (run, split, ray = state.ray) => mixture(run.front(split), ray, run.networks > 0);
// In the picture, a choice that a limit moved glides to its place, so that the eye can follow.
const GLIDE = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 350; // milliseconds
const glide = { from: [], began: -Infinity };
const isGliding = () => performance.now() - glide.began < GLIDE;
const drawnRay = () => {
  const left = isGliding() ? (1 - (performance.now() - glide.began) / GLIDE) ** 2 : 0;
  return left ? state.ray.map((one, j) => one + left * (glide.from[j] - one)) : state.ray;
};
const hasBounds = () => Object.keys(state.max).length + Object.keys(state.min).length > 0;
// What "best" means where nothing was said: the first objective without a bound, in plain numbers.
const isFree = (name) => boundOf(name) === undefined && boundOf(plainOf(name)) === undefined;
const bestName = () => state.best || plainOf(names.find(isFree) ?? names[0]);
// What is to be asked for aloud: a loss without a bound is what choosing takes by itself.
const askedFor = () => state.best || (names.includes(bestName()) ? "" : bestName());
const criteriaOf = (max, min) => ({
  max, min, constants: state.constants,
  minimize: askedFor() && !isLarger(askedFor()) ? askedFor() : null,
  maximize: askedFor() && isLarger(askedFor()) ? askedFor() : null,
});
const criteria = () => criteriaOf(state.max, state.min);

// Kinds of change, in the order of their calls: bounds are checked before anything is drawn.
// "criteria" bounds or what is best, "run" which runs are shown or chosen from, "view" how they are
// shown, "turn" the picture in space, "ray" the chosen point, "pins" the two it is compared with, "record" who decided, and why,
// "case" the case that is asked about.
const KINDS = ["criteria", "run", "view", "turn", "ray", "pins", "record", "case"];
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

const setRay = (ray, byBounds = false, asked = "") => {
  Object.assign(glide, { from: drawnRay(), began: byBounds ? performance.now() : -Infinity });
  state.ray = onSimplex(ray);
  state.touched = true;
  settle(byBounds, asked);
  changed("ray");
};
// Choosing by hand looks at the validation data. Once a limit or answers to questions have chosen,
// the test data lead: they had no part in the choice. Whoever picks the data keeps them.
const leadingSplit = () => (state.byBounds || state.asked ? lastSplit : choosingSplit);
const settle = (byBounds, asked = state.asked) => {
  const before = leadingSplit();
  Object.assign(state, { byBounds, asked });
  if (leadingSplit() === before || state.split !== before) return;
  state.split = leadingSplit();
  changed("view");
};
// The point that answers the bounds best becomes the chosen one.
const choose = () => {
  const found = pick(chosenFrom(), criteria());
  if (found.at >= 0) setRay(chosenFrom().ray(found.at), true);
  else settle(false);
  changed("criteria", "ray"); // the numbers of a point show which bounds it breaks
  return found;
};
const setBound = (name, value) => {
  const side = isLarger(name) ? state.min : state.max;
  if (value === null) delete side[name];
  else side[name] = value;
  if (hasBounds()) choose();
  else { settle(false); changed("criteria", "ray"); }
};
const boundOf = (name) => (isLarger(name) ? state.min : state.max)[name];

// ---- the view lives in the address: a reload or a copied address shows it again, Back undoes ----
const remembered = ["split", "view", "x", "y", "best"];
const written = ["by", "why"];
const texts = [...written, "asked"];
const spelled = (ray) => ray.map((one) => Number(one.toPrecision(10))).join(",");
const address = () => {
  const kept = new URLSearchParams();
  kept.set("ray", spelled(state.ray));
  if (state.run !== firstRun) kept.set("run", state.run);
  if (state.touched) kept.set("set", "1");
  for (const key of texts) if (state[key]) kept.set(key, state[key]);
  for (const key of remembered) kept.set(key, state[key]);
  for (const side of ["max", "min"]) for (const [name, value] of Object.entries(state[side])) kept.append(side, `${value}=${name}`);
  if (state.constants) kept.set("constants", "1");
  if (state.byBounds) kept.set("chosen", "1");
  for (const [letter, pin] of Object.entries(state.pins)) kept.set(letter, [pin.run, spelled(pin.ray), ...(pin.said ?? []).map(encodeURIComponent)].join(";"));
  const hidden = runs.filter((run) => !state.shown[run.index]).map((run) => run.index);
  if (hidden.length) kept.set("hidden", hidden.join(","));
  return `#${kept}`;
};
const begun = { run: firstRun, touched: false, by: "", why: "", asked: "", constants: false, byBounds: false, best: "", ray: state.ray, split: state.split, view: state.view, x: state.x, y: state.y };
const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
const rayIn = (text) => {
  const ray = (text ?? "").split(",").map(Number);
  return text && ray.length === J && ray.every((one) => isNumber(one) && one >= 0) ? onSimplex(ray) : null;
};
const recall = () => {
  // a copy of the page holds a view of its own
  const kept = new URLSearchParams((holdsView(location.hash) ? location.hash : document.querySelector("meta[name=view]").content).slice(1));
  Object.assign(state, begun, { max: Object.create(null), min: Object.create(null), pins: {}, shown: runs.map(() => true) });
  state.ray = rayIn(kept.get("ray")) ?? begun.ray;
  if (kept.has("run") && runs[Number(kept.get("run"))]) state.run = Number(kept.get("run"));
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
  state.touched = kept.get("set") === "1";
  for (const key of texts) state[key] = kept.get(key) ?? "";
  for (const letter of ["A", "B"]) {
    const [run, ray, ...said] = (kept.get(letter) ?? "").split(";");
    if (rayIn(ray) && runs[Number(run)]) state.pins[letter] = { run: Number(run), ray: rayIn(ray), said: said.map(decoded) };
  }
  for (const index of (kept.get("hidden") ?? "").split(",")) if (index !== "" && runs[index]) state.shown[index] = false;
  state.shown[state.run] = true;
  if (J !== 3 && state.view === "space") state.view = J === 2 ? "plane" : "lines";
};
// A change that has come to rest is a step, which Back and Undo take back.
const steps = { at: 0, last: "" };
const remember = () => {
  const now = address();
  if (now === steps.last) return;
  try {
    if (steps.last) history.pushState({ step: (steps.at += 1) }, "", now);
    else history.replaceState({ step: steps.at }, "", now);
  } catch { /* an address that may not change */ }
  steps.last = now;
  $("undo").disabled = steps.at === 0;
};
const undo = () => {
  remember(); // a change that has not come to rest yet is the step that is taken back
  if (steps.at > 0) history.back();
};
// A link within the page moves the sight and the focus. Followed by the browser, its address would
// replace the one that holds the view.
const setUpLinks = () => {
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const section = $(link.hash.slice(1));
      section.tabIndex = -1;
      section.focus({ preventScroll: true });
      section.scrollIntoView();
    });
  }
};
const setUpHistory = () => {
  steps.at = history.state?.step ?? 0;
  $("undo").disabled = steps.at === 0;
  $("undo").addEventListener("click", undo);
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "z" || event.target.matches("input[type=text], input[type=number], textarea")) return;
    event.preventDefault();
    undo();
  });
  addEventListener("popstate", (event) => {
    if (!holdsView(location.hash)) {
      // an address written by hand, as "#record": the view stays, and so does its address
      history.replaceState({ step: steps.at }, "", address());
      return;
    }
    clearTimeout(resting);
    steps.at = event.state?.step ?? 0;
    steps.last = location.hash;
    $("undo").disabled = steps.at === 0;
    recall();
    changed(...KINDS);
  });
};
let resting = 0;
on("ray criteria run view pins record", () => { clearTimeout(resting); resting = setTimeout(remember, 300); });
