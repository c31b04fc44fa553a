// The list of classes and their sizes, which switches them on and off.

class Toggles {
  constructor(data, map) {
    this.scatter = map.scatter;
    this.buttons = new Map();
    const largest = data.classes.reduce((most, entry) => Math.max(most, entry.size), 1);
    for (const [novel, title] of [
      [false, "Known classes"],
      [true, "Discovered classes"],
    ]) {
      const rows = data.classes.map((_, k) => k).filter((k) => data.classes[k].novel === novel);
      if (rows.length === 0) continue;
      const all = make(
        "button",
        { type: "button", onclick: () => this.set(rows, !rows.some((k) => this.scatter.visible[k])) },
        "all or none",
      );
      all.setAttribute("aria-label", `${title}: switch all or none`);
      $("toggles").append(
        make(
          "div",
          { class: "group" },
          make("h3", {}, title, all),
          ...rows.map((k) => this.button(data.classes[k], k, largest)),
        ),
      );
    }
    dark.addEventListener("change", () => this.recolour(data.classes));
  }

  button(entry, k, largest) {
    const bar = make("i", {
      style: `width: ${Math.max(1, (100 * entry.size) / largest)}%; background: ${colourOf(entry)}`,
    });
    const hold = (focus) => () => {
      this.scatter.focus = focus;
      this.scatter.later();
    };
    const button = make(
      "button",
      {
        type: "button",
        class: "toggle",
        "aria-pressed": "true",
        title: entry.name,
        onclick: () => this.set([k], !this.scatter.visible[k]),
        onmouseenter: hold(k),
        onmouseleave: hold(null),
        onfocus: (event) => event.target.matches(":focus-visible") && hold(k)(),
        onblur: hold(null),
      },
      glyph(entry),
      make("span", { class: "name" }, entry.name),
      make("span", { class: "size" }, count(entry.size)),
      make("span", { class: "bar" }, bar),
    );
    this.buttons.set(k, button);
    return button;
  }

  set(rows, on) {
    for (const k of rows) {
      this.scatter.visible[k] = on;
      this.buttons.get(k).setAttribute("aria-pressed", String(on));
    }
    if (this.scatter.active >= 0 && !this.scatter.shows(this.scatter.active)) this.map?.point(-1);
    this.scatter.later();
  }

  recolour(classes) {
    for (const [k, button] of this.buttons) {
      button.querySelector(".glyph").replaceWith(glyph(classes[k]));
      button.querySelector("i").style.background = colourOf(classes[k]);
    }
  }
}
