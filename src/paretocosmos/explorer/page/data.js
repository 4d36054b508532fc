// ---- what the page holds ----
const page = JSON.parse($("data").textContent);
const names = page.names;
const J = names.length;
const quantities = [...names, ...page.metrics.filter((name) => !names.includes(name))];
const isLarger = (name) => !names.includes(name) && page.larger.includes(name);

const unpackFront = (raw) => {
  const rays = decode(raw.rays, Float64Array);
  const values = decode(raw.values, Float64Array);
  const columns = Object.create(null); // a name may be any text
  for (const name of quantities) {
    columns[name] = Object.hasOwn(raw.metrics, name) ? decode(raw.metrics[name], Float64Array) : new Float64Array(raw.count).fill(NaN);
  }
  names.forEach((name, j) => { columns[name] = values.subarray(j * raw.count, (j + 1) * raw.count); });
  const order = Array.from({ length: raw.count }, (_, at) => at).sort((a, b) => rays[a * J] - rays[b * J] || a - b);
  return {
    split: raw.split, count: raw.count, names, rays, columns, order, reference: raw.reference, report: raw.report,
    dominated: decode(raw.dominated, Uint8Array), constant: decode(raw.constant, Uint8Array),
    ray: (at) => Array.from(rays.subarray(at * J, (at + 1) * J)),
  };
};
// Floats of single precision, by split; those of gaps by name, too.
const floats = (raw) => Object.fromEntries(Object.entries(raw ?? {}).map(([key, one]) => [key, typeof one === "string" ? decode(one, Float32Array) : floats(one)]));
const unpackAnswers = (raw) => raw && {
  rayIndices: raw.ray_indices,
  shares: floats(raw.shares),
  gaps: floats(raw.gaps),
  confusion: Object.fromEntries(Object.entries(raw.confusion).map(([split, heads]) => [split, heads.map((one) => decode(one, Uint32Array))])),
  probabilities: raw.probabilities.map((one) => decode(one, Uint16Array)),
  classes: raw.classes.map((one) => decode(one, Uint16Array)),
};
// The rays at which answers were counted, as a front of their own.
const countedOf = (front, indices) => {
  const rays = Float64Array.from(indices.flatMap((place) => front.ray(place)));
  const order = indices.map((_, k) => k).sort((a, b) => rays[a * J] - rays[b * J] || a - b);
  return { rays, order, count: indices.length };
};
const runs = page.runs.map((raw, index) => {
  const fronts = raw.fronts.map(unpackFront);
  const answers = unpackAnswers(raw.answers);
  if (answers) answers.counted = countedOf(fronts[0], answers.rayIndices);
  const fixedRays = Array.isArray(raw.record.fixed_rays) ? raw.record.fixed_rays : [];
  return {
    index, label: raw.label, folder: raw.folder, record: raw.record, fronts, answers,
    network: raw.network, networkNote: raw.network_note,
    // a network for each of some rays, or one that takes the ray
    networks: fixedRays.length,
    front: (split) => fronts.find((one) => one.split === split) ?? fronts[0],
  };
});
const splits = [...new Set(runs.flatMap((run) => run.fronts.map((front) => front.split)))];
// Choosing looks at the validation data, where there are any.
const choosingSplit = splits.includes("val") ? "val" : splits[0];
// What a choice is worth is read from the test data, by which nothing was chosen.
const lastSplit = splits.includes("test") ? "test" : splits[splits.length - 1];
const dataName = (split) => `${splitName(split).toLowerCase()}${split === "own" ? "" : " data"}`;
