// ---- setting the preference: a slider for two objectives, a triangle for three, sliders for more ----
// 1 if more weight lowers every objective, −1 if it raises every one, 0 else.
const orderOf = (run) => {
  const each = Object.values(run.fronts[0].report.by_objective.monotonicity).filter(isNumber);
  if (!each.length) return undefined;
  return each.every((one) => one > 0.5) ? 1 : each.every((one) => one < -0.5) ? -1 : 0;
};
const meaningOf = (run) => {
  if (run.networks === 1 || run.fronts[0].count === 1) return "This network takes no preference: its answers are always the same.";
  const order = orderOf(run);
  const between = run.networks ? " There is nothing between two networks: the nearest one answers." : "";
  if (!isNumber(order)) return between.trim();
  if (order > 0) return between.trim();
  if (order < 0) return `This model reads the preference as a direction: more weight on a goal makes its loss larger.${between}`;
  return `Here more weight does not reliably help a goal: choose by the numbers, not by the position of the slider.${between}`;
};
const setUpPreference = () => {
  const box = $("preference");
  document.body.classList.toggle("many-weights", J > 3);
  const text = make("p", { class: "quiet meaning" });
  const controls = J === 2 ? slider() : J === 3 ? triangle() : sliders();
  box.append(make("h3", { id: "preference-title", class: "hidden" }, "What matters more"), controls.node, text);
  on("ray", controls.show);
  on("run", () => {
    const meaning = meaningOf(active());
    say(text, meaning);
    text.hidden = !meaning;
    const alone = active().fronts[0].count === 1;
    controls.node.classList.toggle("off", alone);
    controls.node.querySelectorAll("input, [role=slider]").forEach((one) => one.toggleAttribute("disabled", alone));
  });
};

// What one wants of an objective, in plain words.
const wishOf = (j) => measureOf(plainOf(names[j])).goal;
// The range of the evaluated rays' first weight: beyond it nothing was measured.
const rangeOfWeights = () => {
  const { rays, order, count } = chosenFrom();
  return [rays[order[0] * 2], rays[order[count - 1] * 2]];
};
const slider = () => {
  const field = make("input", { type: "range", id: "slider", min: 0, max: 1000, step: 1, "aria-labelledby": "preference-title" });
  const ends = [make("span"), make("span")];
  const marks = make("div", { class: "flips", "aria-hidden": "true" });
  const range = rangeOfWeights;
  // to the right the first objective grows, as it does in the picture
  const flipped = () => !(isNumber(orderOf(active())) && orderOf(active()) < 0);
  field.addEventListener("input", () => {
    const [low, high] = range();
    const share = flipped() ? 1 - Number(field.value) / 1000 : Number(field.value) / 1000;
    const first = low + share * (high - low);
    setRay([first, 1 - first]);
  });
  // where the answer to the visitor's case changes
  on("case run", () => marks.replaceChildren(...flips.map(({ weight }) => {
    const [low, high] = range();
    const share = (weight - low) / (high - low);
    const mark = make("i");
    mark.style.left = `calc(8px + (100% - 16px) * ${(flipped() ? 1 - share : share).toFixed(4)})`; // the thumb is 16 wide
    return mark;
  })));
  return {
    node: make("div", { class: "slider" }, marks, field, make("div", { class: "ends" }, ...ends)),
    show() {
      const [low, high] = range();
      const share = high > low ? clamp((state.ray[0] - low) / (high - low), 0, 1) : 0.5;
      field.value = Math.round(1000 * (flipped() ? 1 - share : share));
      field.setAttribute("aria-valuetext", spoken());
      const [left, right] = flipped() ? [0, 1] : [1, 0];
      say(ends[0], `← ${wishOf(left)}`);
      say(ends[1], `${wishOf(right)} →`);
    },
  };
};

const triangle = () => {
  const WIDE = 240, HIGH = 150, EDGE = 14;
  const svg = draw("svg", { viewBox: `${-EDGE} ${-EDGE} ${WIDE + 2 * EDGE} ${HIGH + 2 * EDGE}`, class: "triangle", "aria-hidden": "true" });
  const at = (ray) => { const [x, y] = toPlane(ray); return [x * WIDE, y * HIGH]; };
  const dots = draw("g", { class: "dots" });
  const thumb = draw("circle", { class: "thumb", r: 8 });
  svg.append(draw("polygon", { class: "area", points: [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((one) => at(one).join()).join(" ") }), dots, thumb);
  const pad = make("div", { role: "slider", tabindex: 0, class: "pad", "aria-labelledby": "preference-title", "aria-valuemin": 0, "aria-valuemax": 100, "aria-roledescription": "triangle of three weights" }, svg);
  // first bottom left, second bottom right, third on top, as `toPlane` has them
  const corners = names.map((_, j) => make("span", { class: "corner" }, make("span", {}, wishOf(j)), make("b")));
  const move = (event) => {
    const frame = svg.getBoundingClientRect();
    const scale = (WIDE + 2 * EDGE) / frame.width;
    setRay(fromPlane(((event.clientX - frame.left) * scale - EDGE) / WIDE, ((event.clientY - frame.top) * scale - EDGE) / HIGH));
  };
  pad.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    pad.focus();
    pad.setPointerCapture(event.pointerId);
    move(event);
    pad.addEventListener("pointermove", move);
    const stop = () => pad.removeEventListener("pointermove", move);
    pad.addEventListener("pointerup", stop, { once: true });
    pad.addEventListener("pointercancel", stop, { once: true });
  });
  pad.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [1, -1, 0], ArrowRight: [-1, 1, 0], ArrowUp: [-0.5, -0.5, 1], ArrowDown: [0.5, 0.5, -1] }[event.key];
    if (!by) return;
    event.preventDefault();
    const step = event.shiftKey ? 0.1 : 0.02;
    setRay(state.ray.map((one, j) => clamp(one + step * by[j], 0, 1)));
  });
  on("run", () => dots.replaceChildren(...Array.from({ length: Math.min(chosenFrom().count, 400) }, (_, place) => {
    const [cx, cy] = at(chosenFrom().ray(place));
    return draw("circle", { cx, cy, r: chosenFrom().count > 100 ? 1.1 : 2 });
  })));
  return {
    node: make("div", { class: "triangle-box" }, corners[2], pad, make("div", { class: "corners" }, corners[0], corners[1])),
    show() {
      const [cx, cy] = at(state.ray);
      thumb.setAttribute("cx", cx);
      thumb.setAttribute("cy", cy);
      corners.forEach((corner, j) => say(corner.lastChild, percent(state.ray[j])));
      pad.setAttribute("aria-valuenow", Math.round(100 * state.ray[0]));
      pad.setAttribute("aria-valuetext", spoken());
    },
  };
};

const sliders = () => {
  const rows = names.map((name, j) => {
    const field = make("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": `Weight on ${labelOf(name)}` });
    field.addEventListener("input", () => setRay(reweighed(state.ray, j, Number(field.value) / 1000)));
    const value = make("b");
    return { field, value, node: make("div", { class: "weight-row" }, make("span", {}, capital(wishOf(j))), field, value) };
  });
  return {
    node: make("div", { class: "sliders" }, ...rows.map((row) => row.node)),
    show() {
      rows.forEach(({ field, value }, j) => {
        const place = String(Math.round(1000 * state.ray[j]));
        if (field !== document.activeElement || Math.abs(field.value - place) > 1) field.value = place;
        field.setAttribute("aria-valuetext", percent(state.ray[j], 1));
        say(value, percent(state.ray[j], 1));
      });
    },
  };
};

// The chosen point in a sentence, for whoever listens.
const spoken = () => {
  const mix = mixOf(active(), choosingSplit);
  const values = traded.map((name) => `${capital(labelOf(name))}: ${inUnits(name, valueAt(active(), state.ray, state.split, name))}`);
  return `${leadText(active(), state.ray, state.split)} ${values.join(", ")} on ${dataName(state.split)}${mix.length > 1 ? ", interpolated" : ""}`;
};
let spokenSoon = 0;
on("ray criteria run", () => {
  clearTimeout(spokenSoon);
  spokenSoon = setTimeout(() => say($("live"), `${active().label}. ${spoken()}. ${$("verdict").textContent}`), 500);
});
