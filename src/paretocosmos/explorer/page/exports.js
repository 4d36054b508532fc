// ---- the view as a picture and as a table ----
const save = (blob, name) => {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
const fileName = (ending) => `${String(named(runs[0].record.name) ?? $("headline").textContent).replace(/[^\w-]+/g, "_").slice(0, 60) || "front"}-${state.split}.${ending}`;
const brokenAt = (context, text, width) => text.split(" ").reduce((lines, word) => {
  const longer = `${lines[lines.length - 1]} ${word}`.trim();
  if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
  else lines.push(word);
  return lines;
}, [""]);
const pictureOf = () => {
  const sheet = document.createElement("canvas");
  const [width, height] = size;
  const margin = 28;
  const key = runs.length > 1 ? 24 * visible().length : 0;
  const said = [`Chosen: ${leadText(active(), state.ray, state.split)}`, costText(state.split), reachedText(true), $("key").textContent].filter(Boolean);
  const context = sheet.getContext("2d");
  context.font = `400 13px ${paint.sans}`;
  const lines = said.flatMap((text) => brokenAt(context, text, width));
  [sheet.width, sheet.height] = [2 * (width + 2 * margin), 2 * (height + key + 2 * margin + 48 + 20 * lines.length)];
  context.scale(2, 2);
  context.fillStyle = paint.paper;
  context.fillRect(0, 0, sheet.width, sheet.height);
  context.translate(margin, margin);
  write(context, `${$("headline").textContent} (${splitName(state.split).toLowerCase()} data)`, 0, 14, { colour: paint.ink, size: 16, weight: 600, room: width });
  if (key) visible().forEach((run, at) => {
    context.beginPath();
    addMark(context, shapeOf(run), 6, 38 + 24 * at, 5);
    context.fillStyle = colourOf(run);
    context.fill();
    write(context, run.label, 20, 42 + 24 * at, { colour: paint.ink, size: 13, room: width - 20 });
  });
  context.translate(0, 40 + key);
  view().base(context, width, height);
  view().over(context, width, height);
  lines.forEach((text, at) => write(context, text, 0, height + 24 + 20 * at, { colour: paint.ink, size: 13 }));
  return sheet;
};
const tableOf = () => {
  const head = ["run", "split", ...names.map((name) => `ray ${name}`), ...quantities, "keeps_bounds", "dominated", "constant", "chosen"];
  const rows = [head];
  for (const run of visible()) {
    for (const front of run.fronts) {
      const mix = mixOf(run, front.split);
      const chosen = mix.length === 1 ? mix[0][0] : -1;
      for (let at = 0; at < front.count; at += 1) {
        rows.push([run.label, front.split, ...front.ray(at), ...quantities.map((name) => (isNumber(front.columns[name][at]) ? front.columns[name][at] : "")), Number(isKept(run, at)), front.dominated[at], front.constant[at], Number(at === chosen)]);
      }
      if (chosen < 0) rows.push([run.label, front.split, ...state.ray, ...quantities.map((name) => { const value = blend(front.columns[name], mix); return isNumber(value) ? value : ""; }), "", "", "", "interpolated"]);
    }
  }
  return `${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
};
// The page itself, as it opened, with the view in it: a file for those who cannot follow a link.
const copyOf = () => {
  const held = `<meta name="view" content="${address().replaceAll("&", "&amp;").replaceAll('"', "&quot;")}">`;
  return `<!doctype html>\n${untouched.replace(/<meta name="view" content="[^"]*">/, () => held)}`;
};
const setUpShare = () => {
  const linked = location.protocol.startsWith("http");
  say($("share"), linked ? "Copy link" : "Save this page");
  $("share").addEventListener("click", () => {
    if (linked) {
      remember(); // the link holds what was changed last
      copyText($("share"), location.href);
    } else save(new Blob([copyOf()], { type: "text/html" }), fileName("html"));
  });
};
const setUpExports = () => {
  setUpShare();
  $("save-png").addEventListener("click", () => pictureOf().toBlob((blob) => save(blob, fileName("png")), "image/png"));
  $("save-csv").addEventListener("click", () => save(new Blob([tableOf()], { type: "text/csv" }), fileName("csv")));
};
