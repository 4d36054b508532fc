// ---- the visitor's own rows: counted in a worker, and shown as data beside the report's ----
const OWN = "own";
let worker = null;
const inWorker = (jobs, tell) => new Promise((resolve, reject) => {
  worker?.terminate(); // of a file opened before
  const source = Object.entries({ decode, buildNetwork, countRows }).map(([name, one]) => `const ${name} = ${one};`).join("\n");
  const work = `onmessage = ({ data }) => {
    try { postMessage({ done: data.map((job, at) => countRows(job, (share) => postMessage({ share: (at + share) / data.length }))) }); } catch (error) { postMessage({ refused: error.message }); }
  };`;
  const address = URL.createObjectURL(new Blob([`"use strict";\n${source}\n${work}`], { type: "text/javascript" }));
  worker = new Worker(address);
  worker.onerror = () => reject(new Error("This browser does not let a file start a worker; try another one."));
  worker.onmessage = ({ data }) => {
    if (data.share !== undefined) return tell(data.share);
    URL.revokeObjectURL(address);
    return data.refused === undefined ? resolve(data.done) : reject(new Error(data.refused));
  };
  worker.postMessage(jobs);
});
const countedRays = (run) => (run.answers ? run.answers.counted : { ...run.fronts[0] });
// A front at all rays of the run, from counts at some of them; what was not counted is NaN.
const frontOf = (run, found) => {
  const base = run.fronts[0];
  const counted = countedRays(run);
  const mixes = Array.from({ length: base.count }, (_, at) => mixture(counted, base.ray(at), run.networks > 0));
  const columns = Object.create(null);
  for (const name of quantities) {
    const values = found && Object.hasOwn(found.values, name) ? found.values[name] : null;
    columns[name] = Float64Array.from(mixes, (mix) => (values ? blend(values, mix) : NaN));
  }
  return { ...base, split: OWN, columns, dominated: new Uint8Array(base.count), constant: Uint8Array.from(mixes, (mix) => (found ? found.constant[heaviest(mix)] : 0)) };
};
const addRows = (run, found) => {
  const at = run.fronts.findIndex(({ split }) => split === OWN);
  run.fronts.splice(at < 0 ? run.fronts.length : at, 1, frontOf(run, found));
  if (!run.answers) return;
  const cells = words.outcomes.flatMap((outcome) => outcome.cells).length;
  run.answers.shares[OWN] = found ? Float32Array.from(found.shares) : new Float32Array(3 * cells * run.answers.counted.count).fill(NaN);
  run.answers.gaps[OWN] = found ? found.gaps : {};
};
const openRows = async (file) => {
  const able = runs.filter((run) => run.network);
  say($("own-note"), `Reading ${file.name} …`);
  try {
    const text = (await file.text()).replace(/^\uFEFF/, "");
    const jobs = able.map((run) => {
      const { count, rays } = countedRays(run);
      return { text, network: run.network, columns: page.columns, answer: page.answer, about: run.record.about, threshold, outcomes: words.outcomes, rays: Array.from({ length: count }, (_, at) => Array.from(rays.subarray(at * J, (at + 1) * J))) };
    });
    const found = await inWorker(jobs, (share) => say($("own-note"), `Counting ${file.name}: ${percent(share)} …`));
    for (const run of runs) addRows(run, found[able.indexOf(run)]);
    words.sizes[OWN] = found[0].count;
    if (!splits.includes(OWN)) splits.push(OWN);
    state.split = OWN;
    say($("own-note"), [`${found[0].count === 1 ? "1 row" : `${found[0].count.toLocaleString("en-US")} rows`} of ${file.name} ${found[0].count === 1 ? "was" : "were"} counted, and all numbers above are now about your rows. The switch beside “${$("consequences-title").textContent}” goes back to the report's data.`, ...found[0].notes].join(" "));
    showSplits();
    changed("run", "view", "ray", "criteria");
  } catch (error) {
    say($("own-note"), `${error.message} Nothing was changed.`);
  }
};
// The choice on the report's data and on the visitor's, side by side.
const showOwn = () => {
  const run = active();
  const both = [lastSplit, OWN];
  $("own-table").hidden = !splits.includes(OWN) || !run.network;
  if ($("own-table").hidden) return;
  const everybody = { title: capital(labelOf("positive_rate")), cells: [{ who: "", unit: unitOf("positive_rate"), at: (...of) => [valueAt(...of, "positive_rate")] }] };
  const rows = [everybody, ...outcomesOf(run)].flatMap((outcome) => outcome.cells.filter((cell) => isNumber(cell.at(run, state.ray, OWN)[0])).map((cell) => {
    const found = both.map((split) => cell.at(run, state.ray, split));
    const apart = found[0][1] > found[1][2] || found[1][1] > found[0][2];
    const text = ([value, low, high]) => `${cellText(cell.unit, value)}${isNumber(low) ? ` (${cellText(cell.unit, low)} to ${cellText(cell.unit, high)})` : ""}`;
    return make("tr", {}, make("th", { scope: "row" }, [outcome.title, cell.who].filter(Boolean).join(", ")), ...found.map((one, at) => make("td", { class: apart && at ? "apart" : "" }, text(one))));
  }));
  $("own-table").replaceChildren(make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Of 100, with 95 % intervals"), ...both.map((split) => make("th", { scope: "col" }, splitName(split))))), make("tbody", {}, ...rows));
};
const setUpOwn = () => {
  $("own").hidden = !runs.some((run) => run.network) || page.answer.task === "number";
  const { about } = active().record;
  const asked = [about?.target, ...(about?.grouping?.attributes ?? []).map(({ name }) => name)].filter((one) => typeof one === "string");
  say($("own-text"), `Open or drop a CSV with the columns of the form above${asked.length ? `, and with ${listing(asked.map((name) => `“${name}”`), "and")} to count who is affected` : ""}. It is read here, and nothing leaves this machine.`);
  $("own-template").addEventListener("click", () => {
    const fields = page.columns.map(({ labels }, c) => { const { value } = $("case-form").elements[c]; return labels ? labels[Number(value)] ?? "" : value; });
    const rows = [[...page.columns.map(({ name }) => name), ...asked], [...fields, ...asked.map(() => "")]];
    save(new Blob([`${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`], { type: "text/csv" }), "rows.csv");
  });
  $("own-open").addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) openRows(file);
  });
  // anywhere on the page: a file that is dropped beside its place would replace the page
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    const files = [...event.dataTransfer.files];
    if (!files.length) return;
    if (files.every(({ name }) => /\.json$/i.test(name))) openRecords(files);
    else if (!$("own").hidden) { openRows(files[0]); $("own").scrollIntoView(); }
  });
};
on("run ray", unhurried("own", showOwn));
