// What colors mean. Hues differ in lightness too, so that they differ for all eyes and in print.
const DEVICE_COLORS = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2",
  "#9d755d", "#eeca3b"];
const WAY_COLORS = {
  native: "#4c78a8", portable: "#72b7b2", decomposed: "#eeca3b", builtin: "#9aa5b1",
  copy: "#e45756", feed: "#54a24b", control: "#b279a2", fused: "#f58518", removed: "#c8ced6",
};
const NEUTRAL = "#9aa5b1";
const HEAT = [[255, 247, 188], [254, 196, 79], [236, 112, 20], [153, 52, 4]];

class Colors {
  constructor(programs) {
    this.by = "device";
    this.programs = programs;
    const devices = new Set();
    for (const program of programs) {
      for (const node of program.nodes) if (node.device) devices.add(shortDevice(node.device));
      for (const span of program.spans) devices.add(shortDevice(span.device));
    }
    this.devices = new Map();
    // What the host does itself is no device's work.
    for (const name of [...devices].sort()) {
      const free = DEVICE_COLORS[this.devices.size % DEVICE_COLORS.length];
      if (name !== "host") this.devices.set(name, free);
    }
    if (devices.has("host")) this.devices.set("host", NEUTRAL);
  }

  get ways() {
    const ways = [["device", "device"], ["how", "kernel kind"]];
    if (this.programs.some((p) => p.traced)) ways.push(["time", "time"]);
    if (this.programs.some((p) => p.heaviest)) ways.push(["memory", "memory"]);
    return ways;
  }

  device(name) {
    return this.devices.get(shortDevice(name)) || NEUTRAL;
  }

  how(how) {
    return Object.hasOwn(WAY_COLORS, how) ? WAY_COLORS[how] : NEUTRAL;
  }

  // Square roots: what takes a hundredth of the most is to be seen yet.
  heat(value, most) {
    if (!value || !most) return null;
    const at = Math.sqrt(value / most) * (HEAT.length - 1);
    const low = Math.min(Math.floor(at), HEAT.length - 2);
    const mixed = HEAT[low].map((c, i) => Math.round(c + (HEAT[low + 1][i] - c) * (at - low)));
    return `rgb(${mixed.join(",")})`;
  }

  node(program, node) {
    if (this.by === "how") return this.how(node.how);
    if (this.by === "time") return this.heat(node.us, program.slowest) || "#dfe3e8";
    if (this.by === "memory") return this.heat(node.bytes, program.heaviest) || "#dfe3e8";
    return this.device(node.device || node.requested);
  }

  // [label, color] of each color that is in use.
  legend() {
    if (this.by === "device") return [...this.devices];
    if (this.by === "how") {
      const used = new Set(this.programs.flatMap((p) => p.drawn.map((node) => node.how)));
      return [...used].filter(Boolean).map((how) => [how, this.how(how)]);
    }
    const time = this.by === "time";
    const most = Math.max(...this.programs.map((p) => (time ? p.slowest : p.heaviest)));
    return [0.01, 0.25, 1].map((share) => [
      (time ? micros : (v) => size(Math.round(v)))(most * share), this.heat(share, 1),
    ]);
  }
}
