// ---- code and commands for the chosen preference ----
const pythonOf = (run) => {
  const asked = boundsOf(criteria());
  const ray = rounded(state.ray);
  const lines = ["from paretocosmos import load_run", "", `run = load_run(${JSON.stringify(run.folder)})`];
  if (state.byBounds && asked.length) {
    const dict = (side) => `{${Object.entries(state[side]).map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(", ")}}`;
    const parts = ["max", "min"].filter((side) => Object.keys(state[side]).length).map((side) => `${side}=${dict(side)}`);
    if (state.best) parts.push(`${isLarger(state.best) ? "maximize" : "minimize"}=${JSON.stringify(state.best)}`);
    if (state.constants) parts.push("allow_constant=True");
    lines.push(`choice = run.choose(${parts.join(", ")})  # looks between these rays, too`);
    lines.push(run.record.about?.target ? "run.predict(rows, ray=choice.ray)" : "run.model(inputs, torch.tensor(choice.ray))");
    lines.push("", "# or the ray shown here");
  }
  lines.push(run.record.about?.target ? `run.predict(rows, ray=[${ray}])` : `run.model(inputs, torch.tensor([${ray}]))`);
  if (!run.record.about?.target) lines.unshift("import torch");
  return lines.join("\n");
};
const commandOf = (run) => {
  const folder = shellWord(run.folder);
  const lines = [`paretocosmos evaluate ${folder} --ray ${rounded(state.ray).replaceAll(", ", ",")}`];
  if (state.byBounds && hasBounds()) {
    const parts = boundsOf(criteria()).map(({ name, bound, side }) => `--${side > 0 ? "max" : "min"} ${shellWord(`${name}=${bound}`)}`);
    if (state.best) parts.push(`--${isLarger(state.best) ? "maximize" : "minimize"} ${shellWord(state.best)}`);
    if (state.constants) parts.push("--allow-constant");
    lines.unshift(`paretocosmos choose ${folder} ${parts.join(" ")}`);
  }
  return lines.join("\n");
};
const showCode = () => {
  say($("python"), pythonOf(active()));
  say($("command"), commandOf(active()));
};
const setUpCode = () => {
  for (const kind of ["python", "command"]) {
    $(`copy-${kind}`).addEventListener("click", async () => {
      let done = true;
      try {
        await navigator.clipboard.writeText($(kind).textContent);
      } catch {
        getSelection().selectAllChildren($(kind));
        done = document.execCommand("copy");
      }
      say($(`copy-${kind}`), done ? "Copied" : "Select and copy");
      setTimeout(() => say($(`copy-${kind}`), "Copy"), 1600);
    });
  }
};
on("ray criteria run", showCode);
