// ---- every ray of the active run, made when it is opened ----
const sorting = { by: 0, down: false };
const MOST_ROWS = 250;
let rowNodes = new Map();
const buildRays = () => {
  if (!$("rays").open) return;
  const front = shownFront(active());
  const columns = [
    ["#", (at) => at + 1, 0],
    ...names.map((name, j) => [`weight: ${nice(name)}`, (at) => front.rays[at * J + j], 3]),
    ...quantities.map((name) => [nice(name), (at) => front.columns[name][at], digitsOf(front, name)]),
    ["dominated", (at) => front.dominated[at], 0],
  ];
  const last = columns.length - 1;
  const heads = columns.map(([title], c) => {
    const sorted = sorting.by === c;
    const button = make("button", { type: "button" }, title + (sorted ? (sorting.down ? " ↓" : " ↑") : ""));
    button.addEventListener("click", () => {
      [sorting.down, sorting.by] = [sorted && !sorting.down, c];
      buildRays();
      $("rays-table").querySelectorAll("thead button")[c].focus();
    });
    return make("th", sorted ? { scope: "col", "aria-sort": sorting.down ? "descending" : "ascending" } : { scope: "col" }, button);
  });
  const of = columns[sorting.by][1];
  const order = Array.from({ length: front.count }, (_, at) => at).sort((a, b) => isNumber(of(b)) - isNumber(of(a)) || (sorting.down ? of(b) - of(a) : of(a) - of(b)) || a - b);
  rowNodes = new Map();
  const body = order.slice(0, MOST_ROWS).map((at) => {
    const row = make("tr", { class: front.dominated[at] ? "dominated" : "" }, ...columns.map(([, value, digits], c) => {
      if (c === 0) return make("td", {}, make("button", { type: "button", "aria-label": `Take ray ${at + 1}` }, String(at + 1)));
      return make("td", {}, c === last ? (value(at) ? "yes" : "") : fixed(value(at), digits));
    }));
    row.addEventListener("click", () => setRay(front.ray(at)));
    rowNodes.set(at, row);
    return row;
  });
  const more = front.count > MOST_ROWS ? [make("tr", {}, make("td", { colspan: columns.length, class: "quiet" }, `The first ${MOST_ROWS} of ${front.count} in this order; the CSV holds all.`))] : [];
  $("rays-table").replaceChildren(make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body, ...more));
  markRay();
};
const markRay = () => {
  if (!$("rays").open) return;
  const mix = mixOf(active(), state.split);
  for (const [at, row] of rowNodes) {
    const own = mix.length === 1 && mix[0][0] === at;
    row.classList.toggle("selected", own);
    if (own) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
};
on("run view", buildRays);
on("ray", markRay);
