// A known class is a disc, a discovered one an outlined diamond: told apart without colour.

function glyph(entry) {
  const colour = colourOf(entry);
  const shape = entry.novel
    ? draw("path", {
        d: "M7 .8 13.2 7 7 13.2.8 7Z",
        fill: colour,
        stroke: style("--ink"),
        "stroke-width": 1.2,
      })
    : draw("circle", { cx: 7, cy: 7, r: 5.2, fill: colour });
  return draw("svg", { class: "glyph", viewBox: "0 0 14 14", "aria-hidden": "true" }, shape);
}

function trace(context, novel, x, y, radius) {
  context.beginPath();
  if (novel) {
    const reach = radius * 1.35;
    context.moveTo(x, y - reach);
    context.lineTo(x + reach, y);
    context.lineTo(x, y + reach);
    context.lineTo(x - reach, y);
    context.closePath();
  } else context.arc(x, y, radius, 0, 2 * Math.PI);
}

// One mark, drawn once and then stamped: twenty thousand points stay quick.
function stamp(novel, colour, radius, ratio) {
  const canvas = document.createElement("canvas");
  const half = Math.ceil((radius * 1.35 + 1.5) * ratio);
  canvas.width = canvas.height = 2 * half;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  trace(context, novel, half / ratio, half / ratio, radius);
  context.fillStyle = colour;
  context.fill();
  context.lineWidth = novel ? Math.min(0.8, radius / 3.5) : Math.min(0.6, radius / 6);
  context.strokeStyle = novel ? style("--ink") : style("--card");
  context.stroke();
  return canvas;
}

class Pictures {
  constructor(packed, nPoints) {
    this.height = packed.height;
    this.width = packed.width;
    this.pixels = unpack(packed.pixels, Uint8Array);
    this.slot = new Int32Array(nPoints).fill(-1);
    unpack(packed.point, Int32Array).forEach((point, slot) => {
      this.slot[point] = slot;
    });
  }

  has(point) {
    return this.slot[point] >= 0;
  }

  get complete() {
    return this.slot.length > 0 && this.slot.every((slot) => slot >= 0);
  }

  // Grey levels as they are, or, with a colour, as ink of that colour on nothing.
  paint(context, point, left, top, colour) {
    const size = this.height * this.width;
    const data = context.createImageData(this.width, this.height);
    const ink = colour && [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    for (let i = 0; i < size; i++) {
      const level = this.pixels[this.slot[point] * size + i];
      data.data.set(ink ? [...ink, level] : [level, level, level, 255], 4 * i);
    }
    context.putImageData(data, left, top);
  }

  canvas(point) {
    const canvas = make("canvas", { width: this.width, height: this.height, "aria-hidden": "true" });
    this.paint(canvas.getContext("2d"), point, 0, 0, null);
    return canvas;
  }

  // All images on one canvas, to be drawn from, and where each is; a gap keeps neighbours out.
  sheet(colours) {
    const across = Math.ceil(Math.sqrt(this.slot.length));
    const corner = (i) => [
      (i % across) * (this.width + 2) + 1,
      Math.floor(i / across) * (this.height + 2) + 1,
    ];
    const canvas = make("canvas", {
      width: across * (this.width + 2),
      height: Math.ceil(this.slot.length / across) * (this.height + 2),
    });
    const context = canvas.getContext("2d");
    for (let i = 0; i < this.slot.length; i++) this.paint(context, i, ...corner(i), colours(i));
    return { canvas, corner };
  }
}
