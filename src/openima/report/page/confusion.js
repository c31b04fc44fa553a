// True classes beside predicted ones: a row for each true class, shaded by the share of it.

function confusion(data) {
  const { truth, classes } = data;
  const entries = truth.columns.map((k) => classes[k]);
  const head = (entry, i) => make("th", { scope: "col", class: i === truth.n_known ? "column gap" : "column", title: entry.name }, make("span", {}, entry.name, glyph(entry)));
  const rows = truth.counts.map((counts, r) => {
    const total = counts.reduce((a, b) => a + b, 0);
    const cells = counts.map((value, c) => {
      const share = total ? value / total : 0;
      const colour = `rgba(var(${entries[c].name === truth.names[r] || data.truth.matched[truth.columns[c]] === truth.names[r] ? "--heat" : "--miss"}), ${value ? 0.08 + 0.92 * share : 0})`;
      const classNames = [value ? "" : "zero", c === truth.n_known ? "gap" : ""].join(" ").trim();
      return make("td", {
        class: classNames || null, title: `${count(value)} of ${count(total)} in ${truth.names[r]} were put into ${entries[c].name}`,
        style: `background-color: ${colour}; ${share > 0.6 ? "color: var(--card)" : ""}`,
      }, count(value));
    });
    const right = truth.columns.findIndex((k) => truth.matched[k] === truth.names[r]);
    const recall = make("td", { class: "recall" }, total ? percent(right < 0 ? 0 : counts[right] / total) : "–");
    return make("tr", { class: r === truth.n_known ? "first" : null }, make("th", { scope: "row", title: truth.names[r] }, truth.names[r]), ...cells, recall);
  });
  const many = Math.max(entries.length, rows.length) > 16;
  $("confusion").replaceChildren(make("table", { class: many ? "many" : null },
    make("caption", {}, "Rows are true classes, columns predicted ones; the last column is the share put right."),
    make("thead", {}, make("tr", {}, make("td", {}), ...entries.map(head), make("td", {}))),
    make("tbody", {}, ...rows)));
}
