// ---- the network: layers as PyTorch computes them ----
// It uses nothing from outside but `decode`, so that a worker can run the same text.
const buildNetwork = (raw, columns, answer) => {
  const unpack = (one) => {
    if (typeof one === "string") return decode(one, Float32Array);
    if (Array.isArray(one)) return one.map(unpack);
    return one && typeof one === "object" ? Object.fromEntries(Object.entries(one).map(([key, each]) => [key, unpack(each)])) : one;
  };
  const net = unpack(raw);
  const { objectives: J, members, layers } = net;
  const width = layers[layers.length - 1].outputs;
  const starts = net.heads.map((_, at) => net.heads.slice(0, at).reduce((sum, one) => sum + one, 0));
  const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
  const logSumExp = (values) => {
    const top = Math.max(...values);
    return top + Math.log(values.reduce((sum, one) => sum + Math.exp(one - top), 0));
  };

  // ---- a table's cells to features, as `Table.transform` has them ----
  const features = columns.reduce((sum, one) => Math.max(sum, one.flag ? one.flag[0] + 1 : 0, one.labels ? one.start + one.labels.length : 0), columns.filter((one) => !one.labels).length);
  // Columns of numbers, NaN where missing; of categories by their place, −1 where unknown.
  const encode = (cells, count) => {
    const out = new Float32Array(count * features);
    columns.forEach((column, c) => {
      if (column.labels) {
        const { start, means, scales } = column;
        for (let row = 0; row < count; row += 1) {
          for (let k = 0; k < means.length; k += 1) out[row * features + start + k] = ((cells[c][row] === k) - means[k]) / scales[k];
        }
        return;
      }
      const [mean, scale] = column.moments;
      for (let row = 0; row < count; row += 1) {
        const missing = !Number.isFinite(cells[c][row]);
        out[row * features + c] = ((missing ? column.fill : cells[c][row]) - mean) / scale;
        if (column.flag) out[row * features + column.flag[0]] = (missing - column.flag[1]) / column.flag[2];
      }
    });
    return out;
  };

  // ---- at a ray every layer is one matrix and one bias ----
  const fold = (layer, ray, modulation) => {
    const { inputs, outputs } = layer;
    const weight = layer.weight.slice();
    const bias = layer.bias ? layer.bias.slice() : new Float32Array(outputs);
    if (layer.ray) for (let o = 0; o < outputs; o += 1) for (let j = 0; j < J; j += 1) bias[o] += layer.ray[o * J + j] * ray[j];
    if (layer.reads) {
      const ranks = layer.reads.length / inputs;
      const centred = ray.map((one) => J * one - 1);
      for (let o = 0; o < outputs; o += 1) {
        for (let k = 0; k < ranks; k += 1) {
          const factor = layer.writes[o * ranks + k] * centred[Math.floor((k * J) / ranks)];
          for (let i = 0; i < inputs; i += 1) weight[o * inputs + i] += factor * layer.reads[k * inputs + i];
        }
        if (layer.ray_shifts) for (let j = 0; j < J; j += 1) bias[o] += centred[j] * layer.ray_shifts[j * outputs + o];
      }
    }
    if (typeof layer.modulation === "number") {
      for (let o = 0; o < outputs; o += 1) {
        const scale = 1 + modulation[layer.modulation + o];
        for (let i = 0; i < inputs; i += 1) weight[o * inputs + i] *= scale;
        bias[o] = bias[o] * scale + modulation[layer.modulation + outputs + o];
      }
    }
    return { inputs, outputs, weight, bias };
  };
  // The sums of four outputs at once: alone, each would wait for its last addition.
  const apply = ({ inputs, outputs, weight, bias }, from, to) => {
    let o = 0;
    for (; o + 3 < outputs; o += 4) {
      let [a, b, c, d] = [bias[o], bias[o + 1], bias[o + 2], bias[o + 3]];
      const at = o * inputs;
      for (let i = 0; i < inputs; i += 1) {
        const x = from[i];
        a += weight[at + i] * x;
        b += weight[at + inputs + i] * x;
        c += weight[at + 2 * inputs + i] * x;
        d += weight[at + 3 * inputs + i] * x;
      }
      to[o] = a; to[o + 1] = b; to[o + 2] = c; to[o + 3] = d;
    }
    for (; o < outputs; o += 1) {
      let sum = bias[o];
      for (let i = 0; i < inputs; i += 1) sum += weight[o * inputs + i] * from[i];
      to[o] = sum;
    }
  };
  const modulationAt = (ray) => {
    if (!net.perceptron) return null;
    const [enter, leave] = net.perceptron;
    const [hidden, out] = [new Float32Array(enter.outputs), new Float32Array(leave.outputs)];
    apply(enter, ray.map((one) => J * one - 1), hidden);
    apply(leave, hidden.map((x) => x / (1 + Math.exp(-x))), out);
    return out;
  };
  // Members' outputs [members * width] to one [width], as `average_members` has it.
  const average = (parts, out, from) => {
    net.heads.forEach((size, head) => {
      const of = (m, k) => parts[m * width + starts[head] + k];
      const each = Array.from({ length: members }, (_, m) => m);
      const norms = each.map((m) => logSumExp(Array.from({ length: size }, (_, k) => of(m, k))));
      for (let k = 0; k < size; k += 1) {
        let value = each.reduce((sum, m) => sum + of(m, k), 0) / members;
        if (net.averages_probabilities && size === 1) value = logSumExp(each.map((m) => -softplus(-of(m, 0)))) - logSumExp(each.map((m) => -softplus(of(m, 0))));
        else if (net.averages_probabilities) value = logSumExp(each.map((m) => of(m, k) - norms[m])) - Math.log(members);
        out[from + starts[head] + k] = value;
      }
    });
  };

  // Features of some rows to what the heads give, [rows * width].
  const run = (rows, count, given) => {
    const ray = net.ends ? given.map((_, k) => given.reduce((sum, one, j) => sum + one * net.ends[j * J + k], 0)) : given;
    const modulation = modulationAt(ray);
    const folded = layers.map((layer) => fold(layer, ray, modulation));
    const [embed, straight] = [net.embed, net.straight].map((layer) => layer && fold(layer, ray, modulation));
    const pieces = net.read ? net.read.length : 0;
    const encoded = new Float32Array(embed ? embed.inputs : 0);
    const entered = new Float32Array(embed ? embed.outputs : 0);
    const [line, parts] = [new Float32Array(width), new Float32Array(members * width)];
    const steps = folded.map((layer) => ({ from: new Float32Array(layer.inputs), to: new Float32Array(layer.outputs) }));
    const out = new Float32Array(count * width);
    for (let row = 0; row < count; row += 1) {
      const x = rows.subarray(row * features, (row + 1) * features);
      if (embed) {
        for (let p = 0; p < pieces; p += 1) encoded[p] = Math.min(1, Math.max(0, (x[net.read[p]] - net.starts[p]) / net.widths[p]));
        for (let k = 0; k < net.rest.length; k += 1) encoded[pieces + k] = x[net.rest[k]];
        apply(embed, encoded, entered);
      }
      if (straight) apply(straight, x, line);
      for (let m = 0; m < members; m += 1) {
        let before = embed ? entered : x;
        folded.forEach((layer, at) => {
          const { from, to } = steps[at];
          const [scale, shift] = members > 1 ? [net.scales[at], net.shifts[at]] : [null, null];
          for (let i = 0; i < layer.inputs; i += 1) {
            const value = at ? Math.max(before[i], 0) : before[i];
            from[i] = scale ? value * scale[m * layer.inputs + i] : value;
          }
          apply(layer, from, to);
          if (shift) for (let o = 0; o < layer.outputs; o += 1) to[o] += shift[m * layer.outputs + o];
          before = to;
        });
        for (let k = 0; k < width; k += 1) parts[m * width + k] = before[k] + line[k];
      }
      if (members > 1) average(parts, out, row * width);
      else out.set(parts, row * width);
    }
    return out;
  };

  // ---- the closed-form adjustment, as `fairness.adjustment` has it ----
  const places = net.multipliers ? net.multipliers.length / (2 * net.heads[1]) : 0;
  // Joint probabilities of label and group [rows, 2 * groups], once for all rays of the same outputs.
  const joints = { of: null, each: null };
  const jointsOf = (outputs) => {
    if (joints.of === outputs) return joints.each;
    const groups = net.heads[1];
    const each = new Float64Array((outputs.length / width) * 2 * groups);
    for (let row = 0; row * width < outputs.length; row += 1) {
      for (let y = 0; y < 2; y += 1) {
        const from = row * width + 1 + y * groups;
        const norm = logSumExp(Array.from(outputs.subarray(from, from + groups)));
        const log = -softplus(y ? -outputs[row * width] : outputs[row * width]) - norm;
        for (let g = 0; g < groups; g += 1) each[(2 * row + y) * groups + g] = Math.exp(log + outputs[from + g]);
      }
    }
    Object.assign(joints, { of: outputs, each });
    return each;
  };
  const adjust = (outputs, row, ray) => {
    const count = 2 * net.heads[1];
    const at = Math.round(Math.fround((ray[1] / (ray[0] + ray[1])) * (places - 1))) * count;
    const logit = outputs[row * width];
    const each = jointsOf(outputs);
    let cost = 0;
    for (let k = 0; k < count; k += 1) cost += each[row * count + k] * net.multipliers[at + k];
    const positive = 1 / (1 + Math.exp(-logit));
    const negative = 1 / (1 + Math.exp(logit));
    const root = Math.sqrt(cost > 0 ? (1 - cost) ** 2 + 4 * cost * negative : (1 + cost) ** 2 - 4 * cost * positive);
    const above = cost > 1 ? (4 * cost * negative) / Math.max(root + cost - 1, 1e-30) : root + 1 - cost;
    const below = cost < -1 ? (-4 * cost * positive) / Math.max(root - cost - 1, 1e-30) : root + 1 + cost;
    return logit + Math.log(Math.max(above, 1e-30)) - Math.log(Math.max(below, 1e-30));
  };
  // What the outputs of a row mean at a ray: [probability of a yes], one for each class, or [number].
  const read = (outputs, row, ray) => {
    if (answer.task === "binary") return [1 / (1 + Math.exp(-(net.multipliers ? adjust(outputs, row, ray) : outputs[row * width])))];
    if (answer.task === "number") return [outputs[row * width] * answer.scale + answer.mean];
    const logits = Array.from(outputs.subarray(row * width, (row + 1) * width));
    const norm = logSumExp(logits);
    return logits.map((one) => Math.exp(one - norm));
  };
  // Where a ray enters only the adjustment, outputs are the same at all rays.
  const shared = !net.perceptron && ![...layers, net.embed, net.straight].some((layer) => layer && (layer.ray || layer.reads));
  return { encode, run, read, shared };
};
