// ---- code and commands for the chosen preference ----
// One that was not saved has no folder to load it from.
const isEstimator = (run) => Boolean(run.record.predicts_at) && run.folder === run.record.name;
const askedOf = () => {
  const dict = (side) => `{${Object.entries(state[side]).map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(", ")}}`;
  const parts = ["max", "min"].filter((side) => Object.keys(state[side]).length).map((side) => `${side}=${dict(side)}`);
  if (askedFor()) parts.push(`${isLarger(askedFor()) ? "maximize" : "minimize"}=${JSON.stringify(askedFor())}`);
  if (state.constants) parts.push("allow_constant=True");
  if (moved()) parts.push(`threshold=${words.threshold}`);
  return parts.join(", ");
};
const pythonOf = (run) => {
  const asked = boundsOf(criteria());
  const ray = rounded(state.ray);
  const bounded = state.byBounds && asked.length;
  const above = moved() ? ` > ${words.threshold}` : "";
  if (isEstimator(run)) {
    const chosen = [`chosen = estimator.choose(${askedOf()})  # looks between these rays, too`, "chosen.predict(rows)", "", "# or the ray shown here"];
    return [...(bounded ? chosen : []), `estimator.predict(rows, preference=[${ray}])`].join("\n");
  }
  const lines = ["from paretocosmos import load_run", "", `run = load_run(${JSON.stringify(run.folder)})`];
  if (bounded) {
    lines.push(`choice = run.choose(${askedOf()})  # looks between these rays, too`);
    lines.push(run.record.about?.target ? `run.predict(rows, ray=choice.ray)${above}` : "run.model(inputs, torch.tensor(choice.ray))");
    lines.push("", "# or the ray shown here");
  }
  lines.push(run.record.about?.target ? `run.predict(rows, ray=[${ray}])${above}` : `run.model(inputs, torch.tensor([${ray}]))`);
  if (!run.record.about?.target) lines.unshift("import torch");
  return lines.join("\n");
};
const commandOf = (run) => {
  const folder = shellWord(run.folder);
  if (run.record.predicts_at) {
    const saved = isEstimator(run) ? `  # after estimator.save(${JSON.stringify(run.folder)})` : "";
    return `paretocosmos predict ${folder} rows.csv --ray ${rounded(state.ray).replaceAll(", ", ",")}${saved}`;
  }
  const lines = [`paretocosmos evaluate ${folder} --ray ${rounded(state.ray).replaceAll(", ", ",")}`];
  if (state.byBounds && hasBounds()) {
    const parts = boundsOf(criteria()).map(({ name, bound, side }) => `--${side > 0 ? "max" : "min"} ${shellWord(`${name}=${bound}`)}`);
    if (askedFor()) parts.push(`--${isLarger(askedFor()) ? "maximize" : "minimize"} ${shellWord(askedFor())}`);
    if (state.constants) parts.push("--allow-constant");
    if (moved()) parts.push(`--threshold ${words.threshold}`);
    lines.unshift(`paretocosmos choose ${folder} ${parts.join(" ")}`);
  }
  return lines.join("\n");
};
const showCode = () => {
  say($("python"), pythonOf(active()));
  say($("command"), commandOf(active()));
};
// Where the clipboard is forbidden, the text is selected, if it is on the page.
const copyText = async (button, text, node) => {
  const was = button.textContent;
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (node) getSelection().selectAllChildren(node);
    done = Boolean(node) && document.execCommand("copy");
  }
  say(button, done ? "Copied" : node ? "Select and copy" : "Copy the address");
  setTimeout(() => say(button, was), 1600);
};
const setUpCode = () => {
  for (const kind of ["python", "command"]) {
    $(`copy-${kind}`).addEventListener("click", () => copyText($(`copy-${kind}`), $(kind).textContent, $(kind)));
  }
};
on("ray criteria run", showCode);
