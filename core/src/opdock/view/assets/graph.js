// The graph on a canvas: moved, scaled, opened, chosen, by pointer and by keys.
const FIRST_OPEN = 40; // boxes that one sees at first, if scopes may be opened for it
const MOST_SCALE = 2.5;

class GraphPane {
  constructor(app, program) {
    this.app = app;
    this.program = program;
    this.colors = app.colors;
    this.constants = false;
    this.scale = 1;
    this.left = this.top = 0;
    this.chosen = null;
    this.near = new Set();
    this.canvas = h("canvas", {
      tabindex: "0", role: "application", class: "graph-canvas",
      "aria-label": `Graph of ${program.title}. Arrow keys go from box to box, Enter opens.`,
    });
    this.element = h("div", { class: "graph-pane" }, this.canvas);
    if (app.programs.length > 1) this.element.append(h("div", { class: "pane-title" }, program.title));
    this.sheet = new Sheet(this.canvas, (context, width, height) => {
      if (!this.fitted) this.fit();
      if (this.awaited) this.center(this.awaited);
      this.paint(context, width, height);
    });
    this.#grow();
    this.#listen();
  }

  // The tree anew, as when constants come or go.
  #grow() {
    this.tree = new Tree(this.program, this.constants);
    this.tree.openSome(FIRST_OPEN);
    const [first] = this.app.panes;
    if (first && first !== this) this.openAs(first);
    else this.arrange();
    this.fitted = false;
  }

  showConstants(on) {
    this.constants = on;
    this.chosen = null;
    this.#grow();
    this.sheet.soon();
  }

  arrange() {
    const context = this.canvas.getContext("2d");
    this.edges = visibleEdges(this.tree, this.program.edges);
    layOut(this.tree, this.edges, (box) => measureBox(context, box, this.program, this.colors));
    this.boxes = [];
    const list = (box) => {
      if (box.parent) this.boxes.push(box);
      if (box.open) box.children.forEach(list);
    };
    list(this.tree.root);
    for (const edge of this.edges) {
      edge.points = edgePath(edge);
      const xs = edge.points.map((p) => p.x), ys = edge.points.map((p) => p.y);
      edge.bounds = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    }
    this.#neighbors();
  }

  #neighbors() {
    this.near = new Set();
    const { chosen } = this;
    if (!chosen) return;
    this.near.add(chosen);
    const touches = (box) => box === chosen || holds(chosen, box);
    for (const edge of this.edges) {
      if (touches(edge.from)) this.near.add(edge.to);
      if (touches(edge.to)) this.near.add(edge.from);
    }
  }

  isChosen(box) {
    return box === this.chosen;
  }

  isFaded(box) {
    return this.chosen !== null && !this.near.has(box) && !holds(this.chosen, box)
      && !holds(box, this.chosen) && !box.open;
  }

  // ------------------------------------------------------------ view
  fit() {
    const { root } = this.tree;
    if (!this.sheet.width) return;
    this.fitted = true;
    const { width, height } = this.sheet;
    this.scale = Math.min(width / root.width, height / root.height, 1.15);
    this.scale = Math.max(this.scale, 0.02);
    // A tall graph begins at its top, large enough to read.
    const legible = Math.min(Math.max(this.scale, 0.7), width / root.width);
    if (root.height * this.scale > height * 0.9 && legible > this.scale) this.scale = legible;
    this.left = (width - root.width * this.scale) / 2;
    this.top = Math.max((height - root.height * this.scale) / 2, 0);
  }

  whole() {
    this.scale = Math.min(this.sheet.width / this.tree.root.width,
      this.sheet.height / this.tree.root.height, 1.15);
    this.left = (this.sheet.width - this.tree.root.width * this.scale) / 2;
    this.top = (this.sheet.height - this.tree.root.height * this.scale) / 2;
    this.sheet.soon();
  }

  zoom(factor, x = this.sheet.width / 2, y = this.sheet.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, 0.01), MOST_SCALE);
    this.left = x - ((x - this.left) * scale) / this.scale;
    this.top = y - ((y - this.top) * scale) / this.scale;
    this.scale = scale;
    this.sheet.soon();
  }

  center(box) {
    this.awaited = this.sheet.width ? null : box; // until there is a sheet to be in the middle of
    if (this.awaited) return;
    this.scale = Math.min(Math.max(this.scale, 0.8), MOST_SCALE);
    this.left = this.sheet.width / 2 - (box.x + box.width / 2) * this.scale;
    this.top = this.sheet.height / 2 - (box.y + Math.min(box.height, 200) / 2) * this.scale;
    this.fitted = true;
    this.sheet.soon();
  }

  paint(context, width, height) {
    const begun = performance.now();
    context.translate(this.left, this.top);
    context.scale(this.scale, this.scale);
    const x0 = -this.left / this.scale, y0 = -this.top / this.scale;
    const seen = { x0, y0, x1: x0 + width / this.scale, y1: y0 + height / this.scale };
    const inside = (box) => box.x <= seen.x1 && box.x + box.width >= seen.x0
      && box.y <= seen.y1 && box.y + box.height >= seen.y0;
    const shown = this.boxes.filter(inside);
    for (const box of shown) if (box.open) drawBox(context, box, this);
    this.#paintEdges(context, seen);
    for (const box of shown) if (!box.open) drawBox(context, box, this);
    this.took = performance.now() - begun;
  }

  #paintEdges(context, seen) {
    const lit = (edge) => this.chosen && (edge.from === this.chosen || edge.to === this.chosen
      || holds(this.chosen, edge.from) || holds(this.chosen, edge.to));
    for (const edge of this.edges) {
      const [x0, y0, x1, y1] = edge.bounds;
      if (x0 > seen.x1 || x1 < seen.x0 || y0 > seen.y1 || y1 < seen.y0) continue;
      const bright = lit(edge);
      context.globalAlpha = bright ? 1 : this.chosen ? 0.25 : 0.75;
      context.strokeStyle = context.fillStyle = bright ? ink.accent : ink.edge;
      context.lineWidth = Math.min(1 + Math.log2(edge.count), 6);
      context.setLineDash(edge.control ? [4, 4] : []);
      context.beginPath();
      traceEdge(context, edge.points);
      context.stroke();
      if (this.scale > 0.3) drawArrow(context, edge.points, this.scale);
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  // ------------------------------------------------------------ choice
  boxAt(x, y) {
    const px = (x - this.left) / this.scale, py = (y - this.top) / this.scale;
    let found = null;
    for (const box of this.boxes) {
      const hit = px >= box.x && px <= box.x + box.width && py >= box.y && py <= box.y + box.height;
      if (hit && (!found || box.depth > found.depth)) found = box;
    }
    return found;
  }

  choose(box) {
    this.chosen = box;
    this.#neighbors();
    this.sheet.soon();
    if (!box) this.app.choose(null);
    else if (box.node) this.app.choose({ program: this.program, node: box.node }, this);
    else this.app.choose({ program: this.program, box }, this);
  }

  // Shows a node that was chosen elsewhere; one that is no box here leaves all as it is.
  show(node, move = true) {
    let changed = false;
    if (isConstant(node) && !this.constants && !node.into) {
      this.constants = true;
      this.tree = new Tree(this.program, true);
      changed = true;
      this.app.constantsShown();
    }
    const hidden = this.boxes.length;
    const box = this.tree.reveal(node);
    if (!box) return;
    if (changed || !this.boxes.includes(box) || hidden !== this.boxes.length) this.arrange();
    this.chosen = box;
    this.#neighbors();
    if (move) this.center(box);
    this.sheet.soon();
  }

  forget() {
    this.chosen = null;
    this.near.clear();
    this.sheet.soon();
  }

  // Opens or closes a box, which stays where it is on the screen.
  toggle(box) {
    if (!isGroup(box) || !box.children.length) return;
    const x = box.x * this.scale + this.left, y = box.y * this.scale + this.top;
    box.open = !box.open;
    this.arrange();
    this.left = x - box.x * this.scale;
    this.top = y - box.y * this.scale;
    this.fitted = true;
    this.sheet.soon();
    for (const pane of this.app.panes) if (pane !== this) pane.follow(box);
  }

  // Opens or closes the box of the same name, as one that was beside it was.
  follow(other) {
    const box = this.tree.named.get(other.path);
    if (!box || box.open === other.open) return;
    box.open = other.open;
    this.arrange();
    this.sheet.soon();
  }

  // Opens what is open beside it, so that the same can be seen of both.
  openAs(other) {
    for (const [path, box] of this.tree.named) {
      const beside = other.tree.named.get(path);
      if (beside) box.open = beside.open;
    }
    this.arrange();
  }

  openMore() {
    const [first] = this.app.panes;
    if (first !== this) this.openAs(first);
    else this.tree.openLevel();
    this.arrange();
    this.fit();
    this.sheet.soon();
  }

  closeAll() {
    this.tree.closeAll();
    this.forget();
    this.arrange();
    this.fit();
  }

  // ------------------------------------------------------------ pointer and keys
  #listen() {
    const { canvas } = this;
    const pointers = new Map();
    let moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, placeIn(canvas, event));
      if (pointers.size === 1) moved = false;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      const at = placeIn(canvas, event);
      if (!before) {
        const box = this.boxAt(at.x, at.y);
        canvas.style.cursor = box ? "pointer" : "grab";
        canvas.title = box ? (box.node ? `${box.node.name} (${box.node.op})` : box.label) : "";
        return;
      }
      if (!moved && Math.hypot(at.x - before.x, at.y - before.y) < 4) return;
      moved = true;
      if (pointers.size === 2) {
        const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
        const apart = (p) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
        this.zoom(apart(at) / apart(before), other.x, other.y);
      } else {
        this.left += at.x - before.x;
        this.top += at.y - before.y;
      }
      pointers.set(event.pointerId, at);
      this.sheet.soon();
    });
    const up = (event) => {
      const at = pointers.get(event.pointerId);
      pointers.delete(event.pointerId);
      if (!at || moved || event.type === "pointercancel") return;
      const box = this.boxAt(at.x, at.y);
      const px = (at.x - this.left) / this.scale, py = (at.y - this.top) / this.scale;
      if (box && isGroup(box)) {
        const sign = signPlace(box);
        const on = px >= sign.x - 3 && px <= sign.x + sign.size + 3
          && py >= sign.y - 3 && py <= sign.y + sign.size + 3;
        if (on) this.toggle(box);
      }
      this.choose(box);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("dblclick", (event) => {
      const at = placeIn(canvas, event);
      const box = this.boxAt(at.x, at.y);
      if (box) this.toggle(box);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const at = placeIn(canvas, event);
      const step = event.deltaMode ? event.deltaY * 16 : event.deltaY;
      this.zoom(Math.exp(-step / 400), at.x, at.y);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const ways = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ways[event.key];
    if (way) this.#go(...way);
    else if ((event.key === "Enter" || event.key === " ") && this.chosen) this.toggle(this.chosen);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "f") this.whole();
    else return;
    event.preventDefault();
  }

  // To the box that is nearest in a direction; along edges where there are any.
  #go(dx, dy) {
    const at = this.chosen;
    if (!at) {
      const [first] = this.boxes.filter((b) => !b.open);
      if (first) this.#step(first);
      return;
    }
    const linked = dy ? this.edges.flatMap((e) =>
      (dy > 0 && e.from === at ? [e.to] : dy < 0 && e.to === at ? [e.from] : [])) : [];
    const middle = (box) => [box.x + box.width / 2, box.y + Math.min(box.height, 42) / 2];
    const [x, y] = middle(at);
    let best = null, least = Infinity;
    for (const box of linked.length ? linked : this.boxes) {
      if (box === at) continue;
      const [bx, by] = middle(box);
      const along = (bx - x) * dx + (by - y) * dy;
      const across = Math.abs((bx - x) * dy) + Math.abs((by - y) * dx);
      const far = Math.abs(along) + 3 * across;
      if ((along > 2 || linked.length) && far < least) [best, least] = [box, far];
    }
    if (best) this.#step(best);
  }

  #step(box) {
    this.choose(box);
    const x = box.x * this.scale + this.left, y = box.y * this.scale + this.top;
    const out = x < 20 || y < 20 || x + box.width * this.scale > this.sheet.width - 20
      || y + 42 * this.scale > this.sheet.height - 20;
    if (out) this.center(box);
  }
}
