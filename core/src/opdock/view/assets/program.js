// A program as the page works with it: nodes by number, and who takes what from whom.
const FORM = 1;

function readPrograms(told) {
  if (told.version !== FORM) {
    throw new Error(`this page reads data of version ${FORM}, not ${told.version}`);
  }
  return told.views.map((view, number) => new Program(view, number));
}

class Program {
  constructor(view, number) {
    this.number = number;
    this.title = view.title;
    this.view = view;
    this.nodes = view.rows.map((row, index) => makeNode(row, index));
    this.byName = new Map();
    this.running = [];
    this.drawn = []; // what the graph shows: all but what was removed
    this.#name();
    this.#nest();
    this.#fuse();
    this.#link();
    this.#weigh();
  }

  // Nodes that run go before those of the same name that were fused or removed.
  #name() {
    for (const node of this.nodes) {
      if (node.how === "removed") continue;
      this.drawn.push(node);
      if (node.how === "fused") continue;
      this.running.push(node);
      if (!this.byName.has(node.name)) this.byName.set(node.name, node);
    }
    this.members = new Map();
    for (const node of this.nodes) {
      if (node.how === "fused" && !this.members.has(node.name)) this.members.set(node.name, node);
      if (!this.byName.has(node.name)) this.byName.set(node.name, node);
    }
  }

  // How many loops and branches are around a node: what they take, their nodes take as well.
  #nest() {
    for (const node of this.nodes) {
      const { within } = node.row;
      if (!within) continue;
      const around = this.byName.get(within.slice(0, within.lastIndexOf("/")));
      node.level = (around ? around.level : 0) + 1; // rows of what is around come first
    }
  }

  #fuse() {
    for (const node of this.running) {
      for (const name of node.row.members || []) {
        const member = this.members.get(name);
        if (member) {
          member.into = node;
          node.members.push(member);
        }
      }
    }
  }

  // Edges between nodes that run. Members of a fused node have their own, among themselves and to
  // what the fused node takes; what they make for others, the fused node gives.
  #link() {
    this.edges = [];
    for (const node of this.drawn) {
      const seen = new Set();
      const add = (text, control) => {
        const from = this.#source(node, text);
        if (!from || from === node || from === node.into || seen.has(from)) return;
        seen.add(from);
        const edge = { from, to: node, control };
        node.ins.push(edge);
        from.outs.push(edge);
        this.edges.push(edge);
      };
      for (const text of node.row.inputs || []) add(text, false);
      for (const text of node.row.control || []) add(text, true);
    }
  }

  #source(node, text) {
    if (node.into) {
      const inside = this.members.get(plainName(text, this.members));
      if (inside && inside.into === node.into) return inside;
    }
    const name = plainName(text, this.byName);
    return this.byName.get(name) || this.byName.get(`${name}/read`); // a variable in a trace
  }

  #weigh() {
    // Fields that say nothing are left out of the data.
    this.lives = (this.view.lives || []).map((life) => ({
      node: life.node || "", output: life.output || 0, device: life.device || "", nbytes: life.nbytes,
      begin: life.begin || 0, end: life.end || 0, kind: life.kind,
      offset: life.offset === undefined ? null : life.offset,
    }));
    for (const life of this.lives) {
      const node = this.byName.get(life.node);
      if (node) node.bytes += life.nbytes;
    }
    this.spans = (this.view.spans || []).map((span) => ({
      node: span.node || "", op: span.op || "", device: span.device || "", start: span.start || 0,
      us: span.us || 0, details: span.details || "",
    }));
    this.traced = this.running.some((node) => node.us !== null);
    this.total = this.running.reduce((sum, node) => sum + (node.level ? 0 : node.us || 0), 0);
    this.slowest = this.running.reduce((most, node) => Math.max(most, node.us || 0), 0);
    this.heaviest = this.running.reduce((most, node) => Math.max(most, node.bytes), 0);
  }

  find(name) {
    return this.byName.get(name);
  }
}

function makeNode(row, index) {
  return {
    index, row, name: row.node || "", op: row.op || "", device: row.device || "",
    how: row.how || "", us: row.us === undefined ? null : row.us, bytes: 0,
    requested: row.requested || "", level: 0, into: null, members: [], ins: [], outs: [],
  };
}

// "node:1" is output 1 of "node", unless that is a node's whole name, as "x:0" is a feed's.
function plainName(text, known) {
  if (known.has(text)) return text;
  const colon = text.lastIndexOf(":");
  return colon > 0 && /^\d+$/.test(text.slice(colon + 1)) ? text.slice(0, colon) : text;
}

// Whether a node is where it was not asked to be: "GPU:0" asked for, "CPU:0" given.
function isElsewhere(node) {
  if (!node.requested || !node.device || node.how === "removed") return false;
  const asked = shortDevice(node.requested).toLowerCase();
  const given = shortDevice(node.device).toLowerCase();
  return asked !== "" && asked !== given && asked.split(":")[0] !== given.split(":")[0];
}
