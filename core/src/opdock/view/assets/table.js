// A table of many rows, of which those are made that can be seen.
const ROW_HEIGHT = 28;

class Table {
  // columns: { key, title, text(row), sort(row), cell(row), wide, right }
  constructor({ columns, label, choose, isChosen }) {
    this.columns = columns;
    this.choose = choose;
    this.isChosen = isChosen;
    this.rows = this.shown = [];
    this.sorted = null;
    this.down = false;
    this.cursor = -1;
    this.head = h("div", { class: "tr th", role: "row" }, columns.map((column) =>
      h("button", { class: this.#kind(column), role: "columnheader", onclick: () => this.sort(column) },
        column.title)));
    this.body = h("div", { class: "tbody" });
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "table", "aria-label": label,
      onscroll: () => this.paint(), onkeydown: (event) => this.#key(event) }, this.head, this.body);
    this.element = h("div", { class: "table" }, this.scroller);
    this.element.style.setProperty("--columns", columns.map((c) => c.wide).join(" "));
    new ResizeObserver(() => this.paint()).observe(this.scroller);
  }

  #kind(column) {
    return column.right ? "td right" : "td";
  }

  put(rows) {
    this.rows = rows;
    this.#order();
  }

  sort(column) {
    if (this.sorted === column) this.down = !this.down;
    else {
      this.sorted = column;
      this.down = Boolean(column.right);
    }
    [...this.head.children].forEach((cell, i) => {
      const on = this.columns[i] === column;
      cell.setAttribute("aria-sort", on ? (this.down ? "descending" : "ascending") : "none");
    });
    this.#order();
  }

  #order() {
    this.shown = [...this.rows];
    if (this.sorted) {
      const key = this.sorted.sort || this.sorted.text;
      const sign = this.down ? -1 : 1;
      this.shown.sort((a, b) => {
        const x = key(a), y = key(b);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
    }
    this.cursor = -1;
    this.scroller.scrollTop = 0;
    this.paint();
  }

  paint() {
    const height = this.scroller.clientHeight || 600;
    const first = Math.max(Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - 5, 0);
    const last = Math.min(first + Math.ceil(height / ROW_HEIGHT) + 10, this.shown.length);
    this.body.style.height = `${this.shown.length * ROW_HEIGHT}px`;
    const made = [];
    for (let i = first; i < last; i++) made.push(this.#row(this.shown[i], i));
    fill(this.body, made);
  }

  // Scrolls to a row that cannot be seen.
  reveal(row) {
    const at = this.shown.indexOf(row);
    const { scrollTop, clientHeight } = this.scroller;
    const top = at * ROW_HEIGHT;
    if (at < 0 || (top >= scrollTop && top <= scrollTop + clientHeight - 2 * ROW_HEIGHT)) return;
    this.cursor = at;
    this.scroller.scrollTop = top - clientHeight / 3;
  }

  #row(row, i) {
    const chosen = this.isChosen(row);
    const element = h("div", {
      class: `tr${chosen ? " chosen" : ""}${i === this.cursor ? " cursor" : ""}`, role: "row",
      "aria-selected": chosen ? "true" : "false",
      onclick: () => {
        this.cursor = i;
        this.choose(row);
        this.paint();
      },
    }, this.columns.map((column) => h("span", { class: this.#kind(column), role: "cell",
      title: column.text(row) }, column.cell ? column.cell(row) : column.text(row))));
    element.style.top = `${i * ROW_HEIGHT}px`;
    return element;
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[event.key];
    if (!step || !this.shown.length) return;
    event.preventDefault();
    this.cursor = Math.min(Math.max(this.cursor + step, 0), this.shown.length - 1);
    const top = this.cursor * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    const room = clientHeight - 2 * ROW_HEIGHT;
    if (top > scrollTop + room) this.scroller.scrollTop = top - room;
    this.choose(this.shown[this.cursor]);
    this.paint();
  }
}

const FILTERS = [
  ["all", "all ops", () => true],
  ["elsewhere", "not where asked for", isElsewhere],
  ["rejected", "with kernels turned down", (n) => (n.row.rejections || []).length > 0],
  ["copy", "copies", (n) => n.how === "copy"],
  ["fused", "fused", (n) => n.how === "fused" || n.members.length > 0],
  ["missed", "with fusions not applied", (n) => (n.row.missed || []).length > 0],
  ["removed", "removed", (n) => n.how === "removed"],
];

// The ops of a program.
class OpsTable {
  constructor(app) {
    this.app = app;
    this.program = app.programs[0];
    const { colors } = app;
    this.table = new Table({
      label: "Ops",
      columns: [
        { title: "Node", text: (n) => n.name, wide: "minmax(210px, 2.2fr)" },
        { title: "Op", text: (n) => opName(n), wide: "minmax(90px, 1fr)" },
        { title: "Device", text: (n) => shortDevice(n.device), wide: "84px",
          cell: (n) => [n.device ? swatch(colors.device(n.device)) : null, shortDevice(n.device)] },
        { title: "Kind", text: (n) => n.how, wide: "84px",
          cell: (n) => [n.how ? swatch(colors.how(n.how)) : null, n.how] },
        { title: "Time", text: (n) => micros(n.us), sort: (n) => n.us || 0, right: true, wide: "120px",
          cell: (n) => (n.us === null ? "" : [bar(n.us / (this.program.slowest || 1)), h("span", { class: "number" }, micros(n.us))]) },
        { title: "Memory", text: (n) => (n.bytes ? size(n.bytes) : ""), sort: (n) => n.bytes, right: true, wide: "84px" },
        { title: "Computed by", text: (n) => (n.row.means || []).join("; ") || n.row.kernel || "", wide: "minmax(120px, 1.3fr)" },
        { title: "Why", text: (n) => tidy(n.row.why || ""), wide: "minmax(120px, 1.6fr)" },
      ],
      choose: (node) => app.choose({ program: this.program, node }),
      isChosen: (node) => Boolean(app.selected && app.selected.node === node),
    });
    this.filter = h("select", { "aria-label": "Which ops", onchange: () => this.refill() },
      FILTERS.map(([key, label]) => h("option", { value: key }, label)));
    this.which = programChoice(app, (program) => {
      this.program = program;
      this.refill();
    });
    this.told = h("span", { class: "faint" });
    this.element = h("section", { class: "pane" },
      h("div", { class: "tools" }, this.which, this.filter, this.told), this.table.element);
    this.refill();
  }

  refill() {
    const test = FILTERS.find(([key]) => key === (this.filter.value || "all"))[2];
    const rows = this.program.nodes.filter((node) => test(node));
    this.told.textContent = `${count(rows.length, "op")} of ${grouped(this.program.nodes.length)}`;
    this.table.put(rows);
  }

  refresh() {
    const { selected } = this.app;
    if (selected && selected.node) this.table.reveal(selected.node);
    this.table.paint();
  }
}

// Which of two programs; nothing where there is one.
function programChoice(app, choose) {
  if (app.programs.length < 2) return null;
  return h("select", { "aria-label": "Program", onchange: (event) => choose(app.programs[Number(event.target.value)]) },
    app.programs.map((p) => h("option", { value: String(p.number) }, p.title)));
}
