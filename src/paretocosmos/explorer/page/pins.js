// ---- two choices kept and compared ----
const LETTERS = ["A", "B"];
const pinNow = (letter) => {
  state.pins[letter] = { run: state.run, ray: [...state.ray] };
  changed("pins");
};
const compareColumns = () => {
  const kept = LETTERS.filter((letter) => state.pins[letter]).map((letter) => ({ letter, ...state.pins[letter] }));
  return kept.length === 1 ? [...kept, { letter: "now", run: state.run, ray: state.ray }] : kept;
};
const showPins = () => {
  const columns = compareColumns();
  $("pins").hidden = !columns.length;
  for (const letter of LETTERS) say($(`pin-${letter}`), `${state.pins[letter] ? "Replace" : "Keep as"} ${letter}`);
  if (!columns.length) return;
  const rows = outcomesOf(active()).flatMap((outcome) => {
    const shareAt = (column, cell) => (runs[column.run].answers || outcome.name ? cell.at(runs[column.run], column.ray, state.split) : [NaN, NaN, NaN]);
    return outcome.cells.map((cell) => {
      const found = columns.map((column) => shareAt(column, cell));
      const by = found.length > 1 ? found[1][0] - found[0][0] : NaN;
      const apart = found.length > 1 && isNumber(found[0][1]) && (found[0][1] > found[1][2] || found[1][1] > found[0][2]);
      return make("tr", {}, make("th", { scope: "row" }, [outcome.title, cell.who].filter(Boolean).join(", ")),
        ...found.map(([value]) => make("td", {}, cellText(cell.unit, value))),
        make("td", { class: apart ? "apart" : "" }, isNumber(by) ? `${by > 0 ? "+" : ""}${cellText(cell.unit, by)}` : DASH));
    });
  });
  const [first, second] = columns;
  const told = ["Decided by", "Why", "Limit"].map((label, at) => [label, columns.map(({ said }) => said?.[at] ?? "")]).filter(([, texts]) => texts.some(Boolean))
    .map(([label, texts]) => make("tr", {}, make("th", { scope: "row" }, label), ...texts.map((text) => make("td", { class: "said" }, text)), make("td")));
  const close = make("button", { type: "button", class: "plain" }, "Forget both");
  close.addEventListener("click", () => { state.pins = {}; changed("pins"); $("pin-A").focus(); });
  const named = (column) => `${column.letter === "now" ? "Now" : column.letter}${runs.length > 1 ? `: ${runs[column.run].label}` : ""}`;
  const takes = columns.filter(({ letter }) => letter !== "now").map(({ letter, run, ray }) => {
    const button = make("button", { type: "button" }, `Take ${letter}`);
    button.addEventListener("click", () => { state.run = run; state.shown[run] = true; setRay(ray); changed("criteria", "run"); });
    return button;
  });
  $("pins").replaceChildren(make("h3", {}, `${first.letter} and ${second.letter === "now" ? "what is chosen now" : second.letter}`),
    make("div", { class: "sideways", tabindex: 0, role: "region", "aria-label": "Two choices compared" }, make("table", { class: "numbers" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Of 100"), ...columns.map((column) => make("th", { scope: "col" }, named(column))), make("th", { scope: "col" }, "Difference"))), make("tbody", {}, ...told, ...rows))),
    make("p", { class: "quiet small" }, "Bold: the intervals do not overlap."), make("div", { class: "actions" }, ...takes, close));
};
const setUpPins = () => LETTERS.forEach((letter) => $(`pin-${letter}`).addEventListener("click", () => pinNow(letter)));
on("pins run view", showPins);
on("ray", () => { if (compareColumns().length && !(state.pins.A && state.pins.B)) showPins(); });
