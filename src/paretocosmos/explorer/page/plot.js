// ---- what the pictures share: colours, marks, scales ----
const SHAPES = ["circle", "square", "diamond", "triangle", "cross"];
const COLOURS = 8;
// The ninth run has the first colour again, with another shape.
const shapeOf = (run) => SHAPES[(run.index + Math.floor(run.index / COLOURS)) % SHAPES.length];
let paint = {};
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  paint = Object.fromEntries(["paper", "ink", "quiet", "line", "grid", "accent", "amiss", "muted"].map((name) => [name, of(name)]));
  paint.runs = Array.from({ length: COLOURS }, (_, at) => of(`run-${at}`));
  paint.sans = style.getPropertyValue("--sans").trim();
};
const colourOf = (run) => paint.runs[run.index % COLOURS];

// A canvas as large as its frame, sharp on every screen; gives its context, cleared.
const prepared = (canvas, width, height, ratio = Math.min(devicePixelRatio || 1, 2)) => {
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
};
const addMark = (context, shape, x, y, r) => {
  if (shape === "square") context.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76);
  else if (shape === "circle") { context.moveTo(x + r, y); context.arc(x, y, r, 0, 2 * Math.PI); }
  else if (shape === "cross") {
    const a = r * 0.4;
    context.moveTo(x - a, y - r); context.lineTo(x + a, y - r); context.lineTo(x + a, y - a); context.lineTo(x + r, y - a);
    context.lineTo(x + r, y + a); context.lineTo(x + a, y + a); context.lineTo(x + a, y + r); context.lineTo(x - a, y + r);
    context.lineTo(x - a, y + a); context.lineTo(x - r, y + a); context.lineTo(x - r, y - a); context.lineTo(x - a, y - a);
    context.closePath();
  } else {
    const corners = shape === "diamond" ? [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]] : [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]];
    corners.forEach(([a, b], at) => (at ? context.lineTo(x + a * r, y + b * r) : context.moveTo(x + a * r, y + b * r)));
    context.closePath();
  }
};
const write = (context, text, x, y, { align = "left", colour = paint.quiet, size = 12, weight = 400, room = Infinity } = {}) => {
  context.font = `${weight} ${size}px ${paint.sans}`;
  context.textAlign = align;
  context.fillStyle = colour;
  let shown = text;
  while (shown.length > 2 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
  // a rim of paper keeps it readable over lines and points
  context.strokeStyle = paint.paper;
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeText(shown, x, y);
  context.fillText(shown, x, y);
};
const line = (context, x1, y1, x2, y2, colour, dash = []) => {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
  context.setLineDash([]);
};

// Which points of a run keep the bounds on the data that choosing looks at; on other data a point
// is grey where its ray is grey there.
let kept = [];
const checkAll = () => {
  kept = runs.map((run) => {
    const front = run.front(choosingSplit);
    const keeps = keeper(front, criteria());
    const passes = state.constants || !hasBounds();
    return Uint8Array.from({ length: front.count }, (_, at) => (keeps(at) && (passes || !front.constant[at]) ? 1 : 0));
  });
};
const isKept = (run, at) => kept[run.index][Math.min(at, kept[run.index].length - 1)] === 1;
const shownFront = (run) => run.front(state.split);
const domainFor = (name) => domainOf(visible().map((run) => shownFront(run).columns[name]));
const ticksFor = (name, domain, count) => ticksOf(domain.map((one) => one * scaleOf(name)), count).map(([value, text]) => [value / scaleOf(name), text]);
// The two choices that were kept, by their letters.
const drawPins = (context, place) => {
  for (const [letter, pin] of Object.entries(state.pins)) {
    const run = runs[pin.run];
    const where = state.shown[pin.run] && place(run, mixture(run.front(state.split), pin.ray, run.networks > 0));
    if (!where) continue;
    context.beginPath();
    context.arc(where[0], where[1], 9, 0, 2 * Math.PI);
    context.fillStyle = paint.paper;
    context.strokeStyle = paint.ink;
    context.lineWidth = 1.5;
    context.fill();
    context.stroke();
    write(context, letter, where[0], where[1] + 4, { align: "center", colour: paint.ink, weight: 700 });
  }
};

// Of three objectives, two are the axes and the third is the colour, in so many steps.
const STEPS = 5;
const thirdName = () => (J === 3 && state.view === "plane" ? traded.find((name) => name !== state.x && name !== state.y) : undefined);
const colourAt = (step) => `color-mix(in oklab, ${paint.amiss} ${(100 * step) / (STEPS - 1)}%, ${paint.accent})`;
const thirdEnds = () => {
  let [low, high] = [Infinity, -Infinity];
  for (const run of visible()) for (const value of shownFront(run).columns[thirdName()]) if (isNumber(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
};
const stepOf = (value, [low, high]) => (high > low && isNumber(value) ? Math.round((STEPS - 1) * clamp((value - low) / (high - low), 0, 1)) : 0);
// Points of all shown runs, those of the active one on top: `place(run, at)` says where, or null.
const ALPHA = { grey: 0.5, dominated: 0.32, constant: 0.9, good: 1 };
const drawPoints = (context, place) => {
  const third = thirdName();
  const ends = third && thirdEnds();
  for (const run of inOrder()) {
    const front = shownFront(run);
    const looks = { grey: [], dominated: [], constant: [], good: [] };
    for (let at = 0; at < front.count; at += 1) {
      const where = place(run, at);
      const step = third ? stepOf(front.columns[third][at], ends) : 0;
      if (where) (looks[!isKept(run, at) ? "grey" : front.constant[at] ? "constant" : front.dominated[at] ? "dominated" : "good"][step] ??= []).push(where);
    }
    for (const [look, points, step] of Object.entries(looks).flatMap(([key, steps]) => steps.map((points, step) => [key, points, step]))) {
      context.globalAlpha = third ? 1 : ALPHA[look] * (run.index === state.run ? 1 : 0.75);
      context.fillStyle = look === "grey" ? paint.muted : third ? colourAt(step) : colourOf(run);
      if (front.count > 300) drawSpecks(context, points);
      else drawMarks(context, run, look, points, front.count > 60 ? 3.4 : 4.6);
    }
    context.globalAlpha = 1;
  }
};
const drawMarks = (context, run, look, points, r) => {
  context.beginPath();
  for (const [x, y, scale = 1] of points) addMark(context, shapeOf(run), x, y, r * scale);
  if (look === "constant") {
    context.fillStyle = paint.paper;
    context.strokeStyle = colourOf(run);
    context.lineWidth = 1.4;
    context.stroke();
  }
  context.fill();
};
// Where there are many, a point is two small rectangles, one across the other, and one to a pixel:
// rectangles are drawn many times faster than curves.
const drawSpecks = (context, points) => {
  const taken = new Set();
  for (const [x, y] of points) {
    const [left, top] = [Math.round(x), Math.round(y)];
    const key = left * 8192 + top;
    if (taken.has(key)) continue;
    taken.add(key);
    context.fillRect(left - 2, top - 1, 4, 2);
    context.fillRect(left - 1, top - 2, 2, 4);
  }
};
// The chosen point of every shown run: a full ring where it was evaluated, a broken one between rays.
const drawChosen = (context, place) => {
  const ends = thirdName() && thirdEnds();
  for (const run of inOrder()) {
    const mix = mixOf(run, state.split, drawnRay());
    const where = place(run, mix);
    if (!where) continue;
    const own = run.index === state.run;
    const [x, y] = where;
    context.beginPath();
    addMark(context, shapeOf(run), x, y, own ? 6 : 4.5);
    context.fillStyle = ends ? colourAt(stepOf(blend(shownFront(run).columns[thirdName()], mix), ends)) : colourOf(run);
    context.strokeStyle = paint.paper;
    context.lineWidth = 2;
    context.stroke();
    context.fill();
    context.beginPath();
    context.arc(x, y, own ? 12 : 8.5, 0, 2 * Math.PI);
    context.setLineDash(mix.length > 1 ? [3, 3] : []);
    context.strokeStyle = colourOf(run);
    context.lineWidth = own ? 2 : 1.25;
    context.stroke();
    context.setLineDash([]);
  }
  drawPins(context, place);
};
