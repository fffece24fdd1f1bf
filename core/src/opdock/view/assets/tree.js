// The nodes by scopes. A box is a node, a scope, a fused node with its members, or, where a scope
// holds too many, a part of it: nodes that run one after the other.
const MOST_CHILDREN = 36;

function makeBox(kind, label, node, path) {
  return {
    kind, label, path: path || "", node: node || null, parent: null, children: [], open: false, depth: 0,
    count: 0, us: 0, level: 0, bytes: 0, first: Infinity, center: 0, shares: null,
    x: 0, y: 0, width: 0, height: 0, layer: 0, routes: null,
  };
}

class Tree {
  constructor(program, withConstants) {
    this.program = program;
    this.leaves = new Map(); // node -> its box
    this.named = new Map(); // path -> its box, of those that can be opened
    this.root = makeBox("scope", "");
    this.root.open = true;
    const shown = program.running.filter((node) => withConstants || !isConstant(node));
    this.constants = program.running.length - shown.length;
    this.#place(shown);
    this.#join(this.root);
    this.#divide(this.root);
    this.#measure(this.root, 0);
  }

  #place(nodes) {
    const scopes = new Map();
    for (const node of nodes) {
      const parts = node.name.split("/");
      for (let i = 1; i < parts.length; i++) scopes.set(parts.slice(0, i).join("/"), null);
    }
    const scope = (path) => {
      if (!path) return this.root;
      let box = scopes.get(path);
      if (!box) {
        const at = path.lastIndexOf("/");
        box = makeBox("scope", path.slice(at + 1), null, path);
        this.named.set(path, box);
        scopes.set(path, box);
        this.#put(box, scope(at < 0 ? "" : path.slice(0, at)));
      }
      return box;
    };
    for (const node of nodes) {
      // A node that has a scope's own name stands in that scope.
      const own = scopes.has(node.name);
      const at = node.name.lastIndexOf("/");
      const parent = scope(own ? node.name : at < 0 ? "" : node.name.slice(0, at));
      const fused = node.members.length > 0;
      const box = makeBox(fused ? "fused" : "node", lastPart(node.name), node, `${node.name}()`);
      if (fused) this.named.set(box.path, box);
      this.#put(box, parent);
      this.leaves.set(node, box);
      for (const member of node.members) {
        if (isConstant(member)) continue;
        const inside = makeBox("member", lastPart(member.name), member);
        this.#put(inside, box);
        this.leaves.set(member, inside);
      }
    }
  }

  #put(box, parent) {
    box.parent = parent;
    parent.children.push(box);
  }

  // Scopes that hold nothing but one scope are one box with both names.
  #join(box) {
    for (let i = 0; i < box.children.length; i++) {
      let child = box.children[i];
      while (child.kind === "scope" && child.children.length === 1
             && child.children[0].kind === "scope") {
        const [only] = child.children;
        only.label = `${child.label}/${only.label}`;
        only.parent = box;
        box.children[i] = child = only;
      }
      this.#join(child);
    }
  }

  #divide(box) {
    for (const child of box.children) this.#divide(child);
    while (box.children.length > MOST_CHILDREN) {
      const each = Math.max(Math.ceil(Math.sqrt(box.children.length)), 8);
      const size_ = Math.min(each, MOST_CHILDREN);
      const parts = [];
      for (let i = 0; i < box.children.length; i += size_) {
        const inside = box.children.slice(i, i + size_);
        const name = (b) => b.label.split(" … ")[0];
        const last = inside[inside.length - 1].label.split(" … ");
        const part = makeBox("part", `${name(inside[0])} … ${last[last.length - 1]}`);
        for (const child of inside) this.#put(child, part);
        part.parent = box;
        parts.push(part);
      }
      box.children = parts;
    }
  }

  // What is in a box: how many nodes, their time and memory, the first of them.
  #measure(box, depth) {
    box.depth = depth;
    for (const child of box.children) this.#measure(child, depth + 1);
    const { node } = box;
    if (node) {
      box.count = 1;
      box.us = node.us || 0;
      box.level = node.level;
      box.bytes = node.bytes;
      box.first = box.center = node.index;
      return;
    }
    box.level = Math.min(...box.children.map((child) => child.level));
    for (const child of box.children) {
      box.count += child.count;
      if (child.level === box.level) box.us += child.us; // a loop's time has that of its body
      box.bytes += child.bytes;
      box.first = Math.min(box.first, child.first);
      box.center += child.center * child.count;
    }
    box.center /= box.count || 1;
  }

  // The box that stands for a node now: its own, or the closed one that holds it.
  visible(box) {
    let found = box;
    for (let up = box.parent; up; up = up.parent) if (!up.open) found = up;
    return found;
  }

  // Opens all that hides a node; returns its box, or that of what took it in.
  reveal(node) {
    const box = this.leaves.get(node) || (node.into && this.leaves.get(node.into));
    for (let up = box && box.parent; up; up = up.parent) up.open = true;
    return box || null;
  }

  // Opens boxes level by level, while there are not too many to see.
  openSome(limit) {
    let shown = this.root.children;
    for (;;) {
      const closed = shown.filter((b) => b.kind === "scope" || b.kind === "part");
      const next = shown.flatMap((b) => (closed.includes(b) ? b.children : [b]));
      if (!closed.length || next.length > limit) return;
      for (const box of closed) box.open = true;
      shown = next;
    }
  }

  // Opens all scopes that one sees closed.
  openLevel() {
    const open = (box) => {
      if (box.open) box.children.forEach(open);
      else if (box.kind === "scope" || box.kind === "part") box.open = true;
    };
    open(this.root);
  }

  closeAll() {
    const close = (box) => {
      box.open = box === this.root;
      box.children.forEach(close);
    };
    close(this.root);
  }

  // How the nodes of a box divide by color, for its stripe.
  shares(box, colors) {
    if (!box.shares || box.shares.by !== colors.by) {
      const found = new Map();
      const walk = (b) => {
        if (b.node) {
          const color = colors.node(this.program, b.node);
          found.set(color, (found.get(color) || 0) + 1);
        } else b.children.forEach(walk);
      };
      walk(box);
      box.shares = { by: colors.by, parts: [...found].sort((a, b) => b[1] - a[1]) };
    }
    return box.shares.parts;
  }
}

function isConstant(node) {
  return node.op === "Const";
}
