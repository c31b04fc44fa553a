// Histograms and curves, drawn as SVG at the width they get.

const LEFT = 44,
  RIGHT = 12,
  TOP = 8,
  BOTTOM = 26;

function chart(parent, title, note, paint) {
  const legend = make("div", { class: "legend" });
  const box = make("div", { class: "chart" });
  const caption = make("figcaption", {}, make("h3", {}, title), make("p", {}, note));
  parent.append(make("figure", {}, caption, legend, box));
  let frame = null;
  const repaint = () => {
    frame ??= requestAnimationFrame(() => {
      frame = null;
      if (box.clientWidth) paint(box, legend);
    });
  };
  new ResizeObserver(repaint).observe(box);
  dark.addEventListener("change", repaint);
}

function frameOf(box, label, [x0, x1], [y0, y1]) {
  const { clientWidth: width, clientHeight: height } = box;
  const svg = draw("svg", { role: "img", "aria-label": label, width, height });
  const x = (value) => LEFT + ((value - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
  const y = (value) => TOP + ((y1 - value) / (y1 - y0)) * (height - TOP - BOTTOM);
  box.replaceChildren(svg);
  return { svg, x, y, width, height };
}

function axes({ svg, x, y, width, height }, xTicks, yTicks, yText) {
  for (const value of yTicks) {
    svg.append(
      draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
      draw("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, yText(value)),
    );
  }
  for (const value of xTicks)
    svg.append(draw("text", { x: x(value), y: height - 8, "text-anchor": "middle" }, brief(value)));
}

const swatch = (colour, dash) =>
  draw(
    "svg",
    { viewBox: "0 0 20 10", "aria-hidden": "true" },
    draw("line", {
      x1: 0,
      x2: 20,
      y1: 5,
      y2: 5,
      stroke: colour,
      "stroke-width": 2.5,
      "stroke-dasharray": dash,
    }),
  );

// Nodes in known classes go up, those in discovered ones down: no colour is needed to tell them apart.
function histogram(parent, title, note, { edges, known, novel }) {
  chart(parent, title, note, (box, legend) => {
    const most = (counts) => Math.sqrt(counts.reduce((a, b) => Math.max(a, b), 0));
    const up = most(known),
      down = most(novel),
      pad = Math.max(up, down, 1) * 0.06;
    const last = edges.length - 1;
    const sum = (counts) => counts.reduce((a, b) => a + b, 0);
    const frame = frameOf(
      box,
      `${title}: ${sum(known)} nodes in known classes, ${sum(novel)} in discovered ones`,
      [edges[0], edges[last]],
      [-down - pad, up + pad],
    );
    const marks = (reach) =>
      [0, 1, 2, 3, 4, 5, 6, 7]
        .flatMap((power) => [10 ** power, 3 * 10 ** power])
        .filter((mark) => mark <= reach ** 2 && mark >= (0.13 * (up + down)) ** 2);
    const yTicks = [...marks(up).map(Math.sqrt), 0, ...marks(down).map((mark) => -Math.sqrt(mark))];
    axes(frame, ticks(edges[0], edges[last], 5), yTicks, (value) => brief(Math.round(value ** 2)));
    for (const [counts, sign, colour, kind] of [
      [known, 1, style("--known"), "known"],
      [novel, -1, style("--novel"), "discovered"],
    ]) {
      counts.forEach((value, i) => {
        const left = frame.x(edges[i]) + 0.5,
          right = frame.x(edges[i + 1]) - 0.5;
        const ends = [frame.y(0), frame.y(sign * Math.sqrt(value))].sort((a, b) => a - b);
        frame.svg.append(
          draw(
            "rect",
            {
              class: kind,
              x: left,
              width: Math.max(0.5, right - left),
              y: ends[0],
              height: ends[1] - ends[0],
              fill: colour,
              "data-count": value,
            },
            draw(
              "title",
              {},
              `${brief(edges[i])} to ${brief(edges[i + 1])}: ${counted(value, "node", "nodes")} in ${kind} classes`,
            ),
          ),
        );
      });
    }
    frame.svg.append(
      draw("line", { class: "axis", x1: LEFT, x2: frame.width - RIGHT, y1: frame.y(0), y2: frame.y(0) }),
    );
    legend.replaceChildren(
      make("span", {}, swatch(style("--known")), "up: in known classes"),
      make("span", {}, swatch(style("--novel")), "down: in discovered classes"),
    );
  });
}

const DASHES = [null, "6 3", "2 3", "9 3 2 3"];
const SERIES = ["--known", "--novel", "--third", "--soft"];

function curves(parent, title, note, epochs, series, chosen) {
  chart(parent, title, note, (box, legend) => {
    const values = series.flatMap(({ values }) => values.filter((value) => value !== null));
    let low = values.reduce((a, b) => Math.min(a, b), Infinity),
      high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
    const pad = (high - low) * 0.06;
    const [first, last] = [epochs[0], epochs[epochs.length - 1]];
    const span = first === last ? [first - 1, last + 1] : [first, last];
    const frame = frameOf(box, `${title} by epoch`, span, [low - pad, high + pad]);
    axes(
      frame,
      ticks(...span, Math.min(8, span[1] - span[0])).filter(Number.isInteger),
      ticks(low - pad, high + pad, 4),
      brief,
    );
    if (chosen !== null)
      frame.svg.append(
        draw("line", {
          class: "at",
          x1: frame.x(epochs[chosen]),
          x2: frame.x(epochs[chosen]),
          y1: TOP,
          y2: frame.height - BOTTOM,
        }),
      );
    series.forEach(({ values: line }, s) => {
      const colour = style(SERIES[s % SERIES.length]);
      let path = "";
      line.forEach((value, i) => {
        if (value !== null)
          path += `${path && line[i - 1] !== null ? "L" : "M"}${frame.x(epochs[i])} ${frame.y(value)}`;
      });
      frame.svg.append(
        draw("path", {
          d: path,
          fill: "none",
          stroke: colour,
          "stroke-width": 2,
          "stroke-linejoin": "round",
          "stroke-dasharray": DASHES[s % DASHES.length],
        }),
      );
      const dots = epochs.length <= 3 ? line.map((_, i) => i) : chosen === null ? [] : [chosen];
      for (const i of dots)
        if (line[i] !== null)
          frame.svg.append(
            draw("circle", { cx: frame.x(epochs[i]), cy: frame.y(line[i]), r: 3.5, fill: colour }),
          );
    });
    const cursor = draw("line", { class: "axis", y1: TOP, y2: frame.height - BOTTOM, visibility: "hidden" });
    frame.svg.append(cursor);
    const tell = (i) =>
      legend.replaceChildren(
        make("span", {}, i === null ? "" : `epoch ${epochs[i]}`),
        ...series.map(({ name, values: line }, s) =>
          make(
            "span",
            {},
            swatch(style(SERIES[s % SERIES.length]), DASHES[s % DASHES.length]),
            name,
            make("b", {}, i === null ? "" : brief(line[i])),
          ),
        ),
      );
    const rest = () => {
      cursor.setAttribute("visibility", "hidden");
      tell(chosen);
    };
    const follow = (event) => {
      const at = event.clientX - box.getBoundingClientRect().left;
      let i = 0;
      epochs.forEach((epoch, j) => {
        if (Math.abs(frame.x(epoch) - at) < Math.abs(frame.x(epochs[i]) - at)) i = j;
      });
      fill(cursor, { x1: frame.x(epochs[i]), x2: frame.x(epochs[i]), visibility: "visible" }, []);
      tell(i);
    };
    frame.svg.addEventListener("pointermove", follow);
    frame.svg.addEventListener("pointerleave", rest);
    rest();
  });
}
