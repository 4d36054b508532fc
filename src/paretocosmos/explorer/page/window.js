// ---- how much of the plane is shown: the fronts, everything, or less around the choice ----
const MOST_ZOOM = 5;
// Points [x, y] of a run, smaller better in both; in other words negative where more is.
const towardsBest = (run, x, y) => {
  const { columns, count, dominated } = shownFront(run);
  const signs = [x, y].map((name) => (isLarger(name) ? -1 : 1));
  const kept = [[], []];
  for (let at = 0; at < count; at += 1) {
    const point = [signs[0] * columns[x][at], signs[1] * columns[y][at]];
    if (point.every(Number.isFinite)) kept[dominated[at] ? 1 : 0].push(point);
  }
  return kept;
};
const windowOf = (x, y) => {
  const every = [domainFor(x), domainFor(y)];
  if (state.zoom < 0) return [x, y].map((name) => domainOf([...visible().map((run) => shownFront(run).columns[name]), [constantAt(name, state.split)]]));
  if (state.zoom > 0 && state.centre) {
    return aroundFronts(x, y, every).map(([low, high], j) => {
      const half = (high - low) / 2 ** (state.zoom + 1);
      return [state.centre[j] - half, state.centre[j] + half];
    });
  }
  return aroundFronts(x, y, every);
};
const aroundFronts = (x, y, every) => {
  const split = visible().map((run) => [run, ...towardsBest(run, x, y)]).filter(([, good, rest]) => good.length + rest.length);
  const fronts = split.filter(([run, good]) => good.length > 0 && run.fronts[0].count > 2).map(([, good]) => good);
  if (!fronts.length || x === y) return every;
  const alone = split.filter(([run]) => run.fronts[0].count <= 2).map(([, good]) => good);
  const own = split.filter(([run]) => run.index === state.run).flatMap(([, good, rest]) => [good, rest]);
  const [low, high] = limitsOf(fronts, [...split.map(([, , rest]) => rest), ...alone].filter((one) => one.length), own.filter((one) => one.length));
  return [x, y].map((name, j) => (isLarger(name) ? padded(-high[j], -low[j]) : padded(low[j], high[j])));
};
const zoomBy = (step) => {
  if (step > 0 && state.zoom <= 0) state.centre = plane.centre();
  state.zoom = clamp(state.zoom + step, -1, MOST_ZOOM);
  if (state.zoom === 0) state.centre = null;
  changed("turn");
};
const setUpZoom = () => {
  $("zoom-in").addEventListener("click", () => zoomBy(1));
  $("zoom-out").addEventListener("click", () => zoomBy(-1));
  $("over").addEventListener("wheel", (event) => {
    if (!event.ctrlKey || state.view !== "plane") return; // a pinch; a plain wheel scrolls the page
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? 1 : -1);
  }, { passive: false });
};
// What the marks mean, of those that are there.
let seenBeyond = { key: "", found: [] };
const lookBeyond = () => {
  const key = [state.view, state.x, state.y, state.split, state.zoom, state.centre, state.shown, state.run, size].join();
  if (seenBeyond.key !== key) seenBeyond = { key, found: state.view === "plane" ? plane.outside() : [] };
  return seenBeyond.found;
};
const showKey = () => {
  const inPlane = state.view === "plane";
  const wrong = inPlane ? [state.x, state.y].filter((name) => isNumber(constantAt(name, state.split)))[0] : undefined;
  const oneAnswer = wrong && `${inUnits(wrong, constantAt(wrong, state.split))} ${labelOf(wrong)}`;
  const beyond = lookBeyond();
  $("zoom").hidden = state.view !== "plane";
  $("zoom-in").disabled = state.zoom >= MOST_ZOOM;
  $("zoom-out").disabled = state.zoom < 0;
  const [pale, hollow, grey] = [0, 0, 0].map((_, k) => visible().some((run) => {
    const front = shownFront(run);
    for (let at = 0; at < front.count; at += 1) if (!isKept(run, at) ? k === 2 : front.constant[at] ? k === 1 : front.dominated[at] ? k === 0 : false) return true;
    return false;
  }));
  const said = [inPlane && "Drag along the points to choose.", inPlane && plane.band() && "Shaded: where points may really lie, by their 95 % intervals. The data cannot tell the points within the ellipse, drawn as rings, from the choice.", wrong && (plane.shows(wrong, constantAt(wrong, state.split)) ? `Dashed: one answer for everybody, ${oneAnswer}.` : `One answer for everybody would have ${oneAnswer}: zoom out to see where.`), pale && "Pale: another choice of the same run is better in one thing and worse in none.", hollow && "Hollow: everybody gets the same answer.", grey && "Grey: breaks your limit.",
    beyond.length && `Arrows: ${beyond.map(([run, count]) => `${count} of ${run.label}`).join(", ")} beyond the picture${state.zoom === 0 ? "; zoom out to see" : ""}.`];
  say($("key"), said.filter(Boolean).join(" "));
};
