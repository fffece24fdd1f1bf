// Where boxes stand: within each open box its children in layers, what makes above what takes.
const GAP_X = 18;
const GAP_Y = 34;
const PADDING = 14;
const HEADER = 26;
const WIDEST = 9; // boxes beside each other, before a layer goes on below
const SWEEPS = 4;

// Edges as they are seen now: from one visible box to another, with how many they stand for.
function visibleEdges(tree, edges) {
  const seen = new Map();
  const places = new Map();
  const place = (node) => {
    let box = places.get(node);
    if (box === undefined) {
      const own = tree.leaves.get(node);
      box = own ? tree.visible(own) : null;
      places.set(node, box);
    }
    return box;
  };
  for (const edge of edges) {
    const from = place(edge.from), to = place(edge.to);
    if (!from || !to || from === to || holds(from, to) || holds(to, from)) continue;
    if (!edge.to.into && to.open && to.kind === "fused") continue; // its members have their own
    let targets = seen.get(from);
    if (!targets) seen.set(from, (targets = new Map()));
    const known = targets.get(to);
    if (known) {
      known.count += 1;
      known.control &&= edge.control;
    } else targets.set(to, { from, to, count: 1, control: edge.control, points: null });
  }
  return [...seen.values()].flatMap((targets) => [...targets.values()]);
}

function holds(outer, inner) {
  let box = inner;
  while (box && box.depth > outer.depth) box = box.parent;
  return box === outer && inner !== outer;
}

// For an edge the box that holds both ends, and the two children of it that do.
function meeting(edge) {
  let a = edge.from, b = edge.to;
  while (a.depth > b.depth) a = a.parent;
  while (b.depth > a.depth) b = b.parent;
  while (a.parent !== b.parent) {
    a = a.parent;
    b = b.parent;
  }
  return { box: a.parent, a, b };
}

function layOut(tree, edges, measure) {
  const within = new Map();
  for (const edge of edges) {
    const { box, a, b } = meeting(edge);
    edge.meets = box;
    edge.pair = [a, b];
    if (!within.has(box)) within.set(box, []);
    within.get(box).push(edge);
  }
  const order = (box) => {
    if (!box.open || !box.children.length) return;
    box.ports = new Map();
    box.order = greedyOrder(box.children, within.get(box) || []);
    box.children.forEach(order);
  };
  order(tree.root);
  for (const edge of edges) findPorts(edge);
  sizeUp(tree.root, within, measure);
  settle(tree.root, 0, 0);
}

// Edges from within an open box leave it below, or above if they point upward.
function findPorts(edge) {
  const [a, b] = edge.pair;
  edge.down = edge.meets.order.get(a) < edge.meets.order.get(b);
  const open = (end, side) => {
    for (let box = end; box.parent !== edge.meets; box = box.parent) {
      const { ports } = box.parent;
      if (!ports.has(box)) ports.set(box, new Set());
      ports.get(box).add(side);
    }
  };
  open(edge.from, edge.down ? "below" : "above");
  open(edge.to, edge.down ? "above" : "below");
}

function sizeUp(box, within, measure) {
  if (!box.open || !box.children.length) {
    Object.assign(box, measure(box));
    box.routes = null;
    return;
  }
  for (const child of box.children) sizeUp(child, within, measure);
  const inside = new Layers(box, within.get(box) || []);
  const header = box.parent ? HEADER : 0;
  const least = box.parent ? measure(box).width : 0;
  box.width = Math.max(inside.width + 2 * PADDING, least);
  box.height = inside.height + 2 * PADDING + header;
  inside.shift((box.width - inside.width) / 2, PADDING + header);
  box.routes = inside.routes;
}

// From places within the parent to places on the sheet.
function settle(box, x, y) {
  box.x += x;
  box.y += y;
  if (!box.open) return;
  if (box.routes) {
    for (const points of box.routes.values()) {
      for (const point of points) {
        point.x += box.x;
        point.y += box.y;
      }
    }
  }
  for (const child of box.children) settle(child, box.x, box.y);
}

// One box's children in layers. Edges that pass layers have a place in each, where they go through.
class Layers {
  constructor(box, edges) {
    this.rank = box.order;
    this.ports = box.ports;
    this.items = [...box.children].sort((a, b) => this.rank.get(a) - this.rank.get(b));
    this.#rankLayers(this.#pairs(edges));
    this.#wrap();
    this.#bend();
    this.#order();
    this.#place();
    this.#route();
  }

  // One pair of neighbors for all edges between them, downward.
  #pairs(edges) {
    const found = new Map();
    for (const { pair: [a, b], down } of edges) {
      const [from, to] = down ? [a, b] : [b, a];
      found.set(pairKey(from, to), { from, to });
    }
    this.links = [...found.values()];
    return this.links;
  }

  #rankLayers(links) {
    const outs = new Map(this.items.map((box) => [box, []]));
    const ins = new Map(this.items.map((box) => [box, []]));
    for (const link of links) {
      outs.get(link.from).push(link.to);
      ins.get(link.to).push(link.from);
    }
    for (const box of this.items) box.layer = 0;
    for (const box of this.items) {
      for (const to of outs.get(box)) to.layer = Math.max(to.layer, box.layer + 1);
    }
    // What takes nothing stands right above what takes it.
    for (const box of [...this.items].reverse()) {
      const next = outs.get(box);
      if (next.length && !ins.get(box).length) {
        box.layer = Math.max(Math.min(...next.map((to) => to.layer)) - 1, 0);
      }
    }
  }

  // Layers that are too wide take several rows.
  #wrap() {
    const layers = [];
    for (const box of this.items) (layers[box.layer] ||= []).push(box);
    this.layers = [];
    for (const layer of layers.filter(Boolean)) {
      const rows = Math.ceil(layer.length / WIDEST);
      const each = Math.ceil(layer.length / rows);
      for (let i = 0; i < layer.length; i += each) this.layers.push(layer.slice(i, i + each));
    }
    this.layers.forEach((layer, i) => layer.forEach((box) => (box.layer = i)));
  }

  // Points for links that pass layers, and for edges that go on outside of the box.
  #bend() {
    this.above = new Map();
    this.below = new Map();
    this.bends = new Map();
    const join = (a, b) => {
      if (!this.below.has(a)) this.below.set(a, []);
      if (!this.above.has(b)) this.above.set(b, []);
      this.below.get(a).push(b);
      this.above.get(b).push(a);
    };
    const chain = (from, first, last) => {
      const bends = [];
      for (let i = first; i <= last; i++) {
        const bend = { width: 2, height: 0, x: 0, y: 0, layer: i, bend: true };
        this.layers[i].push(bend);
        bends.push(bend);
      }
      const line = from ? [from, ...bends] : bends;
      for (let i = 1; i < line.length; i++) join(line[i - 1], line[i]);
      return bends;
    };
    for (const { from, to } of this.links) {
      const bends = chain(from, from.layer + 1, to.layer - 1);
      join(bends.length ? bends[bends.length - 1] : from, to);
      if (bends.length) this.bends.set(pairKey(from, to), bends);
    }
    for (const [box, sides] of this.ports) {
      if (sides.has("below")) {
        this.bends.set(portKey(box, "below"), chain(box, box.layer + 1, this.layers.length - 1));
      }
      if (sides.has("above")) {
        const bends = chain(null, 0, box.layer - 1);
        if (bends.length) join(bends[bends.length - 1], box);
        this.bends.set(portKey(box, "above"), bends);
      }
    }
  }

  // Each layer in the order of the means of its neighbors, down and up a few times.
  #order() {
    const at = new Map();
    const number = (layer) => layer.forEach((item, i) => at.set(item, i / layer.length));
    this.layers.forEach(number);
    const sort = (layer, neighbors) => {
      const wish = new Map(layer.map((item) => {
        const next = neighbors.get(item);
        return [item, next ? mean(next.map((n) => at.get(n))) : at.get(item)];
      }));
      layer.sort((a, b) => wish.get(a) - wish.get(b));
      number(layer);
    };
    for (let i = 0; i < SWEEPS; i++) {
      for (const layer of this.layers) sort(layer, this.above);
      for (const layer of [...this.layers].reverse()) sort(layer, this.below);
    }
  }

  #place() {
    let y = 0;
    for (const layer of this.layers) {
      const height = Math.max(...layer.map((item) => item.height));
      for (const item of layer) item.y = y + (height - item.height) / 2;
      y += height + GAP_Y;
      let x = 0;
      for (const item of layer) {
        item.x = x;
        x += item.width + GAP_X;
      }
      for (const item of layer) item.x -= x / 2;
    }
    this.height = Math.max(y - GAP_Y, 0);
    for (let i = 0; i < SWEEPS; i++) {
      for (const layer of this.layers) this.#pull(layer, this.above);
      for (const layer of [...this.layers].reverse()) this.#pull(layer, this.below);
    }
    const all = this.layers.flat();
    const left = Math.min(...all.map((item) => item.x));
    for (const item of all) item.x -= left;
    this.width = Math.max(...all.map((item) => item.x + item.width));
  }

  // Moves a layer's items towards their neighbors, in their order and without overlap.
  #pull(layer, neighbors) {
    const wish = layer.map((item) => {
      const next = neighbors.get(item);
      return next ? pulled(item, next) - item.width / 2 : item.x;
    });
    const least = [], most = [];
    let x = -Infinity;
    layer.forEach((item, i) => {
      least[i] = x = Math.max(wish[i], x);
      x += item.width + gapOf(item, layer[i + 1]);
    });
    x = Infinity;
    for (let i = layer.length - 1; i >= 0; i--) {
      most[i] = x = Math.min(wish[i], x - layer[i].width - gapOf(layer[i], layer[i + 1]));
    }
    layer.forEach((item, i) => (item.x = (least[i] + most[i]) / 2));
  }

  #route() {
    this.routes = new Map();
    for (const [key, bends] of this.bends) {
      this.routes.set(key, bends.map((bend) => ({ x: bend.x + bend.width / 2, y: bend.y })));
    }
  }

  shift(x, y) {
    for (const box of this.items) {
      box.x += x;
      box.y += y;
    }
    for (const points of this.routes.values()) {
      for (const point of points) {
        point.x += x;
        point.y += y;
      }
    }
  }
}

let lastId = 0;
function pairKey(a, b) {
  a.id ||= ++lastId;
  b.id ||= ++lastId;
  return `${a.id} ${b.id}`;
}

// The middle of an item's neighbors. Lines past other boxes are to be straight, and what belongs
// together is to be near; lines to far boxes pull least.
function pulled(item, neighbors) {
  let sum = 0, weights = 0;
  for (const next of neighbors) {
    const weight = item.bend && next.bend ? 8 : item.bend || next.bend ? 1 : 4;
    sum += weight * (next.x + next.width / 2);
    weights += weight;
  }
  return sum / weights;
}

function mean(numbers) {
  return numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
}

function portKey(box, side) {
  box.id ||= ++lastId;
  return `${box.id} ${side}`;
}

function gapOf(item, next) {
  if (!next) return 0;
  return item.bend && next.bend ? 6 : item.bend || next.bend ? 12 : GAP_X;
}

// The points between the ends of an edge: out of the boxes around its beginning, past what lies
// between, and into the boxes around its end.
function bendsOf(edge) {
  const { down, meets, pair: [a, b] } = edge;
  const outward = (end, side) => {
    const points = [];
    for (let box = end; box.parent !== meets; box = box.parent) {
      const found = box.parent.routes.get(portKey(box, side)) || [];
      points.push(...(side === "below" ? found : [...found].reverse()));
    }
    return points;
  };
  const key = down ? pairKey(a, b) : pairKey(b, a);
  const between = (meets.routes && meets.routes.get(key)) || [];
  return [
    ...outward(edge.from, down ? "below" : "above"),
    ...(down ? between : [...between].reverse()),
    ...outward(edge.to, down ? "above" : "below").reverse(),
  ];
}
