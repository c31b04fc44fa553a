// Read the payload and fill the page.

const data = JSON.parse($("payload").textContent);
const points = { ...data.points };
for (const name of ["x", "y", "confidence", "novelty"]) points[name] = unpack(points[name], Float32Array);
for (const name of ["class", "given", "truth"])
  if (points[name]) points[name] = unpack(points[name], Int32Array);
if (data.truth && points.truth) {
  points.wrong = Float32Array.from(points.truth, (t, i) =>
    t >= 0 && points.truth_names[t] !== data.truth.stands_for[points.class[i]] ? 1 : 0,
  );
}

function header() {
  const { graph, title, seconds } = data.run;
  const known = data.classes.filter((entry) => !entry.novel),
    novel = data.classes.filter((entry) => entry.novel);
  const given = known.reduce((sum, entry) => sum + entry.given, 0);
  const inNovel = novel.reduce((sum, entry) => sum + entry.size, 0);
  $("eyebrow").textContent = [graph.name, title].filter(Boolean).join(" · ");
  $("headline").append(
    make("span", { class: "known" }, counted(known.length, "known class", "known classes")),
    ", ",
    make("span", { class: "novel" }, `${count(novel.length)} discovered`),
  );
  const bold = (text) => make("b", {}, text);
  $("lede").append(
    "From ",
    bold(counted(given, "label", "labels")),
    ", every one of ",
    bold(counted(points.total, "node", "nodes")),
    " was put into a class: ",
    bold(count(points.total - inNovel)),
    " into known ones, ",
    bold(`${count(inNovel)} (${percent(inNovel / Math.max(1, points.total))})`),
    " into classes that nobody had labelled.",
  );
  const tile = (value, name) =>
    $("tiles").append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  tile(count(graph.nodes ?? points.total), "nodes");
  if (graph.links !== undefined) tile(count(graph.links), "links");
  if (graph.features !== undefined) tile(count(graph.features), "features");
  if (data.truth)
    for (const [kind, name] of [
      ["all", "All"],
      ["seen", "Seen"],
      ["novel", "Novel"],
    ])
      tile(percent(data.truth.accuracy[kind]), `${name}, put right`);
  else if (seconds)
    tile(seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`, "to train");
}

function notes() {
  const shown = points.id.length;
  $("map-note").textContent =
    `${shown < points.total ? `A sample of ${count(shown)} of ${count(points.total)} nodes, every class among them` : `All ${count(shown)} nodes`}, laid out by t-SNE: near means alike, far means little.`;
  $("scores-note").textContent =
    `Of ${points.total === 1 ? "the one node" : `all ${count(points.total)} nodes`}, by how clearly they belong to their class and by how new they look.`;
  if (data.truth) {
    $("truth").hidden = false;
    $("truth-note").textContent =
      `Of ${counted(data.truth.n, "node", "nodes")} whose true class is known and was hidden from training. A known class stands for itself, a discovered one for the true class it fits best.`;
    const kinds = [
      ["all", "All", "test nodes"],
      ["seen", "Seen", "those of known classes"],
      ["novel", "Novel", "those of other classes"],
    ];
    $("accuracy").append(
      ...kinds.map(([kind, name, of]) =>
        make(
          "div",
          {},
          make("dt", {}, name),
          make("dd", {}, percent(data.truth.accuracy[kind])),
          make("dd", { class: "note" }, `of ${of} put right`),
        ),
      ),
      make(
        "p",
        { class: "note" },
        "As in the literature, every predicted class, known ones too, is matched anew to the true class that makes these numbers largest, so they can differ from the matrix.",
      ),
    );
    confusion(data);
    dark.addEventListener("change", () => confusion(data));
  }
}

function training() {
  const { columns, chosen } = data.history;
  const epochs = columns.epoch;
  const take = (...wanted) =>
    wanted
      .filter(([key]) => columns[key]?.some((value) => value !== null))
      .map(([key, name]) => ({ name, values: columns[key] }));
  const panel = (title, note, ...wanted) => {
    const series = take(...wanted);
    if (series.length) curves($("curves"), title, note, epochs, series, chosen);
  };
  $("training-note").textContent =
    `${counted(epochs.length, "epoch", "epochs")}${chosen === null ? "." : `; results are of epoch ${epochs[chosen]}, marked by a dashed line.`}`;
  const losses = Object.keys(columns)
    .filter((name) => name.startsWith("loss"))
    .map((name) => [name, name.replace(/^loss_?/, "") || "loss"]);
  panel(
    "Silhouette and validation",
    "How clearly groups stand apart (−1 to 1), and accuracy on labels held back.",
    ["sc", "silhouette"],
    ["val_acc", "validation accuracy"],
  );
  panel(
    "Accuracy on hidden labels",
    "Share of test nodes put into the right class; never used in training.",
    ["all", "all"],
    ["seen", "seen"],
    ["novel", "novel"],
  );
  panel(
    "Imbalance and separation",
    "Width of known and novel classes: 1 is even. Distance between them, in widths.",
    ["imbalance", "imbalance"],
    ["separation", "separation"],
  );
  panel("Loss", "Mean over the steps of an epoch, term by term.", ...losses);
  const names = Object.keys(columns);
  $("epochs").append(
    make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)))),
    make(
      "tbody",
      {},
      ...epochs.map((_, i) =>
        make(
          "tr",
          { class: i === chosen ? "chosen" : null },
          ...names.map((name) => make("td", {}, brief(columns[name][i]))),
        ),
      ),
    ),
  );
}

const map = new NodeMap(data, points, data.images && new Pictures(data.images, points.id.length));
map.toggles = new Toggles(data, map);
map.toggles.map = map;
const table = new ClassTable(data, map);
header();
notes();
histogram(
  $("histograms"),
  "Confidence",
  "How clearly nodes are in their class, not the chance that it is the right one. Heights grow with the square root, so that a few nodes are seen beside many.",
  data.histograms.confidence,
);
histogram(
  $("histograms"),
  "Novelty",
  "The higher, the less a node looks like the known classes.",
  data.histograms.novelty,
);
training();
$("footer").textContent =
  `Made by openima${data.run.openima ? ` ${data.run.openima}` : ""}. The tables are beside this file: predictions, classes, history, embeddings; config.toml repeats the run.`;

// Where a node is on the screen, for tests and for the console.
window.openima = {
  at(id) {
    map.scatter.fit();
    const box = map.canvas.getBoundingClientRect(),
      row = map.rowOf.get(id);
    const [x, y] = map.scatter.screen(points.x[row], points.y[row]);
    return [box.left + x, box.top + y];
  },
};
