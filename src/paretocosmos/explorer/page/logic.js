// ---- logic: pure functions of numbers and text; they know no page and no state ----

// Bytes written in base64, as an array of numbers.
const decode = (text, Kind) => {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
  return new Kind(bytes.buffer);
};

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

// Evaluated rays by their distance from a ray, the nearest first: the first `wanted` of them.
const nearest = (rays, count, J, ray, wanted) => {
  const found = [];
  for (let at = 0; at < count; at += 1) {
    let square = 0;
    for (let j = 0; j < J; j += 1) square += (rays[at * J + j] - ray[j]) ** 2;
    if (found.length === wanted && square >= found[wanted - 1][1]) continue;
    let place = found.length;
    while (place > 0 && found[place - 1][1] > square) place -= 1;
    found.splice(place, 0, [at, square]);
    if (found.length > wanted) found.pop();
  }
  return found.map(([at, square]) => [at, Math.sqrt(square)]);
};

// The evaluated ray at the smallest angle, by which networks of their own are found.
const aligned = (rays, count, J, ray) => {
  let [best, largest] = [0, -Infinity];
  for (let at = 0; at < count; at += 1) {
    let [product, square] = [0, 0];
    for (let j = 0; j < J; j += 1) {
      product += rays[at * J + j] * ray[j];
      square += rays[at * J + j] ** 2;
    }
    const cosine = product / Math.sqrt(square);
    if (cosine > largest) [largest, best] = [cosine, at];
  }
  return best;
};

// Which evaluated rays approximate a ray, and with what weights: [[place, weight], ...].
// Two objectives: a straight line between the next on either side. More: the nearest, weighted so
// that a ray which comes into reach or leaves it does so with weight 0 (Franke and Little's weights).
// Networks of their own know nothing between their rays.
const mixture = (front, ray, fixed) => {
  const { rays, count } = front;
  const J = ray.length;
  const reach = 2 * J - 1;
  if (fixed) return [[aligned(rays, count, J, ray), 1]];
  const near = nearest(rays, count, J, ray, reach + 1);
  if (count === 1 || near[0][1] < 1e-6) return [[near[0][0], 1]];
  if (J === 2) {
    const order = front.order;
    let right = order.findIndex((at) => rays[at * 2] >= ray[0]);
    if (right === 0) return [[order[0], 1]];
    if (right < 0) return [[order[count - 1], 1]];
    const [low, high] = [order[right - 1], order[right]];
    const share = (ray[0] - rays[low * 2]) / (rays[high * 2] - rays[low * 2]);
    return [[low, 1 - share], [high, share]];
  }
  const radius = near.length > reach ? near[reach][1] : near[near.length - 1][1] * 1.5;
  const parts = near.slice(0, reach).map(([at, apart]) => [at, (Math.max(0, radius - apart) / (radius * apart)) ** 2]);
  const total = parts.reduce((sum, part) => sum + part[1], 0);
  if (!(total > 0)) return [[near[0][0], 1]];
  return parts.filter((part) => part[1] > 0).map(([at, weight]) => [at, weight / total]);
};
const blend = (column, mix) => mix.reduce((sum, [at, weight]) => sum + weight * column[at], 0);
const heaviest = (mix) => mix.reduce((best, one) => (one[1] > best[1] ? one : best))[0];

// ---- choosing, as `front.choose` does ----
const boundsOf = (criteria) => [
  ...Object.entries(criteria.max).map(([name, bound]) => ({ name, bound, side: 1 })),
  ...Object.entries(criteria.min).map(([name, bound]) => ({ name, bound, side: -1 })),
];
const keeper = (front, criteria) => {
  const bounds = boundsOf(criteria).map(({ name, bound, side }) => [front.columns[name], side * bound, side]);
  return (at) => bounds.every(([column, bound, side]) => side * column[at] <= bound); // not for NaN
};
const costOf = (front, criteria) => {
  const free = front.names.filter((name) => !(name in criteria.max) && !(name in criteria.min));
  const sign = criteria.maximize ? -1 : 1;
  const column = front.columns[criteria.maximize || criteria.minimize || (free.length ? free : front.names)[0]];
  return (at) => (Number.isNaN(column[at]) ? Infinity : sign * column[at]);
};
// The place with the smallest keys, compared one after the other; NaN is largest, the first wins.
const smallest = (places, keys) => {
  const less = (a, b) => (Number.isNaN(a) ? 0 : Number.isNaN(b) || a < b ? 1 : 0);
  return places.reduce((best, at) => {
    for (const key of keys) {
      if (less(key(at), key(best))) return at;
      if (less(key(best), key(at))) return best;
    }
    return best;
  });
};
// The best point that keeps the bounds, { at }; or { at: -1, closest, constant } where none does:
// the point that comes nearest, and whether a constant classifier would keep them.
const pick = (front, criteria) => {
  const places = Array.from({ length: front.count }, (_, at) => at);
  const cost = costOf(front, criteria);
  const keeps = keeper(front, criteria);
  const first = (at) => front.columns[front.names[0]][at];
  const passed = (at) => (criteria.constants ? 0 : front.constant[at]);
  const allowed = places.filter((at) => !passed(at) && keeps(at) && Number.isFinite(cost(at)));
  if (allowed.length) return { at: smallest(allowed, [cost, first]) };
  const excess = boundsOf(criteria).map(({ name, bound, side }) => {
    const column = front.columns[name];
    const known = Array.from(column).filter((value) => !Number.isNaN(value));
    const spread = known.length ? Math.max(...known) - Math.min(...known) || 1 : 1;
    return (at) => (Number.isNaN(column[at]) ? Infinity : Math.max(side * (column[at] - bound), 0) / spread);
  });
  const total = (at) => excess.reduce((sum, one) => sum + one(at), 0);
  return {
    at: -1,
    closest: smallest(places, [passed, total, first]),
    constant: places.some((at) => front.constant[at] && keeps(at)),
  };
};

// A limit to begin with: the next round number that a value keeps, in units of its metric. The steps
// of the range, at least ten of them, say what is round.
const roundLimit = (value, [low, high], scale, larger) => {
  const rough = (scale * (high - low)) / 10;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [5, 2, 1].find((one) => one * power <= rough) * power;
  const steps = larger ? Math.floor(scale * value / step + 1e-9) : Math.ceil(scale * value / step - 1e-9);
  return Number((steps * step).toPrecision(6)) / scale;
};

// ---- rays ----
// One weight set, the others scaled to what is left.
const reweighed = (ray, j, weight) => {
  const rest = 1 - ray[j];
  const left = 1 - weight;
  return ray.map((one, k) => (k === j ? weight : rest > 1e-12 ? (one / rest) * left : left / (ray.length - 1)));
};
const onSimplex = (ray) => {
  const kept = ray.map((one) => Math.max(0, one));
  const total = kept.reduce((sum, one) => sum + one, 0);
  return total > 0 ? kept.map((one) => one / total) : ray.map(() => 1 / ray.length);
};
// A ray as text with four decimals that sum to 1.
const rounded = (ray) => {
  const shown = ray.slice(0, -1).map((weight) => Number(weight.toFixed(4)));
  const rest = 1 - shown.reduce((sum, one) => sum + one, 0);
  return [...shown, Math.max(0, rest)].map((weight) => weight.toFixed(4)).join(", ");
};
// The triangle of three weights, its corners at (0, 1), (1, 1) and (1/2, 0), and back.
const toPlane = (ray) => [ray[1] + ray[2] / 2, 1 - ray[2]];
const fromPlane = (x, y) => onSimplex([1 - (x - (1 - y) / 2) - (1 - y), x - (1 - y) / 2, 1 - y]);

// A point of the unit cube turned about the upright axis and then tilted: [across, up, depth].
const turned = ([x, y, z], yaw, pitch) => {
  const [a, b, c] = [x - 0.5, y - 0.5, z - 0.5];
  const across = a * Math.cos(yaw) - b * Math.sin(yaw);
  const away = a * Math.sin(yaw) + b * Math.cos(yaw);
  return [across, c * Math.cos(pitch) - away * Math.sin(pitch), away * Math.cos(pitch) + c * Math.sin(pitch)];
};

// Where on a line through points [x, y] a place lies nearest: [segment, share].
const nearestOnLine = (points, x, y) => {
  let best = [0, 0];
  let least = Infinity;
  for (let at = 0; at < Math.max(1, points.length - 1); at += 1) {
    const [ax, ay] = points[at];
    const [bx, by] = points[Math.min(at + 1, points.length - 1)];
    const length = (bx - ax) ** 2 + (by - ay) ** 2;
    const share = length > 0 ? clamp(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, 0, 1) : 0;
    const apart = (ax + share * (bx - ax) - x) ** 2 + (ay + share * (by - ay) - y) ** 2;
    if (apart < least) [least, best] = [apart, [at, share]];
  }
  return best;
};

// ---- axes ----
const domainOf = (columns) => {
  let [low, high] = [Infinity, -Infinity];
  for (const column of columns) {
    for (const value of column) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) [low, high] = [0, 1];
  const flat = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
  const pad = flat ? Math.max(0.05 * Math.abs(high), 1e-3) : 0.06 * (high - low);
  return [low - pad, high + pad];
};
// How far a picture reaches: around the fronts, whatever lies elsewhere (as `plotting` has it). A
// light tail much further away than all the rest is wide is left out, nothing because it is good.
const withoutTail = (values, weights) => {
  const order = values.map((_, at) => at).sort((a, b) => values[a] - values[b]);
  let rest = 1;
  for (let at = 0; at + 1 < order.length; at += 1) {
    rest -= weights[order[at]];
    const [here, next] = [values[order[at]], values[order[at + 1]]];
    const width = here - values[order[0]];
    if (rest <= 1 / 3 + 1e-9 && width > 0 && next - here > 2 * width) return here;
  }
  return values[order[order.length - 1]];
};
// `fronts`, `beside` and `always` are lists of lists of points; smaller is better in all of them.
const limitsOf = (fronts, beside, always) => {
  const core = fronts.flat();
  const weights = fronts.flatMap((points) => points.map(() => 1 / points.length / fronts.length));
  const every = [...core, ...beside.flat()];
  const axes = core[0].map((_, j) => j);
  let high = axes.map((j) => withoutTail(core.map((point) => point[j]), weights));
  const below = (point, edge) => point.every((value, j) => value <= edge[j]);
  if (!core.some((point) => below(point, high))) high = axes.map((j) => Math.max(...core.map((point) => point[j])));
  const seen = [...every.filter((point) => below(point, high)), ...always.flat()];
  const low = axes.map((j) => Math.min(...seen.map((point) => point[j])));
  const reach = high.map((value, j) => value + 0.5 * (value - low[j]));
  const near = [...every.filter((point) => below(point, reach)), high, ...always.flat()];
  return [low, axes.map((j) => Math.max(...near.map((point) => point[j])))];
};
const padded = (low, high) => domainOf([[low, high]]);
const ticksOf = ([low, high], count) => {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) + (Math.abs(step / power - 2.5) < 1e-9 ? 1 : 0);
  const all = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    all.push([at * step, (at * step || 0).toFixed(Math.min(digits, 10)).replace(/^-(0\.?0*)$/, "$1").replace("-", "−")]);
  }
  return all;
};

// ---- addresses ----
// An address with a preference holds a view; any other names a section of the page, or nothing.
const holdsView = (hash) => new URLSearchParams(hash.slice(1)).has("ray");

// ---- text for elsewhere ----
// A name that begins like a formula would be one in a spreadsheet.
const harmless = (value) => (typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value));
const csvCell = (value) => (/[",\n\r]/.test(harmless(value)) ? `"${harmless(value).replaceAll('"', '""')}"` : harmless(value));
const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
