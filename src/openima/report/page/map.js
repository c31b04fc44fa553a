// What a reader does with the map: point, pin, find, zoom, colour.

const RAMPS = {
  light: [
    [226, 230, 236],
    [122, 165, 206],
    [16, 52, 105],
  ],
  dark: [
    [52, 58, 68],
    [72, 124, 186],
    [206, 230, 255],
  ],
};

function ramp(share) {
  const stops = RAMPS[dark.matches ? "dark" : "light"];
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const mixed = stops[low].map((value, c) => Math.round(value + (at - low) * (stops[low + 1][c] - value)));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

const verdict = (share) => (share > 0.5 ? style("--novel") : ramp(0.15));

class NodeMap {
  constructor(data, points, pictures) {
    Object.assign(this, { data, points, pictures });
    this.canvas = $("map");
    this.scatter = new Scatter(this.canvas, points, data.classes, pictures);
    this.pinned = false;
    new ResizeObserver(() => this.place()).observe(this.canvas);
    this.rowOf = new Map(points.id.map((id, i) => [id, i]));
    this.colours();
    this.pointer();
    this.keys();
    $("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.find($("find-id").value.trim());
    });
    $("zoom-in").onclick = () => this.moved(() => this.scatter.zoom(1.6));
    $("zoom-out").onclick = () => this.moved(() => this.scatter.zoom(1 / 1.6));
    $("zoom-all").onclick = () => this.moved(() => this.scatter.zoom(1e-9));
    if (pictures?.complete) {
      $("pictures-label").hidden = false;
      $("pictures").checked = this.scatter.asPictures = true;
      $("pictures").onchange = () => {
        this.scatter.asPictures = $("pictures").checked;
        this.scatter.restyle();
      };
    }
  }

  colours() {
    const scaled = (values) => {
      const finite = values.filter(Number.isFinite);
      const low = finite.reduce((a, b) => Math.min(a, b), Infinity),
        high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
      return {
        low,
        high,
        shade: values.map((value) =>
          high > low && Number.isFinite(value) ? (value - low) / (high - low) : 0,
        ),
      };
    };
    const choices = { class: "class", confidence: "confidence", novelty: "novelty" };
    if (this.points.wrong) choices.wrong = "right or wrong";
    for (const [value, name] of Object.entries(choices)) $("colour").append(make("option", { value }, name));
    $("colour").onchange = () => {
      const { value } = $("colour");
      const range = value === "class" || value === "wrong" ? null : scaled(this.points[value]);
      this.scatter.shade = value === "wrong" ? this.points.wrong : range && range.shade;
      this.scatter.ramp = value === "wrong" ? verdict : ramp;
      this.scatter.restyle();
      this.key(range);
    };
    dark.addEventListener("change", () => $("colour").onchange());
    $("colour").onchange();
  }

  key(range) {
    const shape = (novel, name) => make("span", {}, glyph({ novel, colours: ["#8a919b", "#8a919b"] }), name);
    const parts = [shape(false, "known class"), shape(true, "discovered class")];
    if (range) {
      const colours = [0, 0.25, 0.5, 0.75, 1].map(ramp).join(", ");
      parts.push(
        make(
          "span",
          {},
          brief(range.low),
          make("i", { class: "ramp", style: `background: linear-gradient(to right, ${colours})` }),
          brief(range.high),
        ),
      );
    }
    if (this.scatter.shade === this.points.wrong && this.points.wrong) {
      const dot = (share, name) =>
        make("span", {}, glyph({ novel: false, colours: [verdict(share), verdict(share)] }), name);
      parts.push(dot(0, "right, or not known"), dot(1, "wrong"));
    }
    $("key").replaceChildren(...parts);
  }

  pointer() {
    const { canvas, scatter } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let from = null,
      dragged = false;
    canvas.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY];
      dragged = false;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from && event.buttons && scatter.view.scale > 1) {
        const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
        if (!dragged && Math.hypot(dx, dy) < 4) return;
        if (!dragged) canvas.setPointerCapture(event.pointerId);
        dragged = true;
        from = [event.clientX, event.clientY];
        this.moved(() => scatter.pan(dx, dy));
      } else if (!this.pinned && event.pointerType === "mouse") this.point(scatter.nearest(...at(event), 14));
    });
    canvas.addEventListener("pointerup", (event) => {
      from = null;
      if (dragged) return;
      const found = scatter.nearest(...at(event), event.pointerType === "mouse" ? 14 : 24);
      this.pinned = found >= 0;
      this.point(found);
    });
    canvas.addEventListener("pointercancel", () => {
      from = null;
    });
    canvas.addEventListener("pointerleave", () => {
      if (!this.pinned) this.point(-1);
    });
    canvas.addEventListener("dblclick", (event) => this.moved(() => scatter.zoom(2, ...at(event))));
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // plain wheels scroll the page
        event.preventDefault();
        this.moved(() => scatter.zoom(Math.exp(-event.deltaY / 200), ...at(event)));
      },
      { passive: false },
    );
  }

  keys() {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (arrows[event.key]) this.pin(this.scatter.towards(...arrows[event.key]));
      else if (event.key === "Escape") {
        this.pinned = false;
        this.point(-1);
      } else if (event.key === "+" || event.key === "=") this.moved(() => this.scatter.zoom(1.6));
      else if (event.key === "-") this.moved(() => this.scatter.zoom(1 / 1.6));
      else return;
      event.preventDefault();
    });
  }

  moved(change) {
    change();
    this.place();
  }

  pin(i) {
    if (i < 0) return;
    this.pinned = true;
    this.point(i);
  }

  point(i) {
    if (this.scatter.active === i) return;
    this.scatter.active = i;
    this.scatter.later();
    $("tip").hidden = i < 0;
    if (i < 0) return;
    $("tip").replaceChildren(...this.describe(i));
    this.place();
  }

  describe(i) {
    const { points, data } = this;
    const entry = data.classes[points.class[i]];
    const lines = [
      make("div", { class: "who" }, points.id[i]),
      make(
        "div",
        { class: "what" },
        glyph(entry),
        make("span", { class: "class" }, entry.name),
        entry.novel ? "discovered" : "known",
      ),
      make(
        "div",
        { class: "also" },
        "confidence ",
        make("span", { class: "confidence" }, fixed(points.confidence[i])),
      ),
      make(
        "div",
        { class: "also" },
        "novelty ",
        make("span", { class: "novelty" }, fixed(points.novelty[i])),
      ),
    ];
    if (points.given?.[i] >= 0)
      lines.push(make("div", { class: "also" }, `label given: ${points.given_names[points.given[i]]}`));
    if (points.truth?.[i] >= 0)
      lines.push(make("div", { class: "also" }, `true class: ${points.truth_names[points.truth[i]]}`));
    return [this.pictures?.has(i) ? this.pictures.canvas(i) : null, make("div", {}, ...lines)].filter(
      Boolean,
    );
  }

  place() {
    const { scatter } = this,
      tip = $("tip");
    if (scatter.active < 0) return;
    scatter.fit();
    const [x, y] = scatter.screen(this.points.x[scatter.active], this.points.y[scatter.active]);
    const inside = (value, size, room) => Math.max(8, Math.min(room - size - 8, value));
    const left = x + 16 + tip.offsetWidth < scatter.width ? x + 16 : x - 16 - tip.offsetWidth;
    tip.style.left = `${inside(left, tip.offsetWidth, scatter.width)}px`;
    tip.style.top = `${inside(y - tip.offsetHeight / 2, tip.offsetHeight, scatter.height)}px`;
  }

  find(text) {
    if (!text) return;
    const row =
      this.rowOf.get(text) ?? this.points.id.findIndex((id) => id.toLowerCase().includes(text.toLowerCase()));
    $("find-status").textContent = row >= 0 ? "" : "No node shown has this id.";
    if (row >= 0) this.reveal(row);
  }

  // Bring a node to the reader's eyes, though its class may be switched off.
  reveal(row) {
    const k = this.points.class[row];
    if (!this.scatter.visible[k]) this.toggles.set([k], true);
    this.pin(row);
    this.canvas.scrollIntoView({ block: "nearest" });
  }
}
