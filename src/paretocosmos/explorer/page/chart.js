// ---- the picture: canvases, pointer, handles ----
const VIEWS = { plane, space, lines };
const view = () => VIEWS[state.view];
let size = [0, 0];
const measure = () => {
  const width = Math.max($("canvas").clientWidth, 240);
  size = [width, Math.round(view().height(width))];
  $("canvas").style.height = `${size[1]}px`;
};
const drawBase = () => {
  measure();
  view().base(prepared($("base"), ...size), ...size);
  placeHandles();
  drawOver();
};
let nextFrame = 0;
const drawOver = () => {
  view().over(prepared($("over"), ...size), ...size);
  cancelAnimationFrame(nextFrame);
  if (isGliding()) nextFrame = requestAnimationFrame(drawOver);
};

// ---- bounds as handles on the axes ----
const grips = new Map();
const restingValue = ({ name, low, high }) => (isLarger(name) ? low : high);
const placeHandles = () => {
  const wanted = view().handles();
  for (const [name, grip] of grips) {
    if (!wanted.some((one) => one.name === name)) { grip.node.remove(); grips.delete(name); }
  }
  for (const one of wanted) {
    if (!grips.has(one.name)) grips.set(one.name, madeGrip(one.name));
    const grip = grips.get(one.name);
    grip.axis = one;
    const bound = boundOf(one.name);
    const value = clamp(bound ?? restingValue(one), one.low, one.high);
    const share = (value - one.low) / (one.high - one.low);
    grip.node.style.transform = `translate(${one.from[0] + share * (one.to[0] - one.from[0])}px, ${one.from[1] + share * (one.to[1] - one.from[1])}px)`;
    const less = isLarger(one.name) ? "at least" : "at most";
    for (const [key, text] of Object.entries({
      class: `grip ${one.side}${bound === undefined ? " open" : ""}${isLarger(one.name) ? " from" : ""}`,
      "aria-label": `Limit on ${labelOf(one.name)}, ${less}`, "aria-valuemin": one.low, "aria-valuemax": one.high, "aria-valuenow": value,
      "aria-valuetext": bound === undefined ? "no limit" : `${less} ${inUnits(one.name, bound)}`,
      "aria-orientation": one.side === "below" ? "horizontal" : "vertical",
    })) if (grip.node.getAttribute(key) !== String(text)) grip.node.setAttribute(key, text);
  }
};
// As many digits as the axis can tell apart.
const neat = (value, { low, high }) => Number(value.toFixed(clamp(Math.ceil(-Math.log10((high - low) / 400)), 0, 8)));
const madeGrip = (name) => {
  const node = make("div", { role: "slider", tabindex: 0 }, make("i"));
  const grip = { node, axis: null };
  const set = (value) => {
    const { low, high } = grip.axis;
    // pushed back to where it rested, a handle is no bound any more
    const gone = isLarger(name) ? value <= low : value >= high;
    setBound(name, gone ? null : neat(clamp(value, low, high), grip.axis));
  };
  node.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    node.focus();
    node.setPointerCapture(event.pointerId);
    const frame = $("canvas").getBoundingClientRect();
    const move = (moved) => {
      const { from, to, low, high } = grip.axis;
      const [ax, ay] = [to[0] - from[0], to[1] - from[1]];
      const along = ((moved.clientX - frame.left - from[0]) * ax + (moved.clientY - frame.top - from[1]) * ay) / (ax * ax + ay * ay);
      set(low + along * (high - low));
    };
    const stop = () => { node.removeEventListener("pointermove", move); };
    node.addEventListener("pointermove", move);
    node.addEventListener("pointerup", stop, { once: true });
    node.addEventListener("pointercancel", stop, { once: true });
  });
  node.addEventListener("keydown", (event) => {
    const { low, high } = grip.axis;
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    const now = clamp(boundOf(name) ?? restingValue(grip.axis), low, high);
    if (event.key === "Delete" || event.key === "Backspace" || event.key === "Escape") setBound(name, null);
    else if (event.key === "Home") set(isLarger(name) ? low : low + 0.01 * (high - low));
    else if (event.key === "End") set(high);
    else if (step) set(now + (step * (high - low)) / 100);
    else return;
    event.preventDefault();
  });
  $("handles").append(node);
  return grip;
};

// ---- the pointer on the picture ----
const nearestPoint = (x, y, within, among = visible()) => {
  let [best, least] = [null, within * within];
  for (const run of among) {
    const front = shownFront(run);
    for (let at = 0; at < front.count; at += 1) {
      const where = view().place(run, at, x);
      if (!where) continue;
      const apart = (where[0] - x) ** 2 + (where[1] - y) ** 2 - (run.index === state.run ? 4 : 0);
      if (apart < least) [least, best] = [apart, { run, at, where }];
    }
  }
  return best;
};
const take = (found) => {
  if (!found) return;
  if (found.run.index !== state.run) { state.run = found.run.index; changed("criteria", "run"); }
  setRay(shownFront(found.run).ray(found.at));
};
const showTip = (found) => {
  $("tip").hidden = !found;
  if (!found) return;
  const { run, at, where } = found;
  const front = shownFront(run);
  const row = (label, value) => make("div", {}, make("span", {}, label), make("span", {}, value));
  $("tip").replaceChildren(...(runs.length > 1 ? [row(run.label, "")] : []), ...[...new Set([...traded, ...quantities.filter((name) => !names.includes(name))])].slice(0, 7).map((name) => row(labelOf(name), inUnits(name, front.columns[name][at]))),
    ...(front.constant[at] ? [row("the same answer for everybody", "")] : front.dominated[at] ? [row("another choice is better", "")] : []));
  const [w, h] = [$("tip").offsetWidth, $("tip").offsetHeight];
  $("tip").style.left = `${clamp(where[0] + 16, 0, Math.max(0, size[0] - w))}px`;
  $("tip").style.top = `${where[1] - h - 14 > 0 ? where[1] - h - 14 : where[1] + 18}px`;
};
const listenToPointer = () => {
  const over = $("over");
  let last = null;
  const spot = (event) => {
    const frame = over.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    over.setPointerCapture(event.pointerId);
    last = { at: spot(event), moved: 0 };
    showTip(null);
    if (state.view === "space") return;
    // a press takes the point under it, of whatever run; a drag then moves along the active run
    take(nearestPoint(...last.at, 26));
  });
  over.addEventListener("pointermove", (event) => {
    const [x, y] = spot(event);
    if (!last) {
      if (event.pointerType === "mouse") showTip(nearestPoint(x, y, 18));
      return;
    }
    const [a, b] = [x - last.at[0], y - last.at[1]];
    last = { at: [x, y], moved: last.moved + Math.abs(a) + Math.abs(b) };
    if (state.view === "space") space.turn(a / 160, b / 160);
    else if (last.moved > 3 && !view().drag(x, y)) take(nearestPoint(x, y, 60, [active()]));
  });
  const stop = (event) => {
    if (last && state.view === "space" && last.moved < 4 && event.type === "pointerup") take(nearestPoint(...last.at, 26));
    last = null;
  };
  over.addEventListener("pointerup", stop);
  over.addEventListener("pointercancel", stop);
  over.addEventListener("pointerleave", () => showTip(null));
  over.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[event.key];
    if (state.view !== "space" || !by) return;
    event.preventDefault();
    space.turn(...by);
  });
};
const describe = () => {
  const kinds = { plane: `${labelOf(state.y)} against ${labelOf(state.x)}${thirdName() ? `; the colour is ${labelOf(thirdName())}` : ""}`, space: `${names.map(labelOf).join(", ")} in three dimensions; arrow keys turn it`, lines: `${names.map(labelOf).join(", ")} side by side` };
  const over = $("over");
  over.setAttribute("aria-label", `The front on ${state.split} data: ${kinds[state.view]}. ${visible().map((run) => `${run.label}: ${shownFront(run).count} points`).join("; ")}.`);
  over.setAttribute("role", state.view === "space" ? "application" : "img");
  over.classList.toggle("turns", state.view === "space");
  if (state.view === "space") over.setAttribute("tabindex", "0");
  else over.removeAttribute("tabindex");
};

// ---- what is shown ----
const showSplits = () => segments("split", splits.map((split) => [split, splitName(split)]), state.split, (split) => {
  state.split = split;
  changed("view", "ray");
});
const setUpChart = () => {
  $("axes").hidden = state.view !== "plane";
  // as Back has it
  on("view", () => {
    $("axes").hidden = state.view !== "plane";
    for (const key of ["x", "y"]) $(`axis-${key}`).value = state[key];
    for (const key of ["view", "split"]) for (const radio of $(key).querySelectorAll("input")) radio.checked = radio.value === state[key];
  });
  for (const key of ["x", "y"]) {
    options($(`axis-${key}`), byPlainness.map((name) => [name, capital(plane.labelled(name))]), state[key]);
    $(`axis-${key}`).addEventListener("change", (event) => { state[key] = event.target.value; [state.zoom, state.centre] = [0, null]; changed("view"); });
  }
  const kinds = J === 2 ? ["plane"] : J === 3 ? ["plane", "space", "lines"] : ["lines", "plane"];
  segments("view", kinds.map((kind) => [kind, { plane: "Two axes", space: "Space", lines: "All axes" }[kind]]), state.view, (kind) => {
    state.view = kind;
    $("axes").hidden = kind !== "plane";
    changed("view");
  });
  showSplits();
  $("legend").hidden = runs.length < 2;
  for (const run of runs) {
    const box = make("input", { type: "checkbox" });
    box.checked = state.shown[run.index];
    box.addEventListener("change", () => {
      state.shown[run.index] = box.checked;
      if (!visible().length || (!box.checked && state.run === run.index)) {
        // something is always chosen from, and what is chosen from is shown
        const other = visible()[0];
        if (other) state.run = other.index;
        else { state.shown[run.index] = true; box.checked = true; }
      }
      changed("run", "criteria", "ray");
    });
    const swatch = draw("svg", { class: "swatch", viewBox: "-8 -8 16 16", "aria-hidden": "true" }, svgMark(run));
    $("legend").append(make("li", {}, make("label", {}, box, swatch, make("span", {}, run.label, make("small", {}, kindOf(run))))));
  }
  listenToPointer();
  setUpZoom();
  new ResizeObserver(() => { if ($("canvas").clientWidth !== size[0]) drawBase(); }).observe($("canvas"));
};
// A method without rays has a few networks, which know nothing between them.
const kindOf = (run) => {
  if (!run.networks) return "";
  return run.networks === 1 ? ", one network that takes no preference" : `, ${run.networks} networks and nothing between them`;
};
const svgMark = (run) => {
  const colour = `run run-${run.index % COLOURS}`;
  const shape = shapeOf(run);
  if (shape === "circle") return draw("circle", { class: colour, r: 5 });
  if (shape === "square") return draw("rect", { class: colour, x: -4.5, y: -4.5, width: 9, height: 9 });
  const points = { diamond: "0,-6.5 6.5,0 0,6.5 -6.5,0", triangle: "0,-6 6,4.5 -6,4.5", cross: "-2,-6 2,-6 2,-2 6,-2 6,2 2,2 2,6 -2,6 -2,2 -6,2 -6,-2 -2,-2" }[shape];
  return draw("polygon", { class: colour, points });
};
on("criteria", checkAll);
on("criteria run view turn", drawBase);
on("criteria run view turn", showKey); // once it is drawn
on("ray pins", drawOver);
on("run view", describe);
