// ---- rows of one's own: what the network answers on them, and how sure the counts are ----
// It uses nothing from outside but `decode` and `buildNetwork`, so that a worker can run the same text.
const countRows = ({ text, network: raw, columns, answer, about, rays, threshold, outcomes }, tell) => {
  const refuse = (sentence) => { throw new Error(sentence); };
  const amount = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
  const quoted = (list) => `${list.slice(0, 5).map((one) => `“${one}”`).join(", ")}${list.length > 5 ? ", …" : ""}`;

  // ---- the file, read as `read_csv` reads it ----
  const first = text.slice(0, text.search(/[\r\n]|$/));
  const mark = [",", ";", "\t", "|"].reduce((best, one) => (first.split(one).length > first.split(best).length ? one : best));
  const quotes = text.includes('"');
  const lines = quotes ? [[]] : text.split(/\r\n|\n|\r/).map((line) => line.split(mark));
  const token = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|([^"\\${mark}\\r\\n][^\\${mark}\\r\\n]*|))(\\${mark}|\\r\\n|\\n|\\r|$)`, "gy");
  while (quotes && token.lastIndex < text.length) {
    const [, within, bare, end] = token.exec(text) ?? refuse(`Line ${lines.length} of the file cannot be read: is a quotation mark missing?`);
    lines[lines.length - 1].push(within === undefined ? bare : within.replaceAll('""', '"'));
    if (end !== mark) lines.push([]);
  }
  const [head, ...rows] = lines.filter((line) => line.length > 1 || line[0]);
  if (!rows.length) refuse("The file has no rows below its header.");
  const titles = head.map((one) => one.trim());
  const absent = columns.filter(({ name }) => !titles.includes(name.trim())).map(({ name }) => name);
  if (absent.length) refuse(`The first line of the file must name the columns that the network reads, and lacks ${quoted(absent)}. They may be empty, but must be there.`);
  if (new Set(titles).size < titles.length) refuse(`The file has two columns with the name ${quoted([titles.find((one, at) => titles.indexOf(one) < at)])}.`);
  const long = rows.findIndex((row) => row.length > titles.length);
  if (long >= 0) refuse(`Row ${long + 1} of the file has more fields than its header.`);
  const NONE = new Set(["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]);
  const columnOf = (name) => { const at = titles.indexOf(name.trim()); return rows.map((row) => row[at] ?? ""); };
  const notes = [];
  const readNumbers = (name) => {
    let wrong = 0;
    const out = Float64Array.from(columnOf(name), (cell) => {
      if (NONE.has(cell.trim())) return NaN;
      const value = Number(mark === ";" ? cell.replace(",", ".") : cell);
      if (Number.isNaN(value)) wrong += 1;
      return Number.isFinite(value) ? value : NaN;
    });
    if (wrong) notes.push(`${amount(wrong, "cell")} of “${name}” cannot be read as numbers and count as missing.`);
    return out;
  };
  // Places in a list of labels; the numbers 1 and 1.0 are one label. `missing` where there is none, −1 where it is unknown.
  const readLabels = (name, labels, missing = -1) => {
    const places = new Map(labels.map((label, at) => [label, at]));
    const found = new Map();
    return Float64Array.from(columnOf(name), (cell) => {
      if (!found.has(cell)) {
        const bare = cell.trim();
        const spellings = [cell, bare, bare.replace(/^(-?\d+)\.0+$/, "$1"), { true: "True", false: "False" }[bare.toLowerCase()]];
        found.set(cell, NONE.has(bare) ? missing : places.get(spellings.find((one) => places.has(one))) ?? -1);
      }
      return found.get(cell);
    });
  };
  const cells = columns.map((column) => {
    if (!column.labels) return readNumbers(column.name);
    const places = readLabels(column.name, column.labels, column.missing);
    const unknown = places.reduce((sum, one) => sum + (one < 0), 0);
    if (unknown) notes.push(`${amount(unknown, "row")} ${unknown === 1 ? "has" : "have"} a “${column.name}” that the training data do not have.`);
    return places;
  });

  // ---- the true answer and the group of each row; −1 where the file does not say ----
  const { classes } = answer;
  const C = classes.length;
  const known = typeof about.target === "string" && titles.includes(about.target.trim());
  const truth = known ? readLabels(about.target, classes, -2) : new Float64Array(rows.length).fill(-1);
  if (known && answer.task === "binary" && classes[0] === `not ${classes[1]}`) truth.forEach((one, at) => { if (one === -1) truth[at] = 0; });
  const unsaid = truth.reduce((sum, one) => sum + (one < 0), 0);
  if (!known) notes.push(`Without a column ${quoted([about.target])} nobody can tell which answers are right.`);
  else if (unsaid) notes.push(`In ${amount(unsaid, "row")} “${about.target}” is not one of ${quoted(classes)}: their answers are neither right nor wrong.`);
  const { grouping } = about;
  const missing = grouping ? grouping.attributes.map(({ name }) => name).filter((name) => !titles.includes(name.trim())) : [];
  if (missing.length) notes.push(`Without a column ${quoted(missing)} groups cannot be compared.`);
  const groupOf = new Int32Array(rows.length).fill(-1);
  if (grouping && !missing.length) {
    const codes = grouping.attributes.map(({ name, labels, edges }) => (edges.length ? readNumbers(name).map((value) => (Number.isNaN(value) ? -1 : edges.filter((edge) => edge <= value).length)) : readLabels(name, labels)));
    const places = new Map(grouping.cells.map((cell, at) => [cell.join(), grouping.places[at]]));
    groupOf.forEach((_, row) => { groupOf[row] = places.get(codes.map((one) => one[row]).join()) ?? -1; });
    const outside = groupOf.reduce((sum, one) => sum + (one < 0), 0);
    if (outside) notes.push(`In none of the groups: ${amount(outside, "row")}.`);
  }
  const groupNames = grouping ? grouping.names : [];

  // ---- answers counted at every ray: [1 + groups, C + 1 true classes of which the last is unknown, C answers] ----
  const network = buildNetwork(raw, columns, answer);
  const size = (C + 1) * C;
  const counts = rays.map(() => new Float64Array((1 + groupNames.length) * size));
  const entropies = new Float64Array(rays.length);
  const CHUNK = 1000;
  for (let from = 0; from < rows.length; from += CHUNK) {
    const count = Math.min(CHUNK, rows.length - from);
    const features = network.encode(cells.map((one) => one.subarray(from, from + count)), count);
    let outputs = null;
    rays.forEach((ray, r) => {
      if (!outputs || !network.shared) outputs = network.run(features, count, ray);
      for (let row = 0; row < count; row += 1) {
        const read = network.read(outputs, row, ray);
        const chosen = C === 2 && read.length === 1 ? Number(read[0] > threshold) : read.indexOf(Math.max(...read));
        const right = truth[from + row];
        const cell = (right < 0 ? C : right) * C + chosen;
        counts[r][cell] += 1;
        if (groupOf[from + row] >= 0) counts[r][(1 + groupOf[from + row]) * size + cell] += 1;
        if (right >= 0) entropies[r] -= Math.log(Math.max(read.length > 1 ? read[right] : right ? read[0] : 1 - read[0], 1e-300));
      }
    });
    tell((from + count) / rows.length);
  }
  // Hits, and among how many: `over` are true classes, all where there are none.
  const hitsAt = (r, group, over, counted) => {
    const all = !over.length || over.length === C;
    const lines = all ? Array.from({ length: counted === "positive" ? C + 1 : C }, (_, at) => at) : over;
    let [hits, total] = [0, 0];
    for (const line of lines) {
      for (let chosen = 0; chosen < C; chosen += 1) {
        const count = counts[r][group * size + line * C + chosen];
        total += count;
        if (counted === "positive" ? chosen === 1 : (counted === "right") === (chosen === line)) hits += count;
      }
    }
    return [hits, total];
  };

  // ---- intervals, as `evaluation.rates` has them ----
  const Z = 1.959963984540054;
  const shareEnds = (share, total) => {
    const middle = (share + Z * Z / (2 * total)) / (1 + Z * Z / total);
    const half = Z * Math.sqrt(share * (1 - share) / total + Z * Z / (4 * total * total)) / (1 + Z * Z / total);
    return [Math.min(Math.max(middle - half, 0), share), Math.max(Math.min(middle + half, 1), share)];
  };
  // The normal distribution (Abramowitz and Stegun 7.1.26, within 1e-7).
  const below = (x) => {
    const t = 1 / (1 + 0.3275911 * Math.abs(x) / Math.SQRT2);
    const tail = 0.5 * t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x / 2);
    return x > 0 ? 1 - tail : tail;
  };
  const halved = (low, high, steps, isLow) => {
    for (let step = 0; step < steps; step += 1) {
      const middle = (low + high) / 2;
      if (isLow(middle)) low = middle;
      else high = middle;
    }
    return [low, high];
  };
  const tables = {};
  const tableOf = (level) => (tables[level] ??= Float64Array.from({ length: 801 }, (_, at) => {
    const m = at / 100;
    return halved(0, 8, 40, (k) => below(k) - below(-2 * m - k) - (m > k ? below(-k) - below(k - 2 * m) : 0) < level)[1];
  }));
  const criticalAt = (distance, level) => {
    const table = tableOf(level);
    const place = Math.min(distance * 100, 800);
    const left = Math.min(Math.floor(place), 799);
    return table[left] + (place - left) * (table[left + 1] - table[left]);
  };
  // Standard error of a difference of two rates if it were `gap` (Farrington and Manning 1990).
  const errorAt = ([[x1, n1], [x2, n2]], gap) => {
    const [rate1, rate2, ratio] = [x1 / n1, x2 / n2, n2 / n1];
    const a = 1 + ratio;
    const b = -(a + rate1 + ratio * rate2 + gap * (ratio + 2));
    const c = gap * gap + gap * (2 * rate1 + a) + rate1 + ratio * rate2;
    const d = -rate1 * gap * (1 + gap);
    const v = (b / (3 * a)) ** 3 - b * c / (6 * a * a) + d / (2 * a);
    const u = Math.sqrt(Math.max((b / (3 * a)) ** 2 - c / (3 * a), 0)) * (v < 0 ? -1 : 1);
    const cosine = Math.min(Math.max(v / (u ** 3 || 1), -1), 1);
    const higher = Math.min(Math.max(2 * u * Math.cos((Math.PI + Math.acos(cosine)) / 3) - b / (3 * a), gap), 1);
    const variance = higher * (1 - higher) / n1 + (higher - gap) * (1 - higher + gap) / n2;
    return Math.sqrt(Math.max(variance, 0) * (n1 + n2) / Math.max(n1 + n2 - 1, 1));
  };
  const endOf = (pair, level, furthest) => {
    const seen = pair[0][0] / pair[0][1] - pair[1][0] / pair[1][1];
    const isRejected = (gap) => {
      const error = Math.max(errorAt(pair, gap), 1e-12);
      const reach = Math.max(...[0.9, 1, 1.1].map((slack) => criticalAt(slack * gap / error, level)));
      return Math.abs(seen - gap) > reach * error;
    };
    return isRejected(furthest) ? halved(seen, furthest, 30, (gap) => !isRejected(gap))[0] : furthest;
  };
  // Of the largest gap over all pairs of groups and all kinds of rates.
  const gapEnds = (kinds) => {
    const pairs = kinds.flatMap((groups) => groups.flatMap((a, at) => groups.slice(at + 1).map((b) => (a[0] / a[1] < b[0] / b[1] ? [b, a] : [a, b]))));
    return [Math.max(...pairs.map((pair) => endOf(pair, 1 - 0.05 / pairs.length, 0))), Math.max(...pairs.map((pair) => endOf(pair, 0.95, 1)))];
  };

  // ---- the numbers of the page: shares by cell, and columns of a front ----
  const shares = outcomes.flatMap((outcome) => outcome.cells).flatMap((cell) => rays.flatMap((_, r) => {
    const [hits, total] = hitsAt(r, cell.group, cell.true_classes, cell.counted);
    return total ? [hits / total, ...shareEnds(hits / total, total)] : [NaN, NaN, NaN];
  }));
  const values = {};
  const put = (name, valueAt) => { values[name] = rays.map((_, r) => valueAt(r)); };
  const share = ([hits, total]) => (total ? hits / total : NaN);
  put("accuracy", (r) => share(hitsAt(r, 0, [], "right")));
  put("misclassification", (r) => share(hitsAt(r, 0, [], "wrong")));
  put(answer.task === "binary" ? "binary_cross_entropy" : "cross_entropy", (r) => share([entropies[r], rows.length - unsaid]));
  const gaps = {};
  if (answer.task === "binary") {
    put("positive_rate", (r) => share(hitsAt(r, 0, [], "positive")));
    groupNames.forEach((name, group) => put(`selection_rate_${name}`, (r) => share(hitsAt(r, 1 + group, [], "positive"))));
    const rates = { demographic_parity: [[[], "positive"]], tpr_gap: [[[1], "positive"]], fpr_gap: [[[0], "positive"]], equalized_odds: [[[1], "positive"], [[0], "positive"]], selection_and_tpr_gap: [[[], "positive"], [[1], "positive"]], accuracy_gap: [[[], "wrong"]] };
    for (const [name, kinds] of Object.entries(rates)) {
      const found = rays.map((_, r) => kinds.map(([over, counted]) => groupNames.map((__, group) => hitsAt(r, 1 + group, over, counted)).filter(([, total]) => total)));
      if (!found[0].every((groups) => groups.length > 1)) continue;
      values[name] = found.map((each) => Math.max(...each.map((groups) => { const of = groups.map(share); return Math.max(...of) - Math.min(...of); })));
      gaps[name] = found.flatMap(gapEnds);
    }
  } else classes.forEach((name, at) => put(`recall_${name}`, (r) => share(hitsAt(r, 0, [at], "right"))));
  const constant = rays.map((_, r) => Number(classes.some((__, chosen) => counts[r].subarray(0, size).every((count, at) => !count || at % C === chosen))));
  return { count: rows.length, shares, values, gaps, constant, notes };
};
