// Finds nodes by words: of their names first, then of op, device, kind, kernel and reason.
const MOST_FOUND = 60;

class Search {
  constructor(app) {
    this.app = app;
    this.found = [];
    this.at = 0;
    this.input = h("input", {
      type: "search", placeholder: "Search  ( / )", "aria-label": "Search nodes", role: "combobox",
      "aria-expanded": "false", "aria-controls": "found", autocomplete: "off", spellcheck: "false",
      oninput: () => this.look(), onkeydown: (event) => this.#key(event),
      onfocus: () => this.look(),
    });
    this.list = h("ul", { class: "found", id: "found", role: "listbox", hidden: true });
    this.element = h("div", { class: "search" }, this.input, this.list);
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget)) this.#close();
    });
    this.texts = app.programs.flatMap((program) => program.nodes.map((node) => ({
      program, node, name: node.name.toLowerCase(),
      rest: [node.op, shortDevice(node.device), node.how, node.row.kernel, node.row.plugin]
        .join(" ").toLowerCase(),
    })));
  }

  look() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.at = 0;
    this.found = [];
    let more = 0;
    if (words.length) {
      const rest = [];
      for (const entry of this.texts) {
        if (words.every((word) => entry.name.includes(word))) this.found.push(entry);
        else if (words.every((word) => entry.name.includes(word) || entry.rest.includes(word))) rest.push(entry);
      }
      const exact = (entry) => (entry.name === words[0] || entry.name.endsWith(`/${words[0]}`) ? 0 : 1);
      this.found.sort((a, b) => exact(a) - exact(b));
      this.found.push(...rest);
      more = this.found.length - MOST_FOUND;
      this.found.length = Math.min(this.found.length, MOST_FOUND);
    }
    const open = words.length > 0;
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    fill(this.list,
      this.found.map((entry, i) => this.#line(entry, i)),
      open && !this.found.length ? h("li", { class: "faint" }, "nothing is called so") : null,
      more > 0 ? h("li", { class: "faint" }, `${grouped(more)} more`) : null);
    this.#mark();
  }

  #line({ program, node }, i) {
    const side = this.app.programs.length > 1 ? `${program.title} · ` : "";
    return h("li", { role: "option", id: `found-${i}`, tabindex: "-1", onclick: () => this.#take(i) },
      swatch(this.app.colors.node(program, node)), h("span", { class: "found-name" }, node.name),
      h("span", { class: "faint" }, `${side}${opName(node)}${node.how ? ` · ${node.how}` : ""}`));
  }

  #mark() {
    [...this.list.children].forEach((line, i) => line.classList.toggle("cursor", i === this.at));
    const line = this.list.children[this.at];
    if (line && this.found.length) {
      line.scrollIntoView({ block: "nearest" });
      this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
    }
  }

  #key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const by = event.key === "ArrowDown" ? 1 : -1;
      this.at = Math.min(Math.max(this.at + by, 0), this.found.length - 1);
      this.#mark();
    } else if (event.key === "Enter") {
      if (this.found.length) this.#take(this.at);
    } else if (event.key === "Escape") {
      this.#close();
      this.input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #take(i) {
    const { program, node } = this.found[i];
    this.#close();
    this.input.blur();
    this.app.go(program, node);
  }

  #close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}
