// ---- parallel coordinates, for more objectives than a picture has dimensions ----
const bareAt = (name, value, digits) => (unitOf(name) ? fixed(100 * value, 1) : fixed(value, digits));
const MOST_LINES = 400; // of all runs together: more only cover each other
const lines = (() => {
  let box, domains, step;
  const sx = (j) => box.left + j * step;
  const sy = (j, value) => box.bottom - ((value - domains[j][0]) / (domains[j][1] - domains[j][0])) * (box.bottom - box.top);
  const trace = (context, values) => values.forEach((value, j) => (j ? context.lineTo(sx(j), sy(j, value)) : context.moveTo(sx(j), sy(j, value))));
  const valuesAt = (run, place) => names.map((name) => shownFront(run).columns[name][place]);
  return {
    height: (width) => clamp(width * 0.6, 320, 460),
    base(context, width, height) {
      box = { left: 34, right: width - 30, top: 72, bottom: height - 34 };
      step = (box.right - box.left) / Math.max(1, J - 1);
      domains = names.map(domainFor);
      for (const run of inOrder()) {
        const front = shownFront(run);
        const every = Math.ceil((front.count * visible().length) / MOST_LINES);
        for (const [good, alpha] of [[false, 0.18], [true, front.count > 60 ? 0.3 : 0.55]]) {
          context.beginPath();
          for (let place = 0; place < front.count; place += every) {
            const values = valuesAt(run, place);
            if (isKept(run, place) === good && values.every(Number.isFinite)) trace(context, values);
          }
          context.strokeStyle = good ? colourOf(run) : paint.muted;
          context.globalAlpha = alpha;
          context.lineWidth = 1; // a wider one takes ten times as long to draw
          context.stroke();
          context.globalAlpha = 1;
        }
      }
      names.forEach((name, j) => {
        line(context, sx(j), box.top, sx(j), box.bottom, paint.muted);
        context.save();
        context.translate(sx(j), box.top - 14);
        if (step < 110) context.rotate(-0.5);
        write(context, labelOf(name), 0, 0, { align: step < 110 ? "left" : j === 0 ? "left" : j === J - 1 ? "right" : "center", colour: paint.ink, size: 13, room: step < 110 ? 110 : step });
        context.restore();
        const digits = decimals(domains[j]);
        write(context, bareAt(name, domains[j][0], digits), sx(j), box.bottom + 18, { align: "center", size: 11 });
        if (step >= 60) write(context, bareAt(name, domains[j][1], digits), sx(j) + (j < J - 1 ? 10 : -10), box.top + 4, { size: 11, align: j < J - 1 ? "left" : "right" });
        const bound = boundOf(name);
        if (bound === undefined) return;
        const edge = clamp(sy(j, bound), box.top, box.bottom);
        context.globalAlpha = 0.25;
        context.fillStyle = paint.muted;
        if (isLarger(name)) context.fillRect(sx(j) - 7, edge, 14, box.bottom - edge);
        else context.fillRect(sx(j) - 7, box.top, 14, edge - box.top);
        context.globalAlpha = 1;
      });
    },
    over(context) {
      for (const run of inOrder()) {
        const own = run.index === state.run;
        const mix = mixOf(run, state.split);
        const values = names.map((name) => blend(shownFront(run).columns[name], mix));
        if (!values.every(Number.isFinite)) continue;
        context.beginPath();
        trace(context, values);
        context.strokeStyle = colourOf(run);
        context.lineWidth = own ? 3 : 2;
        context.setLineDash(mix.length > 1 ? [7, 4] : []);
        context.stroke();
        context.setLineDash([]);
        if (!own) continue;
        context.beginPath();
        values.forEach((value, j) => addMark(context, shapeOf(run), sx(j), sy(j, value), 5));
        context.fillStyle = colourOf(run);
        context.strokeStyle = paint.paper;
        context.lineWidth = 2;
        context.stroke();
        context.fill();
      }
    },
    handles: () => names.map((name, j) => ({
      name, low: domains[j][0], high: domains[j][1], from: [sx(j), box.bottom], to: [sx(j), box.top], side: "on",
    })),
    // For a place in the picture: the height of a line on the axis nearest to it.
    place(run, place, x) {
      const j = clamp(Math.round(((x ?? box.left) - box.left) / step), 0, J - 1);
      const value = shownFront(run).columns[names[j]][place];
      return Number.isFinite(value) ? [sx(j), sy(j, value)] : null;
    },
    drag: () => false,
  };
})();
