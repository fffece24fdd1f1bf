// The traced step: a track a device, with lanes for what overlaps; two runs under one clock.
const LANE = 22;
const TRACK_HEAD = 24;
const GUTTER = 12;

class Timeline {
  constructor(app) {
    this.app = app;
    this.programs = app.programs.filter((program) => program.spans.length);
    this.tip = app.tip;
    const end = Math.max(0, ...this.programs.flatMap((p) => p.spans.map((s) => s.start + s.us)));
    this.axis = new Axis(0, end);
    this.tracks = this.programs.flatMap((program) => tracksOf(program, this.programs.length > 1));
    this.element = h("section", { class: "pane drawn" });
    if (!this.programs.length) {
      this.element.append(h("div", { class: "nothing" },
        h("h2", {}, "No step was traced"),
        h("p", {}, "Give explain the run_metadata of a step that ran with "
          + "RunOptions(trace_level=RunOptions.FULL_TRACE), or call opdock view with --time.")));
      return;
    }
    this.canvas = h("canvas", { tabindex: "0", role: "img",
      "aria-label": "Timeline of the traced step. Arrow keys move, plus and minus scale, f shows all." });
    const holder = h("div", { class: "sheet" }, this.canvas);
    this.element.append(
      app.palette(), h("div", { class: "hint" }, this.#said(), " Scroll to scale, drag to move."), holder);
    this.canvas.dataset.height = 20 + this.tracks.reduce((sum, t) => sum + t.height, 0) + 10;
    this.sheet = new Sheet(this.canvas, (context, width) => this.paint(context, width));
    const area = () => ({ left: GUTTER, width: this.sheet.width - 2 * GUTTER });
    steer(this.canvas, this.axis, area, () => this.sheet.soon(),
      (at) => this.#click(at), (at, event) => this.#hover(at, event));
  }

  #said() {
    return this.programs.map((program) => {
      const end = Math.max(...program.spans.map((s) => s.start + s.us));
      const busy = program.spans.reduce((sum, s) => {
        const node = program.find(s.node);
        return node && node.level ? sum : sum + s.us; // what is in a loop, the loop took
      }, 0);
      return `${this.programs.length > 1 ? `${program.title}: ` : ""}`
        + `${count(program.spans.length, "call")} in ${micros(end)}, ${micros(busy)} in kernels.`;
    }).join(" ");
  }

  paint(context, width) {
    const wide = width - 2 * GUTTER;
    drawTicks(context, this.axis, GUTTER, 2, wide, this.sheet.height, micros);
    let y = 20;
    for (const track of this.tracks) {
      track.y = y;
      context.font = NAME_FONT;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillStyle = ink.text;
      context.fillText(track.label, GUTTER, y + 13);
      for (const span of track.spans) this.#paintSpan(context, track, span, wide);
      y += track.height;
    }
  }

  #paintSpan(context, track, span, wide) {
    const x0 = GUTTER + this.axis.to(span.start, wide);
    const x1 = GUTTER + this.axis.to(span.start + span.us, wide);
    if (x1 < 0 || x0 > wide + 2 * GUTTER) return;
    const y = track.y + TRACK_HEAD + span.lane * LANE;
    const width = Math.max(x1 - x0, 1);
    const node = track.program.find(span.node);
    const { by } = this.app.colors;
    const color = node && by !== "device" ? this.app.colors.node(track.program, node)
      : this.app.colors.device(span.device);
    const { selected } = this.app;
    const chosen = selected && selected.node && selected.node.name === span.node;
    context.globalAlpha = selected && selected.node && !chosen ? 0.45 : 1;
    context.fillStyle = color;
    context.fillRect(x0, y, width > 3 ? width - 0.7 : width, LANE - 4);
    context.globalAlpha = 1;
    if (chosen) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 2;
      context.strokeRect(x0 - 1, y - 1, width + 2, LANE - 2);
    }
    if (width < 34) return;
    context.font = SMALL_FONT;
    context.fillStyle = by === "time" || by === "memory" ? "#222" : "#fff";
    const from = Math.max(x0, 0);
    const text = shorten(context, `${lastPart(span.node)}  ${plainOp(span.op)}`, SMALL_FONT, x1 - from - 10);
    context.font = SMALL_FONT;
    if (text.length > 1) context.fillText(text, from + 5, y + (LANE - 4) / 2 + 0.5);
  }

  #at(at) {
    const wide = this.sheet.width - 2 * GUTTER;
    const time = this.axis.from(at.x - GUTTER, wide);
    const slack = ((this.axis.range[1] - this.axis.range[0]) / wide) * 2;
    for (const track of this.tracks) {
      const lane = Math.floor((at.y - track.y - TRACK_HEAD) / LANE);
      if (lane < 0 || lane >= track.lanes) continue;
      const found = track.spans.find((s) => s.lane === lane && s.start - slack <= time
        && s.start + s.us + slack >= time);
      if (found) return { track, span: found };
    }
    return null;
  }

  #click(at) {
    const found = this.#at(at);
    const node = found && found.track.program.find(found.span.node);
    this.app.choose(node ? { program: found.track.program, node } : null);
  }

  #hover(at, event) {
    const found = at && this.#at(at);
    this.tip.show(event, found && [
      found.span.node, `${found.span.op} · ${micros(found.span.us)} from ${micros(found.span.start)}`,
      ...(found.span.details ? [found.span.details.slice(0, 200)] : []),
    ]);
  }

  refresh() {
    if (this.sheet) this.sheet.soon();
  }
}

// What overlaps gets lanes of its own.
function tracksOf(program, titled) {
  const byDevice = new Map();
  for (const span of [...program.spans].sort((a, b) => a.start - b.start || b.us - a.us)) {
    let track = byDevice.get(span.device);
    if (!track) {
      const label = `${titled ? `${program.title} — ` : ""}${shortDevice(span.device)}`;
      track = { program, label, spans: [], ends: [], y: 0 };
      byDevice.set(span.device, track);
    }
    let lane = track.ends.findIndex((end) => end <= span.start + 1e-6);
    if (lane < 0) lane = track.ends.length;
    track.ends[lane] = span.start + span.us;
    track.spans.push({ ...span, lane });
  }
  return [...byDevice.values()].map((track) => ({
    ...track, lanes: track.ends.length, height: TRACK_HEAD + track.ends.length * LANE + 12,
  }));
}
