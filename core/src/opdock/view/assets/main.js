// Puts the page together, and tells all parts what is chosen.
class App {
  constructor(programs) {
    this.programs = programs;
    this.colors = new Colors(programs);
    this.selected = null;
    this.palettes = []; // what tells the legends of the tabs that colors changed
    this.tip = new Tip();
    readInk();
    this.panes = [];
    for (const program of programs) this.panes.push(new GraphPane(this, program));
    this.search = new Search(this);
    this.tabs = [["graph", "Graph", () => this.#graph()], ["ops", "Ops", () => new OpsTable(this)],
      ["timeline", "Timeline", () => new Timeline(this)], ["memory", "Memory", () => new Memory(this)]];
    if (programs.length > 1) this.tabs.push(["compare", "Compare", () => new Compare(this)]);
    this.made = new Map();
    this.stage = h("main", { class: "stage" });
    this.side = h("aside", { class: "side", "aria-label": "Details", tabindex: "-1" });
    this.told = h("div", { class: "unseen", "aria-live": "polite" });
    this.bar = h("nav", { class: "tabs", role: "tablist" }, this.tabs.map(([key, label]) =>
      h("button", { role: "tab", id: `tab-${key}`, onclick: () => this.open(key) }, label)));
    fill(document.getElementById("app"),
      h("header", { class: "top" },
        h("div", { class: "brand" }, h("b", {}, "opdock"), h("span", { class: "title" }, programs.map((p) => p.title).join(" | "))),
        this.bar, this.search.element,
        h("button", { class: "icon", id: "theme", title: "Light or dark", "aria-label": "Light or dark",
          onclick: () => this.theme(isDark() ? "light" : "dark") }, "◐")),
      h("div", { class: "body" }, this.stage, this.side), this.told);
    window.addEventListener("keydown", (event) => this.#key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.refresh(true));
    window.addEventListener("hashchange", () => this.#follow());
    listenForPrint(this);
    this.#follow();
    this.#details();
  }

  // ------------------------------------------------------------ tabs
  open(key) {
    this.tab = key;
    if (!this.made.has(key)) this.made.set(key, this.tabs.find((tab) => tab[0] === key)[2]());
    fill(this.stage, this.made.get(key).element);
    for (const button of this.bar.children) {
      const on = button.id === `tab-${key}`;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    this.refresh();
  }

  // "#ops" opens a tab, "#graph&select=dense/MatMul" chooses a node as well.
  #follow() {
    const [key, ...rest] = decodeURIComponent(location.hash.slice(1)).split("&");
    const known = this.tabs.some((tab) => tab[0] === key);
    this.open(known ? key : "graph");
    for (const text of rest) {
      const [what, value] = [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)];
      if (what === "color" && this.colors.ways.some(([by]) => by === value)) this.paintBy(value);
      const program = what === "select" && this.programs.find((p) => p.find(value));
      if (program) this.choose({ program, node: program.find(value) });
    }
  }

  #graph() {
    this.constants = h("input", { type: "checkbox", id: "constants",
      onchange: (event) => this.panes.forEach((pane) => pane.showConstants(event.target.checked)) });
    const tool = (label, title, act) => h("button", { class: "tool", title, onclick: () => this.panes.forEach(act) }, label);
    const element = h("section", { class: "pane" },
      h("div", { class: "tools" },
        this.palette(), h("span", { class: "spring" }),
        h("div", { class: "tool-group" },
          this.constants, h("label", { for: "constants" }, "constants"),
          tool("open more", "Open the scopes one level deeper", (p) => p.openMore()),
          tool("close all", "Close all scopes", (p) => p.closeAll()),
          tool("fit", "See all (f)", (p) => p.whole()))),
      h("div", { class: "graphs" }, this.panes.map((pane) => pane.element)));
    return { element, refresh: () => this.panes.forEach((pane) => pane.sheet.soon()) };
  }

  // What colors stand for, to be chosen in each tab that draws; all choose for all.
  palette() {
    const select = h("select", { "aria-label": "Color by", onchange: (event) => this.paintBy(event.target.value) },
      this.colors.ways.map(([key, label]) => h("option", { value: key }, label)));
    const legend = h("div", { class: "legend" });
    const show = () => {
      select.value = this.colors.by;
      fill(legend, this.colors.legend().map(([label, color]) => h("span", {}, swatch(color), label)));
    };
    this.palettes.push(show);
    show();
    return h("div", { class: "palette" }, h("label", {}, "color by ", select), legend);
  }

  paintBy(by) {
    this.colors.by = by;
    for (const show of this.palettes) show();
    for (const pane of this.panes) pane.arrange();
    this.refresh();
  }

  constantsShown() {
    if (this.constants) this.constants.checked = true;
  }

  // ------------------------------------------------------------ choice
  choose(selected, source = null) {
    this.selected = selected;
    for (const pane of this.panes) {
      if (pane === source) continue;
      const node = selected && selected.node && pane.program.find(selected.node.name);
      if (node) pane.show(pane.program === selected.program ? selected.node : node);
      else pane.forget();
    }
    this.#details();
    this.refresh();
  }

  // To a node from a link: where one looks is up to the tab.
  go(program, node) {
    this.choose({ program, node });
    if (this.tab === "graph") this.panes[program.number].canvas.focus({ preventScroll: true });
  }

  #details() {
    const { selected } = this;
    const shown = selected || { program: this.programs[0] };
    if (!selected) {
      fill(this.side, this.programs.flatMap((p) => h("div", { class: "overview" }, overviewOf(this, p).filter(Boolean))));
    } else {
      const inside = selected.node ? detailsOf(this, shown.program, selected.node)
        : boxDetails(this, shown.program, selected.box);
      fill(this.side, h("button", { class: "icon close", title: "Back to the overview (Esc)",
        "aria-label": "Back to the overview", onclick: () => this.choose(null) }, "✕"), inside);
    }
    this.side.scrollTop = 0;
    this.side.classList.toggle("chosen", Boolean(selected));
    const name = selected && (selected.node ? selected.node.name : selected.box.label);
    this.told.textContent = name ? `${name}${selected.node ? `, ${selected.node.op} on ${shortDevice(selected.node.device)}` : ""}` : "";
  }

  refresh(anew = false) {
    if (anew) readInk();
    // A comparison has figures of its own, and needs the room.
    this.side.hidden = this.tab === "compare" && !this.selected;
    const tab = this.made.get(this.tab);
    if (tab && tab.refresh) tab.refresh();
  }

  theme(name) {
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    this.refresh(true);
  }

  // ------------------------------------------------------------ keys
  #key(event) {
    const typing = event.target.matches("input:not([type=checkbox]), select");
    if (event.key === "Escape" && !typing) this.choose(null);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") this.search.input.focus();
    else if (/^[1-9]$/.test(event.key) && this.tabs[event.key - 1]) this.open(this.tabs[event.key - 1][0]);
    else if (event.target.getAttribute("role") === "tab" && /^Arrow(Left|Right)$/.test(event.key)) {
      const keys = this.tabs.map((tab) => tab[0]);
      const by = event.key === "ArrowRight" ? 1 : keys.length - 1;
      this.open(keys[(keys.indexOf(this.tab) + by) % keys.length]);
      document.getElementById(`tab-${this.tab}`).focus();
    } else return;
    event.preventDefault();
  }
}

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

try {
  const told = JSON.parse(document.getElementById("data").textContent);
  window.opdock = new App(readPrograms(told)); // for tests, and for whoever opens the console
  requestAnimationFrame(() => setTimeout(() => {
    window.opdock.ready = performance.now(); // milliseconds since one asked for the page
  }));
} catch (error) {
  fill(document.getElementById("app"), h("p", { class: "failure" }, `This page cannot be shown: ${error.message}`));
  throw error;
}
