// True classes beside predicted ones: a row for each true class, shaded by the share of it.

function confusion(data) {
  const { truth, classes } = data;
  const entries = truth.columns.map((k) => classes[k]);
  const meant = truth.columns.map((k) => truth.stands_for[k]);
  const gap = () => make("td", { class: "gap" });
  // Known classes are set apart from the others by a gap, in both directions.
  const apart = (cells) => [...cells.slice(0, truth.n_known), gap(), ...cells.slice(truth.n_known)];
  const heads = entries.map((entry) =>
    make(
      "th",
      { scope: "col", class: "column", title: entry.name },
      make("span", {}, entry.name, glyph(entry)),
    ),
  );
  const rows = truth.counts.map((counts, r) => {
    const name = truth.names[r];
    const total = counts.reduce((a, b) => a + b, 0);
    const right = meant.indexOf(name);
    const cells = counts.map((value, c) => {
      const share = total ? value / total : 0;
      const shade = `rgba(var(${c === right ? "--heat" : "--miss"}), ${value ? 0.08 + 0.92 * share : 0})`;
      return make(
        "td",
        {
          class: value ? null : "zero",
          title: `${count(value)} of ${count(total)} in ${name} were put into ${entries[c].name}`,
          style: `background-color: ${shade}; ${share > 0.6 ? "color: var(--card)" : ""}`,
        },
        count(value),
      );
    });
    const share = make("td", { class: "recall" }, total && right >= 0 ? percent(counts[right] / total) : "–");
    return make("tr", {}, make("th", { scope: "row", title: name }, name), ...apart(cells), share);
  });
  const many = Math.max(entries.length, rows.length) > 16;
  $("confusion").replaceChildren(
    make(
      "table",
      { class: many ? "many" : null },
      make(
        "caption",
        {},
        "Rows are true classes, columns predicted ones; at the end of a row, the share put right.",
      ),
      make("thead", {}, make("tr", {}, make("td", {}), ...apart(heads), make("td", {}))),
      make("tbody", {}, ...apart(rows).map((row) => (row.matches(".gap") ? make("tr", {}, row) : row))),
    ),
  );
}
