// ---- the front in three dimensions ----
const space = (() => {
  let centre, scale, domains;
  const project = (point) => {
    const [across, up, depth] = turned(point, state.yaw, state.pitch);
    return [centre[0] + across * scale, centre[1] - up * scale, depth];
  };
  const unit = (j, value) => (value - domains[j][0]) / (domains[j][1] - domains[j][0]);
  const spot = (values) => (values.every(Number.isFinite) ? values.map((value, j) => unit(j, value)) : null);
  const at = (run, place) => {
    const point = spot(names.map((name) => shownFront(run).columns[name][place]));
    if (!point) return null;
    const [x, y, depth] = project(point);
    return [x, y, 1 + 0.35 * depth];
  };
  const blended = (run, mix) => spot(names.map((name) => blend(shownFront(run).columns[name], mix)));
  const mixed = (run, mix) => {
    const point = blended(run, mix);
    return point && project(point);
  };
  const edge = (context, a, b, colour, dash) => line(context, ...project(a).slice(0, 2), ...project(b).slice(0, 2), colour, dash);
  const axis = (j, share) => [0, 1, 2].map((k) => (k === j ? share : 0));
  const stem = (context, point, colour, dash) => edge(context, point, [point[0], point[1], 0], colour, dash);
  return {
    height: (width) => clamp(width * 0.72, 330, 540),
    base(context, width, height) {
      scale = Math.min(width * 0.56, height * 0.62);
      centre = [width / 2, height / 2 + 6];
      domains = names.map(domainFor);
      // the floor, and the axes that rise from the best corner
      for (let j = 0; j < 2; j += 1) {
        for (const [value] of ticksFor(names[j], domains[j], 4)) {
          const share = unit(j, value);
          edge(context, j ? [0, share, 0] : [share, 0, 0], j ? [1, share, 0] : [share, 1, 0], paint.grid);
        }
      }
      for (const [a, b] of [[[1, 0, 0], [1, 1, 0]], [[0, 1, 0], [1, 1, 0]], [[1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 1, 1]], [[1, 0, 0], [1, 0, 1]], [[0, 0, 1], [1, 0, 1]], [[0, 0, 1], [0, 1, 1]], [[1, 0, 1], [1, 1, 1]], [[0, 1, 1], [1, 1, 1]]]) edge(context, a, b, paint.grid);
      for (let j = 0; j < 3; j += 1) {
        edge(context, axis(j, 0), axis(j, 1), paint.muted);
        const [ox, oy] = project([0.5, 0.5, 0.5]);
        for (const [value, text] of ticksFor(names[j], domains[j], 4)) {
          const [x, y] = project(axis(j, unit(j, value)));
          const away = Math.hypot(x - ox, y - oy) || 1;
          write(context, text, x + (20 * (x - ox)) / away, y + (20 * (y - oy)) / away + 4, { align: "center", size: 11 });
        }
        const bound = boundOf(names[j]);
        if (bound !== undefined) {
          const share = clamp(unit(j, bound), 0, 1);
          const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([a, b]) => project(j === 0 ? [share, a, b] : j === 1 ? [a, share, b] : [a, b, share]));
          context.beginPath();
          corners.forEach(([a, b]) => context.lineTo(a, b));
          context.closePath();
          context.globalAlpha = 0.12;
          context.fillStyle = paint.muted;
          context.fill();
          context.globalAlpha = 0.6;
          context.strokeStyle = paint.ink;
          context.lineWidth = 1;
          context.stroke();
          context.globalAlpha = 1;
        }
      }
      if (shownFront(active()).count <= 80) {
        for (let place = 0; place < shownFront(active()).count; place += 1) {
          const point = spot(names.map((name) => shownFront(active()).columns[name][place]));
          if (point) stem(context, point, paint.grid);
        }
      }
      drawPoints(context, at);
      for (let j = 0; j < 3; j += 1) {
        const [x, y] = project(axis(j, 1.16));
        const half = Math.min(90, width / 3);
        write(context, labelOf(names[j]), clamp(x, half, width - half), clamp(y, 14, height - 8) + 4, { align: "center", colour: paint.ink, size: 13, room: 2 * half });
      }
    },
    over(context) {
      const own = blended(active(), mixOf(active(), state.split));
      if (own) {
        stem(context, own, paint.ink, [1, 4]);
        edge(context, [own[0], own[1], 0], [own[0], 0, 0], paint.ink, [1, 4]);
        edge(context, [own[0], own[1], 0], [0, own[1], 0], paint.ink, [1, 4]);
      }
      drawChosen(context, mixed);
    },
    handles: () => names.map((name, j) => ({
      name, low: domains[j][0], high: domains[j][1], from: project(axis(j, 0)), to: project(axis(j, 1)), side: "on",
    })),
    place: at,
    // A drag turns the picture; a click takes a point.
    drag: () => false,
    turn(across, up) {
      state.yaw += across;
      state.pitch = clamp(state.pitch + up, -1.5, 1.5);
      changed("turn");
    },
  };
})();
