
"use strict";
(() => {
  const { record, fronts, dominated, summaries, folder } = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const names = fronts[0].names;
  const J = names.length;
  const DASH = "–";

  // ---- small helpers: text is always text, never markup ----
  const fill = (node, attributes, children) => {
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
  const isGroup = (value) => value !== null && typeof value === "object";
  const short = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
  const nice = (name) => String(name).replaceAll("_", " ");
  // A column shows as many decimals as its largest number needs for four digits.
  const decimals = (values) => {
    const largest = Math.max(...values.filter(isNumber).map(Math.abs), 0);
    return largest > 0 ? Math.min(8, Math.max(0, 4 - Math.ceil(Math.log10(largest) + 1e-12))) : 4;
  };
  const fixed = (value, digits) => (isNumber(value) ? value.toFixed(digits).replace("-", "−") : DASH);
  const plain = (value) => {
    if (!isNumber(value)) return DASH;
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en-US").replace("-", "−");
    return fixed(value, decimals([value]));
  };
  const duration = (seconds) => {
    if (!isNumber(seconds)) return DASH;
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    const whole = Math.round(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  };
  const named = (value) => (isGroup(value) ? value.name : value);

  // ---- who gave the points: one network that is told the ray, or a network for each of some rays ----
  const fixedRays = Array.isArray(record.fixed_rays) ? record.fixed_rays : [];
  const K = fixedRays.length;
  const networks = Array.isArray(record.networks) ? record.networks.filter(isGroup) : [];
  const single = fronts[0].rays.length === 1;
  const thing = K ? "network" : "ray";
  const Thing = K ? "Network" : "Ray";
  const eachAlone = K > 1 && K === J && fixedRays.every((one, k) => one.every((weight, j) => weight === Number(j === k)));
  const chosen = [...new Set(networks.length ? networks.map((one) => one.epoch_selected) : [record.epoch_selected])]
    .filter(isNumber).sort((a, b) => a - b);
  const epochs = chosen.length < 7 ? chosen.join(", ") : `${chosen[0]} to ${chosen[chosen.length - 1]}`;

  // ---- headline and cards ----
  const problem = record.name ?? named(record.problem);
  if (problem) $("headline").textContent = String(problem);
  for (const [label, value] of [
    ["Method", record.label ?? named(record.method)],
    ["Conditioning", named(record.conditioning)],
    ["Backbone", named(record.backbone)],
    ["Protocol", named(record.protocol)],
    ["Seed", record.seed],
    [chosen.length > 1 ? "Selected epochs" : "Selected epoch", chosen.length ? epochs : null],
    ["Device", named(record.device)],
  ]) {
    if (value === undefined || value === null || isGroup(value)) continue;
    $("facts").append(make("li", {}, make("span", {}, label), String(value)));
  }
  const splits = fronts.map((front) => front.split);
  const main = summaries[0];
  const reference = fronts[0].reference.map(plain).join(", ");
  // One ray has no order.
  const order = fronts[0].rays.length > 1 ? main.monotonicity : null;
  const each = K > 1 && isNumber(record.parameters) ? plain(record.parameters / K) : null;
  const infeasible = networks.map((one) => one.infeasible_share).filter(isNumber);
  const cards = [
    ...splits.slice(0, 2).map((split, at) => [
      `Hypervolume, ${split}`,
      plain(summaries[at].hypervolume),
      at === 0
        ? `How much the ${single ? "point beats" : eachAlone ? "points beat" : "front beats"} the reference point (${reference}). Larger is better.`
        : `The same on the ${split} data. Close to ${splits[0]} is a good sign.`,
    ]),
    ["Ideal point", eachAlone ? plain(main.hypervolume_ideal) : DASH,
      "The hypervolume of the best of every objective together, which no one network needs to reach."],
    ["Span", single || eachAlone ? DASH : plain(main.span), "How far apart the ends of the front are. Larger is more choice."],
    ["Dominated", isNumber(main.dominated_share) && !single && !eachAlone ? `${(100 * main.dominated_share).toFixed(0)}\u00a0%` : DASH,
      `${Thing}s whose point another ${thing} beats. 0\u00a0% is best.`],
    ["Monotonicity", eachAlone ? DASH : fixed(order, 2), "1: more weight always lowers that objective. −1: it raises it."],
    ["Infeasible", Math.max(...infeasible, 0) > 0 ? `${(100 * Math.max(...infeasible)).toFixed(1)}\u00a0%` : DASH,
      "Steps whose linear programme had no solution, where the ray weighed the losses."],
    ["Training time", duration(record.seconds_training),
      K > 1 ? `All ${K} networks together.` : single ? "For one point." : "One training for the whole front."],
    ["Parameters", plain(record.parameters), each ? `${K} networks of ${each} weights.` : "Weights in the one network."],
    [`${Thing}s`, single ? DASH : plain(fronts[0].rays.length),
      K ? "Each for a ray of its own." : "Trade-offs evaluated on this page."],
  ];
  for (const [label, value, why] of cards) {
    if (value === DASH) continue;
    $("cards").append(make("div", { class: "card" }, make("dt", {}, label),
      make("dd", { class: "value" }, value), make("dd", { class: "why" }, why)));
  }

  // ---- what the preference means ----
  $("front-title").textContent = single ? "The point" : eachAlone ? "The points" : "The front";
  $("front-text").textContent = `${
    K > 1 ? `${K} networks, ${eachAlone ? "each trained on one objective alone" : "one point each"}`
      : single ? "One network, one point" : "One network, one point per preference"}. Each objective is better the smaller it is.`;
  $("table-title").textContent = single ? "The numbers" : `Every ${thing}`;
  $("table-text").hidden = single;
  $("show-dominated").parentNode.hidden = single;
  const meaning = $("meaning");
  if (K) {
    meaning.append(K > 1
      ? make("p", {}, make("strong", {}, "There is nothing between two networks."), " A preference is answered by the network whose ray is the nearest.")
      : make("p", {}, make("strong", {}, "This network takes no preference."), " Whatever the ray, its answer is the same."));
  }
  const ways = !isNumber(order) ? null
    : order > 0.5 ? ["More weight means a smaller loss.", "Read the preference as how much you care: moving it towards an objective lowers that objective, at the cost of the others."]
    : order < -0.5 ? ["More weight means a larger loss.", "This model reads the preference as a direction: the losses are pulled to be proportional to the ray, so an objective with much weight ends up larger. Move away from an objective to lower it."]
    : ["The preference and the losses are only loosely related.", `Choose a ${thing} by the values it reaches, in the picture or the table, and not by its weights.`];
  if (ways && !eachAlone) meaning.append(make("p", {}, make("strong", {}, ways[0]), ` ${ways[1]}`));
  const penalty = record.method?.settings?.penalty;
  if (String(named(record.method)).startsWith("cosmos")) {
    meaning.append(make("p", {}, `COSMOS minimises the weighted losses plus a penalty on the angle between losses and ray${
      isNumber(penalty) ? `; here the penalty is ${penalty}` : ""}. With a small penalty the weights rule, and more weight gives a smaller loss; with a large one the direction rules, and it can turn round. Monotonicity (${
      fixed(order, 2)}) says which of the two this model does.`));
  }
  meaning.hidden = !meaning.childNodes.length;

  // ---- state ----
  const state = { front: 0, selected: 0, dominated: true, reference: false, x: 0, y: Math.min(1, J - 1), sort: null, down: false };
  const front = () => fronts[state.front];
  const metricNames = [...new Set(fronts.flatMap((one) => Object.keys(one.metrics)))];
  const quantities = [
    ...names.map((name, at) => ({ name, objective: at, of: (one) => one.values.map((row) => row[at]) })),
    ...metricNames.map((name) => ({ name, objective: null, of: (one) => one.metrics[name] ?? one.values.map(() => null) })),
  ];
  // With two objectives a ray is one number: the slider walks from one end of the front to the
  // other, and to the right the first objective grows, as it does in the picture.
  const turn = isNumber(order) && order < 0 ? 1 : -1;
  const walk = () => {
    const indices = front().rays.map((_, at) => at);
    return J === 2 ? indices.sort((a, b) => turn * (front().rays[a][0] - front().rays[b][0])) : indices;
  };
  state.selected = walk()[Math.floor(fronts[0].rays.length / 2)];
  const ray = (at) => front().rays[at].map((weight) => weight.toFixed(3)).join(", ");
  const isDominated = (at) => dominated[state.front][at];

  // ---- controls ----
  for (const [id, key] of [["axis-x", "x"], ["axis-y", "y"]]) {
    quantities.forEach((quantity, at) => {
      $(id).append(make("option", { value: at }, nice(quantity.name) + (quantity.objective === null ? " (metric)" : "")));
    });
    $(id).value = state[key];
    $(id).addEventListener("change", (event) => { state[key] = Number(event.target.value); picture(); });
  }
  fronts.forEach((one, at) => {
    const radio = make("input", { type: "radio", name: "split", value: at });
    radio.checked = at === 0;
    radio.addEventListener("change", () => {
      state.front = at;
      state.selected = Math.min(state.selected, front().rays.length - 1);
      everything();
    });
    const twice = splits.indexOf(one.split) !== splits.lastIndexOf(one.split);
    $("splits").append(make("label", {}, radio, make("span", {}, twice ? `${one.split} ${at + 1}` : one.split)));
  });
  $("splits").hidden = fronts.length < 2;
  $("show-dominated").addEventListener("change", (event) => { state.dominated = event.target.checked; picture(); });
  $("show-reference").addEventListener("change", (event) => { state.reference = event.target.checked; picture(); });
  $("slider").parentNode.hidden = single;
  $("weights").hidden = K === 1;
  $("slider").addEventListener("input", (event) => select(walk()[Number(event.target.value)]));
  $("end-left").textContent = J === 2 ? `More weight on ${nice(names[turn < 0 ? 0 : 1])}` : `First ${thing}`;
  $("end-right").textContent = J === 2 ? `More weight on ${nice(names[turn < 0 ? 1 : 0])}` : `Last ${thing}`;
  $("copy").addEventListener("click", async () => {
    let done = true;
    try {
      await navigator.clipboard.writeText($("snippet").textContent);
    } catch {
      getSelection().selectAllChildren($("snippet"));
      done = document.execCommand("copy");
    }
    $("copy").textContent = done ? "Copied" : "Select and copy";
    setTimeout(() => { $("copy").textContent = "Copy"; }, 1600);
  });

  // ---- axes ----
  const ticks = (low, high, count) => {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) + (String(step / power) === "2.5" ? 1 : 0);
    const all = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) all.push(at * step);
    return all.map((value) => [value, fixed(value, Math.min(digits, 10)).replace(/^−(0\.?0*)$/, "$1")]);
  };
  const domain = (values) => {
    let low = Math.min(...values);
    let high = Math.max(...values);
    if (!values.length) [low, high] = [0, 1];
    const flat = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
    const pad = flat ? Math.max(0.05 * Math.abs(high), 1e-3) : 0.06 * (high - low);
    return [low - pad, high + pad];
  };
  const frame = (svg, [x0, x1], [y0, y1], labels, height) => {
    const width = Math.max(svg.parentNode.clientWidth, 240);
    const left = 56, right = 12, top = 30, bottom = 48;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    svg.replaceChildren();
    const sx = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right);
    const sy = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom);
    for (const [value, text] of ticks(x0, x1, width < 480 ? 4 : 7)) {
      svg.append(draw("line", { class: "gridline", x1: sx(value), x2: sx(value), y1: top, y2: height - bottom }),
        draw("text", { x: sx(value), y: height - bottom + 18, "text-anchor": "middle" }, text));
    }
    for (const [value, text] of ticks(y0, y1, height < 260 ? 5 : 6)) {
      svg.append(draw("line", { class: "gridline", x1: left, x2: width - right, y1: sy(value), y2: sy(value) }),
        draw("text", { x: left - 10, y: sy(value) + 4, "text-anchor": "end" }, text));
    }
    const room = Math.floor(width / 7.2);
    svg.append(
      draw("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
      draw("text", { class: "title", x: width - right, y: height - 6, "text-anchor": "end" }, short(labels[0], room)),
      draw("text", { class: "title", x: 0, y: 14 }, short(labels[1], room)));
    return { sx, sy };
  };

  // ---- the picture ----
  let marks = new Map();
  const picture = () => {
    const [qx, qy] = [quantities[state.x], quantities[state.y]];
    const [xs, ys] = [qx.of(front()), qy.of(front())];
    const shown = xs.map((_, at) => at).filter((at) =>
      isNumber(xs[at]) && isNumber(ys[at]) && (state.dominated || !isDominated(at) || at === state.selected));
    const both = qx.objective !== null && qy.objective !== null;
    const far = both && state.reference ? [front().reference[qx.objective], front().reference[qy.objective]] : null;
    $("show-reference").disabled = !both;
    const label = (quantity) => nice(quantity.name) + (quantity.objective === null ? "" : "  (smaller is better)");
    const xAll = shown.map((at) => xs[at]).concat(far ? [far[0]] : []);
    const yAll = shown.map((at) => ys[at]).concat(far ? [far[1]] : []);
    const wide = $("chart").parentNode.clientWidth;
    const { sx, sy } = frame($("chart"), domain(xAll), domain(yAll), [label(qx), label(qy)],
      Math.round(Math.min(440, Math.max(300, wide * 0.68))));
    const corner = shown.filter((at) => !isDominated(at)).sort((a, b) => xs[a] - xs[b] || ys[b] - ys[a]);
    if (far) {
      const inside = corner.filter((at) => xs[at] < far[0] && ys[at] < far[1]);
      if (J === 2 && state.x !== state.y && inside.length) {
        let path = `M${sx(xs[inside[0]])} ${sy(far[1])}`;
        inside.forEach((at, step) => {
          path += `V${sy(ys[at])}H${sx(step + 1 < inside.length ? xs[inside[step + 1]] : far[0])}`;
        });
        $("chart").append(draw("path", { class: "region", d: `${path}V${sy(far[1])}Z` }));
      }
      const [cx, cy] = [sx(far[0]), sy(far[1])];
      $("chart").append(draw("path", { class: "reference", d: `M${cx - 5} ${cy - 5}l10 10m0 -10l-10 10` }),
        draw("text", { x: cx - 12, y: cy + 4, "text-anchor": "end" }, "reference point"));
    }
    if (J === 2 && both && state.x !== state.y && corner.length > 1 && !eachAlone) {
      $("chart").append(draw("polyline", { class: "trace", points: corner.map((at) => `${sx(xs[at])},${sy(ys[at])}`).join(" ") }));
    }
    marks = new Map();
    $("tip").hidden = true;
    for (const row of rows.values()) row.classList.remove("hover");
    // Dominated points lie underneath.
    for (const at of shown.sort((a, b) => isDominated(b) - isDominated(a))) {
      const said = quantities.map((quantity) => `${nice(quantity.name)} ${plain(quantity.of(front())[at])}`).join(", ");
      const [cx, cy] = [sx(xs[at]), sy(ys[at])];
      const mark = draw("g", { class: "point", role: "option", "data-at": at, "aria-label": `${K ? `Network ${at + 1}` : `Ray ${ray(at)}`}: ${said}${isDominated(at) ? ", dominated" : ""}` },
        draw("circle", { class: "hit", cx, cy, r: 12 }), draw("circle", { class: "ring", cx, cy, r: 9 }),
        draw("circle", { class: "dot", cx, cy, r: 5 }));
      mark.classList.toggle("dominated", isDominated(at));
      const show = () => { tip(at, cx, cy); hover(at, true); };
      const hide = () => { $("tip").hidden = true; hover(at, false); };
      mark.addEventListener("pointerenter", show);
      mark.addEventListener("pointerleave", hide);
      mark.addEventListener("focus", show);
      mark.addEventListener("blur", hide);
      mark.addEventListener("click", () => select(at));
      mark.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        const path = walk().filter((one) => marks.has(one));
        const to = event.key === "Home" ? path[0] : event.key === "End" ? path[path.length - 1]
          : step ? path[path.indexOf(at) + step] : undefined;
        if (event.key === "Enter" || event.key === " ") select(at);
        else if (step === undefined && to === undefined) return;
        event.preventDefault();
        if (to !== undefined) { select(to); marks.get(to).focus(); }
      });
      marks.set(at, mark);
      $("chart").append(mark);
    }
    highlight();
  };
  const tip = (at, x, y) => {
    const box = $("tip");
    const line = (label, value) => make("div", {}, make("span", {}, label), make("span", {}, value));
    box.replaceChildren(...(K ? [line("network", at + 1)] : []), ...(K === 1 ? [] : [line("ray", ray(at))]),
      ...quantities.map((quantity) => line(nice(quantity.name), plain(quantity.of(front())[at]))),
      ...(isDominated(at) ? [line("dominated", "yes")] : []));
    box.hidden = false;
    const width = $("chart").parentNode.clientWidth;
    box.style.left = `${Math.max(0, Math.min(x + 16, width - box.offsetWidth))}px`;
    box.style.top = `${y - box.offsetHeight - 14 > 0 ? y - box.offsetHeight - 14 : y + 16}px`;
  };

  // ---- the table ----
  let rows = new Map();
  const columns = () => [
    { name: "#", of: front().rays.map((_, at) => at + 1) },
    ...(K === 1 ? [] : names).map((name, j) => ({ name: `weight: ${nice(name)}`, of: front().rays.map((one) => one[j]), digits: 3 })),
    ...quantities.map((quantity) => ({ name: nice(quantity.name), of: quantity.of(front()) })),
    ...(K > 1 && networks.length === front().rays.length
      ? [{ name: "selected epoch", of: networks.map((one) => one.epoch_selected), digits: 0 }] : []),
    ...(single ? [] : [{ name: "dominated", of: front().rays.map((_, at) => Number(isDominated(at))), flag: true }]),
  ];
  const table = () => {
    const all = columns();
    const head = make("tr");
    all.forEach((column, at) => {
      const sorted = state.sort === at;
      const button = make("button", { type: "button" }, column.name + (sorted ? (state.down ? " ↓" : " ↑") : ""));
      button.addEventListener("click", () => {
        state.down = sorted ? !state.down : false;
        state.sort = at;
        table();
        $("table").querySelectorAll("thead button")[at].focus();
      });
      const cell = make("th", { scope: "col" }, button);
      if (sorted) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      head.append(cell);
    });
    const order = front().rays.map((_, at) => at);
    if (state.sort !== null) {
      const by = all[state.sort].of;
      const lacking = (value) => (isNumber(value) ? 0 : 1);
      order.sort((a, b) => lacking(by[a]) - lacking(by[b]) || (state.down ? by[b] - by[a] : by[a] - by[b]) || a - b);
    }
    const digits = all.map((column) => column.digits ?? decimals(column.of));
    const body = make("tbody");
    rows = new Map();
    for (const at of order) {
      const row = make("tr", { class: isDominated(at) ? "dominated" : "" });
      all.forEach((column, c) => {
        const value = column.of[at];
        if (c === 0) {
          row.append(make("td", {}, make("button", { type: "button", "aria-label": `Select ${thing} ${at + 1}` }, String(value))));
        } else {
          row.append(make("td", {}, column.flag ? (value ? "yes" : "") : fixed(value, digits[c])));
        }
      });
      row.addEventListener("click", () => select(at));
      row.addEventListener("pointerenter", () => hover(at, true));
      row.addEventListener("pointerleave", () => hover(at, false));
      row.addEventListener("focusin", () => hover(at, true));
      row.addEventListener("focusout", () => hover(at, false));
      rows.set(at, row);
      body.append(row);
    }
    $("table").replaceChildren(make("thead", {}, head), body);
    highlight();
  };

  // ---- the selected ray ----
  const highlight = () => {
    for (const [at, mark] of marks) {
      const on = at === state.selected;
      mark.classList.toggle("selected", on);
      mark.setAttribute("aria-selected", on);
      mark.setAttribute("tabindex", on || (!marks.has(state.selected) && at === [...marks.keys()][0]) ? 0 : -1);
    }
    for (const [at, row] of rows) row.classList.toggle("selected", at === state.selected);
  };
  const hover = (at, on) => {
    marks.get(at)?.classList.toggle("hover", on);
    rows.get(at)?.classList.toggle("hover", on);
  };
  const same = (other) => other.rays.findIndex((one) => one.every((weight, j) => Math.abs(weight - front().rays[state.selected][j]) < 1e-6));
  const rounded = (weights) => {
    const shown = weights.slice(0, -1).map((weight) => weight.toFixed(4));
    const rest = 1 - shown.reduce((sum, text) => sum + Number(text), 0);
    return [...shown, Math.max(0, rest).toFixed(4)].join(", ");
  };
  const detail = () => {
    const at = state.selected;
    const path = walk();
    const place = path.indexOf(at);
    $("slider").max = path.length - 1;
    $("slider").value = place;
    $("slider").disabled = path.length < 2;
    $("slider").setAttribute("aria-valuetext", `ray ${ray(at)}, ${names.map((name, j) => `${nice(name)} ${plain(front().values[at][j])}`).join(", ")}`);
    $("slider-label").textContent = `${K ? "Network" : "Preference"} ${place + 1} of ${path.length}`;
    $("detail-title").textContent = single ? `The one ${thing}` : `${Thing} ${at + 1}`;
    $("detail-state").textContent = single ? "" : isDominated(at)
      ? `Dominated: another ${thing} is at least as good in everything.`
      : eachAlone ? `Trained on ${nice(names[at])} alone.` : "On the front: to lower one objective another must rise.";
    $("weights").replaceChildren(...(K === 1 ? [] : names).map((name, j) => {
      const bar = make("i");
      bar.style.width = `${(100 * Math.min(1, Math.max(0, front().rays[at][j]))).toFixed(1)}%`;
      return make("div", {}, make("div", { class: "row" }, make("span", {}, `weight on ${nice(name)}`),
        make("span", {}, front().rays[at][j].toFixed(3))), make("div", { class: "bar" }, bar));
    }));
    const places = fronts.map(same);
    $("detail").replaceChildren(
      make("thead", {}, make("tr", {}, ...["", ...splits].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...quantities.map((quantity) => make("tr", {}, make("th", { scope: "row" }, nice(quantity.name)),
        ...fronts.map((one, f) => make("td", {}, places[f] < 0 ? DASH : fixed(quantity.of(one)[places[f]], decimals(quantity.of(one)))))))));
    $("snippet").textContent = `${record.about?.target ? "" : "import torch\n"}from paretocosmos import load_run\n\nrun = load_run(${JSON.stringify(folder)})\n${call(rounded(front().rays[at]))}`;
  };
  // Moves the table only, never the page.
  const reveal = () => {
    const [row, pane] = [rows.get(state.selected), $("table").parentNode];
    const head = $("table").tHead.offsetHeight;
    if (row.offsetTop < pane.scrollTop + head) pane.scrollTop = row.offsetTop - head;
    if (row.offsetTop + row.offsetHeight > pane.scrollTop + pane.clientHeight) pane.scrollTop = row.offsetTop + row.offsetHeight - pane.clientHeight;
  };
  const call = (ray) => record.about?.target
    ? `run.predict(rows, ray=[${ray}])` : `run.model(inputs, torch.tensor([${ray}]))`;
  const select = (at) => {
    state.selected = at;
    if (!marks.has(at) || !state.dominated) {
      const held = document.activeElement?.classList.contains("point");
      picture();
      if (held) marks.get(at)?.focus();
    }
    highlight();
    detail();
    reveal();
  };
  const everything = () => { picture(); table(); detail(); reveal(); };

  // ---- training ----
  const evaluations = (Array.isArray(record.evaluations) ? record.evaluations : [])
    .filter((one) => isGroup(one) && isNumber(one.epoch) && isNumber(one.hypervolume_val));
  // Networks for one objective each are selected by that one, not by a hypervolume.
  const shownProgress = evaluations.length >= 2 && !eachAlone;
  const progress = () => {
    if (!shownProgress) return;
    const svg = $("progress-chart");
    const { sx, sy } = frame(svg, domain(evaluations.map((one) => one.epoch)), domain(evaluations.map((one) => one.hypervolume_val)),
      ["epoch", "validation hypervolume  (larger is better)"], 220);
    svg.append(draw("polyline", { class: "trace", points: evaluations.map((one) => `${sx(one.epoch)},${sy(one.hypervolume_val)}`).join(" ") }));
    for (const one of evaluations) {
      const mark = draw("g", { class: chosen.includes(one.epoch) ? "point selected" : "point" },
        draw("title", {}, `epoch ${one.epoch}: ${plain(one.hypervolume_val)}`),
        draw("circle", { class: "ring", cx: sx(one.epoch), cy: sy(one.hypervolume_val), r: 7 }),
        draw("circle", { class: "dot", cx: sx(one.epoch), cy: sy(one.hypervolume_val), r: evaluations.length > 60 ? 2 : 3.5 }));
      svg.append(mark);
    }
  };
  if (shownProgress) {
    const best = chosen.length === 1 ? evaluations.find((one) => one.epoch === chosen[0]) : undefined;
    $("progress").hidden = false;
    $("progress-text").textContent = chosen.length > 1
      ? `Each network has its own selected epoch: ${epochs}. The picture has the hypervolume of all of them together.`
      : best
      ? `Epoch ${best.epoch} was selected, with a validation hypervolume of ${plain(best.hypervolume_val)}.`
      : "Validation hypervolume at every evaluation.";
    $("progress-chart").setAttribute("aria-label",
      `Validation hypervolume from ${plain(evaluations[0].hypervolume_val)} to ${plain(evaluations[evaluations.length - 1].hypervolume_val)} over ${evaluations.length} evaluations`);
  }

  // ---- caveats and configuration ----
  const caveats = [record.caveats ?? []].flat();
  $("caveats").hidden = caveats.length === 0;
  $("caveats-list").append(...caveats.map((caveat) => make("li", {}, String(caveat))));

  const brief = (value) => (isNumber(value) && String(value).length > 10 && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value);
  const leaves = (value, path) => {
    if (Array.isArray(value) && !value.some(isGroup)) return [[path, value.map((one) => String(brief(one))).join(", ") || "none"]];
    if (isGroup(value)) {
      const label = (key) => (Array.isArray(value) ? String(Number(key) + 1) : nice(key));
      const inner = Object.entries(value).flatMap(([key, one]) => leaves(one, path ? `${path} › ${label(key)}` : label(key)));
      return inner.length ? inner : path ? [[path, "none"]] : [];
    }
    if (value === null || value === undefined) return [[path, DASH]];
    if (typeof value === "boolean") return [[path, value ? "yes" : "no"]];
    if (brief(value) !== value) return [[path, String(brief(value)), value]];
    return [[path, String(value)]];
  };
  const groups = [["run", []]];
  for (const [key, value] of Object.entries(record)) {
    if (key === "evaluations" || key === "caveats") continue;
    if (key === "fixed_rays" && (value === null || networks.length)) continue; // the networks have them
    if (isGroup(value) && !Array.isArray(value)) groups.push([nice(key), leaves(value, "")]);
    else groups[0][1].push(...leaves(value, nice(key)));
  }
  for (const [name, entries] of groups) {
    if (!entries.length) continue;
    $("configuration").append(make("div", { class: "group" }, make("h3", {}, name),
      make("table", {}, make("tbody", {}, ...entries.map(([key, text, exact]) => make("tr", {}, make("td", {}, key),
        make("td", exact === undefined ? {} : { title: exact }, text)))))));
  }
  if (!$("configuration").childNodes.length) $("configuration").append(make("p", { class: "quiet" }, "Nothing was recorded."));

  everything();
  progress();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    picture();
    progress();
  });
})();
