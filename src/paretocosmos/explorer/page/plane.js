// ---- the front in two dimensions ----
const plane = (() => {
  let box, dx, dy;
  // Right answers are drawn as wrong ones, so that the best is at the lower left for them, too.
  const mirrored = (name) => isLarger(name) && /^right answers\b/.test(labelOf(name));
  const share = (name, value, [low, high]) => { const along = (value - low) / (high - low); return mirrored(name) ? 1 - along : along; };
  const sx = (value) => box.left + share(state.x, value, dx) * (box.right - box.left);
  const sy = (value) => box.bottom - share(state.y, value, dy) * (box.bottom - box.top);
  const ticks = (name, domain, count) => {
    if (!mirrored(name)) return ticksFor(name, domain, count);
    return ticksFor(name, [1 - domain[1], 1 - domain[0]], count).map(([value, text]) => [1 - value, text]);
  };
  const labelled = (name) => (mirrored(name) ? labelOf(name).replace("right", "wrong") : labelOf(name));
  const at = (run, place) => {
    const { columns } = shownFront(run);
    const [x, y] = [columns[state.x][place], columns[state.y][place]];
    return Number.isFinite(x) && Number.isFinite(y) ? [sx(x), sy(y)] : null;
  };
  const mixed = (run, mix) => {
    const { columns } = shownFront(run);
    const [x, y] = [blend(columns[state.x], mix), blend(columns[state.y], mix)];
    return Number.isFinite(x) && Number.isFinite(y) ? [sx(x), sy(y)] : null;
  };
  const better = (name) => (isLarger(name) && !mirrored(name) ? "larger is better" : names.includes(name) || traded.includes(name) ? "smaller is better" : "");
  const inside = ([x, y]) => x >= box.left - 1 && x <= box.right + 1 && y >= box.top - 1 && y <= box.bottom + 1;
  // What a bound forbids is shaded.
  const forbid = (context, name, across) => {
    const bound = boundOf(name);
    if (bound === undefined) return;
    const [low, high] = across ? dx : dy;
    const edge = clamp(bound, low, high);
    const beyond = isLarger(name) ? low : high;
    context.fillStyle = paint.muted;
    context.globalAlpha = 0.13;
    if (across) context.fillRect(Math.min(sx(edge), sx(beyond)), box.top, Math.abs(sx(beyond) - sx(edge)), box.bottom - box.top);
    else context.fillRect(box.left, Math.min(sy(edge), sy(beyond)), box.right - box.left, Math.abs(sy(beyond) - sy(edge)));
    context.globalAlpha = 1;
    if (across) line(context, sx(edge), box.top, sx(edge), box.bottom, paint.ink);
    else line(context, box.left, sy(edge), box.right, sy(edge), paint.ink);
  };
  // How far points may be off, since only so many cases were counted: ellipses along the curve, filled as one.
  const THINNEST = 2;
  const hasBand = (run) => J === 2 && !run.networks && run.answers && [state.x, state.y].some((name) => endsOf(run, state.split, name));
  const drawBand = (context, run) => {
    const { counted } = run.answers;
    const sides = [[state.x, sx], [state.y, sy]].map(([name, scale]) => [name, scale, endsOf(run, state.split, name)]);
    const along = counted.order.map((k) => {
      const mix = mixture(shownFront(run), [counted.rays[2 * k], counted.rays[2 * k + 1]], false);
      return sides.flatMap(([name, scale, ends]) => {
        const [low, high] = ends ? ends(k).map(scale) : Array(2).fill(scale(blend(shownFront(run).columns[name], mix)));
        return [(low + high) / 2, Math.max(Math.abs(high - low) / 2, THINNEST)];
      });
    }).filter((one) => one.every(Number.isFinite));
    const steps = along.length > 40 ? 1 : 8;
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    context.clip();
    context.beginPath();
    along.forEach((here, at) => {
      const next = along[Math.min(at + 1, along.length - 1)];
      for (let step = 0; step < steps; step += 1) {
        const [x, across, y, up] = here.map((one, i) => one + (step / steps) * (next[i] - one));
        context.moveTo(x + across, y);
        context.ellipse(x, y, across, up, 0, 0, 2 * Math.PI);
      }
    });
    context.fillStyle = colourOf(run);
    context.globalAlpha = 0.12;
    context.fill();
    context.restore();
  };
  // One answer for everybody is a line, whatever its gap: what lies beyond it is worth nothing.
  const drawConstant = (context, name, across) => {
    const value = constantAt(name, state.split);
    const [low, high] = across ? dx : dy;
    if (!(value > low && value < high)) return;
    const ends = across ? [sx(value), box.top, sx(value), box.bottom] : [box.left, sy(value), box.right, sy(value)];
    line(context, ...ends, paint.ink, [6, 4]);
    const rightOf = across && sx(value) < (box.left + box.right) / 2;
    write(context, "one answer for everybody", across ? sx(value) + (rightOf ? 6 : -6) : box.right - 4, across ? box.top + 12 : sy(value) - 6, { align: rightOf ? "left" : "right" });
  };
  // The choice with its intervals, and the points within them, as one.
  const drawNoise = (context, run) => {
    if (!run.answers || run.networks) return;
    const sides = [[state.x, sx], [state.y, sy]].map(([name, scale]) => [name, scale, endsAt(run, drawnRay(), state.split, name)]);
    if (!sides.some(([, , ends]) => ends)) return;
    const [[x, across], [y, up]] = sides.map(([name, scale, ends]) => {
      const [low, high] = (ends ?? Array(2).fill(valueAt(run, drawnRay(), state.split, name))).map(scale);
      return [(low + high) / 2, Math.max(Math.abs(high - low) / 2, THINNEST)];
    });
    if (![x, y, across, up].every(Number.isFinite)) return;
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    context.clip();
    context.beginPath();
    context.ellipse(x, y, across, up, 0, 0, 2 * Math.PI);
    context.strokeStyle = colourOf(run);
    context.lineWidth = 1;
    context.stroke();
    context.beginPath();
    for (let place = 0; place < shownFront(run).count; place += 1) {
      const where = at(run, place);
      if (where && ((where[0] - x) / across) ** 2 + ((where[1] - y) / up) ** 2 <= 1) addMark(context, shapeOf(run), ...where, 2.2);
    }
    context.fillStyle = paint.paper;
    context.fill();
    context.restore();
  };
  // The colours of the third objective, with its ends.
  const drawScale = (context, width) => {
    const name = thirdName();
    const ends = thirdEnds().map((value) => bare(name, value));
    const from = width - 14 - 14 * STEPS - context.measureText(ends[1]).width - 6;
    write(context, `${labelOf(name)} ${ends[0]}`, from - 6, 14, { align: "right" });
    write(context, ends[1], width - 14, 14, { align: "right" });
    for (let step = 0; step < STEPS; step += 1) {
      context.fillStyle = colourAt(step);
      context.fillRect(from + 14 * step, 4, 14, 12);
    }
  };
  // What lies beyond the axes is an arrow at the border.
  const drawOutside = (context) => {
    for (const run of inOrder()) {
      context.fillStyle = colourOf(run);
      for (let place = 0; place < shownFront(run).count; place += 1) {
        const where = at(run, place);
        if (!where || inside(where)) continue;
        const [x, y] = [clamp(where[0], box.left + 5, box.right - 5), clamp(where[1], box.top + 5, box.bottom - 5)];
        const angle = Math.atan2(where[1] - y, where[0] - x);
        context.beginPath();
        for (const turn of [0, 2.4, -2.4]) context.lineTo(x + 6 * Math.cos(angle + turn), y + 6 * Math.sin(angle + turn));
        context.fill();
      }
    }
  };
  return {
    height: (width) => clamp(width * 0.62, 300, 470),
    base(context, width, height) {
      [dx, dy] = windowOf(state.x, state.y);
      context.font = `12px ${paint.sans}`;
      const widest = Math.max(...ticks(state.y, dy, 5).map(([, text]) => context.measureText(text).width));
      box = { left: Math.max(58, widest + 26), right: width - 14, top: 34, bottom: height - 58 };
      for (const [value, text] of ticks(state.x, dx, width < 480 ? 3 : 6)) {
        line(context, sx(value), box.top, sx(value), box.bottom, paint.grid);
        write(context, text, sx(value), box.bottom + 30, { align: "center" });
      }
      for (const [value, text] of ticks(state.y, dy, 5)) {
        line(context, box.left, sy(value), box.right, sy(value), paint.grid);
        write(context, text, box.left - 22, sy(value) + 4, { align: "right" });
      }
      forbid(context, state.x, true);
      forbid(context, state.y, false);
      line(context, box.left, box.bottom + 0.5, box.right, box.bottom + 0.5, paint.muted);
      line(context, box.left - 0.5, box.top, box.left - 0.5, box.bottom, paint.muted);
      const title = (name) => [capital(labelled(name)) + (unitOf(name) ? ` (${unitOf(name)})` : ""), better(name)].filter(Boolean).join(", ");
      write(context, title(state.y), 0, 14, { colour: paint.ink, size: 13, room: thirdName() ? width / 2 : width });
      if (thirdName()) drawScale(context, width);
      write(context, title(state.x), box.right, height - 6, { align: "right", colour: paint.ink, size: 13, room: width });
      context.save();
      context.beginPath();
      context.rect(box.left - 6, box.top - 8, box.right - box.left + 14, box.bottom - box.top + 14);
      context.clip();
      if (hasBand(active())) drawBand(context, active());
      if (J === 2) {
        for (const run of visible().filter((one) => !one.networks)) {
          context.beginPath();
          for (const place of shownFront(run).order) {
            const where = at(run, place);
            if (where) context.lineTo(...where);
          }
          context.strokeStyle = colourOf(run);
          context.globalAlpha = 0.35;
          context.lineWidth = 1; // a wider one takes ten times as long to draw
          context.stroke();
          context.globalAlpha = 1;
        }
      }
      drawConstant(context, state.x, true);
      if (state.y !== state.x) drawConstant(context, state.y, false);
      drawPoints(context, (run, place) => { const where = at(run, place); return where && inside(where) ? where : null; });
      context.restore();
      drawOutside(context);
    },
    over(context) {
      drawNoise(context, active());
      const own = mixed(active(), mixOf(active(), state.split, drawnRay()));
      if (own && inside(own)) {
        line(context, own[0], own[1], own[0], box.bottom, paint.ink, [1, 4]);
        line(context, box.left, own[1], own[0], own[1], paint.ink, [1, 4]);
      }
      drawChosen(context, (run, mix) => { const where = mixed(run, mix); return where && inside(where) ? where : null; });
    },
    band: () => hasBand(active()),
    labelled,
    shows: (name, value) => { const [low, high] = name === state.x ? dx : dy; return value > low && value < high; },
    // How many points of which runs lie beyond the axes.
    outside: () => visible().map((run) => [run, Array.from({ length: shownFront(run).count }, (_, place) => at(run, place)).filter((where) => where && !inside(where)).length]).filter(([, count]) => count),
    centre: () => { const mix = mixOf(active(), state.split); return [state.x, state.y].map((name) => blend(shownFront(active()).columns[name], mix)); },
    handles: () => [
      { name: state.x, low: dx[0], high: dx[1], from: [sx(dx[0]), box.bottom], to: [sx(dx[1]), box.bottom], side: "below" },
      ...(state.y === state.x ? [] : [{ name: state.y, low: dy[0], high: dy[1], from: [box.left, sy(dy[0])], to: [box.left, sy(dy[1])], side: "left" }]),
    ],
    place: at,
    // Along the line between evaluated rays, where there is one.
    drag(x, y) {
      const front = shownFront(active());
      if (J !== 2 || active().networks || front.count < 2) return false;
      const along = front.order.filter((place) => at(active(), place));
      if (!along.length) return false;
      const [segment, share] = nearestOnLine(along.map((place) => at(active(), place)), x, y);
      const [a, b] = [front.ray(along[segment]), front.ray(along[Math.min(segment + 1, along.length - 1)])];
      setRay(a.map((one, j) => (1 - share) * one + share * b[j]));
      return true;
    },
  };
})();
