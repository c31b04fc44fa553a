// The scatter itself: where points are, how they are drawn, which one is meant.

class Scatter {
  constructor(canvas, points, classes, pictures) {
    Object.assign(this, { canvas, points, classes, pictures });
    this.context = canvas.getContext("2d");
    this.visible = classes.map(() => true);
    this.focus = null; // the class that is held out, others fade
    this.active = -1; // the point that is pointed at
    this.shade = null; // a value from 0 to 1 for each point, or null: colours of classes
    this.ramp = null;
    this.asPictures = false;
    this.view = { scale: 1, x: 0, y: 0 };
    this.order = shuffled(points.x.length); // else the class that comes last would cover others
    this.centres = classes.map((_, k) => this.middle(k));
    new ResizeObserver(() => this.later()).observe(canvas);
    dark.addEventListener("change", () => {
      this.stamps = this.sheet = null;
      this.later();
    });
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.paint();
    });
  }

  restyle() {
    this.stamps = this.sheet = null;
    this.later();
  }

  middle(k) {
    const rows = [];
    this.points.class.forEach((group, i) => {
      if (group === k) rows.push(i);
    });
    const median = (axis) => rows.map((i) => axis[i]).sort((a, b) => a - b)[rows.length >> 1];
    return rows.length ? [median(this.points.x), median(this.points.y)] : null;
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = devicePixelRatio || 1;
    if (
      this.canvas.width !== Math.round(width * ratio) ||
      this.canvas.height !== Math.round(height * ratio)
    ) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    Object.assign(this, { width, height, ratio });
  }

  // The map fills the canvas, each direction by itself: distances on it mean nothing but near and far.
  screen(x, y) {
    const edge = 26;
    return [
      this.width / 2 + ((x - this.view.x) * this.view.scale * (this.width / 2 - edge)) / this.spread[0],
      this.height / 2 - ((y - this.view.y) * this.view.scale * (this.height / 2 - edge)) / this.spread[1],
    ];
  }

  get spread() {
    this.extent ??= [this.points.x, this.points.y].map((axis) =>
      axis.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9),
    );
    return this.extent;
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.view.scale;
    this.view.scale = Math.min(60, Math.max(1, before * factor));
    const change = 1 / before - 1 / this.view.scale;
    this.view.x += ((x - this.width / 2) / (this.width / 2 - 26)) * this.spread[0] * change;
    this.view.y -= ((y - this.height / 2) / (this.height / 2 - 26)) * this.spread[1] * change;
    this.settle();
  }

  pan(dx, dy) {
    this.view.x -= ((dx / (this.width / 2 - 26)) * this.spread[0]) / this.view.scale;
    this.view.y += ((dy / (this.height / 2 - 26)) * this.spread[1]) / this.view.scale;
    this.settle();
  }

  settle() {
    const room = 1 - 1 / this.view.scale;
    for (const [name, most] of [
      ["x", this.spread[0]],
      ["y", this.spread[1]],
    ]) {
      this.view[name] = Math.min(most * room, Math.max(-most * room, this.view[name]));
    }
    this.canvas.classList.toggle("near", this.view.scale > 1);
    this.later();
  }

  get radius() {
    const n = this.points.x.length;
    const base = n < 400 ? 4.6 : n < 2500 ? 3.4 : n < 8000 ? 2.5 : 1.9;
    return base * Math.min(2, Math.sqrt(this.view.scale)) * (this.width < 480 ? 0.8 : 1);
  }

  shows(i) {
    return this.visible[this.points.class[i]];
  }

  paint() {
    this.fit();
    const { context, ratio } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const radius = this.radius;
    const stamps = this.stampsOf(this.asPictures ? radius * 0.7 : radius);
    const size = (this.width < 480 ? 18 : 24) * Math.min(1.8, this.view.scale ** 0.3);
    const pictured = [];
    const free = room(size * 0.8);
    for (const last of [false, true]) {
      for (const i of this.order) {
        const held = this.focus === null || this.points.class[i] === this.focus;
        if (!this.shows(i) || held !== last) continue;
        const [x, y] = this.screen(this.points.x[i], this.points.y[i]);
        if (x < -20 || y < -20 || x > this.width + 20 || y > this.height + 20) continue;
        context.globalAlpha = held ? (this.asPictures ? 0.22 : 0.92) : 0.1;
        const mark = stamps(i);
        context.drawImage(
          mark,
          Math.round(x * ratio - mark.width / 2),
          Math.round(y * ratio - mark.height / 2),
        );
        if (this.asPictures && held && free(x, y)) pictured.push([i, x, y]);
      }
    }
    context.globalAlpha = 1;
    for (const [i, x, y] of pictured) this.picture(i, x, y, size);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (this.active >= 0) this.ring(radius);
    this.names();
  }

  stampsOf(radius) {
    if (!this.stamps || this.stampRadius !== radius) {
      this.stamps = new Map();
      this.stampRadius = radius;
    }
    const { stamps } = this;
    return (i) => {
      const k = this.points.class[i];
      const shade = this.shade ? Math.round(24 * this.shade[i]) : 0;
      const key = this.shade ? 100 * shade + this.classes[k].novel : -1 - k;
      if (!stamps.has(key)) {
        const colour = this.shade ? this.ramp(shade / 24) : colourOf(this.classes[k]);
        stamps.set(key, stamp(this.classes[k].novel, colour, radius, this.ratio));
      }
      return stamps.get(key);
    };
  }

  picture(i, x, y, size) {
    const { context, ratio, pictures } = this;
    this.sheet ??= pictures.sheet((j) =>
      this.shade ? this.ramp(this.shade[j]) : colourOf(this.classes[this.points.class[j]]),
    );
    const { canvas, corner } = this.sheet;
    context.drawImage(
      canvas,
      ...corner(i),
      pictures.width,
      pictures.height,
      (x - size / 2) * ratio,
      (y - size / 2) * ratio,
      size * ratio,
      size * ratio,
    );
  }

  ring(radius) {
    const [x, y] = this.screen(this.points.x[this.active], this.points.y[this.active]);
    this.context.beginPath();
    this.context.arc(x, y, radius + 5, 0, 2 * Math.PI);
    this.context.lineWidth = 2;
    this.context.strokeStyle = style("--ink");
    this.context.stroke();
  }

  // Names at the middle of their classes, the larger first; one that would cover another is left out.
  names() {
    const { context } = this;
    const taken = [];
    context.font = `600 ${this.width < 480 ? 11 : 12.5}px ${getComputedStyle(document.body).fontFamily}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const bySize = this.classes.map((_, k) => k).sort((a, b) => this.classes[b].size - this.classes[a].size);
    for (const k of bySize) {
      if (!this.visible[k] || !this.centres[k] || (this.focus !== null && this.focus !== k)) continue;
      const name =
        this.classes[k].name.length > 24 ? `${this.classes[k].name.slice(0, 23)}…` : this.classes[k].name;
      let [x, y] = this.screen(...this.centres[k]);
      const half = context.measureText(name).width / 2 + 3;
      if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
      x = Math.min(this.width - half, Math.max(half, x));
      if (taken.some(([left, top, right]) => x - half < right && x + half > left && Math.abs(y - top) < 16))
        continue;
      taken.push([x - half, y, x + half]);
      context.lineWidth = 4;
      context.strokeStyle = style("--card");
      context.strokeText(name, x, y);
      context.fillStyle = style("--ink");
      context.fillText(name, x, y);
    }
  }

  nearest(x, y, reach) {
    let best = -1,
      least = reach * reach;
    for (let i = 0; i < this.points.x.length; i++) {
      if (!this.shows(i)) continue;
      const [px, py] = this.screen(this.points.x[i], this.points.y[i]);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  // The next point from the active one in a direction: near, and not far off to the side.
  towards(dx, dy) {
    if (this.active < 0) return this.nearest(this.width / 2, this.height / 2, Infinity);
    const [x, y] = this.screen(this.points.x[this.active], this.points.y[this.active]);
    let best = this.active,
      least = Infinity;
    for (let i = 0; i < this.points.x.length; i++) {
      if (!this.shows(i) || i === this.active) continue;
      const [px, py] = this.screen(this.points.x[i], this.points.y[i]);
      const along = (px - x) * dx + (py - y) * dy;
      const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (along > 0.5 && along + 3 * aside < least) [best, least] = [i, along + 3 * aside];
    }
    return best;
  }
}
