// What drawings over time or steps share: a range that is moved and scaled, and its numbers.
class Axis {
  constructor(low, high) {
    this.whole = [low, high > low ? high : low + 1];
    this.range = [...this.whole];
  }

  to(value, width) {
    return ((value - this.range[0]) / (this.range[1] - this.range[0])) * width;
  }

  from(x, width) {
    return this.range[0] + (x / width) * (this.range[1] - this.range[0]);
  }

  zoom(factor, at) {
    const [low, high] = this.range;
    const most = this.whole[1] - this.whole[0];
    const span = Math.min(Math.max((high - low) / factor, most / 1e5), most);
    const start = at - ((at - low) / (high - low)) * span;
    this.#put(start, span);
  }

  move(by) {
    this.#put(this.range[0] + by, this.range[1] - this.range[0]);
  }

  reset() {
    this.range = [...this.whole];
  }

  #put(start, span) {
    const low = Math.min(Math.max(start, this.whole[0]), this.whole[1] - span);
    this.range = [low, low + span];
  }

  ticks(width) {
    const span = this.range[1] - this.range[0];
    const raw = span / Math.max(width / 90, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
    const found = [];
    const begin = Math.ceil(this.range[0] / step) * step;
    for (let value = begin; value <= this.range[1] + step * 1e-6; value += step) found.push(value);
    return found;
  }
}

// Moves and scales an axis by wheel, drag and keys; a click without a move is told to `click`.
function steer(canvas, axis, area, changed, click, hover) {
  let last = null, moved = false;
  canvas.addEventListener("wheel", (event) => {
    const { left, width } = area();
    const at = axis.from(placeIn(canvas, event).x - left, width);
    if (event.shiftKey) axis.move(((event.deltaY || event.deltaX) / width) * (axis.range[1] - axis.range[0]));
    else if (event.ctrlKey || event.metaKey || axis.range[1] - axis.range[0] < axis.whole[1] - axis.whole[0]
             || event.deltaY < 0) axis.zoom(Math.exp(-event.deltaY / 400), at);
    else return;
    event.preventDefault();
    changed();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = placeIn(canvas, event);
    moved = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = placeIn(canvas, event);
    if (!last) {
      hover(at, event);
      return;
    }
    if (!moved && Math.abs(at.x - last.x) < 4) return;
    moved = true;
    axis.move(((last.x - at.x) / area().width) * (axis.range[1] - axis.range[0]));
    last = at;
    changed();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (last && !moved) click(placeIn(canvas, event));
    last = null;
  });
  canvas.addEventListener("pointerleave", (event) => hover(null, event));
  canvas.addEventListener("keydown", (event) => {
    const span = axis.range[1] - axis.range[0];
    const middle = (axis.range[0] + axis.range[1]) / 2;
    if (event.key === "ArrowLeft") axis.move(-span / 8);
    else if (event.key === "ArrowRight") axis.move(span / 8);
    else if (event.key === "+" || event.key === "=") axis.zoom(1.5, middle);
    else if (event.key === "-") axis.zoom(1 / 1.5, middle);
    else if (event.key === "f") axis.reset();
    else return;
    event.preventDefault();
    changed();
  });
}

// Numbers along the top or bottom of a drawing.
function drawTicks(context, axis, left, y0, width, y1, text) {
  context.font = SMALL_FONT;
  context.textBaseline = "top";
  context.textAlign = "center";
  for (const value of axis.ticks(width)) {
    const x = left + axis.to(value, width);
    context.strokeStyle = ink.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y0 + 14);
    context.lineTo(x, y1);
    context.stroke();
    context.fillStyle = ink.faint;
    context.fillText(text(value), x, y0);
  }
}

// A small sheet of words at the pointer.
class Tip {
  constructor() {
    this.element = h("div", { class: "tip", role: "status", hidden: true });
    document.body.append(this.element);
  }

  show(event, lines) {
    this.element.hidden = !lines;
    if (!lines) return;
    fill(this.element, lines.map((line, i) => h("div", { class: i ? "faint" : "strong" }, line)));
    const width = this.element.offsetWidth;
    const x = Math.min(event.clientX + 14, window.innerWidth - width - 8);
    this.element.style.left = `${Math.max(x, 4)}px`;
    this.element.style.top = `${event.clientY + 16}px`;
  }
}
