// The table of classes: sorted by its headings; its nodes are found on the map.

const COLUMNS = [
  ["name", "class", "Its name as you gave it; discovered classes are numbered by size."],
  ["novel", "status", "Known: you gave labels of it. Discovered: found among nodes without a label."],
  ["size", "size", "How many nodes were put into it."],
  ["given", "labels", "How many nodes you labelled with it."],
  [
    "cohesion",
    "cohesion",
    "How alike its nodes are: the mean cosine of their embeddings to the centre, 1 if all are the same.",
  ],
  [
    "separation",
    "separation",
    "Distance to the class that is least apart, over the sum of both widths; above 1 they lie apart.",
  ],
  ["nearest", "nearest known", "Of a discovered class, the known class that lies nearest."],
  [
    "features",
    "top features",
    "What sets its nodes off: features with a larger mean than in all others, in standard deviations.",
  ],
  ["exemplars", "most typical", "The nodes nearest its centre."],
  ["borderline", "borderline", "Nodes that lie almost as near to another class."],
];
const NUMBERS = new Set(["size", "given", "cohesion", "separation"]);
const LISTS = new Set(["features", "exemplars", "borderline"]);
const FEW = 10;

class ClassTable {
  constructor(data, map) {
    Object.assign(this, { data, map });
    this.sorted = { column: null, up: true };
    this.columns = COLUMNS.filter(
      ([key]) => !LISTS.has(key) || data.classes.some((entry) => entry[key].length),
    );
    this.heads = new Map(this.columns.map(([key, name]) => [key, this.head(key, name)]));
    this.rows = data.classes.map((entry) => [entry, this.row(entry)]);
    this.body = make("tbody", { role: "rowgroup" }, ...this.rows.map(([, row]) => row));
    $("classes").append(
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...this.heads.values())),
      this.body,
    );
    for (const [, name, meaning] of this.columns)
      $("meanings").append(make("dt", {}, name), make("dd", {}, meaning));
    dark.addEventListener("change", () => {
      for (const [entry, row] of this.rows) row.querySelector(".glyph").replaceWith(glyph(entry));
    });
  }

  head(key, name) {
    const cell = make("th", {
      role: "columnheader",
      scope: "col",
      class: NUMBERS.has(key) ? "number" : null,
      "aria-sort": LISTS.has(key) ? null : "none",
    });
    if (LISTS.has(key)) cell.append(make("div", { style: "padding: 6px 8px" }, name));
    else cell.append(make("button", { type: "button", onclick: () => this.sort(key) }, name));
    return cell;
  }

  // Numbers start with the largest, names with the first; what is not there comes last.
  sort(key) {
    const up = this.sorted.column === key ? !this.sorted.up : !NUMBERS.has(key);
    this.sorted = { column: key, up };
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    this.rows.sort(([a], [b]) => {
      if (a[key] === null || b[key] === null) return (a[key] === null) - (b[key] === null);
      return (up ? 1 : -1) * compare(a[key], b[key]);
    });
    for (const [name, cell] of this.heads)
      if (!LISTS.has(name))
        cell.setAttribute("aria-sort", name !== key ? "none" : up ? "ascending" : "descending");
    this.body.append(...this.rows.map(([, row]) => row));
  }

  row(entry) {
    return make(
      "tr",
      { role: "row", class: entry.novel ? "novel" : "known" },
      ...this.columns.map(([key, name]) => this.cell(entry, key, name)),
    );
  }

  cell(entry, key, name) {
    if (key === "name")
      return make(
        "th",
        { role: "rowheader", scope: "row" },
        make("span", {}, glyph(entry), make("span", {}, entry.name)),
      );
    const attributes = { role: "cell", "data-label": name, "data-key": key };
    if (key === "novel") {
      const [kind, word] = entry.novel ? ["novel", "discovered"] : ["known", "known"];
      return make("td", { ...attributes, class: "status" }, make("span", { class: `badge ${kind}` }, word));
    }
    if (NUMBERS.has(key))
      return make(
        "td",
        { ...attributes, class: "number" },
        key === "size" || key === "given" ? count(entry[key]) : fixed(entry[key]),
      );
    if (key === "nearest")
      return make(
        "td",
        { ...attributes, class: entry.nearest === null ? "empty" : null },
        entry.nearest ?? "",
      );
    const chips = entry[key]
      .slice(0, FEW)
      .map((text) =>
        key === "features" ? make("span", { class: "chip", title: text }, text) : this.node(text),
      );
    if (entry[key].length > FEW)
      chips.push(make("span", { class: "chip more" }, `+ ${entry[key].length - FEW}`));
    return make(
      "td",
      { ...attributes, class: chips.length ? "list" : "list empty" },
      make("div", { class: "chips" }, ...chips),
    );
  }

  node(id) {
    const row = this.map.rowOf.get(id);
    if (row === undefined) return make("span", { class: "chip" }, id);
    const show = { type: "button", title: id, onclick: () => this.map.reveal(row) };
    if (!this.map.pictures?.has(row)) return make("button", { ...show, class: "chip" }, id);
    return make("button", { ...show, class: "picture", "aria-label": id }, this.map.pictures.canvas(row));
  }
}
