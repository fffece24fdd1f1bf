// Memory over the steps of a program: how much there is of each kind, and what lies where.
const MEMORY_KINDS = [
  ["held", "constants and variables", "#4c78a8"],
  ["planned", "planned buffers", "#54a24b"],
  ["made", "made in each step", "#f58518"],
];
const CURVE_HEIGHT = 170;
const MAP_HEIGHT = 260;
const LEFT = 78;

class Memory {
  constructor(app) {
    this.app = app;
    this.tip = app.tip;
    this.element = h("section", { class: "pane drawn" });
    this.drawings = app.programs.filter((p) => p.lives.length)
      .map((program) => new MemoryDrawing(app, program));
    if (!this.drawings.length) {
      this.element.append(h("div", { class: "nothing" }, h("h2", {}, "Nothing is known of memory"),
        h("p", {}, "There is a plan for programs that were compiled, and sizes in traces.")));
    }
    if (this.drawings.some((drawing) => drawing.block)) this.element.append(app.palette());
    for (const drawing of this.drawings) this.element.append(drawing.element);
  }

  refresh() {
    for (const drawing of this.drawings) drawing.sheet.soon();
  }
}

class MemoryDrawing {
  constructor(app, program) {
    this.app = app;
    this.program = program;
    const steps = Math.max(program.view.steps || 0, 1);
    this.steps = steps;
    this.axis = new Axis(0, steps);
    this.curves = usage(program.lives, steps);
    this.map = program.lives.filter((life) => life.offset !== null);
    this.block = Math.max(0, ...this.map.map((life) => life.offset + life.nbytes));
    this.canvas = h("canvas", { tabindex: "0", role: "img",
      "aria-label": `Memory of ${program.title} over its steps. Arrow keys move, plus and minus scale.` });
    this.canvas.dataset.height = 24 + CURVE_HEIGHT + (this.block ? MAP_HEIGHT + 44 : 0) + 8;
    const { planned_bytes: planned = 0, naive_bytes: naive = 0 } = program.view;
    const peak = Math.max(...this.curves.totals);
    const saved = naive > planned ? `, where a buffer for each result would take ${size(naive)}` : "";
    this.element = h("div", { class: "drawing" },
      app.programs.length > 1 ? h("h2", {}, program.title) : null,
      h("div", { class: "hint" }, `${size(peak)} at most`
        + (planned ? `; ${size(planned)} planned${saved}` : "") + "."),
      h("div", { class: "legend" }, MEMORY_KINDS.filter(([kind]) => this.curves[kind])
        .map(([, label, color]) => h("span", {}, swatch(color), label))),
      h("div", { class: "sheet" }, this.canvas));
    this.sheet = new Sheet(this.canvas, (context, width) => this.paint(context, width));
    const area = () => ({ left: LEFT, width: this.sheet.width - LEFT - GUTTER });
    steer(this.canvas, this.axis, area, () => this.sheet.soon(),
      (at) => this.#click(at), (at, event) => this.#hover(at, event));
  }

  paint(context, width) {
    const wide = width - LEFT - GUTTER;
    context.save();
    this.#paintCurve(context, wide, 22);
    if (this.block) this.#paintMap(context, wide, 22 + CURVE_HEIGHT + 40);
    context.restore();
  }

  #paintCurve(context, wide, top) {
    drawTicks(context, this.axis, LEFT, 2, wide, top + CURVE_HEIGHT,
      (v) => (Number.isInteger(v) ? `step ${v}` : ""));
    const most = Math.max(...this.curves.totals) || 1;
    const y = (bytes) => top + CURVE_HEIGHT - (bytes / most) * (CURVE_HEIGHT - 8);
    scaleLabels(context, most, y);
    const from = Math.max(Math.floor(this.axis.range[0]), 0);
    const to = Math.min(Math.ceil(this.axis.range[1]), this.steps);
    const base = new Float64Array(this.steps);
    context.save();
    clipTo(context, LEFT, top - 4, wide, CURVE_HEIGHT + 6);
    for (const [kind, , color] of MEMORY_KINDS) {
      const curve = this.curves[kind];
      if (!curve) continue;
      context.beginPath();
      for (let i = from; i < to; i++) {
        const above = y(base[i] + curve[i]);
        context.lineTo(LEFT + this.axis.to(i, wide), above);
        context.lineTo(LEFT + this.axis.to(i + 1, wide), above);
      }
      for (let i = to - 1; i >= from; i--) {
        context.lineTo(LEFT + this.axis.to(i + 1, wide), y(base[i]));
        context.lineTo(LEFT + this.axis.to(i, wide), y(base[i]));
        base[i] += curve[i];
      }
      context.closePath();
      context.fillStyle = color;
      context.globalAlpha = 0.85;
      context.fill();
      context.globalAlpha = 1;
    }
    context.restore();
  }

  #paintMap(context, wide, top) {
    this.mapTop = top;
    context.font = NAME_FONT;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.fillStyle = ink.text;
    context.fillText("What lies where in the planned memory", LEFT, top - 10);
    const y = (bytes) => top + (bytes / this.block) * MAP_HEIGHT;
    scaleLabels(context, this.block, y);
    context.strokeStyle = ink.line;
    context.strokeRect(LEFT, top, wide, MAP_HEIGHT);
    context.save();
    clipTo(context, LEFT, top, wide, MAP_HEIGHT + 1);
    const { selected } = this.app;
    for (const life of this.map) {
      const { x0, x1 } = this.#across(life, wide);
      if (x1 < LEFT || x0 > LEFT + wide) continue;
      const node = this.program.find(life.node);
      const chosen = selected && selected.node && selected.node === node;
      const { by } = this.app.colors;
      context.fillStyle = node && by !== "device" ? this.app.colors.node(this.program, node)
        : this.app.colors.device(life.device);
      context.globalAlpha = selected && selected.node && !chosen ? 0.4 : 0.85;
      const high = Math.max(y(life.offset + life.nbytes) - y(life.offset), 1);
      context.fillRect(x0, y(life.offset), Math.max(x1 - x0 - 0.7, 1), Math.max(high - 0.7, 1));
      context.globalAlpha = 1;
      if (chosen) {
        context.strokeStyle = ink.accent;
        context.lineWidth = 2;
        context.strokeRect(x0, y(life.offset), x1 - x0, high);
      }
      if (x1 - x0 > 46 && high > 14) {
        const text = shorten(context, lastPart(life.node), SMALL_FONT, x1 - x0 - 10);
        context.font = SMALL_FONT;
        context.textAlign = "left";
        context.textBaseline = "middle";
        context.fillStyle = by === "time" || by === "memory" ? "#222" : "#fff";
        context.fillText(text, Math.max(x0, LEFT) + 5, y(life.offset) + high / 2);
      }
    }
    context.restore();
  }

  #across(life, wide) {
    return {
      x0: LEFT + this.axis.to(life.begin, wide), x1: LEFT + this.axis.to(life.end + 1, wide),
    };
  }

  #step(at) {
    const step = Math.floor(this.axis.from(at.x - LEFT, this.sheet.width - LEFT - GUTTER));
    return step >= 0 && step < this.steps && at.x >= LEFT ? step : null;
  }

  #lifeAt(at) {
    const step = this.#step(at);
    if (step === null || !this.block) return null;
    const bytes = ((at.y - this.mapTop) / MAP_HEIGHT) * this.block;
    return this.map.find((life) => life.begin <= step && step <= life.end
      && life.offset <= bytes && bytes < life.offset + life.nbytes) || null;
  }

  #click(at) {
    const life = this.#lifeAt(at);
    const node = life && this.program.find(life.node);
    this.app.choose(node ? { program: this.program, node } : null);
  }

  #hover(at, event) {
    const life = at && this.#lifeAt(at);
    const step = at && this.#step(at);
    if (life) {
      const until = life.begin === life.end ? `step ${life.begin}` : `steps ${life.begin} to ${life.end}`;
      this.app.tip.show(event, [life.node, `${size(life.nbytes)}, ${until}, at ${life.offset}`]);
    } else if (step !== null && at && at.y < 22 + CURVE_HEIGHT) {
      const most = this.program.lives.filter((l) => l.begin <= step && step <= l.end)
        .sort((a, b) => b.nbytes - a.nbytes).slice(0, 5);
      this.app.tip.show(event, [`step ${step}: ${size(this.curves.totals[step])}`,
        ...most.map((l) => `${size(l.nbytes)} ${l.node}`)]);
    } else this.app.tip.show(event, null);
  }
}

// Bytes by kind and step.
function usage(lives, steps) {
  const found = { totals: new Float64Array(steps) };
  for (const life of lives) {
    const curve = (found[life.kind] ||= new Float64Array(steps + 1));
    curve[Math.min(life.begin, steps)] += life.nbytes;
    curve[Math.min(life.end + 1, steps)] -= life.nbytes;
  }
  for (const [kind] of MEMORY_KINDS) {
    const curve = found[kind];
    if (!curve) continue;
    for (let i = 0, sum = 0; i < steps; i++) {
      sum += curve[i];
      curve[i] = sum;
      found.totals[i] += sum;
    }
  }
  return found;
}

function scaleLabels(context, most, y) {
  context.font = SMALL_FONT;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = ink.faint;
  for (const share of [0, 0.5, 1]) context.fillText(size(Math.round(most * share)), LEFT - 8, y(most * share));
}

function clipTo(context, x, y, width, height) {
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
}
