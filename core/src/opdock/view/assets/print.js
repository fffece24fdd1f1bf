// What goes on paper: the figures, the graph as it is on the screen, and a table of ops.
const MOST_PRINTED = 400;

function reportOf(app) {
  return h("div", { class: "report" }, app.programs.map((program) => {
    const pane = app.panes.find((p) => p.program === program);
    const rows = [...program.nodes].filter((n) => !isConstant(n) && n.how !== "removed");
    if (program.traced) rows.sort((a, b) => (b.us || 0) - (a.us || 0));
    const left = rows.length - MOST_PRINTED;
    return h("article", {},
      h("h1", {}, program.title),
      h("div", { class: "legend" }, app.colors.legend().map(([label, color]) => h("span", {}, swatch(color), label))),
      pictureOf(pane),
      h("div", { class: "columns" }, overviewOf(app, program).slice(2)),
      h("table", {}, h("thead", {}, h("tr", {}, ["Node", "Op", "Device", "Kind", "Time", "Why"].map((t) => h("th", {}, t)))),
        h("tbody", {}, rows.slice(0, MOST_PRINTED).map((n) => h("tr", {},
          [n.name, opName(n), shortDevice(n.device), n.how, micros(n.us), tidy(n.row.why || "")].map((t) => h("td", {}, t)))))),
      left > 0 ? h("p", {}, `${count(left, "further op")} not printed`) : null);
  }));
}

// The whole graph of a pane as a picture, in the colors of paper.
function pictureOf(pane) {
  const { root } = pane.tree;
  const scale = Math.min(1400 / root.width, 1600 / root.height, 2);
  const canvas = h("canvas", { width: Math.ceil(root.width * scale), height: Math.ceil(root.height * scale) });
  const kept = [pane.scale, pane.left, pane.top];
  [pane.scale, pane.left, pane.top] = [scale, 0, 0];
  document.documentElement.dataset.theme = "light";
  readInk();
  pane.paint(canvas.getContext("2d"), canvas.width, canvas.height);
  [pane.scale, pane.left, pane.top] = kept;
  return h("img", { src: canvas.toDataURL(), alt: `graph of ${pane.program.title}` });
}

function listenForPrint(app) {
  let report = null, theme = null;
  window.addEventListener("beforeprint", () => {
    theme = document.documentElement.dataset.theme;
    report = reportOf(app);
    document.body.append(report);
  });
  window.addEventListener("afterprint", () => {
    if (!report) return;
    report.remove();
    report = null;
    app.theme(theme);
  });
}
