// Two programs, node by node.
class Compare {
  constructor(app) {
    this.app = app;
    const [a, b] = app.programs;
    this.pairs = pairsOf(a, b);
    const device = (node) => (node ? [node.device ? swatch(app.colors.device(node.device)) : null, shortDevice(node.device)] : "—");
    const deviceText = (node) => (node ? shortDevice(node.device) : "");
    const columns = [
      { title: "Node", text: (p) => p.name, wide: "minmax(190px, 2fr)" },
      { title: "Op", text: (p) => opName(p.a || p.b), wide: "minmax(90px, 1fr)" },
      { title: "Device", text: (p) => deviceText(p.a), cell: (p) => device(p.a), wide: "74px" },
      { title: "→ device", text: (p) => deviceText(p.b), cell: (p) => device(p.b), wide: "74px" },
      { title: "Kind", text: (p) => (p.a ? p.a.how : ""), wide: "66px" },
      { title: "→ kind", text: (p) => (p.b ? p.b.how : ""), wide: "66px" },
    ];
    if (a.traced || b.traced) {
      columns.push(
        { title: "Time", text: (p) => micros(p.times[0]), sort: (p) => p.times[0] || 0, right: true, wide: "76px" },
        { title: "→ time", text: (p) => micros(p.times[1]), sort: (p) => p.times[1] || 0, right: true, wide: "76px" },
        { title: "Change", text: changeOf, sort: (p) => differenceOf(p), right: true, wide: "116px",
          cell: (p) => this.#change(p) });
    }
    columns.push({ title: "Differs in", text: (p) => p.differs.join(", "), wide: "minmax(110px, 1fr)" });
    this.most = Math.max(1e-9, ...this.pairs.map((p) => Math.abs(differenceOf(p))));
    this.table = new Table({
      label: "Differences", columns,
      choose: (p) => app.choose(p.a ? { program: a, node: p.a } : { program: b, node: p.b }),
      isChosen: (p) => Boolean(app.selected && app.selected.node
        && (app.selected.node === p.a || app.selected.node === p.b)),
    });
    this.only = h("input", { type: "checkbox", id: "only", onchange: () => this.refill() });
    this.only.checked = this.pairs.some((p) => p.differs.length);
    this.told = h("span", { class: "faint" });
    this.element = h("section", { class: "pane" },
      h("div", { class: "sides" }, this.#side(a), this.#side(b)),
      h("div", { class: "tools" }, this.only, h("label", { for: "only" }, "only differences"), this.told),
      this.table.element);
    this.refill();
  }

  #side(program) {
    const { running, view } = program;
    const figure = (value, label) => h("div", { class: "figure" }, h("b", {}, value), h("span", { class: "faint" }, label));
    return h("div", { class: "side-card" }, h("h2", {}, program.title),
      h("div", { class: "figures" },
        figure(grouped(running.length), "ops run"),
        program.traced ? figure(micros(program.total), "in ops") : null,
        figure(String(running.filter((n) => n.how === "copy").length), "copies"),
        figure(String(program.nodes.filter((n) => n.how === "fused").length), "ops fused"),
        view.planned_bytes ? figure(size(view.planned_bytes), "planned") : null),
      h("div", { class: "legend" }, tally(running.filter((n) => n.device), (n) => shortDevice(n.device))
        .map(([name, number]) => h("span", {}, swatch(this.app.colors.device(name)), `${name}: ${grouped(number)}`))));
  }

  #change(p) {
    const by = differenceOf(p);
    if (!by) return "";
    return [bar(Math.abs(by) / this.most, by > 0 ? "#e45756" : "#54a24b"),
      h("span", { class: "number" }, changeOf(p))];
  }

  refill() {
    const rows = this.only.checked ? this.pairs.filter((p) => p.differs.length) : this.pairs;
    const many = this.pairs.filter((p) => p.differs.length).length;
    this.told.textContent = many ? `${count(many, "op")} of ${grouped(this.pairs.length)} differ in where or how they run`
      : "every op runs in the same place in the same way";
    this.table.put(rows);
  }

  refresh() {
    this.table.paint();
  }
}

function pairsOf(a, b) {
  const found = new Map();
  for (const node of a.byName.values()) found.set(node.name, { name: node.name, a: node, b: null, differs: [] });
  for (const node of b.byName.values()) {
    const pair = found.get(node.name);
    if (pair) pair.b = node;
    else found.set(node.name, { name: node.name, a: null, b: node, differs: [] });
  }
  for (const pair of found.values()) {
    pair.differs = differences(pair);
    pair.times = [timeBeside(pair.a, pair.b, a), timeBeside(pair.b, pair.a, b)];
  }
  return [...found.values()];
}

// What a node took; where it stands for others beside it, what those took that it stands for.
function timeBeside(node, other, program) {
  if (!node) return null;
  if (!other || !other.members.length || node.members.length) return node.us;
  const parts = other.members.map((member) => program.find(member.name)).filter((n) => n && n.us !== null);
  return parts.length ? parts.reduce((sum, n) => sum + n.us, 0) : null;
}

function differences({ a, b }) {
  if (!a || !b) return [a ? "only in the first" : "only in the second"];
  const found = [];
  if (shortDevice(a.device) !== shortDevice(b.device)) found.push("device");
  if (a.how !== b.how) found.push("kind");
  if ((a.row.kernel || "") !== (b.row.kernel || "")) found.push("kernel");
  if (a.op !== b.op) found.push("op");
  return found;
}

function differenceOf({ times: [a, b] }) {
  return a !== null && b !== null ? b - a : 0;
}

function changeOf(pair) {
  const by = differenceOf(pair);
  if (!by) return "";
  return `${by > 0 ? "+" : "−"}${micros(Math.abs(by))}`;
}
