// ---- a dozen samples, and what is said of them at the preference ----
let sampleNodes = [];
const buildSamples = () => {
  const { samples } = page;
  const answers = active().answers;
  sampleNodes = [];
  const some = samples && answers && (samples.texts.length || samples.images.length);
  $("samples-body").replaceChildren();
  $("samples").hidden = !samples && !page.samples_note;
  say($("held"), samples ? "" : " It holds no row of the data.");
  if (!some) {
    say($("samples-text"), page.samples_note || "This page does not contain this run’s answers.");
    return;
  }
  const count = samples.rows.length;
  const cut = samples.column_count > samples.columns.length ? ` The first ${samples.columns.length} of ${samples.column_count} columns are shown.` : "";
  say($("samples-text"), `${count} ${words.rows} from the ${splits.includes("test") ? "test" : "validation"} data: ${samples.changing} whose answers change most as you drag, then ${count - samples.changing} drawn at random${page.groups.length ? ` from ${listing(page.groups, "and")} in turn` : ""}.${cut} These are real data: share this page only with those who may see them.`);
  $("samples-body").append(samples.images.length ? pictures(samples) : rowsOf(samples));
  showSamples();
};
const meter = () => make("span", { class: "meter" }, make("i"));
const rowsOf = (samples) => {
  const [head] = page.heads;
  const body = samples.rows.map((_, s) => {
    const bar = meter();
    const text = make("b");
    const said = make("td", { class: "said" });
    sampleNodes.push([{ bar: bar.firstChild, text, said, right: samples.truth[0][s] }]);
    return make("tr", {}, make("td", { class: "chance" }, text, bar), said, make("td", {}, head.classes[samples.truth[0][s]]), ...samples.texts[s].map((value) => make("td", {}, value)));
  });
  const titles = [`chance of ${head.classes[1] ?? "the answer"}`, "answer", `true ${nice(head.name)}`, ...samples.columns.map(nice)];
  return make("div", { class: "sideways", tabindex: 0, role: "region", "aria-label": "Sample rows" },
    make("table", { class: "samples" }, make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)))), make("tbody", {}, ...body)));
};
const pictures = (samples) => make("ul", { class: "pictures" }, ...samples.images.map((source, s) => {
  const lines = page.heads.map((head, h) => {
    const [bar, text, said] = [meter(), make("b"), make("span")];
    return { node: make("div", { class: "line" }, make("span", { class: "quiet" }, nice(head.name)), said, text, bar), bar: bar.firstChild, text, said, right: samples.truth[h][s] };
  });
  sampleNodes.push(lines);
  const truth = page.heads.map((head, h) => `${nice(head.name)} ${head.classes[samples.truth[h][s]]}`).join(", ");
  return make("li", {}, make("img", { src: source, alt: `Sample ${s + 1}; true classes: ${truth}` }), ...lines.map((one) => one.node));
}));
const showSamples = () => {
  if (!sampleNodes.length) return;
  const run = active();
  const { answers } = run;
  const front = run.front("test");
  const mix = mixOf(run, front.split);
  const near = heaviest(mix);
  sampleNodes.forEach((heads, s) => heads.forEach(({ bar, text, said, right }, h) => {
    const { classes } = page.heads[h];
    const from = s * front.count;
    const answer = answers.classes[h][from + near];
    const chance = page.heads[h].binary || mix.every(([at]) => answers.classes[h][from + at] === answer)
      ? mix.reduce((sum, [at, weight]) => sum + weight * answers.probabilities[h][from + at], 0) / 65535
      : answers.probabilities[h][from + near] / 65535;
    const given = page.heads[h].binary ? (chance > (words.threshold ?? 0.5) ? 1 : 0) : answer;
    say(text, percent(chance));
    bar.style.transform = `scaleX(${chance.toFixed(3)})`;
    say(said, `${classes[given]} ${given === right ? "✓" : "✗"}`);
    said.classList.toggle("amiss", given !== right);
  }));
};
on("run", buildSamples);
on("ray", unhurried("samples", showSamples));
