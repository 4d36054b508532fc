"use strict";
(() => {
  const WIDE = 460, HIGH = 260, LEFT = 52, BOTTOM = 34, TOP = 8, RIGHT = 10;
  const SHOWN = 12;  // fronts of earlier epochs that are drawn, the older the paler

  const make = (name, attributes = {}, text = "") => {
    const svg = ["svg", "line", "circle", "polyline", "text", "title"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };

  const clock = (seconds) => {
    if (seconds === null) return "time left unknown";
    const whole = Math.max(0, Math.round(seconds));
    const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return `${parts[0]}:${String(parts[1]).padStart(2, "0")}:${String(parts[2]).padStart(2, "0")} left`;
  };

  const ends = (values) => {
    const known = values.filter((value) => Number.isFinite(value));
    if (!known.length) return [0, 1];
    const low = Math.min(...known), high = Math.max(...known);
    const pad = (high - low || Math.abs(high) || 1) * 0.06;
    return [low >= 0 ? Math.max(0, low - pad) : low - pad, high + pad];
  };

  const frame = (caption, x, y, xName, yName) => {
    const figure = make("figure");
    figure.append(make("figcaption", {}, caption));
    const svg = make("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": caption });
    const at = {
      x: (value) => LEFT + (value - x[0]) / (x[1] - x[0]) * (WIDE - LEFT - RIGHT),
      y: (value) => HIGH - BOTTOM - (value - y[0]) / (y[1] - y[0]) * (HIGH - BOTTOM - TOP),
    };
    svg.append(make("line", { class: "watch-axis", x1: LEFT, y1: HIGH - BOTTOM, x2: WIDE - RIGHT, y2: HIGH - BOTTOM }));
    svg.append(make("line", { class: "watch-axis", x1: LEFT, y1: TOP, x2: LEFT, y2: HIGH - BOTTOM }));
    const label = (value) => Number(value.toPrecision(3)).toString();
    svg.append(make("text", { x: LEFT, y: HIGH - BOTTOM + 15 }, label(x[0])));
    svg.append(make("text", { x: WIDE - RIGHT, y: HIGH - BOTTOM + 15, "text-anchor": "end" }, label(x[1])));
    svg.append(make("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 4, "text-anchor": "middle" }, xName));
    svg.append(make("text", { x: LEFT - 6, y: HIGH - BOTTOM, "text-anchor": "end" }, label(y[0])));
    svg.append(make("text", { x: LEFT - 6, y: TOP + 10, "text-anchor": "end" }, label(y[1])));
    if (yName) svg.append(make("text", { x: LEFT + 6, y: TOP + 10 }, yName));
    figure.append(svg);
    return { figure, svg, at };
  };

  const words = (name) => name.replaceAll("_", " ");

  const front = (run) => {
    const some = run.evaluations.slice(-SHOWN);
    const every = some.flatMap((one) => one.values);
    const picture = frame(
      "Fronts on validation data, earlier ones paler; smaller is better",
      ends(every.map((point) => point[0])), ends(every.map((point) => point[1])),
      run.labels[0], run.labels[1],
    );
    some.forEach((one, age) => {
      const last = age === some.length - 1;
      for (const [a, b] of one.values) {
        if (a === null || b === null) continue;
        const faint = last ? 1 : 0.08 + 0.3 * age / some.length;
        const dot = make("circle", { cx: picture.at.x(a), cy: picture.at.y(b), r: last ? 4 : 2.5, fill: "var(--accent)", opacity: faint });
        dot.append(make("title", {}, `epoch ${one.epoch}: ${a.toPrecision(4)}, ${b.toPrecision(4)}`));
        picture.svg.append(dot);
      }
    });
    return picture.figure;
  };

  const lines = (caption, run, series) => {
    const epochs = run.evaluations.map((one) => one.epoch);
    const all = series.flatMap((one) => one.values);
    const picture = frame(caption, [Math.min(...epochs, 0), Math.max(...epochs, 1)], ends(all), "epoch", "");
    series.forEach((one, place) => {
      const colour = `var(--run-${place % 8})`;
      const points = one.values.map((value, at) => [value, epochs[at]]).filter(([value]) => Number.isFinite(value));
      const path = points.map(([value, epoch]) => `${picture.at.x(epoch)},${picture.at.y(value)}`).join(" ");
      picture.svg.append(make("polyline", { class: "watch-line", points: path, stroke: colour }));
      if (!one.name) return;
      const name = make("span", {}, `${place ? ", " : ": "}${one.name}`);
      name.style.color = colour;
      picture.figure.querySelector("figcaption").append(name);
    });
    return picture.figure;
  };

  const shown = (run) => {
    const section = make("section", { class: "watch-run" });
    const last = run.evaluations[run.evaluations.length - 1];
    const said = { training: clock(run.seconds_left), finished: "finished", stopped: "stopped before the end" }[run.status];
    section.append(make("h2", {}, `${run.problem} by ${run.method}, seed ${run.seed}`));
    const known = run.evaluations.some((one) => one.hypervolume_val !== null);
    const reached = last && known ? `, hypervolume ${last.hypervolume_val.toFixed(4)} on validation data` : "";
    section.append(make("p", { class: "quiet" }, `epoch ${run.epoch} of ${run.epochs}, ${said}${reached}`));
    section.append(make("progress", { max: run.epochs, value: run.epoch, "aria-label": "epochs" }));
    if (!last) return section;
    const pictures = make("div", { class: "watch-pictures" });
    if (run.names.length > 1) pictures.append(front(run));
    // by what was trained on, which need not be what is traded
    pictures.append(lines("Losses in training", run, Object.keys(last.losses ?? {}).map((name) => ({
      name: words(name), values: run.evaluations.map((one) => (one.losses ?? {})[name] ?? NaN),
    }))));
    if (known) pictures.append(lines("Hypervolume on validation data; larger is better", run, [
      { name: "", values: run.evaluations.map((one) => one.hypervolume_val) },
    ]));
    section.append(pictures);
    return section;
  };

  const draw = (state) => {
    const node = document.getElementById("standing");
    const training = state.runs.filter((run) => run.status === "training").length;
    const many = state.runs.length > 1 ? `${state.runs.length} runs, ${training} of them in training.` : "The network is being trained.";
    node.textContent = !state.runs.length ? "Waiting for the first epoch." : state.over ? "The training has ended." : many;
    document.title = state.runs.length ? `${state.runs[0].epoch}/${state.runs[0].epochs} ${state.runs[0].problem}` : "Training";
    document.getElementById("runs").replaceChildren(...state.runs.map(shown));
    document.getElementById("report").hidden = !state.page;
  };

  let over = false;
  const look = async () => {
    try {
      const state = await (await fetch("/state.json")).json();
      draw(state);
      over = state.over;
    } catch {
      const said = over ? "The training has ended." : "The training was stopped.";
      document.getElementById("standing").textContent = said;
      document.getElementById("report").hidden = true;  // it was served from there
      return;
    }
    setTimeout(look, 1000);
  };
  look();
})();
